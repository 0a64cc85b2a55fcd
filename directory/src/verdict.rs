//! What becomes of a record that a representative states: taken, or refused and why.
//!
//! Pure. Rule: a refusal names what is held and what to do.
//! Not here: how it is decided (`registry`, and `entry` within one domain).

use crate::oddity::Odd;
use wire::id::DomainName;

/// What became of an accepted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The domain was not known, or its lease had ended.
    Registered,
    /// The lease was extended.
    Renewed,
    /// Said again word for word: nothing changed, the lease least of all.
    Unchanged,
    /// Kept, but another representative has a higher term; answered beside that one where it answers for hosts
    /// which that one lacks.
    Partial {
        /// The highest.
        held_term: u64,
    },
}

/// Why a record was refused; the table is as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer statement is held.
    #[error(
        "term {term}, sequence {sequence} of {domain} is behind term {held_term}, sequence {held_sequence}, \
         which is held; state a higher one"
    )]
    Behind {
        /// The domain.
        domain: DomainName,
        /// Stated.
        term: u64,
        /// Stated.
        sequence: u64,
        /// Held.
        held_term: u64,
        /// Held.
        held_sequence: u64,
    },
    /// The same term and sequence with another content: two representatives use one term, or it is forged.
    #[error(
        "term {term}, sequence {sequence} of {domain} is held with another content (host {held_host}); \
         only one representative may use a term, and each statement needs a new sequence"
    )]
    Contradicts {
        /// The domain.
        domain: DomainName,
        /// Of both.
        term: u64,
        /// Of both.
        sequence: u64,
        /// Whose statement is held.
        held_host: String,
    },
    /// The domain left at that number, and this one is not above it.
    #[error("{domain} left at term {left_term}, sequence {left_sequence}; state a higher term to come back")]
    Left {
        /// The domain.
        domain: DomainName,
        /// Of the leave.
        left_term: u64,
        /// Of the leave.
        left_sequence: u64,
    },
    /// More representatives than are kept, all with higher numbers.
    #[error(
        "{domain} already has {} representatives with higher terms; expected one, or two where it is split",
        crate::entry::SLOTS_MAX
    )]
    Crowded {
        /// The domain.
        domain: DomainName,
    },
    /// Something in the record cannot be right.
    #[error("record of {domain}: {odd}")]
    Odd {
        /// The domain.
        domain: DomainName,
        /// What.
        odd: Odd,
    },
    /// No place, and every domain held is live.
    #[error("{domain} is new and the table already holds {domains_max} live domains, the most it may")]
    Full {
        /// The domain.
        domain: DomainName,
        /// How many.
        domains_max: usize,
    },
}
