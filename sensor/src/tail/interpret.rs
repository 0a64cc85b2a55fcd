//! Interfaces of the tail to the filters and to the joining of calls; tests replace both.
//!
//! Not here: the filters themselves (`log_filters`), which filter reads which file (`sensor::filters`).

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
/// Contract: a new interpreter that gets the changes of another, and then the lines from that one's
/// `resume_offset` on, finds what the other would have found.
pub trait Interpret: Send {
    /// Interpret a line; events are appended to `out`.
    fn line(&mut self, line: &[u8], offset: u64, seen: Time, out: &mut Vec<Found>);
    /// There are no more lines for now: close the record that waits for more.
    fn idle(&mut self, seen: Time, out: &mut Vec<Found>);
    /// Offset of the record that waits for more lines, in bytes.
    fn resume_offset(&self) -> Option<u64>;
    /// Append the changes since the last call.
    fn take_changes(&mut self, into: &mut Vec<Change>);
    /// Apply a change that another interpreter made.
    fn apply(&mut self, change: Change);
    /// Everything that it remembers.
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
    /// The name of the filter for a file: the `configured` one, or the one that recognises the file by its
    /// name and first bytes (at most [`super::FIRST_LEN_MAX_BYTES`]). `None` if no filter does.
    fn choose(&self, configured: Option<&str>, path: &Path, first: &[u8]) -> Option<CompactString>;
    /// A new interpreter of this filter for this log; `None` if there is no filter of this name (any more).
    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>>;
}

/// Joins events into calls.
pub trait Join: Send {
    /// The call an event belongs to; empty if none.
    fn join(&mut self, found: &Found, id: Id) -> CompactString;
    /// Everything known of the calls, for [`Join::restore`].
    fn snapshot(&self) -> Vec<u8>;
    /// Continue from a snapshot; an empty one has no calls.
    fn restore(&mut self, snapshot: &[u8]);
}

/// The joiner, which queries read while the tail writes it. The lock is held for one event at a time.
impl Join for Arc<Mutex<Joiner>> {
    fn join(&mut self, found: &Found, id: Id) -> CompactString {
        self.lock().unwrap_or_else(PoisonError::into_inner).join(found, id)
    }

    fn snapshot(&self) -> Vec<u8> {
        let joiner = self.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = "the calls are plain data";
        // Measured first: a list that grows by doubling takes up to three times its length while it grows.
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
