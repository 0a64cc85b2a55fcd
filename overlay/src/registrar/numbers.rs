//! Numbers of a representative's records.
//!
//! Pure. Rule: every record has a higher number than the one before. If a directory knows a higher number, of
//! this representative or of an earlier leave of its domain, the next record exceeds it, but by a limited
//! step, so that a directory that lies cannot use the numbers up.
//! Not here: the content of a record (`registrar`), the election's own terms (`election`).

use wire::id::PeerKey;
use wire::replication::Number;

/// How far one answer may raise a number: more than the elections of a domain ever do, and millions of times
/// less than the range.
pub(super) const STEP_MAX: u64 = 1 << 40;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The next record has at least this term.
    floor: u64,
    /// Term and sequence of the last record.
    last: (u64, u64),
}

impl Numbers {
    /// Term and sequence of the next record of the representative elected under `elected`.
    pub(super) fn next(&mut self, elected: u64) -> (u64, u64) {
        let term = elected.max(self.floor);
        // A record never has an earlier term than the one before.
        let term = term.max(self.last.0);
        let sequence = if self.last.0 == term { self.last.1.saturating_add(1) } else { 1 };
        self.last = (term, sequence);
        self.last
    }

    /// A directory holds `highest`, which the records of `me` must exceed. Returns whether that was news.
    pub(super) fn exceed(&mut self, me: PeerKey, highest: Number) -> bool {
        let (term, sequence) = self.last;
        if highest.term == term && highest.peer == me {
            // A record of this daemon from before its restart.
            if highest.sequence >= sequence {
                self.last.1 = highest.sequence.min(sequence.saturating_add(STEP_MAX));
                return true;
            }
            return false;
        }
        if (highest.term, highest.peer) <= (term, me) {
            return false;
        }
        let wanted = highest.term.saturating_add(1).min(term.saturating_add(STEP_MAX));
        let news = wanted > self.floor;
        self.floor = wanted.max(self.floor);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: PeerKey = PeerKey([5; 32]);

    fn number(term: u64, peer: u8, sequence: u64) -> Number {
        Number { term, peer: PeerKey([peer; 32]), sequence }
    }

    #[test]
    fn numbers_only_grow() {
        let mut numbers = Numbers::default();
        assert_eq!([3, 3, 4, 3].map(|elected| numbers.next(elected)), [(3, 1), (3, 2), (4, 1), (4, 2)]);
    }

    #[test]
    fn what_a_directory_remembers_is_exceeded_once_and_for_all() {
        let mut numbers = Numbers::default();
        numbers.next(3);
        assert!(numbers.exceed(ME, number(3, 5, 40)));
        assert_eq!(numbers.next(3), (3, 41));
        assert!(!numbers.exceed(ME, number(3, 5, 7)), "said before");
        assert!(!numbers.exceed(ME, number(2, 9, 7)), "lower");
        assert!(!numbers.exceed(ME, number(3, 4, 99)), "a lower key of the same term");
        assert!(numbers.exceed(ME, number(8, 9, 2)), "the domain left at that number");
        assert!(!numbers.exceed(ME, number(8, 9, 2)), "sent by the next directory");
        assert_eq!(numbers.next(3), (9, 1));
        assert_eq!(numbers.next(3), (9, 2));
    }

    #[test]
    fn a_directory_that_lies_cannot_use_the_numbers_up() {
        let mut numbers = Numbers::default();
        numbers.next(1);
        assert!(numbers.exceed(ME, number(u64::MAX, 9, 1)));
        assert_eq!(numbers.next(1), (1 + STEP_MAX, 1));
        assert!(numbers.exceed(ME, number(1 + STEP_MAX, 5, u64::MAX)));
        assert_eq!(numbers.next(1), (1 + STEP_MAX, 2 + STEP_MAX));
    }
}
