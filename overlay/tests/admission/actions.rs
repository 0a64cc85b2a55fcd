//! Who may do what: the table, written a second time.

use crate::rig::{NOW, Parts, domain, host};
use overlay::identity::admission::{Action, Principal, check_bind};
use overlay::identity::certificate::verify;
use overlay::identity::deny_list::Denials;
use overlay::identity::join::Membership;
use overlay::identity::refused::Refused;
use wire::credential::{Role, Roles};

fn principal(roles: Roles) -> Principal {
    let mut parts = Parts::good().by_root();
    parts.certificate.roles = roles;
    verify(&parts.chain(), parts.peer(), NOW, &Denials::default(), &parts.trust()).expect("good")
}

#[test]
fn each_role_may_do_its_own_and_no_more() {
    let (own_host, own_domain) = (host("a1"), domain("alpha"));
    let actions = [
        Action::Read,
        Action::Publish { host: &own_host },
        Action::Represent,
        Action::StateRecord { domain: &own_domain },
        Action::DeployFilters,
        Action::ControlProcesses,
        Action::Issue,
        Action::Replicate,
    ];
    let table = [
        (None, [false, false, false, false, false, false, false, false]),
        (Some(Role::Viewer), [true, false, false, false, false, false, false, false]),
        (Some(Role::Publisher), [false, true, false, false, false, false, false, false]),
        (Some(Role::Representative), [true, false, true, true, false, false, false, false]),
        (Some(Role::FilterAdmin), [true, false, false, false, true, false, false, false]),
        (Some(Role::Operator), [true, false, false, false, false, true, false, false]),
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
fn a_host_and_a_domain_speak_for_themselves_alone() {
    let principal = principal(Roles::SENSOR);
    assert_eq!(principal.may(Action::Publish { host: &host("a1") }), Ok(()));
    assert!(matches!(principal.may(Action::Publish { host: &host("a2") }), Err(Refused::Host { .. })));
    assert_eq!(principal.may(Action::StateRecord { domain: &domain("alpha") }), Ok(()));
    assert!(matches!(
        principal.may(Action::StateRecord { domain: &domain("beta") }),
        Err(Refused::Domain { .. })
    ));
}

#[test]
fn the_issuer_is_whom_the_root_named() {
    let mut parts = Parts::good();
    parts.certificate.peer = parts.issuer.peer();
    let seen = |parts: &Parts, peer| verify(&parts.chain(), peer, NOW, &Denials::default(), &parts.trust());
    seen(&parts, parts.issuer.peer()).expect("good").may(Action::Issue).expect("the issuer itself");
    let member = Parts::good();
    assert!(seen(&member, member.peer()).expect("good").may(Action::Issue).is_err());
}

#[test]
fn without_a_certificate_only_this_host_is_served() {
    let open = |text: &str| text.parse().expect("an address");
    for address in ["127.0.0.1:1", "[::1]:1", "127.8.8.8:1", "[::ffff:127.0.0.1]:1"] {
        assert_eq!(check_bind(open(address), None), Ok(()), "{address}");
    }
    let membership =
        Membership { chain: Parts::good().chain(), issuer: vec![], directories: vec![], seeds: vec![] };
    for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        let refused = check_bind(open(address), None).expect_err("others could reach it");
        assert!(refused.to_string().contains("visperf join TOKEN"), "{refused}");
        assert_eq!(check_bind(open(address), Some(&membership)), Ok(()), "{address}");
    }
}
