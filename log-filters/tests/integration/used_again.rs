//! Reused job numbers: a reinstalled cluster counts from one again, and its logs continue in the same files.
//!
//! The recorded logs are replayed twice, the second time with later stamps, in any interleaving of the files:
//! every job has two calls, equal except for the time. Not here: a single replay in any interleaving
//! (`joining`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{Read, registry};
use log_filters::found::Found;
use log_filters::join::Joiner;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use wire::call::{Call, Naming, State};
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::time::Time;

const SECOND: i64 = 1_000_000;

/// The events of each file of each cluster with unique call names.
fn clusters() -> &'static [Vec<Vec<Found>>] {
    static CLUSTERS: LazyLock<Vec<Vec<Vec<Found>>>> = LazyLock::new(|| {
        ["slurm/22.05.8-alpha", "slurm/15.08.7-linux", "torque/2.4.16-delta", "gridengine/8.1.9-alpha"]
            .iter()
            .map(|folder| {
                let folder = collection::folder().join(folder);
                let mut files: Vec<_> =
                    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
                files.sort();
                let logs: Vec<Read> =
                    files.iter().filter_map(|path| collection::read(registry(), path)).collect();
                assert!(logs.len() >= 4);
                let unique =
                    |found: &Found| found.keys.as_ref().is_some_and(|keys| keys.naming != Naming::Shared);
                logs.into_iter().map(|log| log.found.into_iter().filter(unique).collect()).collect()
            })
            .collect()
    });
    &CLUSTERS
}

/// The event in a later replay, `speed` times as fast.
fn replayed(found: &Found, speed: i64, later_secs: i64) -> Found {
    // The first stamp of the collection is some minutes after this moment.
    let begin = 1_795_176_000 * SECOND;
    let moved = |time: Time| {
        let whole_seconds = time.micros() % SECOND == 0;
        let micros = begin + (time.micros() - begin) / speed + later_secs * SECOND;
        // Stamps in whole seconds stay whole at any speed.
        Time::from_micros(if whole_seconds { micros.div_euclid(SECOND) * SECOND } else { micros })
    };
    let mut found = found.clone();
    let content = &mut found.content;
    content.time = moved(content.time);
    for time in [&mut content.submitted, &mut content.started, &mut content.ended] {
        *time = time.map(moved);
    }
    found
}

/// Join one replay of the cluster's logs; `choose` selects the next file.
fn feed(joiner: &mut Joiner, logs: &[Vec<Found>], life: u64, mut choose: impl FnMut(usize) -> usize) {
    let mut next = vec![0; logs.len()];
    loop {
        let open: Vec<usize> = (0..logs.len()).filter(|&log| next[log] < logs[log].len()).collect();
        if open.is_empty() {
            return;
        }
        let file = open[choose(open.len())];
        let found = &logs[file][next[file]];
        next[file] += 1;
        let generation = Generation(u32::try_from(file + 1).unwrap());
        // The second replay follows the first in the same file.
        let offset = found.offset + life * (1 << 30);
        joiner.join(found, Id { sensor: SensorKey(1), generation, offset, number: found.number });
    }
}

fn lives(logs: &[Vec<Found>], speed: i64, later_secs: i64) -> Vec<Vec<Found>> {
    logs.iter().map(|log| log.iter().map(|found| replayed(found, speed, later_secs)).collect()).collect()
}

/// Interleavings: runs of one file, as a sensor reads, of a given length.
fn chooser(choices: &[u32], run: usize) -> impl FnMut(usize) -> usize + '_ {
    let mut step = 0;
    move |open| {
        step += 1;
        choices[(step / run) % choices.len()] as usize % open
    }
}

/// Everything about a call in one replay except the absolute time; `base` is subtracted from every time.
fn shape(call: &Call, base: i64) -> String {
    let secs = |time: Option<Time>| time.map(|time| time.micros().div_euclid(SECOND) - base);
    let mut hosts = call.hosts.clone();
    hosts.sort();
    format!(
        "{} {:?} {:?} {:?} {:?} {hosts:?} {:?} {} {} {}",
        call.job,
        call.state,
        secs(call.submitted),
        secs(call.started),
        secs(call.ended),
        call.outcome,
        call.tries,
        call.user,
        call.name
    )
}

fn check_twice(logs: &[Vec<Found>], choices: &[u32], run: usize, later_secs: i64) {
    let mut once = Joiner::new(1_000_000);
    feed(&mut once, logs, 0, |_| 0);
    let mut joiner = Joiner::new(1_000_000);
    feed(&mut joiner, logs, 0, chooser(choices, run));
    let first = joiner.len();
    assert_eq!(first, once.len(), "calls of the first life");
    feed(&mut joiner, &lives(logs, 1, later_secs), 1, chooser(&choices[1..], run));
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for call in once.calls() {
        *expected.entry(shape(&call, 0)).or_default() += 1;
        *expected.entry(shape(&call, -later_secs)).or_default() += 1;
    }
    for call in joiner.calls() {
        *found.entry(shape(&call, 0)).or_default() += 1;
    }
    let missing: Vec<_> = expected.iter().filter(|&(shape, count)| found.get(shape) != Some(count)).collect();
    let besides: Vec<_> = found.iter().filter(|&(shape, count)| expected.get(shape) != Some(count)).collect();
    assert!(missing.is_empty() && besides.is_empty(), "missing {missing:#?}\nbesides {besides:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..Default::default() })]

    #[test]
    fn every_job_has_a_call_for_each_of_its_lives(
        cluster in 0usize..4,
        choices in prop::collection::vec(any::<u32>(), 64),
        run in 1usize..200,
        later_secs in 7_200i64..200_000,
    ) {
        check_twice(&clusters()[cluster], &choices, run, later_secs);
    }

    /// As `visperf up --demo --speed 200` with earlier state: hours become seconds, so a delay of seconds
    /// becomes one of hours, and a replay follows soon after the other.
    #[test]
    fn no_call_stays_open_that_the_logs_say_ended(
        cluster in 0usize..2,
        choices in prop::collection::vec(any::<u32>(), 64),
        run in 1usize..200,
        later_secs in 20i64..400,
    ) {
        let logs = &clusters()[cluster];
        let mut joiner = Joiner::new(1_000_000);
        feed(&mut joiner, &lives(logs, 200, 0), 0, chooser(&choices, run));
        let first = joiner.len();
        feed(&mut joiner, &lives(logs, 200, later_secs), 1, chooser(&choices[1..], run));
        let open: Vec<Call> = joiner.calls().filter(|call| call.state != State::Ended).collect();
        prop_assert!(open.is_empty(), "{open:#?}");
        prop_assert_eq!(joiner.len(), 2 * first);
    }
}
