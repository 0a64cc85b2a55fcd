//! Queries about jobs: pages of a search, what visible jobs used over time, and all that is known of one.
//!
//! One thread for each of the three, so that a slow host delays no search. Rule: of the requests for curves and for the
//! page of a job the newest replaces the others. Not here: what is requested and when (`model::jobs`).

use super::about;
use super::ask::Client;
use super::call_events;
use super::via::Where;
use crate::feed::{JobsRequest, JobsUpdate, Update, UpdateSender};
use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use crate::jobs::curves::{HostCurve, SPARK_COLUMNS, Spark, spark};
use crate::jobs::page::{PagePart, curve_hosts};
use crate::jobs::{JobKey, Page, PageRequest, Row, SeriesRequest};
use client::Error;
use client::typed::About;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use wire::api::Span;
use wire::api::domain::HostsParams;
use wire::api::job_series::{JobSeries, JobSeriesParams};
use wire::api::jobs::{Job, JobParams, JobRecord};

/// Queue length of each thread.
const WAITING_MAX: usize = 4;
/// Least time between two points of a curve.
const STEP_MIN: Duration = Duration::from_secs(1);
/// A message where the queue of a thread is full.
const FULL: &str = "questions before it are not answered yet";

/// The threads that query jobs; they end when this is dropped.
pub(super) struct Workers {
    pages: SyncSender<PageRequest>,
    series: SyncSender<Vec<SeriesRequest>>,
    records: SyncSender<JobKey>,
}

impl Workers {
    /// Start them.
    pub(super) fn begin(address: &Where, sender: &UpdateSender) -> std::io::Result<Workers> {
        Ok(Workers {
            pages: begin("viewer-jobs", address, sender, page)?,
            series: begin("viewer-job-series", address, sender, series)?,
            records: begin("viewer-job-page", address, sender, record)?,
        })
    }

    /// Pass on a request; one that has no room is answered with an error.
    pub(super) fn ask(&self, request: JobsRequest, sender: &UpdateSender) {
        match request {
            JobsRequest::Page(request) => {
                let number = request.number;
                if self.pages.try_send(*request).is_err() {
                    send(sender, JobsUpdate::Page { number, page: Err(FULL.to_owned()) });
                }
            }
            // The window requests again what it still lacks.
            JobsRequest::Series(requests) => drop(self.series.try_send(requests)),
            JobsRequest::Record(key) => {
                if self.records.try_send(key.clone()).is_err() {
                    send(
                        sender,
                        JobsUpdate::Part { key: key.clone(), part: PagePart::Record(Err(FULL.to_owned())) },
                    );
                    send(sender, JobsUpdate::Part { key, part: PagePart::End });
                }
            }
        }
    }
}

fn send(sender: &UpdateSender, update: JobsUpdate) {
    sender.send(Update::Jobs(update));
}

/// Answers a request; returns the one that replaces it, if one arrived meanwhile.
type Act<T> = fn(&mut Client, T, &Receiver<T>, &UpdateSender) -> Option<T>;

fn begin<T: Send + 'static>(
    name: &str,
    address: &Where,
    sender: &UpdateSender,
    act: Act<T>,
) -> std::io::Result<SyncSender<T>> {
    let (requests, waiting) = sync_channel(WAITING_MAX);
    let (address, sender) = (address.clone(), sender.clone());
    let work = move || {
        let mut client = Client::new(address);
        while let Ok(request) = waiting.recv() {
            let mut next = Some(request);
            while let Some(request) = next {
                next = act(&mut client, request, &waiting, &sender);
            }
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(requests)
}

/// Parameters that name a domain; the daemon's own for an empty name.
fn of_domain(domain: &str) -> About {
    About { domain: Some(domain.to_owned()).filter(|domain| !domain.is_empty()), host: None }
}

fn page(
    client: &mut Client,
    request: PageRequest,
    _: &Receiver<PageRequest>,
    sender: &UpdateSender,
) -> Option<PageRequest> {
    let answer = client.call(&request.params, &of_domain(&request.domain));
    let page = answer.map_err(|error| text_of(&error)).map(|answer| {
        let rows = answer.jobs.into_iter().map(|job| Row::new(&request.domain, job)).collect();
        Arc::new(Page {
            rows,
            total: answer.total,
            total_is_more: answer.total_is_more,
            next: answer.next,
            own_only: answer.own_only,
            unheard: answer.unheard.iter().map(|host| shown(host).text).collect(),
        })
    });
    send(sender, JobsUpdate::Page { number: request.number, page });
    None
}

/// What visible jobs used, one after the other, until others are visible.
fn series(
    client: &mut Client,
    requests: Vec<SeriesRequest>,
    waiting: &Receiver<Vec<SeriesRequest>>,
    sender: &UpdateSender,
) -> Option<Vec<SeriesRequest>> {
    // All are of one domain.
    let mut archives = Archives::default();
    for request in requests {
        let spark = spark_of(client, &mut archives, &request);
        send(sender, JobsUpdate::Spark { key: request.key, spark: spark.map(Arc::new) });
        if let Some(newest) = waiting.try_iter().last() {
            return Some(newest);
        }
    }
    None
}

fn spark_of(client: &mut Client, archives: &mut Archives, request: &SeriesRequest) -> Option<Spark> {
    let (since, ended) = request.params.run;
    let until = ended.unwrap_or_else(crate::clock::now);
    let columns = u32::try_from(SPARK_COLUMNS).unwrap_or(u32::MAX);
    let step = (until.since(since) / columns).max(STEP_MIN);
    let params = JobSeriesParams { step: Some(Span(step)), ..request.params.params.clone() };
    let owner = request.params.owner();
    let (mut curves, mut missing) = (Vec::new(), 0);
    for host in &request.hosts {
        match archives.curves(client, host, &params, &owner) {
            Ok(found) => curves.extend(found),
            Err(Error::Unreachable(_) | Error::Lost { .. }) => return None,
            Err(Error::Mistake(_) | Error::Late { .. } | Error::Fault { .. } | Error::Answer { .. }) => {
                missing += 1
            }
        }
    }
    spark(&curves, (since, until), missing)
}

/// The archives of a domain, which are asked for once they are needed.
#[derive(Default)]
struct Archives(Option<Vec<HostName>>);

impl Archives {
    /// The curves that a host measured: its own, or what an archive has where that is more.
    fn curves(
        &mut self,
        client: &mut Client,
        host: &HostName,
        params: &JobSeriesParams,
        owner: &Job,
    ) -> Result<Vec<HostCurve>, Error> {
        let mut answer = client.call(params, &about(host));
        let may_lack = match &answer {
            Ok(own) => own.may_lack(params.since),
            // No daemon answers.
            Err(Error::Unreachable(_) | Error::Lost { .. }) => false,
            Err(Error::Mistake(_) | Error::Late { .. } | Error::Fault { .. } | Error::Answer { .. }) => true,
        };
        if may_lack {
            let archives = self.0.get_or_insert_with(|| archives_of(client, &host.domain));
            let params = JobSeriesParams { measured_by: Some(host.host.to_string()), ..params.clone() };
            let copies = archives.iter().filter_map(|archive| client.call(&params, &about(archive)).ok());
            let most = copies.max_by_key(JobSeries::points);
            let own = answer.as_ref().map_or(0, JobSeries::points);
            answer = most.filter(|copy| copy.points() > own).map_or(answer, Ok);
        }
        let JobSeries { archive, curves, .. } = answer?;
        let own = curves.into_iter().filter(|curve| curve.is_of(owner));
        Ok(own.map(|curve| HostCurve::new(&host.host, archive.as_deref(), curve)).collect())
    }
}

/// The archives of a domain; none without an answer.
fn archives_of(client: &mut Client, domain: &str) -> Vec<HostName> {
    let rows = client.call(&HostsParams {}, &of_domain(domain)).unwrap_or_default();
    rows.live_archives().map(|archive| HostName::new(domain, archive)).collect()
}

/// The page of a job, part by part, until another is opened.
fn record(
    client: &mut Client,
    key: JobKey,
    waiting: &Receiver<JobKey>,
    sender: &UpdateSender,
) -> Option<JobKey> {
    let part = |part: PagePart| send(sender, JobsUpdate::Part { key: key.clone(), part });
    let answer = client.call(&JobParams { job: key.id.to_string() }, &of_domain(&key.domain));
    match answer.map(Arc::new) {
        Ok(record) => {
            part(PagePart::Record(Ok(Arc::clone(&record))));
            let lines = call_events::lines(client, &record.job.id, &key.domain);
            part(PagePart::Lines(lines.map_err(|error| text_of(&error))));
            let other = hosts(client, &key, &record, waiting, &part);
            if other.is_some() {
                return other;
            }
        }
        Err(error) => part(PagePart::Record(Err(text_of(&error)))),
    }
    part(PagePart::End);
    None
}

/// The curves of its hosts; returns the job that is opened meanwhile.
fn hosts(
    client: &mut Client,
    key: &JobKey,
    record: &JobRecord,
    waiting: &Receiver<JobKey>,
    part: &dyn Fn(PagePart),
) -> Option<JobKey> {
    let params = JobSeriesParams::of_last_run(record);
    let mut archives = Archives::default();
    for host in curve_hosts(record, &key.domain) {
        let curves = archives.curves(client, &host, &params, &record.job);
        // Where there is no sensor, nothing is missing.
        let is_measured = record.usage.iter().any(|usage| *usage.host == *host.host);
        if curves.is_ok() || is_measured {
            let curves = curves.map_err(|error| text_of(&error));
            part(PagePart::Curves { host: shown(&host.host).text, curves });
        }
        if let Some(newest) = waiting.try_iter().last() {
            return Some(newest);
        }
    }
    None
}

/// Text of an error: of a refusal its reason alone.
fn text_of(error: &Error) -> String {
    match error {
        Error::Fault { message, .. } => message.clone(),
        Error::Unreachable(_)
        | Error::Mistake(_)
        | Error::Lost { .. }
        | Error::Late { .. }
        | Error::Answer { .. } => error.to_string(),
    }
}
