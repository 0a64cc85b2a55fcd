//! Keys and certificates of a domain made by hand, so that each part can be made wrong.

use overlay::identity::certificate::{DELEGATION_LIFE, LIFE};
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use std::time::Duration;
use wire::credential::{Certificate, Chain, Delegation, Denial, Denied, DenyList, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::{Moment, Time};

/// 2026-11-21T06:00:00Z.
pub(crate) const NOW: Time = Time::from_micros(1_795_240_800_000_000);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn key(number: u8) -> Key {
    Key::from_seed([number; 32])
}

pub(crate) fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).expect("a name")
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::try_from(name).expect("a name")
}

pub(crate) fn at(secs: u64) -> Moment {
    Moment(Duration::from_secs(secs))
}

/// All parts of a member's chain, each to be changed.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) root: Key,
    pub(crate) issuer: Key,
    pub(crate) member: Key,
    pub(crate) certificate: Certificate,
    pub(crate) certificate_by: Key,
    /// `None` where the root signs the certificate itself.
    pub(crate) delegation: Option<Delegation>,
    pub(crate) delegation_by: Key,
}

impl Parts {
    /// A sensor of domain `alpha` on host `a1`, whose certificate was issued a day ago.
    pub(crate) fn good() -> Parts {
        Parts::of("alpha", 1)
    }

    /// A sensor of another domain; its keys are numbered from `base`.
    pub(crate) fn of(name: &str, base: u8) -> Parts {
        let (root, issuer, member) = (key(base), key(base + 1), key(base + 2));
        let issued = NOW.minus(DAY);
        let certificate = Certificate {
            domain: domain(name),
            root: root.peer(),
            peer: member.peer(),
            host: host("a1"),
            roles: Roles::SENSOR,
            priority: 7,
            serial: Serial(3),
            issued,
            expires: issued.plus(LIFE),
        };
        let delegation = Delegation {
            domain: domain(name),
            root: root.peer(),
            issuer: issuer.peer(),
            number: 1,
            issued,
            expires: issued.plus(DELEGATION_LIFE),
        };
        let (certificate_by, delegation_by) = (issuer.clone(), root.clone());
        Parts {
            root,
            issuer,
            member,
            certificate,
            certificate_by,
            delegation: Some(delegation),
            delegation_by,
        }
    }

    pub(crate) fn chain(&self) -> Chain {
        let delegation = self.delegation.as_ref().map(|it| self.delegation_by.seal(it).expect("fits"));
        Chain { certificate: self.certificate_by.seal(&self.certificate).expect("fits"), delegation }
    }

    /// The same, signed by the root itself.
    pub(crate) fn by_root(mut self) -> Parts {
        self.delegation = None;
        self.certificate_by = self.root.clone();
        self
    }

    pub(crate) fn peer(&self) -> PeerKey {
        self.member.peer()
    }

    /// Trust of a member of this domain.
    pub(crate) fn trust(&self) -> Trust {
        Trust::of_member(self.certificate.domain.clone(), self.root.peer(), Readers::Admitted)
    }

    /// A revocation list signed by the root.
    pub(crate) fn denial_by_root(&self, number: u64, denied: &[PeerKey], issued_until: Time) -> Denial {
        Denial {
            list: self.root.seal(&self.list(number, denied, issued_until)).expect("fits"),
            delegation: None,
        }
    }

    /// A revocation list signed by the issuer.
    pub(crate) fn denial_by_issuer(&self, number: u64, denied: &[PeerKey], issued_until: Time) -> Denial {
        let list = self.issuer.seal(&self.list(number, denied, issued_until)).expect("fits");
        Denial { list, delegation: self.chain().delegation }
    }

    pub(crate) fn list(&self, number: u64, denied: &[PeerKey], issued_until: Time) -> DenyList {
        let denied = denied.iter().map(|&peer| Denied { peer, issued_until }).collect();
        let Certificate { domain, root, .. } = self.certificate.clone();
        DenyList { domain, root, number, stated: NOW, denied }
    }

    /// The revocations after these lists were received.
    pub(crate) fn held(&self, lists: &[Denial]) -> RevocationLists {
        let mut held = RevocationLists::default();
        for list in lists {
            held.take(list, &self.trust()).expect("a good list");
        }
        held
    }
}
