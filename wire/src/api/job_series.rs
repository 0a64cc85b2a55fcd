//! Method `sensor.job_series`: what a job used on a host, over time.
//!
//! Pure. Not here: sums over its life ([`super::job_usage`]).

use super::{Effect, Request, Span, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most points of an answer.
pub const POINTS_MAX: usize = 100_000;

/// Get what a job used on this host, over time: as measured once a second while it ran.
///
/// The answer has a curve for each measurement: each run of the job, and each user whose processes name it. Curves of other
/// users' processes are absent, except for root and operators. Fault not_found: this sensor stores no series of jobs, or
/// its archive has none of that host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobSeriesParams {
    /// Name of the job: its middleware and its number there, `slurm:17` (`product` and `job` of a job).
    pub job: String,
    /// Host that measured it, if the archive on this host is asked [default: this host].
    pub measured_by: Option<String>,
    /// From this time on [default: an hour before `until`].
    pub since: Option<UnixTime>,
    /// Until this time [default: now].
    pub until: Option<UnixTime>,
    /// Time between two points, from 1 s on [default: a round time that yields at most 300 points].
    pub step: Option<Span>,
}

impl Request for JobSeriesParams {
    const METHOD: &'static str = "sensor.job_series";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = JobSeries;
}

/// What a job used on a host, over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobSeries {
    /// Host that measured it.
    pub host: String,
    /// Host of the archive that answered, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Time between two points, in seconds.
    pub step_secs: f64,
    /// Curves, by the start of their measurement.
    pub curves: Vec<JobCurve>,
    /// Whether curves of other users' processes are left out.
    pub own_only: bool,
    /// Time of the oldest stored record, of half a minute, of any job. Absent if none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<UnixTime>,
    /// Number of bytes that are damaged and were skipped.
    pub damaged_bytes: u64,
}

/// Curve of a measurement: lists of equal length, with a value for each step that has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobCurve {
    /// Names of the job, the best first.
    pub jobs: Vec<String>,
    /// User id of the processes.
    pub uid: u32,
    /// User name. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What proves the job: `cgroup` or `environment`, which the user may have set.
    pub evidence: String,
    /// Start of the first process.
    pub started: UnixTime,
    /// Times of the steps: that of the last point of each.
    pub times: Vec<UnixTime>,
    /// CPUs in use, on average since the step before.
    pub cpus: Vec<f64>,
    /// Most memory, in bytes: of the job's control group if it has one, else of its processes.
    pub memory_bytes: Vec<u64>,
    /// Most living processes.
    pub processes: Vec<u64>,
    /// Most threads.
    pub threads: Vec<u64>,
    /// Bytes read from storage a second, on average since the step before.
    pub read_bytes_per_sec: Vec<f64>,
    /// Bytes written to storage a second, on average since the step before.
    pub written_bytes_per_sec: Vec<f64>,
}
