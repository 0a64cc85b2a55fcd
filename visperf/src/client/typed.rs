//! Calls whose parameters and answers have types.
//!
//! Rule: parameters that have their defaults are not sent, and names of the version before are taken for the present ones, so that a daemon of
//! that version understands and is understood.
//! Not here: the types (`wire::api`), the connection (`connection`).

use super::connection::Patience;
use super::{Client, Error};
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::api::{Renamed, Request};

/// The domain and the host that a call is about; the daemon's own unless given.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) domain: Option<String>,
    pub(crate) host: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answered<A> {
    /// As it came, with what a later version may have added.
    pub(crate) raw: Value,
    pub(crate) typed: A,
}

impl Client {
    /// Call a method.
    ///
    /// # Errors
    /// As [`Client::call`], and where the answer is not of the method's type.
    pub(crate) fn request<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        patience: Patience,
    ) -> Result<Answered<R::Answer>, Error> {
        let raw = self.call(R::METHOD, &params(request, about), patience)?;
        let typed = if R::RENAMED.is_empty() {
            R::Answer::deserialize(&raw)
        } else {
            let mut present = raw.clone();
            rename(&mut present, R::RENAMED);
            R::Answer::deserialize(&present)
        };
        match typed {
            Ok(typed) => Ok(Answered { raw, typed }),
            Err(error) => {
                Err(self.unexpected(format!("an answer of another form to {}: {error}", R::METHOD)))
            }
        }
    }
}

fn params<R: Request>(request: &R, about: &About) -> Value {
    let fields = |request: &R| match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    let defaults = fields(&R::default());
    let mut params = fields(request);
    params.retain(|_, value| !value.is_null());
    let mut few = params.clone();
    few.retain(|name, value| defaults.get(name) != Some(value));
    // One that every call must give is given though it is the type's default.
    if R::deserialize(Value::Object(few.clone())).is_ok() {
        params = few;
    }
    for (name, value) in [("domain", &about.domain), ("host", &about.host)] {
        if let Some(value) = value {
            params.insert(name.to_owned(), value.as_str().into());
        }
    }
    Value::Object(params)
}

/// Gives fields that have only a former name their present one, and leaves the former ones out.
fn rename(value: &mut Value, renamed: &[Renamed]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Object(fields) => {
            for (now, former) in renamed {
                if let Some(value) = fields.remove(*former) {
                    fields.entry(*now).or_insert(value);
                }
            }
            // Names of attributes and labels are the middleware's.
            let own = fields.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "attributes" | "labels"));
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
    use wire::api::domain::{HostState, Hosts, HostsParams};
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
    fn an_answer_of_the_version_before_is_understood() {
        let mut former = json!({"domain": "d", "hosts": [
            {"host": "a", "state": "last_seen", "role": "member", "age": 2.5, "memory_used": 7},
            {"host": "b", "state": "asleep", "role": "standby", "age": 1.0, "age_secs": 1.5, "later": {}},
        ]});
        rename(&mut former, HostsParams::RENAMED);
        let hosts: Hosts = serde_json::from_value(former).expect("it has the type");
        assert_eq!((hosts.hosts[0].age_secs, hosts.hosts[0].memory_used_bytes), (2.5, Some(7)));
        assert_eq!(hosts.hosts[1].age_secs, 1.5, "the present name counts");
        assert_eq!(hosts.hosts[1].state, HostState::Unknown, "a later version has more of them");
    }
}
