//! Claims and terms that this sensor has seen.
//!
//! Pure. Invariants: the accepted claim and `min_term` only grow; a new term is above every term that was
//! seen. A term that was only seen raises the next promotion and nothing else.
//! Not here: when a claim is accepted or made (`node::claims`, `node::candidate`).

use wire::id::PeerKey;
use wire::membership::{Claim, Term};

/// Rounds beyond which a term is implausible; the encoding of a term ends at 16 times as many.
const ROUND_MAX: u64 = 1 << 40;

/// How many rounds a term may be ahead of all that were seen: a promotion each second for two years.
const ROUNDS_AHEAD_MAX: u64 = 1 << 26;

#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The highest claim accepted in this incarnation.
    accepted: Option<Claim>,
    /// The last claim that its holder ended: a sensor that obeys it still has not heard that yet.
    ended: Option<Claim>,
    /// The highest term used or accepted, in earlier incarnations too: nothing below it is accepted.
    min_term: Term,
    /// The highest term seen: the next promotion goes above it.
    highest: Term,
    /// The highest term that was requested to be written.
    written: Term,
}

impl Terms {
    /// The state after a start; `term` was read from disk.
    pub(super) fn new(term: Term) -> Terms {
        Terms { accepted: None, ended: None, min_term: term, highest: term, written: term }
    }

    pub(super) fn accepted(&self) -> Option<Claim> {
        self.accepted
    }

    /// The holder of the accepted claim.
    pub(super) fn holder(&self) -> Option<PeerKey> {
        self.accepted.map(|claim| claim.holder)
    }

    pub(super) fn min_term(&self) -> Term {
        self.min_term
    }

    /// Remember a term that a peer sent. Returns false, and remembers nothing, if it is implausible.
    pub(super) fn observe(&mut self, term: Term) -> bool {
        let is_plausible =
            term.round() <= ROUND_MAX && term.round() <= self.highest.round() + ROUNDS_AHEAD_MAX;
        if is_plausible {
            self.highest = self.highest.max(term);
        }
        is_plausible
    }

    /// Whether fencing lets this sensor accept `claim`.
    pub(super) fn allows(&self, claim: Claim) -> bool {
        claim.term >= self.min_term && self.accepted.is_none_or(|accepted| claim >= accepted)
    }

    /// Whether `claim` is above the accepted one.
    pub(super) fn is_new(&self, claim: Claim) -> bool {
        claim.term >= self.min_term && self.accepted.is_none_or(|accepted| claim > accepted)
    }

    /// Accept a claim of another sensor or of this one. Returns whether the holder changed.
    pub(super) fn accept(&mut self, claim: Claim) -> bool {
        let is_change = self.accepted.is_some_and(|accepted| accepted.holder != claim.holder);
        self.accepted = Some(claim);
        self.min_term = self.min_term.max(claim.term);
        self.highest = self.highest.max(claim.term);
        is_change
    }

    /// The term of the next promotion of the sensor with this mark.
    pub(super) fn next(&mut self, mark: u32) -> Term {
        self.highest = self.highest.max(self.min_term).next_for(mark);
        self.highest
    }

    /// Request that `term` is written. Returns the term to write: the highest that was ever requested.
    pub(super) fn request_write(&mut self, term: Term) -> Term {
        self.written = self.written.max(term);
        self.written
    }

    pub(super) fn has_ended(&self, claim: Claim) -> bool {
        self.ended == Some(claim)
    }

    /// The holder ended its claim.
    pub(super) fn end(&mut self, claim: Claim) {
        self.ended = Some(claim);
    }

    /// The leader was heard: nothing that was ended matters any more.
    pub(super) fn clear_ended(&mut self) {
        self.ended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(term: Term, number: u8) -> Claim {
        Claim { term, holder: PeerKey([number; 32]) }
    }

    #[test]
    fn the_next_term_is_above_every_term_seen_and_an_implausible_one_is_not_seen() {
        let mut terms = Terms::new(Term(0).next_for(1));
        let far = Term(0).next_for(1).next_for(1).next_for(1);
        assert!(terms.observe(far) && !terms.observe(Term(u64::MAX)));
        assert!(terms.next(1) > far);
        assert_eq!(terms.min_term(), Term(0).next_for(1), "a term that was only seen fences nothing");
    }

    #[test]
    fn a_claim_below_the_accepted_one_or_the_disk_is_not_allowed() {
        let (low, mid) = (Term(0).next_for(1), Term(0).next_for(1).next_for(1));
        let mut terms = Terms::new(mid);
        assert!(!terms.allows(claim(low, 9)) && terms.allows(claim(mid, 2)));
        assert!(!terms.accept(claim(mid, 2)), "the first holder is no change");
        assert!(
            !terms.allows(claim(mid, 1)) && terms.allows(claim(mid, 3)),
            "the key decides between equals"
        );
        assert!(terms.allows(claim(mid, 2)) && !terms.is_new(claim(mid, 2)));
        assert!(terms.accept(claim(mid, 3)));
    }
}
