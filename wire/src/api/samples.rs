//! Methods about past processes: `sensor.call_processes`, `sensor.past_processes`; and the samples in their
//! answers and in those about recordings.
//!
//! Pure. Not here: present processes ([`super::processes`]), recordings ([`super::recordings`]).

use super::calls::Call;
use super::processes::Process;
use super::{Effect, Request, Span, Subject, UnixTime};
use crate::process::State;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples of an answer by default.
const SAMPLES_DEFAULT: u64 = 1_000;
/// Most samples, or processes of sweeps, in an answer: about 5 MB of XML.
const SAMPLES_MAX: u64 = 10_000;

/// Filters for samples of processes, and the page to return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SampleChoice {
    /// Only samples at this time or later.
    pub from: Option<UnixTime>,
    /// Only samples at this time or earlier.
    pub to: Option<UnixTime>,
    /// Only the process with this id.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: Option<u32>,
    /// Only processes of this name; `*` matches any characters.
    pub name: Option<String>,
    /// Minimum time between two sweeps, 0 to 3600 s. Default: all sweeps.
    pub every: Option<Span>,
    /// Number of samples to skip.
    pub offset: u64,
    /// Maximum number of samples.
    #[schemars(range(min = 0, max = 10_000))]
    pub limit: u64,
}

impl Default for SampleChoice {
    fn default() -> SampleChoice {
        SampleChoice {
            from: None,
            to: None,
            pid: None,
            name: None,
            every: None,
            offset: 0,
            limit: SAMPLES_DEFAULT,
        }
    }
}

/// List the processes of this sensor's host that serve or served a call, with their samples during the call.
///
/// Samples are read from memory and from recordings (the newest 4 that overlap the call). With `limit` 0 no
/// samples are returned. Fault not_found: there is no such call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallProcessesParams {
    /// Id of the call, as in sensor.calls, such as slurm:17.
    pub call: String,
    /// Filters for samples.
    #[serde(flatten)]
    pub samples: SampleChoice,
}

impl Request for CallProcessesParams {
    const METHOD: &'static str = "sensor.call_processes";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = CallProcesses;
}

/// Processes of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallProcesses {
    /// Processes that serve or served the call.
    pub processes: Vec<ServingProcess>,
    /// Matching samples, in the order of their sweeps.
    pub samples: Vec<Sample>,
    /// Matching processes that ended, at most 10000.
    pub ended: Vec<EndedProcess>,
    /// Number of matching samples.
    pub total: u64,
    /// Offset of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Number of processes, since the sensor's start, whose environment the sensor could not read to find
    /// their job.
    pub unreadable: u64,
    /// Number of processes, since the sensor's start, that were not examined because of the rate limit.
    pub passed_over: u64,
    /// Number of segments in memory and in recordings that cannot be read.
    pub unreadable_segments: u64,
    /// The call. Absent if the logs of this host do not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

/// Process that serves or served a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServingProcess {
    /// Process id.
    pub pid: u32,
    /// Start time, by the calendar as it was set when the sensor started.
    pub start: UnixTime,
    /// Start time in nanoseconds since the host's boot; with `pid` it identifies the process.
    pub start_ns: u64,
    /// Evidence that the process serves the call.
    pub known_by: KnownBy,
    /// Job, by the name in that evidence.
    #[schemars(with = "String")]
    pub job: CompactString,
    /// Time when the process ended. Absent if it has not ended or if the time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// Process id of the parent. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// User id. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Name in the kernel (`comm`). Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// Command line. Absent if the process has ended, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
}

/// Evidence that a process serves a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The control group that the middleware created.
    Cgroup,
    /// The environment with which the process was started; its user may have changed it.
    Environment,
    /// A parent that serves the job.
    #[default]
    Parent,
    /// Evidence that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl KnownBy {
    /// The value as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            KnownBy::Cgroup => "cgroup",
            KnownBy::Environment => "environment",
            KnownBy::Parent => "parent",
            KnownBy::Unknown => "unknown",
        }
    }
}

/// Process in a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ProcessSample")]
pub struct Sample {
    /// Time of the sweep.
    pub time: UnixTime,
    /// Process id.
    pub pid: u32,
    /// Start time.
    pub start: UnixTime,
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
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
    /// Number of page faults without I/O since the start of the process.
    pub minor_faults: u64,
    /// Number of page faults with I/O since the start of the process.
    pub major_faults: u64,
    /// CPU utilization since the previous sweep, in cores (2.0 is two cores). Absent if there is no previous
    /// sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Id of the control group. Absent if the source does not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// Bytes read from storage. Absent if the caller or the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage. Absent if the caller or the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// Process that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndedProcess {
    /// Time of the end.
    pub time: UnixTime,
    /// Process id.
    pub pid: u32,
    /// Start time.
    pub start: UnixTime,
    /// Process id of the parent at the end.
    pub parent: u32,
    /// User id.
    pub uid: u32,
    /// Name in the kernel (`comm`) at the end.
    #[schemars(with = "String")]
    pub name: CompactString,
    /// Arguments of its last exec; empty if it was not observed.
    #[schemars(with = "String")]
    pub command: CompactString,
    /// Exit status. Absent if a signal ended the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// Signal that ended the process. Absent if it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
}

/// List all processes of this host, sweep by sweep, from memory and recordings.
///
/// The first entry lists all processes; later ones list those that changed and, in `gone`, those that ended.
/// `spans` lists the times for which sweeps are stored. Fault unavailable: the flight recorder is disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastProcessesParams {
    /// Only sweeps at this time or later.
    pub from: UnixTime,
    /// Only sweeps at this time or earlier.
    pub to: UnixTime,
    /// Minimum time between two sweeps, 0 to 3600 s. Default: all sweeps.
    #[serde(default)]
    pub every: Option<Span>,
    /// Maximum number of processes in all entries together; the first entry may exceed it. With 0 only
    /// `spans` is returned.
    #[serde(default = "samples_max")]
    #[schemars(range(min = 0, max = 10_000))]
    pub limit: u64,
}

fn samples_max() -> u64 {
    SAMPLES_MAX
}

impl Default for PastProcessesParams {
    fn default() -> PastProcessesParams {
        let (from, to) = (UnixTime::default(), UnixTime::default());
        PastProcessesParams { from, to, every: None, limit: SAMPLES_MAX }
    }
}

impl Request for PastProcessesParams {
    const METHOD: &'static str = "sensor.past_processes";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = PastProcesses;
}

/// Past sweeps of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastProcesses {
    /// Sweeps and gaps, sorted by time.
    pub entries: Vec<PastEntry>,
    /// Times for which sweeps are stored: memory first, then each recording, newest first.
    pub spans: Vec<PastSpan>,
    /// Number of segments in memory and in recordings that cannot be read.
    pub unreadable: u64,
    /// Start time of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<UnixTime>,
}

/// Past sweep, or a gap between two sweeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastEntry {
    /// Time of the sweep, or start of the gap.
    pub time: UnixTime,
    /// Kind of entry.
    pub what: PastKind,
    /// Process ids that ended. Absent in gaps, in the first sweep and in the first sweep after a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<Vec<u32>>,
    /// Processes that started or changed. Absent in gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
}

/// Kind of an entry about the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PastKind {
    /// Sweep.
    Sample,
    /// Gap: nothing is known from this time to the next entry.
    #[default]
    Gap,
    /// Kind that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Time span for which sweeps are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastSpan {
    /// Time of the first sweep.
    pub from: UnixTime,
    /// Time of the last sweep.
    pub to: UnixTime,
    /// Id of the recording that contains the sweeps. Absent if they are in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_as_the_schema_has_it() {
        assert_eq!(SAMPLES_MAX, 10_000);
    }
}
