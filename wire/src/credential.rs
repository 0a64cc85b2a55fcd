//! What lets a daemon into a domain: certificates with roles, the delegation under which they are signed, and
//! the list of those denied.
//!
//! Pure: what these say; whether they hold is decided by `overlay::identity`.
//! Rule: each is sealed under a label of its own ([`crate::sealed`]), so that none is taken for another.
//! Not here: tokens and joining.

use crate::id::{DomainName, HostName, PeerKey};
use crate::registration::Record;
use crate::sealed::{Sealable, Sealed};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most peers in a list of denied: 42 bytes each at most, so a list stays below 1 MiB.
pub const DENIED_MAX: usize = 10_000;

/// Role of a daemon in its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read: ask and subscribe.
    Viewer,
    /// Publish samples and events of its own host.
    Publisher,
    /// Be elected the domain's representative and state its record.
    Representative,
    /// Deploy log filters on the domain's sensors; given by the root alone.
    FilterAdmin,
    /// Signal processes of the domain's hosts; given by the root alone.
    Operator,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] =
        [Role::Viewer, Role::Publisher, Role::Representative, Role::FilterAdmin, Role::Operator];

    /// The word for it.
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

    /// Whether only the root may give it.
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

/// Why a text is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no role; expected viewer, publisher, representative, filter-admin or operator")]
pub struct NoRole {
    /// The text.
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
    /// No role.
    pub const NONE: Roles = Roles(0);

    /// What a host's sensor has unless its operator decides otherwise: it publishes, may be elected, and
    /// hands on what others ask.
    pub const SENSOR: Roles = Roles(0b111);

    /// Whether `role` is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// These and `role`.
    #[must_use]
    pub const fn with(self, role: Role) -> Roles {
        Roles(self.0 | 1 << role as u8)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of them are among `others`.
    #[must_use]
    pub const fn are_within(self, others: Roles) -> bool {
        self.0 & !others.0 == 0
    }

    /// Whether one of them is the root's alone to give.
    #[must_use]
    pub fn need_root(self) -> bool {
        self.iter().any(Role::needs_root)
    }

    /// Each of them, in the order of [`Role::ALL`].
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

/// A role that this program does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("roles {found:#010b} hold one that this program does not know")]
pub struct UnknownRole {
    /// The bits.
    pub found: u8,
}

impl TryFrom<u8> for Roles {
    type Error = UnknownRole;
    fn try_from(bits: u8) -> Result<Roles, UnknownRole> {
        let all: Roles = Role::ALL.into_iter().collect();
        if bits & !all.0 == 0 { Ok(Roles(bits)) } else { Err(UnknownRole { found: bits }) }
    }
}

/// `viewer, publisher`; `no role` where there is none.
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

/// Number of a certificate within its domain, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Serial(pub u64);

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Says that a key belongs to a host of a domain, and what it may do; signed by the issuer or the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The domain.
    pub domain: DomainName,
    /// The domain's root key: names are free to anybody, keys are not.
    pub root: PeerKey,
    /// Whose certificate it is.
    pub peer: PeerKey,
    /// Its host.
    pub host: HostName,
    /// What it may do.
    pub roles: Roles,
    /// The operator's wish in an election: a higher one is preferred.
    pub priority: u8,
    /// Its number.
    pub serial: Serial,
    /// From when it holds, by the signer's clock.
    pub issued: Time,
    /// Until when.
    pub expires: Time,
}

impl Sealable for Certificate {
    const LABEL: &'static str = "certificate";
    const BODY_LEN_MAX_BYTES: usize = 1024;
}

/// Says that the issuer may sign certificates of a domain; signed by its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The domain.
    pub domain: DomainName,
    /// Its root key, which signed this.
    pub root: PeerKey,
    /// Who may sign.
    pub issuer: PeerKey,
    /// The root's count of delegations: of two issuers' lists of denied, that of the higher one counts.
    pub number: u32,
    /// From when it holds.
    pub issued: Time,
    /// Until when.
    pub expires: Time,
}

impl Sealable for Delegation {
    const LABEL: &'static str = "delegation";
    const BODY_LEN_MAX_BYTES: usize = 512;
}

/// A certificate and why to believe it: what a daemon shows to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The certificate.
    pub certificate: Sealed<Certificate>,
    /// The root's word for its signer; none if the root signed it itself.
    pub delegation: Option<Sealed<Delegation>>,
}

/// Proxy ticket: its bearer acts for the member's host; signed by the member's daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// To which proxy, and to no other.
    pub proxy: PeerKey,
    /// From when it holds.
    pub issued: Time,
    /// Until when.
    pub expires: Time,
}

impl Sealable for Pass {
    const LABEL: &'static str = "pass";
    const BODY_LEN_MAX_BYTES: usize = 128;
}

/// A pass and why to believe its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPass {
    /// The pass.
    pub pass: Sealed<Pass>,
    /// The chain of its signer.
    pub chain: Chain,
}

/// A peer whose certificates hold no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Whose.
    pub peer: PeerKey,
    /// All that were issued up to then; one issued later, by a new token, holds again.
    pub issued_until: Time,
}

/// Everyone a domain denies; signed by its root or its issuer, each counting its own lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyList {
    /// The domain.
    pub domain: DomainName,
    /// Its root key.
    pub root: PeerKey,
    /// A higher one of the same signer replaces a lower one, never the other way.
    pub number: u64,
    /// When it was signed, by the signer's clock; shown, never compared.
    pub stated: Time,
    /// Who; at most [`DENIED_MAX`].
    pub denied: Vec<Denied>,
}

impl Sealable for DenyList {
    const LABEL: &'static str = "deny-list";
    const BODY_LEN_MAX_BYTES: usize = 1 << 20;
}

/// A list of denied and why to believe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The list.
    pub list: Sealed<DenyList>,
    /// The root's word for its signer; none if the root signed it itself.
    pub delegation: Option<Sealed<Delegation>>,
}

/// Longest record, in bytes: a part of a domain with a thousand hosts of long names.
const RECORD_LEN_MAX_BYTES: usize = 256 << 10;

impl Sealable for Record {
    const LABEL: &'static str = "record";
    const BODY_LEN_MAX_BYTES: usize = RECORD_LEN_MAX_BYTES;
}

/// A domain's record as its representative signed it, and why to believe the representative: what
/// directories take, keep and hand on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The record.
    pub record: Sealed<Record>,
    /// The chain of its signer.
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
