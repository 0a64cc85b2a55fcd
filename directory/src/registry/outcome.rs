//! Outcome of a statement: accepted, or refused with the reason.
//!
//! Pure. Rule: a refusal names the stored statement and says what to do.
//! Not here: the decision (`registry`, and `entry` within one domain).

use crate::sanity_check::Violation;
use wire::id::DomainName;

/// Outcome of an accepted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The domain was not known, or its lease had ended.
    Registered,
    /// The lease was extended.
    Renewed,
    /// An exact repetition: nothing changed, and the lease was not extended.
    Unchanged,
    /// Stored, but another representative has a higher term. It is answered beside that one if it covers
    /// hosts missing from that one.
    Partial {
        /// Term of the highest statement.
        held_term: u64,
    },
}

/// Why a record was refused; the table is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer statement is stored.
    #[error(
        "term {term}, sequence {sequence} of {domain} is behind term {held_term}, sequence {held_sequence}, \
         which is held; state a higher one"
    )]
    Behind {
        domain: DomainName,
        term: u64,
        sequence: u64,
        /// Term of the stored statement.
        held_term: u64,
        held_sequence: u64,
    },
    /// The same term and sequence have another content: two representatives use one term, or one statement is
    /// forged.
    #[error(
        "term {term}, sequence {sequence} of {domain} is held with another content (host {held_host}); \
         only one representative may use a term, and each statement needs a new sequence"
    )]
    Contradicts {
        domain: DomainName,
        term: u64,
        sequence: u64,
        /// Host of the stored statement.
        held_host: String,
    },
    /// The domain left with a number that this statement does not exceed.
    #[error("{domain} left at term {left_term}, sequence {left_sequence}; state a higher term to come back")]
    Left {
        domain: DomainName,
        /// Term of the leave.
        left_term: u64,
        left_sequence: u64,
    },
    /// The table already stores the maximum number of representatives, all with higher numbers.
    #[error(
        "{domain} already has {} representatives with higher terms; expected one, or two where it is split",
        super::entry::SLOTS_MAX
    )]
    Crowded {
        /// Domain with too many representatives.
        domain: DomainName,
    },
    /// A value in the record is invalid.
    #[error("record of {domain}: {violation}")]
    Invalid {
        domain: DomainName,
        /// The first invalid value.
        violation: Violation,
    },
    /// The table is full, and every domain in it is live.
    #[error("{domain} is new and the table already holds {domains_max} live domains, the most it may")]
    Full {
        domain: DomainName,
        /// Capacity of the table.
        domains_max: usize,
    },
}
