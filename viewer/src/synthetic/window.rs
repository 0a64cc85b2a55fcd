//! Windows on synthetic grids: a source that is not queried, and the processes and metrics of its hosts.
//!
//! Rule: all data is in the window from the start; requests for it are answered here or by nothing.

use super::{figures, flock, jobs, time_f};
use crate::app::App;
use crate::feed::{Feed, JobsRequest, JobsUpdate, Request, Update, WakeReason, feed};
use crate::flock::sweep::HostName;
use crate::grid::place::HostState;
use crate::jobs::page::PagePart;
use crate::jobs::{JobKey, Page, PageRequest};
use crate::model::Source;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Hosts with processes: as many as the flock shows of them.
const HOSTS: usize = 16;
/// Processes of a host, and the part of the synthetic hour that sweeps cover, one a second.
const PROCESSES: u32 = 48;
const FROM_SECS: f64 = 1_740.0;
const SWEEPS: u32 = 240;
const STEP: Duration = Duration::from_secs(1);

/// A log: its calls, reports and processes are shown at all times, but no metrics.
#[must_use]
pub fn log() -> Source {
    Source::Log("synthetic grid".to_owned())
}

/// A daemon: metrics of its hosts are shown.
#[must_use]
pub fn daemon() -> Source {
    Source::Daemon("127.0.0.1:7317".to_owned())
}

/// Show the processes of the first live hosts, in the middle of the synthetic hour.
pub fn show_processes(app: &mut App) {
    let grid = app.model().placed();
    let live = grid.servers().filter(|(_, place)| place.state == HostState::Live).take(HOSTS);
    let hosts: Vec<HostName> = live.map(|(id, _)| grid.host_name(id)).collect();
    app.show_flock(flock::flock(&hosts, PROCESSES, time_f(FROM_SECS), SWEEPS, STEP));
}

/// Show the metrics of these hosts, received at `now`.
pub fn show_figures(app: &mut App, hosts: &[HostName], now: Time) {
    for host in hosts {
        let series = Arc::new(figures::host(host));
        app.take(now, Update::Series { host: host.clone(), series, trouble: None });
    }
}

/// The query for a page of jobs that is queued, if there is one.
#[must_use]
pub fn jobs_query(feed: &Feed) -> Option<PageRequest> {
    while let WakeReason::Requested(request) = feed.rest(Duration::ZERO) {
        if let Request::Jobs(JobsRequest::Page(query)) = request {
            return Some(*query);
        }
    }
    None
}

/// Show this many jobs in their tab; returns the feed where further requests arrive.
///
/// # Panics
/// If the window does not ask for jobs: it needs a daemon as its source, and a grid.
pub fn show_jobs(app: &mut App, count: u32, now: Time) -> Feed {
    let (feed, inbox) = feed();
    app.feed_flock(inbox);
    app.open_tab("jobs");
    app.watch_jobs();
    let query = jobs_query(&feed).expect("jobs are requested");
    let rows = jobs::rows(&query.domain, count, now);
    let page = Page { total: rows.len() as u64, rows, ..Page::default() };
    app.take(now, Update::Jobs(JobsUpdate::Page { number: query.number, page: Ok(Arc::new(page)) }));
    feed
}

/// Answer the requests for curves of rows.
pub fn show_job_curves(app: &mut App, feed: &Feed, now: Time) {
    while let WakeReason::Requested(request) = feed.rest(Duration::ZERO) {
        let Request::Jobs(JobsRequest::Series(requests)) = request else { continue };
        for (number, request) in requests.into_iter().enumerate() {
            let spark = jobs::spark(number).map(Arc::new);
            app.take(now, Update::Jobs(JobsUpdate::Spark { key: request.key, spark }));
        }
    }
}

/// Open the page of the job of this number.
pub fn open_job(app: &mut App, number: u32, now: Time) {
    let key = JobKey::new(app.model().jobs().domain(), &format!("slurm:{number}"));
    app.apply(crate::model::JobsChange::Open(key.clone()));
    for part in jobs::page(number, now).into_iter().chain([PagePart::End]) {
        app.take(now, Update::Jobs(JobsUpdate::Part { key: key.clone(), part }));
    }
}
