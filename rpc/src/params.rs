//! What a method accepts, and the parameters of one call after they were checked against that.
//!
//! Pure: no runtime, no file, no socket, no clock; the caller passes `now`, from which spans such as `1h` are counted back.
//! A method takes nothing or one structure of named parameters. A value arrives as XML-RPC, JSON or text of
//! a query string; [`Type::admit`] turns each of these forms into one, so a handler sees no difference.
//! Invariant: the [`Params`] a handler sees hold only declared names, each once, each of its declared type
//! and range, defaults filled in.
//! Not here: which methods there are (`method`).

use crate::codec::Source;
use crate::fault::Fault;
use crate::moment;
use crate::value::{Name, Value};
use wire::api::Request;
use wire::query::Integers;
use wire::time::Time;

/// The parameter which every method accepts beside its own.
pub const BIG_INTEGERS: &str = "big_integers";
const BIG_INTEGERS_CHOICES: &[&str] = &["number", "string", "double"];

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Text. Whole numbers are taken as their digits: some clients send `"17"` as a number.
    Text,
    /// One of these texts.
    Choice(Vec<Name>),
    /// A whole number, both ends included. Decimal text is accepted: clients without 64-bit integers send it.
    Whole {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A finite number.
    Number,
    /// A time: seconds since 1970-01-01T00:00:00Z with a fraction, RFC 3339, or a span before now (`1h`); handlers see seconds.
    Time,
    /// A length of time: seconds with a fraction, none below zero, or a span with its unit (`90s`); handlers see seconds.
    Span,
    /// Yes or no: a boolean, 0 or 1, `"true"` or `"false"`.
    Flag,
    /// Some of these texts; one is taken as a list of one.
    Choices(Vec<Name>),
    /// Several texts; one text is taken as a list of one, a repeated name in a query string as several.
    Texts,
    /// An array of anything.
    Array,
    /// A structure of anything.
    Struct,
    /// Anything.
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

    /// The type as error messages and help name it.
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
            Type::Any => "anything".to_owned(),
        }
    }

    /// `value` in the one form that handlers see, at the time `now`.
    ///
    /// # Errors
    /// The value itself, if it is not of this type.
    pub fn admit(&self, value: Value, now: Time) -> Result<Value, Value> {
        let admitted = match (self, &value) {
            (Type::Any, _) => return Ok(value),
            (Type::Text, Value::Text(_))
            | (Type::Array, Value::Array(_))
            | (Type::Struct, Value::Struct(_)) => {
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

fn whole(value: &Value) -> Option<i64> {
    /// The largest double of which every smaller whole number is a double too.
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

#[allow(clippy::cast_precision_loss)] // a number was asked for, and doubles are what numbers are
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok(),
        Value::Nil | Value::Bool(_) | Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => None,
    }
    .filter(|number| number.is_finite())
}

fn flag(value: &Value) -> Option<bool> {
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

/// One declared parameter of a method.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub(crate) name: Name,
    pub(crate) kind: Type,
    pub(crate) help: Name,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
}

impl Parameter {
    /// A parameter that may be left out.
    #[must_use]
    pub fn new(name: impl Into<Name>, kind: Type, help: impl Into<Name>) -> Parameter {
        Parameter { name: name.into(), kind, help: help.into(), required: false, default: None }
    }

    /// The same, but a call without it is refused.
    #[must_use]
    pub fn required(mut self) -> Parameter {
        self.required = true;
        self
    }

    /// The same, with the value it has where a call leaves it out.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Parameter {
        self.default = Some(value.into());
        self
    }
}

/// The checked parameters of one call.
#[derive(Clone, Debug, Default)]
pub struct Params {
    values: Vec<(Name, Value)>,
}

impl Params {
    /// Checks what a call brought at the time `now` against what the method declares.
    pub(crate) fn check(
        declared: &[Parameter],
        given: Vec<(Name, Value)>,
        now: Time,
    ) -> Result<(Params, Integers), Fault> {
        let mut integers = Integers::default();
        let mut values: Vec<(Name, Value)> = Vec::with_capacity(declared.len());
        for (name, value) in given {
            if name == BIG_INTEGERS {
                integers = big_integers(value)?;
                continue;
            }
            let Some(parameter) = declared.iter().find(|parameter| parameter.name == name) else {
                return Err(unknown(&name, declared));
            };
            if values.iter().any(|(taken, _)| *taken == name) {
                return Err(Fault::invalid_params(format!("{name}: given more than once")));
            }
            if value == Value::Nil {
                continue;
            }
            let admitted = parameter.kind.admit(value, now).map_err(|value| mistyped(parameter, &value))?;
            values.push((parameter.name.clone(), admitted));
        }
        for parameter in declared {
            if values.iter().any(|(name, _)| *name == parameter.name) {
                continue;
            }
            if let Some(default) = &parameter.default {
                values.push((parameter.name.clone(), default.clone()));
            } else if parameter.required {
                return Err(mistyped(parameter, &Value::Nil));
            }
        }
        Ok((Params { values }, integers))
    }

    /// All of them, as the type that the method was declared by.
    pub(crate) fn typed<R: Request>(self) -> Result<R, Fault> {
        let values = Value::Struct(self.values);
        R::deserialize(Source(&values)).map_err(|error| Fault::invalid_params(error.to_string()))
    }

    /// The value of `name`, if the call or a default gave one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All of them, by name.
    #[must_use]
    pub fn values(&self) -> &[(Name, Value)] {
        &self.values
    }

    /// The text `name` ([`Type::Text`], [`Type::Choice`]).
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is no text.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        self.as_type(name, "text", Value::as_text)
    }

    /// The whole number `name` ([`Type::Whole`]).
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is no whole number.
    pub fn whole(&self, name: &str) -> Result<Option<i64>, Fault> {
        self.as_type(name, "a whole number", whole)
    }

    /// The number `name` ([`Type::Number`]; for [`Type::Time`], seconds since 1970; for [`Type::Span`], seconds).
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is no number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Fault> {
        self.as_type(name, "a number", number)
    }

    /// The moment `name` ([`Type::Time`]).
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is no number.
    pub fn time(&self, name: &str) -> Result<Option<Time>, Fault> {
        Ok(self.number(name)?.map(Time::from_secs_f64))
    }

    /// The flag `name` ([`Type::Flag`]).
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is neither true nor false.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.as_type(name, "true or false", flag)
    }

    /// The texts `name` ([`Type::Texts`]); none where the call gave none.
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is no list of texts.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, Fault> {
        let texts = self.as_type(name, "a list of texts", |value| {
            value.as_array()?.iter().map(Value::as_text).collect::<Option<Vec<_>>>()
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// The text `name`, which a call must give.
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is missing or no text.
    pub fn need_text(&self, name: &str) -> Result<&str, Fault> {
        self.text(name)?.ok_or_else(|| refused(name, "text", &Value::Nil))
    }

    /// The whole number `name`, which a call must give or which has a default.
    ///
    /// # Errors
    /// [`crate::fault::INVALID_PARAMS`] if it is missing or no whole number.
    pub fn need_whole(&self, name: &str) -> Result<i64, Fault> {
        self.whole(name)?.ok_or_else(|| refused(name, "a whole number", &Value::Nil))
    }

    fn as_type<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.value(name).map(|value| read(value).ok_or_else(|| refused(name, expected, value))).transpose()
    }
}

fn big_integers(value: Value) -> Result<Integers, Fault> {
    match value.as_text() {
        Some("number") => Ok(Integers::Number),
        Some("string") => Ok(Integers::Text),
        Some("double") => Ok(Integers::Double),
        _ if value == Value::Nil => Ok(Integers::Number),
        _ => Err(refused(BIG_INTEGERS, &Type::choice(BIG_INTEGERS_CHOICES).describe(), &value)),
    }
}

fn mistyped(parameter: &Parameter, value: &Value) -> Fault {
    refused(&parameter.name, &parameter.kind.describe(), value)
}

fn refused(name: &str, expected: &str, value: &Value) -> Fault {
    Fault::invalid_params(format!("{name}: expected {expected}, found {}", value.shown()))
}

fn unknown(name: &str, declared: &[Parameter]) -> Fault {
    let mut known: Vec<&str> = declared.iter().map(|parameter| &*parameter.name).collect();
    known.push(BIG_INTEGERS);
    let shown = Value::from(name).shown();
    let near = wire::near_names::suggestion(name, known.iter().copied());
    Fault::invalid_params(format!("{shown}: no such parameter{near}; known are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_795_178_489_000_000);

    fn declared() -> Vec<Parameter> {
        vec![
            Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "at most").default(100),
            Parameter::new("kind", Type::Texts, "of these kinds"),
            Parameter::new("host", Type::Text, "of this host").required(),
        ]
    }

    fn check(given: &[(&'static str, Value)]) -> Result<Params, String> {
        let mut given: Vec<(Name, Value)> =
            given.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        if !given.iter().any(|(name, _)| name == "host") {
            given.push(("host".into(), "n1".into()));
        }
        Params::check(&declared(), given, NOW)
            .map(|(params, _)| params)
            .map_err(|fault| fault.message.into_owned())
    }

    #[test]
    fn defaults_are_filled_in() {
        let params = check(&[]).unwrap();
        assert_eq!(params.need_whole("limit"), Ok(100));
        assert_eq!(params.need_text("host"), Ok("n1"));
        assert_eq!(params.texts("kind"), Ok(vec![]));
        assert_eq!(check(&[("limit", Value::Nil)]).unwrap().need_whole("limit"), Ok(100));
    }

    #[test]
    fn every_form_of_a_value_becomes_one() {
        for limit in [Value::Int(7), Value::UInt(7), Value::Double(7.0), Value::from("7")] {
            assert_eq!(check(&[("limit", limit)]).unwrap().need_whole("limit"), Ok(7));
        }
        let one = check(&[("kind", "a".into())]).unwrap();
        assert_eq!(one.texts("kind"), Ok(vec!["a"]));
        assert_eq!(check(&[("host", Value::Int(17))]).unwrap().need_text("host"), Ok("17"));
        for flag in [Value::Bool(true), Value::Int(1), Value::from("true")] {
            assert_eq!(Type::Flag.admit(flag, NOW), Ok(Value::Bool(true)));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_exactly() {
        let refused = |name, value: Value, expected: &str| {
            assert_eq!(check(&[(name, value)]).unwrap_err(), expected);
        };
        let range = "limit: expected a whole number from 1 to 10000, found";
        refused("limit", "abc".into(), &format!("{range} \"abc\""));
        refused("limit", 0.into(), &format!("{range} 0"));
        refused("limit", 10_001.into(), &format!("{range} 10001"));
        refused("limit", 1.5.into(), &format!("{range} 1.5"));
        refused("limit", Value::Bool(true), &format!("{range} true"));
        refused("limit", u64::MAX.into(), &format!("{range} 18446744073709551615"));
        refused("host", Value::Array(vec![]), "host: expected text, found an array");
        refused("host", Value::Nil, "host: expected text, found nothing");
        let known = "; known are limit, kind, host, big_integers";
        refused("limt", 1.into(), &format!("\"limt\": no such parameter; did you mean limit?{known}"));
        refused("kind", Value::array([Value::Nil]), "kind: expected a list of texts, found an array");
        refused(
            BIG_INTEGERS,
            "x".into(),
            "big_integers: expected one of number, string, double, found \"x\"",
        );
        assert_eq!(
            check(&[("limit", 1.into()), ("limit", 2.into())]).unwrap_err(),
            "limit: given more than once"
        );
        assert_eq!(Type::Number.admit("inf".into(), NOW), Err("inf".into()));
    }

    #[test]
    fn times_and_spans_are_taken_in_every_form() {
        let time = |value: Value| Type::Time.admit(value, NOW).ok().and_then(|value| number(&value));
        for value in [
            Value::Int(1_795_174_889),
            Value::from("1795174889"),
            Value::from("2026-11-20T11:41:29Z"),
            Value::from("2026-11-20T12:41:29+01:00"),
            Value::from("1h"),
            Value::from("60m ago"),
        ] {
            assert_eq!(time(value.clone()), Some(1_795_174_889.0), "{value:?}");
        }
        assert_eq!(time("now".into()), Some(1_795_178_489.0));
        for wrong in ["2026-11-20T11:41:29", "soon", "", "inf", "5x"] {
            assert_eq!(time(wrong.into()), None, "{wrong}");
        }
        let span = |value: Value| Type::Span.admit(value, NOW).ok().and_then(|value| number(&value));
        for value in [Value::Int(90), Value::Double(90.0), Value::from("90"), Value::from("1m30s")] {
            assert_eq!(span(value.clone()), Some(90.0), "{value:?}");
        }
        assert_eq!((span("250ms".into()), span("soon".into()), span(true.into())), (Some(0.25), None, None));
    }
}
