//! The picture depends only on the time; every moving call is visible; ten thousand hosts are fast enough.

use super::*;
use crate::grid::place::Part;
use crate::synthetic;
use crate::timeline::Timeline;
use proptest::prelude::*;

const ALL: &dyn Fn(u32) -> bool = &|_| true;

proptest! {
    /// Stepping to a time at any speed and with pauses gives the same picture as jumping there.
    #[test]
    fn scrubbing_and_waiting_give_one_picture(
        seed in 0_u64..50,
        steps in proptest::collection::vec((0.0_f64..3.0, any::<bool>()), 0..40),
        target in 0.0_f64..1.0,
    ) {
        let grid = synthetic::grid(2, 6, 60, seed);
        let (first, last) = grid.span().unwrap();
        let mut waited = Timeline::of_log(first, last);
        waited.set_speed(100.0);
        for (secs, pauses) in steps {
            waited.tick(secs, last);
            let before = waited.time();
            let _ = scene(&grid, before, waited.flight_micros(), ALL);
            if pauses {
                waited.pause();
                waited.tick(5.0, last);
                prop_assert_eq!(waited.time(), before);
                waited.play();
            }
        }
        let mut scrubbed = Timeline::of_log(first, last);
        scrubbed.set_speed(100.0);
        scrubbed.scrub(waited.time());
        let seen = scene(&grid, waited.time(), waited.flight_micros(), ALL);
        prop_assert_eq!(&scene(&grid, scrubbed.time(), scrubbed.flight_micros(), ALL), &seen);
        let sum = |counts: &Counts| counts.waiting + counts.running;
        prop_assert_eq!(seen.domains.iter().map(sum).sum::<u32>(), sum(&seen.counts));
        // Jump away and back.
        let there = first.plus(std::time::Duration::from_secs_f64(last.since(first).as_secs_f64() * target));
        scrubbed.scrub(there);
        let _ = scene(&grid, scrubbed.time(), scrubbed.flight_micros(), ALL);
        scrubbed.scrub(waited.time());
        prop_assert_eq!(&scene(&grid, scrubbed.time(), scrubbed.flight_micros(), ALL), &seen);
    }

    /// At every time each call is in exactly one place, and the counts agree.
    #[test]
    fn every_call_is_somewhere(seed in 0_u64..50, share in 0.0_f64..1.0) {
        let grid = synthetic::grid(2, 6, 60, seed);
        let (first, last) = grid.span().unwrap();
        let time = first.plus(std::time::Duration::from_secs_f64(last.since(first).as_secs_f64() * share));
        let scene = scene(&grid, time, 1_000_000, ALL);
        let heard = grid.calls.iter().filter(|call| call.first().is_some_and(|at| at <= time)).count();
        let counts = scene.counts;
        let sum = counts.waiting + counts.running + counts.ok + counts.failed + counts.ended;
        prop_assert_eq!(sum as usize, heard);
        // The counts of a host follow the state of its calls, whether their marks have arrived or not.
        prop_assert_eq!(scene.places.iter().map(|standing| standing.waiting).sum::<u32>(), counts.waiting);
        for (id, standing) in (0..).map(crate::grid::place::PlaceId).zip(&scene.places) {
            let at_work = |call: &&Call| call.state_at(time) == Some(wire::call::State::Running);
            let here = grid.calls.iter().filter(|call| call.hosts.contains(&id)).filter(at_work).count();
            prop_assert_eq!(standing.working as usize, here);
        }
        for mark in &scene.marks {
            prop_assert!((0.0..=1.0).contains(&mark.share));
            prop_assert!(scene.edges.iter().any(|edge| (edge.from, edge.to, edge.leg) == (mark.from, mark.to, mark.leg)));
        }
    }
}

#[test]
fn calls_handed_in_together_are_each_seen() {
    let calls: Vec<_> =
        (0..8).map(|number| synthetic::call(&format!("slurm:{number}"), "ada", &["wn01"])).collect();
    let grid = synthetic::one_domain(&calls);
    let submitted = grid.calls[0].submitted.unwrap();
    let scene = scene(&grid, submitted.plus(std::time::Duration::from_millis(200)), 1_000_000, ALL);
    assert_eq!(scene.marks.len(), 8);
    let mut lanes: Vec<i32> = scene.marks.iter().map(|mark| mark.lane).collect();
    lanes.sort_unstable();
    assert_eq!(lanes, [-3, -2, -1, 0, 1, 2, 3, 4]);
    let edge = scene.edges.iter().find(|edge| edge.leg == Leg::Submit).unwrap();
    assert_eq!((edge.calls, grid.place(edge.to).part), (8, Part::Scheduler));
}

#[test]
fn a_failure_is_seen_before_what_goes_well() {
    let mut calls =
        vec![synthetic::call("slurm:1", "ada", &["wn01"]), synthetic::call("slurm:2", "ada", &["wn01"])];
    calls[1].outcome = Some(Outcome::Failed);
    let grid = synthetic::one_domain(&calls);
    let ended = grid.calls[0].ended.unwrap();
    let scene = scene(&grid, ended, 1_000_000, ALL);
    let edge = scene.edges.iter().find(|edge| edge.leg == Leg::Return).unwrap();
    assert_eq!((edge.calls, edge.tone), (2, Tone::Over(Outcome::Failed)));
    let host = scene.places.iter().find_map(|standing| standing.over).unwrap();
    assert_eq!(host, (Outcome::Failed, 1.0));
}

#[test]
fn what_does_not_fit_the_filter_is_not_seen() {
    let grid = synthetic::grid(1, 4, 30, 7);
    let (first, last) = grid.span().unwrap();
    let time = first.plus(last.since(first) / 2);
    let only = scene(&grid, time, 1_000_000, &|call| call == 3);
    assert!(only.marks.iter().all(|mark| mark.call == 3));
    let counts = only.counts;
    assert!(counts.waiting + counts.running + counts.ok + counts.failed + counts.ended <= 1);
}
