//! Methods about the processes of a host: `sensor.processes`.
//!
//! Pure. Not here: processes as sensors sample and record them ([`crate::process`]).

use super::{Effect, Renamed, Request, Subject, UnixTime};
use crate::process::{self, ProcessKey, State};
use crate::time::Time;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Largest process id of the kernel (`PID_MAX_LIMIT`).
pub const PID_MAX: u32 = 1 << 22;

/// Processes of an answer by default.
const LIMIT_DEFAULT: u64 = 100;

/// List the processes of this sensor's host, those with the highest usage first.
///
/// `cpu` is the utilization of one core over about the last second. `cpu_seconds` is the run time of the
/// scheduler, exact to the nanosecond; `user_seconds` and `system_seconds` divide it in proportion to the
/// kernel's ticks. Fault not_found: the host has no such user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessesParams {
    /// Only processes of this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only processes of this user: a name or a user id.
    pub user: Option<String>,
    /// Only the process with this id.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: Option<u32>,
    /// Sort order.
    pub order: ProcessOrder,
    /// Maximum number of processes.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
}

impl Default for ProcessesParams {
    fn default() -> ProcessesParams {
        ProcessesParams {
            name: None,
            user: None,
            pid: None,
            order: ProcessOrder::default(),
            limit: LIMIT_DEFAULT,
        }
    }
}

impl Request for ProcessesParams {
    const METHOD: &'static str = "sensor.processes";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = &[("interval_secs", "interval")];
    type Answer = Processes;
}

/// Sort order of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessOrder {
    /// Recent CPU utilization, highest first.
    #[default]
    Cpu,
    /// Resident memory, largest first.
    Memory,
    /// Bytes read from and written to storage since the start of the process, largest first.
    Io,
    /// Start time, newest first.
    Start,
    /// Process id, lowest first.
    Pid,
}

/// Processes of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Processes {
    /// Matching processes, in the requested order.
    pub processes: Vec<Process>,
    /// Number of matching processes.
    pub total: u64,
    /// Time of the sweep.
    pub time: UnixTime,
    /// Source of the process data: `procfs`, `bpf-sweep` or `bpf-changed`.
    pub source: String,
    /// Reasons why a better source is not used; empty if the best one is.
    pub reasons: Vec<String>,
    /// Time between two sweeps, in seconds.
    pub interval_secs: f64,
    /// Number of sweeps skipped since the sensor's start because an earlier one took too long.
    pub slipped: u64,
    /// Number of kernel records lost since the sensor's start because the buffer was full; a walk over all
    /// tasks made up for them.
    pub lost: u64,
}

/// Process at a point in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Start time, by the calendar as it was set when the sensor started.
    pub start: UnixTime,
    /// Start time in nanoseconds since the host's boot, independent of the calendar; with `pid` it identifies
    /// the process.
    pub start_ns: u64,
    /// Process id of the parent.
    pub parent: u32,
    /// User id.
    pub uid: u32,
    /// Name in the kernel (`comm`).
    #[schemars(with = "String")]
    pub name: CompactString,
    /// Scheduling state of the main thread.
    pub state: State,
    /// Number of threads.
    pub threads: u32,
    /// CPU time of all threads since the start of the process, in seconds.
    pub cpu_seconds: f64,
    /// Part of `cpu_seconds` in user mode, in proportion to the kernel's ticks.
    pub user_seconds: f64,
    /// Part of `cpu_seconds` in kernel mode, in proportion to the kernel's ticks.
    pub system_seconds: f64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
    /// Number of page faults without I/O since the start of the process.
    pub minor_faults: u64,
    /// Number of page faults with I/O since the start of the process.
    pub major_faults: u64,
    /// User name. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Command line. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
    /// CPU utilization in cores (2.0 is two cores): over about the last second; in a subscription since its
    /// previous sample; in past processes since the previous sweep. Absent if there is no previous value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Id of the control group. Absent if the source does not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// Number of voluntary context switches (the process waited). Absent if the source does not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Number of involuntary context switches (preempted by the scheduler). Absent if the source does not
    /// provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Bytes read from storage. Absent if the caller or the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage. Absent if the caller or the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes returned by read system calls, from any source. Absent if the caller or the sensor may not read
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_chars: Option<u64>,
    /// Bytes passed to write system calls, to any destination. Absent if the caller or the sensor may not
    /// read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_chars: Option<u64>,
}

impl Process {
    /// Convert a process; `booted` is the boot time of the host.
    #[must_use]
    pub fn of(process: &process::Process, booted: Time) -> Process {
        let usage = &process.usage;
        let (user_ns, system_ns) = usage.shared_out();
        let secs = |ns| Duration::from_nanos(ns).as_secs_f64();
        Process {
            pid: process.key.pid,
            start: UnixTime(booted.plus(Duration::from_nanos(process.key.start_ns))),
            start_ns: process.key.start_ns,
            parent: process.parent,
            uid: process.uid,
            name: process.name.clone(),
            state: process.state,
            threads: process.threads,
            cpu_seconds: secs(usage.cpu_ns),
            user_seconds: secs(user_ns),
            system_seconds: secs(system_ns),
            rss_bytes: process.rss_kib << 10,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            user: None,
            command: None,
            cpu: None,
            cgroup: process.cgroup,
            voluntary_switches: usage.switches.map(|switches| switches.voluntary),
            involuntary_switches: usage.switches.map(|switches| switches.involuntary),
            read_bytes: usage.io.map(|io| io.read_bytes),
            written_bytes: usage.io.map(|io| io.written_bytes),
            read_chars: usage.io.map(|io| io.read_chars),
            written_chars: usage.io.map(|io| io.written_chars),
        }
    }

    /// Identity of the process on its host.
    #[must_use]
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, start_ns: self.start_ns }
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
    use crate::process::{Io, Switches, Usage};

    #[test]
    fn what_is_not_known_is_left_out_and_all_else_is_there() {
        let usage = Usage { cpu_ns: 1_500_000_000, ..Usage::default() };
        let bare = process::Process {
            key: ProcessKey { pid: 7, start_ns: 2_000_000_000 },
            rss_kib: 3,
            name: "cat".into(),
            usage,
            ..process::Process::default()
        };
        let full = process::Process {
            cgroup: Some(9),
            usage: Usage { switches: Some(Switches::default()), io: Some(Io::default()), ..usage },
            ..bare.clone()
        };
        let json = |process| {
            serde_json::to_value(Process::of(process, Time::from_micros(1_000_000))).expect("written")
        };
        let (bare, full) = (json(&bare), json(&full));
        assert_eq!((bare["start"].as_f64(), bare["rss_bytes"].as_u64()), (Some(3.0), Some(3072)));
        assert_eq!((bare["cpu_seconds"].as_f64(), bare["state"].as_str()), (Some(1.5), Some("sleeping")));
        let len = |value: &serde_json::Value| value.as_object().map(serde_json::Map::len);
        assert_eq!((len(&bare), len(&full)), (Some(14), Some(21)));
        let read: Process = serde_json::from_value(full).expect("read");
        assert_eq!((read.key().pid, read.io_bytes(), read.user), (7, Some(0), None));
    }

    #[test]
    fn the_largest_number_is_the_kernels() {
        assert_eq!(PID_MAX, 4_194_304, "as the schema has it");
    }
}
