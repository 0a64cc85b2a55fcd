//! Check whether any line of a log starts with a timestamp that its filter expects.
//!
//! Pure. A wrong format is the most common error in a filter and has no other symptom: its rules see lines
//! with the timestamp still on, and its events have the time of reading.

use log_filters::timestamp::Format;
use serde::Deserialize;

/// Timestamp formats of a filter, checked until one matches.
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
    /// The formats in a filter's text.
    pub(crate) fn expected(filter_text: &str) -> Stamps {
        let text: Text = toml::from_str(filter_text).unwrap_or_default();
        let parsed = |text: String| Format::parse(&text).ok().map(|format| (text, format));
        Stamps { formats: text.time.prefix.into_iter().filter_map(parsed).collect(), met: false }
    }

    /// Check a line of the log.
    pub(crate) fn line(&mut self, line: &[u8]) {
        self.met = self.met || self.formats.iter().any(|(_, format)| format.read(line).is_some());
    }

    /// The warning if timestamps are expected and the log of this name has none.
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
    fn a_log_without_the_expected_stamps_is_reported() {
        let missing = |filter: &str, lines: &[&str]| {
            let mut stamps = Stamps::expected(filter);
            lines.iter().for_each(|line| stamps.line(line.as_bytes()));
            stamps.missing("x.log")
        };
        let filter = "[time]\nprefix = [\"%H:%M:%S \", \"%Y-%m-%d \"]\n";
        assert_eq!(missing(filter, &["a", "2026-11-20 b"]), None);
        let text = missing(filter, &["a", "20.11.2026 b"]).unwrap();
        assert!(text.starts_with("no line of x.log") && text.contains("(%H:%M:%S )"), "{text}");
        assert_eq!(missing("[filter]\n", &["a"]), None, "none is expected");
    }
}
