//! Tokenizer of the kernel's text: lines of fields separated by blanks.
//!
//! Pure: takes bytes, returns borrowed bytes and numbers; never panics, whatever the bytes.

use std::fmt;

/// Limit on the bytes of a line that an error quotes.
const SHOWN_LEN_MAX_BYTES: usize = 80;

/// The error for text that the kernel does not write in this format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Malformed {
    /// The expected content.
    pub expected: &'static str,
    /// The start of the line.
    pub found: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {:?}", self.expected, self.found)
    }
}

impl Malformed {
    /// Creates the error for this `line`.
    #[must_use]
    pub fn new(expected: &'static str, line: &[u8]) -> Malformed {
        let shown = &line[..line.len().min(SHOWN_LEN_MAX_BYTES)];
        Malformed { expected, found: String::from_utf8_lossy(shown).into_owned() }
    }
}

/// Iterates over the lines, without their ends. A last line without an end counts too.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
        Some(line)
    })
}

/// Iterates over the fields of a line.
pub fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Parses a whole number; `None` if the field has anything else, or if it does not fit.
#[must_use]
pub fn whole(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a real number such as `0.52`: plain digits, no sign, no exponent.
#[must_use]
pub fn measure(field: &[u8]) -> Option<f64> {
    let plain = field.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    std::str::from_utf8(field).ok().filter(|_| plain)?.parse().ok()
}

/// Parses the next `N` fields as whole numbers.
pub fn wholes<'a, const N: usize>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = whole(fields.next()?)?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly_or_not_at_all() {
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"007"), Some(7));
        for bad in [&b"18446744073709551616"[..], b"", b"-1", b"1.0", b"+1", b" 1", b"1\xff"] {
            assert_eq!(whole(bad), None, "{bad:?}");
        }
        assert_eq!(measure(b"0.52"), Some(0.52));
        for bad in [&b"nan"[..], b"inf", b"1e5", b"-1", b"", b".", b"1.2.3"] {
            assert_eq!(measure(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lines_and_fields() {
        let read: Vec<&[u8]> = lines(b"a b\n\nc").collect();
        assert_eq!(read, [&b"a b"[..], b"", b"c"]);
        assert_eq!(lines(b"").count(), 0);
        let read: Vec<&[u8]> = fields(b"  a\tb  c ").collect();
        assert_eq!(read, [b"a", b"b", b"c"]);
    }
}
