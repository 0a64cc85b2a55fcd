//! Times and ages as text, and their parsing from the command line.
//!
//! [`now`] is the one place where the program reads the calendar; everything else receives the time as a
//! parameter.
//! Rule: a time is printed with its offset from UTC; in a column on a terminal the offset is in the head.
//! Not here: the parser (`rpc::codec::moment`).

use crate::output::Output;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rpc::codec::moment;
use std::time::{Duration, SystemTime};
use wire::shown::age;
use wire::time::Time;

const DAY_MICROS: u64 = 86_400_000_000;
/// How far the clock of a host may be ahead of this one while its events still count as recent.
const AHEAD_MICROS: i64 = 3_600_000_000;

/// The current time.
#[allow(clippy::disallowed_methods)] // The shell's clock; everything else receives the time as a parameter.
pub(crate) fn now() -> Time {
    SystemTime::now().into()
}

/// The offset of `zone` from UTC at `time`: `+01:00`, or `Z` for none.
fn offset(time: Time, zone: &TimeZone) -> String {
    let Ok(stamp) = Timestamp::from_microsecond(time.micros()) else { return String::new() };
    match stamp.to_zoned(zone.clone()).strftime("%:z").to_string() {
        none if none.ends_with("00:00") => "Z".to_owned(),
        offset => offset,
    }
}

/// `2026-11-20T12:24:17.446` in `zone`, to the millisecond, without the offset.
fn local(time: Time, zone: &TimeZone) -> String {
    let Ok(stamp) = Timestamp::from_microsecond(time.micros()) else {
        return format!("{} s", time.secs_f64());
    };
    stamp.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string()
}

/// As [`local`], to the second for times at least a day away; for tables.
fn local_brief(time: Time, now: Time, zone: &TimeZone) -> String {
    let mut text = local(time, zone);
    if now.micros().abs_diff(time.micros()) >= DAY_MICROS
        && let Some(point) = text.rfind('.')
    {
        text.truncate(point);
    }
    text
}

/// `2026-11-20T12:24:17.446+01:00`: RFC 3339 in `zone`, to the millisecond.
pub(crate) fn shown(time: Time, zone: &TimeZone) -> String {
    local(time, zone) + offset(time, zone).as_str()
}

/// As [`shown`], to the second for times at least a day away; for tables.
pub(crate) fn brief(time: Time, now: Time, zone: &TimeZone) -> String {
    local_brief(time, now, zone) + offset(time, zone).as_str()
}

/// A time in a table: as [`brief`]. On a terminal only the time of day if it is less than a day ago, and the
/// offset only if it differs from the current one, which is in the head of the column.
pub(crate) fn in_table(time: Time, zone: &TimeZone, output: &Output) -> String {
    below(&offset_now(zone), time, zone, output)
}

/// As [`in_table`], below a head with `head_offset`, which may date from before the offset changed.
pub(crate) fn below(head_offset: &str, time: Time, zone: &TimeZone, output: &Output) -> String {
    let now = now();
    if output.width().is_none() {
        return brief(time, now, zone);
    }
    let mut text = local_brief(time, now, zone);
    let is_recent =
        (-AHEAD_MICROS..DAY_MICROS.cast_signed()).contains(&now.micros().saturating_sub(time.micros()));
    if let (true, Some((_, hour))) = (is_recent, text.split_once('T')) {
        text = hour.to_owned();
    }
    let offset = offset(time, zone);
    if offset != head_offset {
        text.push_str(&offset);
    }
    text
}

/// The offset of `zone` from UTC now: `+01:00`, or `Z` for none.
pub(crate) fn offset_now(zone: &TimeZone) -> String {
    offset(now(), zone)
}

/// As [`shown`], to the second, for sentences.
pub(crate) fn to_second(time: Time, zone: &TimeZone) -> String {
    let text = local(time, zone);
    format!("{}{}", text.split('.').next().unwrap_or(&text), offset(time, zone))
}

/// As [`age`], of the time between two moments of a call; empty where one is not known.
pub(crate) fn between(from: Option<f64>, to: Option<f64>) -> String {
    from.zip(to).map_or(String::new(), |(from, to)| {
        let secs = to - from;
        // Accounting prints whole seconds and schedulers milliseconds: less than a second backwards is none.
        age(if (-1.0..0.0).contains(&secs) { 0.0 } else { secs })
    })
}

/// Parse a time: RFC 3339, a local date and time, `yesterday`, `10m` (ago), or seconds since 1970.
///
/// # Errors
/// Says what was expected.
pub(crate) fn parse(text: &str, now: Time, zone: &TimeZone) -> Result<Time, String> {
    // A time before 1970 is a typing error.
    let found = moment::parse(text, now, Some(zone)).filter(|time| *time >= Time::default());
    found.ok_or_else(|| {
        format!(
            "expected a time such as 2026-11-20T12:24:17Z, 2026-11-20T12:24 (local), 12:24, yesterday, yesterday 12:24, 10m \
             or 2h (ago), or seconds since 1970, found {text:?}"
        )
    })
}

/// Parse a span: `90s`, `15m`, `1h30m`, `7d`.
///
/// # Errors
/// Says what was expected.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    moment::span(text).ok_or_else(|| format!("expected {}", moment::SPAN_EXPECTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_795_178_489_000_000);

    #[test]
    fn a_date_without_an_offset_is_of_the_zone_that_is_shown() {
        let rome = TimeZone::get("Europe/Rome").unwrap();
        assert_eq!(parse("2026-11-20T13:41:29", NOW, &rome).map(Time::micros), Ok(1_795_178_489_000_000));
        assert_eq!(parse("2026-07-20", NOW, &rome).map(Time::micros), Ok(1_784_498_400_000_000));
        assert_eq!(parse("0", NOW, &rome).map(Time::micros), Ok(0));
    }

    #[test]
    fn a_day_starts_when_it_does_in_its_zone() {
        let rome = TimeZone::get("Europe/Rome").unwrap();
        let at = |text: &str| Time::from_micros(text.parse::<Timestamp>().unwrap().as_microsecond());
        let start = at("2026-10-25T00:00:00+02:00");
        let noon = at("2026-10-26T12:00:00+01:00");
        assert_eq!(
            parse("yesterday", noon, &rome),
            Ok(start),
            "36 hours, as the clock was set back meanwhile"
        );
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "10", "-5", "10x", "m", "tomorrow", "nan", "inf", "2026-13-01", "99999999999999w"] {
            let found = parse(text, NOW, &TimeZone::UTC);
            assert_eq!(found.is_ok(), text == "10", "{text}: {found:?}");
        }
    }

    #[test]
    fn spans_need_their_unit() {
        assert_eq!(span("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(span("1h30m"), Ok(Duration::from_secs(5400)));
        for text in ["", "15", "m", "-5m", "soon"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ages_are_short() {
        let check = |secs: f64, expected: &str| assert_eq!(age(secs), expected, "{secs}");
        check(0.0, "0s");
        check(0.42, "420ms");
        check(0.0001, "0s");
        check(3.9, "3s");
        check(119.0, "119s");
        check(300.0, "5m");
        check(7200.0, "2h");
        check(7800.0, "2h10m");
        check(345_600.0, "4d");
        check(-3.0, "-3s");
        check(f64::NAN, "?");
        check(f64::INFINITY, "?");
    }

    #[test]
    fn what_is_a_day_away_is_shown_to_the_second() {
        let later = |secs: i64| Time::from_micros(NOW.micros() + secs * 1_000_000);
        assert_eq!(brief(NOW, later(86_399), &TimeZone::UTC), "2026-11-20T12:41:29.000Z");
        assert_eq!(brief(NOW, later(86_400), &TimeZone::UTC), "2026-11-20T12:41:29Z");
        assert_eq!(brief(NOW, later(-86_400), &TimeZone::UTC), "2026-11-20T12:41:29Z");
    }

    #[test]
    fn a_terminal_shows_the_hour_of_what_is_less_than_a_day_old() {
        let an_hour_ago = Time::from_micros(now().micros() - 3_600_000_000);
        let on_terminal = Output::into_writer(Vec::new(), Some(80));
        let piped = Output::into_writer(Vec::new(), None);
        let whole = shown(an_hour_ago, &TimeZone::UTC);
        assert_eq!(in_table(an_hour_ago, &TimeZone::UTC, &piped), whole);
        assert_eq!(in_table(an_hour_ago, &TimeZone::UTC, &on_terminal), whole[11..whole.len() - 1]);
        assert_eq!(in_table(Time::default(), &TimeZone::UTC, &on_terminal), "1970-01-01T00:00:00");
        let ahead = |secs: i64| Time::from_micros(now().micros() + secs * 1_000_000);
        assert_eq!(in_table(ahead(60), &TimeZone::UTC, &on_terminal).len(), "12:00:00.000".len());
        assert!(in_table(ahead(7_200), &TimeZone::UTC, &on_terminal).contains('T'));
    }

    #[test]
    fn times_are_shown_in_their_zone() {
        let rome = TimeZone::get("Europe/Rome").unwrap();
        assert_eq!(shown(NOW, &rome), "2026-11-20T13:41:29.000+01:00");
        assert_eq!(shown(Time::from_micros(1_446_000), &TimeZone::UTC), "1970-01-01T00:00:01.446Z");
        assert_eq!(shown(Time::from_micros(1_446_100), &TimeZone::UTC), "1970-01-01T00:00:01.446Z");
    }

    #[test]
    fn a_terminal_says_the_offset_once_and_again_where_it_differs() {
        let newfoundland = TimeZone::get("America/St_Johns").unwrap();
        let (on_terminal, piped) =
            (Output::into_writer(Vec::new(), Some(80)), Output::into_writer(Vec::new(), None));
        let day = |month: i64| Time::from_micros((1_700_000_000 + month * 30 * 86_400) * 1_000_000);
        let offsets = [day(0), day(7)].map(|time| offset(time, &newfoundland));
        assert_eq!(offsets, ["-03:30", "-02:30"], "winter and summer");
        let of_now = offset_now(&newfoundland);
        for (time, offset) in [day(0), day(7)].into_iter().zip(offsets) {
            assert!(in_table(time, &newfoundland, &piped).ends_with(&offset));
            let on_terminal = in_table(time, &newfoundland, &on_terminal);
            assert_eq!(on_terminal.ends_with(&offset), offset != of_now, "{on_terminal}");
        }
    }
}
