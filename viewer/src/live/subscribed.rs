//! Subscription of the flock to the processes of one host, and the thread that reads it and requests the
//! host's history.
//!
//! Rule: a host that cannot be queried is reported and retried with a growing delay; it delays no other host.
//! Not here: parsing of answers (`sweeps`), which hosts are watched (`flock`).

use super::ask::Client;
use super::flock::TAKE_EVERY;
use super::sweeps::{Received, Stream};
use super::via::Where;
use super::{about, past};
use crate::feed::{Altered, Past, Update, UpdateSender};
use crate::flock::sweep::HostName;
use client::Error;
use client::typed::About;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use wire::api::channels::{AlterParams, BudgetSettings, Settings, SubscribeParams, UnsubscribeParams};
use wire::api::entries::TakeParams;
use wire::backoff::Backoff;

/// Entries per request.
const ENTRIES_MAX: u64 = 200;
/// Timeout between two parts of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// First and longest delay before a failed request is retried.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));
/// Queue size of a subscription in bytes: enough for a whole sample of some thousand processes; 64 hosts
/// together stay within a sensor's limit for all queues.
const QUEUE_BYTES: u32 = 768 << 10;
/// Fault code of a subscription that no longer exists (docs/query-interface.md).
const NOT_FOUND: i64 = -32010;

/// State of the subscription to one host.
pub(super) struct Subscribed {
    client: Client,
    host: HostName,
    rate_hz: f64,
    /// Changes made to the subscription by a user; a subscription that replaces a lost one starts with them.
    altered: Option<Altered>,
    id: Option<String>,
    /// Number of changes made to the subscription, as of the last answer.
    revision: u64,
    stream: Stream,
    /// Whether entries are requested in the packed format; not after one that could not be decoded.
    is_packed: bool,
    failures: u32,
    /// The subscription last published, with its changes.
    sent_id: Option<(String, Option<Altered>)>,
    /// The trouble last published.
    trouble: Option<String>,
}

impl Subscribed {
    /// State with no subscription yet.
    pub(super) fn new(address: Where, host: HostName, rate_hz: f64) -> Subscribed {
        let (client, stream) = (Client::within(address, SILENCE_MAX), Stream::default());
        Subscribed {
            client,
            host,
            rate_hz,
            altered: None,
            id: None,
            revision: 0,
            stream,
            is_packed: true,
            failures: 0,
            sent_id: None,
            trouble: None,
        }
    }

    /// Start a thread that publishes new entries, and the history requested through `wanted`, until the
    /// sender of `wanted` is dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn follow(mut self, sender: UpdateSender, wanted: Receiver<Past>) -> std::io::Result<()> {
        let take = move || {
            loop {
                let taken = self.take();
                // An answer that arrives after the user chose other hosts is not published.
                let mut past = wanted.try_recv();
                if past == Err(TryRecvError::Disconnected) {
                    break;
                }
                let pause = self.send_taken(taken, &sender);
                if past == Err(TryRecvError::Empty) {
                    past = match wanted.recv_timeout(pause) {
                        Ok(past) => Ok(past),
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => break,
                    };
                }
                if let Ok(past) = past {
                    self.send_past(&past, &sender);
                }
            }
            self.id_ends(&sender);
            self.end();
        };
        std::thread::Builder::new().name("viewer-sweeps".into()).spawn(take).map(drop)
    }

    /// Request a period of history, and publish it.
    fn send_past(&mut self, past: &Past, sender: &UpdateSender) {
        let stored = past::ask(&mut self.client, &past.missing, past.every);
        let stored =
            stored.map(|(stored, spans)| (Arc::new(stored), spans)).map_err(|error| error.to_string());
        sender.send(Update::StoredSweeps { host: self.host.clone(), stored });
    }

    /// Publish the result of a request; returns the delay until the next one.
    fn send_taken(&mut self, taken: Result<Received, Error>, sender: &UpdateSender) -> Duration {
        let (trouble, pause) = match taken {
            Ok(taken) => {
                self.failures = 0;
                if !taken.sweeps.is_empty() {
                    sender.send(Update::Sweeps(taken.sweeps));
                }
                (taken.stopped, TAKE_EVERY)
            }
            Err(error) => {
                let pause = BACKOFF.pause(self.failures);
                self.failures = self.failures.saturating_add(1);
                (Some(error.to_string()), pause)
            }
        };
        self.send_id(sender);
        if trouble != self.trouble {
            self.trouble.clone_from(&trouble);
            sender.send(Update::Trouble { host: self.host.clone(), trouble });
        }
        pause
    }

    /// Publish the id and the changes of the subscription, if they differ from those last published.
    fn send_id(&mut self, sender: &UpdateSender) {
        let now = self.id.clone().map(|id| (id, self.altered.clone()));
        if self.sent_id == now {
            return;
        }
        match &now {
            Some((id, altered)) => {
                let (host, subscription, altered) = (self.host.clone(), id.clone(), altered.clone());
                sender.send(Update::Channel { host, subscription, altered });
            }
            None => self.id_ends(sender),
        }
        self.sent_id = now;
    }

    /// Publish that the subscription has ended.
    fn id_ends(&mut self, sender: &UpdateSender) {
        if let Some((subscription, _)) = self.sent_id.take() {
            sender.send(Update::ChannelEnded { host: self.host.clone(), subscription });
        }
    }

    fn take(&mut self) -> Result<Received, Error> {
        let id = match &self.id {
            Some(id) => id.clone(),
            None => self.subscribe()?,
        };
        let (subscription, packed) = (id.clone(), self.is_packed);
        let params = TakeParams { subscription, limit: ENTRIES_MAX, packed, ..TakeParams::default() };
        let answer = match self.client.call(&params, &self.about()) {
            Ok(answer) => answer,
            Err(error) => {
                if matches!(
                    error,
                    Error::Fault { code: NOT_FOUND, .. } | Error::Unreachable(_) | Error::Lost { .. }
                ) {
                    self.id = None;
                }
                return Err(error);
            }
        };
        let answer = answer.unpacked().map_err(|error| {
            self.is_packed = false;
            self.client.unexpected(format!(
                "entries of another version ({error}); they are taken as JSON from now on"
            ))
        })?;
        let taken = self.stream.take(&self.host, &answer);
        // With packed entries, the previous version reports the revision only in each entry.
        let revision = answer.entries.iter().map(|entry| entry.revision).fold(answer.revision, u64::max);
        let is_altered = revision > self.revision;
        if is_altered || taken.wants_whole && taken.stopped.is_none() {
            // The entries are published in any case; a failure is retried with the next request.
            let _ = self.see_alterations(&id);
        }
        Ok(taken)
    }

    /// Read the current settings; this makes the next sample a whole one.
    fn see_alterations(&mut self, id: &str) -> Result<(), Error> {
        let params = AlterParams { subscription: id.to_owned(), settings: Settings::default() };
        let own = self.client.call(&params, &self.about())?;
        let altered = Altered { rate_hz: own.rate_hz, filter: own.filter.unwrap_or_default() };
        let is_other = (altered.rate_hz - self.rate_hz).abs() > f64::EPSILON || !altered.filter.is_empty();
        self.revision = own.revision;
        self.altered = is_other.then_some(altered);
        Ok(())
    }

    fn subscribe(&mut self) -> Result<String, Error> {
        let altered = self.altered.as_ref();
        let settings = Settings {
            rate_hz: Some(altered.map_or(self.rate_hz, |altered| altered.rate_hz)),
            filter: altered.map(|altered| altered.filter.clone()).filter(|filter| !filter.is_empty()),
            changes: Some(true),
            budget: Some(BudgetSettings { queue_bytes: Some(QUEUE_BYTES), ..BudgetSettings::default() }),
            ..Settings::default()
        };
        let params = SubscribeParams { settings, ..SubscribeParams::default() };
        let made = self.client.call(&params, &self.about())?;
        let id = made.subscription.unwrap_or_default();
        self.revision = made.revision;
        (self.id, self.stream) = (Some(id.clone()), Stream::default());
        Ok(id)
    }

    fn end(&mut self) {
        if let Some(id) = self.id.take() {
            // One that cannot be ended now is ended by the sensor when it is no longer read.
            let _ = self.client.call(&UnsubscribeParams { subscription: id }, &self.about());
        }
    }

    fn about(&self) -> About {
        about(&self.host)
    }
}
