//! Credentials of daemons in a domain: certificates with roles, the delegation to the issuer that signs them,
//! and revocation lists.
//!
//! Pure: content only; verification is in `overlay::identity`. Rule: each type is sealed under its own label
//! ([`crate::sealed`]), so that none can be mistaken for another.
//! Not here: tokens and joining.

use crate::id::{DomainName, HostName, PeerKey};
use crate::registration::Record;
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most peers in a revocation list: 42 bytes each at most, so a list stays below 1 MiB.
pub const DENIED_MAX: usize = 10_000;

/// Role of a daemon in its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read: query and subscribe.
    Viewer,
    /// Publish samples and events of its own host.
    Publisher,
    /// Be elected as the domain's representative and state its record.
    Representative,
    /// Deploy log filters on the domain's sensors; granted by the root only.
    FilterAdmin,
    /// Signal processes of the domain's hosts; granted by the root only.
    Operator,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] =
        [Role::Viewer, Role::Publisher, Role::Representative, Role::FilterAdmin, Role::Operator];

    /// The role as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Publisher => "publisher",
            Role::Representative => "representative",
            Role::FilterAdmin => "filter-admin",
            Role::Operator => "operator",
        }
    }

    /// Whether only the root may grant it.
    #[must_use]
    pub const fn needs_root(self) -> bool {
        matches!(self, Role::FilterAdmin | Role::Operator)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error of a text that is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no role; expected viewer, publisher, representative, filter-admin or operator")]
pub struct NoRole {
    /// The invalid text.
    pub found: String,
}

impl std::str::FromStr for Role {
    type Err = NoRole;
    fn from_str(text: &str) -> Result<Role, NoRole> {
        let found = || NoRole { found: text.chars().take(40).collect() };
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(found)
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Roles(u8);

impl Roles {
    /// The empty set.
    pub const NONE: Roles = Roles(0);

    /// Default roles of a host's sensor: it publishes, may be elected, and forwards queries of others.
    pub const SENSOR: Roles = Roles(0b111);

    /// Whether the set contains `role`.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// The set with `role` added.
    #[must_use]
    pub const fn with(self, role: Role) -> Roles {
        Roles(self.0 | 1 << role as u8)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all roles of the set are in `others`.
    #[must_use]
    pub const fn are_within(self, others: Roles) -> bool {
        self.0 & !others.0 == 0
    }

    /// Whether it contains a role that only the root may grant.
    #[must_use]
    pub fn need_root(self) -> bool {
        self.iter().any(Role::needs_root)
    }

    /// The roles in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |&role| self.has(role))
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Roles {
        roles.into_iter().fold(Roles::NONE, Roles::with)
    }
}

impl From<Roles> for u8 {
    fn from(roles: Roles) -> u8 {
        roles.0
    }
}

/// Error of a role that this program does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("roles {found:#010b} hold one that this program does not know")]
pub struct UnknownRole {
    /// The role bits.
    pub found: u8,
}

impl TryFrom<u8> for Roles {
    type Error = UnknownRole;
    fn try_from(bits: u8) -> Result<Roles, UnknownRole> {
        let all: Roles = Role::ALL.into_iter().collect();
        if bits & !all.0 == 0 { Ok(Roles(bits)) } else { Err(UnknownRole { found: bits }) }
    }
}

/// `viewer, publisher`; `no role` for the empty set.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no role");
        }
        self.iter().enumerate().try_for_each(|(at, role)| {
            let between = if at > 0 { ", " } else { "" };
            write!(f, "{between}{role}")
        })
    }
}

/// Serial number of a certificate within its domain, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Serial(pub u64);

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Binds a key to a host of a domain and to roles; signed by the issuer or the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Domain of the host.
    pub domain: DomainName,
    /// Root key of the domain: anyone may use a name, not a key.
    pub root: PeerKey,
    /// Key of the certified daemon.
    pub peer: PeerKey,
    /// Host of the daemon.
    pub host: HostName,
    /// Granted roles.
    pub roles: Roles,
    /// Priority in an election, set by the operator: a higher one is preferred.
    pub priority: u8,
    /// Serial number of the certificate.
    pub serial: Serial,
    /// Start of the validity, by the signer's clock.
    pub issued: Time,
    /// End of the validity.
    pub expires: Time,
}

impl Sealable for Certificate {
    const LABEL: &'static str = "certificate";
    const BODY_LEN_MAX_BYTES: usize = 1024;
}

/// Authorizes the issuer to sign certificates of a domain; signed by its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// Domain of the issuer.
    pub domain: DomainName,
    /// Root key of the domain, which signed this.
    pub root: PeerKey,
    /// Key of the issuer.
    pub issuer: PeerKey,
    /// Number of the delegation: of two issuers' revocation lists, the one with the higher number is used.
    pub number: u32,
    /// Start of the validity.
    pub issued: Time,
    /// End of the validity.
    pub expires: Time,
}

impl Sealable for Delegation {
    const LABEL: &'static str = "delegation";
    const BODY_LEN_MAX_BYTES: usize = 512;
}

/// Certificate chain that a daemon presents to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Certificate of the daemon.
    pub certificate: Sealed<Certificate>,
    /// Delegation to its signer; `None` if the root signed it itself.
    pub delegation: Option<Sealed<Delegation>>,
}

/// Proxy ticket: its bearer acts for the member's host; signed by the member's daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Key of the proxy for which it is valid.
    pub proxy: PeerKey,
    /// Start of the validity.
    pub issued: Time,
    /// End of the validity.
    pub expires: Time,
}

impl Sealable for Pass {
    const LABEL: &'static str = "pass";
    const BODY_LEN_MAX_BYTES: usize = 128;
}

/// A proxy ticket with the certificate chain of its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPass {
    /// The signed ticket.
    pub pass: Sealed<Pass>,
    /// Certificate chain of its signer.
    pub chain: Chain,
}

/// A revoked peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Key of the revoked peer.
    pub peer: PeerKey,
    /// Its certificates issued up to this time are revoked; one issued later, by a new token, is valid again.
    pub issued_until: Time,
}

/// Revocation list of a domain; signed by its root or its issuer, each with numbers of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyList {
    /// Domain of the list.
    pub domain: DomainName,
    /// Root key of the domain.
    pub root: PeerKey,
    /// Number of the list: a higher one of the same signer replaces a lower one, never the reverse.
    pub number: u64,
    /// Time of signing, by the signer's clock; displayed, never compared.
    pub stated: Time,
    /// Revoked peers; at most [`DENIED_MAX`].
    pub denied: Vec<Denied>,
}

impl Sealable for DenyList {
    const LABEL: &'static str = "deny-list";
    const BODY_LEN_MAX_BYTES: usize = 1 << 20;
}

/// A revocation list with the delegation to its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The signed list.
    pub list: Sealed<DenyList>,
    /// Delegation to its signer; `None` if the root signed it itself.
    pub delegation: Option<Sealed<Delegation>>,
}

/// Longest record, in bytes: a part of a domain with a thousand hosts of long names.
const RECORD_LEN_MAX_BYTES: usize = 256 << 10;

impl Sealable for Record {
    const LABEL: &'static str = "record";
    const BODY_LEN_MAX_BYTES: usize = RECORD_LEN_MAX_BYTES;
}

/// A domain's record, signed by its representative, with the certificate chain of the representative:
/// directories accept, store and replicate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The signed record.
    pub record: Sealed<Record>,
    /// Certificate chain of its signer.
    pub chain: Chain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_travel_as_bits_and_unknown_ones_are_refused() {
        let roles: Roles = [Role::Operator, Role::Viewer].into_iter().collect();
        assert_eq!((u8::from(roles), roles.to_string().as_str()), (0b1_0001, "viewer, operator"));
        assert_eq!(Roles::try_from(0b1_0001), Ok(roles));
        assert_eq!(Roles::try_from(0b10_0000), Err(UnknownRole { found: 0b10_0000 }));
        assert!(roles.need_root() && !Roles::SENSOR.need_root());
        assert!(Roles::NONE.are_within(roles) && !roles.are_within(Roles::SENSOR));
        assert_eq!(Roles::SENSOR.to_string(), "viewer, publisher, representative");
        assert_eq!(Roles::NONE.to_string(), "no role");
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("root".parse::<Role>().is_err());
    }

    #[test]
    fn the_longest_certificate_and_list_fit() {
        let long = "x".repeat(crate::id::NAME_LEN_MAX_BYTES);
        let far = Time::from_micros(i64::MIN);
        let certificate = Certificate {
            domain: DomainName::try_from(long.as_str()).expect("a name"),
            root: PeerKey([0; 32]),
            peer: PeerKey([0; 32]),
            host: HostName::try_from(long.as_str()).expect("a name"),
            roles: Roles::SENSOR,
            priority: 255,
            serial: Serial(u64::MAX),
            issued: far,
            expires: far,
        };
        assert!(Sealed::new(&certificate, PeerKey([1; 32]), |_| [0; 64]).is_ok());
        let list = DenyList {
            domain: certificate.domain,
            root: certificate.root,
            number: u64::MAX,
            stated: far,
            denied: vec![Denied { peer: certificate.peer, issued_until: far }; DENIED_MAX],
        };
        assert!(Sealed::new(&list, PeerKey([1; 32]), |_| [0; 64]).is_ok());
    }
}
