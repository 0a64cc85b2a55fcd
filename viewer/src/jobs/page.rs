//! Page of a job: its record, the lines of its logs, and what it used over time on each host.
//!
//! Pure. Rule: the parts of an answer arrive one by one; a part that could not be queried leaves what is there. Not
//! here: how they are queried (`live::jobs`), how the page is drawn (`app::jobs`).

use super::curves::HostCurve;
use super::{JobKey, PAGE_HOSTS_MAX};
use crate::flock::sweep::HostName;
use crate::served::Event;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::api::findings::Finding;
use wire::api::job_series::hosts_of;
use wire::api::jobs::JobRecord;
use wire::time::Time;

/// Line of a log, as an event, with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    pub id: String,
    pub event: Event,
}

/// A part of an answer about a job.
#[derive(Clone, Debug, PartialEq)]
pub enum PagePart {
    Record(Result<Arc<JobRecord>, String>),
    Lines(Result<Vec<LogLine>, String>),
    /// What a host measured, or why it did not answer.
    Curves {
        host: String,
        curves: Result<Vec<HostCurve>, String>,
    },
    /// All parts have arrived.
    End,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    pub key: JobKey,
    pub record: Option<Arc<JobRecord>>,
    /// Why the record could not be queried.
    pub error: Option<String>,
    /// Its events by time; why they could not be queried.
    pub lines: Result<Vec<LogLine>, String>,
    /// Curves by host.
    pub curves: BTreeMap<String, Vec<HostCurve>>,
    /// Hosts that did not answer, and why.
    pub missing: BTreeMap<String, String>,
}

impl JobPage {
    #[must_use]
    pub fn new(key: JobKey) -> JobPage {
        JobPage {
            key,
            record: None,
            error: None,
            lines: Ok(Vec::new()),
            curves: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    pub fn take(&mut self, part: PagePart) {
        match part {
            PagePart::Record(Ok(record)) => (self.record, self.error) = (Some(record), None),
            PagePart::Record(Err(error)) => self.error = Some(error),
            PagePart::Lines(Ok(lines)) => self.lines = Ok(lines),
            PagePart::Lines(Err(error)) => {
                if self.lines.as_ref().is_ok_and(Vec::is_empty) {
                    self.lines = Err(error);
                }
            }
            PagePart::Curves { host, curves: Ok(curves) } => {
                self.missing.remove(&host);
                self.curves.insert(host, curves);
            }
            PagePart::Curves { host, curves: Err(error) } => {
                self.missing.insert(host, error);
            }
            PagePart::End => {}
        }
    }

    /// The time of its last run, until now of one that runs.
    #[must_use]
    pub fn range(&self, now: Time) -> Option<(Time, Time)> {
        let record = self.record.as_ref()?;
        let measured = || record.usage.iter().map(|usage| usage.started.0).min();
        let from = record.job.started.map(|time| time.0).or_else(measured)?;
        let to = record.job.ended.map_or(now, |time| time.0);
        (to > from).then_some((from, to))
    }

    /// CPUs that each host of the job has of its allocation, on average.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // CPUs are few.
    pub fn cpus_of_host(&self) -> Option<f64> {
        let job = &self.record.as_ref()?.job;
        let hosts = job.nodes.filter(|nodes| *nodes > 0).unwrap_or(job.hosts.len() as u64);
        job.cpus.filter(|_| hosts > 0).map(|cpus| cpus as f64 / hosts as f64)
    }

    /// The lines that prove a finding.
    #[must_use]
    pub fn evidence(&self, finding: &Finding) -> Vec<&LogLine> {
        let lines = self.lines.iter().flatten();
        lines.filter(|line| finding.events.contains(&line.id)).collect()
    }
}

/// The hosts to query for the curves of a job.
#[must_use]
pub fn curve_hosts(record: &JobRecord, domain: &str) -> Vec<HostName> {
    let has_run = record.job.started.is_some() || !record.usage.is_empty();
    if record.job.is_reduced || !has_run {
        return Vec::new();
    }
    hosts_of(record).iter().take(PAGE_HOSTS_MAX).map(|host| HostName::new(domain, host)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;
    use wire::api::jobs::Job;
    use wire::event::Kind;

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn page() -> JobPage {
        let hosts = vec!["wn01".to_owned(), "wn02".to_owned()];
        let job = Job { started: at(10), cpus: Some(8), hosts, ..Job::default() };
        let mut page = JobPage::new(JobKey::new("Alpha", "slurm:17"));
        page.take(PagePart::Record(Ok(Arc::new(JobRecord { job, ..JobRecord::default() }))));
        page
    }

    #[test]
    fn what_is_there_remains_when_a_part_fails() {
        let mut page = page();
        let curves = || PagePart::Curves { host: "wn01".to_owned(), curves: Ok(Vec::new()) };
        page.take(curves());
        let error = || "no daemon answers".to_owned();
        page.take(PagePart::Record(Err(error())));
        page.take(PagePart::Curves { host: "wn01".to_owned(), curves: Err(error()) });
        assert!(
            page.record.is_some()
                && page.error.is_some()
                && page.curves.len() == 1
                && page.missing.len() == 1
        );
        page.take(curves());
        assert!(page.missing.is_empty());
        page.take(PagePart::Lines(Err(error())));
        assert!(page.lines.is_err(), "nothing was there");
    }

    #[test]
    fn a_page_has_the_time_of_the_run_and_the_share_of_a_host() {
        let page = page();
        let secs = |secs: i64| Time::from_micros(secs * 1_000_000);
        assert_eq!(page.range(secs(70)), Some((secs(10), secs(70))));
        assert_eq!(page.range(secs(5)), None, "of a clock that is ahead");
        assert_eq!(page.cpus_of_host(), Some(4.0));
        let record = page.record.as_deref().expect("it is there");
        assert_eq!(curve_hosts(record, "Alpha").len(), 2);
        let reduced = JobRecord { job: record.job.clone().reduced(), ..JobRecord::default() };
        assert!(curve_hosts(&reduced, "Alpha").is_empty());
    }

    #[test]
    fn the_evidence_of_a_finding_are_the_lines_that_it_names() {
        let mut page = page();
        let line = |id: &str| LogLine {
            id: id.to_owned(),
            event: Event {
                time: Time::from_micros(0),
                kind: Kind::JobEnd,
                from: String::new(),
                to: String::new(),
                outcome: String::new(),
                source: String::new(),
                attributes: Vec::new(),
            },
        };
        page.take(PagePart::Lines(Ok(vec![line("1-1-0"), line("1-2-0")])));
        let finding = Finding { events: vec!["1-2-0".to_owned()], ..Finding::default() };
        let found: Vec<&str> = page.evidence(&finding).iter().map(|line| line.id.as_str()).collect();
        assert_eq!(found, ["1-2-0"]);
    }
}
