//! Map from the offset of a record to its line number, for logs of any size.
//!
//! Pure. The offsets of recent lines are stored, and of older ones only those that the engine may refer to
//! again because it remembers a key from there. Both are bounded.

use std::collections::{BTreeMap, VecDeque};

/// Number of recent lines stored: more than the longest record (10,000 lines) and a batch of changes.
const RECENT_MAX: usize = 16_384;
/// Number of older offsets stored: twice the keys that an engine remembers.
const REMEMBERED_MAX: usize = 131_072;

/// The line numbers of one log, from 1.
#[derive(Debug, Default)]
pub(crate) struct LineNumbers {
    recent: VecDeque<u64>,
    dropped: u64,
    remembered: BTreeMap<u64, u64>,
}

impl LineNumbers {
    /// Add the next line, at `offset`; returns its number.
    pub(crate) fn push(&mut self, offset: u64) -> u64 {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
            self.dropped += 1;
        }
        self.recent.push_back(offset);
        self.dropped + self.recent.len() as u64
    }

    /// Retain the number of the line at `offset` after it is no longer recent.
    pub(crate) fn remember(&mut self, offset: u64) {
        if let Some(line) = self.recent(offset) {
            self.remembered.insert(offset, line);
            if self.remembered.len() > REMEMBERED_MAX {
                self.remembered.pop_first();
            }
        }
    }

    /// The number of the line that starts at `offset`; 0 if it is no longer known.
    pub(crate) fn of(&self, offset: u64) -> u64 {
        self.recent(offset).or_else(|| self.remembered.get(&offset).copied()).unwrap_or(0)
    }

    fn recent(&self, offset: u64) -> Option<u64> {
        let at = self.recent.binary_search(&offset).ok()?;
        Some(self.dropped + at as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_and_remembered_lines_are_known() {
        let mut numbers = LineNumbers::default();
        for at in 0..40_000_u64 {
            assert_eq!(numbers.push(at * 10), at + 1);
            if at == 7 {
                numbers.remember(70);
            }
        }
        assert_eq!(numbers.of(70), 8);
        assert_eq!(numbers.of(80), 0, "dropped");
        assert_eq!(numbers.of(399_990), 40_000);
        assert_eq!(numbers.of((40_000 - RECENT_MAX as u64) * 10), 40_000 - RECENT_MAX as u64 + 1);
        assert_eq!(numbers.of(399_991), 0, "no line begins there");
    }
}
