//! Unusual lines and records: unfinished, of several lines, huge, not text.

use crate::tail::changed::Sensor::Running;
use crate::tail::changed::{changed, check, every_way};
use std::time::Duration;

#[test]
fn a_partial_last_line_is_held_then_reported_as_incomplete_once_and_completed_later() {
    every_way(|sensor| {
        let mut rig = changed(sensor, |rig| rig.append("log", "thr"));
        check(&rig, &[]);
        assert_eq!(rig.notices("incomplete").len(), 0, "too early");
        rig.pass(Duration::from_secs(5));
        assert_eq!(rig.notices("incomplete"), [(String::new(), "3".to_owned())]);
        rig.pass(Duration::from_secs(60));
        rig.kill();
        rig.start();
        rig.pass(Duration::from_secs(60));
        assert_eq!(rig.notices("incomplete").len(), 1, "reported once, restarts included");
        check(&rig, &[]);
        rig.append("log", "ee\n");
        rig.look();
        check(&rig, &["three"]);
        assert_eq!(rig.file("log").incomplete, 1);
    });
}

#[test]
fn a_record_of_several_lines_survives_every_stop_and_is_closed_when_it_is_quiet() {
    every_way(|sensor| {
        let mut rig = changed(sensor, |rig| rig.append("log", "+record\n a\n"));
        check(&rig, &[]);
        rig.kill();
        rig.append("log", " b\n");
        rig.start();
        check(&rig, &[]);
        rig.pass(Duration::from_secs(6));
        check(&rig, &["+record a b"]);
        rig.append("log", "+next\n c\nlast\n");
        rig.look();
        check(&rig, &["+record a b", "+next c", "last"]);
        assert_eq!(rig.file("log").lines, 8, "lines read again are not counted again");
    });
}

#[test]
fn a_huge_line_is_cut_flagged_and_hashed() {
    every_way(|sensor| {
        let huge = "h".repeat(10 << 20);
        let rig = changed(sensor, |rig| {
            rig.append("log", &huge);
            if sensor == Running {
                rig.look();
            }
            rig.append("log", "\nafter\n");
        });
        let lines = rig.lines();
        assert_eq!((lines[2].len(), lines[3].as_str()), (1 << 20, "after"));
        assert_eq!(rig.notices("oversize"), [(String::new(), (10 << 20).to_string())]);
        let events = rig.events();
        let oversize =
            events.iter().find(|event| crate::tail::rig::text(event, "name") == "oversize").unwrap();
        let hash = sensor::tail::lines::hash_of(huge.as_bytes());
        assert_eq!(crate::tail::rig::text(oversize, "xxh3"), format!("{hash:016x}"));
        assert_eq!(rig.file("log").oversize, 1);
    });
}

#[test]
fn bytes_that_are_no_text_come_through() {
    every_way(|sensor| {
        let rig = changed(sensor, |rig| rig.append("log", b"\xff\xfe caf\xe9\0x\r\nnext\n"));
        let events = rig.events();
        let bytes = events[2].content.attribute("line");
        assert_eq!(bytes, Some(&wire::event::Value::Bytes(b"\xff\xfe caf\xe9\0x".to_vec())));
        assert_eq!(rig.lines()[3], "next");
    });
}
