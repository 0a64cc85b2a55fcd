//! Passes: which peer a proxy admits by one, and each reason for which one is refused.

use crate::admission::rig::{DAY, MINUTE, NOW, Parts, at, key};
use overlay::identity::admission::{Gate, Principal};
use overlay::identity::proxy_ticket;
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use std::collections::BTreeSet;
use wire::credential::{Pass, Role, Roles, ShownPass};
use wire::id::PeerKey;
use wire::time::Time;

fn proxy() -> PeerKey {
    key(90).peer()
}

fn gate(parts: &Parts, denials: RevocationLists) -> Gate {
    Gate::new(parts.trust(), denials, BTreeSet::new())
}

fn opened(parts: &Parts, shown: &ShownPass, now: Time) -> Result<Principal, Refused> {
    gate(parts, RevocationLists::default()).handle_pass(shown, proxy(), now, at(0))
}

fn shown(parts: &Parts) -> ShownPass {
    let line = proxy_ticket::make(&parts.member, &parts.chain(), proxy(), NOW, 60 * MINUTE).expect("made");
    proxy_ticket::read(&line).expect("readable")
}

#[test]
fn a_member_is_known_by_the_pass_that_it_signed() {
    let parts = Parts::good();
    let principal = opened(&parts, &shown(&parts), NOW.plus(MINUTE)).expect("good");
    assert_eq!((principal.peer, principal.domain), (parts.peer(), Some(parts.certificate.domain.clone())));
}

#[test]
fn a_pass_is_for_one_proxy_its_time_and_what_its_signer_still_is() {
    let parts = Parts::good();
    let good = shown(&parts);
    let other = gate(&parts, RevocationLists::default()).handle_pass(&good, key(91).peer(), NOW, at(0));
    assert!(matches!(other, Err(Refused::OtherProxy { .. })), "{other:?}");
    let late = opened(&parts, &good, NOW.plus(DAY));
    assert!(matches!(late, Err(Refused::Expired { what: "pass", .. })), "{late:?}");
    let early = opened(&parts, &good, NOW.minus(DAY / 2));
    assert!(matches!(early, Err(Refused::NotYetValid { what: "pass", .. })), "{early:?}");
    let denied = parts.held(&[parts.denial_by_root(1, &[parts.peer()], NOW)]);
    let denied = gate(&parts, denied).handle_pass(&good, proxy(), NOW, at(0));
    assert!(matches!(denied, Err(Refused::Denied { .. })), "{denied:?}");
    let mut mute = Parts::good();
    mute.certificate.roles = Roles::NONE.with(Role::Publisher);
    let mute = opened(&mute, &shown(&mute), NOW);
    assert!(matches!(mute, Err(Refused::Role { .. })), "{mute:?}");
    let stranger = Parts::of("beta", 40);
    let stranger =
        gate(&parts, RevocationLists::default()).handle_pass(&shown(&stranger), proxy(), NOW, at(0));
    assert!(matches!(stranger, Err(Refused::UnknownDomain { .. })), "{stranger:?}");
}

#[test]
fn no_proxy_signs_for_another_or_for_longer_than_a_day() {
    let parts = Parts::good();
    let thief = key(80);
    let stolen = proxy_ticket::make(&thief, &parts.chain(), proxy(), NOW, MINUTE).expect("made");
    let stolen = opened(&parts, &proxy_ticket::read(&stolen).expect("readable"), NOW);
    assert!(stolen.is_err(), "{stolen:?}");
    assert!(proxy_ticket::make(&parts.member, &parts.chain(), proxy(), NOW, DAY).is_err());
    let long = Pass { proxy: proxy(), issued: NOW, expires: NOW.plus(DAY) };
    let long = ShownPass { pass: parts.member.seal(&long).expect("fits"), chain: parts.chain() };
    let long = opened(&parts, &long, NOW);
    assert!(matches!(long, Err(Refused::TooLong { what: "pass", .. })), "{long:?}");
    assert!(proxy_ticket::read("visperf1-abc").is_err() && proxy_ticket::read("").is_err());
    assert!(proxy_ticket::read(&"visperfpass1-".repeat(1000)).is_err());
}
