//! Waits for the events of a domain, and has its calls asked for when one comes: what happens is drawn when it happens.
//!
//! A thread for each domain, which ends when no one shows the domain any more. Rule: at most [`HEARD_MAX`] at a time; of
//! further domains calls are asked for each second. Not here: what happened (`known` asks for it).

use super::answers;
use super::ask::Client;
use super::via::Where;
use crate::feed::Poker;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Domains whose events are waited for, each by a thread.
const HEARD_MAX: usize = 32;
/// How long a daemon may wait for an event before it answers with none, in seconds.
const WAIT_SECS: u32 = 20;
/// Events asked for at once; that there is one is all that counts.
const EVENTS_ASKED: u32 = 1_000;
/// Until a daemon that could not be asked for events is asked again, at first and at last.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// Where to listen, and how many do.
#[derive(Clone)]
pub(super) struct Listening {
    /// The daemon.
    pub(super) address: Where,
    /// Who is woken.
    pub(super) poker: Poker,
    threads: Arc<AtomicUsize>,
}

/// One domain that is listened to; the thread ends after this is gone.
#[derive(Debug)]
pub(super) struct Ear {
    heard: Arc<AtomicBool>,
    is_wanted: Arc<AtomicBool>,
}

impl Ear {
    /// Whether something happened that no one heeded.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Acquire)
    }

    /// It is asked about.
    pub(super) fn heed(&self) {
        self.heard.store(false, Ordering::Release);
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Release);
    }
}

/// A thread that is counted.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Listening {
    /// No one listens yet.
    pub(super) fn new(address: Where, poker: Poker) -> Listening {
        Listening { address, poker, threads: Arc::default() }
    }

    /// Whether one more may listen.
    pub(super) fn has_room(&self) -> bool {
        self.threads.load(Ordering::Acquire) < HEARD_MAX
    }

    /// Listen to a domain, the daemon's own where none is named; nothing where no thread can be started.
    pub(super) fn listen(&self, domain: Option<&str>) -> Option<Ear> {
        self.threads.fetch_add(1, Ordering::AcqRel);
        let counted = Counted(Arc::clone(&self.threads));
        let ear = Ear { heard: Arc::default(), is_wanted: Arc::new(AtomicBool::new(true)) };
        let (heard, is_wanted) = (Arc::clone(&ear.heard), Arc::clone(&ear.is_wanted));
        let (poker, client) = (self.poker.clone(), Client::new(self.address.clone()));
        let domain = domain.map(str::to_owned);
        let wait = move || {
            let _counted = counted;
            listen(client, domain.as_deref(), &poker, &|| is_wanted.load(Ordering::Acquire), &heard);
        };
        std::thread::Builder::new().name("viewer-events".into()).spawn(wait).ok().map(|_| ear)
    }
}

fn listen(
    mut client: Client,
    domain: Option<&str>,
    poker: &Poker,
    is_wanted: &dyn Fn() -> bool,
    heard: &AtomicBool,
) {
    let (mut cursor, mut pause) = ("end".to_owned(), AGAIN);
    while is_wanted() && poker.is_open() {
        let mut params = json!({ "cursor": cursor, "wait": WAIT_SECS, "limit": EVENTS_ASKED });
        if let Some(domain) = domain {
            params["domain"] = domain.into();
        }
        match client.ask("domain.events", &params) {
            Ok(answer) => {
                if answer["events"].as_array().is_some_and(|events| !events.is_empty()) {
                    heard.store(true, Ordering::Release);
                    poker.poke();
                }
                cursor = answers::text(&answer, "cursor");
                pause = AGAIN;
            }
            Err(_) => {
                // The threads that ask for the rest tell what is wrong.
                "end".clone_into(&mut cursor);
                std::thread::sleep(pause);
                pause = (pause * 2).min(AGAIN_MAX);
            }
        }
    }
}
