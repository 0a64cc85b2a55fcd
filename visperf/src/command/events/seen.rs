//! Which events were printed lately, so that none is printed twice where a new representative tells some again.
//!
//! Rule: bounded; an event is known by its id for as long as [`KEPT_MAX`] others did not come after it.
//! Not here: what was never printed and lies before the beginning (the cursor says that).

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

/// Most events that are remembered; some 3 MB.
const KEPT_MAX: usize = 100_000;

/// The ids, as numbers drawn from them by lot: of two in 2^64 that are taken for one another none is expected.
#[derive(Default)]
pub(super) struct Seen {
    lot: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Seen {
    /// Whether this id was not given before; it is from now on.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        let number = self.lot.hash_one(id);
        if id.is_empty() || !self.known.insert(number) {
            return id.is_empty();
        }
        self.order.push_back(number);
        if self.order.len() > KEPT_MAX
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
        let mut seen = Seen::default();
        assert!(seen.is_new("a") && !seen.is_new("a") && seen.is_new("b"));
        assert!(seen.is_new("") && seen.is_new(""), "what has no id is always printed");
        for number in 0..KEPT_MAX {
            assert!(seen.is_new(&format!("{number}")));
        }
        assert_eq!((seen.known.len(), seen.order.len()), (KEPT_MAX, KEPT_MAX));
        assert!(seen.is_new("a"), "it is forgotten");
    }
}
