//! Methods with typed parameters and answers, from which their help is derived.
//!
//! Not here: the types (`wire::api`), their encoding (`codec`).

use crate::codec::value::{Name, Value};
use crate::codec::{self, Source};
use crate::dispatch::encoded_answer::{Answered, Answering};
use crate::dispatch::forward::Caller;
use crate::dispatch::method::{Declaration, Handler, Method, Reading};
use crate::dispatch::params::Params;
use crate::dispatch::schema;
use crate::fault::Fault;
use serde::Deserialize as _;
use std::collections::HashSet;
use std::future::Future;
use wire::api::{Effect, Renamed, Request, Subject};
use wire::query::Form;

/// Members whose own member names are user data, not field names.
const NAMES_OF_OTHERS: [&str; 2] = ["attributes", "labels"];

impl Declaration {
    /// Declare the method with parameters `R`.
    #[must_use]
    pub fn of<R: Request>() -> Declaration {
        let (params, answer) = (schema::of_params::<R>(), schema::of_answer::<R::Answer>());
        let (summary, details) = schema::summary_and_details(&params);
        let mut declaration = Declaration::new(R::METHOD, summary)
            .details(details)
            .returns(schema::xml_type(&answer), schema::outline(&answer));
        declaration.typed = Some(schema::Typed::of::<R>());
        declaration.reading = match R::EFFECT {
            Effect::Reads => Reading::Only,
            Effect::KeepsForClient => Reading::ForAsker,
            Effect::Changes => Reading::Changes,
            Effect::ChangesByProof => Reading::Signed,
        };
        for mut parameter in schema::parameters(&params) {
            let renamed = R::RENAMED_PARAMETERS.iter().find(|(now, _)| parameter.name == *now);
            parameter.renamed = renamed.copied();
            declaration = declaration.parameter(parameter);
        }
        match R::SUBJECT {
            Subject::Daemon => declaration,
            Subject::Domain => declaration.of_domain(),
            Subject::Host => declaration.of_host(),
        }
    }
}

/// The method with parameters `R`, answered by `handler`.
#[must_use]
pub fn method<R, H, F>(handler: H) -> Method
where
    R: Request,
    H: Fn(&Caller, R) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R::Answer, Fault>> + Send + 'static,
{
    let handler = move |caller: &Caller, params: Params, form: Option<Form>| {
        let asked = params.typed::<R>().map(|request| handler(caller, request));
        Box::pin(async move { answered::<R>(&asked?.await?, form) }) as Answering
    };
    Method { declaration: Declaration::of::<R>(), handler: Handler::Daemon(Box::new(handler)) }
}

/// As [`method`], for a `handler` that encodes the document itself, in the form of its type: for long lists,
/// to avoid a copy.
#[must_use]
pub fn method_writing<R, H, F>(handler: H) -> Method
where
    R: Request,
    H: Fn(&Caller, R, Option<Form>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Answered, Fault>> + Send + 'static,
{
    let handler = move |caller: &Caller, params: Params, form: Option<Form>| {
        let asked = params.typed::<R>().map(|request| handler(caller, request, form));
        Box::pin(async move { asked?.await }) as Answering
    };
    Method { declaration: Declaration::of::<R>(), handler: Handler::Daemon(Box::new(handler)) }
}

/// Parameters of a request to another daemon, by the names of the previous version, which does not accept
/// [`Value::UInt`].
///
/// # Errors
/// If the type has a form that the query interface does not support.
pub fn params_of<R: Request>(request: &R) -> Result<Vec<(Name, Value)>, Fault> {
    match codec::value(request, &[]) {
        Ok(Value::Struct(members)) => {
            Ok(members.into_iter().map(|(name, value)| (former::<R>(name), signed(value))).collect())
        }
        Ok(other) => Err(Fault::internal(format!("{}: parameters are {}", R::METHOD, other.shown()))),
        Err(error) => Err(Fault::internal(format!("{}: {error}", R::METHOD))),
    }
}

fn former<R: Request>(name: Name) -> Name {
    let renamed = R::RENAMED_PARAMETERS.iter().find(|(now, _)| name == *now);
    renamed.map_or(name, |(_, former)| Name::Borrowed(former))
}

fn signed(value: Value) -> Value {
    match value {
        Value::UInt(number) => i64::try_from(number).map_or(value, Value::Int),
        Value::Array(items) => Value::Array(items.into_iter().map(signed).collect()),
        Value::Struct(members) => {
            Value::Struct(members.into_iter().map(|(name, value)| (name, signed(value))).collect())
        }
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Text(_) | Value::Bytes(_) => {
            value
        }
    }
}

/// Parse the answer of another daemon, which may be of the previous version.
///
/// # Errors
/// If it is not of the method's type.
pub fn answer_of<R: Request>(mut answer: Value) -> Result<R::Answer, Fault> {
    rename(&mut answer, R::RENAMED);
    R::Answer::deserialize(Source(&answer))
        .map_err(|error| Fault::unavailable(format!("an answer of another form to {}: {error}", R::METHOD)))
}

/// Rename fields that have only their previous name, and remove the other previous names. Of several fields
/// with one name the last one is used. Names within [`NAMES_OF_OTHERS`] are the middleware's.
fn rename(value: &mut Value, renamed: &[Renamed]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Struct(members) => {
            for (now, former) in renamed {
                if members.iter().any(|(name, _)| name == now) {
                    members.retain(|(name, _)| name != former);
                } else if let Some((name, _)) = members.iter_mut().find(|(name, _)| name == former) {
                    *name = Name::Borrowed(now);
                }
            }
            let mut known = HashSet::new();
            let mut last: Vec<_> = std::mem::take(members);
            last.reverse();
            last.retain(|(name, _)| known.insert(name.clone()));
            last.reverse();
            *members = last;
            let own = members.iter_mut().filter(|(name, _)| !NAMES_OF_OTHERS.contains(&&**name));
            own.for_each(|(_, value)| rename(value, renamed));
        }
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Double(_) => {}
        Value::Text(_) | Value::Bytes(_) => {}
    }
}

/// Convert an answer to the requested form.
///
/// # Errors
/// If the type has a form that the query interface does not support.
pub fn answered<R: Request>(answer: &R::Answer, form: Option<Form>) -> Result<Answered, Fault> {
    let answered = match form {
        Some(form) => codec::document(form, answer, R::RENAMED).map(|text| Answered::Written(text.into())),
        None => codec::value(answer, R::RENAMED).map(Answered::Value),
    };
    answered.map_err(|error| Fault::internal(format!("{}: {error}", R::METHOD)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::channels::{Settings, SubscribeParams};
    use wire::api::directory::{DomainState, DomainsParams, ResolveParams};
    use wire::api::recordings::RecordingParams;
    use wire::time::Time;

    #[test]
    fn an_answer_of_the_version_before_is_understood() {
        let domain = |age: &'static str| {
            let members =
                [("domain", Value::from("A")), ("state", "asleep".into()), (age, Value::Double(2.5))];
            Value::object(members)
        };
        let both = Value::object([("age", Value::Double(1.0)), ("age_secs", Value::Double(2.5))]);
        let answer = Value::object([
            ("domains", Value::Array(vec![domain("age"), domain("age_secs"), both])),
            ("later", Value::Nil),
        ]);
        let answer = answer_of::<DomainsParams>(answer).unwrap();
        assert!(answer.domains.iter().all(|domain| domain.age_secs == 2.5), "{answer:?}");
        assert_eq!(answer.domains[0].state, DomainState::Unknown, "a later version has more of them");
        let attributes = Value::object([("size", Value::from("7"))]);
        let event = Value::object([("id", Value::from("e")), ("attributes", attributes)]);
        let recorded =
            Value::object([("events", Value::array([event])), ("total", 1.into()), ("total", 2.into())]);
        let mut renamed = recorded.clone();
        rename(&mut renamed, RecordingParams::RENAMED);
        assert_eq!(renamed.get("events"), recorded.get("events"), "an attribute has the middleware's name");
        assert_eq!(renamed.get("total"), Some(&Value::Int(2)), "the last of one name");
        let fault = answer_of::<DomainsParams>(Value::from("no")).unwrap_err();
        assert!(fault.message.contains("directory.domains"), "{fault:?}");
    }

    #[test]
    fn parameters_are_sent_by_their_names() {
        let params = params_of(&ResolveParams { domain: "A".into() });
        assert_eq!(params, Ok(vec![("domain".into(), Value::from("A"))]));
        let settings = Settings { rate_hz: Some(2.0), ..Settings::default() };
        let wanted = SubscribeParams { settings, ..SubscribeParams::default() };
        let sent = params_of(&wanted).unwrap();
        assert!(
            sent.contains(&("rate".into(), Value::Double(2.0))),
            "as the version before knows it: {sent:?}"
        );
        let declared = Declaration::of::<SubscribeParams>().parameters;
        let (taken, _) = Params::check(&declared, sent, Time::default()).unwrap();
        assert!(taken.handed_on().contains(&("rate".into(), Value::Double(2.0))), "{taken:?}");
        assert_eq!(taken.typed::<SubscribeParams>(), Ok(wanted));
        // Another daemon accepts them unchanged.
        let all = DomainsParams { limit: 10_000, ..DomainsParams::default() };
        let sent = params_of(&all).unwrap();
        assert!(sent.contains(&("limit".into(), Value::Int(10_000))), "{sent:?}");
        let declared = schema::parameters(&schema::of_params::<DomainsParams>());
        let checked = Params::check(&declared, sent, Time::default());
        assert_eq!(checked.and_then(|(params, _)| params.typed::<DomainsParams>()), Ok(all));
    }
}
