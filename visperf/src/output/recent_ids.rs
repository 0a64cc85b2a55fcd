//! Deduplication of printed items: remembers their ids, so that nothing that is sent again is printed twice.
//!
//! Rule: bounded; an id is forgotten after [`RecentIds::most`] newer ones.
//! Not here: items before the start (cursors skip them).

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

/// The ids as keyed 64-bit hashes; at this size no collision is expected.
#[derive(Debug)]
pub(crate) struct RecentIds {
    most: usize,
    lot: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl RecentIds {
    /// Remember the last `most` ids.
    pub(crate) fn new(most: usize) -> RecentIds {
        RecentIds { most, lot: RandomState::new(), known: HashSet::new(), order: VecDeque::new() }
    }

    /// Whether this id was seen recently.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.known.contains(&self.lot.hash_one(id))
    }

    /// Record an id; returns whether it is new. An empty id is always new.
    pub(crate) fn is_new(&mut self, id: &str) -> bool {
        let number = self.lot.hash_one(id);
        if id.is_empty() || !self.known.insert(number) {
            return id.is_empty();
        }
        self.order.push_back(number);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_new_once_and_again_when_it_is_forgotten() {
        const KEPT_MAX: usize = 100;
        let mut seen = RecentIds::new(KEPT_MAX);
        assert!(!seen.has("a") && seen.is_new("a") && seen.has("a") && !seen.is_new("a") && seen.is_new("b"));
        assert!(seen.is_new("") && seen.is_new(""), "what has no id is always printed");
        for number in 0..KEPT_MAX {
            assert!(seen.is_new(&format!("{number}")));
        }
        assert_eq!((seen.known.len(), seen.order.len()), (KEPT_MAX, KEPT_MAX));
        assert!(seen.is_new("a"), "it is forgotten");
    }
}
