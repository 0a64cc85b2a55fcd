//! Calls of one name, in the order in which they became known.
//!
//! Pure. Nearly every name has one call; a single call needs no allocation.

use std::collections::VecDeque;

/// One call or several, ascending; empty only while the last one is being removed.
#[derive(Clone, Debug)]
pub(crate) enum Lives {
    One(u64),
    #[expect(clippy::box_collection, reason = "so that the many names of one call stay small")]
    Several(Box<VecDeque<u64>>),
}

impl Lives {
    /// All calls, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.latest(usize::MAX)
    }

    /// The last `most` calls, oldest first.
    pub(crate) fn latest(&self, most: usize) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let (one, several) = match self {
            Lives::One(one) => (Some(*one), None),
            Lives::Several(several) => (None, Some(several.range(several.len().saturating_sub(most)..))),
        };
        one.into_iter().chain(several.into_iter().flatten().copied())
    }

    /// The latest call.
    pub(crate) fn last(&self) -> Option<u64> {
        self.iter().next_back()
    }

    pub(crate) fn insert(&mut self, slot: u64) {
        match self {
            Lives::One(one) if *one == slot => {}
            Lives::One(one) => {
                let both = [slot.min(*one), slot.max(*one)];
                *self = Lives::Several(Box::new(VecDeque::from(both)));
            }
            Lives::Several(several) => {
                if let Err(at) = several.binary_search(&slot) {
                    several.insert(at, slot);
                }
            }
        }
    }

    /// Remove a call. Returns whether none is left.
    pub(crate) fn remove(&mut self, slot: u64) -> bool {
        match self {
            Lives::One(one) => *one == slot,
            Lives::Several(several) => {
                if let Ok(at) = several.binary_search(&slot) {
                    several.remove(at);
                }
                several.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lives: &Lives, expected: &[u64]) {
        assert_eq!(lives.iter().collect::<Vec<_>>(), expected);
        assert_eq!(lives.last(), expected.last().copied());
        let two = &expected[expected.len().saturating_sub(2)..];
        assert_eq!(lives.latest(2).collect::<Vec<_>>(), two);
    }

    #[test]
    fn calls_stand_in_order_whichever_came_first() {
        let mut lives = Lives::One(5);
        lives.insert(5);
        check(&lives, &[5]);
        for slot in [9, 2, 7, 9] {
            lives.insert(slot);
        }
        check(&lives, &[2, 5, 7, 9]);
        assert!(!lives.remove(5) && !lives.remove(6) && !lives.remove(9));
        check(&lives, &[2, 7]);
        assert!(!lives.remove(2) && lives.remove(7));
        assert!(!Lives::One(3).remove(4) && Lives::One(3).remove(3));
    }
}
