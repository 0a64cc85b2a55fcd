//! One host of the flock: a subscription to its processes, and a thread that takes what comes.
//!
//! Rule: a host that cannot be asked is told and tried again, later each time; no other host waits for it. Not here: what
//! answers mean (`sweeps`), which hosts are watched (`flock`).

use super::flock::TAKE_EVERY;
use super::http::{Client, Error};
use super::sweeps::{Stream, Taken};
use super::via::Where;
use super::{answers, at};
use crate::feed::{Teller, Update};
use crate::flock::sweep::HostName;
use serde_json::json;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

/// Entries taken at once.
const ENTRIES_MAX: u32 = 200;
/// How long nothing may come of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Until a host that could not be asked is asked again, at first and at last.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// Room for what waits of a subscription, in bytes: a whole sample of some thousand processes, and no more together for
/// 64 hosts than a sensor has for all queues.
const QUEUE_BYTES: u64 = 768 << 10;
/// The fault of a subscription that is not there any more (docs/query-interface.md).
const NOT_FOUND: i64 = -32010;

/// A host, and how its subscription stands.
pub(super) struct Subscribed {
    client: Client,
    host: HostName,
    rate_hz: f64,
    id: Option<String>,
    stream: Stream,
    failures: u32,
    /// The subscription that was told of last.
    told_id: Option<String>,
    /// What was told of it last.
    trouble: Option<String>,
}

impl Subscribed {
    /// Not subscribed to yet.
    pub(super) fn new(address: Where, host: HostName, rate_hz: f64) -> Subscribed {
        let (client, stream) = (Client::within(address, SILENCE_MAX), Stream::default());
        Subscribed { client, host, rate_hz, id: None, stream, failures: 0, told_id: None, trouble: None }
    }

    /// Take what comes, and tell it, until the other end of `is_over` is gone.
    ///
    /// # Errors
    /// If the thread cannot be begun.
    pub(super) fn follow(mut self, teller: Teller, is_over: Receiver<()>) -> std::io::Result<()> {
        let take = move || {
            loop {
                let taken = self.take();
                // What was answered after somebody chose other hosts is not told any more.
                if is_over.try_recv() == Err(TryRecvError::Disconnected) {
                    break;
                }
                let pause = self.tell(taken, &teller);
                if is_over.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                    break;
                }
            }
            self.id_ends(&teller);
            self.end();
        };
        std::thread::Builder::new().name("viewer-herd".into()).spawn(take).map(drop)
    }

    /// Tell what came of it; how long until it is taken again.
    fn tell(&mut self, taken: Result<Taken, Error>, teller: &Teller) -> Duration {
        let (trouble, pause) = match taken {
            Ok(taken) => {
                self.failures = 0;
                if !taken.sweeps.is_empty() {
                    teller.tell(Update::Sweeps(taken.sweeps));
                }
                (taken.stopped, TAKE_EVERY)
            }
            Err(error) => {
                let pause = (AGAIN * (1 << self.failures.min(8))).min(AGAIN_MAX);
                self.failures = self.failures.saturating_add(1);
                (Some(error.to_string()), pause)
            }
        };
        self.tell_id(teller);
        if trouble != self.trouble {
            self.trouble.clone_from(&trouble);
            teller.tell(Update::Trouble { host: self.host.clone(), trouble });
        }
        pause
    }

    /// Tell of its subscription, where it is another than was told.
    fn tell_id(&mut self, teller: &Teller) {
        if self.told_id != self.id {
            self.told_id.clone_from(&self.id);
            teller.tell(Update::Channel { host: self.host.clone(), subscription: self.id.clone() });
        }
    }

    /// Tell that there is no subscription any more.
    fn id_ends(&mut self, teller: &Teller) {
        if self.told_id.take().is_some() {
            teller.tell(Update::Channel { host: self.host.clone(), subscription: None });
        }
    }

    fn take(&mut self) -> Result<Taken, Error> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.subscribe()?,
        };
        let params = at(&self.host, json!({ "subscription": id, "limit": ENTRIES_MAX }));
        let answer = match self.client.ask("sensor.take", &params) {
            Ok(answer) => answer,
            Err(error) => {
                if matches!(error, Error::Fault { code: NOT_FOUND, .. } | Error::Unreachable { .. }) {
                    self.id = None;
                }
                return Err(error);
            }
        };
        let taken = self.stream.take(&self.host, &answer);
        if taken.wants_whole && taken.stopped.is_none() {
            self.client.ask("sensor.alter", &at(&self.host, json!({ "subscription": id })))?;
        }
        Ok(taken)
    }

    fn subscribe(&mut self) -> Result<String, Error> {
        let budget = json!({ "queue_bytes": QUEUE_BYTES });
        let params = at(&self.host, json!({ "rate": self.rate_hz, "changes": true, "budget": budget }));
        let made = self.client.ask("sensor.subscribe", &params)?;
        let id = answers::text(&made, "subscription");
        (self.id, self.stream) = (Some(id.clone()), Stream::default());
        Ok(id)
    }

    fn end(&mut self) {
        if let Some(id) = self.id.take() {
            // One that cannot be ended now ends by itself when nobody takes.
            let _ = self.client.ask("sensor.unsubscribe", &at(&self.host, json!({ "subscription": id })));
        }
    }
}
