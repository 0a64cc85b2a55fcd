//! Outcome of one evaluation: what it reads of its subscription, and what it produces. The account is locked
//! only before and after the evaluation, so that a client that takes entries never waits for a filter or a
//! script.
//!
//! Pure. Not here: the subscription's account, to which an outcome is added (`account`).

use crate::process::visibility::Visibility;
use std::sync::Arc;
use wire::channel::ChannelRequest;
use wire::channel::stream::Body;

/// Outcome of one evaluation; the first fields are the state of the subscription when the evaluation started.
#[derive(Debug)]
pub struct Outcome {
    pub wanted: Arc<ChannelRequest>,
    /// How often it had been altered.
    pub revision: u64,
    /// Entries that had been left out.
    pub missed_total: u64,
    /// Whether it had not been stopped.
    pub is_live: bool,
    /// What the viewer may see of processes.
    pub visibility: Visibility,
    pub is_due: bool,
    /// Samples in which no record passed the filter or changed.
    pub empty: u64,
    /// Entries in their order.
    pub entries: Vec<NewEntry>,
    /// Why it is to be stopped, and when, in nanoseconds since boot.
    pub stopped: Option<(String, u64)>,
}

/// An entry without its number.
#[derive(Debug)]
pub struct NewEntry {
    /// Nanoseconds since boot.
    pub at_ns: u64,
    pub body: Body,
    /// Whether the entry is left out once the bytes of the budget are used up.
    pub is_budgeted: bool,
}

impl Outcome {
    /// Adds an entry, to be left out if the bytes of the budget are used up.
    pub fn push_budgeted(&mut self, at_ns: u64, body: Body) {
        self.entries.push(NewEntry { at_ns, body, is_budgeted: true });
    }

    /// Adds an entry that is queued whatever its size.
    pub fn push(&mut self, at_ns: u64, body: Body) {
        self.entries.push(NewEntry { at_ns, body, is_budgeted: false });
    }

    /// Stops the subscription for this reason.
    pub fn stop(&mut self, reason: String, at_ns: u64) {
        self.stopped = Some((reason, at_ns));
    }
}
