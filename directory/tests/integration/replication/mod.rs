//! Replication of directories under every fault of the simulated network, seed by seed.
//!
//! `VISPERF_SEEDS` is the number of histories (default 200), `VISPERF_SEED` runs one. Each law also has a
//! control: with its mechanism switched off, some history violates it.

mod laws;
mod statements;
mod world;

use std::time::Duration;
use wire::time::Moment;
use world::{Off, World};

const FAULTS: Duration = Duration::from_secs(70);
const HEALED_WITHIN: Duration = Duration::from_secs(10);
/// Time for a message in transit when the representatives stop, to be announced and fetched.
const IN_FLIGHT: Duration = Duration::from_secs(1);

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match number("VISPERF_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("VISPERF_SEEDS").unwrap_or(200),
    }
}

/// Run a history. Returns the violated laws.
fn history(seed: u64, off: Off) -> Vec<String> {
    let mut world = World::new(seed, off);
    world.run(FAULTS);
    world.heal();
    world.run(FAULTS + HEALED_WITHIN - IN_FLIGHT);
    world.silence();
    world.run(FAULTS + HEALED_WITHIN);
    let now = world.now;
    let mut laws = std::mem::replace(&mut world.laws, laws::Laws::new(0));
    let all: Vec<_> = world
        .machines
        .iter()
        .map(|machine| (machine.replicas.registry(), Moment(now + machine.ahead())))
        .collect();
    laws.look_at_all(&all);
    laws.broken
}

#[test]
fn every_history_keeps_the_laws() {
    for seed in seeds() {
        let broken = history(seed, Off::Nothing);
        assert!(broken.is_empty(), "VISPERF_SEED={seed}: {:#?}", &broken[..broken.len().min(5)]);
    }
}

/// With `off` switched off, some of the first histories violate the law of that name.
fn control(off: Off, expected: &str) {
    let found = (0..100).find(|&seed| history(seed, off).iter().any(|broken| broken.starts_with(expected)));
    assert!(found.is_some(), "without {off:?} nothing was broken; the test cannot fail");
}

#[test]
fn without_remaining_times_a_lease_is_extended() {
    control(Off::Remaining, "lease extended");
}

#[test]
fn without_leaves_handed_on_the_gone_come_back() {
    control(Off::Leaves, "resurrected");
}

#[test]
fn without_digests_directories_stay_different() {
    control(Off::Digests, "directories 0 and");
}

#[test]
fn without_higher_terms_the_highest_does_not_win() {
    control(Off::HigherTerms, "not the highest");
}

#[test]
fn without_last_seen_a_snapshot_makes_live() {
    control(Off::LastSeen, "live without a new statement");
}
