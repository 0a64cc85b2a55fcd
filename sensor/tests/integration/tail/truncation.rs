//! Logs truncated under the reader, copied first or not, grown again, and the resulting holes.

use crate::tail::changed::Sensor::{Killed, Running};
use crate::tail::changed::{FIRST, changed, changed_in, check, every_way};
use crate::tail::rig::Rig;
use std::os::unix::fs::FileExt;

#[test]
fn a_truncated_file_is_a_gap_of_unknown_size() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.truncate("log");
            rig.append("log", "three\n");
        });
        check(&rig, &["three"]);
        rig.check_gaps("log", &[("truncated", None)]);
    });
}

#[test]
fn a_file_truncated_to_nothing_and_left_so_is_a_gap() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| rig.truncate("log"));
        check(&rig, &[]);
        rig.check_gaps("log", &[("truncated", None)]);
    });
}

#[test]
fn regrowth_beyond_the_place_of_reading_is_noticed() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.truncate("log");
            rig.append("log", "y".repeat(500) + "\nfour\n");
        });
        check(&rig, &["y".repeat(500).as_str(), "four"]);
        rig.check_gaps("log", &[("regrown", None)]);
    });
}

#[test]
fn regrowth_with_the_same_bytes_before_the_place_of_reading_is_noticed() {
    every_way(|sensor| {
        let (one, other) = (format!("1 {}", "like".repeat(100)), format!("2 {}", "like".repeat(100)));
        let mut rig = Rig::new("log");
        rig.append("log", one.clone() + "\n");
        rig.start();
        if sensor != Running {
            rig.kill();
        }
        rig.truncate("log");
        rig.append("log", other.clone() + "\nlast\n");
        if sensor != Running {
            rig.start();
        }
        rig.look();
        assert_eq!(rig.lines(), [one, other, "last".to_owned()]);
        rig.check_gaps("log", &[("regrown", None)]);
    });
}

#[test]
fn regrowth_to_just_the_same_length_is_noticed() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.truncate("log");
            rig.append("log", "z".repeat(FIRST.len() - 1) + "\n");
        });
        check(&rig, &["z".repeat(FIRST.len() - 1).as_str()]);
        rig.check_gaps("log", &[("regrown", None)]);
    });
}

#[test]
fn without_the_content_regrowth_goes_unnoticed_and_lines_are_lost() {
    every_way(|sensor| {
        let rig = Rig::new("log").with_means(|means| means.content = false);
        let rig = changed_in(rig, sensor, |rig| {
            rig.truncate("log");
            rig.append("log", "y".repeat(500) + "\nfour\n");
        });
        assert!(!rig.lines().contains(&"y".repeat(500)));
        rig.check_gaps("log", &[]);
    });
}

#[test]
fn copytruncate_reads_what_is_left_from_the_copy_and_reports_the_race() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            rig.append("log", "three, only in the copy\n");
            std::fs::copy(rig.path("log"), rig.path("log.1")).unwrap();
            rig.truncate("log");
            rig.append("log", "four\n");
        });
        check(&rig, &["three, only in the copy", "four"]);
        rig.check_gaps("log", &[("truncated", None)]);
    });
}

#[test]
fn a_crash_while_a_copy_is_read_reports_the_gap_once() {
    let mut rig = changed(Killed, |rig| {
        rig.append("log", "three\n");
        std::fs::copy(rig.path("log"), rig.path("log.1")).unwrap();
        rig.truncate("log");
        rig.append("log", "four\n");
    });
    rig.kill();
    rig.start();
    check(&rig, &["three", "four"]);
    rig.check_gaps("log", &[("truncated", None)]);
}

#[test]
fn copytruncate_with_a_writer_that_keeps_its_place_leaves_a_hole_that_is_counted() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| {
            let writer = std::fs::OpenOptions::new().write(true).open(rig.path("log")).unwrap();
            rig.truncate("log");
            writer.write_all_at(b"three\n", FIRST.len() as u64).unwrap();
        });
        check(&rig, &["three"]);
        rig.check_gaps("log", &[("regrown", None)]);
        assert_eq!(rig.file("log").nul_bytes, FIRST.len() as u64);
    });
}

/// Writes a line after a hole of 8 MiB; then NUL bytes and another line.
fn holes(rig: &Rig) {
    let writer = std::fs::OpenOptions::new().write(true).open(rig.path("log")).unwrap();
    writer.write_all_at(b"three\n", HOLE + FIRST.len() as u64).unwrap();
    rig.append("log", [b"\0".repeat(1001), b"four\n".to_vec()].concat());
}

const HOLE: u64 = 8 << 20;

#[test]
fn holes_and_nuls_where_a_line_should_begin_are_skipped_and_counted() {
    every_way(|sensor| {
        let mut rig = changed(sensor, |rig| holes(rig));
        check(&rig, &["three", "four"]);
        rig.kill();
        rig.start();
        check(&rig, &["three", "four"]);
        assert_eq!(rig.file("log").nul_bytes, HOLE + 1001);
        rig.check_gaps("log", &[]);
    });
}

#[test]
fn without_skipping_holes_the_line_behind_a_hole_is_lost() {
    every_way(|sensor| {
        let rig = Rig::new("log").with_means(|means| means.holes = false);
        let rig = changed_in(rig, sensor, |rig| holes(rig));
        let lines = rig.lines();
        assert!(!lines.iter().any(|line| line == "three" || line == "four"), "the holes made no difference");
        assert_eq!(rig.file("log").nul_bytes, 0);
    });
}
