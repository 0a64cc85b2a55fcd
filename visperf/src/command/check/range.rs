//! Threshold ranges of the Monitoring Plugins guidelines: `10`, `10:`, `~:10`, `10:20`, `@10:20`.
//!
//! Pure. A value outside the range raises the alert; with `@` a value inside, ends included. Not here:
//! options (`super`).

use std::fmt;
use std::str::FromStr;

/// Range of values that raise no alert.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    text: String,
    start: f64,
    end: f64,
    is_inverted: bool,
}

impl Range {
    /// Whether this value raises an alert; NaN always does.
    pub(super) fn alerts(&self, value: f64) -> bool {
        value.is_nan() || (self.start..=self.end).contains(&value) == self.is_inverted
    }

    /// A range that raises an alert above `end`.
    pub(super) fn at_most(end: u32) -> Range {
        Range { text: end.to_string(), start: 0.0, end: end.into(), is_inverted: false }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, form: &mut fmt::Formatter<'_>) -> fmt::Result {
        form.write_str(&self.text)
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let expected = || {
            format!(
                "expected a range such as 10 (alert below 0 or above 10), 10: (below 10), ~:10 (above 10), 10:20 or \
                 @10:20 (inside), found {text:?}"
            )
        };
        let number =
            |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(expected);
        let text = text.trim();
        let (is_inverted, ends) = text.strip_prefix('@').map_or((false, text), |ends| (true, ends));
        let (start, end) = match ends.split_once(':') {
            None => (0.0, number(ends)?),
            Some((start, end)) => {
                let start = if start == "~" { f64::NEG_INFINITY } else { number(start)? };
                (start, if end.is_empty() { f64::INFINITY } else { number(end)? })
            }
        };
        if start > end {
            return Err(format!("expected a range whose start is not above its end, found {text:?}"));
        }
        Ok(Range { text: text.to_owned(), start, end, is_inverted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_guidelines() {
        let check = |text: &str, quiet: &[f64], alerting: &[f64]| {
            let range: Range = text.parse().unwrap();
            assert!(quiet.iter().all(|value| !range.alerts(*value)), "{text}: {quiet:?}");
            assert!(alerting.iter().all(|value| range.alerts(*value)), "{text}: {alerting:?}");
            assert_eq!(range.to_string(), text);
        };
        check("10", &[0.0, 10.0], &[-0.1, 10.1, f64::NAN]);
        check("10:", &[10.0, 1e300], &[9.9, f64::NEG_INFINITY]);
        check("~:10", &[f64::NEG_INFINITY, 10.0], &[10.1]);
        check("10:20", &[10.0, 20.0], &[9.9, 20.1]);
        check("@10:20", &[9.9, 20.1], &[10.0, 15.0, 20.0, f64::NAN]);
        check("-5:-1.5", &[-2.0], &[0.0]);
        for wrong in ["", ":", ":5", "x", "20:10", "1:2:3", "@", "inf", "5%"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
        assert!(Range::at_most(0).alerts(1.0) && !Range::at_most(0).alerts(0.0));
    }
}
