//! Method `jobs.report`: what groups of jobs were given, used and lost.
//!
//! Pure. Not here: the sums (`sensor::job_sums`).

use super::jobs::JobsSearchParams;
use super::{Effect, Request, Subject, UnixTime};
use crate::event::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Groups in an answer by default.
const LIMIT_DEFAULT: u64 = 100;

words!(
    /// What a group of jobs has in common.
    #[derive(Default)]
    JobGroupBy {
        /// The user.
        #[default]
        User = "user",
        /// The account that is charged.
        Account = "account",
        /// The queue or partition.
        Queue = "queue",
        /// The name that the user gave.
        Name = "name",
        /// The middleware.
        Product = "product",
        /// The outcome.
        Outcome = "outcome",
        /// The month of the end, in UTC.
        Month = "month",
    }
);

/// Sum up jobs that have ended: how many failed and why, what they were given, used and wasted.
///
/// Other users' jobs are summed up for root and operators alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobReportParams {
    /// What the jobs of a group have in common.
    pub by: JobGroupBy,
    /// Only jobs of this user.
    pub user: Option<String>,
    /// Only jobs that are charged to this account.
    pub account: Option<String>,
    /// Only jobs of this queue or partition.
    pub queue: Option<String>,
    /// Only jobs to which their user gave this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only jobs that ended at this time or later.
    pub since: Option<UnixTime>,
    /// Only jobs that ended at this time or earlier.
    pub until: Option<UnixTime>,
    /// Maximum number of groups: those with most allocated CPU time.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
}

impl Default for JobReportParams {
    fn default() -> JobReportParams {
        JobReportParams {
            by: JobGroupBy::default(),
            user: None,
            account: None,
            queue: None,
            name: None,
            since: None,
            until: None,
            limit: LIMIT_DEFAULT,
        }
    }
}

impl Request for JobReportParams {
    const METHOD: &'static str = "jobs.report";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = JobReport;
}

impl JobReportParams {
    /// The search for a page of the jobs.
    #[must_use]
    pub fn search(&self, limit: u64, cursor: Option<String>) -> JobsSearchParams {
        JobsSearchParams {
            user: self.user.clone(),
            account: self.account.clone(),
            queue: self.queue.clone(),
            name: self.name.clone(),
            state: Some(crate::call::State::Ended),
            since: self.since,
            until: self.until,
            limit,
            cursor,
            ..JobsSearchParams::default()
        }
    }
}

/// Sums of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobReport {
    /// Domain of the jobs.
    pub domain: String,
    /// Groups, those with most allocated CPU time first.
    pub groups: Vec<JobGroup>,
    /// Number of groups that `limit` leaves out.
    pub left_out: u64,
    /// Sum of all groups, also of those that are left out.
    pub total: JobGroup,
    /// End of the oldest job that was summed up. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<UnixTime>,
    /// Whether there are older jobs that fit, and that were too many to be read. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Whether only the caller's own jobs were summed up. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_only: bool,
    /// Latest time of the oldest stored job. Absent if none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_since: Option<UnixTime>,
    /// Hosts of the domain that are `last_seen` and have not reported to this representative; their jobs may
    /// be missing. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// Sum of a group of jobs, each by its last run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobGroup {
    /// What they have in common; empty if it is not known.
    pub key: String,
    /// Number of jobs.
    pub jobs: u64,
    /// Of those the ones that ended well.
    pub ok: u64,
    /// That failed.
    pub failed: u64,
    /// That ran until their time limit.
    pub timeout: u64,
    /// Whose host failed.
    pub node_fail: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// Whose outcome is not known.
    pub finished: u64,
    /// CPU time of the allocated CPUs of those whose CPUs and times are known, in seconds.
    pub allocated_cpu_secs: f64,
    /// The part of it of jobs that failed, ran until their time limit, or whose host failed, in seconds.
    pub failed_cpu_secs: f64,
    /// Number of jobs whose usage was measured on all their hosts.
    pub measured: u64,
    /// CPU time that these used, in seconds.
    pub used_cpu_secs: f64,
    /// CPU time of their allocated CPUs that they did not use, in seconds.
    pub wasted_cpu_secs: f64,
    /// Number of jobs with each kind of finding, the most frequent first.
    pub findings: Vec<FindingCount>,
}

/// Number of jobs with a kind of finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FindingCount {
    /// Kind of the finding, as of a job.
    pub kind: String,
    /// Number of jobs.
    pub jobs: u64,
}
