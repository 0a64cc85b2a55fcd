//! Method about the processes of the past: `sensor.process_history`.
//!
//! Pure. Not here: the present processes ([`super::processes`]), every sweep of the flight recorder
//! ([`super::samples`]).

use super::processes::ProcessOrder;
use super::{Effect, Request, Subject, UnixTime};
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processes of an answer by default.
const LIMIT_DEFAULT: u64 = 100;

/// List the processes of this host that used most in a past time.
///
/// Of each minute the 20 processes that used most CPU time, most memory and most storage I/O are stored, those that
/// ended in it included. So the figures of a process are those of the minutes in which it was one of them. A
/// caller sees own processes; root and operators see all. Fault not_found: the host has no such user; fault unavailable:
/// the process history is turned off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessHistoryParams {
    /// From this time on, widened to whole minutes [default: an hour before `until`].
    pub since: Option<UnixTime>,
    /// Until this time, widened to whole minutes [default: now].
    pub until: Option<UnixTime>,
    /// Only processes of this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only processes of this user: a name or a user id.
    pub user: Option<String>,
    /// Only processes with this id.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: Option<u32>,
    /// Only processes that serve this job: `slurm:17`.
    pub job: Option<String>,
    /// Sort order; `cpu` is by CPU time.
    pub order: ProcessOrder,
    /// Maximum number of processes.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
}

impl Default for ProcessHistoryParams {
    fn default() -> ProcessHistoryParams {
        ProcessHistoryParams {
            since: None,
            until: None,
            name: None,
            user: None,
            pid: None,
            job: None,
            order: ProcessOrder::default(),
            limit: LIMIT_DEFAULT,
        }
    }
}

impl Request for ProcessHistoryParams {
    const METHOD: &'static str = "sensor.process_history";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = ProcessHistory;
}

/// Processes of a past time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessHistory {
    /// Matching processes, in the requested order.
    pub processes: Vec<TopProcess>,
    /// Number of matching processes.
    pub total: u64,
    /// Number of stored minutes in the requested time.
    pub minutes: u64,
    /// Start of the oldest stored minute. Absent if none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<UnixTime>,
    /// Number of processes that ended within the time without being counted.
    pub missed: u64,
    /// Number of bytes that are damaged and were skipped.
    pub damaged_bytes: u64,
}

/// Process that was among those that used most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TopProcess {
    /// Process id.
    pub pid: u32,
    /// Start time, by the calendar.
    pub start: UnixTime,
    /// Start time in nanoseconds since the host's boot; with `pid` it identifies the process.
    pub start_ns: u64,
    /// Process id of the parent.
    pub parent: u32,
    /// User id.
    pub uid: u32,
    /// User name. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name in the kernel (`comm`).
    #[schemars(with = "String")]
    pub name: CompactString,
    /// Command line, at most 512 bytes of it. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
    /// Job that it serves (`slurm:17`). Absent if it serves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub job: Option<CompactString>,
    /// Number of minutes in which it was among those that used most.
    pub minutes: u64,
    /// Start of the first of these minutes.
    pub first: UnixTime,
    /// Start of the last of these minutes.
    pub last: UnixTime,
    /// CPU time in these minutes, in seconds.
    pub cpu_seconds: f64,
    /// Mean CPU utilization in these minutes, in cores (2.0 is two cores).
    pub cpu: f64,
    /// Largest resident memory at the end of one of these minutes, in bytes; 0 if it lived at the end of none.
    pub rss_max_bytes: u64,
    /// Bytes read from storage in these minutes. Absent if the sensor may not read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage in these minutes. Absent if the sensor may not read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// When it ended. Absent if it did not end in these minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<UnixTime>,
    /// Exit status, if it ended by itself. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u8>,
    /// Number of the signal that ended it. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
}

impl TopProcess {
    /// Bytes read from and written to storage, if known.
    #[must_use]
    pub fn io_bytes(&self) -> Option<u64> {
        self.read_bytes.zip(self.written_bytes).map(|(read, written)| read.saturating_add(written))
    }
}
