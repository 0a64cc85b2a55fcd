//! Methods about calls: `sensor.calls`, `domain.calls`.
//!
//! Pure. Not here: calls as sensors report them ([`crate::call`]).

use super::events::known_outcome;
use super::{Effect, Request, Subject, UnixTime};
use crate::call::job::Fact;
use crate::call::{self, State, host_names};
use crate::event::Outcome;
use crate::name_match;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls on a page by default.
const LIMIT_DEFAULT: u64 = 1000;

/// Filters, sort order and page of a list of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallsParams {
    /// Only the call with this id; `*` and `…` match any characters.
    pub call: Option<String>,
    /// Only calls to which their user gave this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only calls with this job number, under any of their names, and their parts.
    pub job: Option<String>,
    /// Only calls of this user, as `user` of a call.
    pub user: Option<String>,
    /// Only jobs that are charged to this account.
    pub account: Option<String>,
    /// Only jobs of this queue or partition.
    pub queue: Option<String>,
    /// Only jobs: no transfers, and no wholes that consist of other jobs, such as arrays. Of calls stored by an
    /// earlier version this is not known; they are taken for jobs.
    pub jobs_only: bool,
    /// Only calls that ran on this host, with or without its domain.
    pub on_host: Option<String>,
    /// Only calls in this state.
    pub state: Option<State>,
    /// Only calls with one of these outcomes.
    pub outcome: Vec<Outcome>,
    /// Only calls whose latest time is this time or later.
    pub since: Option<UnixTime>,
    /// Only calls whose latest time is this time or earlier.
    pub until: Option<UnixTime>,
    /// Maximum number of calls on the page.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
    /// Sort order, by the latest time of a call.
    pub order: CallOrder,
    /// Cursor of the page, from `next` of an earlier answer; the other parameters must be those of that call.
    /// Absent for the first page.
    pub cursor: Option<String>,
}

impl Default for CallsParams {
    fn default() -> CallsParams {
        CallsParams {
            call: None,
            name: None,
            job: None,
            user: None,
            account: None,
            queue: None,
            jobs_only: false,
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

/// Sort order of calls, by their latest time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// Newest first.
    #[default]
    Newest,
    /// Oldest first.
    Oldest,
}

/// List the calls (jobs, transfers and requests) found in this sensor's logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SensorCallsParams(pub CallsParams);

impl Request for SensorCallsParams {
    const METHOD: &'static str = "sensor.calls";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Calls;
}

/// List the calls (jobs, transfers and requests) of the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DomainCallsParams(pub CallsParams);

impl Request for DomainCallsParams {
    const METHOD: &'static str = "domain.calls";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Calls;
}

/// Page of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Calls {
    /// Calls of this page, in the requested order.
    pub calls: Vec<Call>,
    /// Number of matching calls on all pages. Of stored calls at most 10,000 are counted.
    pub total: u64,
    /// Whether there may be more than `total`. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub total_is_more: bool,
    /// Latest time of the oldest stored call. Absent if no call is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_since: Option<UnixTime>,
    /// Whether stored calls of other users are left out: root and operators get them. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stored_own_only: bool,
    /// Cursor of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Hosts of the domain that are `last_seen` and have not reported to this representative; their calls may
    /// be missing. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// Call: a job, transfer or request, as recorded in the logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Id of the call, unique within the domain: `PRODUCT:JOB`, with `/CLUSTER` and `#LIFE` where needed.
    pub id: String,
    /// Job id of the middleware.
    pub job: String,
    /// Name given by the user; empty if unknown.
    pub name: String,
    /// User: the name if any log prints it, else the number; empty if unknown.
    pub user: String,
    /// Client or host that submitted the call; empty if unknown.
    pub from: String,
    /// State of the call.
    pub state: State,
    /// Time of submission. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<UnixTime>,
    /// Time when servers were offered. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<UnixTime>,
    /// Time when a server was selected. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<UnixTime>,
    /// Time of the last start. Absent if it has not started, or if the time is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// Time of the end. Absent if it has not ended, or if the time is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// Servers offered, best first.
    pub offers: Vec<String>,
    /// Hosts on which the call ran.
    pub hosts: Vec<String>,
    /// Outcome. Absent if the call has not ended. An outcome that only a later version knows is read as
    /// `finished`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_outcome")]
    pub outcome: Option<Outcome>,
    /// Exit code as printed in the log. Absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Signal that ended the call, as printed in the log. Absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// Reason why the call waits or ended, in the text of the middleware. Absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Number of starts.
    pub tries: u32,
    /// Number of events of the call.
    pub events: u32,
}

impl CallsParams {
    /// Whether a call fits all that is asked of the call itself: not its id, nor its job number.
    #[must_use]
    pub fn fit(&self, call: &call::Call) -> bool {
        let CallsParams { name, user, account, queue, on_host, state, outcome, since, until, .. } = self;
        let on = |host: &String| call.hosts.iter().any(|known| host_names(known).contains(&host.as_str()));
        name.as_ref().is_none_or(|name| name_match::matches(name, &call.name))
            && user.as_ref().is_none_or(|user| call.user == *user)
            && account.as_ref().is_none_or(|account| call.fact(Fact::Account) == Some(account))
            && queue.as_ref().is_none_or(|queue| call.fact(Fact::Queue) == Some(queue))
            && (!self.jobs_only || call.is_job())
            && on_host.as_ref().is_none_or(on)
            && state.is_none_or(|state| call.state == state)
            && (outcome.is_empty() || call.outcome.is_some_and(|known| outcome.contains(&known)))
            && since.is_none_or(|since| self.is_active_since(since, call))
            && until.is_none_or(|until| call.latest() <= Some(until.0))
    }
}

impl CallsParams {
    /// Whether something happened to a call since then. A job that has not ended waits or runs now.
    fn is_active_since(&self, since: UnixTime, call: &call::Call) -> bool {
        (self.jobs_only && call.state != State::Ended) || call.latest() >= Some(since.0)
    }
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
