//! Login of a visitor at a proxy over the overlay with an account: the messages, and the visa that the
//! visitor receives.
//!
//! ```text
//! visitor ── Question::Begin { account, hash, 32 random bytes } ──▶ proxy
//!         ◀── Reply::Challenge { realm, 32 random bytes } ──
//!         ── Question::Prove { tag, the requested domain } ──▶
//!         ◀── Reply::In { tag, visa, address of the domain's representative } ──
//! ```
//! Pure. A visa is a certificate of the proxy for a visitor's key: the hosts of a domain that grant the proxy
//! read access let the visitor read what the visa lists, over its own connection, encrypted end to end.
//! Not here: the tags (`tunnel::challenge`), the accounts (`proxy`), the verification of a visa
//! (`overlay::identity::guest_certificate`).

use crate::address::Address;
use crate::credential::Chain;
use crate::id::{DomainName, HostName, PeerKey};
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Length of each end's nonce, in random bytes.
pub const NONCE_LEN_BYTES: usize = 32;

/// Most addresses of a representative that a visitor receives.
pub const ADDRESSES_MAX: usize = 8;

/// Permissions of a visitor, as the proxy's operator granted them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visa {
    /// Key by which the visitor connects, generated for this login only.
    pub visitor: PeerKey,
    /// Name of the account, for logs.
    pub account: String,
    /// Granted domains; `None` means all.
    pub domains: Option<Vec<DomainName>>,
    /// Granted hosts of these domains; `None` means all.
    pub hosts: Option<Vec<HostName>>,
    /// Granted classes of methods, by their keywords.
    pub classes: Vec<String>,
    /// Whether the account has the rights of an operator, or of a viewer.
    pub is_operator: bool,
    /// Start of the validity, by the proxy's clock.
    pub issued: Time,
    /// End of the validity.
    pub expires: Time,
}

impl Sealable for Visa {
    const LABEL: &'static str = "visa";
    // 64 domains and 64 hosts with long names.
    const BODY_LEN_MAX_BYTES: usize = 12 << 10;
}

/// A visa with the certificate chain of its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownVisa {
    /// The signed visa.
    pub visa: Sealed<Visa>,
    /// Certificate chain of the proxy that signed it.
    pub chain: Chain,
}

/// Hash by which a visitor proves the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hash {
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-MD5, for accounts that are marked for it.
    Md5,
}

/// Message from a visitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Starts the login.
    Begin {
        /// Name of the account.
        account: String,
        /// Hash for the proof of the secret.
        hash: Hash,
        /// Random nonce of the visitor.
        nonce: [u8; NONCE_LEN_BYTES],
    },
    /// Proves the secret.
    Prove {
        /// Tag of the visitor.
        proof: Vec<u8>,
        /// Domain that the visitor wants to query.
        domain: DomainName,
    },
}

/// Address of a domain's representative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Key of the representative.
    pub representative: PeerKey,
    /// Root key of the domain.
    pub root: PeerKey,
    /// Addresses to dial, including that through the proxy; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
}

/// Result of a successful login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Tag of the proxy: it proves that the proxy knows the secret, too.
    pub proof: Vec<u8>,
    /// Visa that the visitor presents from then on.
    pub visa: ShownVisa,
    /// Address of the domain, or why it is not known.
    pub place: Result<Place, String>,
}

/// Message from the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Requests the proof.
    Challenge {
        /// Realm of the accounts.
        realm: String,
        /// Random nonce of the proxy.
        nonce: [u8; NONCE_LEN_BYTES],
    },
    /// The login succeeded.
    In(Box<Inside>),
    /// The login is refused, with the reason as text for a person.
    Refused(String),
}
