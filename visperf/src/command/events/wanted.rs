//! Which events are wanted by job, user and host, asked of the daemon or looked at here.
//!
//! Pure. A daemon that does not know these parameters is asked without them; then every event passes here
//! and the cursor stays the daemon's, so that nothing is left out or repeated.

use crate::client::Error;
use crate::command::query::Params;
use crate::output::figures::text_of;
use serde_json::Value;

/// The code of a fault that refuses a parameter (`docs/query-interface.md`).
const INVALID_PARAMETERS: i64 = -32602;

/// The options.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Wanted {
    /// Only events of the job of this number, as the middleware prints it
    #[arg(long, value_name = "JOB")]
    pub(super) job: Option<String>,
    /// Only events of this user
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// Only events of this host: that name it, or come from a log of it
    #[arg(long, value_name = "HOST")]
    pub(super) host: Option<String>,
}

impl Wanted {
    /// The options as parameters.
    pub(super) fn ask(&self, params: Params) -> Params {
        params.with("job", self.job.clone()).with("user", self.user.clone()).with("host", self.host.clone())
    }

    /// Whether a daemon refuses to be asked so.
    pub(super) fn is_refused_in(&self, error: &Error) -> bool {
        let names = [("job", &self.job), ("user", &self.user), ("host", &self.host)];
        let Error::Fault { code: INVALID_PARAMETERS, message } = error else { return false };
        let given = names.iter().filter(|(_, value)| value.is_some());
        given.map(|(name, _)| format!("\"{name}\"")).any(|name| message.contains(&name))
    }

    /// Whether an event is wanted.
    pub(super) fn takes(&self, event: &Value) -> bool {
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| text_of(event, name) == wanted)
        };
        is(&self.job, "job")
            && is(&self.user, "user")
            && self.host.as_deref().is_none_or(|host| names_host(event, host))
    }
}

fn names_host(event: &Value, host: &str) -> bool {
    let member = |object: Option<&Value>, name: &str| {
        object.and_then(|object| object.get(name)).is_some_and(|found| match found {
            Value::String(text) => text.split(',').any(|one| one == host),
            Value::Array(items) => items.iter().any(|item| item == host),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        })
    };
    let attributes = event.get("attributes");
    member(Some(event), "from")
        || member(Some(event), "to")
        || member(attributes, "host")
        || member(attributes, "hosts")
        || member(event.get("source"), "host")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_chosen_by_job_user_and_host() {
        let event = json!({"job": "7", "user": "ann", "from": "sub", "to": "wn1,wn2",
            "attributes": {"hosts": ["wn3"]}, "source": {"host": "head"}});
        let check = |job: Option<&str>, user: Option<&str>, host: Option<&str>, expected: bool| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let wanted = Wanted { job: own(job), user: own(user), host: own(host) };
            assert_eq!(wanted.takes(&event), expected, "{wanted:?}");
        };
        check(None, None, None, true);
        check(Some("7"), Some("ann"), None, true);
        check(Some("77"), None, None, false);
        check(None, Some("bob"), None, false);
        for host in ["sub", "wn1", "wn2", "wn3", "head"] {
            check(None, None, Some(host), true);
        }
        check(None, None, Some("wn"), false);
    }
}
