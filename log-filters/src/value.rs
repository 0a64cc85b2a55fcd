//! Value of an expression, and whole numbers in text.
//!
//! Pure. Not here: the operations on values (`operation`), their evaluation (`expression`).

use std::borrow::Cow;

/// A value during the evaluation of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Nothing,
    Text(Cow<'a, [u8]>),
    List(Vec<Cow<'a, [u8]>>),
}

/// Longest value in an event, in bytes; a longer one is truncated. Names, paths and reasons are far shorter;
/// an operation that lengthens text must not grow it without bound.
pub(crate) const VALUE_LEN_MAX_BYTES: usize = 64 << 10;

pub(crate) fn owned<'a>(value: Value<'_>) -> Value<'a> {
    let own = |text: Cow<'_, [u8]>| Cow::Owned(text.into_owned());
    match value {
        Value::Nothing => Value::Nothing,
        Value::Text(text) => Value::Text(own(text)),
        Value::List(list) => Value::List(list.into_iter().map(own).collect()),
    }
}

pub(crate) fn one(text: Option<Cow<'_, [u8]>>) -> Value<'_> {
    text.map_or(Value::Nothing, Value::Text)
}

pub(crate) fn items(value: Value<'_>) -> Vec<Cow<'_, [u8]>> {
    match value {
        Value::Nothing => Vec::new(),
        Value::Text(text) => vec![text],
        Value::List(list) => list,
    }
}

/// A whole number without sign, as logs print ids and codes.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.iter().try_fold(0i64, |number, b| number.checked_mul(10)?.checked_add(i64::from(b - b'0')))
}
