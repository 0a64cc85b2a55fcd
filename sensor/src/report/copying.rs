//! Stored minutes on a member's stream: answers to the representative's fetches, of its own host and of what it has
//! copied of hosts that are down, and the fetches of a standby.
//!
//! Rule: the disk is read on another thread, one answer at a time. A standby asks for the minutes of all hosts as
//! long as it is one, so that it has them when it succeeds. Not here: when a member is asked (`representative`).

use super::sender::{OUTPUT_LEN_BYTES, Sender};
use crate::call_history::CallHistory;
use crate::history::copies::{Copied, Copies};
use crate::history::handle::Handle;
use crate::history::writing::calendar;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::copy::Sent;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::FromMember;
use wire::report::minutes::{FETCH_LEN_BYTES, Fetch, Minutes, Numbered, Positions};

/// How often a standby asks for what is new.
const FETCH_EVERY: Duration = Duration::from_secs(20);
/// After this time without an answer it asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// What a sensor needs to take part in copying.
pub struct CopyInputs {
    /// Minutes of its own host; `None` if they are not stored.
    pub own: Option<Handle>,
    /// Copies of those of all hosts; `None` if there are none.
    pub copies: Option<Copies>,
    /// The domain's calls; `None` if they are not stored.
    pub calls: Option<CallHistory>,
    /// Returns whether this host is to succeed the representative.
    pub is_standby: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Default for CopyInputs {
    fn default() -> CopyInputs {
        CopyInputs { own: None, copies: None, calls: None, is_standby: Box::new(|| false) }
    }
}

/// Names of metrics that were sent over a stream.
#[derive(Default)]
struct SentNames {
    of_own: Sent,
    of_copies: Sent,
}

/// Copying over one stream.
pub(super) struct Copying {
    inputs: Arc<CopyInputs>,
    /// `None` while minutes are read.
    sent: Option<SentNames>,
    reading: Option<JoinHandle<(SentNames, Minutes)>>,
    /// `None` until it is known how far the copies reach.
    positions: Option<Positions>,
    numbered: Numbered,
    /// When it asks next; `None` for at once.
    due: Option<Instant>,
}

impl Sender {
    /// Takes the representative's request for stored minutes, if there is one and room for the answer.
    pub fn take_fetch(&mut self) -> Option<Fetch> {
        if self.output().len() < OUTPUT_LEN_BYTES { self.fetch.take() } else { None }
    }

    /// Takes the minutes that the representative sent to a standby; call it after each
    /// [`Sender::handle_bytes`].
    pub fn take_minutes(&mut self) -> Vec<Minutes> {
        std::mem::take(&mut self.minutes)
    }

    /// Sends stored minutes, as requested by [`Sender::take_fetch`].
    pub fn handle_minutes(&mut self, minutes: Minutes) {
        if self.is_open() {
            self.put(&FromMember::Minutes(minutes));
        }
    }

    /// Requests minutes of all hosts from the representative; returns false if it has none to give.
    pub fn request_minutes(&mut self, fetch: Fetch) -> bool {
        let can = self.is_open() && self.offer.has_minutes;
        if can {
            self.put(&FromMember::Fetch(fetch));
        }
        can
    }
}

impl Copying {
    pub(super) fn new(inputs: Arc<CopyInputs>) -> Copying {
        let (positions, numbered) = (None, Numbered::default());
        Copying { inputs, sent: Some(SentNames::default()), reading: None, positions, numbered, due: None }
    }

    /// Starts to read the minutes that were requested.
    pub(super) fn read(&mut self, fetch: Fetch) {
        // A second request while one is answered is not expected, and not answered.
        let Some(mut sent) = self.sent.take() else { return };
        let reader = self.inputs.own.as_ref().and_then(|own| own.reader().ok().cloned());
        let connected: Option<BTreeSet<HostName>> = fetch.connected.0.clone().map(BTreeSet::from_iter);
        let copies = self.inputs.copies.as_ref().and_then(Copies::reader_of_stored);
        self.reading = Some(tokio::task::spawn_blocking(move || {
            let nothing = || Minutes { hosts: Vec::new(), is_end: true };
            let own = reader.map(|reader| reader.minutes(&fetch, |_| true, &mut sent.of_own));
            let mut minutes = own.unwrap_or_else(nothing);
            if let Some((copies, connected)) = copies.zip(connected).filter(|_| minutes.is_end) {
                let is_down = |host: &HostName| !connected.contains(host);
                let copied = copies.minutes(&fetch, is_down, &mut sent.of_copies);
                minutes.hosts.extend(copied.hosts);
                minutes.is_end = copied.is_end;
            }
            (sent, minutes)
        }));
    }

    /// Waits for minutes that are being read. Cancel safe.
    pub(super) async fn read_done(&mut self) -> Minutes {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let done = reading.await;
        self.reading = None;
        match done {
            Ok((sent, minutes)) => {
                self.sent = Some(sent);
                minutes
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns the fetch that is due, if this host is a standby.
    pub(super) fn fetch(&mut self, now: Instant) -> Option<Fetch> {
        let is_due = self.due.is_none_or(|due| due <= now);
        let copies = self.inputs.copies.as_ref().filter(|_| is_due && (self.inputs.is_standby)())?;
        if self.positions.is_none() {
            self.positions = Some(Positions::new(copies.held()?));
        }
        self.due = Some(now + ANSWER_WITHIN);
        let held = self.positions.as_ref().map(Positions::all).unwrap_or_default();
        let since = calendar().minus(copies.age);
        Some(Fetch { held, since, len_bytes: FETCH_LEN_BYTES, connected: AtEnd(None) })
    }

    /// Stores the representative's answer.
    pub(super) fn store(&mut self, minutes: Minutes, now: Instant) {
        let Some(copies) = &self.inputs.copies else { return };
        self.due = minutes.is_end.then(|| now + FETCH_EVERY);
        for mut of_host in minutes.hosts {
            let Ok(metrics) = self.numbered.learn(&mut of_host) else { return };
            if let Some(positions) = &mut self.positions {
                positions.note(&of_host);
            }
            let copied = Copied { host: of_host.host, metrics, rows: of_host.rows };
            if !copies.store(copied) {
                // Asked again from where the copies end.
                self.positions = None;
                self.due = Some(now + FETCH_EVERY);
            }
        }
    }
}
