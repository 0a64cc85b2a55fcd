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

/// Which samples are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SampleChoice {
    /// Only samples of this time or later.
    pub from: Option<UnixTime>,
    /// Only samples of this time or earlier.
    pub to: Option<UnixTime>,
    /// Only the process of this number.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: Option<u32>,
    /// Only processes of this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only one sweep in so long; all unless given.
    pub every: Option<Span>,
    /// Leave out so many samples.
    pub offset: u64,
    /// At most so many samples.
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

/// The processes of this sensor's host that serve or served a call, and samples of them through its life.
///
/// Samples come of memory and of recordings. Give limit 0 to have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallProcessesParams {
    /// Which call, as sensor.calls has it: slurm:17.
    pub call: String,
    /// Which samples of its processes.
    #[serde(flatten)]
    pub samples: SampleChoice,
}

impl Request for CallProcessesParams {
    const METHOD: &'static str = "sensor.call_processes";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = CallProcesses;
}

/// The processes of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallProcesses {
    /// Each of them.
    pub processes: Vec<ServingProcess>,
    /// Samples of them, in the order of their sweeps.
    pub samples: Vec<Sample>,
    /// Those of them that ended.
    pub ended: Vec<EndedProcess>,
    /// All samples that fit.
    pub total: u64,
    /// The offset at which to go on, where there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Processes, since the sensor's start, of which could not be read whether they serve a job.
    pub unreadable: u64,
    /// Processes, since the sensor's start, that were not looked at for want of time.
    pub passed_over: u64,
    /// Parts of memory and of recordings that cannot be read.
    pub unreadable_segments: u64,
    /// The call, where the logs of this host name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

/// A process that serves or served a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServingProcess {
    /// Its number.
    pub pid: u32,
    /// When it was started, as the calendar stood when the sensor was.
    pub start: UnixTime,
    /// The same in nanoseconds since the host's boot: with `pid` it names one process.
    pub start_ns: u64,
    /// How it is known to serve the call: by the middleware's own control group, by the environment that it was started with, which its
    /// user may have written, or by its parent, which serves it.
    pub known_by: KnownBy,
    /// The job, by the name that made it known.
    #[schemars(with = "String")]
    pub job: CompactString,
    /// When it ended; left out while it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// The number of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// The number of its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its name, as the kernel has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// Its command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
}

/// How a process is known to serve a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// By the middleware's own control group.
    Cgroup,
    /// By what the process was started with, which its user may have written.
    Environment,
    /// It was started by such a process.
    #[default]
    Parent,
    /// A word that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl KnownBy {
    /// The word for it.
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

/// A process in a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ProcessSample")]
pub struct Sample {
    /// When the sweep was made.
    pub time: UnixTime,
    /// The number of the process.
    pub pid: u32,
    /// When it was started.
    pub start: UnixTime,
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
    /// Main memory that it holds.
    pub rss_bytes: u64,
    /// Page faults without input, since its start.
    pub minor_faults: u64,
    /// Page faults with input, since its start.
    pub major_faults: u64,
    /// The share of one core that it used since the sweep before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// The number of its control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u64>,
    /// Bytes of storage that it read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes of storage that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// A process that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndedProcess {
    /// When it ended.
    pub time: UnixTime,
    /// Its number.
    pub pid: u32,
    /// When it was started.
    pub start: UnixTime,
    /// The number of its parent at its end.
    pub parent: u32,
    /// The number of its user.
    pub uid: u32,
    /// Its name at its end.
    #[schemars(with = "String")]
    pub name: CompactString,
    /// The arguments that it was last run with; empty where that was not seen.
    #[schemars(with = "String")]
    pub command: CompactString,
    /// Its exit status, where it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// The signal that ended it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
}

/// All processes of this host, sweep by sweep, of memory and recordings.
///
/// The first entry names all processes, a later one those that changed and, as gone, those that ended. spans has the times of which
/// there are sweeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastProcessesParams {
    /// Only sweeps of this time or later.
    pub from: UnixTime,
    /// Only sweeps of this time or earlier.
    pub to: UnixTime,
    /// Only one sweep in so long; all unless given.
    #[serde(default)]
    pub every: Option<Span>,
    /// Name at most so many processes.
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

/// Sweeps of the past.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastProcesses {
    /// Sweeps and gaps, by their time.
    pub entries: Vec<PastEntry>,
    /// The times of which there are sweeps: of memory first, then of each recording, the newest first.
    pub spans: Vec<PastSpan>,
    /// Parts of memory and of recordings that cannot be read.
    pub unreadable: u64,
    /// The time from which to go on, where there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<UnixTime>,
}

/// A sweep of the past, or a gap between two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastEntry {
    /// When the sweep was made, or from when on nothing is known.
    pub time: UnixTime,
    /// Whether it is a sweep.
    pub what: PastKind,
    /// Of a sweep that is not the first after the beginning or a gap: the numbers of the processes that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<Vec<u32>>,
    /// Of a sweep: the processes that began or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
}

/// What an entry of the past is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PastKind {
    /// A sweep.
    Sample,
    /// From its time to the next entry nothing is known.
    #[default]
    Gap,
    /// A word that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Times of which there are sweeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastSpan {
    /// Its first sweep.
    pub from: UnixTime,
    /// Its last sweep.
    pub to: UnixTime,
    /// The recording that holds it; left out where it is in memory.
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
