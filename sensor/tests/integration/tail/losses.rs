//! Loss reported by a gap: no known loss, or the exact number of bytes.

use crate::simulated::Simulated;
use crate::tail::changed::FIRST;
use crate::tail::rig::{Rig, text};
use std::sync::Arc;
use std::time::Duration;

const UNSEEN: &str = "nothing that was seen is lost; lines written between the last read and";

fn gap_texts(rig: &Rig) -> Vec<String> {
    let events = rig.events();
    events.iter().filter(|event| text(event, "name") == "gap").map(|event| text(event, "text")).collect()
}

#[test]
fn a_truncation_of_what_was_read_loses_nothing_that_was_seen() {
    let mut rig = Rig::new("log");
    rig.append("log", FIRST);
    rig.start();
    rig.truncate("log");
    rig.look();
    rig.check_gaps("log", &[("truncated", None)]);
    assert_eq!(gap_texts(&rig), [format!("{UNSEEN} the truncation may be")]);
}

/// A log that has grown by 700 bytes while the journal could not store them.
fn held() -> (Rig, Simulated) {
    let disk = Simulated::default();
    let mut rig = Rig::new("log");
    rig.disk = Some(Arc::new(disk.clone()));
    rig.append("log", FIRST);
    rig.start();
    disk.refuse_writes(u32::MAX);
    rig.append("log", "first\n");
    rig.pass(Duration::from_secs(2));
    rig.append("log", "x".repeat(699) + "\n");
    rig.pass(Duration::from_secs(2));
    (rig, disk)
}

fn freed(rig: &mut Rig, disk: &Simulated) {
    rig.pass(Duration::from_secs(2));
    disk.refuse_writes(0);
    rig.pass(Duration::from_secs(3));
}

#[test]
fn what_was_seen_and_not_read_before_a_truncation_is_counted() {
    let (mut rig, disk) = held();
    rig.truncate("log");
    freed(&mut rig, &disk);
    rig.check_gaps("log", &[("truncated", Some(700))]);
    assert!(gap_texts(&rig)[0].starts_with("700 bytes that were seen are lost"), "{:?}", gap_texts(&rig));
}

#[test]
fn new_content_is_not_taken_for_what_was_lost() {
    let (mut rig, disk) = held();
    rig.truncate("log");
    rig.append("log", "y".repeat(5000) + "\n");
    freed(&mut rig, &disk);
    rig.check_gaps("log", &[("regrown", Some(700))]);
}

#[test]
fn a_copy_takes_the_loss_away() {
    let (mut rig, disk) = held();
    std::fs::copy(rig.path("log"), rig.path("log.1")).unwrap();
    rig.truncate("log");
    freed(&mut rig, &disk);
    assert_eq!(rig.lines().len(), 4);
    rig.check_gaps("log", &[("truncated", None)]);
}

#[test]
fn a_rotated_file_that_was_read_and_deleted_while_the_sensor_was_down_loses_nothing_seen() {
    let mut rig = Rig::new("log");
    rig.append("log", FIRST);
    rig.start();
    rig.rename("log", "log.1");
    rig.append("log", "");
    rig.look();
    rig.stop();
    rig.remove("log.1");
    rig.start();
    rig.check_gaps("log", &[("missing", None)]);
    assert_eq!(gap_texts(&rig), [format!("{UNSEEN} the deletion may be")]);
}
