//! What is said on `/visperf/directory/1`: one question and one answer on a stream.
//!
//! ```text
//! representative -> directory   State, Leave, Deny           -> Stated
//! anyone         -> directory   Resolve, Admitted, DenyLists -> Resolved, Admitted, DenyLists
//! directory      -> directory   Hints, Digest, Fetch         -> Taken, Details, Items
//! ```
//! Pure. Directories pull: a hint or a digest only says that there is something newer, and a directory that lacks it
//! fetches it. So the asker knows how long an answer took at most, and subtracts that from every lease it receives;
//! what is replicated never holds longer than where it came from.
//! Not here: what is done with them (`directory::replicate`), whether signatures hold (`overlay::identity`).

use crate::credential::{Chain, Denial, Statement};
use crate::id::{DomainName, PeerKey};
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest question, in bytes: the longest list of denied with what makes it believed.
pub const QUESTION_LEN_MAX_BYTES: usize = 2 << 20;

/// Longest answer, in bytes: [`ITEMS_LEN_MAX_BYTES`] and the item that went over it.
pub const ANSWER_LEN_MAX_BYTES: usize = 4 << 20;

/// After so many bytes of items an answer says that there are more.
pub const ITEMS_LEN_MAX_BYTES: usize = 1 << 20;

/// Sums in a digest: of ten thousand domains each stands for ten, in 10 KiB whatever is held.
pub const BUCKETS: usize = 1024;

/// Most domains in one answer to a digest, and in one message of hints.
pub const DETAILS_MAX: usize = 2048;

/// Most domains asked for in one [`ReplicaQuestion::Fetch`].
pub const FETCH_MAX: usize = 256;

/// Most domains in one answer to [`Question::Admitted`].
pub const ADMITTED_TOLD_MAX: usize = 4096;

/// Which of two statements of one domain is the newer: the higher term; of two representatives that took the
/// same term the higher key; of one representative the higher sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Number {
    /// The fencing term.
    pub term: u64,
    /// Whose statement it is; zeros for one that this process alone knows.
    pub peer: PeerKey,
    /// The statement within the term.
    pub sequence: u64,
}

/// The word of a representative that its domain is no more: everything of it up to this number is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// The domain.
    pub domain: DomainName,
    /// Its root key.
    pub root: PeerKey,
    /// The representative, which signs this.
    pub peer: PeerKey,
    /// Its term.
    pub term: u64,
    /// Number of this statement within the term; higher than those of all its records.
    pub sequence: u64,
    /// When it was made, by its maker's clock; shown, never compared.
    pub stated: Time,
}

impl Sealable for Leave {
    const LABEL: &'static str = "leave";
    const BODY_LEN_MAX_BYTES: usize = 512;
}

/// A leave as it was signed, and why to believe its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The leave.
    pub leave: Sealed<Leave>,
    /// The chain of its signer.
    pub chain: Chain,
}

/// What a directory is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Take this record; asked by the representative that signed it, on its own connection.
    State(Box<Statement>),
    /// The domain is no more; likewise.
    Leave(Box<Farewell>),
    /// Take this revocation list; any peer may send it.
    Deny(Box<Denial>),
    /// Where does this domain's representative answer?
    Resolve(DomainName),
    /// Which domains do you admit, after this name?
    Admitted {
        /// Only names that come after this one.
        after: Option<DomainName>,
    },
    /// Which peers does this domain deny?
    DenyLists(DomainName),
    /// From one directory to another.
    Replica(ReplicaQuestion),
}

/// What a directory answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To a statement, a leave or a list of denied.
    Stated(Stated),
    /// To [`Question::Resolve`].
    Resolved(Resolved),
    /// To [`Question::Admitted`]: names and roots, by name.
    Admitted {
        /// At most [`ADMITTED_TOLD_MAX`].
        domains: Vec<(DomainName, PeerKey)>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// To [`Question::DenyLists`]: the root's and the issuer's, as far as there are any.
    DenyLists(Vec<Denial>),
    /// To another directory.
    Replica(ReplicaAnswer<Item>),
    /// Not answered, and why.
    Refused(String),
}

/// What became of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stated {
    /// It is what the directory answers first.
    Primary,
    /// Kept, but another representative has a higher number.
    Partial {
        /// The highest.
        highest: Number,
    },
    /// Not kept: what is held is newer, or the domain left at that number.
    Behind {
        /// What it would have to exceed.
        highest: Number,
    },
    /// A list of denied, taken or already held.
    Taken,
    /// Not kept.
    Refused(String),
}

/// What a directory knows of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolved {
    /// It has, or had, a representative.
    Known {
        /// The highest number.
        primary: Box<Told>,
        /// Those that answer for hosts which the primary lacks.
        partial: Vec<Told>,
    },
    /// Its representative said that it is no more.
    Left {
        /// Number of the leave: what is above it counts again.
        number: Number,
        /// How long ago.
        age: Duration,
    },
    /// Not known, and the directory knows what there is to know.
    Unknown,
    /// Not known, but the directory has started lately and may yet learn of it.
    NotYet,
}

/// A statement as a directory answers it; the asker checks the signatures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What the representative signed.
    pub statement: Statement,
    /// Time since it was stated to a directory.
    pub age: Duration,
    /// Time until its lease ends; zero: last seen.
    pub remaining: Duration,
}

/// What one directory asks another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaQuestion {
    /// I have these newly; at most [`DETAILS_MAX`]. Answered by [`ReplicaAnswer::Taken`].
    Hints(Vec<Detail>),
    /// What have you where these sums differ from yours?
    Digest {
        /// Look at this bucket first, and go round.
        start: u16,
        /// Look at so many; at most [`BUCKETS`].
        buckets: u16,
        /// [`BUCKETS`] of them.
        sums: Vec<u64>,
    },
    /// Give me all of these; at most [`FETCH_MAX`].
    Fetch(Vec<DomainName>),
}

/// What one directory answers another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaAnswer<I> {
    /// To hints.
    Taken,
    /// To a digest.
    Details {
        /// What is held in buckets that differ; at most [`DETAILS_MAX`].
        details: Vec<Detail>,
        /// How many buckets were looked at; the others have to be asked for again.
        buckets: u16,
        /// Whether the answerer itself has settled since its start.
        settled: bool,
    },
    /// To a fetch.
    Items {
        /// All that is held of the domains asked for, domain by domain.
        items: Vec<I>,
        /// How many of the domains asked for were looked at; the others have to be asked for again.
        domains: u32,
    },
}

/// What is held of a domain, by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The domain.
    pub domain: DomainName,
    /// Its statements, the highest first.
    pub numbers: Vec<Number>,
    /// Its leave.
    pub left: Option<Number>,
    /// Its lists of denied.
    pub denials: Vec<DenialNumber>,
}

/// Which of two lists of denied by the same kind of signer is the newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DenialNumber {
    /// Number of the signer's delegation; none if the root signed.
    pub delegation: Option<u32>,
    /// Number of the list.
    pub number: u64,
}

/// Something that directories hand on as it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A representative's record.
    Statement {
        /// As signed.
        statement: Box<Statement>,
        /// Time since it was stated to a directory.
        age: Duration,
        /// What is left of its lease where this answer was made; zero: last seen.
        remaining: Duration,
    },
    /// A leave.
    Farewell {
        /// As signed.
        farewell: Box<Farewell>,
        /// Time since it was stated to a directory.
        age: Duration,
    },
    /// A list of denied.
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
