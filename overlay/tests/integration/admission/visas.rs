//! Visas: what a visitor may do with one, and how one is refused or ends.

use crate::admission::flips::check_bits;
use crate::admission::rig::{DAY, MINUTE, NOW, Parts, at, domain, host, key};
use overlay::identity::admission::{Action, Gate, Principal};
use overlay::identity::guest_certificate::{self, Guest, LIFE};
use overlay::identity::key::Key;
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::Affiliation;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::credential::{Role, Roles};
use wire::entering::{ShownVisa, Visa};
use wire::time::Time;

fn visitor() -> Key {
    key(70)
}

fn gate(parts: &Parts, denials: RevocationLists) -> Gate {
    Gate::new(parts.trust(), denials, BTreeSet::new())
}

fn visa(now: Time) -> Visa {
    Visa {
        visitor: visitor().peer(),
        account: "ana".to_owned(),
        domains: Some(vec![domain("alpha")]),
        hosts: None,
        classes: vec!["figures".to_owned()],
        is_operator: false,
        issued: now,
        expires: now.plus(LIFE),
    }
}

/// The visa that the proxy of these parts issues.
fn shown(parts: &Parts) -> ShownVisa {
    guest_certificate::make(&parts.member, &parts.chain(), &visa(NOW)).expect("made")
}

fn opened(parts: &Parts, shown: &ShownVisa, now: Time) -> Result<Principal, Refused> {
    gate(parts, RevocationLists::default()).handle_visa(visitor().peer(), shown, now, at(0))
}

#[test]
fn a_visitor_reads_and_does_nothing_else() {
    let parts = Parts::good();
    let principal = opened(&parts, &shown(&parts), NOW.plus(MINUTE)).expect("good");
    assert_eq!((principal.affiliation, principal.peer), (Affiliation::Visitor, visitor().peer()));
    assert_eq!((&principal.domain, &principal.host), (&None, &None), "it is a member of no domain");
    let guest = principal.guest.clone().expect("by a visa");
    assert_eq!((guest.visa.account.as_str(), guest.proxy.peer), ("ana", parts.peer()));
    let mut gate = gate(&parts, RevocationLists::default());
    assert_eq!(gate.check(&principal, Action::Read, NOW, at(0)), Ok(()));
    let own = host("a1");
    let others = [
        Action::Publish { host: &own },
        Action::Represent,
        Action::DeployFilters,
        Action::ControlProcesses,
        Action::Issue,
        Action::Replicate,
    ];
    for action in others {
        let refused = gate.check(&principal, action, NOW, at(0));
        assert!(matches!(refused, Err(Refused::Role { .. })), "{action:?}: {refused:?}");
    }
    assert!(gate.check_stating(&principal, NOW, at(0)).is_err());
}

#[test]
fn a_visa_is_for_one_key_its_time_and_what_its_proxy_may_itself() {
    let parts = Parts::good();
    let good = shown(&parts);
    let other = gate(&parts, RevocationLists::default()).handle_visa(key(71).peer(), &good, NOW, at(0));
    assert!(matches!(other, Err(Refused::Peer { .. })), "{other:?}");
    let late = opened(&parts, &good, NOW.plus(DAY));
    assert!(matches!(late, Err(Refused::Expired { what: "visa", .. })), "{late:?}");
    let early = opened(&parts, &good, NOW.minus(DAY / 2));
    assert!(matches!(early, Err(Refused::NotYetValid { what: "visa", .. })), "{early:?}");
    let denied = parts.held(&[parts.denial_by_root(1, &[parts.peer()], NOW)]);
    let denied = gate(&parts, denied).handle_visa(visitor().peer(), &good, NOW, at(0));
    assert!(matches!(denied, Err(Refused::Denied { .. })), "{denied:?}");
    let mut mute = Parts::good();
    mute.certificate.roles = Roles::NONE.with(Role::Publisher);
    let mute = opened(&mute, &shown(&mute), NOW);
    assert!(matches!(mute, Err(Refused::Role { .. })), "{mute:?}");
    let stranger = opened(&parts, &shown(&Parts::of("beta", 40)), NOW);
    assert!(matches!(stranger, Err(Refused::UnknownDomain { .. })), "{stranger:?}");
}

#[test]
fn no_proxy_signs_for_another_or_for_longer_than_its_life() {
    let parts = Parts::good();
    let stolen = guest_certificate::make(&key(80), &parts.chain(), &visa(NOW)).expect("made");
    assert!(opened(&parts, &stolen, NOW).is_err(), "the chain is another's");
    let long = Visa { expires: NOW.plus(LIFE * 2), ..visa(NOW) };
    assert!(guest_certificate::make(&parts.member, &parts.chain(), &long).is_err());
    let long = ShownVisa { visa: parts.member.seal(&long).expect("fits"), chain: parts.chain() };
    let long = opened(&parts, &long, NOW);
    assert!(matches!(long, Err(Refused::TooLong { what: "visa", .. })), "{long:?}");
    // A visitor that reaches the domain directly loses its access within two minutes: docs/firewalls.md.
    let promised = Visa { expires: NOW.plus(2 * MINUTE).plus(Duration::from_micros(1)), ..visa(NOW) };
    assert!(guest_certificate::make(&parts.member, &parts.chain(), &promised).is_err());
}

#[test]
fn a_guest_is_out_when_the_visa_ends_or_its_proxy_is_denied() {
    let parts = Parts::good();
    let principal = opened(&parts, &shown(&parts), NOW).expect("good");
    let before = gate(&parts, RevocationLists::default());
    assert_eq!(before.review(&principal, NOW.plus(LIFE)), Ok(()), "clocks may differ");
    let ended = before.review(&principal, NOW.plus(DAY));
    assert!(matches!(ended, Err(Refused::Expired { what: "visa", .. })), "{ended:?}");
    let denied = parts.held(&[parts.denial_by_issuer(1, &[parts.peer()], NOW)]);
    let denied = gate(&parts, denied).review(&principal, NOW);
    assert!(matches!(denied, Err(Refused::Denied { .. })), "{denied:?}");
}

#[test]
fn the_proxy_shuts_out_a_guest_whose_account_is_gone() {
    let parts = Parts::good();
    let (mut gate, shown) = (gate(&parts, RevocationLists::default()), shown(&parts));
    let principal = gate.handle_visa(visitor().peer(), &shown, NOW, at(0)).expect("good");
    gate.shut_out(visitor().peer(), NOW);
    let again = gate.handle_visa(visitor().peer(), &shown, NOW, at(0));
    assert!(matches!(again, Err(Refused::ShutOut { .. })), "{again:?}");
    assert!(matches!(gate.review(&principal, NOW), Err(Refused::ShutOut { .. })));
    // Stored as long as a visa could be shown, and no longer.
    gate.shut_out(key(72).peer(), NOW.plus(DAY));
    let later = guest_certificate::make(&parts.member, &parts.chain(), &visa(NOW.plus(DAY))).expect("made");
    assert!(gate.handle_visa(visitor().peer(), &later, NOW.plus(DAY), at(0)).is_ok());
}

#[test]
fn any_flipped_bit_of_a_visa_is_refused() {
    let parts = Parts::good();
    check_bits(&shown(&parts), |shown| opened(&parts, shown, NOW));
}

/// Roles change where a member's certificate is issued again: an earlier visa gives no more than the proxy
/// has now.
#[test]
fn a_proxy_that_may_read_no_more_has_no_visitors() {
    let parts = Parts::good();
    let mut principal = opened(&parts, &shown(&parts), NOW).expect("good");
    let gate = gate(&parts, RevocationLists::default());
    assert_eq!(gate.review(&principal, NOW), Ok(()));
    let guest = principal.guest.as_deref().expect("by a visa").clone();
    let proxy = Principal { roles: Roles::NONE.with(Role::Publisher), ..guest.proxy.clone() };
    principal.guest = Some(Arc::new(Guest { proxy, ..guest }));
    assert!(matches!(gate.review(&principal, NOW), Err(Refused::Role { .. })));
}
