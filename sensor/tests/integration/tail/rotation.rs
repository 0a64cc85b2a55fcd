//! Logs renamed, deleted and created again: every file is read to its end, and once.

use crate::tail::changed::Sensor::{Killed, Running, Stopped};
use crate::tail::changed::{FIRST, changed, changed_in, check, every_way};
use crate::tail::rig::Rig;
use std::io::Write;
use std::time::Duration;

#[test]
fn lines_are_reported_once_whatever_the_stops() {
    every_way(|sensor| {
        let mut rig = changed(sensor, |rig| rig.append("log", "three\nfour\n"));
        rig.kill();
        rig.start();
        check(&rig, &["three", "four"]);
        rig.check_gaps("log", &[]);
    });
}

#[test]
fn rename_rotation_finishes_the_old_file_first() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            let mut writer = rig.open("log");
            rig.rename("log", "log.1");
            rig.append("log", "four\n");
            writer.write_all(b"three\n").unwrap();
        });
        check(&rig, &["three", "four"]);
        rig.check_gaps("log", &[]);
        assert_eq!(rig.file("log").generation, 2);
    });
}

#[test]
fn a_rotated_file_is_known_by_what_it_is_and_not_by_its_name() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.append("log", "three\n");
            rig.rename("log", "quite another name");
            rig.append("log.1", "a stranger that was never the log\n");
            rig.append("log", "four\n");
        });
        assert!(rig.lines().contains(&"three".to_owned()));
        rig.check_gaps("log", &[]);
    });
}

#[test]
fn two_rotations_between_two_looks_lose_nothing() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.append("log", "three\n");
            rig.rename("log", "log.1");
            rig.append("log", "four, in a file no one saw under its first name\n");
            rig.rename("log.1", "log.2");
            rig.rename("log", "log.1");
            rig.append("log", "five\n");
        });
        check(&rig, &["three", "four, in a file no one saw under its first name", "five"]);
        rig.check_gaps("log", &[]);
    });
}

#[test]
fn without_looking_at_siblings_a_rotation_while_stopped_is_a_gap() {
    let rig = Rig::new("log").with_means(|means| means.siblings = false);
    let rig = changed_in(rig, Stopped, |rig| {
        rig.append("log", "three\n");
        rig.rename("log", "log.1");
        rig.append("log", "four\n");
    });
    check(&rig, &["four"]);
    rig.check_gaps("log", &[("missing", None)]);
}

#[test]
fn a_late_writer_of_a_rotated_file_is_heard() {
    let mut rig = Rig::started();
    let mut late = rig.open("log");
    late.write_all(b"one\n").unwrap();
    rig.look();
    rig.rename("log", "log.1");
    rig.append("log", "two\n");
    rig.look();
    rig.pass(Duration::from_secs(3600));
    late.write_all(b"three, an hour after the rotation\n").unwrap();
    rig.look();
    assert_eq!(rig.lines(), ["one", "two", "three, an hour after the rotation"]);
    rig.kill();
    late.write_all(b"four, while the sensor is down\n").unwrap();
    rig.start();
    assert_eq!(rig.lines().last().unwrap(), "four, while the sensor is down");
    rig.check_gaps("log", &[]);
}

#[test]
fn a_rotated_file_that_the_glob_matches_too_is_not_read_twice() {
    every_way(|sensor| {
        let mut rig = changed_in(Rig::new("log*"), sensor, |rig| {
            rig.rename("log", "log.1");
            rig.append("log", "three\n");
        });
        check(&rig, &["three"]);
        rig.kill();
        rig.start();
        check(&rig, &["three"]);
    });
}

#[test]
fn a_deleted_file_is_read_to_its_end_while_the_sensor_runs() {
    let rig = changed(Running, |rig| {
        let mut writer = rig.open("log");
        writer.write_all(b"three\n").unwrap();
        rig.remove("log");
        rig.append("log", "four\n");
        writer.write_all(b"unfinished").unwrap();
    });
    check(&rig, &["three", "four"]);
    rig.check_gaps("log", &[]);
}

#[test]
fn without_its_descriptor_a_deleted_file_is_lost() {
    let rig = Rig::new("log").with_means(|means| means.descriptor = false);
    let rig = changed_in(rig, Running, |rig| {
        rig.append("log", "three\n");
        rig.remove("log");
        rig.append("log", "four\n");
    });
    check(&rig, &["four"]);
}

#[test]
fn a_file_deleted_or_compressed_while_stopped_is_a_gap() {
    for sensor in [Stopped, Killed] {
        let rig = changed(sensor, |rig| {
            rig.append("log", "three, which no one will read\n");
            rig.remove("log");
            rig.append("log.1.gz", "as good as compressed");
            rig.append("log", "four\n");
        });
        check(&rig, &["four"]);
        rig.check_gaps("log", &[("missing", None)]);
    }
}

#[test]
fn an_inode_used_again_is_not_taken_for_the_old_file() {
    for sensor in [Stopped, Killed] {
        let rig = changed(sensor, |rig| {
            rig.remove("log");
            // As long as the old one and longer, so that only birth time and content differ.
            rig.append("log", "x".repeat(FIRST.len() + 10) + "\nfour\n");
        });
        assert_eq!(rig.lines().last().unwrap(), "four");
        assert_eq!(rig.lines().len(), 4);
        rig.check_gaps("log", &[("missing", None)]);
    }
}
