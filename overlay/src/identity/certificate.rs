//! Verification of a certificate chain: signatures up to the domain's root, validity times, revocation, and
//! the key that holds it.
//!
//! Pure. Rules: everything believed is signed under a root that [`Trust`] names; only the root can give the
//! roles filter-admin and operator; a chain is valid only for the key in it.
//! Not here: what the holder may do (`admission`).

use super::key::{self, Key};
use super::principal::Principal;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::trust::{Affiliation, Trust};
use std::time::Duration;
use wire::credential::{Certificate, Chain, Delegation};
use wire::id::{DomainName, PeerKey};
use wire::sealed::{Sealable, Sealed};
use wire::time::Time;

const DAY: Duration = Duration::from_secs(86_400);

/// How long a certificate is valid; the longest that an issuer may sign for.
pub const LIFE: Duration = DAY.saturating_mul(30);

/// The longest that a root may sign for: a root key that is stored elsewhere is fetched once a year.
pub const LIFE_BY_ROOT_MAX: Duration = DAY.saturating_mul(366);

/// How long a delegation is valid; the issuer renews it after half of that, if the root key is available.
pub const DELEGATION_LIFE: Duration = DAY.saturating_mul(365);

/// Clock difference between two hosts that is tolerated: certificates of 30 days need no better clocks, and a
/// larger difference is a fault to repair.
pub const SKEW_MAX: Duration = Duration::from_secs(300);

/// A chain whose signatures are correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub certificate: Certificate,
    /// The root's delegation to the signer; none if the root signed the certificate.
    pub delegation: Option<Delegation>,
}

impl Opened {
    /// From when the certificate and its delegation are both valid.
    #[must_use]
    pub fn starts(&self) -> Time {
        let delegated =
            self.delegation.as_ref().map_or(self.certificate.issued, |delegation| delegation.issued);
        self.certificate.issued.max(delegated)
    }
}

/// Authenticate `peer` by `chain` at `now`.
///
/// # Errors
/// Which check failed: [`Refused`] names each.
pub fn verify(
    chain: &Chain,
    peer: PeerKey,
    now: Time,
    deny: &RevocationLists,
    trust: &Trust,
) -> Result<Principal, Refused> {
    // Cheap checks of the claimed values come before the signatures. They are not repeated, because the same
    // bytes are opened afterwards.
    let claimed = chain.certificate.unverified()?;
    let affiliation = trust.affiliation(&claimed.domain, claimed.root)?;
    verify_as(chain, peer, now, deny, affiliation, claimed.root)
}

/// As [`verify`], for a caller that has already found the root to believe and the affiliation of its domain.
pub(super) fn verify_as(
    chain: &Chain,
    peer: PeerKey,
    now: Time,
    deny: &RevocationLists,
    affiliation: Affiliation,
    root: PeerKey,
) -> Result<Principal, Refused> {
    let opened = open(chain)?;
    let domain = &opened.certificate.domain;
    if opened.certificate.root != root {
        let found = opened.certificate.root;
        return Err(Refused::Root { domain: domain.clone(), found, expected: root });
    }
    if opened.certificate.peer != peer {
        return Err(Refused::Peer { found: peer, expected: opened.certificate.peer });
    }
    if let Some(delegation) = &opened.delegation {
        check_times(Delegation::LABEL, delegation.issued, delegation.expires, now)?;
    }
    check_times(Certificate::LABEL, opened.certificate.issued, opened.certificate.expires, now)?;
    let principal = Principal::of(opened, affiliation);
    principal.check_denials(deny)?;
    Ok(principal)
}

/// Whether the validity times in a daemon's own `chain` include `now`, so that the daemon shows it. At its
/// end, unlike in other peers' checks, no clock difference is tolerated. Signatures are not checked.
#[must_use]
pub fn holds_at(chain: &Chain, now: Time) -> bool {
    let holds = |from: Time, until: Time| !is_early(from, now) && now < until;
    let certificate = chain.certificate.unverified();
    let delegation = chain.delegation.as_ref().map(|delegation| delegation.unverified());
    certificate.is_ok_and(|it| holds(it.issued, it.expires))
        && delegation.is_none_or(|it| it.is_ok_and(|it| holds(it.issued, it.expires)))
}

/// The chain that a daemon shows at `now`: the newest, or the previous one if that is valid and the newest is
/// not.
#[must_use]
pub fn newest_that_holds<'a>(
    newest: Option<&'a Chain>,
    previous: Option<&'a Chain>,
    now: Time,
) -> Option<&'a Chain> {
    let newest = newest?;
    let previous = previous.filter(|previous| !holds_at(newest, now) && holds_at(previous, now));
    Some(previous.unwrap_or(newest))
}

/// Check the signatures of a chain, and that its parts belong together.
///
/// # Errors
/// If a part is malformed or does not fit the others, or has the wrong signer.
pub fn open(chain: &Chain) -> Result<Opened, Refused> {
    let claimed = chain.certificate.unverified()?;
    let not_delegated =
        |signer| Refused::NotDelegated { what: Certificate::LABEL, signer, domain: claimed.domain.clone() };
    let signer = chain.certificate.signer();
    let Some(delegation) = &chain.delegation else {
        if signer != claimed.root {
            return Err(not_delegated(signer));
        }
        let certificate = key::open(&chain.certificate, claimed.root)?;
        check_life(Certificate::LABEL, &certificate.issued, certificate.expires, LIFE_BY_ROOT_MAX)?;
        return Ok(Opened { certificate, delegation: None });
    };
    let delegation = open_delegation(delegation, &claimed.domain, claimed.root)?;
    if signer != delegation.issuer {
        return Err(not_delegated(signer));
    }
    if claimed.roles.need_root() {
        return Err(Refused::RoleOfRoot { roles: claimed.roles, signer });
    }
    let certificate = key::open(&chain.certificate, signer)?;
    check_life(Certificate::LABEL, &certificate.issued, certificate.expires, LIFE)?;
    Ok(Opened { certificate, delegation: Some(delegation) })
}

/// Open the root's delegation, if it is for `domain` and signed by `root`.
pub(super) fn open_delegation(
    sealed: &Sealed<Delegation>,
    domain: &DomainName,
    root: PeerKey,
) -> Result<Delegation, Refused> {
    let delegation = key::open(sealed, root)?;
    if delegation.root != root || delegation.domain != *domain {
        let signer = delegation.issuer;
        return Err(Refused::NotDelegated { what: Certificate::LABEL, signer, domain: domain.clone() });
    }
    check_life(Delegation::LABEL, &delegation.issued, delegation.expires, LIFE_BY_ROOT_MAX)?;
    Ok(delegation)
}

/// Check that `now` is between `from` and `until`, within [`SKEW_MAX`].
pub(super) fn check_times(what: &'static str, from: Time, until: Time, now: Time) -> Result<(), Refused> {
    if is_early(from, now) {
        return Err(Refused::NotYetValid { what, from, now });
    }
    if now.minus(SKEW_MAX) >= until {
        return Err(Refused::Expired { what, until, now });
    }
    Ok(())
}

/// Whether something valid from `from` is not valid yet, even if two hosts' clocks differ by [`SKEW_MAX`].
#[must_use]
pub fn is_early(from: Time, now: Time) -> bool {
    now.plus(SKEW_MAX) < from
}

pub(super) fn check_life(
    what: &'static str,
    issued: &Time,
    expires: Time,
    max: Duration,
) -> Result<(), Refused> {
    let span = expires.since(*issued);
    if span > max { Err(Refused::TooLong { what, span, max }) } else { Ok(()) }
}

/// When a certificate becomes due for renewal: after half of its life.
#[must_use]
pub fn renewed_from(certificate: &Certificate) -> Time {
    certificate.issued.plus(certificate.expires.since(certificate.issued) / 2)
}

/// Sign the root's delegation to `issuer`, with this number.
///
/// # Errors
/// None in practice: every valid domain name fits.
pub fn delegate(
    root: &Key,
    domain: &DomainName,
    issuer: PeerKey,
    number: u32,
    now: Time,
) -> Result<Sealed<Delegation>, Refused> {
    let expires = now.plus(DELEGATION_LIFE);
    root.seal(&Delegation { domain: domain.clone(), root: root.peer(), issuer, number, issued: now, expires })
}
