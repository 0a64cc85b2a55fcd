//! Tokens and renewals, as values: used, stale, mistyped, of another issuer, guessed.

use crate::admission::rig::{DAY, MINUTE, NOW, Parts, at, domain, host, key};
use overlay::identity::certificate::{self, LIFE};
use overlay::identity::issuer_store::{IssuerStore, Signing};
use overlay::identity::join::{self, JoinLimiter, accept, question};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::token::{self, KEPT_AFTER, Spec, SpecError, parse, text};
use overlay::identity::token_text::Error;
use overlay::identity::trust::Readers;
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Role, Roles};
use wire::id::PeerKey;
use wire::join::{Admitted, Directory, Join, Secret, Token, TokenType};
use wire::time::Time;

const SECRET: Secret = Secret([0x5a; 16]);

/// An issuer with one token.
#[derive(Clone)]
pub(crate) struct Desk1 {
    pub(crate) parts: Parts,
    pub(crate) store: IssuerStore,
    pub(crate) deny: RevocationLists,
}

impl Desk1 {
    pub(crate) fn new(spec: Spec) -> Desk1 {
        let parts = Parts::good();
        let mut store = IssuerStore::new(domain("alpha"), parts.root.peer());
        store.tokens().add(SECRET, spec, NOW).expect("room");
        Desk1 { parts, store, deny: RevocationLists::default() }
    }

    pub(crate) fn ask(&self, of_host: &str) -> Join {
        Join { secret: SECRET, root: self.parts.root.peer(), host: host(of_host), wanted: Roles::NONE }
    }

    pub(crate) fn redeem(
        &mut self,
        question: &Join,
        peer: PeerKey,
        now: Time,
    ) -> Result<Certificate, Refused> {
        let delegation = self.parts.chain().delegation.expect("there");
        let signing = Signing { key: &self.parts.issuer, delegation: &delegation };
        let chain = self.store.redeem(question, peer, signing, &self.deny, now)?;
        certificate::verify(&chain, peer, now, &self.deny, &self.parts.trust()).expect("a good chain");
        Ok(certificate::open(&chain).expect("a good chain").certificate)
    }

    pub(crate) fn renew(&mut self, chain: &Chain, peer: PeerKey, now: Time) -> Result<Certificate, Refused> {
        let delegation = self.parts.chain().delegation.expect("there");
        let signing = Signing { key: &self.parts.issuer, delegation: &delegation };
        let chain = self.store.renew(chain, peer, signing, &self.deny, now)?;
        Ok(certificate::open(&chain).expect("a good chain").certificate)
    }
}

fn token() -> Token {
    let parts = Parts::good();
    let address = |text| Address::try_from(text).expect("an address");
    Token {
        domain: domain("alpha"),
        root: parts.root.peer(),
        issuer: parts.issuer.peer(),
        addresses: vec![address("head.alpha.example:7742"), address("[2001:db8::5]:7742")],
        directories: vec![Directory { key: key(70).peer(), addresses: vec![address("10.0.0.9:7743")] }],
        secret: SECRET,
        expires: NOW.plus(token::LIFE),
        token_type: TokenType::Join,
    }
}

#[test]
fn a_token_is_one_line_that_comes_back_whole() {
    let line = text(&token());
    assert!(line.starts_with("visperf1-") && line.len() < 400, "{line}");
    assert!(line.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    assert_eq!(parse(&line), Ok(token()));
    let wrapped: String =
        line.as_bytes().chunks(60).map(|part| format!("{}\r\n ", String::from_utf8_lossy(part))).collect();
    assert_eq!(parse(&wrapped), Ok(token()), "wrapped by a mail program");
    assert_eq!(parse(&line.to_ascii_uppercase()), Ok(token()));
}

#[test]
fn a_mistyped_token_is_reported_as_such() {
    let line = text(&token());
    for at in 0..line.len() {
        let mut typo = line.clone().into_bytes();
        typo[at] = if typo[at] == b'a' { b'b' } else { b'a' };
        let typo = String::from_utf8(typo).expect("letters");
        let error = parse(&typo).expect_err("mistyped");
        assert_eq!(matches!(error, Error::Prefix { .. }), at < 9, "{at}");
        assert_eq!(matches!(error, Error::Checksum { .. }), at >= 9, "{at}");
        assert!(parse(&line[..at]).is_err(), "cut at {at}");
    }
    let mut letters: Vec<char> = line.chars().collect();
    letters[20] = '1';
    assert_eq!(parse(&letters.iter().collect::<String>()), Err(Error::Letter { what: "token", at: 21 }));
    letters[20] = 'ü';
    assert_eq!(parse(&letters.iter().collect::<String>()), Err(Error::Letter { what: "token", at: 21 }));
    for bad in ["", "visperf1-", "visperf2-aaaa", "hello", "visperf1-é", &"a".repeat(100_000)] {
        assert!(parse(bad).is_err(), "{bad:.20}");
    }
}

#[test]
fn a_token_lets_one_daemon_in_and_the_same_one_again() {
    let mut desk = Desk1::new(Spec::default());
    let ask = desk.ask("a1");
    let first = desk.redeem(&ask, key(30).peer(), NOW).expect("good");
    assert_eq!((first.roles, first.peer, first.host.as_str()), (Roles::SENSOR, key(30).peer(), "a1"));
    assert_eq!(first.expires, NOW.plus(LIFE));
    // The answer was lost: the joiner gets the same certificate, even when the token is stale by now.
    assert_eq!(desk.redeem(&ask, key(30).peer(), NOW.plus(MINUTE)), Ok(first.clone()));
    assert_eq!(desk.redeem(&ask, key(30).peer(), NOW.plus(MINUTE * 60)), Ok(first));
    // Another peer has the token too.
    assert_eq!(desk.redeem(&desk.ask("a2"), key(31).peer(), NOW), Err(Refused::TokenUsed));
    assert_eq!(desk.redeem(&ask, key(30).peer(), NOW.plus(DAY * 2)), Err(Refused::TokenUnknown), "forgotten");
}

#[test]
fn a_token_with_uses_lets_so_many_in() {
    let mut desk = Desk1::new(Spec { uses: 2, ..Spec::default() });
    let serials: Vec<_> = [(30, "a1"), (31, "a2")]
        .map(|(number, name)| desk.redeem(&desk.ask(name), key(number).peer(), NOW).expect("good").serial.0)
        .into();
    assert_eq!(serials, [1, 2]);
    assert_eq!(desk.redeem(&desk.ask("a3"), key(32).peer(), NOW), Err(Refused::TokenUsed));
}

#[test]
fn a_stale_token_is_refused() {
    let until = NOW.plus(token::LIFE);
    let ask = |now| {
        let mut desk = Desk1::new(Spec::default());
        desk.redeem(&desk.ask("a1"), key(30).peer(), now)
    };
    assert!(matches!(ask(until), Err(Refused::TokenStale { .. })));
    ask(until.minus(Duration::from_micros(1))).expect("just good");
    assert_eq!(ask(until.plus(KEPT_AFTER)), Err(Refused::TokenUnknown));
    // The joiner checks it before it dials, with a margin for its clock.
    let asked = |now| question(&token(), host("a1"), Roles::NONE, now);
    assert!(matches!(asked(until.plus(certificate::SKEW_MAX)), Err(Refused::TokenStale { .. })));
    asked(until).expect("perhaps good");
}

#[test]
fn a_wrong_secret_or_issuer_is_refused_and_uses_nothing_up() {
    let mut desk = Desk1::new(Spec::default());
    let wrong = Join { secret: Secret([0x5b; 16]), ..desk.ask("a1") };
    assert_eq!(desk.redeem(&wrong, key(30).peer(), NOW), Err(Refused::TokenUnknown));
    let elsewhere = Join { root: key(99).peer(), ..desk.ask("a1") };
    assert!(matches!(desk.redeem(&elsewhere, key(30).peer(), NOW), Err(Refused::TokenIssuer { .. })));
    let more = Join { wanted: Roles::NONE.with(Role::Operator), ..desk.ask("a1") };
    assert!(matches!(desk.redeem(&more, key(30).peer(), NOW), Err(Refused::TokenRoles { .. })));
    desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("still good");
}

#[test]
fn a_joiner_may_ask_for_less() {
    let mut desk = Desk1::new(Spec::default());
    let less = Join { wanted: Roles::NONE.with(Role::Viewer), ..desk.ask("a1") };
    assert_eq!(desk.redeem(&less, key(30).peer(), NOW).expect("good").roles, less.wanted);
}

#[test]
fn a_host_name_belongs_to_one_key_until_that_is_revoked() {
    let taken = || {
        let mut desk = Desk1::new(Spec { uses: 3, ..Spec::default() });
        desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("good");
        desk
    };
    let mut desk = taken();
    let refused = desk.redeem(&desk.ask("a1"), key(31).peer(), NOW).expect_err("taken");
    assert!(refused.to_string().contains("`visperf domain revoke a1`"), "{refused}");
    desk.redeem(&desk.ask("a2"), key(31).peer(), NOW).expect("the refusal used nothing up");
    // A viewer does not represent its host.
    let viewer = Join { wanted: Roles::NONE.with(Role::Viewer), ..desk.ask("a1") };
    taken().redeem(&viewer, key(31).peer(), NOW).expect("a person on that host");
    let mut desk = taken();
    desk.deny = desk.parts.held(&[desk.parts.denial_by_root(1, &[key(30).peer()], NOW)]);
    desk.redeem(&desk.ask("a1"), key(31).peer(), NOW).expect("the earlier one is revoked");
}

#[test]
fn a_revoked_daemon_comes_back_by_a_new_token_only() {
    let mut desk = Desk1::new(Spec { uses: 2, ..Spec::default() });
    let ask = desk.ask("a1");
    desk.redeem(&ask, key(30).peer(), NOW).expect("good");
    // The revocation has a later time than now: clocks step.
    desk.deny = desk.parts.held(&[desk.parts.denial_by_root(1, &[key(30).peer()], NOW.plus(MINUTE))]);
    assert!(matches!(desk.redeem(&ask, key(30).peer(), NOW), Err(Refused::Denied { .. })));
    let secret = Secret([7; 16]);
    desk.store.tokens().add(secret, Spec::default(), NOW).expect("room");
    let again = desk.redeem(&Join { secret, ..ask }, key(30).peer(), NOW).expect("a new token");
    assert!(again.issued > NOW.plus(MINUTE), "after what is denied");
}

#[test]
fn a_certificate_is_renewed_from_half_of_its_life() {
    let mut desk = Desk1::new(Spec::default());
    let first = desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("good");
    let delegation = desk.parts.chain().delegation;
    let chain = Chain { certificate: desk.parts.issuer.seal(&first).expect("fits"), delegation };
    let half = NOW.plus(LIFE / 2);
    let early = half.minus(Duration::from_micros(1));
    assert_eq!(
        desk.renew(&chain, key(30).peer(), early),
        Err(Refused::TooEarly { serial: first.serial, from: half })
    );
    let second = desk.renew(&chain, key(30).peer(), half).expect("due");
    assert_eq!(
        (second.roles, second.host.clone(), second.expires),
        (first.roles, first.host, half.plus(LIFE))
    );
    assert!(second.serial > first.serial);
    // The answer was lost: the same certificate again, not a third.
    assert_eq!(desk.renew(&chain, key(30).peer(), half.plus(MINUTE)), Ok(second));
    assert!(matches!(desk.renew(&chain, key(31).peer(), half), Err(Refused::Peer { .. })), "not another's");
    let late = NOW.plus(LIFE).plus(MINUTE * 10);
    assert!(matches!(desk.renew(&chain, key(30).peer(), late), Err(Refused::Expired { .. })));
    desk.deny = desk.parts.held(&[desk.parts.denial_by_root(1, &[key(30).peer()], half)]);
    assert!(matches!(desk.renew(&chain, key(30).peer(), half), Err(Refused::Denied { .. })));
}

#[test]
fn a_certificate_that_a_wrong_clock_signed_is_replaced_at_once() {
    let mut desk = Desk1::new(Spec::default());
    let first = desk.redeem(&desk.ask("a1"), key(30).peer(), NOW).expect("good");
    let delegation = desk.parts.chain().delegation;
    let chain_of = |desk: &Desk1, certificate: &Certificate| Chain {
        certificate: desk.parts.issuer.seal(certificate).expect("fits"),
        delegation: delegation.clone(),
    };
    // The issuer's clock is sixteen days ahead for a while, and the member's too.
    let ahead = NOW.plus(DAY * 16);
    let wrong = desk.renew(&chain_of(&desk, &first), key(30).peer(), ahead).expect("due by that clock");
    let later = NOW.plus(MINUTE);
    // By the current chain, and by the one from the future.
    let again = desk.renew(&chain_of(&desk, &first), key(30).peer(), later);
    assert!(matches!(again, Err(Refused::TooEarly { .. })), "not the one from the future: {again:?}");
    let mended = desk.renew(&chain_of(&desk, &wrong), key(30).peer(), later).expect("at once");
    assert_eq!((mended.issued, mended.serial > wrong.serial), (later, true));
    let lost = desk.renew(&chain_of(&desk, &wrong), key(30).peer(), later.plus(MINUTE));
    assert_eq!(lost, Ok(mended), "the answer was lost");
}

#[test]
fn a_member_keeps_its_certificate_rather_than_take_one_from_the_future() {
    let parts = Parts::good();
    let answer = |parts: &Parts| Admitted {
        chain: parts.chain(),
        directories: vec![],
        seeds: vec![],
        denials: vec![],
    };
    let (trusted, _) = join::install(None, answer(&parts), parts.peer(), NOW).expect("good");
    let mut future = Parts::good();
    future.certificate.issued = NOW.plus(DAY * 16);
    future.certificate.expires = future.certificate.issued.plus(LIFE);
    let mut held = trusted.clone();
    let taken = held.take(answer(&future), parts.peer(), NOW);
    assert!(matches!(taken, Err(Refused::NotYetValid { .. })), "{taken:?}");
    assert_eq!(held, trusted);
    future.certificate.issued = NOW.plus(certificate::SKEW_MAX);
    future.certificate.expires = future.certificate.issued.plus(LIFE);
    held.take(answer(&future), parts.peer(), NOW).expect("clocks differ a little");
}

#[test]
fn of_two_certificates_the_newest_that_holds_is_shown() {
    let old = Parts::good();
    let mut new = Parts::good();
    new.certificate.issued = NOW.plus(DAY * 16);
    new.certificate.expires = new.certificate.issued.plus(LIFE);
    let (old, new) = (old.chain(), new.chain());
    let shown = |now| certificate::newest_that_holds(Some(&new), Some(&old), now).expect("one");
    assert_eq!(shown(NOW), &old, "the newest does not hold yet");
    assert_eq!(shown(NOW.plus(DAY * 16)), &new, "both hold");
    assert_eq!(shown(NOW.plus(DAY * 35)), &new, "the previous one expired");
    assert_eq!(shown(NOW.minus(DAY * 30)), &new, "neither holds");
    assert_eq!(certificate::newest_that_holds(Some(&new), None, NOW), Some(&new));
}

#[test]
fn what_the_root_gave_the_issuer_cannot_renew() {
    let mut desk = Desk1::new(Spec::default());
    let mut operator = Parts::good().by_root();
    operator.certificate.roles = Roles::NONE.with(Role::Operator);
    let half = certificate::renewed_from(&operator.certificate);
    let renewed = desk.renew(&operator.chain(), operator.peer(), half);
    assert!(matches!(renewed, Err(Refused::RoleOfRoot { .. })));
    operator.certificate.roles = Roles::SENSOR;
    desk.renew(&operator.chain(), operator.peer(), half).expect("roles that it may give");
}

#[test]
fn a_token_asks_for_what_a_token_may_give() {
    let add = |spec| Desk1::new(Spec::default()).store.tokens().add(Secret([1; 16]), spec, NOW);
    let good = Spec::default();
    let operator = Spec { roles: Roles::SENSOR.with(Role::Operator), ..good };
    assert!(matches!(add(operator), Err(SpecError::Roles { .. })));
    assert!(matches!(add(Spec { roles: Roles::NONE, ..good }), Err(SpecError::Roles { .. })));
    assert!(matches!(add(Spec { uses: 0, ..good }), Err(SpecError::Uses { .. })));
    assert!(matches!(add(Spec { uses: 1001, ..good }), Err(SpecError::Uses { .. })));
    assert!(matches!(add(Spec { life: DAY * 8, ..good }), Err(SpecError::Life { .. })));
    assert_eq!(add(good), Ok(NOW.plus(token::LIFE)));
    let mut store = IssuerStore::new(domain("alpha"), key(1).peer());
    let mut many = |number: u32, now| store.tokens().add(Secret([(number % 256) as u8; 16]), good, now);
    for number in 0..1000 {
        many(number, NOW).expect("room");
    }
    assert_eq!(many(1000, NOW), Err(SpecError::Full));
    many(1000, NOW.plus(token::LIFE).plus(KEPT_AFTER)).expect("the others are forgotten");
}

#[test]
fn a_joiner_believes_only_what_its_tokens_root_signed_for_it() {
    let token = token();
    let parts = Parts::good();
    let answer = |parts: &Parts| Admitted {
        chain: parts.chain(),
        directories: vec![],
        seeds: vec![],
        denials: vec![],
    };
    let (membership, _) = accept(&token, answer(&parts), parts.peer(), NOW).expect("good");
    assert_eq!(
        (membership.directories, membership.issuer),
        (token.directories.clone(), token.addresses.clone())
    );
    let other = Parts::of("alpha", 50);
    assert!(matches!(accept(&token, answer(&other), other.peer(), NOW), Err(Refused::Root { .. })));
    let beta = Parts::of("beta", 1);
    assert!(matches!(accept(&token, answer(&beta), beta.peer(), NOW), Err(Refused::UnknownDomain { .. })));
    assert!(matches!(accept(&token, answer(&parts), key(9).peer(), NOW), Err(Refused::Peer { .. })));
    let denied = Admitted { denials: vec![parts.denial_by_root(1, &[parts.peer()], NOW)], ..answer(&parts) };
    assert!(matches!(accept(&token, denied, parts.peer(), NOW), Err(Refused::Denied { .. })));
    let mut many = answer(&parts);
    many.directories = vec![token.directories[0].clone(); 8];
    assert!(matches!(accept(&token, many, parts.peer(), NOW), Err(Refused::Full { .. })));
}

#[test]
fn a_membership_names_the_issuer_to_ask_and_takes_the_answer() {
    let (token, mut parts) = (token(), Parts::good());
    let answer = |parts: &Parts| Admitted {
        chain: parts.chain(),
        directories: vec![],
        seeds: vec![],
        denials: vec![],
    };
    let (mut membership, _) = accept(&token, answer(&parts), parts.peer(), NOW).expect("good");
    assert_eq!(membership.issuer_key(), Ok(Some(parts.issuer.peer())));
    let certificate = membership.certificate().expect("good");
    assert_eq!(certificate::renewed_from(&certificate), parts.certificate.issued.plus(LIFE / 2));
    assert!(membership.trust(Readers::Nobody).is_ok());
    parts.certificate.issued = NOW;
    membership.take(answer(&parts), parts.peer(), NOW).expect("renewed");
    assert_eq!(membership.certificate().expect("good").issued, NOW);
    assert_eq!(membership.directories, token.directories, "kept, as none were named");
    assert!(membership.take(answer(&Parts::of("alpha", 50)), parts.peer(), NOW).is_err());
}

#[test]
fn a_peer_that_guesses_waits_and_no_other_does() {
    let mut desk = JoinLimiter::default();
    let (guesser, honest) = (key(90).peer(), key(91).peer());
    for _ in 0..3 {
        desk.admit(guesser, at(0)).expect("may try");
        assert_eq!(desk.handle_refusal(guesser, Refused::TokenUnknown, at(0)), Refused::TokenUnknown);
    }
    assert!(matches!(desk.admit(guesser, at(0)), Err(Refused::TooManyAttempts { .. })));
    assert!(matches!(desk.admit(guesser, at(19)), Err(Refused::TooManyAttempts { .. })));
    desk.admit(guesser, at(20)).expect("one more");
    desk.admit(honest, at(0)).expect("another");
    // Many keys guess at once: most answers give no information any more, and an honest peer may still try.
    let stranger = |number: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        PeerKey(bytes)
    };
    let refusals: Vec<_> =
        (0..5000).map(|number| desk.handle_refusal(stranger(number), Refused::TokenUnknown, at(0))).collect();
    let plain = refusals.iter().filter(|refused| **refused == Refused::TokenUnknown).count();
    assert!(plain <= 100, "{plain}");
    desk.admit(honest, at(0)).expect("not locked out");
}

#[test]
fn what_the_roots_keeper_gives_by_hand_is_taken_by_its_own_key_alone() {
    let parts = Parts::good().by_root();
    let given = Admitted { chain: parts.chain(), directories: vec![], seeds: vec![], denials: vec![] };
    let line = join::text(&given);
    assert_eq!(join::parse(&line), Ok(given.clone()));
    assert!(matches!(join::parse(&text(&token())), Err(Error::Prefix { .. })), "a token is another line");
    let (membership, _) = join::install(None, given.clone(), parts.peer(), NOW).expect("good");
    assert!(matches!(join::install(None, given.clone(), key(9).peer(), NOW), Err(Refused::Peer { .. })));
    // A member accepts it from its own domain's root alone.
    join::install(Some(membership.clone()), given, parts.peer(), NOW).expect("the same root");
    let other = Parts::of("alpha", 50).by_root();
    let foreign = Admitted { chain: other.chain(), directories: vec![], seeds: vec![], denials: vec![] };
    assert!(matches!(
        join::install(Some(membership), foreign.clone(), other.peer(), NOW),
        Err(Refused::Root { .. })
    ));
    join::install(None, foreign, other.peer(), NOW).expect("who is in no domain may join it");
}
