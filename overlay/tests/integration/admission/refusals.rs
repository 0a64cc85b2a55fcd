//! Chains that are refused, one fault each.

use crate::admission::rig::{DAY, MINUTE, NOW, Parts, at, domain, key};
use overlay::identity::admission::{Action, Gate, Principal};
use overlay::identity::certificate::{SKEW_MAX, verify};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Affiliation, Readers, Trust};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::credential::{Certificate, Chain, Role, Roles};
use wire::id::PeerKey;
use wire::sealed::{Sealable, Sealed};
use wire::time::Time;

/// All inputs of a check.
#[derive(Clone)]
struct Shown {
    parts: Parts,
    peer: PeerKey,
    now: Time,
    deny: RevocationLists,
    trust: Trust,
}

impl Shown {
    fn good() -> Shown {
        let parts = Parts::good();
        Shown { peer: parts.peer(), now: NOW, deny: RevocationLists::default(), trust: parts.trust(), parts }
    }

    fn with(change: impl FnOnce(&mut Shown)) -> Result<Principal, Refused> {
        let mut shown = Shown::good();
        change(&mut shown);
        verify(&shown.parts.chain(), shown.peer, shown.now, &shown.deny, &shown.trust)
    }
}

/// Checks that `bad` is refused with `expected`, and that `control`, which differs in one thing, passes.
#[track_caller]
fn check(bad: impl FnOnce(&mut Shown), expected: fn(&Refused) -> bool, control: impl FnOnce(&mut Shown)) {
    let refused = Shown::with(bad).expect_err("refused");
    assert!(expected(&refused), "{refused:?}");
    // Every refusal contains a hint that a person can act on.
    assert!(refused.to_string().len() > 40, "{refused}");
    Shown::with(control).expect("the control passes");
}

#[test]
fn a_good_chain_is_believed_and_gives_everything() {
    let principal = Shown::with(|_| {}).expect("good");
    let parts = Parts::good();
    assert_eq!(principal.peer, parts.peer());
    assert_eq!(principal.domain, Some(domain("alpha")));
    assert_eq!((principal.roles, principal.priority), (Roles::SENSOR, 7));
    assert_eq!(principal.expires, parts.certificate.expires);
    assert_eq!(principal.affiliation, Affiliation::Member);
    assert_eq!(principal.delegated.map(|(issuer, _)| issuer), Some(parts.issuer.peer()));
}

#[test]
fn without_a_certificate_only_a_configured_directory_is_let_in() {
    let parts = Parts::good();
    let directory = key(77).peer();
    let mut gate = Gate::new(parts.trust(), RevocationLists::default(), BTreeSet::from([directory]));
    let peer = parts.peer();
    assert_eq!(gate.handle_hello(peer, None, NOW, at(0)), Err(Refused::NoCertificate { peer }));
    gate.handle_hello(peer, Some(&parts.chain()), NOW, at(0)).expect("with one it is");
    let principal = gate.handle_hello(directory, None, NOW, at(0)).expect("known by its key");
    assert_eq!(principal.affiliation, Affiliation::Directory);
    assert_eq!(gate.review(&principal, NOW), Ok(()));
    assert_eq!(principal.may(Action::Replicate), Ok(()));
    assert_eq!(principal.may(Action::Read), Ok(()), "a domain that it admits may read here");
    assert!(principal.may(Action::Represent).is_err(), "it is no member");
    let trust = Trust::of_member(domain("alpha"), parts.root.peer(), Readers::Nobody);
    let mut closed = Gate::new(trust, RevocationLists::default(), BTreeSet::from([directory]));
    let principal = closed.handle_hello(directory, None, NOW, at(0)).expect("known by its key");
    assert!(principal.may(Action::Read).is_err(), "no other domain may read here");
    let stranger = key(78).peer();
    assert!(gate.handle_hello(stranger, None, NOW, at(0)).is_err(), "a directory that is not configured");
}

#[test]
fn a_daemon_that_is_a_directory_too_may_do_what_both_may() {
    let parts = Parts::good();
    let peer = parts.peer();
    let seen = |directories: BTreeSet<PeerKey>, now: Time| {
        let mut gate = Gate::new(parts.trust(), RevocationLists::default(), directories);
        gate.handle_hello(peer, Some(&parts.chain()), now, at(0))
    };
    let both = seen(BTreeSet::from([peer]), NOW).expect("good");
    assert_eq!((both.may(Action::Replicate), both.may(Action::Represent)), (Ok(()), Ok(())));
    assert!(seen(BTreeSet::new(), NOW).expect("good").may(Action::Replicate).is_err());
    // With an expired certificate it is only a directory.
    let late = parts.certificate.expires.plus(DAY);
    let alone = seen(BTreeSet::from([peer]), late).expect("a directory");
    assert_eq!((alone.affiliation, alone.may(Action::Replicate)), (Affiliation::Directory, Ok(())));
    assert!(alone.may(Action::Represent).is_err());
}

#[test]
fn an_expired_certificate_is_refused() {
    let until = Parts::good().certificate.expires.plus(SKEW_MAX);
    check(
        |shown| shown.now = until,
        |refused| matches!(refused, Refused::Expired { what: "certificate", .. }),
        |shown| shown.now = until.minus(Duration::from_micros(1)),
    );
}

#[test]
fn a_certificate_of_the_future_is_refused() {
    let from = Parts::good().certificate.issued.minus(SKEW_MAX);
    check(
        |shown| {
            shown.parts.delegation.as_mut().expect("there").issued = NOW.minus(DAY * 2);
            shown.now = from.minus(Duration::from_micros(1));
        },
        |refused| matches!(refused, Refused::NotYetValid { what: "certificate", .. }),
        |shown| {
            shown.parts.delegation.as_mut().expect("there").issued = NOW.minus(DAY * 2);
            shown.now = from;
        },
    );
}

#[test]
fn an_expired_delegation_is_refused() {
    let until = NOW.minus(MINUTE);
    let expire = |until: Time| {
        move |shown: &mut Shown| shown.parts.delegation.as_mut().expect("there").expires = until
    };
    check(
        expire(until.minus(SKEW_MAX)),
        |refused| matches!(refused, Refused::Expired { what: "delegation", .. }),
        expire(until),
    );
}

#[test]
fn a_delegation_of_the_future_is_refused() {
    let begin =
        |from: Time| move |shown: &mut Shown| shown.parts.delegation.as_mut().expect("there").issued = from;
    check(
        begin(NOW.plus(SKEW_MAX).plus(MINUTE)),
        |refused| matches!(refused, Refused::NotYetValid { what: "delegation", .. }),
        begin(NOW.plus(MINUTE)),
    );
}

#[test]
fn a_revoked_certificate_is_refused() {
    let deny = |who: PeerKey, until: Time| {
        move |shown: &mut Shown| {
            shown.deny = shown.parts.held(&[shown.parts.denial_by_root(1, &[who], until)])
        }
    };
    let is_denied = |refused: &Refused| matches!(refused, Refused::Denied { number: 1, .. });
    let (member, issued) = (Parts::good().peer(), Parts::good().certificate.issued);
    check(deny(member, NOW), is_denied, deny(key(99).peer(), NOW));
    // A certificate issued after the revocation is valid again.
    check(deny(member, issued), is_denied, deny(member, issued.minus(Duration::from_micros(1))));
    // A list of the issuer revokes as well, and a list of another domain's root does not matter.
    check(
        |shown| shown.deny = shown.parts.held(&[shown.parts.denial_by_issuer(1, &[shown.peer], NOW)]),
        is_denied,
        |shown| {
            let other = Parts::of("alpha", 50);
            shown.deny = other.held(&[other.denial_by_root(1, &[shown.peer], NOW)]);
        },
    );
}

#[test]
fn certificates_of_a_revoked_issuer_are_refused() {
    let issuer = Parts::good().issuer.peer();
    check(
        |shown| shown.deny = shown.parts.held(&[shown.parts.denial_by_root(1, &[issuer], NOW)]),
        |refused| matches!(refused, Refused::Denied { .. }),
        |shown| {
            shown.deny = shown.parts.held(&[shown.parts.denial_by_root(1, &[issuer], NOW.minus(DAY * 2))]);
        },
    );
}

#[test]
fn a_stolen_chain_is_of_no_use() {
    check(
        |shown| shown.peer = key(9).peer(),
        |refused| matches!(refused, Refused::Peer { .. }),
        |shown| {
            shown.peer = key(9).peer();
            shown.parts.certificate.peer = key(9).peer();
        },
    );
}

#[test]
fn an_issuer_without_the_roots_word_is_refused() {
    let not_delegated = |refused: &Refused| matches!(refused, Refused::NotDelegated { .. });
    // Another key signs under the issuer's delegation.
    check(
        |shown| shown.parts.certificate_by = key(9),
        not_delegated,
        |shown| {
            shown.parts.certificate_by = shown.parts.issuer.clone();
        },
    );
    // No delegation at all: the root's own signature would be valid.
    check(
        |shown| shown.parts.delegation = None,
        not_delegated,
        |shown| {
            shown.parts = Parts::good().by_root();
        },
    );
    // The delegation names another key.
    check(
        |shown| shown.parts.delegation.as_mut().expect("there").issuer = key(9).peer(),
        not_delegated,
        |shown| {
            shown.parts.delegation.as_mut().expect("there").issuer = key(9).peer();
            shown.parts.certificate_by = key(9);
        },
    );
    // The issuer delegated to itself.
    check(
        |shown| shown.parts.delegation_by = shown.parts.issuer.clone(),
        |refused| matches!(refused, Refused::Signer { what: "delegation", .. }),
        |shown| shown.parts.delegation_by = shown.parts.root.clone(),
    );
    // The delegation is of another domain with the same root.
    check(
        |shown| shown.parts.delegation.as_mut().expect("there").domain = domain("beta"),
        not_delegated,
        |shown| shown.parts.delegation.as_mut().expect("there").domain = domain("alpha"),
    );
}

#[test]
fn an_issuer_cannot_make_operators_or_filter_admins() {
    for role in [Role::Operator, Role::FilterAdmin] {
        check(
            |shown| shown.parts.certificate.roles = Roles::SENSOR.with(role),
            |refused| matches!(refused, Refused::RoleOfRoot { .. }),
            |shown| {
                shown.parts.certificate.roles = Roles::SENSOR.with(role);
                shown.parts = shown.parts.clone().by_root();
            },
        );
    }
}

#[test]
fn no_peer_signs_for_longer_than_it_may() {
    let live = |days: u32| {
        move |shown: &mut Shown| {
            shown.parts.certificate.expires = shown.parts.certificate.issued.plus(DAY * days);
        }
    };
    let too_long = |refused: &Refused| matches!(refused, Refused::TooLong { .. });
    check(live(31), too_long, live(30));
    let by_root = |days: u32| {
        move |shown: &mut Shown| {
            live(days)(shown);
            shown.parts = shown.parts.clone().by_root();
        }
    };
    check(by_root(367), too_long, by_root(366));
}

#[test]
fn a_forged_signature_is_refused() {
    let mut other = Parts::good();
    other.certificate.priority = 8;
    let parts = Parts::good();
    // The signature of one certificate under the content of another.
    let graft = |content: &Sealed<Certificate>, signature: &Sealed<Certificate>| {
        let content = postcard::to_stdvec(content).expect("encodes");
        let signature = postcard::to_stdvec(signature).expect("encodes");
        let cut = content.len() - 64;
        assert_eq!(content.len(), signature.len());
        let bytes = [&content[..cut], &signature[cut..]].concat();
        postcard::from_bytes::<Sealed<Certificate>>(&bytes).expect("decodes")
    };
    let verify = |certificate| {
        let chain = Chain { certificate, ..parts.chain() };
        verify(&chain, parts.peer(), NOW, &RevocationLists::default(), &parts.trust())
    };
    let (own, foreign) = (parts.chain().certificate, other.chain().certificate);
    assert!(matches!(verify(graft(&own, &foreign)), Err(Refused::Signature { .. })));
    verify(graft(&own, &own)).expect("its own signature is right");
}

/// Encoded like a certificate, but signed as another type.
#[derive(Serialize, Deserialize)]
struct Disguised<const AS_CERTIFICATE: bool>(Certificate);

impl<const AS_CERTIFICATE: bool> Sealable for Disguised<AS_CERTIFICATE> {
    const LABEL: &'static str = if AS_CERTIFICATE { "certificate" } else { "record" };
    const BODY_LEN_MAX_BYTES: usize = 1024;
}

#[test]
fn a_signature_of_another_kind_is_refused() {
    fn check<const AS_CERTIFICATE: bool>() -> Result<Principal, Refused> {
        let parts = Parts::good();
        let sealed =
            parts.issuer.seal(&Disguised::<AS_CERTIFICATE>(parts.certificate.clone())).expect("fits");
        let bytes = postcard::to_stdvec(&sealed).expect("encodes");
        let certificate = postcard::from_bytes(&bytes).expect("decodes");
        let chain = Chain { certificate, ..parts.chain() };
        verify(&chain, parts.peer(), NOW, &RevocationLists::default(), &parts.trust())
    }
    assert!(matches!(check::<false>(), Err(Refused::Signature { what: "certificate", .. })));
    check::<true>().expect("the label is all that differs");
}

#[test]
fn a_domain_that_no_directory_vouches_for_is_refused_and_an_admitted_one_may_read_only() {
    let (own, foreign) = (Parts::good(), Parts::of("beta", 50));
    let (one, other) = (key(70).peer(), key(71).peer());
    let beta = || domain("beta");
    let seen =
        |trust: &Trust| verify(&foreign.chain(), foreign.peer(), NOW, &RevocationLists::default(), trust);

    let mut trust = own.trust();
    assert_eq!(seen(&trust), Err(Refused::UnknownDomain { domain: beta() }));
    trust.hear_only(one, [(beta(), foreign.root.peer())].into()).expect("room");
    let principal = seen(&trust).expect("a directory admits it");
    assert_eq!(principal.affiliation, Affiliation::Reader);
    assert_eq!(principal.may(Action::Read), Ok(()));
    for action in [
        Action::Publish { host: &foreign.certificate.host },
        Action::Represent,
        Action::DeployFilters,
        Action::ControlProcesses,
        Action::Issue,
    ] {
        assert!(matches!(principal.may(action), Err(Refused::Foreigner { .. })), "{action:?}");
    }
    assert!(principal.may(Action::Replicate).is_err());

    // Two directories that agree, then disagree, then one no longer has the domain.
    trust.hear_only(other, [(beta(), foreign.root.peer())].into()).expect("room");
    seen(&trust).expect("they agree");
    trust.hear_only(other, [(beta(), key(99).peer())].into()).expect("room");
    assert!(matches!(seen(&trust), Err(Refused::RootDisputed { .. })));
    trust.hear_only(other, [].into()).expect("room");
    seen(&trust).expect("one is left");
    trust.hear_only(one, [(beta(), key(99).peer())].into()).expect("room");
    assert!(matches!(seen(&trust), Err(Refused::Root { .. })), "another domain of that name");
}

#[test]
fn readers_are_the_domains_own_decision() {
    let (own, foreign) = (Parts::good(), Parts::of("beta", 50));
    let seen = |readers: Readers| {
        let mut trust = Trust::of_member(domain("alpha"), own.root.peer(), readers);
        trust.hear_only(key(70).peer(), [(domain("beta"), foreign.root.peer())].into()).expect("room");
        verify(&own.chain(), own.peer(), NOW, &RevocationLists::default(), &trust)
            .expect("its own may always");
        verify(&foreign.chain(), foreign.peer(), NOW, &RevocationLists::default(), &trust)
            .map(|it| it.affiliation)
    };
    let not_reader = Err(Refused::NotReader { domain: domain("beta") });
    assert_eq!(seen(Readers::Nobody), not_reader);
    assert_eq!(seen(Readers::Listed(BTreeSet::from([domain("gamma")]))), not_reader);
    assert_eq!(seen(Readers::Listed(BTreeSet::from([domain("beta")]))), Ok(Affiliation::Reader));
    assert_eq!(seen(Readers::Admitted), Ok(Affiliation::Reader));
}

#[test]
fn what_directories_say_never_touches_ones_own_domain() {
    let (own, impostor) = (Parts::good(), Parts::of("alpha", 50));
    let mut trust = own.trust();
    trust.hear_only(key(70).peer(), [(domain("alpha"), impostor.root.peer())].into()).expect("room");
    let seen = |parts: &Parts| verify(&parts.chain(), parts.peer(), NOW, &RevocationLists::default(), &trust);
    assert!(matches!(seen(&impostor), Err(Refused::Root { .. })));
    seen(&own).expect("its own");
}

#[test]
fn to_a_directory_the_domains_of_its_operator_are_members() {
    let (one, other) = (Parts::good(), Parts::of("beta", 50));
    let trust = Trust::of_directory(BTreeMap::from([(domain("alpha"), one.root.peer())]));
    let seen = |parts: &Parts| verify(&parts.chain(), parts.peer(), NOW, &RevocationLists::default(), &trust);
    seen(&one).expect("admitted").may(Action::Represent).expect("a member");
    assert!(matches!(seen(&other), Err(Refused::UnknownDomain { .. })));
}

#[test]
fn what_was_admitted_is_looked_at_again() {
    let parts = Parts::good();
    let mut gate = Gate::new(parts.trust(), RevocationLists::default(), BTreeSet::new());
    let principal = gate.handle_hello(parts.peer(), Some(&parts.chain()), NOW, at(0)).expect("good");
    assert_eq!(gate.check(&principal, Action::Read, NOW, at(1)), Ok(()));
    let later = parts.certificate.expires.plus(SKEW_MAX);
    assert!(matches!(gate.check(&principal, Action::Read, later, at(2)), Err(Refused::Expired { .. })));
    let list = parts.denial_by_issuer(1, &[parts.peer()], NOW);
    gate.handle_denial(key(60).peer(), &list, NOW, at(3)).expect("newer");
    assert!(matches!(gate.check(&principal, Action::Read, NOW, at(4)), Err(Refused::Denied { .. })));
}

#[test]
fn more_directories_than_a_grid_has_are_not_heard() {
    let mut trust = Parts::good().trust();
    let mut hear =
        |number: u8| trust.hear_only(key(number).peer(), [(domain("beta"), key(99).peer())].into());
    for number in 0..7 {
        hear(100 + number).expect("room");
    }
    assert!(matches!(hear(110), Err(Refused::Full { what: "directories", .. })));
    hear(100).expect("one that is known may go on");
}
