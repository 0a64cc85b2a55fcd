//! What the tail needs from filters and from the joining of calls: the seams at which tests put doubles.
//!
//! Not here: the filters themselves (`log_filters`), which filter is for which file (`sensor::filters`).

use compact_str::CompactString;
use log_filters::engine::Engine;
use log_filters::found::{Change, Found};
use log_filters::join::Joiner;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use wire::event::Id;
use wire::time::Time;

/// One filter at work on one log.
///
/// Contract: a new interpreter given the changes of another, and then the lines from that one's
/// `resume_offset` on, finds what the other would have found.
pub trait Interpret: Send {
    /// Take a line.
    fn line(&mut self, line: &[u8], offset: u64, seen: Time, out: &mut Vec<Found>);
    /// There are no more lines for now: close a record that waits for its end.
    fn idle(&mut self, seen: Time, out: &mut Vec<Found>);
    /// Where a record that waits for its end begins, in bytes.
    fn resume_offset(&self) -> Option<u64>;
    /// Append the changes since the last call.
    fn take_changes(&mut self, into: &mut Vec<Change>);
    /// Take over a change.
    fn apply(&mut self, change: Change);
    /// Everything remembered.
    fn snapshot(&self) -> Vec<Change>;
    /// Lines or records that no rule took, so far.
    fn rejects(&self) -> u64;
}

impl Interpret for Engine {
    fn line(&mut self, line: &[u8], offset: u64, seen: Time, out: &mut Vec<Found>) {
        Engine::line(self, line, offset, seen, out);
    }

    fn idle(&mut self, seen: Time, out: &mut Vec<Found>) {
        Engine::idle(self, seen, out);
    }

    fn resume_offset(&self) -> Option<u64> {
        Engine::resume_offset(self)
    }

    fn take_changes(&mut self, into: &mut Vec<Change>) {
        Engine::take_changes(self, into);
    }

    fn apply(&mut self, change: Change) {
        Engine::apply(self, change);
    }

    fn snapshot(&self) -> Vec<Change> {
        Engine::snapshot(self)
    }

    fn rejects(&self) -> u64 {
        self.counters().unknown
    }
}

/// Chooses filters and makes interpreters.
pub trait Filters: Send {
    /// The name of the filter for a file: the wanted one, or the one that knows the file by its name and
    /// first bytes (at most [`super::FIRST_LEN_MAX_BYTES`]). `None` if no filter does.
    fn choose(&self, wanted: Option<&str>, path: &Path, first: &[u8]) -> Option<CompactString>;
    /// An interpreter at the start of this log; `None` if there is no filter of this name (any more).
    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>>;
}

/// Joins events into calls.
pub trait Join: Send {
    /// The call an event belongs to; empty if none.
    fn join(&mut self, found: &Found, id: Id) -> CompactString;
    /// Everything known of the calls, for [`Join::restore`].
    fn snapshot(&self) -> Vec<u8>;
    /// Go on from a snapshot; an empty one is the beginning.
    fn restore(&mut self, snapshot: &[u8]);
}

/// The joiner that queries read while the tail writes it. The lock is held for one event at a time.
impl Join for Arc<Mutex<Joiner>> {
    fn join(&mut self, found: &Found, id: Id) -> CompactString {
        self.lock().unwrap_or_else(PoisonError::into_inner).join(found, id)
    }

    fn snapshot(&self) -> Vec<u8> {
        let joiner = self.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = "the calls are plain data";
        // Measured first: a list that grows by doubling takes up to three times its length for a moment.
        let len = postcard::experimental::serialized_size(&*joiner).expect(plain);
        postcard::to_extend(&*joiner, Vec::with_capacity(len)).expect(plain)
    }

    fn restore(&mut self, snapshot: &[u8]) {
        if snapshot.is_empty() {
            return;
        }
        match postcard::from_bytes(snapshot) {
            Ok(joiner) => *self.lock().unwrap_or_else(PoisonError::into_inner) = joiner,
            Err(error) => {
                tracing::error!(%error, "the open calls in the journal cannot be read; starting without them");
            }
        }
    }
}
