//! Principal that tests admit without a certificate.
//!
//! Rule: it is always a member and sensor of the domain `test`; tests that need another role use a real
//! certificate (`../admission`).

use overlay::identity::admission::Principal;
use overlay::identity::trust::Affiliation;
use wire::credential::{Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::time::Time;

/// The principal with this key.
pub(crate) fn principal(peer: PeerKey) -> Principal {
    Principal {
        peer,
        affiliation: Affiliation::Member,
        domain: Some(DomainName::try_from("test").expect("a name")),
        root: Some(PeerKey([9; 32])),
        host: Some(HostName::try_from("h").expect("a name")),
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(1),
        issued: Time::default(),
        expires: Time::from_micros(i64::MAX),
        delegated: None,
        directory: false,
        guest: None,
    }
}
