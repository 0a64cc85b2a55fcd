//! Parameters and answers of calls, converted between types and JSON.
//!
//! Pure. Rule: parameters with their default values are not sent. The field names of the previous version are
//! also sent and accepted, for compatibility with daemons of that version.
//! Not here: the types (`wire::api`).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Error, Map, Value};
use wire::api::{Renamed, Request};

/// Members whose own member names are user data, not field names.
const NAMES_OF_OTHERS: [&str; 2] = ["attributes", "labels"];

/// Domain and host that a call is about; the daemon's own unless given.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Name of the domain.
    pub domain: Option<String>,
    /// Name of the host.
    pub host: Option<String>,
}

/// An answer in both forms.
#[derive(Debug)]
pub struct Answered<A> {
    /// The raw JSON, with any fields of a later version.
    pub raw: Value,
    /// The typed answer.
    pub typed: A,
}

/// Parameters of a call as JSON, for the body of its request.
#[must_use]
pub fn params<R: Request>(request: &R, about: &About) -> Value {
    let fields = |request: &R| match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    let defaults = fields(&R::default());
    let mut params = fields(request);
    params.retain(|_, value| !value.is_null());
    let mut few = params.clone();
    few.retain(|name, value| defaults.get(name) != Some(value));
    // A required parameter is sent even if it has the default value of its type.
    if R::deserialize(Value::Object(few.clone())).is_ok() {
        params = few;
    }
    for (now, former) in R::RENAMED_PARAMETERS {
        if let Some(value) = params.remove(*now) {
            params.insert((*former).to_owned(), value);
        }
    }
    for (name, value) in [("domain", &about.domain), ("host", &about.host)] {
        if let Some(value) = value {
            params.insert(name.to_owned(), value.as_str().into());
        }
    }
    Value::Object(params)
}

/// Parse the body of a response.
///
/// # Errors
/// If it is not of the method's type.
pub fn answer<R: Request>(body: &[u8]) -> Result<R::Answer, Error> {
    match R::RENAMED {
        [] => serde_json::from_slice(body),
        renamed => read(serde_json::from_slice(body)?, renamed),
    }
}

/// Convert an answer. Keeps the raw JSON, too.
///
/// # Errors
/// As [`answer`].
pub fn answered<R: Request>(raw: Value) -> Result<Answered<R::Answer>, Error> {
    let typed = match R::RENAMED {
        [] => R::Answer::deserialize(&raw)?,
        renamed => read(raw.clone(), renamed)?,
    };
    Ok(Answered { raw, typed })
}

fn read<A: DeserializeOwned>(mut answer: Value, renamed: &[Renamed]) -> Result<A, Error> {
    rename(&mut answer, renamed);
    A::deserialize(answer)
}

/// Rename fields that have only their previous name, and remove the other previous names.
fn rename(value: &mut Value, renamed: &[Renamed]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Object(fields) => {
            for (now, former) in renamed {
                if let Some(value) = fields.remove(*former) {
                    fields.entry(*now).or_insert(value);
                }
            }
            let own = fields.iter_mut().filter(|(name, _)| !NAMES_OF_OTHERS.contains(&name.as_str()));
            own.for_each(|(_, value)| rename(value, renamed));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::api::calls::{CallsParams, SensorCallsParams};
    use wire::api::channels::{Settings, SubscribeParams};
    use wire::api::domain::{HostState, HostsParams};
    use wire::api::modules::ChangeModuleParams;
    use wire::event::Outcome;

    #[test]
    fn defaults_are_not_sent() {
        let wanted = CallsParams {
            user: Some("ada".to_owned()),
            outcome: vec![Outcome::NodeFail],
            ..CallsParams::default()
        };
        let about = About { domain: Some("UT-ICL".to_owned()), host: None };
        let expected = json!({"user": "ada", "outcome": ["node_fail"], "domain": "UT-ICL"});
        assert_eq!(params(&SensorCallsParams(wanted), &about), expected);
        let reload = ChangeModuleParams { name: Some("gpu".to_owned()), ..ChangeModuleParams::default() };
        let expected = json!({"name": "gpu", "act": "reload", "key": ""});
        assert_eq!(params(&reload, &About::default()), expected, "every call must give act");
    }

    #[test]
    fn a_renamed_parameter_is_sent_by_its_former_name() {
        let settings = Settings { rate_hz: Some(64.0), ..Settings::default() };
        let wanted = SubscribeParams { settings, ..SubscribeParams::default() };
        assert_eq!(params(&wanted, &About::default()), json!({"rate": 64.0}));
    }

    #[test]
    fn an_answer_of_the_version_before_is_understood() {
        let former = json!({"domain": "d", "hosts": [
            {"host": "a", "state": "last_seen", "role": "member", "age": 2.5, "memory_used": 7},
            {"host": "b", "state": "asleep", "role": "standby", "age": 1.0, "age_secs": 1.5, "later": {}},
        ]});
        let hosts = answer::<HostsParams>(former.to_string().as_bytes()).expect("it has the type");
        assert_eq!(answered::<HostsParams>(former.clone()).expect("it has the type").typed, hosts);
        assert_eq!((hosts.hosts[0].age_secs, hosts.hosts[0].memory_used_bytes), (2.5, Some(7)));
        assert_eq!(hosts.hosts[1].age_secs, 1.5, "the present name counts");
        assert_eq!(hosts.hosts[1].state, HostState::Unknown, "a later version has more of them");
    }
}
