//! Method `sensor.import_jobs`: jobs of earlier years, as accounting files state them.
//!
//! Pure. Not here: how a line of such a file becomes a job (`log_filters`), how a job becomes a call ([`record`]).

pub mod record;

use super::jobs::{Job, JobRun};
use super::{Effect, Request, Subject};
use crate::event::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most jobs of one call.
pub const JOBS_MAX: usize = 1_000;

/// Store jobs that have ended, as accounting files of earlier years state them.
///
/// Each job is stored, completes what is known of a job with its number and of its time, or is refused by itself, with the
/// reason; repeating the call changes nothing. Only for root and operators, over the local socket of the sensor that
/// represents the domain. Fault unavailable: this sensor does not represent it. Fault refused: the caller may not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ImportJobsParams {
    /// Name of the file or program that the jobs are from; `jobs.get` shows it.
    pub source: String,
    /// Jobs, at most 1,000, each a structure of `job` (fields as in the answer of jobs.search; `id`, `outcome` and `ended` are
    /// required), `aliases` (its other ids) and `runs` (its earlier runs).
    pub jobs: Vec<ImportedJob>,
    /// Answer what would be done, and store nothing.
    pub dry_run: bool,
    /// Replace what was imported of a job before, as of another time zone; what logs state remains.
    pub replace: bool,
}

impl Request for ImportJobsParams {
    const METHOD: &'static str = "sensor.import_jobs";
    const EFFECT: Effect = Effect::Changes;
    const SUBJECT: Subject = Subject::Daemon;
    type Answer = JobsImported;
}

/// Job to be stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ImportedJob {
    /// The job, with the fields of `jobs.search`. `id`, `outcome` and `ended` are required; `domain`, `product`, `state`,
    /// `usage` and `findings` are not used.
    pub job: Job,
    /// Other ids of the job: of an array's task that by the number it has in logs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its earlier runs, the oldest first, if it was requeued.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<JobRun>,
}

/// What became of imported jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobsImported {
    /// Number of jobs that were not known, and are stored now.
    pub stored: u64,
    /// Number of jobs that were known, and have more fields now, or others with `replace`.
    pub completed: u64,
    /// Number of jobs that were known with all their fields.
    pub known: u64,
    /// Jobs that are not stored.
    pub refused: Vec<RefusedJob>,
    /// Number of further jobs that have room.
    pub room: u64,
}

/// Job that is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RefusedJob {
    /// Its id, as given.
    pub id: String,
    /// Kind of the reason: `invalid`, `too_old`, `no_room` or `shifted`.
    pub kind: String,
    /// The reason.
    pub why: String,
}

words!(
    /// Why a job is not stored.
    Refused {
        /// A value is missing or impossible.
        Invalid = "invalid",
        /// It ended before the time for which calls are stored.
        TooOld = "too_old",
        /// The space for calls is used up.
        NoRoom = "no_room",
        /// It is known with times that differ by hours, as of another time zone.
        Shifted = "shifted",
    }
);

impl RefusedJob {
    /// A job that is refused.
    #[must_use]
    pub fn new(id: &str, kind: Refused, why: String) -> RefusedJob {
        RefusedJob { id: id.to_owned(), kind: kind.as_str().to_owned(), why }
    }
}
