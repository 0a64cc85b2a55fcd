//! Leaves of domains that directories refuse, which peers may sign them, and the cache of valid chains.

use crate::admission::records::record;
use crate::admission::rig::{DAY, NOW, Parts, at, domain, key};
use overlay::identity::admission::Gate;
use overlay::identity::certificate::{self, SKEW_MAX};
use overlay::identity::record::{open_leave, state, take_leave};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::{RevocationLists, TakeOutcome};
use overlay::identity::trust::{Readers, Trust};
use std::collections::BTreeSet;
use wire::credential::{Role, Roles};
use wire::replication::Leave;

pub(crate) fn leave(parts: &Parts) -> Leave {
    Leave {
        domain: parts.certificate.domain.clone(),
        root: parts.root.peer(),
        peer: parts.peer(),
        term: 3,
        sequence: 10,
        stated: NOW,
    }
}

/// A directory's gate that admits `alpha` with these keys.
fn gate(parts: &Parts) -> Gate {
    let trust = Trust::of_directory([(domain("alpha"), parts.root.peer())].into());
    Gate::new(trust, RevocationLists::default(), BTreeSet::new())
}

fn opened(change: impl FnOnce(&mut Parts, &mut Leave)) -> Result<Leave, Refused> {
    let mut parts = Parts::good();
    let trust = Trust::of_directory([(domain("alpha"), parts.root.peer())].into());
    let mut said = leave(&parts);
    change(&mut parts, &mut said);
    let farewell = take_leave(&said, &parts.member, &parts.chain()).expect("fits");
    open_leave(&farewell, &trust, &RevocationLists::default(), NOW).map(|(leave, _)| leave)
}

#[test]
fn a_leave_is_opened_unchanged_and_only_of_its_own_representative() {
    assert_eq!(opened(|_, _| {}), Ok(leave(&Parts::good())));
    let check = |change: fn(&mut Parts, &mut Leave), expected: fn(&Refused) -> bool| {
        let refused = opened(change).expect_err("refused");
        assert!(expected(&refused), "{refused:?}");
    };
    // Another key under the representative's chain.
    check(|parts, _| parts.member = key(9), |refused| matches!(refused, Refused::Peer { .. }));
    check(
        |_, said| said.peer = key(9).peer(),
        |refused| matches!(refused, Refused::Record { field: "key", .. }),
    );
    check(
        |_, said| said.root = key(9).peer(),
        |refused| matches!(refused, Refused::Record { field: "root", .. }),
    );
    check(
        |parts, _| parts.certificate.roles = Roles::NONE.with(Role::Publisher),
        |refused| matches!(refused, Refused::Role { .. }),
    );
    check(|_, said| said.domain = domain("beta"), |refused| matches!(refused, Refused::UnknownDomain { .. }));
    check(
        |parts, _| parts.certificate.domain = domain("beta"),
        |refused| matches!(refused, Refused::NotDelegated { .. } | Refused::Domain { .. }),
    );
}

#[test]
fn a_leave_is_no_record_and_a_record_no_leave() {
    let parts = Parts::good();
    let statement = state(&record(&parts), &parts.member, &parts.chain()).expect("fits");
    let farewell = take_leave(&leave(&parts), &parts.member, &parts.chain()).expect("fits");
    let bytes = postcard::to_stdvec(&farewell).expect("encodes");
    if let Ok(taken) = postcard::from_bytes(&bytes) {
        gate(&parts).handle_statement(parts.peer(), &taken, NOW, at(1)).expect_err("signed as a leave");
    }
    let bytes = postcard::to_stdvec(&statement).expect("encodes");
    if let Ok(taken) = postcard::from_bytes(&bytes) {
        gate(&parts).handle_farewell(parts.peer(), &taken, NOW, at(1)).expect_err("signed as a record");
    }
    gate(&parts).handle_statement(parts.peer(), &statement, NOW, at(1)).expect("the control");
    gate(&parts).handle_farewell(parts.peer(), &farewell, NOW, at(1)).expect("the control");
}

#[test]
fn a_chain_once_found_good_is_refused_as_soon_as_it_no_longer_is() {
    let parts = Parts::good();
    let statement = state(&record(&parts), &parts.member, &parts.chain()).expect("fits");
    let known = || {
        let mut gate = gate(&parts);
        gate.handle_statement(parts.peer(), &statement, NOW, at(1)).expect("good");
        gate
    };
    known().handle_statement(parts.peer(), &statement, NOW, at(2)).expect("still");

    let end = parts.certificate.expires.plus(SKEW_MAX);
    let refused = known().handle_statement(parts.peer(), &statement, end, at(2)).expect_err("expired");
    assert!(matches!(refused, Refused::Expired { .. }), "{refused:?}");
    let early = parts.certificate.issued.minus(DAY);
    let refused = known().handle_statement(parts.peer(), &statement, early, at(2)).expect_err("early");
    assert!(matches!(refused, Refused::NotYetValid { .. }), "{refused:?}");

    let mut gate = known();
    let denial = parts.denial_by_root(1, &[parts.peer()], NOW);
    gate.handle_denial(parts.peer(), &denial, NOW, at(2)).expect("new");
    let refused = gate.handle_statement(parts.peer(), &statement, NOW, at(2)).expect_err("denied");
    assert!(matches!(refused, Refused::Denied { .. }), "{refused:?}");

    let mut gate = known();
    gate.trust().admit_only([(domain("alpha"), key(9).peer())].into());
    let refused = gate.handle_statement(parts.peer(), &statement, NOW, at(2)).expect_err("another root");
    assert!(matches!(refused, Refused::Root { .. }), "{refused:?}");

    // Another chain of the same key is another chain.
    let mut bad = parts.clone();
    bad.certificate_by = key(9);
    let forged = state(&record(&parts), &parts.member, &bad.chain()).expect("fits");
    known().handle_statement(parts.peer(), &forged, NOW, at(2)).expect_err("not signed by the issuer");
}

#[test]
fn only_representatives_state_and_a_directory_that_is_a_member_elsewhere_lets_others_do_so() {
    let parts = Parts::good();
    let mut of_member = Trust::of_member(domain("own"), key(80).peer(), Readers::Admitted);
    let admitted = [(domain("alpha"), parts.root.peer())];
    of_member.hear_only(key(79).peer(), admitted.clone().into()).expect("room");
    for trust in [Trust::of_directory(admitted.into()), of_member] {
        let mut gate = Gate::new(trust, RevocationLists::default(), BTreeSet::from([key(70).peer()]));
        let mut admit = |parts: &Parts| {
            let principal = gate.handle_hello(parts.peer(), Some(&parts.chain()), NOW, at(1)).expect("good");
            gate.check_stating(&principal, NOW, at(1))
        };
        admit(&parts).expect("a representative");
        let mut viewer = parts.clone();
        viewer.certificate.roles = Roles::NONE.with(Role::Viewer).with(Role::Publisher);
        assert!(matches!(admit(&viewer), Err(Refused::Role { .. })));
        let directory = gate.handle_hello(key(70).peer(), None, NOW, at(1)).expect("configured");
        assert!(matches!(gate.check_stating(&directory, NOW, at(1)), Err(Refused::Role { .. })));
    }
}

#[test]
fn a_list_of_denied_is_opened_though_a_newer_one_is_in_force_and_only_if_rightly_signed() {
    let parts = Parts::good();
    let mut gate = gate(&parts);
    let (old, new) = (parts.denial_by_root(1, &[], NOW), parts.denial_by_root(2, &[key(9).peer()], NOW));
    assert_eq!(gate.handle_denial(parts.peer(), &new, NOW, at(1)), Ok(TakeOutcome::New));
    let (list, delegation) = gate.open_denial(parts.peer(), &old, NOW, at(1)).expect("rightly signed");
    assert_eq!((list.number, delegation), (1, None));
    assert_eq!(gate.denials().numbers(&domain("alpha")), (2, 0));
    let (list, delegation) = gate
        .open_denial(parts.peer(), &parts.denial_by_issuer(1, &[], NOW), NOW, at(1))
        .expect("by the issuer");
    assert_eq!((list.number, delegation.map(|it| it.number)), (1, Some(1)));
    let mut forger = parts.clone();
    forger.root = key(9);
    gate.open_denial(parts.peer(), &forger.denial_by_root(3, &[], NOW), NOW, at(1)).expect_err("forged");
}

#[test]
fn what_directories_say_is_replaced_as_a_whole() {
    let parts = Parts::good();
    let mut trust = parts.trust();
    let (one, other) = ((domain("one"), key(30).peer()), (domain("other"), key(31).peer()));
    trust.hear_only(key(70).peer(), [one, other.clone()].into()).expect("room");
    assert!(trust.root_of(&domain("one")).is_ok());
    trust.hear_only(key(70).peer(), [other].into()).expect("room");
    assert!(matches!(trust.root_of(&domain("one")), Err(Refused::UnknownDomain { .. })));
    assert!(trust.root_of(&domain("other")).is_ok());
    for number in 71..77 {
        trust.hear_only(key(number).peer(), [].into()).expect("room");
    }
    assert!(matches!(trust.hear_only(key(77).peer(), [].into()), Err(Refused::Full { .. })));
    let chain = parts.chain();
    certificate::verify(&chain, parts.peer(), NOW, &RevocationLists::default(), &trust)
        .expect("its own domain stays");
}
