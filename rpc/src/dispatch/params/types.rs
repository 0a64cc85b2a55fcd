//! Types of parameters: the accepted values, in any of the request formats.
//!
//! Pure: no runtime, no file, no socket, no clock.

use super::{Parameter, names};
use crate::codec::moment;
use crate::codec::value::{Name, Value};
use wire::time::Time;

/// Type of a parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Text. Whole numbers are accepted as their digits: some clients send `"17"` as a number.
    Text,
    /// One of these texts.
    Choice(Vec<Name>),
    /// A whole number, both ends included. Decimal text is accepted: clients without 64-bit integers send it.
    Whole {
        /// Smallest allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// A finite number.
    Number,
    /// A time: seconds since 1970-01-01T00:00:00Z with a fraction, RFC 3339, or a span before now (`1h`);
    /// handlers receive seconds.
    Time,
    /// A duration: seconds with a fraction, not negative, or a span with its unit (`90s`); handlers receive
    /// seconds.
    Span,
    /// A boolean: true or false, 0 or 1, `"true"` or `"false"`.
    Flag,
    /// Some of these texts; a single one is accepted as a list of one.
    Choices(Vec<Name>),
    /// Several texts; a single one is accepted as a list of one, a repeated name in a query string as
    /// several.
    Texts,
    /// An array of any values.
    Array,
    /// A structure of any members.
    Struct,
    /// A structure of these members.
    Fields(Vec<Parameter>),
    /// Any value.
    Any,
}

impl Type {
    /// One of these texts.
    #[must_use]
    pub fn choice(texts: &[&'static str]) -> Type {
        Type::Choice(texts.iter().map(|text| Name::Borrowed(*text)).collect())
    }

    /// Whether it is a list of texts, for which a query string may repeat the name.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Type::Texts | Type::Choices(_))
    }

    /// Name of the type in error messages and help.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Type::Text => "text".to_owned(),
            Type::Choice(choices) => format!("one of {}", choices.join(", ")),
            Type::Whole { min, max: i64::MAX } => format!("a whole number from {min}"),
            Type::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Type::Number => "a number".to_owned(),
            Type::Time => {
                "a time: seconds since 1970, RFC 3339 (2026-11-20T12:24:17Z) or a span before now (1h)"
                    .to_owned()
            }
            Type::Span => "a span: seconds, or a number with its unit (90s, 5m)".to_owned(),
            Type::Flag => "true or false".to_owned(),
            Type::Choices(choices) => format!("one of {}, or a list of them", choices.join(", ")),
            Type::Texts => "a list of texts".to_owned(),
            Type::Array => "an array".to_owned(),
            Type::Struct => "a structure".to_owned(),
            Type::Fields(fields) => format!("a structure of {}", names(fields)),
            Type::Any => "anything".to_owned(),
        }
    }

    /// Convert `value` to the form that handlers receive, at the time `now`. The content of a structure is
    /// not checked.
    ///
    /// # Errors
    /// The value itself, if it is not of this type.
    pub fn admit(&self, value: Value, now: Time) -> Result<Value, Value> {
        let admitted = match (self, &value) {
            (Type::Any, _) => return Ok(value),
            (Type::Text, Value::Text(_))
            | (Type::Array, Value::Array(_))
            | (Type::Struct | Type::Fields(_), Value::Struct(_)) => {
                return Ok(value);
            }
            (Type::Text, Value::Int(number)) => Some(Value::Text(number.to_string())),
            (Type::Text, Value::UInt(number)) => Some(Value::Text(number.to_string())),
            (Type::Choice(choices), Value::Text(text)) if choices.iter().any(|choice| choice == text) => {
                return Ok(value);
            }
            (Type::Whole { min, max }, _) => {
                whole(&value).filter(|number| (*min..=*max).contains(number)).map(Value::Int)
            }
            (Type::Number, _) => number(&value).map(Value::Double),
            (Type::Time, Value::Text(text)) => {
                moment::parse(text, now, None).map(|time| Value::Double(time.secs_f64()))
            }
            (Type::Span, Value::Text(text)) => {
                span_secs(text).or_else(|| not_below_zero(&value)).map(Value::Double)
            }
            (Type::Span, _) => not_below_zero(&value).map(Value::Double),
            (Type::Time, _) => number(&value).map(Value::Double),
            (Type::Flag, _) => flag(&value).map(Value::Bool),
            (Type::Choices(choices), _) => {
                let texts = Type::Texts.admit(value, now)?;
                let is_choice =
                    |text: &Value| text.as_text().is_some_and(|text| choices.iter().any(|one| one == text));
                let wrong = texts.as_array().into_iter().flatten().find(|text| !is_choice(text)).cloned();
                return wrong.map_or(Ok(texts), Err);
            }
            (Type::Texts, Value::Array(items)) => items
                .iter()
                .map(|item| Type::Text.admit(item.clone(), now).ok())
                .collect::<Option<Vec<_>>>()
                .map(Value::Array),
            (Type::Texts, Value::Text(_) | Value::Int(_) | Value::UInt(_)) => {
                return Type::Text.admit(value, now).map(|text| Value::Array(vec![text]));
            }
            _ => None,
        };
        admitted.ok_or(value)
    }
}

fn span_secs(text: &str) -> Option<f64> {
    moment::span(text).map(|span| span.as_secs_f64())
}

fn not_below_zero(value: &Value) -> Option<f64> {
    number(value).filter(|secs| *secs >= 0.0)
}

pub(super) fn whole(value: &Value) -> Option<i64> {
    /// The largest double below which every whole number is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Text(text) => text.trim().parse().ok(),
        #[allow(clippy::cast_possible_truncation)] // whole, and within 2^53
        Value::Double(number) if number.fract() == 0.0 && number.abs() <= EXACT => Some(*number as i64),
        Value::Double(_) | Value::Nil | Value::Bool(_) => None,
        Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => None,
    }
}

#[allow(clippy::cast_precision_loss)] // a number was requested, and numbers are doubles
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok(),
        Value::Nil | Value::Bool(_) | Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => None,
    }
    .filter(|number| number.is_finite())
}

pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Int(number @ 0..=1) => Some(*number == 1),
        Value::UInt(number @ 0..=1) => Some(*number == 1),
        Value::Text(text) => match text.trim() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        Value::Nil | Value::Int(_) | Value::UInt(_) | Value::Double(_) => None,
        Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => None,
    }
}
