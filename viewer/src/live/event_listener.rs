//! Event listener of a domain: waits for its events and has its calls requested when one arrives, so that it
//! is drawn at once.
//!
//! One thread per domain, which ends when the domain is no longer shown. Rule: at most [`HEARD_MAX`] threads;
//! the calls of further domains are polled every second. Not here: what happened (`cache` requests it).

use super::answers;
use super::ask::Client;
use super::via::Where;
use crate::feed::Wakeup;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use wire::backoff::Backoff;

/// Maximum number of domains with a listener thread.
const HEARD_MAX: usize = 32;
/// Long-poll timeout in seconds: how long a daemon may wait for an event before it answers with none.
const WAIT_SECS: u32 = 20;
/// Events per request; only whether there is one matters.
const EVENTS_ASKED: u32 = 1_000;
/// First and longest delay before a failed request is retried.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Starts listeners, and counts them.
#[derive(Clone)]
pub(super) struct Listening {
    pub(super) address: Where,
    /// Wakes the thread that asks.
    pub(super) wakeup: Wakeup,
    threads: Arc<AtomicUsize>,
}

/// Handle of one listener; the thread ends after it is dropped.
#[derive(Debug)]
pub(super) struct EventListener {
    heard: Arc<AtomicBool>,
    is_wanted: Arc<AtomicBool>,
}

impl EventListener {
    /// Whether an event arrived since the last [`EventListener::heed`].
    pub(super) fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Acquire)
    }

    /// Clear the flag: the domain is being queried.
    pub(super) fn heed(&self) {
        self.heard.store(false, Ordering::Release);
    }
}

impl Drop for EventListener {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Release);
    }
}

/// Counts a thread for as long as it runs.
struct ThreadCount(Arc<AtomicUsize>);

impl Drop for ThreadCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Listening {
    /// With no listener yet.
    pub(super) fn new(address: Where, wakeup: Wakeup) -> Listening {
        Listening { address, wakeup, threads: Arc::default() }
    }

    /// Whether the limit of threads allows one more.
    pub(super) fn has_room(&self) -> bool {
        self.threads.load(Ordering::Acquire) < HEARD_MAX
    }

    /// Start a listener for a domain, the daemon's own where none is named; `None` if no thread can be
    /// started.
    pub(super) fn listen(&self, domain: Option<&str>) -> Option<EventListener> {
        self.threads.fetch_add(1, Ordering::AcqRel);
        let counted = ThreadCount(Arc::clone(&self.threads));
        let listener = EventListener { heard: Arc::default(), is_wanted: Arc::new(AtomicBool::new(true)) };
        let (heard, is_wanted) = (Arc::clone(&listener.heard), Arc::clone(&listener.is_wanted));
        let (wakeup, client) = (self.wakeup.clone(), Client::new(self.address.clone()));
        let domain = domain.map(str::to_owned);
        let wait = move || {
            let _counted = counted;
            listen(client, domain.as_deref(), &wakeup, &|| is_wanted.load(Ordering::Acquire), &heard);
        };
        std::thread::Builder::new().name("viewer-events".into()).spawn(wait).ok().map(|_| listener)
    }
}

fn listen(
    mut client: Client,
    domain: Option<&str>,
    wakeup: &Wakeup,
    is_wanted: &dyn Fn() -> bool,
    heard: &AtomicBool,
) {
    let (mut cursor, mut failures) = ("end".to_owned(), 0_u32);
    while is_wanted() && wakeup.is_open() {
        let mut params = json!({ "cursor": cursor, "wait": WAIT_SECS, "limit": EVENTS_ASKED });
        if let Some(domain) = domain {
            params["domain"] = domain.into();
        }
        match client.ask("domain.events", &params) {
            Ok(answer) => {
                if answer["events"].as_array().is_some_and(|events| !events.is_empty()) {
                    heard.store(true, Ordering::Release);
                    wakeup.wake();
                }
                cursor = answers::text(&answer, "cursor");
                failures = 0;
            }
            Err(_) => {
                // Not reported here: the threads that send the other requests report the error.
                "end".clone_into(&mut cursor);
                std::thread::sleep(BACKOFF.pause(failures));
                failures = failures.saturating_add(1);
            }
        }
    }
}
