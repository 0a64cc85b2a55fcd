//! Joining a domain: content of a token, requests of a joining host, answers of the issuer.
//!
//! ```text
//! joiner ── Question::Join { secret, root, host, wanted } ──▶ issuer     (its key is in the token)
//!        ◀── Reply::Admitted { chain, directories, seeds, denials } or Reply::Refused(reason) ──
//! joiner ── Question::Replace { … } ──▶ issuer                           (the same, with a token of the type replace)
//! member ── Question::Renew { chain } ──▶ issuer                         (from half of its validity on)
//! ```
//!
//! Pure. A token is sent only inside an encrypted connection to the one key that it names.
//! Not here: the text form of a token, and its verification (`overlay::identity`).

use crate::address::Address;
use crate::credential::{Chain, Denial, Roles};
use crate::id::{DomainName, HostName, PeerKey};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most addresses of an issuer or a directory.
pub const ADDRESSES_MAX: usize = 8;

/// Most directories of a grid (each stores all records; more cost more than they save).
pub const DIRECTORIES_MAX: usize = 7;

/// Most seeds: other members at which a daemon may start to look for its domain.
pub const SEEDS_MAX: usize = 16;

/// 128 random bits; the first host that presents them is admitted. `Debug` does not print them.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Key and addresses of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Key of the directory.
    pub key: PeerKey,
    /// Addresses to dial; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
}

/// Type of a token: what it permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenType {
    /// A host joins under a name that no other key has.
    #[default]
    Join,
    /// The host may also take its name over from another key, which is revoked.
    Replace,
}

/// Content of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Domain to join.
    pub domain: DomainName,
    /// Root key of the domain: the joiner trusts no other.
    pub root: PeerKey,
    /// Key of the issuer, the only daemon to which the secret is sent.
    pub issuer: PeerKey,
    /// Addresses of the issuer; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
    /// Directories of the grid; at most [`DIRECTORIES_MAX`].
    pub directories: Vec<Directory>,
    /// Secret that admits the joiner.
    pub secret: Secret,
    /// End of the validity, by the issuer's clock.
    pub expires: Time,
    /// Type of the token; in the text form it is the prefix.
    #[serde(skip)]
    pub token_type: TokenType,
}

/// Request to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Secret of the token.
    pub secret: Secret,
    /// Root key in the token, so that an issuer of another domain can report the error.
    pub root: PeerKey,
    /// Host of the joiner.
    pub host: HostName,
    /// Requested roles out of the token's; none means all of them.
    pub wanted: Roles,
}

/// Request to an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Join the domain.
    Join(Join),
    /// Renew a certificate after half of its validity.
    Renew {
        /// Certificate chain to renew.
        chain: Box<Chain>,
    },
    /// Join in place of the key that has the host's name. An older issuer answers with an error.
    Replace(Join),
}

/// Result of a successful join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// Certificate chain of the new member.
    pub chain: Chain,
    /// Directories of the grid; at most [`DIRECTORIES_MAX`].
    pub directories: Vec<Directory>,
    /// Members to contact first; at most [`SEEDS_MAX`].
    pub seeds: Vec<Address>,
    /// Revocation lists; at most one of the root and one of the issuer.
    pub denials: Vec<Denial>,
}

/// Answer of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The request is granted.
    Admitted(Box<Admitted>),
    /// The request is refused, with the reason as text for a person.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests before tokens of the type replace existed.
    #[derive(Debug, Deserialize)]
    enum Older {
        #[expect(dead_code, reason = "read and looked at no further")]
        Join(Join),
        #[expect(dead_code, reason = "read and looked at no further")]
        Renew { chain: Box<Chain> },
    }

    #[test]
    fn an_older_issuer_takes_a_replacement_for_nothing_that_it_knows() {
        let host = HostName::try_from("wn01").expect("a name");
        let (secret, root) = (Secret([1; 16]), PeerKey([2; 32]));
        let join = Join { secret, root, host, wanted: Roles::NONE };
        let read = |question: &Question| {
            postcard::from_bytes::<Older>(&postcard::to_stdvec(question).expect("plain data is encoded"))
        };
        assert!(matches!(read(&Question::Join(join.clone())), Ok(Older::Join(_))));
        assert!(read(&Question::Replace(join)).is_err(), "it answers that it does not understand");
    }

    #[test]
    fn a_secret_is_not_shown_where_tokens_are_logged() {
        let token = Token {
            domain: DomainName::try_from("a").expect("a name"),
            root: PeerKey([1; 32]),
            issuer: PeerKey([2; 32]),
            addresses: vec![],
            directories: vec![],
            secret: Secret([0xab; 16]),
            expires: Time::default(),
            token_type: TokenType::Join,
        };
        let shown = format!("{token:?}");
        assert!(shown.contains("Secret(…)") && !shown.contains("171") && !shown.contains("ab, "), "{shown}");
    }
}
