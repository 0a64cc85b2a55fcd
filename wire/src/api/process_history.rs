//! Method about the processes of the past: `sensor.process_history`.
//!
//! Pure. Not here: the present processes ([`super::processes`]), every sweep of the flight recorder
//! ([`super::samples`]).

use super::processes::ProcessOrder;
use super::{Effect, Request, Subject, UnixTime};
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::time::Duration;

/// Times of a boot, as the calendar has them at different times, differ by less.
const BOOTS_APART: Duration = Duration::from_secs(10);

/// Processes of an answer by default.
const LIMIT_DEFAULT: u64 = 100;

/// List the processes of this host that used most in a past time.
///
/// Of each minute the 20 processes that used most CPU time, most memory and most storage I/O are stored, those that
/// ended in it included. So the figures of a process are those of the minutes in which it was one of them. A
/// caller sees own processes; root and operators see all. Fault not_found: the host has no such user, or its process
/// history is turned off.
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
    /// Whether those of other users are left out: this caller may not see them.
    pub own_only: bool,
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
    /// Compares two processes in this order.
    #[must_use]
    pub fn compare(&self, other: &TopProcess, order: ProcessOrder) -> Ordering {
        match order {
            ProcessOrder::Cpu => other.cpu_seconds.total_cmp(&self.cpu_seconds),
            ProcessOrder::Memory => other.rss_max_bytes.cmp(&self.rss_max_bytes),
            ProcessOrder::Io => other.io_bytes().cmp(&self.io_bytes()),
            ProcessOrder::Start => other.start.0.cmp(&self.start.0),
            ProcessOrder::Pid => self.pid.cmp(&other.pid),
        }
    }

    /// Whether it is the process of this id, which is another one after the host was booted again.
    #[must_use]
    pub fn is_same(&self, other: &TopProcess) -> bool {
        let apart = self.start.0.since(other.start.0).max(other.start.0.since(self.start.0));
        (self.pid, self.start_ns) == (other.pid, other.start_ns) && apart < BOOTS_APART
    }

    /// Adds what it used in later minutes.
    #[allow(clippy::cast_precision_loss)] // Minutes are few.
    pub fn add(&mut self, later: TopProcess) {
        let minutes = self.minutes + later.minutes;
        let share = |process: &TopProcess| process.cpu * process.minutes as f64;
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let cpu = (share(self) + share(&later)) / (minutes as f64).max(1.0);
        *self = TopProcess {
            command: later.command.or(self.command.take()),
            job: later.job.or(self.job.take()),
            first: self.first,
            cpu,
            minutes,
            cpu_seconds: self.cpu_seconds + later.cpu_seconds,
            rss_max_bytes: self.rss_max_bytes.max(later.rss_max_bytes),
            read_bytes: sum(self.read_bytes, later.read_bytes),
            written_bytes: sum(self.written_bytes, later.written_bytes),
            end: later.end.or(self.end),
            exit_status: later.exit_status.or(self.exit_status),
            signal: later.signal.or(self.signal),
            ..later
        };
    }

    /// Bytes read from and written to storage, if known.
    #[must_use]
    pub fn io_bytes(&self) -> Option<u64> {
        self.read_bytes.zip(self.written_bytes).map(|(read, written)| read.saturating_add(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn what_a_process_used_in_two_hours_is_added() {
        let at = |minute: i64| UnixTime(Time::from_micros(minute * 60_000_000));
        let mut process = TopProcess {
            pid: 7,
            start: at(1),
            start_ns: 60,
            name: "sh".into(),
            command: Some("sh -c work".into()),
            job: Some("slurm:17".into()),
            minutes: 10,
            first: at(2),
            last: at(59),
            cpu_seconds: 60.0,
            cpu: 0.1,
            rss_max_bytes: 9,
            read_bytes: Some(1),
            ..TopProcess::default()
        };
        let later = TopProcess {
            start: UnixTime(at(1).0.plus(Duration::from_secs(2))),
            name: "work".into(),
            command: None,
            job: None,
            minutes: 30,
            first: at(60),
            last: at(100),
            cpu_seconds: 1800.0,
            cpu: 1.0,
            rss_max_bytes: 5,
            read_bytes: Some(2),
            written_bytes: Some(3),
            exit_status: Some(1),
            end: Some(at(101)),
            ..process.clone()
        };
        assert!(process.is_same(&later) && later.is_same(&process));
        let booted_again = TopProcess { start: at(30), ..later.clone() };
        assert!(!process.is_same(&booted_again) && !booted_again.is_same(&process));
        process.add(later.clone());
        let sum = TopProcess {
            command: Some("sh -c work".into()),
            job: Some("slurm:17".into()),
            minutes: 40,
            first: at(2),
            cpu_seconds: 1860.0,
            cpu: 31.0 / 40.0,
            rss_max_bytes: 9,
            read_bytes: Some(3),
            ..later
        };
        assert_eq!(process, sum);
    }
}
