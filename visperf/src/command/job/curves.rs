//! Curves of a job: every host that ran it is asked, and those that did not answer are named.
//!
//! Not here: how curves are printed (`output::job_curves`).

use crate::client::PATIENCE;
use crate::client::target::Target;
use crate::command::at_once::ask_each;
use ::client::Error;
use ::client::typed::{About, Answered};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::api::job_series::{JobCurve, JobSeries, JobSeriesParams};
use wire::api::jobs::{Job, JobRecord};
use wire::api::{Span, UnixTime};
use wire::time::Time;

/// The clocks of a host and of the middleware's logs may differ by so much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// What is asked of each host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) since: Option<Time>,
    pub(super) until: Option<Time>,
    pub(super) step: Option<Duration>,
}

/// Curves of a job.
#[derive(Debug, Default)]
pub(super) struct Curves {
    /// Each curve with its host.
    pub(super) curves: Vec<(String, JobCurve)>,
    /// Answers of the hosts, as they came.
    pub(super) raw: Vec<Value>,
    /// Time between two points, in seconds.
    pub(super) step_secs: f64,
    /// Hosts that did not answer, and why.
    pub(super) missing: Vec<String>,
}

/// Asks the hosts of a job; `hosts` are those to ask, or all of them if there are none.
pub(super) fn read(target: &Target, record: &JobRecord, hosts: &[String], wanted: Wanted) -> Curves {
    let job = &record.job;
    let (since, until) = span(record, wanted);
    let params = JobSeriesParams {
        job: format!("{}:{}", job.product, job.job),
        since: since.map(UnixTime),
        until: until.map(UnixTime),
        step: wanted.step.map(Span),
    };
    let names = if hosts.is_empty() { hosts_of(record) } else { hosts.to_vec() };
    let answers = ask_each(target, &names, |client, host| {
        let about = About { domain: Some(job.domain.clone()), host: Some(host.to_owned()) };
        client.request(&params, &about, PATIENCE)
    });
    let mut found = Curves::default();
    for (host, answer) in answers {
        found.add(job, host, answer);
    }
    found
}

impl Curves {
    fn add(&mut self, job: &Job, host: String, answer: Result<Answered<JobSeries>, Error>) {
        match answer {
            Ok(Answered { raw, typed }) => {
                self.step_secs = self.step_secs.max(typed.step_secs);
                let own = typed.curves.into_iter().filter(|curve| is_of(job, curve));
                self.curves.extend(own.map(|curve| (host.clone(), curve)));
                self.raw.push(raw);
            }
            Err(error) => self.missing.push(format!("{host}: {error}")),
        }
    }
}

/// Hosts on which it was measured, or which the middleware states, if none has stated a measurement yet.
fn hosts_of(record: &JobRecord) -> Vec<String> {
    let measured: BTreeSet<&String> = record.usage.iter().map(|usage| &usage.host).collect();
    match measured.is_empty() {
        true => record.job.hosts.clone(),
        false => measured.into_iter().cloned().collect(),
    }
}

/// The time of the last run, unless another is wanted.
fn span(record: &JobRecord, wanted: Wanted) -> (Option<Time>, Option<Time>) {
    let measured = || record.usage.iter().map(|usage| usage.started.0).min();
    let started = record.job.started.map(|time| time.0).or_else(measured);
    let since = wanted.since.or_else(|| started.map(|time| time.minus(CLOCKS_DIFFER)));
    let ended = record.job.ended.map(|time| time.0.plus(CLOCKS_DIFFER));
    (since, wanted.until.or(ended))
}

/// Whether a curve is of the job's user: another user's process may claim the job.
fn is_of(job: &Job, curve: &JobCurve) -> bool {
    let is_uid = job.uid == Some(u64::from(curve.uid)) || job.user == curve.uid.to_string();
    curve.evidence == "cgroup"
        || is_uid
        || curve.user.as_deref() == Some(job.user.as_str())
        || (job.user.is_empty() && job.uid.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::job_usage::HostUsage;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    #[test]
    fn the_hosts_that_measured_it_are_asked_for_its_last_run() {
        let usage = |host: &str, secs| HostUsage {
            host: host.to_owned(),
            started: UnixTime(at(secs)),
            ..HostUsage::default()
        };
        let job = Job { hosts: vec!["wn01".to_owned(), "wn02".to_owned()], ..Job::default() };
        let record = JobRecord { job, ..JobRecord::default() };
        assert_eq!(hosts_of(&record), ["wn01", "wn02"]);
        assert_eq!(span(&record, Wanted::default()), (None, None));
        let usage = vec![usage("wn02.site", 60), usage("wn02.site", 30), usage("wn01.site", 40)];
        let record = JobRecord { usage, ..record };
        assert_eq!(hosts_of(&record), ["wn01.site", "wn02.site"]);
        assert_eq!(span(&record, Wanted::default()), (Some(at(25)), None));
        let (started, ended) = (Some(UnixTime(at(100))), Some(UnixTime(at(200))));
        let record = JobRecord { job: Job { started, ended, ..record.job.clone() }, ..record };
        assert_eq!(span(&record, Wanted::default()), (Some(at(95)), Some(at(205))));
        let wanted = Wanted { since: Some(at(110)), ..Wanted::default() };
        assert_eq!(span(&record, wanted), (Some(at(110)), Some(at(205))));
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
        assert!(is_of(&job, &curve(1000, Some("ann"), "environment")));
        assert!(!is_of(&job, &curve(1001, Some("eve"), "environment")));
        assert!(!is_of(&job, &curve(1001, None, "environment")));
        assert!(is_of(&job, &curve(0, Some("root"), "cgroup")), "the middleware assigned it");
        assert!(is_of(&Job { uid: Some(1000), ..job }, &curve(1000, None, "environment")));
        assert!(is_of(&Job::default(), &curve(1000, None, "environment")), "whose it is is not known");
    }
}
