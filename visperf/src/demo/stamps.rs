//! Time stamps in recorded lines: finds them, and moves them to another time in the same format.
//!
//! Pure. Only times within the recording's span count as stamps, so that other numbers stay unchanged. All
//! stamps of the recordings are in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use regex::bytes::{Captures, Regex};
use std::ops::RangeInclusive;

/// Stamp formats: a regex, and the format for jiff; the fraction of a second is handled separately.
const FORMS: &[(&str, Form)] = &[
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?", Form::Date("%Y-%m-%dT%H:%M:%S")),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?", Form::Date("%Y-%m-%d %H:%M:%S")),
    (r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(\.\d{1,6})?", Form::Date("%m/%d/%Y %H:%M:%S")),
    (r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d(\.\d{1,6})?", Form::Date("%m/%d/%y %H:%M:%S")),
    (r"\d\d/\d\d \d\d:\d\d:\d\d(\.\d{1,6})?", Form::NoYear("%m/%d %H:%M:%S")),
    (r"\d{14}(\.\d{1,6})?", Form::Date("%Y%m%d%H%M%S")),
    (r"1\d{9}(\.\d{1,6})?", Form::Epoch),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Date(&'static str),
    NoYear(&'static str),
    Epoch,
}

/// Finds and moves the stamps of a recording made in this span (microseconds since 1970).
pub(crate) struct Stamps {
    any: Regex,
    forms: Vec<(Regex, Form)>,
    span: RangeInclusive<i64>,
    year: i16,
}

impl Stamps {
    pub(crate) fn new(span: RangeInclusive<i64>) -> Stamps {
        let plain = |pattern: &str| Regex::new(pattern).expect("the patterns are constants");
        let alternatives: Vec<_> = FORMS.iter().map(|(pattern, _)| *pattern).collect();
        let year =
            Timestamp::from_microsecond(*span.start()).map_or(1970, |at| Offset::UTC.to_datetime(at).year());
        Stamps {
            any: plain(&format!(r"(?-u:\b)(?:{})(?-u:\b)", alternatives.join("|"))),
            forms: FORMS.iter().map(|(pattern, form)| (plain(&format!("^(?:{pattern})$")), *form)).collect(),
            span,
            year,
        }
    }

    /// The latest stamp in a line, in microseconds since 1970.
    pub(crate) fn latest(&self, line: &[u8]) -> Option<i64> {
        self.any
            .find_iter(line)
            .filter_map(|found| self.read(found.as_bytes()))
            .map(|(micros, _)| micros)
            .max()
    }

    /// The line with every stamp replaced by `to` of it.
    pub(crate) fn moved(&self, line: &[u8], to: impl Fn(i64) -> i64) -> Vec<u8> {
        let replaced = self.any.replace_all(line, |captures: &Captures<'_>| {
            let text = &captures[0];
            match self.read(text) {
                Some((micros, form)) => write(form, to(micros), text),
                None => text.to_vec(),
            }
        });
        replaced.into_owned()
    }

    fn read(&self, text: &[u8]) -> Option<(i64, Form)> {
        let form = self.forms.iter().find(|(regex, _)| regex.is_match(text)).map(|(_, form)| *form)?;
        let text = std::str::from_utf8(text).ok()?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let micros_of_second = format!("{fraction:0<6}").parse::<i64>().ok()?;
        let secs = match form {
            Form::Epoch => whole.parse::<i64>().ok()?,
            Form::Date(form) => civil_secs(DateTime::strptime(form, whole).ok()?)?,
            Form::NoYear(form) => {
                let dated = format!("{} {whole}", self.year);
                civil_secs(DateTime::strptime(format!("%Y {form}"), dated).ok()?)?
            }
        };
        let micros = secs.checked_mul(1_000_000)?.checked_add(micros_of_second)?;
        self.span.contains(&micros).then_some((micros, form))
    }
}

fn civil_secs(civil: DateTime) -> Option<i64> {
    Offset::UTC.to_timestamp(civil).ok().map(Timestamp::as_second)
}

/// `micros` in this format, with as many digits after the second as `like` has.
fn write(form: Form, micros: i64, like: &[u8]) -> Vec<u8> {
    let secs = micros.div_euclid(1_000_000);
    let whole = match form {
        Form::Epoch => secs.to_string(),
        Form::Date(form) | Form::NoYear(form) => match Timestamp::from_second(secs) {
            Ok(at) => Offset::UTC.to_datetime(at).strftime(form).to_string(),
            Err(_) => return like.to_vec(),
        },
    };
    let digits = like.iter().rposition(|&b| b == b'.').map_or(0, |dot| like.len() - dot - 1);
    let mut text = whole.into_bytes();
    if digits > 0 {
        text.push(b'.');
        text.extend_from_slice(&format!("{:06}", micros.rem_euclid(1_000_000)).as_bytes()[..digits]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: RangeInclusive<i64> = 1_795_132_800_000_000..=1_795_219_200_000_000;

    fn check(line: &str, expected: &str) {
        let stamps = Stamps::new(DAY);
        let moved = stamps.moved(line.as_bytes(), |micros| micros + 86_400_000_000 + 1_500_000);
        assert_eq!(String::from_utf8_lossy(&moved), expected);
        assert_eq!(
            stamps.moved(line.as_bytes(), |micros| micros),
            line.as_bytes(),
            "nothing moved, nothing changed"
        );
    }

    #[test]
    fn stamps_of_every_form_are_moved() {
        check("[2026-11-20T12:24:17.446] JobId=1", "[2026-11-21T12:24:18.946] JobId=1");
        check("11/20/2026 12:41:23|  main|", "11/21/2026 12:41:24|  main|");
        check("11/20/26 12:39:06       Matched", "11/21/26 12:39:07       Matched");
        check("000 (001.000.000) 11/20 12:38:49 Job", "000 (001.000.000) 11/21 12:38:50 Job");
        check("DATE=20261120123250.561449 X", "DATE=20261121123252.061449 X");
        check("1795178489:new_job:1795178489:1", "1795264890:new_job:1795264890:1");
    }

    #[test]
    fn numbers_that_are_no_stamps_stay() {
        for line in ["InitPrio=4294901759 usec=718", "1234567890 12345678901234", "<10.78.1.12:9618?x=1>"] {
            check(line, line);
        }
    }

    #[test]
    fn the_latest_stamp_of_a_line_counts() {
        let line =
            b"StartTime=2026-11-20T12:24:21 EndTime=2026-11-20T12:24:22 SubmitTime=2026-11-20T12:24:20";
        assert_eq!(Stamps::new(DAY).latest(line), Some(1_795_177_462_000_000));
        assert_eq!(Stamps::new(DAY).latest(b"none here"), None);
    }
}
