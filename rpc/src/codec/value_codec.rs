//! Binary codec of values, for calls forwarded between daemons: compact, exact, and safe for untrusted input.
//!
//! ```text
//! tag, u8 | false, true, nil: nothing · int: zig-zag varint · uint: varint · double: 8 bytes LE
//!         | text, bytes: varint length, bytes · array: varint count, values
//!         | struct: varint count, then name (varint length, bytes) and value each
//! ```
//!
//! Pure. Invariant: the decoder never recurses deeper than [`DEPTH_MAX`] and never allocates more than a
//! small multiple of its input.
//! Not here: the frame and the method around the value (the composing program).

use crate::codec::value::{Name, Value};

/// Deepest nesting: answers are some five deep.
pub const DEPTH_MAX: usize = 32;

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end within a value.
    #[error("packed value is cut short")]
    Cut,
    /// More bytes follow after the value.
    #[error("bytes follow the packed value")]
    Rest,
    /// Unknown tag.
    #[error("packed value begins with {0}; expected 0 to 9")]
    Tag(u8),
    /// A length or number exceeds 64 bits.
    #[error("packed number is longer than 64 bits")]
    Number,
    /// Text is not valid UTF-8.
    #[error("packed text is not UTF-8")]
    Utf8,
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("packed value is nested deeper than {DEPTH_MAX}")]
    Depth,
}

const NIL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const UINT: u8 = 4;
const DOUBLE: u8 = 5;
const TEXT: u8 = 6;
const BYTES: u8 = 7;
const ARRAY: u8 = 8;
const STRUCT: u8 = 9;

/// Encode `value` and append it to `out`.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.push(NIL),
        Value::Bool(flag) => out.push(if *flag { TRUE } else { FALSE }),
        Value::Int(number) => {
            out.push(INT);
            write_number(number.cast_unsigned() << 1 ^ (number >> 63).cast_unsigned(), out);
        }
        Value::UInt(number) => {
            out.push(UINT);
            write_number(*number, out);
        }
        Value::Double(number) => {
            out.push(DOUBLE);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Text(text) => {
            out.push(TEXT);
            write_bytes(text.as_bytes(), out);
        }
        Value::Bytes(bytes) => {
            out.push(BYTES);
            write_bytes(bytes, out);
        }
        Value::Array(values) => {
            out.push(ARRAY);
            write_number(values.len() as u64, out);
            values.iter().for_each(|value| write(value, out));
        }
        Value::Struct(members) => {
            out.push(STRUCT);
            write_number(members.len() as u64, out);
            for (name, value) in members {
                write_bytes(name.as_bytes(), out);
                write(value, out);
            }
        }
    }
}

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Decode `bytes` to one value.
///
/// # Errors
/// If the bytes are not exactly one value.
pub fn read(bytes: &[u8]) -> Result<Value, Error> {
    let mut rest = bytes;
    let value = read_value(&mut rest, DEPTH_MAX)?;
    if rest.is_empty() { Ok(value) } else { Err(Error::Rest) }
}

fn read_value(rest: &mut &[u8], depth_left: usize) -> Result<Value, Error> {
    let deeper = depth_left.checked_sub(1).ok_or(Error::Depth)?;
    match take(rest, 1)?[0] {
        NIL => Ok(Value::Nil),
        FALSE => Ok(Value::Bool(false)),
        TRUE => Ok(Value::Bool(true)),
        INT => {
            let number = read_number(rest)?;
            Ok(Value::Int((number >> 1).cast_signed() ^ -(number & 1).cast_signed()))
        }
        UINT => Ok(Value::UInt(read_number(rest)?)),
        DOUBLE => {
            let bytes = take(rest, 8)?.try_into().expect("eight were taken");
            Ok(Value::Double(f64::from_le_bytes(bytes)))
        }
        TEXT => Ok(Value::Text(read_text(rest)?.to_owned())),
        BYTES => Ok(Value::Bytes(read_bytes(rest)?.to_vec())),
        ARRAY => {
            let count = read_count(rest, 1)?;
            (0..count).map(|_| read_value(rest, deeper)).collect::<Result<_, _>>().map(Value::Array)
        }
        STRUCT => {
            let count = read_count(rest, 2)?;
            let mut members = Vec::with_capacity(count.min(64));
            for _ in 0..count {
                let name = Name::Owned(read_text(rest)?.to_owned());
                members.push((name, read_value(rest, deeper)?));
            }
            Ok(Value::Struct(members))
        }
        tag => Err(Error::Tag(tag)),
    }
}

/// Read the count of elements of at least `least_bytes` each; it is checked against the remaining bytes.
fn read_count(rest: &mut &[u8], least_bytes: usize) -> Result<usize, Error> {
    let count = usize::try_from(read_number(rest)?).map_err(|_| Error::Cut)?;
    if count > rest.len() / least_bytes { Err(Error::Cut) } else { Ok(count) }
}

fn read_number(rest: &mut &[u8]) -> Result<u64, Error> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        if shift == 63 && byte > 1 {
            return Err(Error::Number);
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::Number)
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let len = usize::try_from(read_number(rest)?).map_err(|_| Error::Cut)?;
    take(rest, len)
}

fn read_text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(read_bytes(rest)?).map_err(|_| Error::Utf8)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Error> {
    let (taken, left) = rest.split_at_checked(len).ok_or(Error::Cut)?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            any::<f64>().prop_filter("NaN is not equal to itself", |n| !n.is_nan()).prop_map(Value::Double),
            ".{0,12}".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::Bytes),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((".{0,6}", inner), 0..6).prop_map(Value::object),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in any_value()) {
            let mut bytes = Vec::new();
            write(&value, &mut bytes);
            prop_assert_eq!(read(&bytes), Ok(value));
            for cut in 0..bytes.len() {
                prop_assert!(read(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn hostile_bytes_are_refused_before_they_cost_anything() {
        let deep = [ARRAY, 1].repeat(1_000_000);
        assert_eq!(read(&deep), Err(Error::Depth));
        assert_eq!(read(&[ARRAY, 0xff, 0xff, 0xff, 0xff, 0x0f]), Err(Error::Cut));
        assert_eq!(
            read(&[TEXT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(Error::Number)
        );
        assert_eq!(read(&[TEXT, 1, 0xff]), Err(Error::Utf8));
        assert_eq!(read(&[10]), Err(Error::Tag(10)));
        assert_eq!(read(&[NIL, NIL]), Err(Error::Rest));
    }
}
