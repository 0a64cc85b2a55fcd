//! The ended calls to print: each once, when nothing more came about it for a moment.
//!
//! Pure: a tick is whatever the caller's is. Rule: several logs report one end, the first often without what the next one
//! knows, so a call is printed with all of them. Not here: what is printed of it (`text`).

use crate::output::seen::Seen;
use compact_str::CompactString;
use std::collections::BTreeMap;

/// Calls that wait to be printed; beyond them they are printed at once.
const WAITING_MAX: usize = 1_000;
/// Printed calls that are remembered, so that none is printed twice.
const TOLD_KEPT_MAX: usize = 10_000;

/// The calls that ended.
pub(super) struct Ended {
    /// And at how many ticks nothing had come since the one before.
    waiting: BTreeMap<CompactString, u32>,
    told: Seen,
}

impl Default for Ended {
    fn default() -> Ended {
        Ended { waiting: BTreeMap::new(), told: Seen::new(TOLD_KEPT_MAX) }
    }
}

impl Ended {
    /// An event of this call came; `may_end` says whether it is of a kind that ends calls.
    pub(super) fn take(&mut self, call: &CompactString, may_end: bool) {
        if let Some(quiet) = self.waiting.get_mut(call) {
            *quiet = 0;
        } else if may_end && !self.told.has(call) {
            self.waiting.insert(call.clone(), 0);
        }
    }

    /// Whether all that wait are to be printed at once.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// A tick has passed: the calls of which nothing came since the one before it.
    pub(super) fn tick(&mut self) -> Vec<CompactString> {
        let settled = self.waiting.extract_if(.., |_, quiet| {
            *quiet += 1;
            *quiet > 1
        });
        settled.map(|(call, _)| call).collect()
    }

    /// All that wait.
    pub(super) fn all(&mut self) -> Vec<CompactString> {
        std::mem::take(&mut self.waiting).into_keys().collect()
    }

    /// Whether this call was not printed yet, of the last [`TOLD_KEPT_MAX`]; now it is.
    pub(super) fn is_new(&mut self, call: &CompactString) -> bool {
        self.told.is_new(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_once_and_only_when_nothing_more_comes() {
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
