//! One host of the flock: a subscription to its processes, and a thread that takes what comes, and asks for its past.
//!
//! Rule: a host that cannot be asked is told and tried again, later each time; no other host waits for it. Not here: what
//! answers mean (`sweeps`), which hosts are watched (`flock`).

use super::ask::Client;
use super::flock::TAKE_EVERY;
use super::sweeps::{Stream, Taken};
use super::via::Where;
use super::{about, kept};
use crate::feed::{Altered, Past, Teller, Update};
use crate::flock::sweep::HostName;
use client::Error;
use client::typed::About;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use wire::api::channels::{AlterParams, BudgetSettings, Settings, SubscribeParams, UnsubscribeParams};
use wire::api::entries::TakeParams;

/// Entries taken at once.
const ENTRIES_MAX: u64 = 200;
/// How long nothing may come of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Until a host that could not be asked is asked again, at first and at last.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// Room for what waits of a subscription, in bytes: a whole sample of some thousand processes, and no more together for
/// 64 hosts than a sensor has for all queues.
const QUEUE_BYTES: u32 = 768 << 10;
/// The fault of a subscription that is not there any more (docs/query-interface.md).
const NOT_FOUND: i64 = -32010;

/// A host, and how its subscription stands.
pub(super) struct Subscribed {
    client: Client,
    host: HostName,
    rate_hz: f64,
    /// How somebody altered it; a subscription that takes the place of a lost one begins so.
    altered: Option<Altered>,
    id: Option<String>,
    /// How often it was altered, as the last answer says.
    revision: u64,
    stream: Stream,
    /// Whether the entries are taken packed: not of a daemon whose packed ones cannot be read.
    is_packed: bool,
    failures: u32,
    /// The subscription that was told of last, and how it was altered.
    told_id: Option<(String, Option<Altered>)>,
    /// What was told of it last.
    trouble: Option<String>,
}

impl Subscribed {
    /// Not subscribed to yet.
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
            told_id: None,
            trouble: None,
        }
    }

    /// Take what comes, and tell it, and what is `wanted` of its past, until the other end of `wanted` is gone.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn follow(mut self, teller: Teller, wanted: Receiver<Past>) -> std::io::Result<()> {
        let take = move || {
            loop {
                let taken = self.take();
                // What was answered after somebody chose other hosts is not told any more.
                let mut past = wanted.try_recv();
                if past == Err(TryRecvError::Disconnected) {
                    break;
                }
                let pause = self.tell(taken, &teller);
                if past == Err(TryRecvError::Empty) {
                    past = match wanted.recv_timeout(pause) {
                        Ok(past) => Ok(past),
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => break,
                    };
                }
                if let Ok(past) = past {
                    self.tell_past(&past, &teller);
                }
            }
            self.id_ends(&teller);
            self.end();
        };
        std::thread::Builder::new().name("viewer-herd".into()).spawn(take).map(drop)
    }

    /// Ask for a stretch of the past, and tell it.
    fn tell_past(&mut self, past: &Past, teller: &Teller) {
        let kept = kept::ask(&mut self.client, &past.lack, past.every);
        let kept = kept.map(|(kept, spans)| (Arc::new(kept), spans)).map_err(|error| error.to_string());
        teller.tell(Update::Kept { host: self.host.clone(), kept });
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
        let now = self.id.clone().map(|id| (id, self.altered.clone()));
        if self.told_id == now {
            return;
        }
        match &now {
            Some((id, altered)) => {
                let (host, subscription, altered) = (self.host.clone(), id.clone(), altered.clone());
                teller.tell(Update::Channel { host, subscription, altered });
            }
            None => self.id_ends(teller),
        }
        self.told_id = now;
    }

    /// Tell that there is no subscription any more.
    fn id_ends(&mut self, teller: &Teller) {
        if let Some((subscription, _)) = self.told_id.take() {
            teller.tell(Update::ChannelEnded { host: self.host.clone(), subscription });
        }
    }

    fn take(&mut self) -> Result<Taken, Error> {
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
        // With packed entries the version before says it of each of them alone.
        let revision = answer.entries.iter().map(|entry| entry.revision).fold(answer.revision, u64::max);
        let is_altered = revision > self.revision;
        if is_altered || taken.wants_whole && taken.stopped.is_none() {
            // What was taken is told in any case; it is tried again when the next is taken.
            let _ = self.see_alterations(&id);
        }
        Ok(taken)
    }

    /// See how it stands, which makes its next sample a whole one.
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
            // One that cannot be ended now ends by itself when no one takes.
            let _ = self.client.call(&UnsubscribeParams { subscription: id }, &self.about());
        }
    }

    fn about(&self) -> About {
        about(&self.host)
    }
}
