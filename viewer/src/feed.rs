//! Channel between the window and the threads that read logs and query daemons: updates to the window,
//! requests from it.
//!
//! Rule: the window never blocks; the channels are bounded, and a thread that is faster than the window waits
//! for it. Layouts are computed by the sending thread.

use crate::flock::past::{MissingSpan, Span, StoredSweeps};
use crate::flock::sweep::{HostName, Sweep};
use crate::graphs::metric::Metric;
use crate::graphs::tiles::{Ages, HostMark, Lines, TileRequest};
use crate::grid::Grid;
use crate::jobs::curves::Spark;
use crate::jobs::page::PagePart;
use crate::jobs::{JobKey, Page, PageRequest, SeriesRequest};
use crate::layout::{Layout, Moves, layout};
use crate::sensors::health::Health;
use crate::sensors::{At, Order};
use crate::series::HostSeries;
use crate::served::ServedBy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wire::control::Signal;
use wire::time::Time;

/// Updates that may be queued for the next frame.
const WAITING_MAX: usize = 64;
/// Requests that may be queued for the thread.
const REQUESTS_MAX: usize = 16;

/// A grid with its layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    pub grid: Grid,
    /// Its layout without moves.
    pub layout: Layout,
}

impl Drawn {
    /// Lay out a grid.
    #[must_use]
    pub fn new(grid: Grid) -> Drawn {
        let layout = layout(&grid, &Moves::default());
        Drawn { grid, layout }
    }
}

/// State of the data source.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Nothing was requested yet.
    Beginning,
    /// A log is being read.
    Reading {
        /// Lines read so far.
        lines: u64,
    },
    Connected {
        address: String,
        /// Duration of the last answer, in seconds.
        took_secs: f64,
        /// Domains that could not be queried, and why.
        troubles: Vec<String>,
    },
    /// The daemon does not answer, or a log cannot be read; retried automatically.
    Lost {
        /// The error, and what to do about it.
        what: String,
    },
}

/// An update of the window.
#[derive(Clone, Debug)]
pub enum Update {
    Grid(Arc<Drawn>),
    Status(Status),
    /// Metrics of a host.
    Series {
        host: HostName,
        series: Arc<HostSeries>,
        /// Why the host cannot be queried, or what is wrong with its clock or its answers.
        trouble: Option<String>,
    },
    /// Metrics of a host in the past.
    Tile {
        tile: TileRequest,
        /// The lines of each metric; or the error.
        lines: Result<BTreeMap<Metric, Lines>, String>,
        /// Time of the oldest value that is stored.
        oldest: Option<Time>,
        /// How far back the host has finer values; `None` if it did not answer.
        ages: Option<Ages>,
        /// What happened to the host meanwhile, as far as samples were read.
        marks: Vec<HostMark>,
    },
    /// Time of the oldest value that a domain has stored.
    Oldest(Time),
    /// Sweeps of the flock's hosts, the oldest first for each host.
    Sweeps(Vec<Sweep>),
    /// Whether a host of the flock can be queried.
    Trouble {
        host: HostName,
        /// The error; `None` once queries succeed again.
        trouble: Option<String>,
    },
    /// Process history of a host, from its sensor.
    StoredSweeps {
        host: HostName,
        /// The history, and the times for which the sensor has sweeps at all; or the error.
        stored: Result<(Arc<StoredSweeps>, Vec<Span>), String>,
    },
    /// Events and processes of a call.
    Served {
        /// Id of the call.
        call: String,
        by: Arc<ServedBy>,
    },
    /// Health of a sensor.
    Sensor {
        /// Where it was queried.
        at: At,
        /// Its answer, or the error.
        health: Result<Arc<Health>, String>,
    },
    /// Term of the representative of a domain.
    Term {
        domain: String,
        /// The term; `None` if it is unknown.
        term: Option<u64>,
    },
    /// Subscription of the flock at a host.
    Channel {
        host: HostName,
        subscription: String,
        /// Changes made to it by a user; `None` while its settings are those requested.
        altered: Option<Altered>,
    },
    /// A subscription of the flock that has ended.
    ChannelEnded {
        host: HostName,
        subscription: String,
    },
    /// Part of an answer about jobs.
    Jobs(JobsUpdate),
    /// A message about the result of a command, for the user.
    Notice(String),
}

/// An update about jobs.
#[derive(Clone, Debug)]
pub enum JobsUpdate {
    /// Page of a search.
    Page {
        /// Number of the query.
        number: u64,
        page: Result<Arc<Page>, String>,
    },
    /// CPUs in use over the life of a job; `None` if no host of it has them.
    Spark { key: JobKey, spark: Option<Arc<Spark>> },
    /// Part of the page of a job.
    Part { key: JobKey, part: PagePart },
}

impl Update {
    /// An update with this grid, laid out in the calling thread.
    #[must_use]
    pub fn grid(grid: Grid) -> Update {
        Update::Grid(Arc::new(Drawn::new(grid)))
    }
}

/// Requests of the window to the thread behind a feed.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Replace the set of hosts and metrics that are queried.
    Figures(Figures),
    /// Replace the list of tiles of the past that are queried, the most useful first.
    Tiles(Vec<TileRequest>),
    /// Have the calls around this time in the grid too; the newest alone for `None`.
    CallsAt(Option<Time>),
    /// Check for changes now: something happened.
    Look,
    /// Show this domain too.
    Add(String),
    /// Stop showing this domain.
    Drop(String),
    /// Replace the set of hosts in the flock.
    Flock(Watch),
    /// Request process history of a host of the flock.
    Past(Past),
    /// Replace the set of sensors that are queried.
    Sensors(Sensors),
    /// Send a command to a sensor.
    Order(Order),
    /// Send a signal to a process.
    Kill(Kill),
    /// Request the events of a call, and the processes that served it.
    Served(Served),
    /// Request jobs.
    Jobs(JobsRequest),
}

/// Request for jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum JobsRequest {
    /// A page of a search.
    Page(Box<PageRequest>),
    /// Replace the list of jobs whose curves are queried, in this order.
    Series(Vec<SeriesRequest>),
    /// All that is known of a job.
    Record(JobKey),
}

/// Request for the events and processes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Id of the call.
    pub call: String,
    /// The domain that reports the call; empty for the daemon's own.
    pub domain: String,
    /// How many events to request, if any.
    pub events: Option<u32>,
    /// Hosts where the call ran.
    pub hosts: Vec<HostName>,
}

/// Request for metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub hosts: Vec<HostName>,
    pub metrics: Vec<Metric>,
    /// Whether an hour of history is shown, not just the last minutes.
    pub is_long: bool,
    /// Whether the graphs are hidden: stored series are retained, and nothing is requested.
    pub rests: bool,
}

/// Which sensors to query, and which domains' terms to look up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sensors {
    pub sensors: Vec<At>,
    /// Domains whose terms are looked up.
    pub domains: Vec<String>,
}

/// Request for the processes of hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    pub hosts: Vec<HostName>,
    /// Sweeps per second.
    pub rate_hz: f64,
}

/// Request for process history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The host and the period.
    pub missing: MissingSpan,
    /// Resolution: one sweep per this interval.
    pub every: Duration,
}

/// Settings of a channel that a user changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Altered {
    /// Samples per second.
    pub rate_hz: f64,
    /// Filter of the samples; empty passes everything.
    pub filter: String,
}

/// A signal to a process, confirmed by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    pub host: HostName,
    pub pid: u32,
    /// Start time, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// Its name, as it was shown.
    pub name: String,
    pub signal: Signal,
}

/// Callback that makes the window draw a frame.
type Waker = Box<dyn Fn() + Send + Sync>;

/// The thread's end of the channel: sends updates and receives requests.
pub struct Feed {
    sender: UpdateSender,
    requests: Receiver<Request>,
    wakeup: Wakeup,
    is_open: Arc<AtomicBool>,
}

/// Sending end for further threads.
#[derive(Clone)]
pub struct UpdateSender {
    updates: SyncSender<(Time, Update)>,
    waker: Arc<OnceLock<Waker>>,
}

impl UpdateSender {
    /// Send an update to the window. Blocks while the queue is full, so that no update is lost and memory
    /// stays bounded.
    pub fn send(&self, update: Update) {
        // A closed window is noticed in [`Feed::rest`].
        let _ = self.updates.send((crate::clock::now(), update));
        if let Some(wake) = self.waker.get() {
            wake();
        }
    }
}

/// The window's end of the channel.
pub struct Inbox {
    updates: Receiver<(Time, Update)>,
    requests: SyncSender<Request>,
    is_open: Arc<AtomicBool>,
    waker: Arc<OnceLock<Waker>>,
}

/// Wakes the thread behind a feed from another thread.
#[derive(Clone)]
pub struct Wakeup {
    requests: SyncSender<Request>,
    is_open: Arc<AtomicBool>,
    /// Whether a wake-up is queued: further ones would only take queue slots from requests.
    is_queued: Arc<AtomicBool>,
}

impl Wakeup {
    /// Wake the thread with [`Request::Look`].
    pub fn wake(&self) {
        if !self.is_queued.swap(true, Ordering::AcqRel) && self.requests.try_send(Request::Look).is_err() {
            self.is_queued.store(false, Ordering::Release);
        }
    }

    /// Whether the window is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

/// Why [`Feed::rest`] returned.
#[derive(Debug, PartialEq)]
pub enum WakeReason {
    /// The time has passed.
    Timeout,
    /// The window sent a request.
    Requested(Request),
    /// The window was closed.
    Closed,
}

/// Create both ends.
#[must_use]
pub fn feed() -> (Feed, Inbox) {
    let (updates_in, updates) = sync_channel(WAITING_MAX);
    let (requests, requests_out) = sync_channel(REQUESTS_MAX);
    let (waker, is_open) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(true)));
    let wakeup =
        Wakeup { requests: requests.clone(), is_open: Arc::clone(&is_open), is_queued: Arc::default() };
    let feed = Feed {
        sender: UpdateSender { updates: updates_in, waker: Arc::clone(&waker) },
        requests: requests_out,
        wakeup,
        is_open: Arc::clone(&is_open),
    };
    (feed, Inbox { updates, requests, is_open, waker })
}

impl Feed {
    /// Send an update to the window. Blocks while the queue is full, so that no update is lost and memory
    /// stays bounded.
    pub fn send(&self, update: Update) {
        self.sender.send(update);
    }

    /// A sending end for another thread.
    #[must_use]
    pub fn sender(&self) -> UpdateSender {
        self.sender.clone()
    }

    /// Wait for `time`, or until the window sends a request or is closed.
    #[must_use]
    pub fn rest(&self, time: Duration) -> WakeReason {
        let rested = self.requests.recv_timeout(time);
        if rested == Ok(Request::Look) {
            self.wakeup.is_queued.store(false, Ordering::Release);
        }
        match rested {
            _ if !self.is_open.load(Ordering::Relaxed) => WakeReason::Closed,
            Ok(request) => WakeReason::Requested(request),
            Err(RecvTimeoutError::Timeout) => WakeReason::Timeout,
            Err(RecvTimeoutError::Disconnected) => WakeReason::Closed,
        }
    }

    /// A handle for another thread to wake this one.
    #[must_use]
    pub fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.is_open.store(false, Ordering::Relaxed);
        // Wakes a thread in [`Feed::rest`]; if the queue is full, the thread wakes in any case.
        let _ = self.requests.try_send(Request::Look);
    }
}

impl Inbox {
    /// Set the callback that is called for each update; only the first call has an effect.
    pub fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        let _ = self.waker.set(Box::new(waker));
    }

    /// The updates since the last call, with the time each was sent; does not block.
    pub fn take(&self) -> impl Iterator<Item = (Time, Update)> + '_ {
        self.updates.try_iter().take(WAITING_MAX)
    }

    /// Queue a request. Returns false if the queue is full; the caller may then retry.
    pub fn request(&self, request: Request) -> bool {
        self.requests.try_send(request).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_arrive_in_order_and_requests_end_a_rest() {
        let (feed, inbox) = feed();
        let woken = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = Arc::clone(&woken);
        inbox.wake_by(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        for lines in [1, 2] {
            feed.send(Update::Status(Status::Reading { lines }));
        }
        let lines: Vec<u64> = inbox
            .take()
            .filter_map(|(_, update)| {
                let Update::Status(Status::Reading { lines }) = update else { return None };
                Some(lines)
            })
            .collect();
        assert_eq!((lines, woken.load(std::sync::atomic::Ordering::Relaxed)), (vec![1, 2], 2));
        let watch = || Request::Flock(Watch { hosts: vec![HostName::new("demo", "wn01")], rate_hz: 1.0 });
        assert!(inbox.request(watch()));
        assert_eq!(feed.rest(Duration::from_secs(60)), WakeReason::Requested(watch()));
        let wakeup = feed.wakeup();
        wakeup.wake();
        assert_eq!(feed.rest(Duration::from_secs(60)), WakeReason::Requested(Request::Look));
        assert_eq!(feed.rest(Duration::ZERO), WakeReason::Timeout);
        drop(inbox);
        assert_eq!(feed.rest(Duration::from_secs(60)), WakeReason::Closed);
        assert!(!wakeup.is_open());
    }
}
