//! Resolves time stamps to moments, with a time zone and the time of reading.
//!
//! Pure: the time of reading and the zone are parameters. Rule: a stamp without a year or a date means the
//! last such moment before it was read, with a tolerance for differing clocks. Not here: parsing the digits
//! (`timestamp`).

use crate::timestamp::Stamp;
use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use wire::time::Time;

const QUARTER_SECS: i64 = 900;
const DAY_MICROS: i64 = 86_400_000_000;

/// Parse the name of a zone: `UTC`, `+02:00` or `Europe/Rome`.
///
/// # Errors
/// The text of what was expected.
pub fn zone(name: &str) -> Result<TimeZone, String> {
    let offset = || {
        let (sign, rest) = match name.as_bytes().first()? {
            b'+' => (1, &name[1..]),
            b'-' => (-1, &name[1..]),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest.get(..2)?, rest.get(2..)?));
        let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().unwrap_or(0));
        Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
    };
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    match offset() {
        Some(offset) => Ok(TimeZone::fixed(offset)),
        None => TimeZone::get(name).map_err(|_| {
            format!("zone `{name}`; expected `local`, `UTC`, `+02:00` or a name such as `Europe/Rome`")
        }),
    }
}

/// Resolver of stamps, with the zone for stamps that print none.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: TimeZone,
    /// The last quarter of an hour looked up, and its offset: zones change their offset only at such
    /// boundaries.
    cached: Option<(i64, i64)>,
}

impl Clock {
    /// A resolver for `zone`.
    #[must_use]
    pub fn new(zone: TimeZone) -> Clock {
        Clock { zone, cached: None }
    }

    /// The moment of `stamp`, read at `seen`; `None` if the date does not exist.
    pub fn resolve(&mut self, stamp: &Stamp, seen: Time) -> Option<Time> {
        if let Some(micros) = stamp.epoch_micros {
            return Some(Time::from_micros(micros));
        }
        match (stamp.year, stamp.month, stamp.day, stamp.day_of_year) {
            (Some(year), Some(month), Some(day), _) => self.on(stamp, year, month, day),
            (Some(year), _, _, Some(day)) => {
                let date =
                    civil::Date::new(year, 1, 1).ok()?.checked_add(jiff::Span::new().days(day - 1)).ok()?;
                self.on(stamp, year, u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?)
            }
            (None, Some(month), Some(day), _) => self.without_year(stamp, month, day, seen),
            _ => self.without_date(stamp, seen),
        }
    }

    fn without_year(&mut self, stamp: &Stamp, month: u8, day: u8, seen: Time) -> Option<Time> {
        let this_year = self.today(seen)?.year();
        // A 29th of February may need eight years (1896 to 1904).
        (0..=9).find_map(|back| {
            self.on(stamp, this_year + 1 - back, month, day)
                .filter(|time| time.micros() <= seen.micros().saturating_add(DAY_MICROS))
        })
    }

    fn without_date(&mut self, stamp: &Stamp, seen: Time) -> Option<Time> {
        let today = self.today(seen)?;
        (0..=1).find_map(|back| {
            let date = today.checked_sub(jiff::Span::new().days(back)).ok()?;
            self.on(stamp, date.year(), u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?)
                .filter(|time| time.micros() <= seen.micros().saturating_add(3_600_000_000))
        })
    }

    fn today(&self, seen: Time) -> Option<civil::Date> {
        let at = jiff::Timestamp::from_microsecond(seen.micros()).ok()?;
        Some(self.zone.to_datetime(at).date())
    }

    fn on(&mut self, stamp: &Stamp, year: i16, month: u8, day: u8) -> Option<Time> {
        if day > days_in(year, month) {
            return None;
        }
        let civil_secs = days_from_civil(i64::from(year), i64::from(month), i64::from(day)) * 86_400
            + i64::from(stamp.hour) * 3600
            + i64::from(stamp.minute) * 60
            + i64::from(stamp.second);
        let offset = match stamp.offset_secs {
            Some(printed) => i64::from(printed),
            None => self.offset_at(civil_secs)?,
        };
        Some(Time::from_micros((civil_secs - offset) * 1_000_000 + i64::from(stamp.micros)))
    }

    fn offset_at(&mut self, civil_secs: i64) -> Option<i64> {
        let quarter = civil_secs.div_euclid(QUARTER_SECS);
        if let Some((known, offset)) = self.cached
            && known == quarter
        {
            return Some(offset);
        }
        // The civil time read as UTC gives the fields; a time that the zone skips or repeats is resolved as
        // jiff's "compatible" does (RFC 5545 section 3.3.5).
        let as_utc = jiff::Timestamp::from_second(quarter * QUARTER_SECS).ok()?;
        let civil = jiff::tz::Offset::UTC.to_datetime(as_utc);
        let at = self.zone.to_ambiguous_timestamp(civil).compatible().ok()?;
        let offset = quarter * QUARTER_SECS - at.as_second();
        self.cached = Some((quarter, offset));
        Some(offset)
    }
}

fn days_in(year: i16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Count years from March, so that the leap day is the last of its year.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Format;

    const SEEN: &str = "2026-11-21T00:00:00Z";

    fn time(rfc: &str) -> Time {
        Time::from_micros(rfc.parse::<jiff::Timestamp>().expect(rfc).as_microsecond())
    }

    fn check(format: &str, text: &str, zone: &str, expected: &str) {
        let zone = TimeZone::get(zone).expect("zone known");
        let stamp = Format::parse(format).expect(format).read_all(text.as_bytes());
        let found =
            Clock::new(zone).resolve(&stamp.unwrap_or_else(|| panic!("{text} as {format}")), time(SEEN));
        assert_eq!(found, Some(time(expected)), "{text} as {format}");
    }

    #[test]
    fn the_stamps_of_real_logs_are_read() {
        check("%Y-%m-%dT%H:%M:%S%.f", "2026-11-20T12:24:17.446", "UTC", "2026-11-20T12:24:17.446Z");
        check("%Y-%m-%dT%H:%M:%S%.f", "2026-11-20T12:55:42", "UTC", "2026-11-20T12:55:42Z");
        check("%a %b %e %H:%M:%S %Y", "Thu Mar  8 12:30:47 2002", "UTC", "2002-03-08T12:30:47Z");
        check("%a %b %e %H:%M:%S %Y", "Thu Mar 28 12:30:47 2002", "America/New_York", "2002-03-28T17:30:47Z");
        check("%m/%d/%y %H:%M:%S", "11/20/26 12:39:06", "UTC", "2026-11-20T12:39:06Z");
        check("%m/%d %H:%M:%S", "11/20 12:38:49", "UTC", "2026-11-20T12:38:49Z");
        check("%-m/%-d %H:%M:%S", "3/9 12:38:49", "UTC", "2026-03-09T12:38:49Z");
        check("%-m/%-d %H:%M:%S", "10/09 12:38:49", "UTC", "2026-10-09T12:38:49Z");
        check("%m/%d %H:%M:%S", "12/24 12:38:49", "UTC", "2025-12-24T12:38:49Z");
        check("%m/%d %H:%M:%S", "02/29 01:00:00", "UTC", "2024-02-29T01:00:00Z");
        check("%Y%m%d%H%M%S%.f", "20261120123250.561449", "UTC", "2026-11-20T12:32:50.561449Z");
        check("%Y-%m-%dT%H:%M:%S%.f%z", "2026-11-20T12:58:37.987581Z", "UTC", "2026-11-20T12:58:37.987581Z");
        check("%Y-%m-%d %H:%M:%S%.f", "2026-01-01 00:00:00", "UTC", "2026-01-01T00:00:00Z");
        check("%Y-%m-%d %H:%M:%S%.f %z", "2026-07-01 02:00:00,5 +0200", "UTC", "2026-07-01T00:00:00.5Z");
        check("epoch", "1795178489", "UTC", "2026-11-20T12:41:29Z");
        check("epoch", "1795178489.25", "UTC", "2026-11-20T12:41:29.25Z");
        check("epoch_ms", "1795178489250", "UTC", "2026-11-20T12:41:29.25Z");
        check("epoch_ms |", "1795178489250  |", "UTC", "2026-11-20T12:41:29.25Z");
        check("epoch|", "1795178489.25|", "UTC", "2026-11-20T12:41:29.25Z");
        check("%H:%M:%S", "23:59:00", "UTC", "2026-11-20T23:59:00Z");
        check("%H:%M:%S", "00:30:00", "UTC", "2026-11-21T00:30:00Z");
        check("%Y.%j %H:%M:%S", "2024.060 00:00:00", "UTC", "2024-02-29T00:00:00Z");
    }

    #[test]
    fn a_zone_with_summer_time_is_followed() {
        let mut clock = Clock::new(TimeZone::get("Europe/Rome").expect("zone known"));
        let format = Format::parse("%Y-%m-%d %H:%M:%S").expect("format");
        for (local, expected) in [
            ("2026-01-15 12:00:00", "2026-01-15T11:00:00Z"),
            ("2026-03-29 01:59:59", "2026-03-29T00:59:59Z"),
            ("2026-03-29 03:00:00", "2026-03-29T01:00:00Z"),
            ("2026-07-15 12:00:00", "2026-07-15T10:00:00Z"),
            ("2026-10-25 03:00:00", "2026-10-25T02:00:00Z"),
        ] {
            let stamp = format.read_all(local.as_bytes()).expect(local);
            assert_eq!(clock.resolve(&stamp, time(SEEN)), Some(time(expected)), "{local}");
        }
    }

    #[test]
    fn a_day_that_its_month_does_not_have_is_no_time() {
        let format = Format::parse("%Y-%m-%d").expect("format");
        let stamp = format.read_all(b"2026-02-30").expect("digits are right");
        assert_eq!(Clock::new(TimeZone::UTC).resolve(&stamp, time(SEEN)), None);
    }

    #[test]
    fn civil_days_agree_with_jiff() {
        let mut date = civil::date(1899, 12, 31);
        while date.year() < 2105 {
            let expected = civil::date(1970, 1, 1).until(date).expect("in range").get_days();
            let found = days_from_civil(date.year().into(), date.month().into(), date.day().into());
            assert_eq!(found, i64::from(expected), "{date}");
            date = date.checked_add(jiff::Span::new().days(17)).expect("in range");
        }
    }
}
