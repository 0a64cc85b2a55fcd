//! Tests of the resolver: which directories it asks, which answer counts, and what it caches.
//!
//! Not here: the task that sends the questions (`asker`).

use super::*;
use wire::credential::{Certificate, Chain, Roles, Serial};
use wire::id::HostName;
use wire::registration::{Coverage, Reach, SensorType};
use wire::sealed::Sealed;
use wire::time::Time;

fn key(byte: u8) -> PeerKey {
    PeerKey([byte; 32])
}

fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).expect("a name")
}

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

fn heard(name: &str, peer: u8, term: u64, sequence: u64, remaining_secs: u64) -> VerifiedRecord {
    let host = HostName::try_from("n1").expect("a name");
    let (root, peer) = (key(200), key(peer));
    let record = Record {
        domain: domain(name),
        host: host.clone(),
        port: 1,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://h:1".to_owned()],
        term,
        sequence,
        stated: Time::default(),
        reach: Some(Reach { root, peer, addresses: vec![], coverage: Coverage::Whole { hosts: 1 } }),
    };
    let certificate = Certificate {
        domain: domain(name),
        root,
        peer,
        host,
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(1),
        issued: Time::default(),
        expires: Time::default(),
    };
    let certificate = Sealed::new(&certificate, root, |_| [0; 64]).expect("short");
    let chain = Chain { certificate, delegation: None };
    let sealed = Sealed::new(&record, peer, |_| [0; 64]).expect("short");
    let remaining = Duration::from_secs(remaining_secs);
    let age = Duration::from_secs(15).saturating_sub(remaining);
    VerifiedRecord { record, statement: Statement { record: sealed, chain }, age, remaining }
}

fn known(heard: VerifiedRecord) -> Reply {
    Reply::Known { primary: Box::new(heard), partial: vec![] }
}

fn resolver(directories: u8) -> Resolver {
    Resolver::new((1..=directories).map(key).collect(), 7)
}

/// The directories that it asks now.
fn asked(resolver: &mut Resolver) -> Vec<PeerKey> {
    let mut asked = Vec::new();
    while let Some(Output::Ask { directory, .. }) = resolver.poll_output() {
        asked.push(directory);
    }
    asked
}

fn outcome(resolver: &mut Resolver) -> Outcome {
    match resolver.poll_output() {
        Some(Output::Found(_, outcome)) => outcome,
        other => panic!("expected an outcome, found {other:?}"),
    }
}

fn found(outcome: Outcome) -> Found {
    let Outcome::Found(found) = outcome else { panic!("expected a representative, found {outcome:?}") };
    *found
}

#[test]
fn two_directories_are_compared_and_the_highest_counts() {
    let mut resolver = resolver(3);
    let name = domain("a");
    assert_eq!(resolver.resolve(&name, at(0)), Resolving::Asked);
    assert_eq!(resolver.resolve(&name, at(1)), Resolving::Asked, "asked once for both");
    let asked = asked(&mut resolver);
    assert_eq!(asked.len(), 2);
    resolver.handle_reply(asked[0], &name, known(heard("a", 1, 3, 9, 10)), at(100));
    assert_eq!(resolver.poll_output(), None, "one is not enough");
    resolver.handle_reply(asked[1], &name, known(heard("a", 2, 4, 1, 14)), at(200));
    let found = found(outcome(&mut resolver));
    assert_eq!((found.primary.record.term, found.agreed, found.source), (4, false, Source::Asked(2)));
    assert_eq!(found.primary.remaining, Duration::from_millis(13_800), "less the time since it was asked");
    assert_eq!(found.partial.len(), 1, "the other is live and has an owner");
    let Resolving::Now(again) = resolver.resolve(&name, at(4000)) else { panic!("a moment ago") };
    assert_eq!(super::tests::found(again).source, Source::Fresh);
    assert_eq!(resolver.resolve(&name, at(5000)), Resolving::Asked);
}

#[test]
fn no_directory_leads_back_to_an_old_representative() {
    let mut resolver = resolver(1);
    let name = domain("a");
    resolver.resolve(&name, at(0));
    resolver.handle_reply(key(1), &name, known(heard("a", 2, 4, 1, 14)), at(10));
    resolver.resolve(&name, at(20_000));
    resolver.handle_reply(key(1), &name, known(heard("a", 1, 3, 99, 15)), at(20_010));
    asked(&mut resolver);
    while let Some(output) = resolver.poll_output() {
        let Output::Found(_, outcome) = output else { continue };
        assert_eq!(found(outcome).primary.record.term, 4);
    }
    let last = found(resolver.last_known(&name, at(20_020)));
    assert_eq!((last.primary.record.term, last.primary.remaining), (4, Duration::ZERO));
    assert_eq!(last.partial[0].record.term, 3, "it is live, though");
}

#[test]
fn one_that_fails_or_is_slow_is_made_good_by_the_next() {
    let mut resolver = resolver(4);
    let name = domain("a");
    resolver.resolve(&name, at(0));
    let first = asked(&mut resolver);
    resolver.handle_reply(first[0], &name, Reply::Nothing, at(10));
    let second = asked(&mut resolver);
    assert_eq!(second.len(), 1);
    assert_eq!(resolver.poll_timeout(), Some(at(500)));
    resolver.handle_timeout(at(500));
    let third = asked(&mut resolver);
    assert_eq!(third.len(), 1);
    let all: std::collections::BTreeSet<_> = first.iter().chain(&second).chain(&third).collect();
    assert_eq!(all.len(), 4, "none twice");
    resolver.handle_reply(third[0], &name, known(heard("a", 1, 1, 1, 15)), at(600));
    resolver.handle_reply(second[0], &name, known(heard("a", 1, 1, 1, 15)), at(610));
    let found = found(outcome(&mut resolver));
    assert!(found.agreed);
    assert_eq!(resolver.poll_timeout(), None);
    resolver.handle_reply(first[1], &name, known(heard("a", 1, 9, 9, 15)), at(620));
    assert_eq!(resolver.poll_output(), None, "too late");
}

#[test]
fn with_every_directory_dead_the_last_known_is_returned_with_its_age() {
    let mut resolver = resolver(2);
    let name = domain("a");
    resolver.resolve(&name, at(0));
    for directory in asked(&mut resolver) {
        resolver.handle_reply(directory, &name, known(heard("a", 1, 1, 1, 15)), at(0));
    }
    outcome(&mut resolver);
    assert_eq!(resolver.resolve(&name, at(60_000)), Resolving::Asked);
    assert_eq!(asked(&mut resolver).len(), 2);
    for millis in [60_500, 61_000, 61_500, 62_000, 62_500] {
        resolver.handle_timeout(at(millis));
        assert_eq!(resolver.poll_output(), None, "{millis}");
    }
    resolver.handle_timeout(at(63_000));
    let found = found(outcome(&mut resolver));
    assert_eq!((found.source, found.primary.age.as_secs()), (Source::Memory, 63));
    assert!(found.primary.remaining.is_zero());
    resolver.resolve(&domain("b"), at(70_000));
    for directory in asked(&mut resolver) {
        resolver.handle_reply(directory, &domain("b"), Reply::Nothing, at(70_001));
    }
    assert_eq!(outcome(&mut resolver), Outcome::Unreachable);
}

#[test]
fn unknown_is_remembered_for_seconds_and_left_until_something_higher() {
    let mut resolver = resolver(1);
    let name = domain("a");
    resolver.resolve(&name, at(0));
    resolver.handle_reply(key(1), &name, Reply::Unknown, at(10));
    asked(&mut resolver);
    assert_eq!(resolver.resolve(&name, at(1900)), Resolving::Now(Outcome::Unknown));
    assert_eq!(resolver.resolve(&name, at(2000)), Resolving::Asked);
    let number = heard("a", 1, 3, 5, 0).number();
    resolver.handle_reply(key(1), &name, Reply::Left { number, age: Duration::from_secs(9) }, at(2000));
    asked(&mut resolver);
    assert_eq!(resolver.last_known(&name, at(3000)), Outcome::Left(Duration::from_secs(10)));
    resolver.resolve(&name, at(4000));
    resolver.handle_reply(key(1), &name, known(heard("a", 1, 3, 5, 15)), at(4000));
    assert!(matches!(resolver.last_known(&name, at(4000)), Outcome::Left(_)), "not what left");
    resolver.resolve(&name, at(9000));
    resolver.handle_reply(key(1), &name, known(heard("a", 1, 3, 6, 15)), at(9000));
    assert_eq!(found(resolver.last_known(&name, at(9000))).primary.record.sequence, 6);
}

#[test]
fn what_is_stored_comes_back_last_seen_and_damage_is_refused() {
    let mut before = resolver(1);
    for (name, reply) in [
        ("a", known(heard("a", 1, 4, 2, 15))),
        ("b", Reply::Left { number: heard("b", 1, 1, 1, 0).number(), age: Duration::from_secs(1) }),
        ("c", Reply::Unknown),
    ] {
        before.resolve(&domain(name), at(0));
        before.handle_reply(key(1), &domain(name), reply, at(0));
    }
    assert_eq!(before.revision(), 2, "unknown is not stored");
    let secs = |secs| Time::default().plus(Duration::from_secs(secs));
    let bytes = before.to_bytes(at(2000), secs(1000)).expect("short");
    let mut after = Resolver::new(vec![], 1);
    assert_eq!(after.take_back(&bytes, at(0), secs(1100)), Ok(2));
    let Resolving::Now(outcome) = after.resolve(&domain("a"), at(0)) else { panic!("no peer to ask") };
    let outcome = found(outcome);
    assert_eq!((outcome.primary.record.term, outcome.primary.age.as_secs()), (4, 102));
    assert_eq!((outcome.primary.remaining, outcome.source), (Duration::ZERO, Source::Memory));
    assert_eq!(after.last_known(&domain("b"), at(0)), Outcome::Left(Duration::from_secs(103)));
    assert_eq!(after.known().collect::<Vec<_>>(), [&domain("a")]);
    for cut in 0..bytes.len() {
        assert!(Resolver::new(vec![], 1).take_back(&bytes[..cut], at(0), secs(0)).is_err(), "{cut}");
    }
    for flip in (0..bytes.len()).step_by(7) {
        let mut bad = bytes.clone();
        bad[flip] ^= 4;
        assert!(Resolver::new(vec![], 1).take_back(&bad, at(0), secs(0)).is_err(), "{flip}");
    }
}

#[test]
fn a_domain_with_a_leave_and_a_later_record_is_restored_as_one_domain() {
    let (mut before, name) = (resolver(1), domain("a"));
    let number = heard("a", 1, 3, 5, 0).number();
    for (reply, now) in
        [(Reply::Left { number, age: Duration::ZERO }, at(0)), (known(heard("a", 1, 3, 6, 15)), at(9000))]
    {
        before.resolve(&name, now);
        before.handle_reply(key(1), &name, reply, now);
    }
    let bytes = before.to_bytes(at(9000), Time::default()).expect("short");
    let mut after = resolver(1);
    assert_eq!(after.take_back(&bytes, at(0), Time::default()), Ok(1));
    assert_eq!(found(after.last_known(&name, at(0))).primary.record.sequence, 6);
}

#[test]
fn memory_is_bounded_and_the_unknown_go_first() {
    let mut resolver = resolver(1);
    let mut ask = |name: &str, reply: Reply| {
        resolver.resolve(&domain(name), at(0));
        resolver.handle_reply(key(1), &domain(name), reply, at(0));
        while resolver.poll_output().is_some() {}
        resolver.memory.len()
    };
    ask("known", known(heard("known", 1, 1, 1, 15)));
    for n in 0..DOMAINS_MAX + 5 {
        assert!(ask(&format!("u{n}"), Reply::Unknown) <= DOMAINS_MAX);
    }
    assert_eq!(resolver.known().count(), 1);
}
