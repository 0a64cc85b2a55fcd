//! Under which numbers a representative states its record.
//!
//! Pure. Rule: every statement has a higher number than the one before; a directory that knows a higher one of
//! this representative, or of its domain's end, is believed so far as to go on above it, by steps, so that one
//! that lies cannot use the numbers up.
//! Not here: what is stated (`registrar`), the election's own terms (`election`).

use wire::id::PeerKey;
use wire::replication::Number;

/// How far one answer may raise the term: more than the elections of a domain ever do, and millions of times less
/// than there is.
pub(super) const STEP_MAX: u64 = 1 << 40;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Below this term nothing is stated.
    floor: u64,
    /// The term and sequence of the last statement.
    last: (u64, u64),
}

impl Numbers {
    /// Term and sequence of the next statement of the representative elected under `elected`.
    pub(super) fn next(&mut self, elected: u64) -> (u64, u64) {
        let term = elected.max(self.floor);
        // An earlier term cannot follow a later one.
        let term = term.max(self.last.0);
        let sequence = if self.last.0 == term { self.last.1.saturating_add(1) } else { 1 };
        self.last = (term, sequence);
        self.last
    }

    /// A directory holds `highest`, which `me` has to exceed; whether that was news.
    pub(super) fn exceed(&mut self, me: PeerKey, highest: Number) -> bool {
        let (term, sequence) = self.last;
        if highest.term == term && highest.peer == me {
            // Of this daemon before it was started again.
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
        assert!(!numbers.exceed(ME, number(8, 9, 2)), "told by the next directory");
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
