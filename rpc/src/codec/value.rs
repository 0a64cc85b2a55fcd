//! Parameters and answers of methods as dynamic values, independent of XML and JSON.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Invariant: integers keep all their bits here; integers that a client cannot represent are converted when
//! they are written ([`Value::with_integers`], `xmlrpc`, `json`).
//! Not here: which parameters a method accepts (`params`), the wire format of a value (`xmlrpc`, `json`).

use std::borrow::Cow;
use wire::query::{Integers, Syntax};

/// Name of a member of a structure; nearly always a literal.
pub type Name = Cow<'static, str>;

/// One value, of the kinds that XML-RPC and JSON share.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing: `<nil/>`, `null`.
    #[default]
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above `i64::MAX`. `Value::from(u64)` gives [`Value::Int`] where the number fits there.
    UInt(u64),
    /// A number with a fraction; times are seconds since 1970 in this form.
    Double(f64),
    /// Text.
    Text(String),
    /// Bytes: `<base64>`, and base64 text in JSON.
    Bytes(Vec<u8>),
    /// Values in order.
    Array(Vec<Value>),
    /// Named values, in the order in which they are written.
    Struct(Vec<(Name, Value)>),
}

/// Range of an XML-RPC `<int>`.
pub const XML_INTEGERS: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;
/// Range of the whole numbers that JavaScript represents exactly: up to 2^53 in both directions.
pub const JSON_INTEGERS: std::ops::RangeInclusive<i64> = -(1 << 53)..=1 << 53;

/// The range of integers that clients of this syntax represent exactly.
#[must_use]
pub fn held_by(syntax: Syntax) -> &'static std::ops::RangeInclusive<i64> {
    match syntax {
        Syntax::Json => &JSON_INTEGERS,
        Syntax::Xml => &XML_INTEGERS,
    }
}

impl Value {
    /// Create a structure of named values, in this order.
    pub fn object<N: Into<Name>, V: Into<Value>>(members: impl IntoIterator<Item = (N, V)>) -> Value {
        Value::Struct(members.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Create an array of values, in this order.
    pub fn array<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Value {
        Value::Array(values.into_iter().map(Into::into).collect())
    }

    /// The member `name`, if this is a structure that has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        if let Value::Struct(members) = self {
            members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
        } else {
            None
        }
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The integer, if this is one that fits into `i64`.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(number) = self { Some(*number) } else { None }
    }

    /// The values in order, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(values) = self { Some(values) } else { None }
    }

    /// Convert every integer outside `exact` to the form `form`; every method accepts that as the parameter
    /// `big_integers`.
    #[must_use]
    pub fn with_integers(self, form: Integers, exact: &std::ops::RangeInclusive<i64>) -> Value {
        if form == Integers::Number {
            return self;
        }
        match self {
            Value::UInt(number) if i64::try_from(number).is_ok() => {
                Value::from(number).with_integers(form, exact)
            }
            Value::Int(number) if exact.contains(&number) => Value::Int(number),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            Value::Int(number) if form == Integers::Double => Value::Double(number as f64),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            Value::UInt(number) if form == Integers::Double => Value::Double(number as f64),
            Value::Int(number) => Value::Text(number.to_string()),
            Value::UInt(number) => Value::Text(number.to_string()),
            Value::Array(values) => {
                Value::Array(values.into_iter().map(|value| value.with_integers(form, exact)).collect())
            }
            Value::Struct(members) => Value::Struct(
                members.into_iter().map(|(name, value)| (name, value.with_integers(form, exact))).collect(),
            ),
            plain @ (Value::Nil | Value::Bool(_) | Value::Double(_) | Value::Text(_) | Value::Bytes(_)) => {
                plain
            }
        }
    }

    /// Approximate number of bytes of this value when written; used to limit answers before writing them.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        // The tags around a value in XML are the larger of the two forms.
        const TAGS_BYTES: usize = 40;
        TAGS_BYTES
            + match self {
                Value::Nil | Value::Bool(_) => 0,
                Value::Int(_) | Value::UInt(_) | Value::Double(_) => 20,
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len() / 3 * 4,
                Value::Array(values) => values.iter().map(Value::weight_bytes).sum(),
                Value::Struct(members) => {
                    members.iter().map(|(name, value)| TAGS_BYTES + name.len() + value.weight_bytes()).sum()
                }
            }
    }

    /// Name of the kind of this value, for error messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::UInt(_) => "a whole number",
            Value::Double(_) => "a number",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::Array(_) => "an array",
            Value::Struct(_) => "a structure",
        }
    }

    /// This value in an error message: short values themselves, others by their kind.
    #[must_use]
    pub fn shown(&self) -> String {
        // A message repeats only as much of a request as a person needs to recognize it.
        const SHOWN_CHARS: usize = 60;
        match self {
            Value::Bool(flag) => flag.to_string(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Double(number) => format!("{number:?}"),
            Value::Text(text) if text.chars().nth(SHOWN_CHARS).is_none() => format!("{text:?}"),
            Value::Text(text) => {
                format!("{:?}…", text.chars().take(SHOWN_CHARS).collect::<String>())
            }
            Value::Nil | Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => self.kind().to_owned(),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        i64::try_from(number).map_or(Value::UInt(number), Value::Int)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::from(number as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Double(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<wire::time::Time> for Value {
    /// Seconds since 1970 with microseconds.
    fn from(time: wire::time::Time) -> Value {
        Value::Double(time.secs_f64())
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::Nil, Into::into)
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Value {
        Value::array(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_take_the_signed_form_where_they_fit() {
        assert_eq!(Value::from(7_u64), Value::Int(7));
        assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
        assert_eq!(Value::from(i64::MAX as u64), Value::Int(i64::MAX));
    }

    #[test]
    fn big_integers_change_only_beyond_the_exact_range() {
        let check = |form, number: i64, expected: Value| {
            let nested = Value::object([("n", Value::array([number]))]);
            let expected = Value::object([("n", Value::array([expected]))]);
            assert_eq!(nested.with_integers(form, &XML_INTEGERS), expected, "{form:?} {number}");
        };
        check(Integers::Number, 1 << 40, Value::Int(1 << 40));
        check(Integers::Text, 2_147_483_647, Value::Int(2_147_483_647));
        check(Integers::Text, 2_147_483_648, Value::from("2147483648"));
        check(Integers::Text, -2_147_483_649, Value::from("-2147483649"));
        check(Integers::Double, 1 << 40, Value::Double(1_099_511_627_776.0));
        let top = Value::UInt(u64::MAX).with_integers(Integers::Text, &JSON_INTEGERS);
        assert_eq!(top, Value::from("18446744073709551615"));
    }

    #[test]
    fn long_text_is_shown_cut() {
        assert_eq!(Value::from("ab").shown(), "\"ab\"");
        assert!(Value::from("x".repeat(1000)).shown().len() < 80);
    }
}
