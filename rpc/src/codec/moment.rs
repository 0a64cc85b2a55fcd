//! Parser of times and spans for the methods and the command line: RFC 3339, a span before now, seconds since
//! 1970.
//!
//! Pure: no clock; callers pass `now`.
//! Rule: a number without a unit is in seconds; a date without an offset is in the zone that the caller
//! passes, and is refused without one, because a daemon's zone may differ from its client's.
//! Not here: formatting times (the programs).

use jiff::Timestamp;
use jiff::civil::{self, DateTime};
use jiff::tz::TimeZone;
use std::time::Duration;
use wire::time::Time;

/// Description of a span, for error messages.
pub const SPAN_EXPECTED: &str = "a span with its unit, such as 90s, 15m, 1h30m or 7d";

/// Parse a time: `2026-11-20T12:24:17Z`, `2h`, `-2h` or `2h ago` (before `now`), `now`, seconds since 1970; with a
/// `zone`, also a local date and time, `today` and `yesterday`, which are when these days started, and a time of these
/// days, such as `16:00` or `yesterday 16:00`.
#[must_use]
pub fn parse(text: &str, now: Time, zone: Option<&TimeZone>) -> Option<Time> {
    let text = text.trim();
    match text {
        "now" => return Some(now),
        "today" | "yesterday" => return day(text, civil::Time::midnight(), now, zone?),
        _ => {}
    }
    let (word, clock) = text.split_once(' ').unwrap_or(("today", text));
    let is_clock =
        clock.contains(':') && clock.bytes().all(|byte| byte.is_ascii_digit() || b":. ".contains(&byte));
    if let (true, "today" | "yesterday", Ok(clock)) = (is_clock, word, clock.trim().parse()) {
        return day(word, clock, now, zone?);
    }
    let before = text.strip_suffix("ago").map(str::trim).or_else(|| text.strip_prefix('-'));
    if let Some(micros) = micros(before.unwrap_or(text)) {
        return Some(Time::from_micros(now.micros().saturating_sub(micros)));
    }
    if let Ok(secs) = text.parse::<f64>() {
        return secs.is_finite().then(|| Time::from_secs_f64(secs));
    }
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some(Time::from_micros(stamp.as_microsecond()));
    }
    let zoned = text.parse::<DateTime>().ok()?.to_zoned(zone?.clone()).ok()?;
    Some(Time::from_micros(zoned.timestamp().as_microsecond()))
}

/// This time of the day of `now` in the zone, or of the day before; the first after it where clocks skip it.
fn day(word: &str, clock: civil::Time, now: Time, zone: &TimeZone) -> Option<Time> {
    let today = Timestamp::from_microsecond(now.micros()).ok()?.to_zoned(zone.clone()).date();
    let date = if word == "yesterday" { today.yesterday().ok()? } else { today };
    let time = date.to_datetime(clock).to_zoned(zone.clone()).ok()?;
    Some(Time::from_micros(time.timestamp().as_microsecond()))
}

/// Parse a span: `90s`, `15m`, `1h30m`, `7d`; a unit is required.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    u64::try_from(micros(text.trim())?).ok().map(Duration::from_micros)
}

/// Microseconds of `90s`, `0.5s`, `10m`, `1h30m`, `2d`.
#[allow(clippy::cast_possible_truncation)] // Within bounds.
fn micros(text: &str) -> Option<i64> {
    /// A hundred thousand years.
    const MOST: f64 = 3e18;
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &rest[..letters] {
            "ms" => 1e3,
            "s" | "sec" => 1e6,
            "m" | "min" => 60e6,
            "h" => 3_600e6,
            "d" => 86_400e6,
            "w" => 604_800e6,
            _ => return None,
        };
        total += number * unit;
        rest = rest[letters..].trim_start();
    }
    (!text.is_empty() && total <= MOST).then_some(total.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_795_178_489_000_000);

    #[test]
    fn moments_are_read_in_every_form() {
        let rome = TimeZone::fixed(jiff::tz::offset(1));
        let check = |text: &str, micros: i64| {
            assert_eq!(parse(text, NOW, Some(&rome)).map(Time::micros), Some(micros), "{text}");
        };
        check("now", 1_795_178_489_000_000);
        check("10m", 1_795_177_889_000_000);
        check("-10m", 1_795_177_889_000_000);
        check("1h30m ago", 1_795_173_089_000_000);
        check("today", 1_795_129_200_000_000);
        check("yesterday", 1_795_042_800_000_000);
        check("13:41:29", 1_795_178_489_000_000);
        check("13:41", 1_795_178_460_000_000);
        check("today 13:41", 1_795_178_460_000_000);
        check("yesterday 13:41", 1_795_092_060_000_000);
        check("1795178489.25", 1_795_178_489_250_000);
        check("-5", -5_000_000);
        check("2026-11-20T12:41:29Z", 1_795_178_489_000_000);
        check("2026-11-20T13:41:29+01:00", 1_795_178_489_000_000);
        check("2026-11-20T13:41:29", 1_795_178_489_000_000);
        check("2026-11-20 13:41:29.5", 1_795_178_489_500_000);
        check("2026-11-20", 1_795_129_200_000_000);
        check("2026-11-19T13:41:29+01:00", 1_795_092_089_000_000);
        check("2026-11-19T13:41:29", 1_795_092_089_000_000);
        check("2026-11-19 13:41", 1_795_092_060_000_000);
    }

    #[test]
    fn a_date_without_an_offset_needs_the_zone_of_the_caller() {
        for text in ["2026-11-20T13:41:29", "2026-11-20", "2026-11-20 13:41", "yesterday", "13:41"] {
            assert_eq!(parse(text, NOW, None), None, "{text}");
            assert!(parse(text, NOW, Some(&TimeZone::UTC)).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_or_span_is_none() {
        for text in [
            "",
            "10x",
            "m",
            "Tuesday",
            "nan",
            "inf",
            "2026-13-01",
            "99999999999999w",
            "--5m",
            "-5m ago",
            "25:00",
            "monday 16:00",
        ] {
            assert_eq!((parse(text, NOW, Some(&TimeZone::UTC)), span(text)), (None, None), "{text}");
        }
        assert_eq!(span("15"), None);
        assert_eq!(span("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(
            (span("250ms"), span("0.25s")),
            (Some(Duration::from_millis(250)), Some(Duration::from_millis(250)))
        );
    }
}
