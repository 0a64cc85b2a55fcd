//! Time stamps as logs print them, and the moments they mean.
//!
//! Pure: the time of reading and the zone are given. A stamp is read in two steps, so that a line without
//! an event costs only the first: [`Format::read`] takes the digits, [`Clock::resolve`] finds the moment.
//! Not here: which formats a filter has (`definition`).

use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use wire::time::Time;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Digits of seconds since 1970 until the year 5138; more are milli- or microseconds.
const EPOCH_SECS_DIGITS_MAX: usize = 11;

/// What a stamp prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    year: Option<i16>,
    month: Option<u8>,
    day: Option<u8>,
    day_of_year: Option<i16>,
    hour: u8,
    minute: u8,
    second: u8,
    micros: u32,
    offset_secs: Option<i32>,
    epoch_micros: Option<i64>,
}

/// A format of stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Literal(u8),
    Blanks,
    Digits(Part, u8),
    Short(Part),
    PaddedDay,
    MonthName,
    DayName,
    Fraction,
    Offset,
    ZoneName,
    Epoch(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    ShortYear,
    Month,
    Day,
    DayOfYear,
    Hour,
    Minute,
    Second,
}

impl Format {
    /// Read a format's text (`docs/filter-format.md`).
    ///
    /// # Errors
    /// Says which `%` letter is unknown.
    pub fn parse(text: &str) -> Result<Format, String> {
        match text {
            "epoch" => return Ok(Format { steps: vec![Step::Epoch(1_000_000)] }),
            "epoch_ms" => return Ok(Format { steps: vec![Step::Epoch(1_000)] }),
            "epoch_us" => return Ok(Format { steps: vec![Step::Epoch(1)] }),
            _ => {}
        }
        let mut steps = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let step = match byte {
                b'%' => Format::step(&mut bytes)?,
                b' ' => Step::Blanks,
                other => Step::Literal(other),
            };
            if !(step == Step::Blanks && steps.last() == Some(&Step::Blanks)) {
                steps.push(step);
            }
        }
        Ok(Format { steps })
    }

    fn step(bytes: &mut std::str::Bytes<'_>) -> Result<Step, String> {
        Ok(match bytes.next() {
            Some(b'Y') => Step::Digits(Part::Year, 4),
            Some(b'y') => Step::Digits(Part::ShortYear, 2),
            Some(b'm') => Step::Digits(Part::Month, 2),
            Some(b'd') => Step::Digits(Part::Day, 2),
            Some(b'j') => Step::Digits(Part::DayOfYear, 3),
            Some(b'H') => Step::Digits(Part::Hour, 2),
            Some(b'M') => Step::Digits(Part::Minute, 2),
            Some(b'S') => Step::Digits(Part::Second, 2),
            Some(b'e') => Step::PaddedDay,
            Some(b'b') => Step::MonthName,
            Some(b'a') => Step::DayName,
            Some(b'-') => match bytes.next() {
                Some(b'm') => Step::Short(Part::Month),
                Some(b'd') => Step::Short(Part::Day),
                _ => return Err("`%-` in a time format; expected %-m or %-d".to_owned()),
            },
            Some(b'.') if bytes.next() == Some(b'f') => Step::Fraction,
            Some(b'z') => Step::Offset,
            Some(b'Z') => Step::ZoneName,
            Some(b's') => Step::Epoch(1_000_000),
            Some(b'%') => Step::Literal(b'%'),
            other => {
                let found = other.map_or("nothing".to_owned(), |b| format!("`%{}`", char::from(b)));
                return Err(format!(
                    "{found} in a time format; expected one of %Y %y %m %d %e %j %b %a %H %M %S %.f %z %Z %s %%"
                ));
            }
        })
    }

    /// Read a stamp at the start of `bytes`: what it prints and how long it is.
    #[must_use]
    #[inline]
    pub fn read(&self, bytes: &[u8]) -> Option<(Stamp, usize)> {
        let mut stamp = Stamp::default();
        let mut at = 0;
        for step in &self.steps {
            at = read_step(step, bytes, at, &mut stamp)?;
        }
        Some((stamp, at))
    }

    /// Read a stamp that is all of `bytes`, blanks at its ends aside.
    #[must_use]
    pub fn read_all(&self, bytes: &[u8]) -> Option<Stamp> {
        let bytes = bytes.trim_ascii();
        self.read(bytes).filter(|&(_, len)| len == bytes.len()).map(|(stamp, _)| stamp)
    }
}

#[inline]
fn read_step(step: &Step, bytes: &[u8], at: usize, stamp: &mut Stamp) -> Option<usize> {
    match *step {
        Step::Literal(byte) => (bytes.get(at) == Some(&byte)).then_some(at + 1),
        Step::Blanks => {
            let len = bytes.get(at..)?.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            (len > 0).then_some(at + len)
        }
        Step::Digits(part, width) => {
            let number = digits(bytes, at, usize::from(width))?;
            set(stamp, part, number)?;
            Some(at + usize::from(width))
        }
        Step::Short(part) => {
            let width = if digits(bytes, at, 2).is_some() { 2 } else { 1 };
            set(stamp, part, digits(bytes, at, width)?)?;
            Some(at + width)
        }
        Step::PaddedDay => padded_day(bytes, at, stamp),
        Step::MonthName => {
            let name = bytes.get(at..at + 3)?;
            let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
            stamp.month = u8::try_from(month + 1).ok();
            Some(at + 3)
        }
        Step::DayName => bytes.get(at..at + 3)?.iter().all(u8::is_ascii_alphabetic).then_some(at + 3),
        Step::Fraction => Some(fraction(bytes, at, stamp)),
        Step::Offset => offset(bytes, at, stamp),
        Step::ZoneName => {
            let len = bytes.get(at..)?.iter().take_while(|b| b.is_ascii_alphabetic()).count();
            (len > 0).then_some(at + len)
        }
        Step::Epoch(unit) => epoch(bytes, at, unit, stamp),
    }
}

fn set(stamp: &mut Stamp, part: Part, number: u16) -> Option<()> {
    let small = u8::try_from(number).ok();
    match part {
        Part::Year => stamp.year = i16::try_from(number).ok(),
        Part::ShortYear => {
            // POSIX strptime: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068.
            stamp.year = i16::try_from(if number < 69 { 2000 + number } else { 1900 + number }).ok();
        }
        Part::Month => stamp.month = small.filter(|month| (1..=12).contains(month)).map(Some)?,
        Part::Day => stamp.day = small.filter(|day| (1..=31).contains(day)).map(Some)?,
        Part::DayOfYear => {
            stamp.day_of_year = Some(i16::try_from(number).ok().filter(|d| (1..=366).contains(d))?)
        }
        Part::Hour => stamp.hour = small.filter(|&hour| hour < 24)?,
        Part::Minute => stamp.minute = small.filter(|&minute| minute < 60)?,
        Part::Second => stamp.second = small.filter(|&second| second <= 60)?,
    }
    Some(())
}

#[inline]
fn digits(bytes: &[u8], at: usize, width: usize) -> Option<u16> {
    let mut number = 0u16;
    for &byte in bytes.get(at..at + width)? {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u16::from(digit);
    }
    Some(number)
}

fn padded_day(bytes: &[u8], at: usize, stamp: &mut Stamp) -> Option<usize> {
    let start = if bytes.get(at) == Some(&b' ') { at + 1 } else { at };
    let width = if digits(bytes, start, 2).is_some() { 2 } else { 1 };
    set(stamp, Part::Day, digits(bytes, start, width)?)?;
    Some(start + width)
}

fn fraction(bytes: &[u8], at: usize, stamp: &mut Stamp) -> usize {
    if !matches!(bytes.get(at), Some(b'.' | b',')) {
        return at;
    }
    let (micros, len) = micros(bytes, at + 1);
    if len == 0 {
        return at;
    }
    stamp.micros = micros;
    at + 1 + len
}

/// Digits after a decimal point as microseconds, and how many there are.
fn micros(bytes: &[u8], at: usize) -> (u32, usize) {
    let tail = bytes.get(at..).unwrap_or_default();
    let len = tail.iter().take_while(|b| b.is_ascii_digit()).count();
    let digits = tail[..len].iter().chain(std::iter::repeat(&b'0')).take(6);
    let micros = digits.fold(0, |micros, digit| micros * 10 + u32::from(digit - b'0'));
    (micros, len)
}

fn offset(bytes: &[u8], at: usize, stamp: &mut Stamp) -> Option<usize> {
    let sign = match bytes.get(at)? {
        b'Z' => {
            stamp.offset_secs = Some(0);
            return Some(at + 1);
        }
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = i32::from(digits(bytes, at + 1, 2)?);
    let colon = usize::from(bytes.get(at + 3) == Some(&b':'));
    let minutes = digits(bytes, at + 3 + colon, 2).filter(|&minutes| minutes < 60);
    stamp.offset_secs = Some(sign * (hours * 3600 + i32::from(minutes.unwrap_or(0)) * 60));
    Some(at + 3 + if minutes.is_some() { colon + 2 } else { 0 })
}

fn epoch(bytes: &[u8], at: usize, unit: u32, stamp: &mut Stamp) -> Option<usize> {
    let tail = bytes.get(at..)?;
    let len = tail.iter().take_while(|b| b.is_ascii_digit()).count();
    let len_max = if unit == 1_000_000 { EPOCH_SECS_DIGITS_MAX } else { 17 };
    if len == 0 || len > len_max {
        return None;
    }
    let whole = tail[..len].iter().fold(0i64, |number, b| number * 10 + i64::from(b - b'0'));
    let mut total = whole.checked_mul(i64::from(unit))?;
    let mut end = len;
    if unit == 1_000_000 && tail.get(len) == Some(&b'.') {
        let (part, part_len) = micros(tail, len + 1);
        if part_len > 0 {
            total = total.checked_add(i64::from(part))?;
            end = len + 1 + part_len;
        }
    }
    stamp.epoch_micros = Some(total);
    Some(at + end)
}

/// The zone of a name: `UTC`, `+02:00` or `Europe/Rome`.
///
/// # Errors
/// Says what was expected.
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

/// Finds the moment a stamp means: knows the zone of stamps that print none.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: TimeZone,
    /// The last quarter of an hour asked for, and its offset: zones change their offset at such borders only.
    cached: Option<(i64, i64)>,
}

const QUARTER_SECS: i64 = 900;
const DAY_MICROS: i64 = 86_400_000_000;

impl Clock {
    /// A clock in `zone`.
    #[must_use]
    pub fn new(zone: TimeZone) -> Clock {
        Clock { zone, cached: None }
    }

    /// The moment of `stamp`, read at `seen`; `None` if there is no such date.
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
        // The civil time read as if it were UTC gives the fields back; a time that the zone skips or
        // has twice is taken as jiff's "compatible" does (RFC 5545 section 3.3.5).
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
    fn what_is_no_time_is_not_read() {
        for (format, text) in [
            ("%Y-%m-%d", "2026-13-01"),
            ("%Y-%m-%d", "2026-1-01"),
            ("%H:%M:%S", "24:00:00"),
            ("%b", "Foo"),
            ("epoch", "12a"),
            ("epoch", ""),
            ("epoch", "1795178489250"),
        ] {
            assert_eq!(Format::parse(format).expect(format).read_all(text.as_bytes()), None, "{text}");
        }
        let format = Format::parse("%Y-%m-%d").expect("format");
        let stamp = format.read_all(b"2026-02-30").expect("digits are right");
        assert_eq!(Clock::new(TimeZone::UTC).resolve(&stamp, time(SEEN)), None);
        assert!(Format::parse("%Q").is_err());
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
