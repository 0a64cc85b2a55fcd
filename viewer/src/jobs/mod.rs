//! Jobs as the tab of jobs shows them: rows of the table, and what is queried for them.
//!
//! Pure. Rule: answers are untrusted: texts are sanitized and lists bounded when a row is made. Not here: queries
//! (`live::jobs`), what is loaded and when (`model::jobs`), the tab (`app::jobs`).

pub mod completion;
pub mod curves;
pub mod page;
pub mod rows;
pub mod search;
pub mod sort;

use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use compact_str::CompactString;
use std::sync::Arc;
use wire::api::UnixTime;
use wire::api::job_series::JobSeriesParams;
use wire::api::jobs::{Job, JobRecord, JobsSearchParams};
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Most jobs that are loaded.
pub const ROWS_MAX: usize = 100_000;
/// Jobs on a page: an answer of some hundred kilobytes.
pub const PAGE: u64 = 1_000;
/// Hosts of a job whose series are queried for a row of the table.
pub const ROW_HOSTS_MAX: usize = 8;
/// Hosts of a job whose series are queried for its page.
pub const PAGE_HOSTS_MAX: usize = 64;

/// A job, by its domain and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    pub domain: Arc<str>,
    pub id: CompactString,
}

impl JobKey {
    #[must_use]
    pub fn new(domain: &str, id: &str) -> JobKey {
        JobKey { domain: domain.into(), id: id.into() }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub key: JobKey,
    /// Its number at the middleware, for the order of numbers.
    pub number: u64,
    pub name: CompactString,
    pub user: CompactString,
    pub account: CompactString,
    pub queue: CompactString,
    pub state: State,
    pub outcome: Option<Outcome>,
    pub reason: CompactString,
    pub submitted: Option<Time>,
    pub started: Option<Time>,
    pub ended: Option<Time>,
    pub cpus: Option<u64>,
    /// Measured CPU time in seconds, and as a share of that of the allocated CPUs.
    pub cpu_secs: Option<f64>,
    pub cpu_efficiency: Option<f64>,
    pub peak_memory_bytes: Option<u64>,
    /// The first hosts of its last run, and their number.
    pub hosts: Box<[CompactString]>,
    pub hosts_count: usize,
    /// Kinds of its findings.
    pub findings: CompactString,
    /// Whether it belongs to another user, and what only that user may see is left out.
    pub is_reduced: bool,
    /// What to ask the hosts for; `None` if there is nothing to ask: it has not started, or it is of another user.
    pub series: Option<Box<SeriesParams>>,
}

/// What hosts are asked for about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesParams {
    pub params: JobSeriesParams,
    /// Start and end of its last run; no end while it runs.
    pub run: (Time, Option<Time>),
    pub user: CompactString,
    pub uid: Option<u64>,
}

impl SeriesParams {
    /// The user, as curves are compared with it.
    #[must_use]
    pub fn owner(&self) -> Job {
        Job { user: self.user.to_string(), uid: self.uid, ..Job::default() }
    }
}

impl Row {
    /// The row of a job of this domain.
    #[must_use]
    pub fn new(domain: &Arc<str>, job: Job) -> Row {
        let text = |text: &str| CompactString::from(shown(text).text);
        let time = |time: Option<UnixTime>| time.map(|time| time.0);
        let number: String = job.job.chars().take_while(char::is_ascii_digit).collect();
        let record = JobRecord { job, ..JobRecord::default() };
        let (started, ended) = (time(record.job.started), time(record.job.ended));
        let has_series = !record.job.is_reduced && !record.job.hosts.is_empty();
        let series = started.filter(|_| has_series).map(|started| {
            let params = JobSeriesParams::of_last_run(&record);
            let (user, uid) = (record.job.user.as_str().into(), record.job.uid);
            Box::new(SeriesParams { params, run: (started, ended), user, uid })
        });
        let job = record.job;
        let kinds: Vec<&str> = job.findings.iter().map(|finding| finding.kind.as_str()).collect();
        Row {
            key: JobKey { domain: Arc::clone(domain), id: text(&job.id) },
            number: number.parse().unwrap_or(u64::MAX),
            name: text(&job.name),
            user: text(&job.user),
            account: text(&job.account),
            queue: text(&job.queue),
            state: job.state,
            outcome: job.outcome,
            reason: text(&job.reason),
            submitted: time(job.submitted),
            started,
            ended,
            cpus: job.cpus,
            cpu_secs: job.usage.map(|usage| usage.cpu_secs),
            cpu_efficiency: job.usage.and_then(|usage| usage.cpu_efficiency),
            peak_memory_bytes: job.usage.map(|usage| usage.peak_memory_bytes),
            hosts: job.hosts.iter().take(ROW_HOSTS_MAX).map(|host| text(host)).collect(),
            hosts_count: job.hosts.len(),
            findings: text(&kinds.join(", ")),
            is_reduced: job.is_reduced,
            series,
        }
    }

    /// Seconds between submission and start; so far while it waits.
    #[must_use]
    pub fn waited_secs(&self, now: Time) -> Option<f64> {
        between(self.submitted?, self.started.or((self.state == State::Waiting).then_some(now))?)
    }

    /// Seconds between start and end; so far while it runs.
    #[must_use]
    pub fn ran_secs(&self, now: Time) -> Option<f64> {
        between(self.started?, self.ended.or((self.state == State::Running).then_some(now))?)
    }

    /// What is asked of its hosts.
    #[must_use]
    pub fn series_request(&self) -> Option<SeriesRequest> {
        let params = self.series.clone()?;
        let hosts = self.hosts.iter().map(|host| HostName::new(&self.key.domain, host)).collect();
        Some(SeriesRequest { key: self.key.clone(), hosts, params: *params })
    }
}

/// Seconds from one time to another; none if that is earlier, as of a clock that is ahead.
fn between(from: Time, to: Time) -> Option<f64> {
    Some(to.since(from).as_secs_f64())
}

/// Query of a page of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRequest {
    /// Number of the query: an answer to an earlier search is dropped.
    pub number: u64,
    pub domain: Arc<str>,
    pub params: JobsSearchParams,
}

/// A page of jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub rows: Vec<Row>,
    pub total: u64,
    pub total_is_more: bool,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// Whether only the caller's own jobs were searched.
    pub own_only: bool,
    /// Hosts that have not reported; their jobs may be missing.
    pub unheard: Vec<String>,
}

/// Query of what a job used over time.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRequest {
    pub key: JobKey,
    pub hosts: Vec<HostName>,
    pub params: SeriesParams,
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::findings::{Finding, FindingKind};

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn job() -> Job {
        Job {
            id: "slurm:17".to_owned(),
            job: "17".to_owned(),
            product: "slurm".to_owned(),
            name: "re\u{1b}[2Jlax".to_owned(),
            state: State::Running,
            submitted: at(100),
            started: at(130),
            hosts: (0..20).map(|number| format!("wn{number:02}")).collect(),
            findings: vec![Finding::new(FindingKind::Idle, ""), Finding::new(FindingKind::LongWait, "")],
            ..Job::default()
        }
    }

    #[test]
    fn a_row_is_bounded_and_has_no_character_that_a_terminal_obeys() {
        let row = Row::new(&"Alpha".into(), job());
        assert_eq!((row.number, row.hosts.len(), row.hosts_count), (17, ROW_HOSTS_MAX, 20));
        assert_eq!((row.name.as_str(), row.findings.as_str()), ("re\u{fffd}[2Jlax", "idle, long_wait"));
        let now = Time::from_micros(190_000_000);
        assert_eq!((row.waited_secs(now), row.ran_secs(now)), (Some(30.0), Some(60.0)));
    }

    #[test]
    fn only_a_job_that_ran_and_is_the_users_own_has_a_series() {
        let request = Row::new(&"Alpha".into(), job()).series_request().expect("it ran");
        assert_eq!((request.params.params.job.as_str(), request.hosts.len()), ("slurm:17", ROW_HOSTS_MAX));
        let waiting = Job { started: None, ..job() };
        for none in [waiting, job().reduced(), Job { hosts: Vec::new(), ..job() }] {
            assert_eq!(Row::new(&"Alpha".into(), none).series_request(), None);
        }
    }
}
