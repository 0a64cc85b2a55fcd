//! Queue of ended calls: each call is printed once, after no event about it arrived for a tick.
//!
//! Pure: the caller defines the tick. Rule: several logs report one end, and the first often lacks details
//! that the next one has; so a call is printed after all of them. Not here: the printed text (`text`).

use crate::output::recent_ids::RecentIds;
use compact_str::CompactString;
use std::collections::BTreeMap;

/// Most calls in the queue; when it is full, all are printed at once.
const WAITING_MAX: usize = 1_000;
/// Size of the list of printed calls, which prevents printing a call twice.
const PRINTED_MAX: usize = 10_000;

pub(super) struct Ended {
    /// Calls to be printed, and the number of ticks since the last event of each.
    waiting: BTreeMap<CompactString, u32>,
    printed: RecentIds,
}

impl Default for Ended {
    fn default() -> Ended {
        Ended { waiting: BTreeMap::new(), printed: RecentIds::new(PRINTED_MAX) }
    }
}

impl Ended {
    /// Record an event of this call; `may_end` states whether events of its kind end calls.
    pub(super) fn take(&mut self, call: &CompactString, may_end: bool) {
        if let Some(quiet) = self.waiting.get_mut(call) {
            *quiet = 0;
        } else if may_end && !self.printed.has(call) {
            self.waiting.insert(call.clone(), 0);
        }
    }

    /// Whether the queue is full, so that all calls must be printed at once.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// A tick has passed: returns the calls without an event since the previous tick.
    pub(super) fn tick(&mut self) -> Vec<CompactString> {
        let settled = self.waiting.extract_if(.., |_, quiet| {
            *quiet += 1;
            *quiet > 1
        });
        settled.map(|(call, _)| call).collect()
    }

    /// Every call in the queue.
    pub(super) fn all(&mut self) -> Vec<CompactString> {
        std::mem::take(&mut self.waiting).into_keys().collect()
    }

    /// Whether this call is not among the last [`PRINTED_MAX`] printed ones; marks it as printed.
    pub(super) fn is_new(&mut self, call: &CompactString) -> bool {
        self.printed.is_new(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_printed_once_and_only_when_nothing_more_comes() {
        let (mut ended, one, other) = (Ended::default(), "slurm:1".into(), "slurm:2".into());
        ended.take(&one, false);
        assert_eq!((ended.tick(), ended.tick()), (Vec::new(), Vec::new()), "it has not ended");
        ended.take(&one, true);
        assert_eq!(ended.tick(), Vec::<CompactString>::new(), "something came since the tick before");
        ended.take(&one, false);
        ended.take(&other, true);
        assert_eq!(ended.tick(), Vec::<CompactString>::new());
        ended.take(&other, true);
        assert_eq!(ended.tick(), std::slice::from_ref(&one));
        assert!(ended.is_new(&one) && !ended.is_new(&one));
        ended.take(&one, true);
        assert_eq!(ended.all(), [other]);
        assert_eq!(ended.all(), Vec::<CompactString>::new());
    }
}
