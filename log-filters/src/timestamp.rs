//! Time stamps as logs print them.
//!
//! Pure. Rule: a stamp is parsed to its digits and not resolved, so that a line without an event costs no
//! more than that. Not here: the moment of a stamp (`calendar`), the formats of a filter (`definition`).

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Digits of seconds since 1970 until the year 5138; longer numbers are milli- or microseconds.
const EPOCH_SECS_DIGITS_MAX: usize = 11;

/// Fields of a stamp as printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub(crate) year: Option<i16>,
    pub(crate) month: Option<u8>,
    pub(crate) day: Option<u8>,
    pub(crate) day_of_year: Option<i16>,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) micros: u32,
    pub(crate) offset_secs: Option<i32>,
    pub(crate) epoch_micros: Option<i64>,
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
    /// Parse the text of a format (`docs/filter-format.md`).
    ///
    /// # Errors
    /// The unknown `%` letter.
    pub fn parse(text: &str) -> Result<Format, String> {
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let (word, behind) = text.split_at(text.bytes().take_while(in_word).count());
        let unit = match word {
            "epoch" => Some(1_000_000),
            "epoch_ms" => Some(1_000),
            "epoch_us" => Some(1),
            _ => None,
        };
        let mut steps: Vec<Step> = unit.map(Step::Epoch).into_iter().collect();
        let mut bytes = if unit.is_some() { behind } else { text }.bytes();
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

    /// Parse a stamp at the start of `bytes`. Returns it with its length.
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

    /// Parse a stamp that fills `bytes`, except for blanks at both ends.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Format::parse("%Q").is_err());
    }
}
