//! Stored minutes and samples on a member's stream: answers to the representative's fetches, of its own host and of the
//! minutes that it has copied of hosts that are down, and the fetches of a standby.
//!
//! Rule: the disk is read on another thread, one answer at a time. A standby asks for what there is of all hosts as
//! long as it is one, so that it has it when it succeeds. Not here: when a member is asked (`representative`).

use super::sender::{OUTPUT_LEN_BYTES, Sender};
use crate::call_history::CallHistory;
use crate::history::copied::{Answer, Copied, Kind, OfKind, Received};
use crate::history::copies::{self, Copies};
use crate::history::handle::Handle;
use crate::history::writing::calendar;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::copied_names::Sent;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::id::HostName;
use wire::report::minutes::{Fetch, Numbered, Positions};

/// After this time without an answer it asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// What a sensor needs to take part in copying.
pub struct CopyInputs {
    /// Its own host's; `None` if it stores nothing.
    pub own: Option<Handle>,
    /// Copies of those of all hosts; `None` if there are none.
    pub copies: Option<Copies>,
    /// The domain's calls; `None` if they are not stored.
    pub calls: Option<CallHistory>,
    /// Returns whether this host is to succeed the representative.
    pub is_standby: Box<dyn Fn() -> bool + Send + Sync>,
    /// Whether this host is an archive, which copies the domain's calls whatever its role.
    pub is_archive: bool,
}

impl Default for CopyInputs {
    fn default() -> CopyInputs {
        CopyInputs { own: None, copies: None, calls: None, is_standby: Box::new(|| false), is_archive: false }
    }
}

/// Names of metrics that were sent over a stream.
#[derive(Default)]
struct SentNames {
    of_own: OfKind<Sent>,
    of_copies: Sent,
}

/// Copying over one stream.
pub(super) struct Copying {
    inputs: Arc<CopyInputs>,
    /// `None` while something is read.
    sent: Option<SentNames>,
    reading: Option<JoinHandle<(SentNames, Answer)>>,
    /// As a standby.
    fetching: OfKind<Fetching>,
}

/// What a standby has fetched of a kind.
#[derive(Default)]
struct Fetching {
    /// `None` until it is known how far the copies reach.
    positions: Option<Positions>,
    numbered: Numbered,
    /// When it asks next; `None` for at once.
    due: Option<Instant>,
}

impl Sender {
    /// Takes the representative's request for minutes or samples, if there is one and room for the answer.
    pub fn take_fetch(&mut self) -> Option<(Kind, Fetch)> {
        let has_room = self.output().len() < OUTPUT_LEN_BYTES;
        let mut kinds = Kind::ALL.into_iter().filter(|_| has_room);
        kinds.find_map(|kind| Some((kind, self.fetches.of_mut(kind).take()?)))
    }

    /// Takes what the representative sent to a standby; call it after each [`Sender::handle_bytes`].
    pub fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Sends what is stored, as requested by [`Sender::take_fetch`].
    pub fn handle_answer(&mut self, answer: Answer) {
        if self.is_open() {
            self.put(&answer.of_member());
        }
    }

    /// Whether the representative has copies of this kind for standbys.
    #[must_use]
    pub fn offers(&self, kind: Kind) -> bool {
        let has_samples = || self.offer.more.0.and_then(|more| more.has_samples.0) == Some(true);
        self.is_open()
            && match kind {
                Kind::Minutes => self.offer.has_minutes,
                Kind::Samples => has_samples(),
            }
    }

    /// Requests what there is of all hosts from the representative, if it has any to give.
    pub fn request(&mut self, kind: Kind, fetch: Fetch) {
        if self.offers(kind) {
            self.put(&kind.of_standby(fetch));
        }
    }
}

impl Copying {
    pub(super) fn new(inputs: Arc<CopyInputs>) -> Copying {
        Copying { inputs, sent: Some(SentNames::default()), reading: None, fetching: OfKind::default() }
    }

    /// Whether something is being read.
    pub(super) fn is_reading(&self) -> bool {
        self.sent.is_none()
    }

    /// Starts to read what was requested, unless something is being read.
    pub(super) fn read(&mut self, (kind, fetch): (Kind, Fetch)) {
        let Some(mut sent) = self.sent.take() else { return };
        let own = self.inputs.own.as_ref().and_then(|own| own.reader().ok().cloned());
        let connected: Option<BTreeSet<HostName>> = fetch.connected.0.clone().map(BTreeSet::from_iter);
        let copies = self.inputs.copies.as_ref().and_then(Copies::reader_of_stored);
        self.reading = Some(tokio::task::spawn_blocking(move || {
            let of_own = |own| copies::read(&own, (kind, &fetch), sent.of_own.of_mut(kind));
            let mut answer = own.map_or_else(|| Answer::nothing(kind), of_own);
            if let Answer::Minutes(minutes) = &mut answer
                && let Some((copies, connected)) = copies.zip(connected).filter(|_| minutes.is_end)
            {
                let is_down = |host: &HostName| !connected.contains(host);
                let copied = copies.minutes(&fetch, is_down, &mut sent.of_copies);
                minutes.hosts.extend(copied.hosts);
                minutes.is_end = copied.is_end;
            }
            (sent, answer)
        }));
    }

    /// Waits for what is being read. Cancel safe.
    pub(super) async fn read_done(&mut self) -> Answer {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let done = reading.await;
        self.reading = None;
        match done {
            Ok((sent, answer)) => {
                self.sent = Some(sent);
                answer
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns the fetch of this kind that is due, if this host is a standby.
    pub(super) fn fetch(&mut self, kind: Kind, now: Instant) -> Option<Fetch> {
        let fetching = self.fetching.of_mut(kind);
        let is_due = fetching.due.is_none_or(|due| due <= now);
        let copies = self.inputs.copies.as_ref().filter(|_| is_due && (self.inputs.is_standby)())?;
        let age = (*copies.ages.of(kind))?;
        if fetching.positions.is_none() {
            fetching.positions = Some(Positions::new(copies.held()?.of(kind).clone()));
        }
        fetching.due = Some(now + ANSWER_WITHIN);
        let held = fetching.positions.as_ref().map(Positions::all).unwrap_or_default();
        Some(Kind::fetch(held, calendar().minus(age)))
    }

    /// Stores the representative's answer.
    pub(super) fn store(&mut self, answer: Answer, now: Instant) {
        let Some(copies) = &self.inputs.copies else { return };
        let (kind, hosts, is_end) = answer.received();
        let fetching = self.fetching.of_mut(kind);
        fetching.due = is_end.then(|| now + kind.every());
        for Received { host, names, rows } in hosts {
            let Ok(metrics) = fetching.numbered.learn(names) else { return };
            if let Some((positions, (next, last))) = fetching.positions.as_mut().zip(rows.end()) {
                positions.note(&host, next, last);
            }
            if !copies.store(Copied { host, metrics, rows }) {
                // Asked again from where the copies end.
                fetching.positions = None;
                fetching.due = Some(now + kind.every());
            }
        }
    }
}
