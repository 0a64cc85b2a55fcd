//! Coming in to a proxy over the overlay with an account: what is said, and the visa that is given.
//!
//! ```text
//! visitor ── Question::Begin { account, hash, 32 random bytes } ──▶ proxy
//!         ◀── Reply::Challenge { realm, 32 random bytes } ──
//!         ── Question::Prove { tag, the domain that is meant } ──▶
//!         ◀── Reply::In { tag, visa, where the domain's representative is } ──
//! ```
//! Pure. A visa is the proxy's word for a visitor's key: hosts of a domain that let the proxy read let the visitor read what
//! the visa says, over a connection of its own, encrypted from end to end.
//! Not here: how the tags are made (`tunnel::challenge`), who gets in (`proxy`), what is believed (`overlay::identity::visa`).

use crate::address::Address;
use crate::credential::Chain;
use crate::id::{DomainName, HostName, PeerKey};
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Random bytes of each end.
pub const NONCE_LEN_BYTES: usize = 32;

/// Most addresses of a representative that a visitor receives.
pub const ADDRESSES_MAX: usize = 8;

/// What a visitor may see, as the proxy's operator granted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visa {
    /// Whose it is: the key by which the visitor connects, drawn for this visit alone.
    pub visitor: PeerKey,
    /// The account, for logs.
    pub account: String,
    /// Which domains; none means all.
    pub domains: Option<Vec<DomainName>>,
    /// Which of their hosts; none means all.
    pub hosts: Option<Vec<HostName>>,
    /// Which kinds of methods, by their words.
    pub classes: Vec<String>,
    /// Whether the account is an operator's; else a viewer's.
    pub is_operator: bool,
    /// From when it holds, by the proxy's clock.
    pub issued: Time,
    /// Until when.
    pub expires: Time,
}

impl Sealable for Visa {
    const LABEL: &'static str = "visa";
    // 64 domains and 64 hosts of long names.
    const BODY_LEN_MAX_BYTES: usize = 12 << 10;
}

/// A visa and why to believe its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownVisa {
    /// The visa.
    pub visa: Sealed<Visa>,
    /// The chain of the proxy that signed it.
    pub chain: Chain,
}

/// By which hash a visitor proves the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hash {
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-MD5, for accounts that are marked for it.
    Md5,
}

/// What a visitor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Who it is.
    Begin {
        /// The account.
        account: String,
        /// By which hash it proves the secret.
        hash: Hash,
        /// Drawn for this.
        nonce: [u8; NONCE_LEN_BYTES],
    },
    /// That it is.
    Prove {
        /// The tag.
        proof: Vec<u8>,
        /// Which domain it wants to ask.
        domain: DomainName,
    },
}

/// Where a domain's representative is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its key.
    pub representative: PeerKey,
    /// The root of its domain.
    pub root: PeerKey,
    /// Where it is dialled, through the proxy among them; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
}

/// What an authenticated visitor receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// The proxy's tag: it knows the secret too.
    pub proof: Vec<u8>,
    /// What the visitor shows from then on.
    pub visa: ShownVisa,
    /// Where the domain is, or why that is not known.
    pub place: Result<Place, String>,
}

/// What a proxy says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Prove it.
    Challenge {
        /// The realm of the accounts.
        realm: String,
        /// Drawn for this.
        nonce: [u8; NONCE_LEN_BYTES],
    },
    /// Come in.
    In(Box<Inside>),
    /// No, and why, in words for a person.
    Refused(String),
}
