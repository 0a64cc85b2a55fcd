//! Audit log: every decision is logged, and a flood cannot fill a disk.

use crate::admission::rig::{NOW, Parts, at, host, key};
use overlay::identity::admission::{Action, Gate};
use overlay::identity::audit::{Audit, AuditedAction, Outcome};
use overlay::identity::record::state;
use overlay::identity::revocation_lists::RevocationLists;
use std::collections::BTreeSet;
use wire::credential::{Role, Roles};
use wire::id::PeerKey;

fn gate() -> (Gate, Parts) {
    let mut parts = Parts::good().by_root();
    parts.certificate.roles = Roles::SENSOR.with(Role::Operator);
    (Gate::new(parts.trust(), RevocationLists::default(), BTreeSet::new()), parts)
}

fn audited(gate: &mut Gate) -> Vec<Audit> {
    std::iter::from_fn(|| gate.poll_output()).collect()
}

#[test]
fn every_admission_and_refusal_is_logged_and_everyday_calls_are_not() {
    let (mut gate, parts) = gate();
    let stranger = key(90).peer();
    gate.handle_hello(stranger, None, NOW, at(0)).expect_err("refused");
    let principal = gate.handle_hello(parts.peer(), Some(&parts.chain()), NOW, at(0)).expect("good");
    gate.check(&principal, Action::Read, NOW, at(1)).expect("may");
    gate.check(&principal, Action::ControlProcesses, NOW, at(2)).expect("may");
    gate.check(&principal, Action::Publish { host: &host("other") }, NOW, at(3)).expect_err("may not");
    let logged: Vec<_> =
        audited(&mut gate).into_iter().map(|audit| (audit.peer, audit.what, audit.outcome)).collect();
    assert_eq!(
        logged,
        [
            (stranger, AuditedAction::Hello, Outcome::Refused),
            (parts.peer(), AuditedAction::Hello, Outcome::Admitted),
            (parts.peer(), AuditedAction::Action("control processes"), Outcome::Admitted),
            (parts.peer(), AuditedAction::Action("publish"), Outcome::Refused),
        ]
    );
}

#[test]
fn a_refusal_states_the_reason_and_only_what_was_proved() {
    let (mut gate, parts) = gate();
    gate.handle_hello(key(90).peer(), Some(&parts.chain()), NOW, at(0)).expect_err("stolen");
    let audit = gate.poll_output().expect("an audit entry");
    assert_eq!((audit.domain, audit.host, audit.at), (None, None, NOW));
    let said = format!("{} of {}", parts.certificate.host, parts.certificate.domain);
    assert_eq!(audit.said, Some(said), "of whose certificate that is");
    assert!(audit.reason.contains("of use to its own key alone"), "{}", audit.reason);
}

/// A directory forwards the records of many domains.
#[test]
fn the_audit_of_a_refused_record_names_its_owner() {
    let (mut gate, parts) = gate();
    let record = crate::admission::records::record(&parts);
    let statement = state(&record, &key(90), &parts.chain()).expect("fits");
    gate.handle_statement(key(91).peer(), &statement, NOW, at(0)).expect_err("another one signed");
    let audit = gate.poll_output().expect("an audit entry");
    let said = format!("{} of {}", parts.certificate.host, parts.certificate.domain);
    assert_eq!((audit.what, audit.peer, audit.said), (AuditedAction::Record, key(91).peer(), Some(said)));
}

#[test]
fn a_flood_is_cut_counted_and_hides_no_admission() {
    let (mut gate, parts) = gate();
    let stranger = |number: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        PeerKey(bytes)
    };
    for number in 0..50_000 {
        gate.handle_hello(stranger(number), None, NOW, at(0)).expect_err("refused");
    }
    gate.handle_hello(parts.peer(), Some(&parts.chain()), NOW, at(0)).expect("good");
    let first = audited(&mut gate);
    assert!(first.len() <= 201, "{}", first.len());
    assert!(first.iter().any(|audit| audit.outcome == Outcome::Admitted));
    // The lines about one peer are limited much sooner.
    for _ in 0..1000 {
        gate.handle_hello(stranger(7), None, NOW, at(5000)).expect_err("refused");
    }
    let second = audited(&mut gate);
    assert_eq!(second.len(), 1, "one reason is reported once");
    let refused = first.iter().filter(|audit| audit.outcome == Outcome::Refused).count() as u64;
    assert_eq!(second[0].left_out, 50_000 - refused, "what was left out is counted");
    for hour in 1..=6_u32 {
        gate.handle_hello(stranger(7), None, NOW, at(5000 + u64::from(hour) * 600)).expect_err("refused");
        let again = audited(&mut gate);
        assert_eq!((again.len(), again[0].left_out), (1, if hour == 1 { 999 } else { 0 }), "now and then");
    }
    // A day of it makes some 17,000 lines.
    let mut lines = 0;
    for second in 0..86_400_u32 {
        for number in 0..2 {
            let _ =
                gate.handle_hello(stranger(second * 2 + number), None, NOW, at(100_000 + u64::from(second)));
        }
        lines += audited(&mut gate).len();
    }
    assert!(lines < 18_000, "{lines}");
}
