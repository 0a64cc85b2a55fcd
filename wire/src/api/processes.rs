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

/// The largest number of a process that the kernel gives out (`PID_MAX_LIMIT`).
pub const PID_MAX: u32 = 1 << 22;

/// Processes of an answer by default.
const LIMIT_DEFAULT: u64 = 100;

/// The processes of this sensor's host, those that use most first.
///
/// `cpu` is the share of one core used over about the last second; `cpu_seconds` are the scheduler's, exact to the nanosecond;
/// `user_seconds` and `system_seconds` share them out as the kernel's ticks say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessesParams {
    /// Only processes of this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only processes of this user: a name or a number.
    pub user: Option<String>,
    /// Only the process of this number.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: Option<u32>,
    /// By what they are ordered.
    pub order: ProcessOrder,
    /// At most so many.
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

/// By what processes are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessOrder {
    /// CPU of late, the most first.
    #[default]
    Cpu,
    /// Memory, the most first.
    Memory,
    /// Bytes of storage read and written since their start, the most first.
    Io,
    /// Their start, the newest first.
    Start,
    /// Their number, the lowest first.
    Pid,
}

/// Processes of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Processes {
    /// Those that fit, in the requested order.
    pub processes: Vec<Process>,
    /// All that fit.
    pub total: u64,
    /// When the sweep was made that saw them.
    pub time: UnixTime,
    /// How processes are read.
    pub source: String,
    /// Why they are not read in a better way.
    pub reasons: Vec<String>,
    /// Between two sweeps.
    pub interval_secs: f64,
    /// Sweeps that were not made in their time, since the sensor's start.
    pub slipped: u64,
    /// What happened to processes and was not seen, since the sensor's start.
    pub lost: u64,
}

/// A process at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, as the calendar stood when the sensor was.
    pub start: UnixTime,
    /// When it was started, in nanoseconds since the host's boot, whatever the calendar does: with `pid` it names one process.
    pub start_ns: u64,
    /// The number of its parent.
    pub parent: u32,
    /// The number of its user.
    pub uid: u32,
    /// Its name, as the kernel has it.
    #[schemars(with = "String")]
    pub name: CompactString,
    /// What its first thread does.
    pub state: State,
    /// Its threads.
    pub threads: u32,
    /// CPU time of all its threads since its start.
    pub cpu_seconds: f64,
    /// CPU time in user mode, as the kernel's ticks say.
    pub user_seconds: f64,
    /// CPU time in the kernel, as the kernel's ticks say.
    pub system_seconds: f64,
    /// Main memory that it holds.
    pub rss_bytes: u64,
    /// Page faults without input, since its start.
    pub minor_faults: u64,
    /// Page faults with input, since its start.
    pub major_faults: u64,
    /// The name of its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
    /// The share of one core that it used: over about the last second, of a subscription since its sample before, of the past since the sweep before. 2.0
    /// is two cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// The number of its control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// How often it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// How often the scheduler took it off a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Bytes of storage that it read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes of storage that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes that system calls gave it, from wherever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_chars: Option<u64>,
    /// Bytes that it gave system calls, to wherever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_chars: Option<u64>,
}

impl Process {
    /// A process of a host that was booted then.
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

    /// Which process of its host.
    #[must_use]
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, start_ns: self.start_ns }
    }

    /// Bytes of storage that it read and wrote, where that is known.
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
