//! Saved state of each domain, and how it is restored.
//!
//! Pure. Rule: a restored record is last seen, never live, until its representative states a new number. What
//! was refused before the restart is refused after it: the numbers of previous representatives and of leaves
//! are restored, too.
//! Not here: the file (`snapshot`).

use crate::opened::{Opened, OpenedDenial, OpenedLeave};
use crate::registry::Registry;
use crate::registry::entry::Left;
use crate::registry::outcome::Refused;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use wire::credential::{Denial, Statement};
use wire::id::DomainName;
use wire::registration::Record;
use wire::replication::{Farewell, Number};
use wire::time::Moment;

/// Saved state of one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDomain {
    pub domain: DomainName,
    pub primary: Option<StoredStatement>,
    /// Numbers of other representatives, which are not accepted again.
    pub marks: Vec<Number>,
    /// Leave of the domain.
    pub left: Option<StoredLeave>,
    /// Revocation lists of the domain.
    pub denials: Vec<Denial>,
}

/// Saved statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredStatement {
    pub record: Record,
    /// Signed form; `None` for a record of this process.
    pub statement: Option<Statement>,
    /// Age when the snapshot was taken.
    pub age: Duration,
}

/// Saved leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLeave {
    /// No number up to this one is accepted again.
    pub number: Number,
    /// Signed form, while it is still replicated.
    pub farewell: Option<Farewell>,
    /// Age when the snapshot was taken.
    pub age: Duration,
}

impl Registry {
    /// Saved state of every domain at `now`, sorted by domain.
    pub fn to_keep(&self, now: Moment) -> impl Iterator<Item = StoredDomain> {
        let now = self.latest.max(now);
        self.entries.iter().map(move |(domain, entry)| {
            let primary = entry.answer(now).map(|first| StoredStatement {
                record: first.record.clone(),
                statement: first.opened.statement().map(|statement| Statement::clone(statement)),
                age: first.age,
            });
            let partial = entry.slots().iter().skip(1).map(|slot| slot.opened.number());
            let left = entry.left.as_ref().map(|left| StoredLeave {
                number: left.number,
                farewell: left.signed.as_ref().map(|signed| Farewell::clone(&signed.farewell)),
                age: left.age(now),
            });
            StoredDomain {
                domain: domain.clone(),
                primary,
                marks: entry.marks().iter().copied().chain(partial).collect(),
                left,
                denials: entry.denials().iter().map(|denial| Denial::clone(&denial.denial)).collect(),
            }
        })
    }

    /// Restore the state of a domain, saved `since` ago, into a table that has no entry for it yet.
    ///
    /// # Errors
    /// If the table is full, or the saved state is impossible; the rest of the domain is then skipped.
    pub fn take_back(&mut self, kept: StoredDomain, since: Duration, now: Moment) -> Result<(), Refused> {
        self.expire(now);
        let StoredDomain { domain, primary, marks, left, denials } = kept;
        if !self.entries.contains_key(&domain) {
            self.make_place(&domain)?;
        }
        if let Some(left) = left {
            self.take_back_left(&domain, left, since);
        }
        if !marks.is_empty() {
            self.change(&domain, |entry| marks.into_iter().for_each(|mark| entry.remember(mark)));
        }
        for denial in denials {
            if let Some(denial) = open_denial(denial) {
                self.deny(denial)?;
            }
        }
        let Some(StoredStatement { record, statement, age }) = primary else { return Ok(()) };
        let opened = match statement {
            None => Opened::own(record),
            Some(statement) => match Opened::signed(record, statement) {
                Ok(opened) => opened,
                // This program never writes such a statement; ignore it.
                Err(_) => return Ok(()),
            },
        };
        self.restore(opened, age.saturating_add(since), now)
    }

    fn take_back_left(&mut self, domain: &DomainName, left: StoredLeave, since: Duration) {
        let StoredLeave { number, farewell, age } = left;
        let signed = farewell.and_then(|farewell| {
            let leave = farewell.leave.unverified().ok()?;
            Some(OpenedLeave { leave, farewell: Arc::new(farewell) })
        });
        let (heard, age_before) = (self.latest, age.saturating_add(since));
        let gone_since = crate::registry::millis(heard.0).saturating_sub(crate::registry::millis(age_before));
        self.change(domain, |entry| {
            if entry.admit_leave(number) == Ok(true) {
                entry.leave(Left { number, signed, heard, age_before });
                entry.gone_since = gone_since;
            }
        });
    }
}

/// Rebuild a revocation list without verification: it was verified before it was saved, and the folder
/// belongs to the directory.
fn open_denial(denial: Denial) -> Option<OpenedDenial> {
    let list = denial.list.unverified().ok()?;
    let delegation = match &denial.delegation {
        Some(delegation) => Some(delegation.unverified().ok()?),
        None => None,
    };
    Some(OpenedDenial::new(&list, delegation.as_ref(), denial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::outcome::Accepted;
    use crate::registry::{LEAVE_KEPT, State};
    use crate::testing::{denial, domain, leave, part, statement, whole};

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn restarted(before: &Registry, now: Moment, away: Duration) -> Registry {
        let mut after = Registry::new(100);
        for kept in before.to_keep(now) {
            after.take_back(kept, away, at(0)).expect("place");
        }
        after
    }

    #[test]
    fn what_comes_back_is_last_seen_and_refuses_what_was_refused() {
        let mut before = Registry::new(100);
        before.register(statement("a", 1, 3, 7, part(&["n1"])), at(0)).expect("new");
        before.register(statement("a", 2, 4, 1, part(&["n2"])), at(1)).expect("higher");
        before.register(statement("b", 1, 9, 9, whole()), at(1)).expect("new");
        before.leave(leave("b", 1, 9, 10), Duration::ZERO, at(2)).expect("own");
        before.deny(denial("c", None, 5)).expect("place");
        let mut after = restarted(&before, at(3), Duration::from_secs(100));
        let held = after.resolve(&domain("a"), at(0)).expect("held");
        assert_eq!((held.state, held.record.term, held.age.as_secs()), (State::Restored, 4, 102));
        assert!(held.partial.is_empty(), "a partial one does not come back");
        assert_eq!(after.left(&domain("b"), at(0)).map(|(_, age)| age.as_secs()), Some(101));
        for old in [statement("a", 1, 3, 7, part(&["n1"])), statement("b", 1, 9, 9, whole())] {
            assert!(after.register(old, at(1)).is_err());
        }
        assert_eq!(
            after.register(statement("a", 2, 4, 1, part(&["n2"])), at(1)),
            Ok(Accepted::Unchanged),
            "the same number does not make it live"
        );
        assert_eq!(after.resolve(&domain("a"), at(1)).expect("held").state, State::Restored);
        assert_eq!(after.register(statement("a", 2, 4, 2, whole()), at(1)), Ok(Accepted::Registered));
        assert!(!after.deny(denial("c", None, 5)).expect("place"));
        assert!(after.deny(denial("c", None, 6)).expect("place"));
    }

    #[test]
    fn both_tables_have_the_same_digest_and_a_leave_is_kept_for_a_week_in_all() {
        let mut before = Registry::new(100);
        before.register(statement("a", 1, 3, 7, whole()), at(0)).expect("new");
        before.leave(leave("b", 1, 9, 10), Duration::ZERO, at(0)).expect("place");
        let mut after = restarted(&before, at(100), Duration::from_secs(1000));
        assert_eq!(after.sums(), before.sums());
        assert_eq!(after.items(&domain("b"), at(0)).len(), 1);
        let until = LEAVE_KEPT.as_secs() - 1100;
        after.expire(at(until - 1));
        assert_eq!(after.items(&domain("b"), at(until - 1)).len(), 1);
        after.expire(at(until));
        assert_eq!(after.items(&domain("b"), at(until)).len(), 0, "handed on no more");
        assert!(after.register(statement("b", 1, 9, 10, whole()), at(until)).is_err(), "but still refused");
        assert_eq!(after.register(statement("b", 1, 9, 11, whole()), at(until)), Ok(Accepted::Registered));
    }
}
