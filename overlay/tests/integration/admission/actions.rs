//! Permissions of each role: the table, written a second time.

use crate::admission::rig::{NOW, Parts, host};
use overlay::identity::admission::{Action, Principal};
use overlay::identity::certificate::verify;
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use wire::credential::{Role, Roles};

fn principal(roles: Roles) -> Principal {
    let mut parts = Parts::good().by_root();
    parts.certificate.roles = roles;
    verify(&parts.chain(), parts.peer(), NOW, &RevocationLists::default(), &parts.trust()).expect("good")
}

#[test]
fn each_role_may_do_its_own_and_no_more() {
    let own_host = host("a1");
    let actions = [
        Action::Read,
        Action::Publish { host: &own_host },
        Action::Represent,
        Action::DeployFilters,
        Action::ControlProcesses,
        Action::Issue,
        Action::Replicate,
    ];
    let table = [
        (None, [false, false, false, false, false, false, false]),
        (Some(Role::Viewer), [true, false, false, false, false, false, false]),
        (Some(Role::Publisher), [false, true, false, false, false, false, false]),
        (Some(Role::Representative), [true, false, true, false, false, false, false]),
        (Some(Role::FilterAdmin), [true, false, false, true, false, false, false]),
        (Some(Role::Operator), [true, false, false, false, true, false, false]),
    ];
    for (role, expected) in table {
        let principal = principal(role.into_iter().collect());
        for (action, expected) in actions.into_iter().zip(expected) {
            let answer = principal.may(action);
            assert_eq!(answer.is_ok(), expected, "{role:?} {action:?}");
            assert!(answer.is_ok() || matches!(answer, Err(Refused::Role { .. })), "{answer:?}");
        }
    }
}

#[test]
fn a_host_speaks_for_itself_alone() {
    let principal = principal(Roles::SENSOR);
    assert_eq!(principal.may(Action::Publish { host: &host("a1") }), Ok(()));
    assert!(matches!(principal.may(Action::Publish { host: &host("a2") }), Err(Refused::Host { .. })));
}

#[test]
fn the_issuer_is_the_one_that_the_root_named() {
    let mut parts = Parts::good();
    parts.certificate.peer = parts.issuer.peer();
    let seen =
        |parts: &Parts, peer| verify(&parts.chain(), peer, NOW, &RevocationLists::default(), &parts.trust());
    seen(&parts, parts.issuer.peer()).expect("good").may(Action::Issue).expect("the issuer itself");
    let member = Parts::good();
    assert!(seen(&member, member.peer()).expect("good").may(Action::Issue).is_err());
}
