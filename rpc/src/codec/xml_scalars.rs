//! Parser of the texts inside `<int>`, `<double>` and the other scalar elements of XML-RPC.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! A text that is not of its element's type gives `None`; `xmlrpc` turns that into a fault.
//! Not here: `<string>`, which is any text.

use crate::codec::value::Value;
use data_encoding::BASE64;

/// Parse the value of a scalar element; `None` if the text is not of its type.
pub(crate) fn read(element: &str, text: &str) -> Option<Value> {
    match element {
        "i4" | "int" => text.trim().parse::<i32>().ok().map(Value::from),
        "i1" => text.trim().parse::<i8>().ok().map(|number| Value::Int(number.into())),
        "i2" => text.trim().parse::<i16>().ok().map(|number| Value::Int(number.into())),
        "i8" => text.trim().parse().ok().map(Value::Int),
        "boolean" => match text.trim() {
            "0" => Some(Value::Bool(false)),
            "1" => Some(Value::Bool(true)),
            _ => None,
        },
        "double" => text.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Double),
        "dateTime.iso8601" => seconds(text.trim()).map(Value::Double),
        "base64" => bytes(text).map(Value::Bytes),
        _ => None,
    }
}

/// Description of the content of a scalar element, for faults.
pub(crate) fn expected(element: &str) -> Option<&'static str> {
    Some(match element {
        "i4" | "int" => "a whole number of 32 bits (use <i8> for larger ones)",
        "i1" => "a whole number of 8 bits",
        "i2" => "a whole number of 16 bits",
        "i8" => "a whole number of 64 bits",
        "boolean" => "0 or 1",
        "double" => "a finite number",
        "dateTime.iso8601" => "a time such as 20261121T03:00:00",
        "base64" => "base64",
        _ => return None,
    })
}

/// Clients break the lines of base64, so white space is skipped; the rest must be exact.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let joined: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padding = joined.iter().position(|byte| *byte == b'=').unwrap_or(joined.len());
    // The decoder would go on behind the padding, as for several texts in a row.
    (padding + 2 >= joined.len()).then(|| BASE64.decode(&joined).ok())?
}

/// Parse `YYYYMMDDTHH:MM:SS`, with or without dashes and a final `Z`, to seconds since 1970. XML-RPC names no
/// zone; this is UTC.
fn seconds(text: &str) -> Option<f64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once('T')?;
    let date: String = if date.len() == 10 { date.replace('-', "") } else { date.to_owned() };
    let digits = |text: &str| -> Option<i64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    if date.len() != 8 || time.len() != 8 || !date.is_ascii() || !time.is_ascii() {
        return None;
    }
    if time.as_bytes()[2] != b':' || time.as_bytes()[5] != b':' {
        return None;
    }
    let (year, month, day) = (digits(&date[..4])?, digits(&date[4..6])?, digits(&date[6..])?);
    let (hour, minute, second) = (digits(&time[..2])?, digits(&time[3..5])?, digits(&time[6..])?);
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let before: i64 = lengths.iter().take(usize::try_from(month - 1).ok()?).sum();
    let days = year * 365 + leaps_before(year) - (1970 * 365 + leaps_before(1970)) + before + day - 1;
    #[allow(clippy::cast_precision_loss)] // four-digit years stay far below 2^53 seconds
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) as f64)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of leap years from year 0 to before `year`.
fn leaps_before(year: i64) -> i64 {
    let last = year - 1;
    if year == 0 { 0 } else { last / 4 - last / 100 + last / 400 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values_of_their_element() {
        let check = |element, text, expected: Option<Value>| {
            assert_eq!(read(element, text), expected, "{element} {text}")
        };
        check("int", " 5\n", Some(Value::Int(5)));
        check("i4", "-2147483648", Some(Value::Int(-2_147_483_648)));
        check("i4", "2147483648", None);
        check("i8", "9223372036854775807", Some(Value::Int(i64::MAX)));
        check("i8", "9223372036854775808", None);
        check("int", "", None);
        check("int", "0x10", None);
        check("boolean", "1", Some(Value::Bool(true)));
        check("boolean", "true", None);
        check("double", "-1.5e3", Some(Value::Double(-1500.0)));
        check("double", "nan", None);
        check("double", "1e999", None);
        check("base64", "aGVs\r\nbG8=", Some(Value::Bytes(b"hello".to_vec())));
        check("base64", "aGVsbG8", None);
        check("base64", "####", None);
        check("base64", "aGVsbG8=aGVsbG8=", None);
        check("base64", "aGVsbG9=", None);
        check("base64", "=", None);
        check("base64", "", Some(Value::Bytes(Vec::new())));
        check("bogus", "1", None);
    }

    #[test]
    fn times_are_taken_as_utc() {
        let check = |text, expected: Option<f64>| assert_eq!(seconds(text), expected, "{text}");
        check("19700101T00:00:00", Some(0.0));
        check("19980717T14:08:55", Some(900_684_535.0));
        check("2024-02-29T12:00:00Z", Some(1_709_208_000.0));
        check("20000301T00:00:00", Some(951_868_800.0));
        for bad in [
            "20230229T00:00:00",
            "20231301T00:00:00",
            "19980717T24:00:00",
            "1998",
            "T",
            "19980717 14:08:55",
            "1998071é14:08:55",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn every_scalar_says_what_it_expects() {
        for element in ["i1", "i2", "i4", "int", "i8", "boolean", "double", "dateTime.iso8601", "base64"] {
            assert!(expected(element).is_some(), "{element}");
        }
    }
}
