//! Every way in which a log can change under the tail, with the sensor running and stopped meanwhile.
//! Each is checked against the truth: every line once, every gap counted, and nothing told as a gap that
//! was read. For each means of recognition a control switches it off and sees the loss.

use crate::rig::Rig;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Whether the sensor runs while the log changes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sensor {
    Running,
    Stopped,
    Killed,
}

use Sensor::{Killed, Running, Stopped};

/// A started rig on a log with two lines read, about to be changed by `change`; then the rig has looked.
pub(crate) fn changed(sensor: Sensor, change: impl FnOnce(&mut Rig)) -> Rig {
    changed_in(Rig::new("log"), sensor, change)
}

pub(crate) const FIRST: &str = "one, long enough to be told from other beginnings of logs\n\
                     two, of the same kind but with other words in it\n";

pub(crate) fn changed_in(mut rig: Rig, sensor: Sensor, change: impl FnOnce(&mut Rig)) -> Rig {
    rig.append("log", FIRST);
    rig.start();
    match sensor {
        Running => {}
        Stopped => rig.stop(),
        Killed => rig.kill(),
    }
    change(&mut rig);
    if sensor != Running {
        rig.start();
    }
    rig.look();
    rig.pass(Duration::from_secs(3));
    rig
}

/// The first two lines, then these.
pub(crate) fn check(rig: &Rig, more: &[&str]) {
    let expected: Vec<_> = FIRST.lines().chain(more.iter().copied()).collect();
    assert_eq!(rig.lines(), expected);
}

pub(crate) fn every_way(test: impl Fn(Sensor)) {
    for sensor in [Running, Stopped, Killed] {
        test(sensor);
    }
}

#[test]
fn lines_are_told_once_whatever_the_stops() {
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
            rig.append("log", "four, in a file nobody saw under its first name\n");
            rig.rename("log.1", "log.2");
            rig.rename("log", "log.1");
            rig.append("log", "five\n");
        });
        check(&rig, &["three", "four, in a file nobody saw under its first name", "five"]);
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
            rig.append("log", "three, which nobody will read\n");
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
            // As long as the old one and longer, so that only birth and content can tell.
            rig.append("log", "x".repeat(FIRST.len() + 10) + "\nfour\n");
        });
        assert_eq!(rig.lines().last().unwrap(), "four");
        assert_eq!(rig.lines().len(), 4);
        rig.check_gaps("log", &[("missing", None)]);
    }
}

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
fn copytruncate_reads_what_is_left_from_the_copy_and_tells_the_race() {
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
fn a_crash_while_a_copy_is_read_tells_the_gap_once() {
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

/// A hole of 8 MiB that was never written, then a line; and NULs that were written, then another.
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

#[test]
fn a_partial_last_line_is_held_then_told_as_incomplete_once_and_completed_later() {
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
        assert_eq!(rig.notices("incomplete").len(), 1, "told once, restarts included");
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
        let told = events.iter().find(|event| crate::rig::text(event, "name") == "oversize").unwrap();
        let hash = sensor::tail::lines::hash_of(huge.as_bytes());
        assert_eq!(crate::rig::text(told, "xxh3"), format!("{hash:016x}"));
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

#[test]
fn a_missing_folder_is_waited_for_and_a_new_file_is_read_from_its_beginning() {
    let mut rig = Rig::new("later/log");
    rig.config.files[0].start = sensor::tail::Start::End;
    rig.start();
    assert!(rig.file("later/log").health.contains("cannot look"), "{:?}", rig.file("later/log"));
    std::fs::create_dir(rig.path("later")).unwrap();
    rig.append("later/log", "one\n");
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.lines(), ["one"]);
    assert_eq!(rig.file("later/log").health, "");
}

#[test]
fn where_to_begin_with_a_file_that_is_there_at_the_first_start() {
    use sensor::tail::{FirstStart, Start};
    let cases = [
        (Start::Beginning, FirstStart::End, &["old", "new"][..]),
        (Start::End, FirstStart::Beginning, &["new"]),
        (Start::Checkpoint, FirstStart::Beginning, &["old", "new"]),
        (Start::Checkpoint, FirstStart::End, &["new"]),
    ];
    for (start, first_start, expected) in cases {
        let mut rig = Rig::new("log");
        (rig.config.files[0].start, rig.config.first_start) = (start, first_start);
        rig.append("log", "old\npart");
        rig.start();
        rig.kill();
        rig.append("log", "ial\nnew\n");
        rig.start();
        let lines: Vec<_> = rig.lines().into_iter().filter(|line| line != "partial").collect();
        assert_eq!(lines, expected, "{start:?} {first_start:?}");
        rig.kill();
        rig.start();
        assert_eq!(rig.lines().len(), rig.events().len(), "a second start goes on from the checkpoint");
    }
}

#[test]
fn a_link_to_another_file_is_a_rotation_and_one_out_of_the_folder_is_refused() {
    every_way(|sensor| {
        let mut rig = Rig::new("link");
        rig.append("a", "one\n");
        std::os::unix::fs::symlink("a", rig.path("link")).unwrap();
        rig.start();
        if sensor != Running {
            rig.kill();
        }
        rig.append("a", "two\n");
        rig.append("b", "three\n");
        rig.remove("link");
        std::os::unix::fs::symlink("b", rig.path("link")).unwrap();
        if sensor != Running {
            rig.start();
        }
        rig.look();
        assert_eq!(rig.lines(), ["one", "two", "three"]);
        let secret = rig.directory.path().join("secret");
        std::fs::write(&secret, "not for us\n").unwrap();
        rig.remove("link");
        std::os::unix::fs::symlink(&secret, rig.path("link")).unwrap();
        rig.look();
        assert_eq!(rig.lines().len(), 3);
        assert!(rig.file("link").health.contains("outside the allowed roots"), "{:?}", rig.file("link"));
    });
}

#[test]
fn a_file_replaced_by_a_folder_or_a_fifo_is_finished_and_taken_up_again_later() {
    every_way(|sensor| {
        for kind in ["folder", "fifo"] {
            let mut rig = changed(sensor, |rig| {
                rig.append("log", "three\n");
                rig.rename("log", "log.1");
                match kind {
                    "folder" => std::fs::create_dir(rig.path("log")).unwrap(),
                    _ => {
                        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                        let fifo = rustix::fs::FileType::Fifo;
                        rustix::fs::mknodat(rustix::fs::CWD, rig.path("log"), fifo, mode, 0).unwrap();
                    }
                }
            });
            check(&rig, &["three"]);
            assert!(rig.file("log").health.contains("expected a plain file"), "{:?}", rig.file("log"));
            match kind {
                "folder" => std::fs::remove_dir(rig.path("log")).unwrap(),
                _ => rig.remove("log"),
            }
            rig.append("log", "four\n");
            rig.look();
            check(&rig, &["three", "four"]);
            rig.check_gaps("log", &[]);
        }
    });
}

#[test]
fn a_disk_that_vanishes_is_waited_for() {
    every_way(|sensor| {
        let mut rig = Rig::new("disk/log");
        std::fs::create_dir(rig.path("disk")).unwrap();
        rig.append("disk/log", "one\n");
        rig.start();
        if sensor != Running {
            rig.kill();
        }
        rig.rename("disk", "elsewhere");
        if sensor != Running {
            rig.start();
        }
        rig.pass(Duration::from_secs(10));
        assert!(rig.file("disk/log").health.contains("cannot look"), "{:?}", rig.file("disk/log"));
        rig.append("elsewhere/log", "two\n");
        rig.rename("elsewhere", "disk");
        rig.look();
        assert_eq!(rig.lines(), ["one", "two"]);
        rig.check_gaps("disk/log", &[]);
        assert_eq!(rig.file("disk/log").generation, 1);
    });
}

#[test]
fn changes_that_nobody_tells_of_are_found_within_two_seconds() {
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

#[test]
fn a_filter_that_is_too_slow_is_stopped_and_nothing_else_is() {
    let mut rig = Rig::new("*");
    rig.work_micros_per_line = 1000;
    rig.append("log", "short\n".repeat(1000));
    rig.start();
    rig.append("log", "never read\nnor told as incompl");
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.notices("quarantine").len(), 1);
    assert!(rig.file("log").health.contains("quarantine"), "{:?}", rig.file("log"));
    assert!(!rig.lines().contains(&"never read".to_owned()));
    rig.kill();
    rig.work_micros_per_line = 0;
    rig.start();
    assert_eq!(rig.lines().last().unwrap(), "never read", "the next run tries again, from where it stopped");
}

#[test]
fn a_second_start_says_who_holds_the_state() {
    let rig = Rig::started();
    let refused = crate::rig::second_start(&rig).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
}

#[test]
fn the_state_is_for_the_owner_only() {
    use std::os::unix::fs::MetadataExt;
    let rig = Rig::started();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&rig.state()), 0o700);
    assert_eq!(mode(&rig.state().join("journal")), 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(rig.state().join("journal")).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
        files += 1;
    }
    assert_eq!(files, 1);
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
fn a_file_no_filter_knows_is_told_and_not_read() {
    let mut rig = Rig::new("*");
    rig.append("unknown", "one\n");
    rig.start();
    assert!(rig.file("unknown").health.contains("no filter"));
    assert!(!rig.file("unknown").is_ill(), "found by a glob: a note");
    assert_eq!(rig.events().len(), 0);

    let mut named = Rig::new("unknown");
    named.append("unknown", "one\n");
    named.start();
    assert!(named.file("unknown").is_ill(), "given by its name: something is wrong");
}
