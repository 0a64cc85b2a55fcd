//! State of one domain: its representatives' statements, its leave, its revocation lists.
//!
//! Pure. Rule: the result does not depend on the order in which the same statements arrive, so that
//! directories converge. An entry stores the highest number of each representative, at most the [`SLOTS_MAX`]
//! highest in all, and nothing at or below a leave. A statement below the highest is stored until its own
//! lease ends; then only its number stays as a mark, so that it is not accepted again.

use super::outcome::{Accepted, Refused};
use super::{Answer, State};
use crate::opened::{Opened, OpenedDenial, OpenedLeave};
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::replication::{Detail, Number};
use wire::time::Moment;
use xxhash_rust::xxh3::xxh3_64;

/// Most representatives of a domain stored at a time. A split in four is rare; in a split in more, the
/// representatives with the highest numbers report.
pub const SLOTS_MAX: usize = 4;

/// Most numbers of previous representatives stored, highest first. They matter while such a statement may
/// still be live in another directory, which is for one lease.
pub const MARKS_MAX: usize = 8;

/// Lease of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validity {
    /// Live until this moment.
    Until(Moment),
    /// Ended; never [`State::Live`].
    Gone(State),
}

/// Highest statement of one representative.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) opened: Opened,
    /// When it was accepted, or read from the snapshot.
    pub(crate) heard: Moment,
    /// Its age at `heard`: zero for a statement received from the representative itself.
    pub(crate) age_before: Duration,
    pub(crate) validity: Validity,
}

impl Slot {
    pub(crate) fn answer(&self, now: Moment) -> Answer<'_> {
        let (state, lease_remaining) = match self.validity {
            Validity::Until(until) if until > now => (State::Live, until.since(now)),
            Validity::Until(_) => (State::Expired, Duration::ZERO),
            Validity::Gone(state) => (state, Duration::ZERO),
        };
        let age = now.since(self.heard).saturating_add(self.age_before);
        Answer {
            record: self.opened.record(),
            opened: &self.opened,
            state,
            age,
            lease_remaining,
            partial: vec![],
        }
    }
}

/// A leave: its number is stored for ever, the signed form for a week.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) number: Number,
    pub(crate) signed: Option<OpenedLeave>,
    pub(crate) heard: Moment,
    pub(crate) age_before: Duration,
}

impl Left {
    pub(crate) fn age(&self, now: Moment) -> Duration {
        now.since(self.heard).saturating_add(self.age_before)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Highest number first. The first one stays after its lease ended, the others do not.
    slots: Vec<Slot>,
    marks: Vec<Number>,
    pub(crate) left: Option<Left>,
    /// At most one signed by the root and one by the issuer.
    denials: Vec<OpenedDenial>,
    /// When the last statement of the domain ended, in milliseconds on this clock.
    pub(crate) gone_since: i64,
    /// Present contribution of the domain to the digest.
    pub(crate) summed: u64,
}

impl Entry {
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn marks(&self) -> &[Number] {
        &self.marks
    }

    pub(crate) fn denials(&self) -> &[OpenedDenial] {
        &self.denials
    }

    pub(crate) fn is_live(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.validity, Validity::Until(_)))
    }

    /// Highest number known for the domain.
    pub(crate) fn highest(&self) -> Option<Number> {
        let held = self.slots.first().map(|slot| slot.opened.number());
        held.max(self.left.as_ref().map(|left| left.number))
    }

    /// Check whether the statement may be stored, and with what outcome.
    pub(crate) fn admit(&self, opened: &Opened) -> Result<Accepted, Refused> {
        let number = opened.number();
        let domain = || opened.record().domain.clone();
        let behind = |held: Number| Refused::Behind {
            domain: domain(),
            term: number.term,
            sequence: number.sequence,
            held_term: held.term,
            held_sequence: held.sequence,
        };
        if let Some(left) = self.left.as_ref().filter(|left| left.number >= number) {
            let (left_term, left_sequence) = (left.number.term, left.number.sequence);
            return Err(Refused::Left { domain: domain(), left_term, left_sequence });
        }
        if let Some(slot) = self.slot(number.peer) {
            let held = slot.opened.number();
            if number < held {
                return Err(behind(held));
            }
            if number == held && opened.record() == slot.opened.record() {
                return Ok(Accepted::Unchanged);
            }
            if number == held {
                let held_host = slot.opened.record().host.to_string();
                let (term, sequence) = (number.term, number.sequence);
                return Err(Refused::Contradicts { domain: domain(), term, sequence, held_host });
            }
        } else if let Some(&mark) = self.mark(number.peer).filter(|&&mark| number <= mark) {
            return Err(behind(mark));
        } else if self.slots.len() >= SLOTS_MAX
            && self.slots.last().is_some_and(|lowest| number < lowest.opened.number())
        {
            return Err(Refused::Crowded { domain: domain() });
        }
        Ok(match self.slots.first() {
            Some(first) if first.opened.number() > number => {
                Accepted::Partial { held_term: first.opened.record().term }
            }
            Some(Slot { validity: Validity::Until(_), .. }) => Accepted::Renewed,
            Some(_) | None => Accepted::Registered,
        })
    }

    /// Store a statement that [`Entry::admit`] accepted.
    pub(crate) fn put(&mut self, slot: Slot) {
        let number = slot.opened.number();
        self.slots.retain(|held| held.opened.peer() != number.peer);
        self.marks.retain(|mark| mark.peer != number.peer);
        let at = self.slots.partition_point(|held| held.opened.number() > number);
        self.slots.insert(at, slot);
        self.settle();
        while self.slots.len() > SLOTS_MAX {
            let lowest = self.slots.pop().expect("more than some");
            self.remember(lowest.opened.number());
        }
    }

    /// End the leases that are over at `now`. Returns whether the first statement's lease was among them.
    pub(crate) fn expire(&mut self, now: Moment) -> bool {
        let mut first_ended = false;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if let Validity::Until(until) = slot.validity
                && until <= now
            {
                slot.validity = Validity::Gone(State::Expired);
                self.gone_since = self.gone_since.max(super::millis(until.0));
                first_ended |= at == 0;
            }
        }
        self.settle();
        first_ended
    }

    /// Whether a leave is new. A leave below a later statement of its maker is accepted, too: it then ends
    /// nothing, and directories that received the two in another order still converge.
    ///
    /// # Errors
    /// The number of the stored leave, if it is higher.
    pub(crate) fn admit_leave(&self, number: Number) -> Result<bool, Number> {
        match self.left.as_ref().map(|left| left.number) {
            Some(held) if held > number => Err(held),
            held => Ok(held != Some(number)),
        }
    }

    pub(crate) fn leave(&mut self, left: Left) {
        self.slots.retain(|slot| slot.opened.number() > left.number);
        self.marks.retain(|&mark| mark > left.number);
        self.left = Some(left);
    }

    /// Whether a revocation list is newer than the stored one of the same kind of signer (root or issuer).
    pub(crate) fn is_newer_denial(&self, number: wire::replication::DenialNumber) -> bool {
        let held =
            self.denials.iter().find(|held| held.number.delegation.is_some() == number.delegation.is_some());
        held.is_none_or(|held| held.number < number)
    }

    pub(crate) fn deny(&mut self, denial: OpenedDenial) {
        let by_issuer = denial.number.delegation.is_some();
        self.denials.retain(|held| held.number.delegation.is_some() != by_issuer);
        self.denials.push(denial);
        self.denials.sort_by_key(|held| held.number);
    }

    /// Store a number, so that no statement of the same representative at or below it is accepted again.
    pub(crate) fn remember(&mut self, number: Number) {
        if let Some(mark) = self.marks.iter_mut().find(|mark| mark.peer == number.peer) {
            *mark = number.max(*mark);
        } else {
            self.marks.push(number);
        }
        self.marks.sort_unstable_by(|one, other| other.cmp(one));
        self.marks.truncate(MARKS_MAX);
    }

    /// The highest statement, with the live statements that cover hosts missing from it.
    pub(crate) fn answer(&self, now: Moment) -> Option<Answer<'_>> {
        let (first, others) = self.slots.split_first()?;
        let mut answer = first.answer(now);
        let partial = others.iter().filter(|slot| {
            let lacks = answer.state != State::Live || slot.opened.has_more_than(&first.opened);
            lacks && slot.answer(now).state == State::Live
        });
        answer.partial = partial.map(|slot| slot.answer(now)).collect();
        Some(answer)
    }

    /// Summary by numbers of what other directories should hold; `None` if there is nothing to replicate.
    pub(crate) fn detail(&self, domain: &DomainName) -> Option<Detail> {
        let signed = self.slots.iter().filter(|slot| slot.opened.statement().is_some());
        let detail = Detail {
            domain: domain.clone(),
            numbers: signed.map(|slot| slot.opened.number()).collect(),
            left: self.left.as_ref().filter(|left| left.signed.is_some()).map(|left| left.number),
            denials: self.denials.iter().map(|denial| denial.number).collect(),
        };
        let is_empty = detail.numbers.is_empty() && detail.left.is_none() && detail.denials.is_empty();
        (!is_empty).then_some(detail)
    }

    /// Whether a directory that holds `detail` has anything that could be stored here.
    pub(crate) fn lacks(&self, detail: &Detail) -> bool {
        let left = self.left.as_ref().map(|left| left.number);
        let newer = |number: &Number| {
            if left >= Some(*number) {
                return false;
            }
            if let Some(slot) = self.slot(number.peer) {
                return slot.opened.number() < *number;
            }
            self.mark(number.peer).is_none_or(|mark| mark < number)
                && (self.slots.len() < SLOTS_MAX
                    || self.slots.last().is_some_and(|slot| slot.opened.number() < *number))
        };
        detail.numbers.iter().any(newer)
            || detail.left > left
            || detail.denials.iter().any(|&number| self.is_newer_denial(number))
    }

    /// Contribution to the digest; zero if there is nothing to replicate.
    pub(crate) fn sum(&self, domain: &DomainName) -> u64 {
        let Some(detail) = self.detail(domain) else { return 0 };
        let mut sum = 0_u64;
        let mut bytes = Vec::with_capacity(64 + domain.as_str().len());
        let mut add = |kind: u8, parts: &[&[u8]]| {
            bytes.clear();
            bytes.push(kind);
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            bytes.extend_from_slice(domain.as_str().as_bytes());
            sum = sum.wrapping_add(xxh3_64(&bytes));
        };
        let numbered =
            |number: &Number| (number.term.to_le_bytes(), number.peer.0, number.sequence.to_le_bytes());
        for number in &detail.numbers {
            let (term, peer, sequence) = numbered(number);
            add(1, &[&term, &peer, &sequence]);
        }
        if let Some(left) = &detail.left {
            let (term, peer, sequence) = numbered(left);
            add(2, &[&term, &peer, &sequence]);
        }
        for denial in &detail.denials {
            let delegation = denial.delegation.map_or([0; 5], |number| {
                let [a, b, c, d] = number.to_le_bytes();
                [1, a, b, c, d]
            });
            add(3, &[&delegation, &denial.number.to_le_bytes()]);
        }
        // Zero means nothing to replicate, so a real sum must not be zero.
        sum.max(1)
    }

    /// Drop all ended statements except the first.
    fn settle(&mut self) {
        let mut at = 1;
        while at < self.slots.len() {
            if matches!(self.slots[at].validity, Validity::Until(_)) {
                at += 1;
            } else {
                let gone = self.slots.remove(at);
                self.remember(gone.opened.number());
            }
        }
    }

    fn slot(&self, peer: PeerKey) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.opened.peer() == peer)
    }

    fn mark(&self, peer: PeerKey) -> Option<&Number> {
        self.marks.iter().find(|mark| mark.peer == peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use crate::testing::{domain, leave, part, statement, whole};

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    /// The terms answered now: the first, and those of the partial answers.
    fn answered(registry: &Registry, secs: u64) -> (u64, State, Vec<u64>) {
        let answer = registry.resolve(&domain("a"), at(secs)).expect("held");
        (answer.record.term, answer.state, answer.partial.iter().map(|part| part.record.term).collect())
    }

    #[test]
    fn a_lower_term_is_answered_while_it_lives_and_has_hosts_that_the_first_lacks() {
        let mut registry = Registry::new(9);
        registry.register(statement("a", 1, 3, 1, part(&["n1"])), at(0)).expect("new");
        registry.register(statement("a", 2, 4, 1, part(&["n2"])), at(10)).expect("higher");
        assert_eq!(answered(&registry, 10), (4, State::Live, vec![3]));
        let renewed = registry.register(statement("a", 1, 3, 2, part(&["n1"])), at(11));
        assert_eq!(renewed, Ok(Accepted::Partial { held_term: 4 }), "its own number counts");
        assert_eq!(answered(&registry, 24), (4, State::Live, vec![3]));
        assert_eq!(answered(&registry, 25), (4, State::Expired, vec![3]), "never an old term first");
        assert_eq!(answered(&registry, 26), (4, State::Expired, vec![]));
        registry.expire(at(30));
        assert!(registry.register(statement("a", 1, 3, 2, part(&["n1"])), at(30)).is_err(), "its mark stays");
        registry.register(statement("a", 2, 4, 2, whole()), at(31)).expect("renews");
        registry.register(statement("a", 1, 3, 3, part(&["n1"])), at(31)).expect("kept");
        assert_eq!(answered(&registry, 31), (4, State::Live, vec![]), "nothing is lacking any more");
    }

    #[test]
    fn of_one_term_the_higher_key_is_first_whatever_the_sequences() {
        let mut registry = Registry::new(9);
        registry.register(statement("a", 7, 3, 1, part(&["n1"])), at(0)).expect("new");
        registry.register(statement("a", 5, 3, 900, part(&["n2"])), at(0)).expect("another");
        let answer = registry.resolve(&domain("a"), at(1)).expect("held");
        assert_eq!((answer.opened.peer(), answer.partial.len()), (PeerKey([7; 32]), 1));
    }

    #[test]
    fn the_highest_few_are_kept_in_whatever_order_they_come() {
        let mut orders = vec![[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [3, 6, 1, 5, 2, 4]];
        let mut sums = Vec::new();
        while let Some(order) = orders.pop() {
            let mut registry = Registry::new(9);
            for term in order {
                let _ = registry.register(statement("a", term, term.into(), 1, part(&["n1"])), at(0));
            }
            let detail = registry.detail(&domain("a")).expect("held");
            let terms: Vec<u64> = detail.numbers.iter().map(|number| number.term).collect();
            assert_eq!(terms, [6, 5, 4, 3], "{order:?}");
            sums.push(registry.sums().to_vec());
        }
        assert!(sums.windows(2).all(|two| two[0] == two[1]), "so all directories have the same digest");
    }

    #[test]
    fn a_leave_ends_what_is_not_above_it() {
        let mut registry = Registry::new(9);
        registry.register(statement("a", 1, 3, 5, part(&["n1"])), at(0)).expect("new");
        registry.register(statement("a", 2, 4, 5, part(&["n2"])), at(0)).expect("higher");
        assert_eq!(registry.leave(leave("a", 1, 3, 6), Duration::ZERO, at(1)), Ok(true));
        assert_eq!(
            answered(&registry, 1),
            (4, State::Live, vec![]),
            "the partial one is gone, the first is not"
        );
        assert_eq!(registry.leave(leave("a", 2, 4, 6), Duration::ZERO, at(2)), Ok(true));
        assert_eq!(registry.leave(leave("a", 2, 4, 6), Duration::ZERO, at(3)), Ok(false));
        assert_eq!(registry.resolve(&domain("a"), at(3)), None);
        for late in [statement("a", 1, 3, 99, whole()), statement("a", 2, 4, 6, whole())] {
            assert!(matches!(registry.register(late, at(3)), Err(Refused::Left { left_term: 4, .. })));
        }
        registry.register(statement("a", 1, 5, 1, whole()), at(3)).expect("a higher term comes back");
        assert_eq!(answered(&registry, 3), (5, State::Live, vec![]));
    }
}
