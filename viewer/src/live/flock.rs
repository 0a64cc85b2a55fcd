//! Data source of the flock: a process subscription for each watched host of the grid, commands to processes,
//! and what is requested once: the processes of calls, and jobs.
//!
//! One thread receives requests of the window; one per host reads its subscription (`subscribed`); one sends
//! signals, one other commands, one requests the processes of calls, and three jobs (`jobs`). So no slow host
//! delays another.
//! Rule: a subscription exists only while the window requests it; requests are accepted at once, and one
//! beyond the queue limit is refused with a message, not lost. Not here: parsing of answers (`sweeps`), the
//! right to send commands (`orders`).

use super::ask::Client;
use super::jobs::Workers;
use super::served;
use super::subscribed::Subscribed;
use super::via::Where;
use super::{control, orders};
use crate::feed::{Feed, Kill, Past, Request, Served, Update, UpdateSender, WakeReason, Watch};
use crate::flock::HOSTS_MAX;
use crate::flock::sweep::HostName;
use crate::sensors::Order;
use crate::served::ServedBy;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// How often a subscription is read: marks are drawn this much later than they were sampled, and move as
/// smoothly.
pub const TAKE_EVERY: Duration = Duration::from_millis(100);
/// How long to wait for a request before checking whether the window is still open.
const IDLE: Duration = Duration::from_secs(5);
/// Queue length of commands, and of requests for the processes of calls.
const WAITING_MAX: usize = 4;
/// Queue length of requests for the history of one host.
const PAST_WAITING_MAX: usize = 2;

/// Start the threads that feed the flock from the daemon at `address`; they run until the window is closed.
///
/// # Errors
/// If a thread cannot be started.
pub fn follow(address: Where, feed: Feed) -> std::io::Result<()> {
    let kill = move |client: &mut Client, kill: Kill| {
        Update::Notice(orders::kill(client, &kill).unwrap_or_else(|why| why))
    };
    let serve = move |client: &mut Client, wanted: Served| {
        let by = served::ask(client, &wanted);
        Update::Served { call: wanted.call, by: Arc::new(by) }
    };
    let control = move |client: &mut Client, order: Order| Update::Notice(control::order(client, &order));
    let control = begin("viewer-control", address.clone(), feed.sender(), control)?;
    let kills = begin("viewer-orders", address.clone(), feed.sender(), kill)?;
    let calls = begin("viewer-served", address.clone(), feed.sender(), serve)?;
    let jobs = Workers::begin(&address, &feed.sender())?;
    let hear = move || {
        let mut watching = Watching { address, sender: feed.sender(), hosts: Vec::new(), rate_hz: 0.0 };
        loop {
            match feed.rest(IDLE) {
                WakeReason::Timeout => {}
                WakeReason::Requested(Request::Flock(watch)) => watching.watch(watch),
                WakeReason::Requested(Request::Past(past)) => watching.ask_past(past),
                WakeReason::Requested(Request::Kill(kill)) => {
                    if let Err(TrySendError::Full(kill) | TrySendError::Disconnected(kill)) =
                        kills.try_send(kill)
                    {
                        let words = "was not ended: orders before it are not answered yet";
                        feed.send(Update::Notice(format!("{} ({}) {words}", kill.name, kill.pid)));
                    }
                }
                WakeReason::Requested(Request::Order(order)) => {
                    if control.try_send(order).is_err() {
                        let words = "Not ordered: orders before it are not answered yet";
                        feed.send(Update::Notice(words.to_owned()));
                    }
                }
                WakeReason::Requested(Request::Served(wanted)) => {
                    if let Err(TrySendError::Full(wanted) | TrySendError::Disconnected(wanted)) =
                        calls.try_send(wanted)
                    {
                        let by = ServedBy::troubled("questions before it are not answered yet");
                        feed.send(Update::Served { call: wanted.call, by: Arc::new(by) });
                    }
                }
                WakeReason::Requested(Request::Jobs(request)) => jobs.ask(request, &watching.sender),
                WakeReason::Requested(
                    Request::Figures(_)
                    | Request::Tiles(_)
                    | Request::CallsAt(_)
                    | Request::Sensors(_)
                    | Request::Look
                    | Request::Add(_)
                    | Request::Drop(_),
                ) => {}
                WakeReason::Closed => return,
            }
        }
    };
    // The thread ends with the window: `rest` then returns `WakeReason::Closed`. The others end with it.
    std::thread::Builder::new().name("viewer-flock".into()).spawn(hear).map(drop)
}

/// Start a worker thread that handles one request at a time, with its own connection.
fn begin<T: Send + 'static>(
    name: &str,
    address: Where,
    sender: UpdateSender,
    act: impl Fn(&mut Client, T) -> Update + Send + 'static,
) -> std::io::Result<SyncSender<T>> {
    let (requests, waiting) = sync_channel(WAITING_MAX);
    let work = move || {
        let mut client = Client::new(address);
        while let Ok(one) = waiting.recv() {
            sender.send(act(&mut client, one));
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(requests)
}

/// The watched hosts.
struct Watching {
    address: Where,
    sender: UpdateSender,
    hosts: Vec<Watched>,
    rate_hz: f64,
}

/// A watched host; its thread ends when this is dropped.
struct Watched {
    host: HostName,
    /// Queue of requests for its history.
    past: SyncSender<Past>,
}

impl Watching {
    /// Replace the set of watched hosts.
    fn watch(&mut self, watch: Watch) {
        let (hosts, rate_hz) = (watch.hosts, watch.rate_hz);
        let is_other_rate = (rate_hz - self.rate_hz).abs() > f64::EPSILON;
        self.rate_hz = rate_hz;
        self.hosts.retain(|watched| hosts.contains(&watched.host) && !is_other_rate);
        for host in hosts.into_iter().take(HOSTS_MAX) {
            if self.hosts.iter().any(|watched| watched.host == host) {
                continue;
            }
            let (past, wanted) = sync_channel(PAST_WAITING_MAX);
            let subscribed = Subscribed::new(self.address.clone(), host.clone(), rate_hz);
            match subscribed.follow(self.sender.clone(), wanted) {
                Ok(()) => self.hosts.push(Watched { host, past }),
                Err(error) => {
                    let trouble = Some(format!("cannot begin a thread: {error}"));
                    self.sender.send(Update::Trouble { host, trouble });
                }
            }
        }
    }

    /// Request history of a watched host.
    fn ask_past(&mut self, past: Past) {
        let host = past.missing.host.clone();
        let watched = self.hosts.iter().find(|watched| watched.host == host);
        if watched.is_none_or(|watched| watched.past.try_send(past).is_err()) {
            let stored = Err("questions before it are not answered yet".to_owned());
            self.sender.send(Update::StoredSweeps { host, stored });
        }
    }
}
