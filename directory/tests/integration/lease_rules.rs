//! Rules of the lease table, over random histories of statements, silence and a clock that may stop or go
//! back.

use directory::opened::Opened;
use directory::registry::outcome::{Accepted, Refused};
use directory::registry::{LEASE, Registry, State};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{DomainName, HostName};
use wire::registration::{Record, SensorType};
use wire::time::{Moment, Time};

const DOMAINS_MAX: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    State { domain: u8, host: u8, term: u64, sequence: u64 },
    Restore { domain: u8, term: u64, sequence: u64 },
    Wait(i64),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u8, 0..2u8, 0..5u64, 0..8u64).prop_map(|(domain, host, term, sequence)| Step::State {
            domain,
            host,
            term,
            sequence
        }),
        1 => (0..6u8, 0..5u64, 0..8u64).prop_map(|(domain, term, sequence)| Step::Restore {
            domain,
            term,
            sequence
        }),
        4 => (-2000..9000i64).prop_map(Step::Wait),
        1 => Just(Step::Expire),
    ]
}

fn name(domain: u8) -> DomainName {
    DomainName::try_from(format!("d{domain}").as_str()).expect("a name")
}

fn record(domain: u8, host: u8, term: u64, sequence: u64) -> Record {
    Record {
        domain: name(domain),
        host: HostName::try_from(format!("n{host}").as_str()).expect("a name"),
        port: 1,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://h:1".to_owned()],
        term,
        sequence,
        stated: Time::default(),
        reach: None,
    }
}

/// State of a domain that the rules refer to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DomainState {
    number: (u64, u64),
    host: u8,
    state: State,
    /// End of the lease, if it is live.
    until: Option<Duration>,
}

fn seen(registry: &Registry, now: Moment) -> BTreeMap<String, DomainState> {
    let one = |answer: directory::registry::Answer<'_>| {
        let until = (answer.state == State::Live).then(|| now.0 + answer.lease_remaining);
        let host = answer.record.host.as_str()[1..].parse().expect("a number");
        let number = (answer.record.term, answer.record.sequence);
        (answer.record.domain.to_string(), DomainState { number, host, state: answer.state, until })
    };
    registry.domains(now).map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn leases_follow_their_origin(steps in proptest::collection::vec(step(), 1..80)) {
        let mut registry = Registry::new(DOMAINS_MAX);
        let mut clock = 10_000i64;
        // The table uses the latest moment so far, and so do the rules.
        let mut now = Moment::default();
        let mut known = 0u64;
        for step in steps {
            if let Step::Wait(millis) = step {
                clock = (clock + millis).max(0);
                continue;
            }
            let at = Moment(Duration::from_millis(clock.unsigned_abs()));
            now = now.max(at);
            let before = seen(&registry, now);
            prop_assert!(before.len() <= DOMAINS_MAX);
            match step {
                Step::State { domain, host, term, sequence } => {
                    let outcome = registry.register(Opened::own(record(domain, host, term, sequence)), at);
                    let after = seen(&registry, now);
                    let (old, new) = (before.get(&format!("d{domain}")), after.get(&format!("d{domain}")));
                    stated(old.copied(), new.copied(), (term, sequence), host, &outcome, now)?;
                    let live = before.values().filter(|held| held.state == State::Live).count();
                    if matches!(outcome, Err(Refused::Full { .. })) {
                        prop_assert_eq!(live, DOMAINS_MAX);
                    }
                    others_keep(&before, &after, &format!("d{domain}"))?;
                }
                Step::Restore { domain, term, sequence } => {
                    let _ = registry.restore(Opened::own(record(domain, 0, term, sequence)), LEASE, at);
                    let after = seen(&registry, now);
                    let (old, new) = (before.get(&format!("d{domain}")), after.get(&format!("d{domain}")));
                    if let (Some(old), Some(new)) = (old, new) {
                        prop_assert!(new.number >= old.number);
                        prop_assert_eq!(new.until, old.until, "a snapshot touches no lease");
                    }
                    prop_assert!(old.is_some() || new.is_none_or(|new| new.state == State::Restored));
                    others_keep(&before, &after, &format!("d{domain}"))?;
                }
                Step::Wait(_) => unreachable!("passed over above"),
                Step::Expire => {
                    known += registry.expire(at).len() as u64;
                    prop_assert_eq!(&before, &seen(&registry, now), "expiry only writes down what time did");
                }
            }
            let counts = registry.counts();
            prop_assert!(known <= counts.expired_total);
        }
    }
}

/// Allowed effects of a statement on its own domain.
fn stated(
    old: Option<DomainState>,
    new: Option<DomainState>,
    number: (u64, u64),
    host: u8,
    outcome: &Result<Accepted, Refused>,
    now: Moment,
) -> Result<(), TestCaseError> {
    let Some(old) = old else {
        let expected = DomainState { number, host, state: State::Live, until: Some(now.0 + LEASE) };
        match outcome {
            Ok(accepted) => {
                prop_assert_eq!(*accepted, Accepted::Registered);
                prop_assert_eq!(new, Some(expected));
            }
            Err(refused) => {
                let full = matches!(refused, Refused::Full { .. });
                prop_assert!(full, "{}", refused);
                prop_assert_eq!(new, None);
            }
        }
        return Ok(());
    };
    let new = new.expect("a domain that states itself is not dropped");
    prop_assert!(new.number.0 >= old.number.0, "terms never go down");
    prop_assert_eq!(new.number, old.number.max(number), "the highest is held");
    if number > old.number {
        prop_assert!(outcome.is_ok());
        prop_assert_eq!(new.host, host);
        prop_assert_eq!(new.until, Some(now.0 + LEASE));
        prop_assert!(old.until.is_none_or(|until| until <= now.0 + LEASE), "never shortened");
    } else {
        prop_assert_eq!(new, old, "only a new number changes anything");
        let expected_ok = number == old.number && host == old.host;
        prop_assert_eq!(outcome.is_ok(), expected_ok);
        prop_assert!(!expected_ok || *outcome == Ok(Accepted::Unchanged));
    }
    Ok(())
}

/// Other domains are unchanged, except that one without a lease may have been dropped.
fn others_keep(
    before: &BTreeMap<String, DomainState>,
    after: &BTreeMap<String, DomainState>,
    domain: &str,
) -> Result<(), TestCaseError> {
    let mut dropped = 0;
    for (name, old) in before.iter().filter(|(name, _)| *name != domain) {
        match after.get(name) {
            Some(new) => prop_assert_eq!(new, old),
            None => {
                dropped += 1;
                prop_assert!(old.state != State::Live);
            }
        }
    }
    prop_assert!(dropped <= 1);
    Ok(())
}
