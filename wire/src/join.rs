//! Joining a domain: what a token holds, what a joiner asks and what the issuer answers.
//!
//! ```text
//! joiner ── Question::Join { secret, root, host, wanted } ──▶ issuer     (its key is in the token)
//!        ◀── Reply::Admitted { chain, directories, seeds, denials } or Reply::Refused(reason) ──
//! joiner ── Question::Replace { … } ──▶ issuer                           (the same, by a token of the type replace)
//! member ── Question::Renew { chain } ──▶ issuer                         (from half of its life on)
//! ```
//!
//! Pure. A token is used inside an encrypted connection to the one key that it names.
//! Not here: the text of a token, and who gets in (`overlay::identity`).

use crate::address::Address;
use crate::credential::{Chain, Denial, Roles};
use crate::id::{DomainName, HostName, PeerKey};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most addresses of an issuer or a directory.
pub const ADDRESSES_MAX: usize = 8;

/// Most directories of a grid (they hold every record each; more cost more than they save).
pub const DIRECTORIES_MAX: usize = 7;

/// Most seeds: other members where a daemon may begin to look for its domain.
pub const SEEDS_MAX: usize = 16;

/// 128 random bits; the first host that shows them is admitted. Its `Debug` prints nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A directory: the key by which it is known, and where it listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// Its key.
    pub key: PeerKey,
    /// Where to dial it; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenType {
    /// A host joins under a name that no other key holds.
    #[default]
    Join,
    /// It may also take its name over from another key, which is revoked.
    Replace,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The domain.
    pub domain: DomainName,
    /// Its root key: the joiner believes no other.
    pub root: PeerKey,
    /// The only daemon that the secret is sent to.
    pub issuer: PeerKey,
    /// Where to dial it; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
    /// The grid's directories; at most [`DIRECTORIES_MAX`].
    pub directories: Vec<Directory>,
    /// What lets the joiner in.
    pub secret: Secret,
    /// Until when, by the issuer's clock.
    pub expires: Time,
    /// Its type; in its line this is what the line begins with.
    #[serde(skip)]
    pub token_type: TokenType,
}

/// What a joiner asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The token's secret.
    pub secret: Secret,
    /// The token's root, so that an issuer of another domain can say so.
    pub root: PeerKey,
    /// The joiner's host.
    pub host: HostName,
    /// Which of the token's roles; none means all of them.
    pub wanted: Roles,
}

/// What may be asked of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Let me in.
    Join(Join),
    /// My certificate is half through.
    Renew {
        /// It, and why to believe it.
        chain: Box<Chain>,
    },
    /// Let me in, in place of the key that holds my host's name. An older issuer does not understand it, and says so.
    Replace(Join),
}

/// What an admitted host receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// Its certificate.
    pub chain: Chain,
    /// The grid's directories; at most [`DIRECTORIES_MAX`].
    pub directories: Vec<Directory>,
    /// Members to begin with; at most [`SEEDS_MAX`].
    pub seeds: Vec<Address>,
    /// Who is denied; at most one list of the root and one of the issuer.
    pub denials: Vec<Denial>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Yes.
    Admitted(Box<Admitted>),
    /// No, and why, in words for a person.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The questions before tokens of the type replace.
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
