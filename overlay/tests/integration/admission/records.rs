//! Records that directories refuse.

use crate::admission::rig::{NOW, Parts, domain, host, key};
use overlay::identity::certificate::SKEW_MAX;
use overlay::identity::record::{open_record, state};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use wire::address::Address;
use wire::credential::{Role, Roles};
use wire::registration::{Coverage, PART_HOSTS_MAX, Reach, Record, SensorType};
use wire::time::Time;

#[derive(Clone)]
struct Stated {
    parts: Parts,
    record: Record,
    signed_by: overlay::identity::key::Key,
    now: Time,
    deny: RevocationLists,
    trust: Trust,
}

pub(crate) fn record(parts: &Parts) -> Record {
    Record {
        domain: parts.certificate.domain.clone(),
        host: parts.certificate.host.clone(),
        port: 7741,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://a1:7741".to_owned()],
        term: 3,
        sequence: 9,
        stated: NOW,
        reach: Some(Reach {
            root: parts.root.peer(),
            peer: parts.peer(),
            addresses: vec![Address::try_from("a1:7742").expect("an address")],
            coverage: Coverage::Whole { hosts: 5 },
        }),
    }
}

/// The result of opening the record after `change`.
fn seen(change: impl FnOnce(&mut Stated)) -> Result<Record, Refused> {
    let parts = Parts::good();
    let trust = Trust::of_directory([(domain("alpha"), parts.root.peer())].into());
    let (record, signed_by) = (record(&parts), parts.member.clone());
    let mut stated = Stated { parts, record, signed_by, now: NOW, deny: RevocationLists::default(), trust };
    change(&mut stated);
    let statement = state(&stated.record, &stated.signed_by, &stated.parts.chain()).expect("fits");
    open_record(&statement, &stated.trust, &stated.deny, stated.now).map(|(record, _)| record)
}

#[track_caller]
fn check(bad: impl FnOnce(&mut Stated), expected: fn(&Refused) -> bool, control: impl FnOnce(&mut Stated)) {
    let refused = seen(bad).expect_err("refused");
    assert!(expected(&refused), "{refused:?}");
    seen(control).expect("the control passes");
}

#[test]
fn a_good_record_is_opened_unchanged() {
    assert_eq!(seen(|_| {}), Ok(record(&Parts::good())));
}

#[test]
fn a_record_signed_by_another_is_refused() {
    // Another key under the representative's chain.
    check(
        |stated| stated.signed_by = key(9),
        |refused| matches!(refused, Refused::Peer { .. }),
        |stated| stated.signed_by = stated.parts.member.clone(),
    );
    // Another member, with a valid chain of its own, signs the representative's record.
    let other = |stated: &mut Stated| {
        stated.signed_by = key(9);
        stated.parts.certificate.peer = key(9).peer();
    };
    check(
        other,
        |refused| matches!(refused, Refused::Record { field: "key", .. }),
        |stated| {
            other(stated);
            stated.record.reach.as_mut().expect("there").peer = key(9).peer();
        },
    );
}

#[test]
fn only_a_representative_states_a_record() {
    check(
        |stated| stated.parts.certificate.roles = [Role::Viewer, Role::Publisher].into_iter().collect(),
        |refused| matches!(refused, Refused::Role { .. }),
        |stated| stated.parts.certificate.roles = Roles::NONE.with(Role::Representative),
    );
}

#[test]
fn a_representative_states_its_own_domains_record() {
    // The same root holds two domains, so only the name differs.
    let trust = |stated: &mut Stated| {
        let root = stated.parts.root.peer();
        stated.trust = Trust::of_directory([(domain("alpha"), root), (domain("beta"), root)].into());
    };
    check(
        |stated| {
            trust(stated);
            stated.record.domain = domain("beta");
        },
        |refused| matches!(refused, Refused::Domain { .. }),
        trust,
    );
    check(
        |stated| stated.record.domain = domain("gamma"),
        |refused| matches!(refused, Refused::UnknownDomain { .. }),
        |_| {},
    );
}

#[test]
fn a_record_says_what_its_signers_certificate_says() {
    let is = |refused: &Refused| matches!(refused, Refused::Record { .. });
    check(|stated| stated.record.host = host("a2"), is, |_| {});
    check(|stated| stated.record.reach = None, is, |_| {});
    check(|stated| stated.record.reach.as_mut().expect("there").root = key(9).peer(), is, |_| {});
}

#[test]
fn an_expired_or_revoked_representative_is_not_believed() {
    let until = Parts::good().certificate.expires.plus(SKEW_MAX);
    check(
        |stated| stated.now = until,
        |refused| matches!(refused, Refused::Expired { .. }),
        |stated| stated.now = until.minus(SKEW_MAX),
    );
    let deny = |number: u8| {
        move |stated: &mut Stated| {
            let who = if number == 0 { stated.parts.peer() } else { key(number).peer() };
            stated.deny = stated.parts.held(&[stated.parts.denial_by_root(1, &[who], NOW)]);
        }
    };
    check(deny(0), |refused| matches!(refused, Refused::Denied { .. }), deny(99));
}

#[test]
fn a_record_of_a_domain_that_may_not_read_here_is_believed_all_the_same() {
    let foreign = |readers: Readers, says: u8| {
        seen(move |stated| {
            let root = if says == 0 { stated.parts.root.peer() } else { key(says).peer() };
            stated.trust = Trust::of_member(domain("own"), key(80).peer(), readers);
            stated.trust.hear_only(key(70).peer(), [(domain("alpha"), root)].into()).expect("room");
        })
    };
    foreign(Readers::Nobody, 0).expect("who reads is another question");
    assert!(matches!(foreign(Readers::Nobody, 9), Err(Refused::Root { .. })), "under its root alone");
}

#[test]
fn a_record_holds_no_more_than_one_may() {
    let cover = |count: usize| {
        move |stated: &mut Stated| {
            let hosts = (0..count).map(|number| host(&format!("h{number}"))).collect();
            let reach = stated.record.reach.as_mut().expect("there");
            reach.coverage = Coverage::Part { hosts, hosts_total: 0 };
        }
    };
    let full = |refused: &Refused| matches!(refused, Refused::Full { .. });
    check(cover(PART_HOSTS_MAX + 1), full, cover(PART_HOSTS_MAX));
    let dial = |count: usize| {
        move |stated: &mut Stated| {
            let reach = stated.record.reach.as_mut().expect("there");
            reach.addresses = vec![reach.addresses[0].clone(); count];
        }
    };
    check(dial(17), full, dial(16));
}
