//! Host names at the issuer: one host has one name in any spelling, and some names cannot be a host's.

use crate::admission::joining::Desk1;
use crate::admission::rig::{DAY, NOW, Parts, host, key};
use overlay::identity::certificate::LIFE;
use overlay::identity::issuer_store::{IssuerStore, RevocationTarget};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::token::Spec;
use std::time::Duration;
use wire::credential::{Certificate, Chain, Role, Roles};
use wire::id::PeerKey;

const NAMES_OF_NO_HOST: [&str; 14] = [
    "localhost",
    "LocalHost.",
    "localhost.localdomain",
    "localhost6",
    "ip6-loopback",
    "wn01.localhost",
    "local",
    "localdomain",
    "10.0.0.7",
    "010.0.0.7.",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0X7F000001",
];

fn desk() -> Desk1 {
    Desk1::new(Spec { uses: 100, ..Spec::default() })
}

fn chain_of(desk: &Desk1, certificate: &Certificate) -> Chain {
    let delegation = desk.parts.chain().delegation;
    Chain { certificate: desk.parts.issuer.seal(certificate).expect("fits"), delegation }
}

fn certify(
    store: &mut IssuerStore,
    root: &overlay::identity::key::Key,
    peer: PeerKey,
    name: &str,
) -> Result<Chain, Refused> {
    let roles = Roles::SENSOR.with(Role::Operator);
    store.certify(root, peer, host(name), roles, LIFE, &RevocationLists::default(), NOW)
}

#[test]
fn another_spelling_of_a_members_name_is_that_name() {
    let mut desk = desk();
    desk.redeem(&desk.ask("a2"), key(30).peer(), NOW).expect("good");
    for other in ["A2", "a2.", "A2.", "a2.."] {
        let refused = desk.redeem(&desk.ask(other), key(31).peer(), NOW);
        assert!(matches!(refused, Err(Refused::HostTaken { .. })), "{other}: {refused:?}");
        let root = desk.parts.root.clone();
        let refused = certify(&mut desk.store, &root, key(31).peer(), other);
        assert!(matches!(refused, Err(Refused::HostTaken { .. })), "{other}: {refused:?}");
    }
    desk.redeem(&desk.ask("a2.example"), key(31).peer(), NOW).expect("another host");
    let revoked = desk.store.deny(&RevocationTarget::Host(host("A2.")), NOW).expect("there");
    assert_eq!(revoked.iter().map(|denied| denied.peer).collect::<Vec<_>>(), [key(30).peer()]);
}

#[test]
fn a_name_that_is_no_hosts_becomes_no_member_and_uses_no_token_up() {
    let mut desk = Desk1::new(Spec::default());
    let long = "x".repeat(253);
    for name in NAMES_OF_NO_HOST.into_iter().chain([long.as_str()]) {
        desk.redeem(&desk.ask(name), key(30).peer(), NOW).expect_err(name);
        let root = desk.parts.root.clone();
        certify(&mut desk.store, &root, key(31).peer(), name).expect_err(name);
    }
    let good = ["9node_x", "wn01.local", "local1", "1a.2", "0x.example", "7.example", &"x".repeat(252)];
    for (number, name) in (40..).zip(good) {
        let mut desk = desk.clone();
        desk.redeem(&desk.ask(name), key(number).peer(), NOW).expect(name);
    }
}

#[test]
fn a_book_of_an_older_version_is_read_and_its_odd_members_are_renewed_and_revoked() {
    let mut parts = Parts::good();
    parts.certificate.host = host("LocalHost.");
    let mut desk = Desk1 { parts, ..desk() };
    let half = NOW.plus(LIFE / 2);
    let renewed = desk.renew(&desk.parts.chain(), desk.parts.peer(), half).expect("a member since long");
    assert_eq!(renewed.host.as_str(), "LocalHost.", "as it was written");
    let stored = postcard::to_stdvec(&desk.store).expect("encoded");
    let store: IssuerStore = postcard::from_bytes(&stored).expect("read");
    assert_eq!(store, desk.store);
    assert_eq!(store.members(&RevocationLists::default())[0].certificate.host.as_str(), "LocalHost.");
    assert_eq!(
        store.deny(&RevocationTarget::Host(host("localhost")), NOW).expect("there")[0].peer,
        desk.parts.peer()
    );
}

#[test]
fn a_name_given_to_another_key_is_not_renewed_for_the_first() {
    let mut desk = desk();
    let first = desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("good");
    let ended = first.expires.plus(Duration::from_secs(10));
    let within = ended.plus(Duration::from_secs(60));
    let chain = chain_of(&desk, &first);
    desk.clone().renew(&chain, key(30).peer(), within).expect("no other has the name, and clocks differ");
    let secret = wire::join::Secret([9; 16]);
    desk.store.tokens().add(secret, Spec::default(), ended).expect("room");
    let ask = wire::join::Join { secret, ..desk.ask("A1") };
    let second = desk.redeem(&ask, key(31).peer(), ended).expect("the first has ended");
    let refused = desk.renew(&chain, key(30).peer(), within).expect_err("given away");
    assert!(matches!(&refused, Refused::HostTaken { peer, .. } if *peer == key(31).peer()), "{refused:?}");
    let half = second.issued.plus(LIFE / 2);
    desk.renew(&chain_of(&desk, &second), key(31).peer(), half).expect("it has the name");
}

#[test]
fn two_spellings_that_an_older_version_let_in_are_both_renewed() {
    let mut desk = desk();
    let first = desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("good");
    let alias =
        Certificate { host: host("A1"), peer: key(31).peer(), issued: NOW.plus(DAY), ..first.clone() };
    let alias = Certificate { expires: alias.issued.plus(LIFE), ..alias };
    let half = alias.issued.plus(LIFE / 2);
    let renewed = desk.renew(&chain_of(&desk, &alias), key(31).peer(), half).expect("a member since long");
    assert_eq!(renewed.host.as_str(), "A1");
    desk.renew(&chain_of(&desk, &first), key(30).peer(), half).expect("so is the first");
}
