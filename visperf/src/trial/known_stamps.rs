//! Common timestamp formats at the start of lines, to guess that of an unknown log.
//!
//! Pure. The guess is the format that most lines match; among equals, the one that consumes the most.

use log_filters::timestamp::Format;

/// Formats in the syntax of `docs/filter-format.md`.
const FORMATS: &[&str] = &[
    "%Y-%m-%dT%H:%M:%S%.f%z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f%z",
    "%Y-%m-%d %H:%M:%S%.f %z",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y%m%d%H%M%S%.f",
    "%Y%m%d %H:%M:%S%.f",
    "%Y%m%dT%H%M%S%.f%z",
    "%Y%m%dT%H%M%S%.f",
    "%Y%m%d-%H:%M:%S%.f",
    "%Y%m%d-%H%M%S%.f",
    "%Y%m%d %H%M%S%.f",
    // With six digits the year comes first, as in the timestamps of XRootD, MySQL and HDFS.
    "%y%m%d %H:%M:%S%.f",
    "%y%m%d-%H:%M:%S%.f",
    "%y%m%d %H%M%S%.f",
    "%y-%m-%d %H:%M:%S%.f",
    "%y/%m/%d %H:%M:%S%.f",
    "%Y-%m-%d",
    "%m/%d/%Y %H:%M:%S%.f",
    "%m/%d/%y %H:%M:%S%.f",
    "%m/%d %H:%M:%S%.f",
    "%d/%m/%Y %H:%M:%S%.f",
    "%d-%m-%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d/%b/%Y:%H:%M:%S %z",
    "%d-%b-%Y %H:%M:%S%.f",
    "%d %b %Y %H:%M:%S%.f",
    "%a %b %e %H:%M:%S %Y",
    "%a %b %e %H:%M:%S%.f %Y",
    "%a %b %e %H:%M:%S %Z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%b %e %H:%M:%S",
    "%b %e %Y %H:%M:%S%.f",
    "%H:%M:%S%.f",
    "epoch",
    "epoch_ms",
    "epoch_us",
    "[%s]",
];
/// Characters that may enclose a timestamp.
const AROUND: &[(&str, &str)] = &[("", ""), ("[", "]"), ("(", ")"), ("<", ">"), ("\"", "\"")];
/// A number counts as a time since 1970 only with this many digits, after this many other bytes.
const EPOCHS: [(&str, usize, usize); 4] =
    [("epoch", 0, 10), ("epoch_ms", 0, 13), ("epoch_us", 0, 16), ("[%s]", 1, 10)];

/// The timestamp format that most of these lines start with, if at least half of the lines without
/// indentation do.
pub(crate) fn guess(lines: &[&[u8]]) -> Option<String> {
    let mut best: Option<(usize, usize, String)> = None;
    for format in FORMATS {
        for (before, after) in AROUND {
            let epoch = EPOCHS.iter().find(|(name, ..)| name == format);
            if epoch.is_some() && !before.is_empty() {
                continue;
            }
            let text = format!("{before}{format}{after}");
            let Ok(parsed) = Format::parse(&text) else { continue };
            let (mut fit, mut taken) = (0, 0);
            for line in lines {
                if epoch.is_some_and(|&(_, skipped, expected)| digits(line, skipped) != expected) {
                    continue;
                }
                if let Some((_, len)) = parsed.read(line) {
                    fit += 1;
                    taken += len;
                }
            }
            if fit > 0 && best.as_ref().is_none_or(|(known, len, _)| (fit, taken) > (*known, *len)) {
                best = Some((fit, taken, text));
            }
        }
    }
    let indented = |line: &[u8]| line.first().is_none_or(u8::is_ascii_whitespace);
    let may_have_one = lines.iter().filter(|line| !indented(line)).count();
    best.filter(|(fit, ..)| fit * 2 >= may_have_one).map(|(.., text)| text)
}

/// Number of digits after `skipped` bytes.
fn digits(line: &[u8], skipped: usize) -> usize {
    line.iter().skip(skipped).take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(guess(&[line.as_bytes(), line.as_bytes()]).as_deref(), expected, "{line}");
    }

    #[test]
    fn common_stamps_are_known() {
        check("[2026-11-20T12:24:17.446] x", Some("[%Y-%m-%dT%H:%M:%S%.f]"));
        check("2026-11-20T12:24:17Z x", Some("%Y-%m-%dT%H:%M:%S%.f%z"));
        check("2026-11-20 12:24:17,5 INFO", Some("%Y-%m-%d %H:%M:%S%.f"));
        check("2026-11-20 12:24:17 +0100 x", Some("%Y-%m-%d %H:%M:%S%.f %z"));
        check("11/20/2026 12:24:17;x", Some("%m/%d/%Y %H:%M:%S%.f"));
        check("11/20/26 12:24:17 x", Some("%m/%d/%y %H:%M:%S%.f"));
        check("261120 13:16:34 15952 Starting", Some("%y%m%d %H:%M:%S%.f"));
        check("261120  3:16:34 x", None);
        check("301126 13:16:34 x", Some("%y%m%d %H:%M:%S%.f"));
        check("202611 13:16:34 x", None);
        check("261120 131634 148 INFO x", Some("%y%m%d %H%M%S%.f"));
        check("261120-13:16:34.5 x", Some("%y%m%d-%H:%M:%S%.f"));
        check("20261120T131634Z x", Some("%Y%m%dT%H%M%S%.f%z"));
        check("20261120T131634 x", Some("%Y%m%dT%H%M%S%.f"));
        check("20261120 13:16:34 x", Some("%Y%m%d %H:%M:%S%.f"));
        check("20261120-131634 x", Some("%Y%m%d-%H%M%S%.f"));
        check("26/11/20 13:16:34 INFO x", Some("%y/%m/%d %H:%M:%S%.f"));
        check("Nov 20 12:24:17 host x", Some("%b %e %H:%M:%S"));
        check("Fri Nov 20 12:24:17 2026 x", Some("%a %b %e %H:%M:%S %Y"));
        check("[20/Nov/2026:12:24:17 +0000] x", Some("[%d/%b/%Y:%H:%M:%S %z]"));
        check("1795178489 x", Some("epoch"));
        check("1795178489.25 x", Some("epoch"));
        check("1795178489250 x", Some("epoch_ms"));
        check("[1795178489] x", Some("[%s]"));
        check("[1234] x", None);
        check("job 5", None);
        check("17 jobs", None);
        check("", None);
    }

    #[test]
    fn half_of_the_lines_are_enough() {
        let lines: [&[u8]; 4] = [b"Nov 20 12:24:17 a", b"more", b"Nov 20 12:24:18 b", b"  and more"];
        assert_eq!(guess(&lines).as_deref(), Some("%b %e %H:%M:%S"));
        assert_eq!(guess(&[b"more", b"Nov 20 12:24:17 a", b"and more"]), None);
        assert_eq!(guess(&[b"Nov 20 12:24:17 a", b" 1", b" 2", b" 3"]).as_deref(), Some("%b %e %H:%M:%S"));
    }
}
