//! Hostile messages of another directory and hostile bytes: no panic, no unbounded table, nothing stored that
//! is not admitted.

use directory::admission::{Admission, List};
use directory::registry::Registry;
use directory::replicate::{Output, Replicas};
use proptest::prelude::*;
use std::time::Duration;
use wire::codec;
use wire::id::{DomainName, PeerKey};
use wire::replication::{
    Answer, DenialNumber, Detail, FETCH_MAX, Number, Question, ReplicaAnswer, ReplicaQuestion,
};
use wire::time::Moment;

const OTHER: PeerKey = PeerKey([9; 32]);

fn domain(at: u8) -> DomainName {
    DomainName::try_from(format!("d{at}").as_str()).expect("a name")
}

fn directory() -> Replicas {
    let mut list = List::default();
    for at in 0..8 {
        list.add(domain(at), PeerKey([1; 32])).expect("few");
    }
    let admission = Admission::new(list, List::default());
    Replicas::among(Registry::new(5), admission, &[OTHER], 1, Moment::default()).expect("one")
}

fn number() -> impl Strategy<Value = Number> {
    (any::<u64>(), any::<u8>(), any::<u64>()).prop_map(|(term, peer, sequence)| Number {
        term,
        peer: PeerKey([peer; 32]),
        sequence,
    })
}

fn detail() -> impl Strategy<Value = Detail> {
    let denial = (any::<Option<u32>>(), any::<u64>());
    let denial = denial.prop_map(|(delegation, number)| DenialNumber { delegation, number });
    let numbers = proptest::collection::vec(number(), 0..9);
    let denials = proptest::collection::vec(denial, 0..4);
    (0..16_u8, numbers, proptest::option::of(number()), denials)
        .prop_map(|(at, numbers, left, denials)| Detail { domain: domain(at), numbers, left, denials })
}

#[derive(Clone, Debug)]
enum Step {
    Hints(Vec<Detail>),
    Digest(u16, u16, Vec<u64>),
    Fetch(Vec<u8>),
    Details(Vec<Detail>, u16, bool),
    Items(u32),
    Taken,
    Failure,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let details = || proptest::collection::vec(detail(), 0..20);
    prop_oneof![
        details().prop_map(Step::Hints),
        (any::<u16>(), any::<u16>(), proptest::collection::vec(any::<u64>(), 0..1100))
            .prop_map(|(start, buckets, sums)| Step::Digest(start, buckets, sums)),
        proptest::collection::vec(0..16_u8, 0..600).prop_map(Step::Fetch),
        (details(), any::<u16>(), any::<bool>())
            .prop_map(|(all, buckets, settled)| Step::Details(all, buckets, settled)),
        any::<u32>().prop_map(Step::Items),
        Just(Step::Taken),
        Just(Step::Failure),
        (0..9000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn another_directory_may_say_anything(steps in proptest::collection::vec(step(), 1..60)) {
        let mut replicas = directory();
        let mut now = Moment::default();
        let mut open = Vec::new();
        for step in steps {
            let id = open.pop();
            match step {
                Step::Hints(details) => {
                    let _ = replicas.handle_question(OTHER, ReplicaQuestion::Hints(details), now);
                }
                Step::Digest(start, buckets, sums) => {
                    let question = ReplicaQuestion::Digest { start, buckets, sums };
                    let _ = replicas.handle_question(OTHER, question, now);
                }
                Step::Fetch(names) => {
                    let question = ReplicaQuestion::Fetch(names.into_iter().map(domain).collect());
                    let answer = replicas.handle_question(OTHER, question, now).expect("a peer");
                    let ReplicaAnswer::Items { domains, .. } = answer else { panic!("items") };
                    prop_assert!(domains as usize <= FETCH_MAX);
                }
                Step::Details(details, buckets, settled) => {
                    let answer = ReplicaAnswer::Details { details, buckets, settled };
                    replicas.handle_answer(OTHER, id.unwrap_or(0), answer, now);
                }
                Step::Items(domains) => {
                    let answer = ReplicaAnswer::Items { items: vec![], domains };
                    replicas.handle_answer(OTHER, id.unwrap_or(0), answer, now);
                }
                Step::Taken => replicas.handle_answer(OTHER, id.unwrap_or(0), ReplicaAnswer::Taken, now),
                Step::Failure => replicas.handle_failure(OTHER, id.unwrap_or(0)),
                Step::Wait(millis) => {
                    now = now.plus(Duration::from_millis(millis));
                    replicas.handle_timeout(now);
                }
            }
            while let Some(output) = replicas.poll_output() {
                let Output::Ask { id, question, .. } = output else { continue };
                if let ReplicaQuestion::Fetch(domains) = &question {
                    prop_assert!(domains.len() <= FETCH_MAX);
                    prop_assert!(domains.iter().all(|name| (0..8).any(|at| *name == domain(at))), "admitted only");
                }
                open.push(id);
                prop_assert!(open.len() <= 500);
            }
            prop_assert_eq!(replicas.registry().domains(now).count(), 0, "numbers alone teach nothing");
            replicas.handle_timeout(now);
            prop_assert!(replicas.poll_timeout().is_none_or(|at| at > now), "no turning on the spot");
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = codec::decode::<Question>(&bytes);
        let _ = postcard::from_bytes::<Question>(&bytes);
        let _ = postcard::from_bytes::<Answer>(&bytes);
        if let Ok(list) = List::parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert_eq!(List::parse(&list.to_text()), Ok(list));
        }
    }
}
