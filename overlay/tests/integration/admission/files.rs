//! Files of a domain: created, completed after a crash, and a token is never used twice.

use crate::admission::rig::{DAY, MINUTE, NOW, at, domain, host, key};
use overlay::identity::audit::{Outcome, Trail};
use overlay::identity::certificate::{self, DELEGATION_LIFE, LIFE, verify};
use overlay::identity::domain_files::{DomainFiles, Error};
use overlay::identity::issuer::Issuer;
use overlay::identity::issuer_store::RevocationTarget;
use overlay::identity::join::{Membership, accept, question};
use overlay::identity::key::Key;
use overlay::identity::key_file;
use overlay::identity::member_files::{
    load_denials, load_membership, load_previous, replace_membership, save_denials, save_membership,
};
use overlay::identity::peer_clocks::Members;
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::token::{self, Spec};
use overlay::identity::trust::{Readers, Trust};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use wire::address::Address;
use wire::credential::{Role, Roles};
use wire::join::{Question, Reply, Token};
use wire::time::Time;

fn issuer_key() -> Key {
    key(40)
}

fn files(state: &Path) -> DomainFiles {
    DomainFiles::new(state, issuer_key())
}

fn created() -> (TempDir, DomainFiles) {
    let state = tempfile::tempdir().expect("a folder");
    let files = files(state.path());
    assert!(!files.exist());
    files.create(&domain("alpha"), &host("head"), NOW).expect("created");
    (state, files)
}

fn token(files: &DomainFiles, now: Time) -> Token {
    let address = Address::try_from("head:7742").expect("an address");
    files.create_token(Spec::default(), vec![address], vec![], now).expect("made")
}

fn copy(from: &Path) -> TempDir {
    fn all(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("made");
        for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("readable")) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                all(&entry.path(), &target)
            } else {
                fs::copy(entry.path(), target).expect("copied");
            }
        }
    }
    let to = tempfile::tempdir().expect("a folder");
    all(from, to.path());
    to
}

#[test]
fn the_daemon_that_creates_a_domain_is_its_issuer_and_first_member() {
    let (state, files) = created();
    let membership = load_membership(state.path()).expect("readable").expect("there");
    let trust = membership.trust(Readers::Nobody).expect("good");
    let own = issuer_key().peer();
    let principal = verify(&membership.chain, own, NOW, &RevocationLists::default(), &trust).expect("good");
    assert_eq!((principal.domain, principal.roles), (Some(domain("alpha")), Roles::SENSOR));
    assert_eq!(membership.issuer_key(), Ok(Some(own)));
    let members = files.members(NOW).expect("readable");
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].certificate.host, host("head"));
    let again = files.create(&domain("alpha"), &host("head"), NOW.plus(MINUTE)).expect("as it was");
    assert!(!again.changed);
    assert_eq!(again.membership, membership);
    let other = files.create(&domain("beta"), &host("head"), NOW);
    assert!(matches!(other, Err(Error::MemberElsewhere { .. })));
    fs::remove_file(state.path().join("membership")).expect("there");
    let other = files.create(&domain("beta"), &host("head"), NOW);
    assert!(matches!(other, Err(Error::OtherDomain { .. })));
}

#[test]
fn a_member_does_not_lose_its_domain_by_creating_another() {
    let (elsewhere, _) = created();
    let state = tempfile::tempdir().expect("a folder");
    fs::copy(elsewhere.path().join("membership"), state.path().join("membership")).expect("copied");
    let error = files(state.path()).create(&domain("beta"), &host("head"), NOW).expect_err("elsewhere");
    assert!(matches!(error, Error::MemberElsewhere { .. }), "{error}");
    assert!(!files(state.path()).exist(), "nothing was started");
}

#[test]
fn a_creation_cut_short_anywhere_is_completed_by_repeating_it() {
    let (whole, _) = created();
    // In the order of their creation.
    let made = ["domain/root.key", "domain/delegation", "domain/book", "membership"];
    for kept in 0..made.len() {
        let state = copy(whole.path());
        for missing in &made[kept..] {
            fs::remove_file(state.path().join(missing)).expect("there");
        }
        let files = files(state.path());
        if (1..3).contains(&kept) {
            let error = files.members(NOW).expect_err("half").to_string();
            assert!(error.contains("`visperf domain create`"), "{error}");
            let other = files.create(&domain("beta"), &host("head"), NOW);
            assert!(matches!(other, Err(Error::OtherDomain { .. })), "not another one on top of it");
        }
        let again = files.create(&domain("alpha"), &host("head"), NOW).expect("completed");
        assert!(again.changed);
        assert_eq!(files.members(NOW).expect("whole").len(), 1, "{kept}");
        let token = token(&files, NOW);
        let ask = question(&token, host("a1"), Roles::NONE, NOW).expect("fresh");
        files.redeem(&ask, key(41).peer(), NOW).expect("it works");
    }
}

#[test]
fn without_a_domain_the_error_says_where_to_type() {
    let state = tempfile::tempdir().expect("a folder");
    let files = files(state.path());
    let error = files.create_token(Spec::default(), vec![], vec![], NOW).expect_err("none").to_string();
    assert!(error.contains("visperf domain create"), "{error}");
    assert!(!state.path().join("domain").exists(), "nothing is made by looking");
}

#[test]
fn a_token_is_used_before_its_certificate_leaves() {
    let (state, files) = created();
    let token = token(&files, NOW);
    let ask = question(&token, host("a1"), Roles::NONE, NOW).expect("fresh");
    // The disk fails during the write: no certificate is issued, and the token is as valid as before.
    let obstacle = state.path().join("domain/.book.new");
    fs::create_dir(&obstacle).expect("made");
    assert!(matches!(files.redeem(&ask, key(41).peer(), NOW), Err(Error::File(_))));
    fs::remove_dir(&obstacle).expect("removed");
    let given = files.redeem(&ask, key(41).peer(), NOW).expect("good");
    // The issuer crashed right after; the joiner did not get the certificate and asks again; a thief asks
    // too.
    let after = copy(state.path());
    let restarted = self::files(after.path());
    let stolen = restarted.redeem(&ask, key(42).peer(), NOW);
    assert!(matches!(stolen, Err(Error::Refused(Refused::TokenUsed))));
    assert_eq!(restarted.redeem(&ask, key(41).peer(), NOW).expect("again"), given);
    assert_eq!(restarted.members(NOW).expect("readable").len(), 2);
}

#[test]
fn the_secret_is_not_in_the_files() {
    let (state, files) = created();
    let token = token(&files, NOW);
    let store = fs::read(state.path().join("domain/book")).expect("there");
    let holds = |needle: &[u8]| store.windows(needle.len()).any(|window| window == needle);
    assert!(!holds(&token.secret.0));
    assert!(holds(b"alpha"), "it is the right file");
}

#[test]
fn a_whole_life_joins_renews_and_is_revoked() {
    let (state, files) = created();
    let line = token::text(&token(&files, NOW));
    let joiner = tempfile::tempdir().expect("a folder");
    let own = key_file::load_or_create(joiner.path()).expect("created");
    let token = token::parse(&line).expect("good");
    let ask = Question::Join(question(&token, host("a1"), Roles::NONE, NOW).expect("fresh"));
    let seed = Address::try_from("head:7742").expect("an address");
    let mut issuer = Issuer::new(self::files(state.path()), vec![], vec![seed.clone()]);
    let mut trail = Trail::default();
    let Reply::Admitted(admitted) = issuer.answer(&ask, own.peer(), NOW, at(0), &mut trail) else {
        panic!("refused")
    };
    let audit = trail.poll_output().expect("an audit entry");
    assert_eq!((audit.outcome, audit.host, audit.peer), (Outcome::Admitted, Some(host("a1")), own.peer()));
    let (membership, _) = accept(&token, *admitted, own.peer(), NOW).expect("good");
    save_membership(joiner.path(), &membership).expect("kept");
    let mut membership = load_membership(joiner.path()).expect("readable").expect("there");
    assert_eq!(membership.seeds, [seed]);

    let due = certificate::renewed_from(&membership.certificate().expect("good"));
    assert_eq!(due, NOW.plus(LIFE / 2));
    let renew = Question::Renew { chain: Box::new(membership.chain.clone()) };
    let Reply::Admitted(admitted) = issuer.answer(&renew, own.peer(), due, at(15 * 86_400), &mut trail)
    else {
        panic!("refused")
    };
    membership.take(*admitted, own.peer(), due).expect("renewed");

    let out = files.revoke(&RevocationTarget::Host(host("a1")), due).expect("revoked");
    assert_eq!(out, [own.peer()]);
    let renew = Question::Renew { chain: Box::new(membership.chain.clone()) };
    let Reply::Refused(why) = issuer.answer(&renew, own.peer(), due, at(15 * 86_400 + 1), &mut trail) else {
        panic!("admitted")
    };
    assert!(why.contains("denied"), "{why}");
    assert!(files.members(due).expect("readable").iter().any(|member| member.denied));

    // The list reaches a member, which stores it over a restart and never goes back.
    let trust = membership.trust(Readers::Nobody).expect("good");
    let mut held = RevocationLists::default();
    let first = files.denials(due).expect("readable");
    for list in &first {
        held.take(list, &trust).expect("new");
    }
    assert!(verify(&membership.chain, own.peer(), due, &held, &trust).is_err());
    assert!(
        verify(&membership.chain, own.peer(), due, &RevocationLists::default(), &trust).is_ok(),
        "by the list alone"
    );
    files.revoke(&RevocationTarget::Peer(key(77).peer()), due).expect("revoked");
    for list in &files.denials(due).expect("readable") {
        held.take(list, &trust).expect("newer");
    }
    save_denials(joiner.path(), &held, &[]).expect("kept");
    let (mut kept, later) = load_denials(joiner.path(), &trust).expect("readable");
    assert!(later.is_empty());
    assert!(matches!(kept.take(&first[0], &trust), Err(Refused::DenyListOld { found: 1, held: 2, .. })));
}

#[test]
fn a_revocation_outlives_a_restart_and_counts_on_without_the_root() {
    let (state, files) = created();
    files.revoke(&RevocationTarget::Peer(key(77).peer()), NOW).expect("revoked");
    let restarted = self::files(state.path());
    let numbers = |files: &DomainFiles| {
        let lists = files.denials(NOW).expect("readable");
        let number = |list: &wire::credential::Denial| list.list.unverified().expect("good").number;
        lists.iter().map(|list| (list.delegation.is_none(), number(list))).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&restarted), [(true, 1)]);
    fs::rename(state.path().join("domain/root.key"), state.path().join("elsewhere")).expect("moved");
    restarted.revoke(&RevocationTarget::Peer(key(78).peer()), NOW).expect("by the issuer");
    restarted.revoke(&RevocationTarget::Peer(key(79).peer()), NOW).expect("by the issuer");
    assert_eq!(numbers(&restarted), [(true, 1), (false, 2)]);
    assert!(matches!(
        restarted.revoke(&RevocationTarget::Host(host("unknown")), NOW),
        Err(Error::Refused(Refused::NoMember { .. }))
    ));
}

#[test]
fn operators_need_the_root_key() {
    let (state, files) = created();
    let roles = Roles::NONE.with(Role::Operator);
    let certify = || files.certify(key(41).peer(), host("desk"), roles, LIFE, NOW);
    let chain = certify().expect("the root is here");
    let membership = load_membership(state.path()).expect("readable").expect("there");
    let trust = membership.trust(Readers::Nobody).expect("good");
    verify(&chain, key(41).peer(), NOW, &RevocationLists::default(), &trust).expect("good");
    fs::rename(state.path().join("domain/root.key"), state.path().join("elsewhere")).expect("moved");
    assert!(matches!(certify(), Err(Error::NoRoot { .. })));
    token(&files, NOW);
}

#[test]
fn the_delegation_is_renewed_while_the_root_key_is_here() {
    let (state, files) = created();
    let due = NOW.plus(DELEGATION_LIFE / 2);
    let joined = |now| {
        let ask = question(&token(&files, now), host("a1"), Roles::NONE, now).expect("fresh");
        let chain = files.redeem(&ask, key(41).peer(), now).expect("good");
        certificate::open(&chain).expect("good").delegation.expect("by the issuer").number
    };
    assert_eq!(joined(due.minus(DAY)), 1);
    assert_eq!(joined(due), 2);
    fs::remove_file(state.path().join("domain/root.key")).expect("there");
    assert_eq!(joined(due.plus(DELEGATION_LIFE / 2)), 2, "the old one as long as it lasts");
}

#[test]
fn an_issuer_whose_clock_was_set_signs_nothing_until_it_is_right_or_confirmed() {
    let (state, files) = created();
    let ahead = NOW.plus(DAY * 16);
    files.check_clock(NOW, at(0), Members::Unknown).expect("nothing is known against it");
    let refused = files.check_clock(ahead, at(60), Members::Unknown).expect_err("set").to_string();
    for part in ["2026-12-07T06:00:00Z", "2026-11-21T06:01:00Z", "visperf domain confirm-clock"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    let mut issuer = Issuer::new(DomainFiles::new(state.path(), key(40)), vec![], vec![]);
    let ask = question(&token(&files, ahead), host("a1"), Roles::NONE, ahead).expect("fresh");
    for _ in 0..5 {
        let reply =
            issuer.answer(&Question::Join(ask.clone()), key(41).peer(), ahead, at(60), &mut Trail::default());
        assert!(matches!(&reply, Reply::Refused(why) if why.contains("confirm-clock")), "{reply:?}");
    }
    let now = NOW.plus(MINUTE);
    let admitted = issuer.answer(&Question::Join(ask), key(41).peer(), now, at(60), &mut Trail::default());
    assert!(matches!(admitted, Reply::Admitted(_)), "the token is as good as before: {admitted:?}");
    files.confirm_clock(ahead, at(60)).expect("stored");
    let differ = Members::Differ { time: NOW, members: 3 };
    files.check_clock(ahead, at(61), differ).expect("the operator says so");
    assert!(files.check_clock(now, at(61), Members::Unknown).is_err(), "and the other one is wrong");
}

#[test]
fn the_certificate_before_is_stored_beside_for_itself() {
    let (state, files) = created();
    let held = load_membership(state.path()).expect("readable").expect("there");
    assert_eq!(load_previous(state.path(), &held).expect("readable"), None);
    let due = certificate::renewed_from(&held.certificate().expect("good"));
    let chain = files.renew(&held.chain, key(40).peer(), due).expect("due");
    let renewed = Membership { chain, ..held.clone() };
    replace_membership(state.path(), &held, &renewed).expect("stored");
    // An older version reads its own file as before, and its file is read here.
    assert_eq!(load_membership(state.path()).expect("readable"), Some(renewed.clone()));
    assert_eq!(load_previous(state.path(), &renewed).expect("readable"), Some(held.chain.clone()));
    save_membership(state.path(), &held).expect("stored");
    assert_eq!(load_previous(state.path(), &held).expect("readable"), None, "it is the same");
    let foreign = Membership { chain: crate::admission::rig::Parts::of("beta", 50).chain(), ..held };
    assert_eq!(load_previous(state.path(), &foreign).expect("readable"), None, "of another domain");
}

#[test]
fn a_daemon_with_another_key_is_reported_and_delegated_to_by_creating_again() {
    let (state, _) = created();
    let files = DomainFiles::new(state.path(), key(43));
    let error = files.members(NOW).expect_err("another key").to_string();
    assert!(error.contains("`visperf domain create alpha`"), "{error}");
    // Its previous key has the host name until that is revoked or expires.
    let taken = files.create(&domain("alpha"), &host("head"), NOW);
    assert!(matches!(taken, Err(Error::Refused(Refused::HostTaken { .. }))));
    files.revoke(&RevocationTarget::Host(host("head")), NOW).expect("revoked");
    files.create(&domain("alpha"), &host("head"), NOW).expect("delegated");
    token(&files, NOW);
}

#[test]
fn lists_of_domains_not_known_yet_are_kept_for_later() {
    let state = tempfile::tempdir().expect("a folder");
    let foreign = crate::admission::rig::Parts::of("beta", 50);
    let held = foreign.held(&[foreign.denial_by_root(4, &[key(9).peer()], NOW)]);
    save_denials(state.path(), &held, &[]).expect("kept");
    let own = Trust::of_member(domain("alpha"), key(1).peer(), Readers::Admitted);
    let (known, later) = load_denials(state.path(), &own).expect("readable");
    assert_eq!((known.all().count(), later.len()), (0, 1));
    save_denials(state.path(), &known, &later).expect("kept");
    assert_eq!(load_denials(state.path(), &foreign.trust()).expect("readable").0.all().count(), 1);
}
