//! Verified items: the content, together with the signed form that is replicated unchanged.
//!
//! Pure. Rule: a value of these types means that the shell verified the signatures and the chain
//! (`overlay::identity`); the table only compares numbers. A record that this process made for itself has no
//! signed form, and is never sent to another directory.

use std::sync::Arc;
use std::time::Duration;
use wire::credential::{Delegation, Denial, DenyList, Statement};
use wire::id::{DomainName, PeerKey};
use wire::registration::{Coverage, Record};
use wire::replication::{DenialNumber, Farewell, Item, Leave, Number};

/// Placeholder key of a representative without a key, because it runs in this process.
pub const OWN_PROCESS: PeerKey = PeerKey([0; 32]);

/// A record and its signed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    record: Record,
    statement: Option<Arc<Statement>>,
}

/// A signed record does not name the key of its representative.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signed record of {domain} does not name its representative's key; expected where it answers")]
pub struct NoReach {
    /// Domain of the record.
    pub domain: DomainName,
}

impl Opened {
    /// Wrap a record of a representative in this process.
    #[must_use]
    pub fn own(record: Record) -> Opened {
        Opened { record, statement: None }
    }

    /// Wrap a record that was verified to be the content of `statement`.
    ///
    /// # Errors
    /// If the record does not name its representative's key.
    pub fn signed(record: Record, statement: Statement) -> Result<Opened, NoReach> {
        if record.reach.is_none() {
            return Err(NoReach { domain: record.domain });
        }
        Ok(Opened { record, statement: Some(Arc::new(statement)) })
    }

    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Signed form; `None` for a record of this process.
    #[must_use]
    pub fn statement(&self) -> Option<&Arc<Statement>> {
        self.statement.as_ref()
    }

    /// Number of the record among the statements of its domain.
    #[must_use]
    pub fn number(&self) -> Number {
        let Record { term, sequence, .. } = self.record;
        Number { term, peer: self.peer(), sequence }
    }

    /// Key of the representative.
    #[must_use]
    pub fn peer(&self) -> PeerKey {
        self.record.reach.as_ref().map_or(OWN_PROCESS, |reach| reach.peer)
    }

    /// Whether this record covers hosts that `primary` does not.
    pub(crate) fn has_more_than(&self, primary: &Opened) -> bool {
        let Some(Coverage::Part { hosts: known, .. }) = primary.coverage() else { return false };
        match self.coverage() {
            // A truncated list may contain any host.
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

/// A leave and its signed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedLeave {
    pub leave: Leave,
    /// Signed form, which is replicated.
    pub farewell: Arc<Farewell>,
}

impl OpenedLeave {
    /// Number of the leave among the statements of its domain.
    #[must_use]
    pub fn number(&self) -> Number {
        Number { term: self.leave.term, peer: self.leave.peer, sequence: self.leave.sequence }
    }
}

/// A revocation list, its domain and its signed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedDenial {
    pub domain: DomainName,
    /// Root key of the domain.
    pub root: PeerKey,
    /// Number that orders the lists of one signer.
    pub number: DenialNumber,
    /// Signed form, which is replicated.
    pub denial: Arc<Denial>,
}

impl OpenedDenial {
    /// Wrap a list that was verified to be the content of `denial`, signed under `delegation` or else by the
    /// root.
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

/// A verified item of another directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenedItem {
    Statement {
        opened: Opened,
        /// Time since it was stated to a directory.
        age: Duration,
        /// Remaining time of its lease.
        remaining: Duration,
    },
    Farewell {
        left: OpenedLeave,
        /// Time since it was stated to a directory.
        age: Duration,
    },
    /// A revocation list.
    Denial(OpenedDenial),
}

impl OpenedItem {
    /// Domain of the item, and the root under which it is signed; no root for a record of this process.
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

    /// The item in its wire form; `None` for a record of this process.
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

    /// Approximate length on the wire, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        // The certificate and the delegation of the chain, with their keys and signatures.
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
    fn a_signed_record_names_its_owner_and_one_of_this_process_never_travels() {
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
