//! Curves of a job: every host that ran it is asked, then the archives for what is missing, and hosts without an answer are named.
//!
//! Not here: how curves are printed (`output::job_curves`).

use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::command::at_once::ask_each;
use ::client::Error;
use ::client::typed::{About, Answered};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::api::domain::{Host, HostState, HostsParams};
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
    /// Hosts whose curves are from an archive, each with its host.
    pub(super) archived: Vec<(String, String)>,
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
        measured_by: None,
    };
    let names = if hosts.is_empty() { hosts_of(record) } else { hosts.to_vec() };
    let answers = ask_each(target, &names, |client, host| {
        let about = About { domain: Some(job.domain.clone()), host: Some(host.to_owned()) };
        client.request(&params, &about, PATIENCE)
    });
    let lacking: Vec<String> =
        answers.iter().filter(|(_, answer)| lacks(answer, since)).map(|(host, _)| host.clone()).collect();
    let mut archived = archived(target, &job.domain, &lacking, &params);
    let mut found = Curves::default();
    for (host, answer) in answers {
        let copy = archived
            .remove(&host)
            .filter(|copy| points(&copy.typed) > answer.as_ref().map_or(0, |own| points(&own.typed)));
        found.add(job, host, copy.map_or(answer, Ok));
    }
    found
}

/// Whether an archive may have more than the answer of a host.
fn lacks(answer: &Result<Answered<JobSeries>, Error>, since: Option<Time>) -> bool {
    answer.as_ref().map_or(true, |Answered { typed, .. }| {
        typed.curves.is_empty() || typed.oldest.zip(since).is_some_and(|(oldest, since)| oldest.0 > since)
    })
}

fn points(series: &JobSeries) -> usize {
    series.curves.iter().map(|curve| curve.times.len()).sum()
}

/// Asks the archives of the domain for what these hosts measured; hosts that none has are absent.
fn archived(
    target: &Target,
    domain: &str,
    hosts: &[String],
    params: &JobSeriesParams,
) -> BTreeMap<String, Answered<JobSeries>> {
    if hosts.is_empty() {
        return BTreeMap::new();
    }
    let about = |host: Option<&String>| About { domain: Some(domain.to_owned()), host: host.cloned() };
    // Without an answer no archive is known, and the hosts are named as missing.
    let rows = Client::new(target)
        .ask(&HostsParams {}, &about(None), PATIENCE)
        .map_or(Vec::new(), |answer| answer.hosts);
    let is_archive = |row: &Host| row.archive == Some(true) && row.state == HostState::Live;
    let archives: Vec<String> = rows.into_iter().filter(is_archive).map(|row| row.host).collect();
    let answers = ask_each(target, if archives.is_empty() { &[] } else { hosts }, |client, host| {
        let params = JobSeriesParams { measured_by: Some(host.to_owned()), ..params.clone() };
        let answers = archives
            .iter()
            .filter_map(|archive| client.request(&params, &about(Some(archive)), PATIENCE).ok());
        answers.max_by_key(|answer: &Answered<JobSeries>| points(&answer.typed))
    });
    answers.into_iter().filter_map(|(host, answer)| Some((host, answer?))).collect()
}

impl Curves {
    fn add(&mut self, job: &Job, host: String, answer: Result<Answered<JobSeries>, Error>) {
        match answer {
            Ok(Answered { raw, typed }) => {
                self.step_secs = self.step_secs.max(typed.step_secs);
                self.archived.extend(typed.archive.map(|archive| (host.clone(), archive)));
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
