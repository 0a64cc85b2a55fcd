//! Messages of `/visperf/directory/1`: one question and one answer per stream.
//!
//! ```text
//! representative -> directory   State, Leave, Deny           -> Stated
//! any peer       -> directory   Resolve, Admitted, DenyLists -> Resolved, Admitted, DenyLists
//! directory      -> directory   Hints, Digest, Fetch         -> Taken, Details, Items
//! ```
//! Pure. Directories pull: a hint or a digest only announces newer data, and a directory that lacks them
//! fetches them. So the fetching directory knows how long an answer took at most, and subtracts that from
//! every lease it receives; a replica is never valid for longer than its origin.
//! Not here: the processing (`directory::replicate`), the verification of signatures (`overlay::identity`).

use crate::credential::{Chain, Denial, Statement};
use crate::id::{DomainName, PeerKey};
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest question, in bytes: the longest revocation list with its certificates.
pub const QUESTION_LEN_MAX_BYTES: usize = 2 << 20;

/// Longest answer, in bytes: [`ITEMS_LEN_MAX_BYTES`] and the item that exceeded it.
pub const ANSWER_LEN_MAX_BYTES: usize = 4 << 20;

/// Length of items in bytes after which an answer ends, with more to follow.
pub const ITEMS_LEN_MAX_BYTES: usize = 1 << 20;

/// Number of sums in a digest: with ten thousand domains each covers about ten, in 10 KiB for any number of
/// domains.
pub const BUCKETS: usize = 1024;

/// Most domains in one answer to a digest, and in one message of hints.
pub const DETAILS_MAX: usize = 2048;

/// Most domains requested in one [`ReplicaQuestion::Fetch`].
pub const FETCH_MAX: usize = 256;

/// Most domains in one answer to [`Question::Admitted`].
pub const ADMITTED_TOLD_MAX: usize = 4096;

/// Number that orders the statements of a domain: the higher term wins; of two representatives with the same
/// term the higher key; of one representative the higher sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Number {
    /// Fencing term.
    pub term: u64,
    /// Key of the representative; zeros for one in this process only.
    pub peer: PeerKey,
    /// Number of the statement within the term.
    pub sequence: u64,
}

/// Statement of a representative that its domain has left: it ends everything of the domain up to this
/// number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// Name of the domain.
    pub domain: DomainName,
    /// Root key of the domain.
    pub root: PeerKey,
    /// Key of the representative, which signs this.
    pub peer: PeerKey,
    /// Fencing term of the representative.
    pub term: u64,
    /// Number of this statement within the term; higher than those of all its records.
    pub sequence: u64,
    /// Time when it was made, by its maker's clock; displayed, never compared.
    pub stated: Time,
}

impl Sealable for Leave {
    const LABEL: &'static str = "leave";
    const BODY_LEN_MAX_BYTES: usize = 512;
}

/// A signed leave with the certificate chain of its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The signed leave.
    pub leave: Sealed<Leave>,
    /// Certificate chain of its signer.
    pub chain: Chain,
}

/// Question to a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Register this record; sent by the representative that signed it, on its own connection.
    State(Box<Statement>),
    /// The domain leaves; sent by the representative, likewise.
    Leave(Box<Farewell>),
    /// Store this revocation list; any peer may send it.
    Deny(Box<Denial>),
    /// Look up the representative of this domain.
    Resolve(DomainName),
    /// List the admitted domains.
    Admitted {
        /// Only names after this one.
        after: Option<DomainName>,
    },
    /// Look up the revocation lists of this domain.
    DenyLists(DomainName),
    /// From one directory to another.
    Replica(ReplicaQuestion),
}

/// Answer of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To a statement, a leave or a revocation list.
    Stated(Stated),
    /// To [`Question::Resolve`].
    Resolved(Resolved),
    /// To [`Question::Admitted`].
    Admitted {
        /// Names and root keys, sorted by name; at most [`ADMITTED_TOLD_MAX`].
        domains: Vec<(DomainName, PeerKey)>,
        /// Whether more follow after the last.
        more: bool,
    },
    /// To [`Question::DenyLists`]: those of the root and of the issuer, if there are any.
    DenyLists(Vec<Denial>),
    /// To another directory.
    Replica(ReplicaAnswer<Item>),
    /// The question is refused, with the reason.
    Refused(String),
}

/// Outcome of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stated {
    /// Stored as the statement that the directory answers first.
    Primary,
    /// Stored, but another representative has a higher number.
    Partial {
        /// The highest number.
        highest: Number,
    },
    /// Not stored: the stored one is newer, or the domain left at that number.
    Behind {
        /// The number to exceed.
        highest: Number,
    },
    /// A revocation list that was stored, or was stored before.
    Taken,
    /// Not stored, with the reason.
    Refused(String),
}

/// Result of looking up a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolved {
    /// The domain has, or had, a representative.
    Known {
        /// The statement with the highest number.
        primary: Box<ResolvedStatement>,
        /// Statements of representatives that cover hosts which the primary does not.
        partial: Vec<ResolvedStatement>,
    },
    /// The domain has left.
    Left {
        /// Number of the leave: statements above it are valid again.
        number: Number,
        /// Time since the leave.
        age: Duration,
    },
    /// Unknown, and the directory has synchronized with the others.
    Unknown,
    /// Unknown so far: the directory has started recently and may still learn of it.
    NotYet,
}

/// A statement in an answer of a directory; the receiver verifies the signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedStatement {
    /// The signed statement.
    pub statement: Statement,
    /// Time since it was stated to a directory.
    pub age: Duration,
    /// Remaining time of its lease; zero: last seen.
    pub remaining: Duration,
}

/// Question from one directory to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaQuestion {
    /// These domains have new data; at most [`DETAILS_MAX`]. Answered by [`ReplicaAnswer::Taken`].
    Hints(Vec<Detail>),
    /// Request the details of domains in buckets whose sums differ from these.
    Digest {
        /// Bucket at which to start; the search wraps around.
        start: u16,
        /// Number of buckets to examine; at most [`BUCKETS`].
        buckets: u16,
        /// The digest: [`BUCKETS`] sums.
        sums: Vec<u64>,
    },
    /// Request all items of these domains; at most [`FETCH_MAX`].
    Fetch(Vec<DomainName>),
}

/// Answer of one directory to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaAnswer<I> {
    /// To hints.
    Taken,
    /// To a digest.
    Details {
        /// Details of the domains in buckets that differ; at most [`DETAILS_MAX`].
        details: Vec<Detail>,
        /// Number of buckets examined; the others must be requested again.
        buckets: u16,
        /// Whether the answering directory has settled since its start.
        settled: bool,
    },
    /// To a fetch.
    Items {
        /// All items of the requested domains, domain by domain.
        items: Vec<I>,
        /// Number of requested domains examined; the others must be requested again.
        domains: u32,
    },
}

/// Summary by numbers of a domain's stored data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// Name of the domain.
    pub domain: DomainName,
    /// Numbers of its statements, the highest first.
    pub numbers: Vec<Number>,
    /// Number of its leave.
    pub left: Option<Number>,
    /// Numbers of its revocation lists.
    pub denials: Vec<DenialNumber>,
}

/// Number that orders the revocation lists of one kind of signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DenialNumber {
    /// Number of the signer's delegation; `None` if the root signed.
    pub delegation: Option<u32>,
    /// Number of the list.
    pub number: u64,
}

/// A signed item that directories replicate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A representative's record.
    Statement {
        /// The signed record.
        statement: Box<Statement>,
        /// Time since it was stated to a directory.
        age: Duration,
        /// Remaining time of its lease when this answer was made; zero: last seen.
        remaining: Duration,
    },
    /// A leave of a domain.
    Farewell {
        /// The signed leave.
        farewell: Box<Farewell>,
        /// Time since it was stated to a directory.
        age: Duration,
    },
    /// A revocation list.
    Denial(Box<Denial>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(term: u64, peer: u8, sequence: u64) -> Number {
        Number { term, peer: PeerKey([peer; 32]), sequence }
    }

    #[test]
    fn numbers_are_ordered_by_term_then_key_then_sequence() {
        let ordered = [number(1, 9, 9), number(2, 1, 9), number(2, 2, 0), number(2, 2, 1), number(3, 0, 0)];
        assert!(ordered.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn a_digest_and_its_answer_stay_within_their_bounds() {
        let sums = vec![u64::MAX; BUCKETS];
        let digest = Question::Replica(ReplicaQuestion::Digest { start: 1023, buckets: 1024, sums });
        let bytes = postcard::to_stdvec(&digest).expect("encodes");
        assert!(bytes.len() < 11 << 10, "{}", bytes.len());
        let long = DomainName::try_from("x".repeat(crate::id::NAME_LEN_MAX_BYTES).as_str()).expect("a name");
        let denials = [None, Some(u32::MAX)];
        let denials = denials.map(|delegation| DenialNumber { delegation, number: u64::MAX }).to_vec();
        let numbers = vec![number(u64::MAX, 255, u64::MAX); 4];
        let detail = Detail { domain: long, left: Some(numbers[0]), numbers, denials };
        let answer = Answer::Replica(ReplicaAnswer::Details {
            details: vec![detail; DETAILS_MAX],
            buckets: 1,
            settled: true,
        });
        let bytes = postcard::to_stdvec(&answer).expect("encodes");
        assert!(bytes.len() < ANSWER_LEN_MAX_BYTES, "{}", bytes.len());
        assert_eq!(postcard::from_bytes::<Answer>(&bytes).expect("decodes"), answer);
    }
}
