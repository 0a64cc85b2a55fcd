//! Parameters of methods: their declaration, and the checked parameters of one call.
//!
//! Pure: no runtime, no file, no socket, no clock; the caller passes `now`, to which spans such as `1h` are
//! relative.
//! A method takes nothing or one structure of named parameters. A value arrives as XML-RPC, JSON or text of a
//! query string; [`Type::admit`] converts all forms to one, so a handler sees no difference.
//! Invariant: the [`Params`] a handler sees hold only declared names, each once, each of its declared type
//! and range, defaults filled in.
//! Not here: the methods (`method`), the types of values (`types`).

mod types;

pub use types::Type;
use types::{flag, number, whole};

use crate::codec::Source;
use crate::codec::value::{Name, Value};
use crate::fault::Fault;
use wire::api::{Renamed, Request};
use wire::near_names;
use wire::query::Integers;
use wire::time::Time;

/// Parameter that every method accepts in addition to its own.
pub const BIG_INTEGERS: &str = "big_integers";
pub(crate) const BIG_INTEGERS_CHOICES: &[&str] = &["number", "string", "double"];

/// One declared parameter of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub(crate) name: Name,
    /// Present name and the one in the previous version, if it was renamed.
    pub(crate) renamed: Option<Renamed>,
    pub(crate) kind: Type,
    pub(crate) help: Name,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
}

impl Parameter {
    /// Declare an optional parameter.
    #[must_use]
    pub fn new(name: impl Into<Name>, kind: Type, help: impl Into<Name>) -> Parameter {
        Parameter {
            name: name.into(),
            renamed: None,
            kind,
            help: help.into(),
            required: false,
            default: None,
        }
    }

    /// Whether the two share a name, including previous names.
    pub(crate) fn is_called_as(&self, other: &Parameter) -> bool {
        let names =
            |one: &Parameter| [Some(one.name.to_string()), one.renamed.map(|(_, former)| former.to_owned())];
        names(self).iter().flatten().any(|name| names(other).iter().flatten().any(|known| known == name))
    }

    /// Make it required.
    #[must_use]
    pub fn required(mut self) -> Parameter {
        self.required = true;
        self
    }

    /// Set the value used when a call omits it.
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
    /// Parameters that had another name in the previous version.
    renamed: Vec<Renamed>,
}

impl Params {
    /// Check the parameters of a call, received at the time `now`, against the declaration.
    pub(crate) fn check(
        declared: &[Parameter],
        given: Vec<(Name, Value)>,
        now: Time,
    ) -> Result<(Params, Integers), Fault> {
        let mut integers = Integers::default();
        let mut own = Vec::with_capacity(given.len());
        for (name, value) in given {
            if name == BIG_INTEGERS {
                integers = big_integers(value)?;
            } else {
                own.push((name, value));
            }
        }
        let renamed = declared.iter().filter_map(|parameter| parameter.renamed).collect();
        Ok((Params { values: admitted("", declared, own, now)?, renamed }, integers))
    }

    /// All parameters, as the type that the method was declared by.
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if they do not match it.
    pub fn typed<R: Request>(self) -> Result<R, Fault> {
        let values = Value::Struct(self.values);
        R::deserialize(Source(&values)).map_err(|error| Fault::invalid_params(error.to_string()))
    }

    /// Value of `name`, given by the call or by a default.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All parameters, sorted by name.
    #[must_use]
    pub fn values(&self) -> &[(Name, Value)] {
        &self.values
    }

    /// All parameters, by the names that a daemon of the previous version knows: for forwarding.
    #[must_use]
    pub fn handed_on(&self) -> Vec<(Name, Value)> {
        let mut values = self.values.clone();
        for (name, _) in &mut values {
            if let Some((_, former)) = self.renamed.iter().find(|(now, _)| name == now) {
                *name = Name::Borrowed(former);
            }
        }
        values
    }

    /// Text parameter `name` ([`Type::Text`], [`Type::Choice`]).
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is no text.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        self.as_type(name, "text", Value::as_text)
    }

    /// Whole-number parameter `name` ([`Type::Whole`]).
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is no whole number.
    pub fn whole(&self, name: &str) -> Result<Option<i64>, Fault> {
        self.as_type(name, "a whole number", whole)
    }

    /// Number parameter `name` ([`Type::Number`]; for [`Type::Time`], seconds since 1970; for [`Type::Span`],
    /// seconds).
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is no number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Fault> {
        self.as_type(name, "a number", number)
    }

    /// Time parameter `name` ([`Type::Time`]).
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is no number.
    pub fn time(&self, name: &str) -> Result<Option<Time>, Fault> {
        Ok(self.number(name)?.map(Time::from_secs_f64))
    }

    /// Boolean parameter `name` ([`Type::Flag`]).
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is neither true nor false.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.as_type(name, "true or false", flag)
    }

    /// Text list parameter `name` ([`Type::Texts`]); empty if the call gave none.
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is no list of texts.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, Fault> {
        let texts = self.as_type(name, "a list of texts", |value| {
            value.as_array()?.iter().map(Value::as_text).collect::<Option<Vec<_>>>()
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// Required text parameter `name`.
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is missing or no text.
    pub fn need_text(&self, name: &str) -> Result<&str, Fault> {
        self.text(name)?.ok_or_else(|| refused(name, "text", &Value::Nil))
    }

    /// Whole-number parameter `name` that is required or has a default.
    ///
    /// # Errors
    /// [`wire::fault::INVALID_PARAMS`] if it is missing or no whole number.
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

/// Check the members of the structure `within`, and fill in the defaults.
fn admitted(
    within: &str,
    declared: &[Parameter],
    given: Vec<(Name, Value)>,
    now: Time,
) -> Result<Vec<(Name, Value)>, Fault> {
    let path = |name: &str| if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") };
    let mut values: Vec<(Name, Value)> = Vec::with_capacity(declared.len());
    for (name, value) in given {
        let is_it = |known: &&Parameter| {
            known.name == name || known.renamed.is_some_and(|(_, former)| former == name)
        };
        let parameter = declared.iter().find(is_it).ok_or_else(|| unknown(within, &name, declared))?;
        if values.iter().any(|(taken, _)| *taken == parameter.name) {
            return Err(Fault::invalid_params(format!("{}: given more than once", path(&name))));
        }
        let value = match (&parameter.kind, value) {
            (_, Value::Nil) => continue,
            (Type::Fields(fields), Value::Struct(members)) => {
                Value::Struct(admitted(&path(&name), fields, members, now)?)
            }
            (kind, value) => kind.admit(value, now).map_err(|value| mistyped(&path(&name), kind, &value))?,
        };
        values.push((parameter.name.clone(), value));
    }
    for parameter in declared {
        if values.iter().any(|(name, _)| *name == parameter.name) {
            continue;
        }
        if let Some(default) = &parameter.default {
            values.push((parameter.name.clone(), default.clone()));
        } else if parameter.required {
            return Err(mistyped(&path(&parameter.name), &parameter.kind, &Value::Nil));
        }
    }
    Ok(values)
}

fn names(fields: &[Parameter]) -> String {
    fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ")
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

fn mistyped(name: &str, kind: &Type, value: &Value) -> Fault {
    let mut fault = refused(name, &kind.describe(), value);
    if let (Type::Choice(choices) | Type::Choices(choices), Some(word)) = (kind, value.as_text()) {
        fault
            .message
            .to_mut()
            .push_str(&near_names::suggestion(word, choices.iter().map(|choice| &**choice)));
    }
    fault
}

fn refused(name: &str, expected: &str, value: &Value) -> Fault {
    Fault::invalid_params(format!("{name}: expected {expected}, found {}", value.shown()))
}

fn unknown(within: &str, name: &str, declared: &[Parameter]) -> Fault {
    let shown = Value::from(name).shown();
    let mut known: Vec<&str> = declared.iter().map(|parameter| &*parameter.name).collect();
    if !within.is_empty() {
        let near = near_names::suggestion(name, known.iter().copied());
        return Fault::invalid_params(format!(
            "{within}: expected {}, found {shown}{near}",
            known.join(", ")
        ));
    }
    known.push(BIG_INTEGERS);
    let near = near_names::suggestion(name, known.iter().copied());
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
