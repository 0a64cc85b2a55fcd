//! Curves of a job: every host that ran it is asked, then the archives for what is missing, and hosts without an answer are named.
//!
//! Not here: how curves are printed (`output::job_curves`).

use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::command::at_once::ask_each;
use ::client::Error;
use ::client::typed::{About, Answered};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::domain::HostsParams;
use wire::api::job_series::{JobCurve, JobSeries, JobSeriesParams, hosts_of};
use wire::api::jobs::{Job, JobRecord};
use wire::api::{Span, UnixTime};
use wire::time::Time;

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
    let last_run = JobSeriesParams::of_last_run(record);
    let params = JobSeriesParams {
        since: wanted.since.map(UnixTime).or(last_run.since),
        until: wanted.until.map(UnixTime).or(last_run.until),
        step: wanted.step.map(Span),
        ..last_run
    };
    let names = if hosts.is_empty() { hosts_of(record) } else { hosts.to_vec() };
    let answers = ask_each(target, &names, |client, host| {
        let about = About { domain: Some(job.domain.clone()), host: Some(host.to_owned()) };
        client.request(&params, &about, PATIENCE)
    });
    let lacking: Vec<String> = answers
        .iter()
        .filter(|(_, answer)| answer.as_ref().map_or(true, |answer| answer.typed.may_lack(params.since)))
        .map(|(host, _)| host.clone())
        .collect();
    let mut archived = archived(target, &job.domain, &lacking, &params);
    let mut found = Curves::default();
    for (host, answer) in answers {
        let copy = archived
            .remove(&host)
            .filter(|copy| copy.typed.points() > answer.as_ref().map_or(0, |own| own.typed.points()));
        found.add(job, host, copy.map_or(answer, Ok));
    }
    found
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
    let rows = Client::new(target).ask(&HostsParams {}, &about(None), PATIENCE).unwrap_or_default();
    let archives: Vec<String> = rows.live_archives().map(str::to_owned).collect();
    let answers = ask_each(target, if archives.is_empty() { &[] } else { hosts }, |client, host| {
        let params = JobSeriesParams { measured_by: Some(host.to_owned()), ..params.clone() };
        let answers = archives
            .iter()
            .filter_map(|archive| client.request(&params, &about(Some(archive)), PATIENCE).ok());
        answers.max_by_key(|answer: &Answered<JobSeries>| answer.typed.points())
    });
    answers.into_iter().filter_map(|(host, answer)| Some((host, answer?))).collect()
}

impl Curves {
    fn add(&mut self, job: &Job, host: String, answer: Result<Answered<JobSeries>, Error>) {
        match answer {
            Ok(Answered { raw, typed }) => {
                self.step_secs = self.step_secs.max(typed.step_secs);
                self.archived.extend(typed.archive.map(|archive| (host.clone(), archive)));
                let own = typed.curves.into_iter().filter(|curve| curve.is_of(job));
                self.curves.extend(own.map(|curve| (host.clone(), curve)));
                self.raw.push(raw);
            }
            Err(error) => self.missing.push(format!("{host}: {error}")),
        }
    }
}
