//! Methods about calls: `sensor.calls`, `domain.calls`.
//!
//! Pure. Not here: calls as sensors report them ([`crate::call`]).

use super::events::known_outcome;
use super::{Effect, Request, Subject, UnixTime};
use crate::call::State;
use crate::event::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls on a page by default.
const LIMIT_DEFAULT: u64 = 1000;

/// Filters for calls, and the page of them to return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallsParams {
    /// Only the call of this id; `*` or `…` in it stand for any characters.
    pub call: Option<String>,
    /// Only those that their user named so; `*` matches any characters.
    pub name: Option<String>,
    /// Only calls that bear this job number under any of their names, or are a part of it.
    pub job: Option<String>,
    /// Only this user's.
    pub user: Option<String>,
    /// Only those that ran on this host (with or without its domain).
    pub on_host: Option<String>,
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those with this outcome, or one of these outcomes.
    pub outcome: Vec<Outcome>,
    /// Only those whose latest time is this or later.
    pub since: Option<UnixTime>,
    /// Only those whose latest time is this or earlier.
    pub until: Option<UnixTime>,
    /// At most so many calls.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
    /// Which come first, by their latest time.
    pub order: CallOrder,
    /// The calls after those of an earlier answer, as its `next` gave it; the other parameters as in that call.
    pub cursor: Option<String>,
}

impl Default for CallsParams {
    fn default() -> CallsParams {
        CallsParams {
            call: None,
            name: None,
            job: None,
            user: None,
            on_host: None,
            state: None,
            outcome: Vec::new(),
            since: None,
            until: None,
            limit: LIMIT_DEFAULT,
            order: CallOrder::default(),
            cursor: None,
        }
    }
}

/// Which calls come first, by their latest time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// The newest.
    #[default]
    Newest,
    /// The oldest.
    Oldest,
}

/// The jobs, transfers and requests found in this sensor's logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SensorCallsParams(pub CallsParams);

impl Request for SensorCallsParams {
    const METHOD: &'static str = "sensor.calls";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Calls;
}

/// The jobs, transfers and requests of the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DomainCallsParams(pub CallsParams);

impl Request for DomainCallsParams {
    const METHOD: &'static str = "domain.calls";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Calls;
}

/// A page of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Calls {
    /// The calls of this page, in the requested order.
    pub calls: Vec<Call>,
    /// Calls that match, on all pages.
    pub total: u64,
    /// The cursor of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Hosts of the domain that are `last_seen` and have not reported to this representative: their calls may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// One job, transfer or request, as far as the logs show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Its id, unique within the domain: `PRODUCT:JOB`, with `/CLUSTER` and `#LIFE` where needed.
    pub id: String,
    /// The middleware's name of the job.
    pub job: String,
    /// The name that its user gave it.
    pub name: String,
    /// Whose it is: the name where any log prints it, else the number.
    pub user: String,
    /// The client or host that submitted it.
    pub from: String,
    /// Its state.
    pub state: State,
    /// When it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<UnixTime>,
    /// When servers were offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<UnixTime>,
    /// When a server was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<UnixTime>,
    /// When it was started, the last time if it was started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// The servers that were offered, best first.
    pub offers: Vec<String>,
    /// The hosts on which it ran.
    pub hosts: Vec<String>,
    /// How it ended. One that a later version has is read as `finished`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_outcome")]
    pub outcome: Option<Outcome>,
    /// Its exit code as printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// The signal that ended it, as printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// Why it waits or ended as it did, in the middleware's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How often it was started.
    pub tries: u32,
    /// Its events.
    pub events: u32,
}

impl From<&crate::call::Call> for Call {
    fn from(call: &crate::call::Call) -> Call {
        let texts = |texts: &[compact_str::CompactString]| texts.iter().map(ToString::to_string).collect();
        Call {
            id: call.id.to_string(),
            job: call.job.to_string(),
            name: call.name.to_string(),
            user: call.user.to_string(),
            from: call.from.to_string(),
            state: call.state,
            submitted: call.submitted.map(UnixTime),
            offered: call.offered.map(UnixTime),
            selected: call.selected.map(UnixTime),
            started: call.started.map(UnixTime),
            ended: call.ended.map(UnixTime),
            offers: texts(&call.offers),
            hosts: texts(&call.hosts),
            outcome: call.outcome,
            code: call.code.to_string(),
            signal: call.signal.to_string(),
            reason: call.reason.to_string(),
            tries: call.tries,
            events: call.events,
        }
    }
}
