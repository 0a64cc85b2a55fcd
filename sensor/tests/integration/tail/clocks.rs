//! Clocks of the tail: how soon it looks by itself, and a wall clock that jumps.

use crate::tail::rig::Rig;
use std::time::Duration;

#[test]
fn changes_without_a_notification_are_found_within_two_seconds() {
    let mut rig = Rig::started();
    rig.append("log", "one\n");
    rig.pass(Duration::from_millis(1999));
    assert_eq!(rig.lines(), [""; 0], "the first start was at 0; the next look is due at 2 s");
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.lines(), ["one"]);
}

#[test]
fn a_clock_that_jumps_back_changes_no_order() {
    use std::sync::atomic::Ordering;
    let mut rig = Rig::started();
    rig.append("log", "one\n");
    rig.look();
    rig.clocks.wall_micros.store(1_000_000_000_000_000, Ordering::SeqCst);
    rig.append("log", "two\n");
    rig.look();
    rig.kill();
    rig.start();
    let events = rig.events();
    assert_eq!(rig.lines(), ["one", "two"]);
    assert!(events[1].seen < events[0].seen && events[1].id > events[0].id);
}
