//! Durations as batch systems print them: `90`, `90.5`, `01:30`, `1-00:00:00`.
//!
//! Pure. Not here: time stamps (`timestamp`).

use crate::value::number;

/// Parse a duration to whole seconds, without a fraction; `None` if it is invalid.
pub(crate) fn seconds(text: &[u8]) -> Option<i64> {
    let whole = text.split(|&b| b == b'.').next().unwrap_or_default();
    if let Some(seconds) = number(whole) {
        return Some(seconds);
    }
    let (days, clock) = match memchr::memchr(b'-', whole) {
        Some(dash) => (number(&whole[..dash])?, &whole[dash + 1..]),
        None => (0, whole),
    };
    let parts: Vec<&[u8]> = clock.splitn(4, |&b| b == b':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let clock = parts.iter().try_fold(0i64, |sum, part| sum.checked_mul(60)?.checked_add(number(part)?))?;
    days.checked_mul(86_400)?.checked_add(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_seconds() {
        for (text, expected) in [
            ("90", Some(90)),
            ("90.9", Some(90)),
            ("01:30", Some(90)),
            ("24:00:00", Some(86_400)),
            ("1-00:00:01", Some(86_401)),
            ("00:00:05.7", Some(5)),
            ("", None),
            ("INFINITY", None),
            ("1:2:3:4", None),
            ("-5", None),
            ("1-", None),
            ("9223372036854775807:00", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
