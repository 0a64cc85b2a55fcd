//! Report of a check: one line of status text and performance data, and the plugin's exit code.
//!
//! ```text
//! HOSTS CRITICAL - 1 of 3 hosts does not report: wn02 | 'live'=2;;;0;3 'last_seen'=1;;0;0;3
//! ```
//! Pure. Rule: the worst state decides; one line whatever the names contain, with `|` before the performance
//! data alone.
//! Not here: what is checked (`subjects`).

use super::range::Range;
use crate::exit::Level;
use crate::harmless::clean;

/// Most names listed in the text; the others are counted.
const LISTED_MAX: usize = 5;

/// Result of a check.
#[derive(Debug)]
pub(super) struct Report {
    subject: &'static str,
    pub(super) level: Level,
    text: String,
    figures: Vec<String>,
}

/// One value in the performance data.
#[derive(Debug, Default)]
pub(super) struct Figure<'a> {
    pub(super) label: &'a str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    pub(super) warning: Option<&'a Range>,
    pub(super) critical: Option<&'a Range>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Report {
    pub(super) fn new(subject: &'static str, level: Level, text: String) -> Report {
        Report { subject, level, text, figures: Vec::new() }
    }

    /// Add a value to the performance data; a value that is not a finite number is left out, as the
    /// guidelines require.
    pub(super) fn figure(mut self, figure: &Figure<'_>) -> Report {
        if !figure.value.is_finite() {
            return self;
        }
        let label = clean(figure.label).replace('\'', "''").replace('=', ":").replace('|', "/");
        let range = |range: Option<&Range>| range.map(ToString::to_string).unwrap_or_default();
        let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
        let fields = [
            format!("'{label}'={}{}", figure.value, figure.unit),
            range(figure.warning),
            range(figure.critical),
            number(figure.min),
            number(figure.max),
        ];
        self.figures.push(fields.join(";").trim_end_matches(';').to_owned());
        self
    }

    pub(super) fn line(&self) -> String {
        let level = match self.level {
            Level::Ok => "OK",
            Level::Warning => "WARNING",
            Level::Critical => "CRITICAL",
            Level::Unknown => "UNKNOWN",
        };
        let lines: Vec<&str> = self.text.lines().map(str::trim).collect();
        let text = clean(&lines.join("; ").replace(":; ", ": ")).replace('|', "/");
        let figures = match self.figures.is_empty() {
            true => String::new(),
            false => format!(" | {}", self.figures.join(" ")),
        };
        format!("{} {level} - {text}{figures}", self.subject)
    }
}

/// State for a value; critical is tested first.
pub(super) fn level_of(value: f64, warning: Option<&Range>, critical: Option<&Range>) -> Level {
    let alerts = |range: Option<&Range>| range.is_some_and(|range| range.alerts(value));
    match (alerts(critical), alerts(warning)) {
        (true, _) => Level::Critical,
        (false, true) => Level::Warning,
        (false, false) => Level::Ok,
    }
}

/// `a, b and 7 more`.
pub(super) fn listed(names: &[String]) -> String {
    let first = names[..names.len().min(LISTED_MAX)].join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_whatever_the_names_contain() {
        let text = "wn|01\u{1b}[2J: down\nnow".to_owned();
        let (warning, critical) = ("5".parse().unwrap(), "@1:2".parse().unwrap());
        let figure = Figure {
            label: "it's a=b|c\n",
            value: 1.5,
            unit: "s",
            warning: Some(&warning),
            critical: Some(&critical),
            min: Some(0.0),
            max: None,
        };
        let report = Report::new("HOSTS", Level::Warning, text).figure(&figure);
        let report = report.figure(&Figure { label: "no", value: f64::NAN, ..Figure::default() });
        assert_eq!(
            report.line(),
            "HOSTS WARNING - wn/01\\u{1b}[2J: down; now | 'it''s a:b/c\\n'=1.5s;5;@1:2;0"
        );
        assert_eq!(Report::new("X", Level::Ok, "fine".into()).line(), "X OK - fine");
    }

    #[test]
    fn critical_comes_before_warning() {
        let (five, ten) = ("5".parse().unwrap(), "10".parse().unwrap());
        for (value, level) in [(5.0, Level::Ok), (6.0, Level::Warning), (11.0, Level::Critical)] {
            assert_eq!(level_of(value, Some(&five), Some(&ten)), level, "{value}");
        }
        assert_eq!(level_of(99.0, None, None), Level::Ok);
    }

    #[test]
    fn many_names_are_counted() {
        let names: Vec<String> = (1..=7).map(|number| format!("wn{number}")).collect();
        assert_eq!(listed(&names[..2]), "wn1, wn2");
        assert_eq!(listed(&names), "wn1, wn2, wn3, wn4, wn5 and 2 more");
    }
}
