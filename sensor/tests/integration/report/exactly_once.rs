//! Exactly-once delivery: every event is stored once, however connections break and hosts go down.

use crate::report::rig::Rig;
use crate::simulated::{Random, Simulated};
use sensor::representative::domain::Config;
use sensor::representative::store;

fn small_store() -> Config {
    let store = store::Config { segment_len_bytes: 20_000, budget_bytes: 1 << 30 };
    Config { store, ..Config::default() }
}

/// Runs one random step: anything that can happen.
fn step(rig: &mut Rig, random: &mut Random, powers: bool) {
    let nth = usize::try_from(random.below(rig.members.len() as u64)).unwrap();
    let (domain, now) = (&mut rig.domain, rig.now);
    let member = &mut rig.members[nth];
    match random.below(if powers { 40 } else { 36 }) {
        0..6 => member.read(random.below(30)),
        6..10 => member.sync(),
        10..16 => member.report(1 + random.below(3) as usize, 1 + random.below(40) as usize),
        16..26 => member.move_bytes(domain, random.below(4000) as usize, now),
        26..32 => {
            rig.commit();
            rig.deliver();
        }
        32..34 if member.link.is_none() => member.connect(domain),
        34 => member.disconnect(domain),
        36 => member.lose_power(random),
        37 => rig.lose_power(random),
        _ => {}
    }
}

fn run(seed: u64) -> (usize, usize, u64) {
    let mut random = Random::new(seed);
    let mut rig = Rig::new(3, small_store());
    for _ in 0..400 {
        step(&mut rig, &mut random, true);
    }
    rig.settle();
    let (lost, twice) = rig.faults();
    (lost, twice, rig.domain.counts().events_total)
}

#[test]
fn every_event_is_stored_once_through_cuts_and_power_losses() {
    let mut events = 0;
    for seed in 0..80 {
        let (lost, twice, stored) = run(seed);
        assert_eq!((lost, twice), (0, 0), "seed {seed}: lost, stored twice");
        events += stored;
    }
    assert!(events > 10_000, "{events} events are too few to show anything");
}

/// Members store little and delete what is acknowledged; then the representative loses power. Returns the
/// events lost.
fn lost_with_the_power(acknowledges_early: bool) -> usize {
    let mut rig = Rig::new(1, Config::default());
    let config = sensor::journal::Config { segment_len_bytes: 4_000, budget_bytes: 20_000 };
    rig.members = vec![crate::report::rig::Member::new(0, config)];
    rig.acknowledges_early = acknowledges_early;
    for _ in 0..40 {
        rig.members[0].read(50);
        rig.settle();
    }
    rig.acknowledges_early = false;
    rig.lose_power(&mut Random::new(1));
    rig.settle();
    rig.faults().0
}

#[test]
fn acknowledging_before_the_disk_has_it_would_lose_events() {
    assert_eq!(lost_with_the_power(false), 0);
    assert!(lost_with_the_power(true) > 500, "the control must fail");
}

/// A representative that requests more than it needs: repeated events are recognized by their numbers.
#[test]
fn what_is_sent_again_is_dropped() {
    use wire::report::{Frames, FromRepresentative, encode};
    let mut rig = Rig::new(1, Config::default());
    rig.members[0].read(500);
    rig.settle();
    rig.members[0].read(500);
    rig.members[0].sync();
    rig.members[0].connect(&mut rig.domain);
    let now = rig.now;
    rig.members[0].move_bytes(&mut rig.domain, usize::MAX, now);
    rig.deliver();
    let mut frames = Frames::default();
    frames.push(&std::mem::take(&mut rig.members[0].inbound));
    let mut forged = Vec::new();
    while let Some((frame, _)) = frames.take::<FromRepresentative>().unwrap() {
        let frame = match frame {
            FromRepresentative::Resume(mut resume) => {
                assert_eq!(resume.next, 500);
                resume.next = 120;
                FromRepresentative::Resume(resume)
            }
            other @ (FromRepresentative::Durable(_)
            | FromRepresentative::Allow(_)
            | FromRepresentative::Marks(_)
            | FromRepresentative::Fetch(_)
            | FromRepresentative::Minutes(_)
            | FromRepresentative::Calls(_)
            | FromRepresentative::FetchSamples(_)
            | FromRepresentative::Samples(_)
            | FromRepresentative::Refused(_)) => other,
        };
        encode(&frame, &mut forged).unwrap();
    }
    rig.members[0].inbound = forged;
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
    assert_eq!(rig.domain.counts().duplicates_total, 380, "without numbers these would be stored twice");
    assert_eq!(rig.members[0].sender.counts().resent_total, 380);
}

/// Representatives change, an old one returns, some have an empty disk.
#[test]
fn fail_over_loses_and_doubles_nothing() {
    for seed in 0..40 {
        let mut random = Random::new(1000 + seed);
        let mut rig = Rig::new(3, small_store());
        let mut disks = [Simulated::default(), Simulated::default()];
        for change in 0..6u64 {
            for _ in 0..80 {
                step(&mut rig, &mut random, true);
            }
            let (old, new) = (rig.disk.clone(), random.below(2) as usize);
            let disk = std::mem::replace(&mut disks[new], old);
            rig.fail_over(disk, 200 + change);
        }
        rig.settle();
        let (lost, twice) = rig.faults();
        assert_eq!((lost, twice), (0, 0), "seed {seed}: lost, stored twice");
    }
}

/// A disk that reported a sync without doing it: the member's journal goes back, and its numbers mean other
/// events.
#[test]
fn a_journal_that_went_back_doubles_nothing() {
    let mut rig = Rig::new(2, Config::default());
    rig.members[0].read(300);
    rig.settle();
    let before: Vec<(String, Vec<u8>)> = {
        let disk = &rig.members[0].disk;
        disk.names().into_iter().map(|name| (name.clone(), disk.content(&name))).collect()
    };
    rig.members[0].read(200);
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
    rig.members[0].disconnect(&mut rig.domain);
    for (name, content) in before {
        rig.members[0].disk.set_content(&name, content);
    }
    rig.members[0].reopen();
    assert_eq!(rig.members[0].lines(), 300);
    // The lines are read again in other portions, and more lines follow.
    for lines in [7, 150, 43, 300] {
        rig.members[0].read(lines);
        rig.settle();
        rig.members[0].disconnect(&mut rig.domain);
    }
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
    assert_eq!(rig.stored().len(), 800);
}

#[test]
fn what_is_not_durable_is_not_given() {
    let mut rig = Rig::new(1, Config::default());
    let member = &mut rig.members[0];
    member.sync();
    member.read(10);
    assert_eq!(member.outbox.read(0, 100).unwrap(), None);
    member.sync();
    member.read(5);
    assert_eq!(member.outbox.read(0, 100).unwrap().map(|events| events.len()), Some(10));
    assert_eq!(member.outbox.read(10, 100).unwrap(), None);
    member.sync();
    assert_eq!(member.outbox.read(10, 3).unwrap().map(|events| (events.first, events.len())), Some((10, 3)));
    assert_eq!(
        member.outbox.read(12, 100).unwrap().map(|events| (events.first, events.len())),
        Some((12, 3))
    );
}
