//! Revocation lists: an older list never replaces a newer one, whichever peer sends it.

use crate::admission::rig::{DAY, NOW, Parts, domain, key};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::{RevocationLists, TakeOutcome, next};
use wire::credential::{DENIED_MAX, Denial, Denied};
use wire::id::PeerKey;

fn is_denied(held: &RevocationLists, parts: &Parts, who: PeerKey) -> bool {
    held.check(&domain("alpha"), parts.root.peer(), who, NOW.minus(DAY)).is_err()
}

#[test]
fn a_list_is_never_rolled_back() {
    let parts = Parts::good();
    let (one, other) = (key(91).peer(), key(92).peer());
    for by in [Parts::denial_by_root, Parts::denial_by_issuer] {
        let mut held = parts.held(&[by(&parts, 5, &[one], NOW)]);
        let mut take = |number, who| held.take(&by(&parts, number, &[who], NOW), &parts.trust());
        assert!(matches!(take(4, other), Err(Refused::DenyListOld { found: 4, held: 5, .. })));
        assert!(matches!(take(5, other), Err(Refused::DenyListTwice { number: 5, .. })));
        assert_eq!(take(5, one), Ok(TakeOutcome::Known));
        assert!(is_denied(&held, &parts, one) && !is_denied(&held, &parts, other));
        let newer = by(&parts, 6, &[other], NOW);
        assert_eq!(held.take(&newer, &parts.trust()), Ok(TakeOutcome::New));
        assert!(!is_denied(&held, &parts, one) && is_denied(&held, &parts, other));
        assert_eq!(held.of(&domain("alpha")), [newer]);
    }
}

#[test]
fn the_roots_and_the_issuers_lists_are_held_side_by_side() {
    let parts = Parts::good();
    let (one, other) = (key(91).peer(), key(92).peer());
    let by_root = parts.denial_by_root(2, &[one], NOW);
    let held = parts.held(&[parts.denial_by_issuer(9, &[other], NOW), by_root.clone()]);
    assert!(is_denied(&held, &parts, one) && is_denied(&held, &parts, other));
    assert_eq!(held.numbers(&domain("alpha")), (2, 9));
    assert_eq!(held.of(&domain("alpha")).len(), 2);
    assert_eq!(parts.held(&[by_root]).numbers(&domain("alpha")), (2, 0));
}

#[test]
fn only_the_root_and_its_issuer_may_deny() {
    let parts = Parts::good();
    let take = |denial: &Denial| RevocationLists::default().take(denial, &parts.trust());
    let list = parts.list(1, &[key(91).peer()], NOW);
    let by = |number: u8, delegation| Denial { list: key(number).seal(&list).expect("fits"), delegation };
    let delegation = parts.chain().delegation;
    // A member, with and without the issuer's delegation.
    assert!(matches!(take(&by(3, None)), Err(Refused::Signer { .. })));
    assert!(matches!(take(&by(3, delegation.clone())), Err(Refused::NotDelegated { .. })));
    take(&by(2, delegation)).expect("the issuer with its delegation");
    assert!(matches!(take(&by(2, None)), Err(Refused::Signer { .. })));
    take(&by(1, None)).expect("the root without one");
    let foreign = Parts::of("beta", 50);
    let list = foreign.denial_by_root(1, &[key(91).peer()], NOW);
    assert!(matches!(take(&list), Err(Refused::UnknownDomain { .. })));
    let impostor = Parts::of("alpha", 50);
    assert!(matches!(take(&impostor.denial_by_root(1, &[], NOW)), Err(Refused::Root { .. })));
}

#[test]
fn a_revoked_issuers_list_ends_however_high_it_counted() {
    let parts = Parts::good();
    let victim = key(91).peer();
    let hostile = parts.denial_by_issuer(u64::MAX, &[victim], NOW);
    let mut held = parts.held(std::slice::from_ref(&hostile));
    assert!(is_denied(&held, &parts, victim));
    held.take(&parts.denial_by_root(1, &[parts.issuer.peer()], NOW), &parts.trust()).expect("the root's");
    assert!(!is_denied(&held, &parts, victim));
    assert!(matches!(held.take(&hostile, &parts.trust()), Err(Refused::Denied { .. })));
    // The next issuer numbers its lists from one again.
    let mut next = Parts::good();
    next.issuer = key(60);
    let delegation = next.delegation.as_mut().expect("there");
    (delegation.issuer, delegation.number) = (key(60).peer(), 2);
    held.take(&next.denial_by_issuer(1, &[victim], NOW), &next.trust()).expect("the new issuer's");
    assert!(is_denied(&held, &parts, victim));
}

#[test]
fn of_two_issuers_the_one_delegated_later_counts() {
    let parts = Parts::good();
    let mut next = Parts::good();
    next.issuer = key(60);
    let delegation = next.delegation.as_mut().expect("there");
    (delegation.issuer, delegation.number) = (key(60).peer(), 2);
    let mut held = parts.held(&[parts.denial_by_issuer(9, &[], NOW)]);
    let later = next.denial_by_issuer(1, &[key(91).peer()], NOW);
    assert_eq!(held.take(&later, &parts.trust()), Ok(TakeOutcome::New));
    let back = parts.denial_by_issuer(10, &[], NOW);
    assert!(matches!(held.take(&back, &parts.trust()), Err(Refused::DenyListOld { .. })));
}

#[test]
fn a_denial_outlives_the_delegation_of_its_signer() {
    let mut parts = Parts::good();
    let delegation = parts.delegation.as_mut().expect("there");
    (delegation.issued, delegation.expires) = (NOW.minus(DAY * 400), NOW.minus(DAY * 40));
    let held = parts.held(&[parts.denial_by_issuer(1, &[key(91).peer()], NOW)]);
    assert!(is_denied(&held, &parts, key(91).peer()));
}

#[test]
fn the_next_list_keeps_what_is_needed_and_counts_on() {
    let parts = Parts::good();
    let old = Denied { peer: key(91).peer(), issued_until: NOW.minus(DAY * 400) };
    let lately = Denied { peer: key(92).peer(), issued_until: NOW.minus(DAY * 300) };
    let mut held = parts.list(7, &[], NOW);
    held.denied = vec![old, lately];
    let added = Denied { peer: key(93).peer(), issued_until: NOW };
    let made = next(Some(&held), &domain("alpha"), parts.root.peer(), &[added], NOW).expect("room");
    assert_eq!((made.number, made.denied), (8, vec![lately, added]));
    let again = Denied { issued_until: NOW, ..lately };
    let made = next(Some(&held), &domain("alpha"), parts.root.peer(), &[again], NOW).expect("room");
    assert_eq!(made.denied, [again], "one entry for each");
    held.denied = vec![lately; DENIED_MAX];
    assert!(matches!(
        next(Some(&held), &domain("alpha"), parts.root.peer(), &[added], NOW),
        Err(Refused::Full { .. })
    ));
}
