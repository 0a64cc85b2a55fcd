//! Live grid: polls a daemon of this machine, or a proxy, and builds a grid from its answers.
//!
//! One thread decides what to ask and publishes updates; a few threads ask (`asking`); one thread per domain
//! waits for its events (`event_listener`). So an event is drawn when it happens, no request is sent without
//! need, and a slow daemon delays no other. Rule: a daemon that does not answer is reported as lost and retried
//! with a growing delay, up to [`PAUSE_MAX`]; its last state stays on the map, with its age. Not here: the
//! cached state (`cache`), parsing of answers (`answers`), the flock (`flock`).

pub mod answers;
mod apart;
pub mod ask;
mod asking;
pub mod cache;
pub mod call_events;
mod calls;
mod control;
mod event_listener;
mod figures;
pub mod flock;
mod history;
mod jobs;
mod orders;
pub mod past;
mod past_calls;
mod past_minutes;
mod poll_schedule;
pub mod rates;
mod sensors;
pub mod served;
mod subscribed;
pub mod sweeps;
pub mod via;

pub use cache::PAUSE_MAX;

use crate::feed::{Feed, Request, Update, WakeReason};
use crate::flock::sweep::HostName;
use crate::grid::Grid;
use asking::Askers;
use cache::Cache;
use client::Error;
use client::typed::About;
use event_listener::Listening;
use serde_json::json;
use std::time::Duration;
use via::Where;
use wire::time::Time;

/// How often the connection status is published; the age of hosts grows at the same pace.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// Minimum pause between two grids: at least this long, and at least this many times as long as the last grid
/// took to build.
const GRID_PAUSE: Duration = Duration::from_millis(25);
const GRID_PAUSE_RATIO: u32 = 4;
/// Pause between two tries of [`once`].
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How far back a graph's first request goes, by default and for a long graph: as much as a series holds at
/// one sample a second.
const HISTORY: Duration = Duration::from_secs(900);
const HISTORY_LONG: Duration = Duration::from_secs(3_600);

/// What to show: which daemon is asked, and for which domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The daemon, or a proxy.
    pub address: Where,
    /// Domains to query; its own domain where none is named.
    pub domains: Vec<String>,
    /// Whether the daemon is a directory: then all domains that it knows are shown, where none is named.
    pub is_directory: bool,
}

/// Start the threads that follow a plan; they run until the window is closed.
///
/// # Errors
/// If a thread cannot be started.
pub fn follow(plan: Plan, feed: Feed) -> std::io::Result<()> {
    let askers = Askers::begin(&plan.address, &feed.wakeup())?;
    let ask = move || {
        let mut following = Following {
            cache: Cache::new(&plan.domains, plan.is_directory),
            askers,
            listening: Listening::new(plan.address.clone(), feed.wakeup()),
            started: crate::clock::instant(),
            has_news: false,
            not_before: Duration::ZERO,
            status: None,
        };
        while following.go_on(&feed) {}
    };
    // The thread ends with the window: `rest` then returns `WakeReason::Closed`.
    std::thread::Builder::new().name("viewer-live".into()).spawn(ask).map(drop)
}

/// State of the thread that decides.
struct Following {
    cache: Cache,
    askers: Askers,
    listening: Listening,
    started: std::time::Instant,
    /// Whether the grid changed since it was last published.
    has_news: bool,
    /// The next grid is not built before this time.
    not_before: Duration,
    /// When the status was last published, and whether the daemon was lost then.
    status: Option<(Duration, bool)>,
}

impl Following {
    /// Process the answers, send the questions that are due, publish what changed, then wait. Returns false
    /// once the window is closed.
    fn go_on(&mut self, feed: &Feed) -> bool {
        let (now, at) = (self.started.elapsed(), crate::clock::now());
        while let Some((answer, took)) = self.askers.answer() {
            let changed = self.cache.take(answer, now, at, took);
            self.has_news |= changed.grid;
            changed.update.into_iter().for_each(|update| feed.send(update));
            if self.status.is_none_or(|(_, was_lost)| was_lost != self.cache.is_lost()) {
                self.send_status(feed, now);
            }
        }
        while self.askers.has_room()
            && let Some(question) = self.cache.question(now, at)
        {
            self.askers.ask(question);
        }
        self.listen();
        if self.has_news && now >= self.not_before {
            self.has_news = false;
            feed.send(Update::grid(self.cache.grid(now, at)));
            let took = self.started.elapsed().saturating_sub(now);
            self.not_before = now + took + GRID_PAUSE.max(took * GRID_PAUSE_RATIO);
        }
        if self.status.is_some_and(|(sent, _)| now >= sent + STATUS_EVERY) {
            self.send_status(feed, now);
        }
        self.rest(feed)
    }

    fn send_status(&mut self, feed: &Feed, now: Duration) {
        self.status = Some((now, self.cache.is_lost()));
        feed.send(Update::Status(self.cache.status(&self.listening.address)));
    }

    fn listen(&mut self) {
        if self.cache.is_lost() {
            return;
        }
        for (domain, listener) in self.cache.unheard() {
            if !self.listening.has_room() {
                return;
            }
            *listener = self.listening.listen(domain);
        }
    }

    fn rest(&mut self, feed: &Feed) -> bool {
        let status = self.status.map(|(sent, _)| sent + STATUS_EVERY);
        let grid = self.has_news.then_some(self.not_before);
        // Without an idle asker, the next answer wakes this thread, and then there is one.
        let question = if self.askers.has_room() { self.cache.next_due() } else { None };
        let next = [status, grid, question].into_iter().flatten().min();
        let time = next.map_or(STATUS_EVERY, |next| next.saturating_sub(self.started.elapsed()));
        match feed.rest(time) {
            WakeReason::Timeout => {}
            WakeReason::Requested(Request::Figures(wanted)) => self.cache.figures.set_request(wanted),
            WakeReason::Requested(Request::Tiles(wanted)) => self.cache.past.set_request(wanted),
            WakeReason::Requested(Request::CallsAt(at)) => self.has_news |= self.cache.look_at(at),
            WakeReason::Requested(Request::Add(domain)) => self.cache.add(&domain),
            WakeReason::Requested(Request::Drop(domain)) => {
                self.cache.drop_domain(&domain);
                self.has_news = true;
            }
            WakeReason::Requested(Request::Sensors(wanted)) => self.cache.sensors.set_request(wanted),
            WakeReason::Requested(
                Request::Look
                | Request::Flock(_)
                | Request::Past(_)
                | Request::Order(_)
                | Request::Kill(_)
                | Request::Served(_)
                | Request::Jobs(_),
            ) => {}
            WakeReason::Closed => return false,
        }
        true
    }
}

/// Request the grid of a plan once, with the calls around a time if one is named, and with the reasons why domains of it could not be queried. Connection
/// errors are retried until `wait` is over.
///
/// # Errors
/// The error of the last try, or the troubles if no domain could be queried.
pub fn once(plan: &Plan, at: Option<Time>, wait: Duration) -> Result<(Grid, Vec<String>), String> {
    let started = crate::clock::instant();
    let mut client = asking::client(plan.address.clone());
    loop {
        match once_tried(plan, at, &mut client) {
            Ok((grid, troubles)) if grid.places.is_empty() && !troubles.is_empty() => {
                return Err(troubles.join("; "));
            }
            Ok(answer) => return Ok(answer),
            Err(error)
                if started.elapsed() > wait
                    || !matches!(error, Error::Unreachable(_) | Error::Lost { .. }) =>
            {
                return Err(error.to_string());
            }
            Err(_) => std::thread::sleep(TRY_EVERY),
        }
    }
}

fn once_tried(
    plan: &Plan,
    looked_at: Option<Time>,
    client: &mut ask::Client,
) -> Result<(Grid, Vec<String>), Error> {
    let mut cache = Cache::new(&plan.domains, plan.is_directory);
    cache.look_at(looked_at);
    // At time zero every question is due, and afterwards none.
    let (now, at) = (Duration::ZERO, crate::clock::now());
    while let Some(question) = cache.question(now, at) {
        let answer = asking::ask(client, question);
        if let Some(error) = cache.take(answer, now, at, Duration::ZERO).error {
            return Err(error);
        }
    }
    Ok((cache.grid(now, at), cache.troubles().cloned().collect()))
}

/// Request parameters that name a host.
fn named(host: &HostName) -> serde_json::Value {
    at(host, json!({}))
}

/// Typed request parameters that name a host.
fn about(host: &HostName) -> About {
    let domain = Some(host.domain.to_string()).filter(|domain| !domain.is_empty());
    About { domain, host: Some(host.host.to_string()) }
}

fn at(host: &HostName, mut params: serde_json::Value) -> serde_json::Value {
    if !host.domain.is_empty() {
        params["domain"] = (*host.domain).into();
    }
    params["host"] = (*host.host).into();
    params
}
