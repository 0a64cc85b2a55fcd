//! Signed orders to processes: each that is refused is tested beside one that differs in one thing and is
//! accepted.

use crate::admission::rig::{DAY, NOW, Parts, at, domain, host, key};
use overlay::identity::admission::Gate;
use overlay::identity::audit::{AuditedAction, Outcome};
use overlay::identity::key::Key;
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::signed_command::{self, Recipient};
use overlay::identity::trust::{Readers, Trust};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::control::{Act, LIFE_MAX, Nonce, Order, Signal};
use wire::credential::{Role, Roles};
use wire::process::ProcessKey;
use wire::time::Time;

/// All inputs of an order's check, each to be changed.
struct Given {
    parts: Parts,
    order: Order,
    signed_by: Key,
    now: Time,
    here: Recipient,
    deny: RevocationLists,
    trust: Trust,
}

impl Given {
    fn good() -> Given {
        let mut parts = Parts::good().by_root();
        parts.certificate.roles = Roles::NONE.with(Role::Operator);
        let order = Order {
            domain: domain("alpha"),
            root: parts.root.peer(),
            host: host("wn01"),
            process: ProcessKey { pid: 4711, start_ns: 5 },
            act: Act::Signal(Signal::Term),
            nonce: Nonce([9; 16]),
            sequence: 1,
            issued: NOW,
            expires: NOW.plus(LIFE_MAX),
        };
        Given {
            order,
            signed_by: parts.member.clone(),
            now: NOW,
            here: Recipient { domain: domain("alpha"), host: host("wn01") },
            deny: RevocationLists::default(),
            trust: parts.trust(),
            parts,
        }
    }

    fn gate(&self) -> Gate {
        Gate::new(self.trust.clone(), self.deny.clone(), BTreeSet::new())
    }

    fn seen(&self) -> Result<Order, Refused> {
        let signed = signed_command::sign(&self.order, &self.signed_by, &self.parts.chain()).expect("fits");
        let signed = signed_command::parse(&signed_command::text(&signed)).expect("its own text");
        self.gate().handle_order(&signed, &self.here, self.now, at(0)).map(|(order, _)| order)
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Given), expected: fn(&Refused) -> bool) {
    assert!(Given::good().seen().is_ok(), "the control passes");
    let mut given = Given::good();
    change(&mut given);
    let refused = given.seen().expect_err("refused");
    assert!(expected(&refused), "{refused:?}");
}

#[test]
fn an_order_is_for_one_domain_and_host() {
    let elsewhere = |refused: &Refused| matches!(refused, Refused::OrderElsewhere { .. });
    check(|given| given.here.host = host("wn02"), elsewhere);
    check(|given| given.here.domain = domain("beta"), elsewhere);
    check(|given| given.order.host = host("wn02"), elsewhere);
    check(|given| given.order.domain = domain("beta"), elsewhere);
    check(|given| given.order.root = key(77).peer(), |refused| matches!(refused, Refused::Root { .. }));
}

#[test]
fn a_domain_of_the_same_name_has_no_operators_here() {
    // Everything under another root, which is trusted nowhere here.
    check(
        |given| {
            let mut others = Parts::of("alpha", 50).by_root();
            others.certificate.roles = Roles::NONE.with(Role::Operator);
            (given.order.root, given.signed_by) = (others.root.peer(), others.member.clone());
            given.parts = others;
        },
        |refused| matches!(refused, Refused::Root { .. }),
    );
    // The order has the right root, the certificate another.
    check(
        |given| {
            let mut others = Parts::of("alpha", 50).by_root();
            others.certificate.roles = Roles::NONE.with(Role::Operator);
            given.signed_by = others.member.clone();
            given.parts = others;
        },
        |refused| matches!(refused, Refused::Root { .. }),
    );
}

#[test]
fn another_domains_operator_has_nothing_to_say_here_also_where_it_may_read() {
    check(
        |given| {
            let mut beta = Parts::of("beta", 50).by_root();
            beta.certificate.roles = Roles::NONE.with(Role::Operator);
            let heard = [(domain("beta"), beta.root.peer())].into();
            given.trust = Trust::of_member(domain("alpha"), given.parts.root.peer(), Readers::Admitted);
            given.trust.hear_only(key(99).peer(), heard).expect("room");
            given.signed_by = beta.member.clone();
            given.parts = beta;
        },
        |refused| matches!(refused, Refused::Root { .. }),
    );
}

#[test]
fn only_operators_give_orders_and_only_the_root_makes_them() {
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Operator) {
        check(
            |given| given.parts.certificate.roles = Roles::NONE.with(role),
            |refused| matches!(refused, Refused::NotOperator { .. }),
        );
    }
    check(
        |given| given.parts.certificate.roles = Roles::SENSOR,
        |refused| matches!(refused, Refused::NotOperator { .. }),
    );
    check(
        |given| {
            given.parts = Parts::good();
            given.parts.certificate.roles = Roles::NONE.with(Role::Operator);
        },
        |refused| matches!(refused, Refused::RoleOfRoot { .. }),
    );
}

#[test]
fn who_signs_is_whose_certificate_it_is() {
    check(|given| given.signed_by = key(60), |refused| matches!(refused, Refused::Peer { .. }));
    check(
        |given| given.parts.certificate_by = key(60),
        |refused| matches!(refused, Refused::NotDelegated { .. }),
    );
}

#[test]
fn an_order_is_over_after_its_time_and_a_certificate_too() {
    check(|given| given.now = given.order.expires, |refused| matches!(refused, Refused::OrderStale { .. }));
    check(
        |given| given.now = NOW.minus(signed_command::AHEAD_MAX + Duration::from_micros(1)),
        |refused| matches!(refused, Refused::OrderEarly { .. }),
    );
    check(
        |given| given.order.expires = NOW.plus(LIFE_MAX * 2),
        |refused| matches!(refused, Refused::OrderSpan { .. }),
    );
    check(
        |given| given.parts.certificate.expires = NOW.minus(DAY / 2),
        |refused| matches!(refused, Refused::Expired { .. }),
    );
    check(
        |given| {
            let denied = [given.parts.peer()];
            given.deny = given.parts.held(&[given.parts.denial_by_root(1, &denied, NOW)]);
        },
        |refused| matches!(refused, Refused::Denied { .. }),
    );
}

#[test]
fn every_flipped_bit_of_an_order_is_noticed() {
    let given = Given::good();
    let signed = signed_command::sign(&given.order, &given.signed_by, &given.parts.chain()).expect("fits");
    let bytes = postcard::to_stdvec(&signed).expect("encodes");
    let mut gate = given.gate();
    let mut opened = 0;
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let Ok(bad) = postcard::from_bytes(&bad) else { continue };
        if bad != signed {
            opened += 1;
            assert!(gate.handle_order(&bad, &given.here, NOW, at(0)).is_err(), "bit {bit}");
        }
    }
    assert!(opened > 1000, "only {opened} could be looked at at all");
}

#[test]
fn both_methods_are_in_the_audit() {
    let mut given = Given::good();
    let mut gate = given.gate();
    let mut audited = |given: &Given| {
        let signed =
            signed_command::sign(&given.order, &given.signed_by, &given.parts.chain()).expect("fits");
        let _answer = gate.handle_order(&signed, &given.here, NOW, at(0));
        gate.poll_output().expect("an audit entry")
    };
    let good = audited(&given);
    assert_eq!((good.outcome, good.what), (Outcome::Admitted, AuditedAction::Action("control processes")));
    assert_eq!(good.peer, given.parts.peer());
    given.parts.certificate.roles = Roles::SENSOR;
    let bad = audited(&given);
    assert_eq!(bad.outcome, Outcome::Refused);
    assert!(bad.reason.contains("needs operator"), "{}", bad.reason);
}
