//! Methods about a domain as a whole: `domain.hosts`, `domain.summary`.
//!
//! Pure. Not here: what members report to their representative ([`crate::report`]).

use super::{Effect, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The hosts of the domain, with state and load.
///
/// Of a host that went before the representative took over, or that it has not heard since, `host`, `state`, `role` and
/// `age_secs` are all there is; the same of one that is about to report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostsParams {}

impl Request for HostsParams {
    const METHOD: &'static str = "domain.hosts";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    const RENAMED: &'static [Renamed] = &[
        ("age_secs", "age"),
        ("memory_total_bytes", "memory_total"),
        ("memory_used_bytes", "memory_used"),
        ("uptime_secs", "uptime"),
        ("lag_bytes", "lag"),
    ];
    type Answer = Hosts;
}

/// The hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hosts {
    /// The domain.
    pub domain: String,
    /// Its hosts, those that report first.
    pub hosts: Vec<Host>,
}

/// One host of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Whether it reports.
    pub state: HostState,
    /// What it is in its domain.
    pub role: HostRole,
    /// Its sensor's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensor: Option<String>,
    /// The version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When its sensor was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// Seconds since its last message; of one that is about to report, since it was first expected. A representative that has
    /// taken over receives it from the previous one, to a second; if that runs an earlier version, it counts from the take-over at the latest.
    pub age_secs: f64,
    /// Where its query interface answers, as its own host reaches it; known of the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Load average of a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// Load average of five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load5: Option<f64>,
    /// Load average of fifteen minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load15: Option<f64>,
    /// Its logical CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// Share of its CPUs that is used, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_used: Option<f64>,
    /// Main memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Main memory in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Since the host was booted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_secs: Option<f64>,
    /// Bytes of its logs that its sensor has not read yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_bytes: Option<u64>,
    /// Time of its sensor's last report of its state, by that host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<UnixTime>,
    /// Its events that the representative has stored or passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Its events that it has and the representative has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_behind: Option<u64>,
    /// Its events that were deleted beyond its disk budget before they could be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_lost: Option<u64>,
    /// Its events that were set aside because they claim another sensor's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_refused: Option<u64>,
    /// Samples of metrics received from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Samples that its sensor took and did not send since its start: the connection was too slow, or there was no
    /// representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_thinned: Option<u64>,
    /// Calls that run on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_running: Option<u64>,
    /// Problems that its sensor reports; empty if it is healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Vec<String>>,
}

/// Whether a host reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It reports, or is about to.
    #[default]
    Live,
    /// It should report and does not, or was put out of the domain.
    LastSeen,
    /// It said that it leaves as it stopped.
    Left,
    /// A state that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl HostState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            HostState::Live => "live",
            HostState::LastSeen => "last_seen",
            HostState::Left => "left",
            HostState::Unknown => "unknown",
        }
    }
}

/// What a host is in its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostRole {
    /// It aggregates the domain.
    Representative,
    /// It takes over when the representative fails.
    Standby,
    /// It reports to the representative.
    #[default]
    Member,
    /// A role that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl HostRole {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            HostRole::Representative => "representative",
            HostRole::Standby => "standby",
            HostRole::Member => "member",
            HostRole::Unknown => "unknown",
        }
    }
}

/// The domain in a few figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryParams {}

impl Request for SummaryParams {
    const METHOD: &'static str = "domain.summary";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Summary;
}

/// A domain in a few figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// The domain.
    pub domain: String,
    /// Its representative, which answers.
    pub representative: String,
    /// Its hosts, in all states.
    pub hosts: u64,
    /// Those that report.
    pub hosts_live: u64,
    /// Hosts may be missing: the representative is new and has not heard all yet, is alone in a domain of several, more than a tenth of
    /// them or any in the last ten minutes went without a word, or others of the domain report to another one.
    pub partial: bool,
    /// Metrics of a host as a whole, over all hosts that report.
    pub metrics: Vec<MetricSummary>,
    /// Calls, by state and outcome.
    pub calls: CallCounts,
    /// Events that were stored.
    pub events: u64,
    /// Events that were lost.
    pub events_lost: u64,
    /// The largest users and hosts.
    pub top: Top,
    /// Hosts that are `last_seen` and have not reported to this representative: their events and calls may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// One metric over all hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricSummary {
    /// The metric.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether values of hosts may be added: amounts, counts and time spent may, moments, ages and shares may not.
    pub additive: bool,
    /// Over all hosts.
    pub mean: f64,
    /// The smallest value of a host.
    pub min: f64,
    /// The largest value of a host.
    pub max: f64,
    /// Hosts that have it.
    pub count: u64,
    /// The hosts with the largest values, those first.
    pub top: Vec<HostValue>,
    /// The sum over all hosts, where values may be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
}

/// A host's value of a metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostValue {
    /// The host.
    pub host: String,
    /// Its value.
    pub value: f64,
}

/// Calls, by state and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallCounts {
    /// Submitted and not started.
    pub waiting: u64,
    /// Started and not ended.
    pub running: u64,
    /// Ended, with any outcome.
    pub ended: u64,
    /// Ended well.
    pub ok: u64,
    /// Ended badly.
    pub failed: u64,
    /// Ended by a request.
    pub cancelled: u64,
    /// Ended by a time limit.
    pub timeout: u64,
    /// Ended with the node.
    pub node_fail: u64,
    /// Ended, without a word on how.
    pub finished: u64,
}

/// The largest users and hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TopCalls")]
pub struct Top {
    /// Users with most calls that wait or run.
    pub users: Vec<UserCalls>,
    /// Hosts on which most calls run.
    pub hosts: Vec<HostCalls>,
}

/// A user's calls that wait or run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserCalls {
    /// The user.
    pub user: String,
    /// How many.
    pub calls: u64,
}

/// Calls that run on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCalls {
    /// The host.
    pub host: String,
    /// How many.
    pub calls: u64,
}
