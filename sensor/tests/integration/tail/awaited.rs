//! Events that a client waits for are durable at once, within the rate limit; others at their regular time.

use crate::tail::rig::Rig;
use sensor::segments::sync_limiter::{BURST, SPACING};
use std::time::Duration;

fn durable(rig: &Rig) -> u64 {
    rig.ingest.as_ref().unwrap().reader().durable()
}

fn await_durable(rig: &Rig, waits: bool) -> bool {
    rig.ingest.as_ref().unwrap().reader().await_durable(waits)
}

#[test]
fn an_event_that_a_client_waits_for_is_durable_in_the_turn_that_reads_it() {
    let mut rig = Rig::started();
    rig.append("log", "first\n");
    rig.look();
    rig.pass(rig.config.sync_every);
    assert!(!await_durable(&rig, true), "there is nothing to be woken for");
    let before = durable(&rig);
    rig.append("log", "one\n");
    rig.notify("log");
    assert_eq!(durable(&rig), before + 1);
    // The control: no client waits.
    await_durable(&rig, false);
    rig.append("log", "two\n");
    rig.notify("log");
    rig.pass(rig.config.sync_every - Duration::from_millis(1));
    assert_eq!(durable(&rig), before + 1);
    rig.pass(Duration::from_millis(1));
    assert_eq!(durable(&rig), before + 2);
}

#[test]
fn who_begins_to_wait_for_what_was_read_is_not_kept_waiting() {
    let mut rig = Rig::started();
    rig.append("log", "first\n");
    rig.look();
    rig.pass(rig.config.sync_every);
    rig.append("log", "one\n");
    rig.notify("log");
    let before = durable(&rig);
    assert!(await_durable(&rig, true), "the tail must be woken");
    assert!(!await_durable(&rig, true), "it is woken once");
    rig.pass(Duration::ZERO);
    assert_eq!(durable(&rig), before + 1);
}

#[test]
fn however_many_events_come_syncs_keep_their_pace() {
    let mut rig = Rig::started();
    rig.append("log", "first\n");
    rig.look();
    rig.pass(Duration::from_secs(10));
    await_durable(&rig, true);
    let (mut syncs, mut known) = (0, durable(&rig));
    let (step, span) = (Duration::from_millis(1), Duration::from_secs(4));
    let mut late = 0;
    for _ in 0..span.as_millis() / step.as_millis() {
        rig.append("log", "one\n");
        rig.notify("log");
        rig.pass(step);
        let next = durable(&rig);
        (syncs, late) = if next > known { (syncs + 1, 0) } else { (syncs, late + 1) };
        known = next;
        assert!(late <= SPACING.as_millis(), "nothing was durable for {late} ms");
    }
    let most = BURST + u32::try_from(span.as_millis() / SPACING.as_millis()).unwrap();
    assert!((most - 2..=most + 1).contains(&syncs), "{syncs} syncs, {most} at most");
}
