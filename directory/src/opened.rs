//! What was signed and has been checked: a value, and beside it the statement that is handed on unchanged.
//!
//! Pure. Rule: having one of these says that the shell checked the signatures and the chain
//! (`overlay::identity`); the table only compares numbers. A record that this process made for itself has no
//! statement, and is never handed to another directory.

use std::sync::Arc;
use std::time::Duration;
use wire::credential::{Delegation, Denial, DenyList, Statement};
use wire::id::{DomainName, PeerKey};
use wire::registration::{Coverage, Record};
use wire::replication::{DenialNumber, Farewell, Item, Leave, Number};

/// The key of a representative that has none: it runs in this process.
pub const OWN_PROCESS: PeerKey = PeerKey([0; 32]);

/// A record and what it was opened from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    record: Record,
    statement: Option<Arc<Statement>>,
}

/// A signed record does not say whose it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signed record of {domain} does not name its representative's key; expected where it answers")]
pub struct NoReach {
    /// The domain.
    pub domain: DomainName,
}

impl Opened {
    /// A record of a representative in this process.
    #[must_use]
    pub fn own(record: Record) -> Opened {
        Opened { record, statement: None }
    }

    /// A record that was checked to be what `statement` holds.
    ///
    /// # Errors
    /// If it does not name its representative's key.
    pub fn signed(record: Record, statement: Statement) -> Result<Opened, NoReach> {
        if record.reach.is_none() {
            return Err(NoReach { domain: record.domain });
        }
        Ok(Opened { record, statement: Some(Arc::new(statement)) })
    }

    /// What it says.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What is handed on; none for one of this process.
    #[must_use]
    pub fn statement(&self) -> Option<&Arc<Statement>> {
        self.statement.as_ref()
    }

    /// Its number among the statements of its domain.
    #[must_use]
    pub fn number(&self) -> Number {
        let Record { term, sequence, .. } = self.record;
        Number { term, peer: self.peer(), sequence }
    }

    /// Whose it is.
    #[must_use]
    pub fn peer(&self) -> PeerKey {
        self.record.reach.as_ref().map_or(OWN_PROCESS, |reach| reach.peer)
    }

    /// Whether this one answers for hosts that `primary` does not.
    pub(crate) fn has_more_than(&self, primary: &Opened) -> bool {
        let Some(Coverage::Part { hosts: known, .. }) = primary.coverage() else { return false };
        match self.coverage() {
            // A list that was cut may hold anything.
            Some(Coverage::Part { hosts, hosts_total }) => {
                (*hosts_total as usize) > hosts.len() || hosts.iter().any(|host| !known.contains(host))
            }
            Some(Coverage::Whole { .. }) | None => true,
        }
    }

    fn coverage(&self) -> Option<&Coverage> {
        self.record.reach.as_ref().map(|reach| &reach.coverage)
    }
}

/// A leave and what it was opened from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedLeave {
    /// What it says.
    pub leave: Leave,
    /// What is handed on.
    pub farewell: Arc<Farewell>,
}

impl OpenedLeave {
    /// Its number among the statements of its domain.
    #[must_use]
    pub fn number(&self) -> Number {
        Number { term: self.leave.term, peer: self.leave.peer, sequence: self.leave.sequence }
    }
}

/// A list of denied, whose it is, and what it was opened from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedDenial {
    /// The domain.
    pub domain: DomainName,
    /// Its root key.
    pub root: PeerKey,
    /// Which of two lists is the newer.
    pub number: DenialNumber,
    /// What is handed on.
    pub denial: Arc<Denial>,
}

impl OpenedDenial {
    /// A list that was checked to be what `denial` holds, signed under `delegation` if not by the root.
    #[must_use]
    pub fn new(list: &DenyList, delegation: Option<&Delegation>, denial: Denial) -> OpenedDenial {
        OpenedDenial {
            domain: list.domain.clone(),
            root: list.root,
            number: DenialNumber {
                delegation: delegation.map(|delegation| delegation.number),
                number: list.number,
            },
            denial: Arc::new(denial),
        }
    }
}

/// An item of another directory, opened and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenedItem {
    /// A record.
    Statement {
        /// What was opened.
        opened: Opened,
        /// Time since it was stated to a directory.
        age: Duration,
        /// What is left of its lease.
        remaining: Duration,
    },
    /// A leave.
    Farewell {
        /// What was opened.
        left: OpenedLeave,
        /// Time since it was stated to a directory.
        age: Duration,
    },
    /// A list of denied.
    Denial(OpenedDenial),
}

impl OpenedItem {
    /// Its domain, and the root it is signed under; none for a record of this process.
    #[must_use]
    pub fn domain_and_root(&self) -> (&DomainName, Option<PeerKey>) {
        match self {
            OpenedItem::Statement { opened, .. } => {
                (&opened.record.domain, opened.record.reach.as_ref().map(|reach| reach.root))
            }
            OpenedItem::Farewell { left, .. } => (&left.leave.domain, Some(left.leave.root)),
            OpenedItem::Denial(denial) => (&denial.domain, Some(denial.root)),
        }
    }

    /// As it travels; none for a record of this process.
    #[must_use]
    pub fn to_wire(&self) -> Option<Item> {
        Some(match self {
            OpenedItem::Statement { opened, age, remaining } => {
                let statement = Box::new(Statement::clone(opened.statement.as_ref()?));
                Item::Statement { statement, age: *age, remaining: *remaining }
            }
            OpenedItem::Farewell { left, age } => {
                Item::Farewell { farewell: Box::new(Farewell::clone(&left.farewell)), age: *age }
            }
            OpenedItem::Denial(denial) => Item::Denial(Box::new(Denial::clone(&denial.denial))),
        })
    }

    /// About how many bytes it takes on the way.
    pub(crate) fn len_bytes(&self) -> usize {
        // Of the chain, the certificate and the delegation with their keys and signatures.
        const CHAIN_LEN_BYTES: usize = 700;
        CHAIN_LEN_BYTES
            + match self {
                OpenedItem::Statement { opened, .. } => {
                    opened.statement.as_ref().map_or(0, |statement| statement.record.body_len_bytes())
                }
                OpenedItem::Farewell { .. } => 0,
                OpenedItem::Denial(denial) => denial.denial.list.body_len_bytes(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{part, statement, whole};

    #[test]
    fn a_partial_representative_counts_for_hosts_that_the_primary_lacks() {
        let check = |primary: Coverage, partial: Coverage, expected: bool| {
            let (primary, partial) = (statement("a", 2, 2, 1, primary), statement("a", 1, 1, 1, partial));
            assert_eq!(partial.has_more_than(&primary), expected, "{primary:?} {partial:?}");
        };
        check(whole(), whole(), false);
        check(whole(), part(&["n1"]), false);
        check(part(&["n1"]), whole(), true);
        check(part(&["n1", "n2"]), part(&["n2"]), false);
        check(part(&["n1", "n2"]), part(&["n2", "n3"]), true);
        let cut = Coverage::Part { hosts: vec![], hosts_total: 2000 };
        check(part(&["n1"]), cut.clone(), true);
        check(cut, part(&["n1"]), true);
    }

    #[test]
    fn a_signed_record_tells_whose_it_is_and_one_of_this_process_never_travels() {
        let signed = statement("a", 3, 7, 5, whole());
        assert_eq!(signed.number(), Number { term: 7, peer: PeerKey([3; 32]), sequence: 5 });
        let own = Opened::own(Record { reach: None, ..signed.record().clone() });
        assert_eq!(own.peer(), OWN_PROCESS);
        let item = |opened| OpenedItem::Statement { opened, age: Duration::ZERO, remaining: Duration::ZERO };
        assert!(item(signed.clone()).to_wire().is_some());
        assert!(item(own.clone()).to_wire().is_none());
        let statement = Statement::clone(signed.statement().expect("signed"));
        assert!(Opened::signed(own.record().clone(), statement).is_err());
    }
}
