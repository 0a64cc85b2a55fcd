//! Filters that are too slow, or missing.

use crate::tail::rig::Rig;
use sensor::tail::path_status::PathStatus;
use std::time::Duration;

/// Creates a log whose filter was quarantined after a thousand lines.
fn slow() -> Rig {
    let mut rig = Rig::new("*");
    rig.work_micros_per_line = 1000;
    rig.append("log", "short\n".repeat(1000));
    rig.start();
    rig
}

#[test]
fn a_filter_that_is_too_slow_is_stopped_and_nothing_else_is() {
    let mut rig = slow();
    rig.append("log", "never read\nnor sent as incompl");
    rig.pass(Duration::from_secs(30));
    assert_eq!(rig.notices("quarantine").len(), 1);
    assert!(rig.file("log").status.to_string().contains("quarantine"), "{:?}", rig.file("log"));
    assert!(!rig.lines().contains(&"never read".to_owned()));
    rig.kill();
    rig.work_micros_per_line = 0;
    rig.start();
    assert_eq!(rig.lines().last().unwrap(), "never read", "the next run tries again, from where it stopped");
}

#[test]
fn a_filter_that_was_too_slow_is_tried_again_and_goes_on_where_it_stopped() {
    let mut rig = slow();
    rig.append("log", "after the rest\n");
    rig.pass(Duration::from_secs(30));
    assert!(!rig.lines().contains(&"after the rest".to_owned()));
    rig.pass(Duration::from_secs(31));
    assert_eq!(rig.lines().last().unwrap(), "after the rest");
    assert_eq!((rig.lines().len(), rig.notices("quarantine").len()), (1001, 1));
    assert_eq!(rig.file("log").status, PathStatus::Following);
}

#[test]
fn a_file_no_filter_knows_is_told_and_not_read() {
    let mut rig = Rig::new("*");
    rig.append("unknown", "one\n");
    rig.start();
    assert!(rig.file("unknown").status.to_string().contains("no filter"));
    assert!(!rig.file("unknown").is_unhealthy(), "found by a glob: a note");
    assert_eq!(rig.events().len(), 0);

    let mut named = Rig::new("unknown");
    named.append("unknown", "one\n");
    named.start();
    assert!(named.file("unknown").is_unhealthy(), "given by its name: something is wrong");
}

#[test]
fn a_named_file_that_is_not_there_is_awaited_with_its_filter() {
    let mut rig = Rig::new("folder/log");
    rig.start();
    let file = rig.file("folder/log");
    assert!(file.status == PathStatus::Awaited && !file.is_unhealthy(), "{file:?}");
    assert_ne!(file.filter, "", "its name shows which");
    assert!(file.status.to_string().contains("as soon as it comes"), "{file:?}");

    let mut come = Rig::new("log");
    come.start();
    assert_eq!(come.file("log").status, PathStatus::Awaited);
    come.append("log", "one\n");
    come.look();
    assert_eq!(come.file("log").status, PathStatus::Following);
}
