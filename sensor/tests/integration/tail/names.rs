//! Files with several names that match: each line once, under one of the names. And files whose name matches
//! a log, but whose content does not.

use crate::tail::changed::Sensor::{Killed, Running, Stopped};
use crate::tail::changed::{Sensor, changed_in, check, every_way};
use crate::tail::rig::Rig;
use sensor::tail::Spec;
use std::io::Write;
use std::time::Duration;

/// Changes the files while the sensor runs, is stopped or was killed; then lets it look.
fn meanwhile(rig: &mut Rig, sensor: Sensor, change: impl FnOnce(&Rig)) {
    match sensor {
        Running => {}
        Stopped => rig.stop(),
        Killed => rig.kill(),
    }
    change(rig);
    if sensor != Running {
        rig.start();
    }
    rig.look();
    rig.pass(Duration::from_secs(3));
}

fn link(rig: &Rig, from: &str, to: &str) {
    std::fs::hard_link(rig.path(from), rig.path(to)).unwrap();
}

#[test]
fn two_names_of_one_file_are_one_log() {
    every_way(|sensor| {
        let mut rig = Rig::new("*");
        rig.append("a", "one, which begins the file and is long enough to be unlike any other\n");
        link(&rig, "a", "b");
        rig.start();
        meanwhile(&mut rig, sensor, |rig| rig.append("b", "two\n"));
        assert_eq!(rig.lines().len(), 2);
        assert_eq!(rig.file("b").same_as, Some(rig.path("a")));
        assert_eq!((rig.file("a").same_as, rig.file("b").status.to_string()), (None, String::new()));
        meanwhile(&mut rig, sensor, |rig| rig.remove("a"));
        meanwhile(&mut rig, sensor, |rig| rig.append("b", "three\n"));
        meanwhile(&mut rig, sensor, |rig| rig.append("a", "a new file of the old name\n"));
        meanwhile(&mut rig, sensor, |rig| rig.append("b", "four\n"));
        assert_eq!(rig.lines()[1..], ["two", "three", "a new file of the old name", "four"]);
        assert_eq!(rig.notices("gap"), []);
    });
}

#[test]
fn a_file_is_read_by_its_own_name_and_a_link_to_it_stands_aside() {
    every_way(|sensor| {
        let mut rig = Rig::new("*");
        rig.append("z", "one\n");
        std::os::unix::fs::symlink("z", rig.path("a")).unwrap();
        rig.start();
        meanwhile(&mut rig, sensor, |rig| rig.append("z", "two\n"));
        assert_eq!(rig.lines(), ["one", "two"]);
        assert_eq!((rig.file("a").same_as, rig.file("z").same_as), (Some(rig.path("z")), None));
    });
}

#[test]
fn a_change_notified_by_the_other_name_is_read_at_once() {
    let mut rig = Rig::new("*");
    rig.append("a", "one\n");
    link(&rig, "a", "b");
    rig.start();
    rig.append("b", "two\n");
    rig.notify("b");
    assert_eq!(rig.lines(), ["one", "two"]);
}

#[test]
fn a_rotated_name_of_any_kind_that_the_globs_mean_is_not_read_twice() {
    for name in ["log.saved", "log.last", "log_previous", "log yesterday"] {
        every_way(|sensor| {
            let mut rig = changed_in(Rig::new("log*"), sensor, |rig| {
                let mut late = rig.open("log");
                rig.rename("log", name);
                rig.append("log", "four\n");
                late.write_all(b"three\n").unwrap();
            });
            check(&rig, &["three", "four"]);
            meanwhile(&mut rig, sensor, |rig| rig.append(name, "five, of a late writer\n"));
            rig.kill();
            rig.start();
            check(&rig, &["three", "four", "five, of a late writer"]);
            rig.check_gaps("log", &[]);
        });
    }
}

#[test]
fn a_rename_that_is_seen_in_its_middle_reads_nothing_twice() {
    every_way(|sensor| {
        // Both names exist for an instant, as some programs rename, and the other order of names.
        for new in ["log-new", "a-log"] {
            let mut rig = changed_in(Rig::new("*log*"), sensor, |rig| link(rig, "log", new));
            meanwhile(&mut rig, sensor, |rig| rig.remove("log"));
            meanwhile(&mut rig, sensor, |rig| rig.append(new, "three\n"));
            check(&rig, &["three"]);
            assert_eq!(rig.notices("gap"), []);
        }
    });
}

#[test]
fn rotated_files_that_were_asked_for_by_name_are_handed_on() {
    every_way(|sensor| {
        let mut rig = Rig::new("log");
        rig.config.files.push(Spec::new(rig.path("log.*").to_str().unwrap()));
        rig.append("log.1", "zero, in the log of yesterday, and long enough to be unlike any other\n");
        let mut rig = changed_in(rig, sensor, |rig| {
            rig.rename("log.1", "log.2");
            rig.rename("log", "log.1");
            rig.append("log", "three\n");
        });
        meanwhile(&mut rig, sensor, |rig| {
            rig.rename("log.2", "log.3");
            rig.rename("log.1", "log.2");
            rig.rename("log", "log.1");
            rig.append("log", "four\n");
        });
        rig.kill();
        rig.start();
        let mut lines = rig.lines();
        lines.sort();
        let once: std::collections::BTreeSet<_> = lines.iter().cloned().collect();
        assert_eq!((lines.len(), once.len()), (5, 5), "{lines:?}");
        assert_eq!(rig.notices("gap"), []);
    });
}

#[test]
fn a_file_moved_to_another_folder_that_is_meant_is_not_read_twice() {
    every_way(|sensor| {
        let mut rig = Rig::new("**/*");
        for folder in ["new", "old"] {
            std::fs::create_dir(rig.path(folder)).unwrap();
        }
        let first = "one, which begins the file and is long enough to be unlike any other\n";
        rig.append("new/log", first);
        rig.start();
        meanwhile(&mut rig, sensor, |rig| {
            rig.append("new/log", "two\n");
            rig.rename("new/log", "old/log");
        });
        meanwhile(&mut rig, sensor, |rig| rig.append("new/log", "three\n"));
        rig.kill();
        rig.start();
        assert_eq!(rig.lines()[1..], ["two", "three"]);
        assert_eq!(rig.notices("gap"), []);
    });
}

#[test]
fn rotations_without_end_that_keep_meant_names_are_each_read_once() {
    let mut rig = Rig::new("log*");
    rig.start();
    let mut expected = Vec::new();
    for number in 0..40 {
        let line = format!("line {number} and so much more that its beginning is not like any other file's");
        rig.append("log", format!("{line}\n"));
        rig.look();
        rig.rename("log", &format!("log.x{number}"));
        rig.pass(Duration::from_secs(2));
        expected.push(line);
    }
    for sensor in [Running, Stopped, Killed] {
        meanwhile(&mut rig, sensor, |rig| rig.append("log", format!("{}\n", sensor as u8)));
        expected.push((sensor as u8).to_string());
        assert_eq!(rig.lines(), expected);
    }
    rig.check_gaps("log", &[]);
}

#[test]
fn compressed_files_are_reported_and_not_read_whatever_their_names() {
    let kinds: [(&str, &[u8]); 4] = [
        ("gzip", b"\x1f\x8b\x08\x08abc\nline\nline\n"),
        ("xz", b"\xfd7zXZ\0\0\x04line\nline\n"),
        ("zstd", b"\x28\xb5\x2f\xfd\x24line\nline\n"),
        ("bzip2", b"BZh91AY&SYline\nline\n"),
    ];
    for (kind, bytes) in kinds {
        every_way(|sensor| {
            let mut rig = Rig::new("log");
            rig.append("log", bytes);
            rig.start();
            meanwhile(&mut rig, sensor, |rig| rig.append("log", "more\n"));
            let text = rig.file("log").status.to_string();
            assert!(text.contains(kind) && text.contains("FILE > FILE.log"), "{text}");
            assert_eq!(rig.events(), []);
            // A log replaces it, and then an empty file that becomes compressed.
            meanwhile(&mut rig, sensor, |rig| {
                rig.remove("log");
                rig.append("log", "text\n");
            });
            assert_eq!(
                (rig.lines(), rig.file("log").status.to_string()),
                (vec!["text".to_owned()], String::new())
            );
            meanwhile(&mut rig, sensor, |rig| {
                rig.rename("log", "elsewhere");
                rig.append("log", "");
            });
            meanwhile(&mut rig, sensor, |rig| rig.append("log", bytes));
            meanwhile(&mut rig, sensor, |rig| rig.append("log", "more\n"));
            assert!(rig.file("log").status.to_string().contains(kind), "{:?}", rig.file("log"));
            assert_eq!(rig.events().len(), 1);
        });
    }
}
