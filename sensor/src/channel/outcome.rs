//! What an evaluation reads of its subscription, and what comes of it: the part of a subscription that is locked only before and after
//! the evaluation, so that a client that takes from it never waits for a filter or a script.
//!
//! Pure. Not here: the subscription's account, to which an outcome is added (`account`).

use crate::process::sight::Sight;
use std::sync::Arc;
use wire::channel::Wanted;
use wire::channel::stream::Body;

/// One evaluation of a subscription, as it stood when the evaluation started.
#[derive(Debug)]
pub struct Outcome {
    /// What is wanted.
    pub wanted: Arc<Wanted>,
    /// How often it had been altered.
    pub revision: u64,
    /// Entries that had been left out.
    pub missed_total: u64,
    /// Whether it had not been stopped.
    pub is_live: bool,
    /// What may be seen of processes.
    pub sight: Sight,
    /// Whether a sample was due.
    pub is_due: bool,
    /// Samples of which nothing passed or changed.
    pub empty: u64,
    /// Entries in their order.
    pub entries: Vec<Produced>,
    /// Why it is to be stopped, and as of when.
    pub stopped: Option<(String, u64)>,
}

/// An entry.
#[derive(Debug)]
pub struct Produced {
    /// As of so many nanoseconds since boot.
    pub at_ns: u64,
    /// What it says.
    pub body: Body,
    /// Whether it is left out once the bytes of the budget are used up.
    pub is_budgeted: bool,
}

impl Outcome {
    /// An entry, unless the bytes of the budget are used up.
    pub fn tell(&mut self, at_ns: u64, body: Body) {
        self.entries.push(Produced { at_ns, body, is_budgeted: true });
    }

    /// An entry, whatever it costs.
    pub fn push(&mut self, at_ns: u64, body: Body) {
        self.entries.push(Produced { at_ns, body, is_budgeted: false });
    }

    /// Nothing more comes of the subscription, for this reason.
    pub fn stop(&mut self, reason: String, at_ns: u64) {
        self.stopped = Some((reason, at_ns));
    }
}
