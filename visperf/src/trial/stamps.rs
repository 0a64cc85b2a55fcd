//! Whether any line of a log begins with a stamp that its filter expects.
//!
//! Pure. A wrong format is a filter's commonest fault and shows nowhere else: its rules see lines with the
//! stamp still on, and its events have the time of reading.

use log_filters::timestamp::Format;
use serde::Deserialize;

/// The stamps that a filter expects, until one is met.
pub(crate) struct Stamps {
    formats: Vec<(String, Format)>,
    met: bool,
}

#[derive(Default, Deserialize)]
struct Text {
    #[serde(default)]
    time: Times,
}

#[derive(Default, Deserialize)]
struct Times {
    #[serde(default)]
    prefix: Vec<String>,
}

impl Stamps {
    /// Those of a filter's text.
    pub(crate) fn expected(filter_text: &str) -> Stamps {
        let text: Text = toml::from_str(filter_text).unwrap_or_default();
        let parsed = |text: String| Format::parse(&text).ok().map(|format| (text, format));
        Stamps { formats: text.time.prefix.into_iter().filter_map(parsed).collect(), met: false }
    }

    /// A line as it stands in the log.
    pub(crate) fn line(&mut self, line: &[u8]) {
        self.met = self.met || self.formats.iter().any(|(_, format)| format.read(line).is_some());
    }

    /// What to say if stamps are expected and none was met in the log of this name.
    pub(crate) fn missing(&self, log: &str) -> Option<String> {
        let (first, _) = self.formats.first().filter(|_| !self.met)?;
        Some(format!(
            "no line of {log} begins with a stamp as `prefix` of [time] has it ({first}): \
             rules see whole lines, and events have the time of reading"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_the_expected_stamps_is_told() {
        let missing = |filter: &str, lines: &[&str]| {
            let mut stamps = Stamps::expected(filter);
            lines.iter().for_each(|line| stamps.line(line.as_bytes()));
            stamps.missing("x.log")
        };
        let filter = "[time]\nprefix = [\"%H:%M:%S \", \"%Y-%m-%d \"]\n";
        assert_eq!(missing(filter, &["a", "2026-11-20 b"]), None);
        let told = missing(filter, &["a", "20.11.2026 b"]).unwrap();
        assert!(told.starts_with("no line of x.log") && told.contains("(%H:%M:%S )"), "{told}");
        assert_eq!(missing("[filter]\n", &["a"]), None, "none is expected");
    }
}
