//! Methods about a domain as a whole: `domain.hosts`, `domain.summary`.
//!
//! Pure. Not here: what members report to their representative ([`crate::report`]).

use super::{Effect, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the hosts of the domain, with their state and load.
///
/// For a host that has not reported to this representative (it left or became unreachable before, or has not
/// connected yet), only `host`, `state`, `role` and `age_secs` are present.
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

/// Hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hosts {
    /// Name of the domain.
    pub domain: String,
    /// Hosts of the domain; those that have reported to this representative first.
    pub hosts: Vec<Host>,
}

impl Hosts {
    /// Returns the hosts with an archive of the series of jobs that report.
    pub fn live_archives(&self) -> impl Iterator<Item = &str> {
        let is_archive = |row: &&Host| row.archive == Some(true) && row.state == HostState::Live;
        self.hosts.iter().filter(is_archive).map(|row| row.host.as_str())
    }
}

/// Host of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Name of the host.
    pub host: String,
    /// Whether the host reports.
    pub state: HostState,
    /// Role of the host in its domain.
    pub role: HostRole,
    /// Id of the sensor. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensor: Option<String>,
    /// Version of the sensor. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time when the sensor was started. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// Time since the last message of the host, in seconds; for a host that has not connected yet, since it
    /// was first expected. A new representative receives it from the previous one, to a second; if the
    /// previous one runs an earlier version, it counts from the takeover at the latest.
    pub age_secs: f64,
    /// Address of the query interface, as seen on the host itself. Present only for the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Load average over 1 minute. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// Load average over 5 minutes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load5: Option<f64>,
    /// Load average over 15 minutes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load15: Option<f64>,
    /// Number of logical CPUs. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// CPU utilization of the host, from 0 to 1. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_used: Option<f64>,
    /// Size of main memory, in bytes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Main memory in use, in bytes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Time since the host was booted, in seconds. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_secs: Option<f64>,
    /// Log data that the sensor has not read yet, in bytes. Absent before the first report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_bytes: Option<u64>,
    /// Time of the sensor's last state report, by the clock of that host. Absent before the first report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<UnixTime>,
    /// Number of events of the host that the representative has stored or skipped. Absent if the host has not
    /// reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Number of events in the journal of the host that the representative has not stored yet. Absent if the
    /// host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_behind: Option<u64>,
    /// Number of events deleted to stay within the disk budget before they could be sent. Absent if the host
    /// has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_lost: Option<u64>,
    /// Number of events rejected because they name the host of another sensor. Absent if the host has not
    /// reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_refused: Option<u64>,
    /// Number of metric samples received from the host. Absent if the host has not reported to this
    /// representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Number of samples not sent since the start of the sensor, because the connection was too slow or there
    /// was no representative. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_thinned: Option<u64>,
    /// Start of the last minute of the host's history that the representative has copied. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_until: Option<UnixTime>,
    /// Number of calls running on the host. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_running: Option<u64>,
    /// Whether it is an archive of the series of jobs. Absent if the host has not reported to this representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<bool>,
    /// Problems reported by the sensor; empty if it is healthy. Absent if the host has not reported to this
    /// representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Vec<String>>,
}

/// State of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// The host reports, or is expected to report soon.
    #[default]
    Live,
    /// The host should report and does not, or was revoked.
    LastSeen,
    /// The sensor announced its shutdown.
    Left,
    /// State that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl HostState {
    /// The value as text.
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

/// Role of a host in its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostRole {
    /// Aggregates the data of the domain.
    Representative,
    /// Takes over if the representative fails.
    Standby,
    /// Reports to the representative.
    #[default]
    Member,
    /// Role that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl HostRole {
    /// The value as text.
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

/// Return a summary of the domain: hosts, calls, events and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryParams {}

impl Request for SummaryParams {
    const METHOD: &'static str = "domain.summary";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Summary;
}

/// Summary of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Name of the domain.
    pub domain: String,
    /// Host of the representative, which answers.
    pub representative: String,
    /// Number of hosts, in all states.
    pub hosts: u64,
    /// Number of hosts in state `live`.
    pub hosts_live: u64,
    /// Whether hosts may be missing: the representative is new and not all hosts have reported yet, it is
    /// alone in a domain of several hosts, more than 10 % of the hosts or any host within the last 10 minutes
    /// became unreachable, or hosts report to another representative.
    pub partial: bool,
    /// Host-level metrics, aggregated over all live hosts.
    pub metrics: Vec<MetricSummary>,
    /// Number of calls by state and outcome.
    pub calls: CallCounts,
    /// Number of events stored.
    pub events: u64,
    /// Number of events lost.
    pub events_lost: u64,
    /// Users and hosts with the most calls.
    pub top: Top,
    /// Hosts that are `last_seen` and have not reported to this representative; their events and calls may be
    /// missing. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// Metric aggregated over all hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricSummary {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric.
    pub unit: String,
    /// Whether a sum over hosts is meaningful: true for amounts, counts and time spent, false for points in
    /// time, ages and ratios.
    pub additive: bool,
    /// Mean over all hosts.
    pub mean: f64,
    /// Smallest value of a host.
    pub min: f64,
    /// Largest value of a host.
    pub max: f64,
    /// Number of hosts that have the metric.
    pub count: u64,
    /// Hosts with the largest values, largest first.
    pub top: Vec<HostValue>,
    /// Sum over all hosts. Absent if `additive` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
}

/// Value of a metric on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostValue {
    /// Name of the host.
    pub host: String,
    /// Value on that host.
    pub value: f64,
}

/// Number of calls by state and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallCounts {
    /// Submitted, not started.
    pub waiting: u64,
    /// Started, not ended.
    pub running: u64,
    /// Ended, with any outcome.
    pub ended: u64,
    /// Ended successfully.
    pub ok: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Cancelled by the user or an operator.
    pub cancelled: u64,
    /// Ended because the time limit was exceeded.
    pub timeout: u64,
    /// Ended because the host was lost.
    pub node_fail: u64,
    /// Ended, outcome not recorded in the log.
    pub finished: u64,
}

/// Users and hosts with the most calls, at most 10 of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TopCalls")]
pub struct Top {
    /// Users with the most waiting and running calls.
    pub users: Vec<UserCalls>,
    /// Hosts with the most running calls.
    pub hosts: Vec<HostCalls>,
}

/// Number of waiting and running calls of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserCalls {
    /// Name of the user.
    pub user: String,
    /// Number of waiting and running calls.
    pub calls: u64,
}

/// Number of running calls on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCalls {
    /// Name of the host.
    pub host: String,
    /// Number of running calls.
    pub calls: u64,
}
