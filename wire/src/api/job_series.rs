//! Method `sensor.job_series`: what a job used on a host, over time.
//!
//! Pure. Not here: sums over its life ([`super::job_usage`]).

use super::jobs::{Job, JobRecord};
use super::{Effect, Request, Span, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most points of an answer.
pub const POINTS_MAX: usize = 100_000;

/// The clocks of a host and of the middleware's logs may differ by so much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

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

impl JobSeriesParams {
    /// What a job used in its last run.
    #[must_use]
    pub fn of_last_run(record: &JobRecord) -> JobSeriesParams {
        let job = &record.job;
        let measured = || record.usage.iter().map(|usage| usage.started).min();
        let since = job.started.or_else(measured).map(|time| UnixTime(time.0.minus(CLOCKS_DIFFER)));
        let until = job.ended.map(|time| UnixTime(time.0.plus(CLOCKS_DIFFER)));
        let job = format!("{}:{}", job.product, job.job);
        JobSeriesParams { job, since, until, ..JobSeriesParams::default() }
    }
}

/// Hosts on which a job was measured, or which the middleware states, if none has stated a measurement yet.
#[must_use]
pub fn hosts_of(record: &JobRecord) -> Vec<String> {
    let measured: BTreeSet<&String> = record.usage.iter().map(|usage| &usage.host).collect();
    match measured.is_empty() {
        true => record.job.hosts.clone(),
        false => measured.into_iter().cloned().collect(),
    }
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

impl JobSeries {
    /// Whether an archive may have more than this answer of a host: it has no curve, or what it stores begins after this time.
    #[must_use]
    pub fn may_lack(&self, since: Option<UnixTime>) -> bool {
        self.curves.is_empty() || self.oldest.zip(since).is_some_and(|(oldest, since)| oldest > since)
    }

    /// Returns the number of points of all curves.
    #[must_use]
    pub fn points(&self) -> usize {
        self.curves.iter().map(|curve| curve.times.len()).sum()
    }
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

impl JobCurve {
    /// Whether it is of the job's user: another user's process may claim the job.
    #[must_use]
    pub fn is_of(&self, job: &Job) -> bool {
        let is_uid = job.uid == Some(u64::from(self.uid)) || job.user == self.uid.to_string();
        self.evidence == "cgroup"
            || is_uid
            || self.user.as_deref() == Some(job.user.as_str())
            || (job.user.is_empty() && job.uid.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::job_usage::HostUsage;
    use crate::time::Time;

    fn at(secs: i64) -> UnixTime {
        UnixTime(Time::from_micros(secs * 1_000_000))
    }

    #[test]
    fn the_hosts_that_measured_it_are_asked_for_its_last_run() {
        let usage =
            |host: &str, secs| HostUsage { host: host.to_owned(), started: at(secs), ..HostUsage::default() };
        let span = |record: &JobRecord| {
            let params = JobSeriesParams::of_last_run(record);
            (params.since, params.until)
        };
        let job = Job { hosts: vec!["wn01".to_owned(), "wn02".to_owned()], ..Job::default() };
        let record = JobRecord { job, ..JobRecord::default() };
        assert_eq!(hosts_of(&record), ["wn01", "wn02"]);
        assert_eq!(span(&record), (None, None));
        let usage = vec![usage("wn02.site", 60), usage("wn02.site", 30), usage("wn01.site", 40)];
        let record = JobRecord { usage, ..record };
        assert_eq!(hosts_of(&record), ["wn01.site", "wn02.site"]);
        assert_eq!(span(&record), (Some(at(25)), None));
        let (started, ended) = (Some(at(100)), Some(at(200)));
        let record = JobRecord { job: Job { started, ended, ..record.job.clone() }, ..record };
        assert_eq!(span(&record), (Some(at(95)), Some(at(205))));
    }

    #[test]
    fn an_archive_may_have_more_than_a_host_that_has_nothing_or_begins_later() {
        let curve = |points| JobCurve { times: vec![at(7); points], ..JobCurve::default() };
        let series =
            JobSeries { curves: vec![curve(3), curve(2)], oldest: Some(at(50)), ..JobSeries::default() };
        assert_eq!(series.points(), 5);
        assert!(series.may_lack(Some(at(49))) && !series.may_lack(Some(at(50))) && !series.may_lack(None));
        assert!(JobSeries { curves: Vec::new(), ..series }.may_lack(None));
    }

    #[test]
    fn what_other_users_claim_is_left_out() {
        let curve = |uid, user: Option<&str>, evidence: &str| JobCurve {
            uid,
            user: user.map(str::to_owned),
            evidence: evidence.to_owned(),
            ..JobCurve::default()
        };
        let job = Job { user: "ann".to_owned(), ..Job::default() };
        assert!(curve(1000, Some("ann"), "environment").is_of(&job));
        assert!(!curve(1001, Some("eve"), "environment").is_of(&job));
        assert!(!curve(1001, None, "environment").is_of(&job));
        assert!(curve(0, Some("root"), "cgroup").is_of(&job), "the middleware assigned it");
        assert!(curve(1000, None, "environment").is_of(&Job { uid: Some(1000), ..job }));
        assert!(curve(1000, None, "environment").is_of(&Job::default()), "whose it is is not known");
    }
}
