//! No regular file at the place of the log: nothing, a link, a folder, a FIFO, no disk.

use crate::tail::changed::Sensor::Running;
use crate::tail::changed::{changed, check, every_way};
use crate::tail::rig::Rig;
use sensor::tail::path_status::PathStatus;
use std::time::Duration;

#[test]
fn a_missing_folder_is_waited_for_and_a_new_file_is_read_from_its_beginning() {
    let mut rig = Rig::new("later/log");
    rig.config.files[0].start = sensor::tail::Start::End;
    rig.start();
    assert_eq!(rig.file("later/log").status, PathStatus::Awaited);
    std::fs::create_dir(rig.path("later")).unwrap();
    rig.append("later/log", "one\n");
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.lines(), ["one"]);
    assert_eq!(rig.file("later/log").status.to_string(), "");
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
        assert!(
            rig.file("link").status.to_string().contains("outside the allowed roots"),
            "{:?}",
            rig.file("link")
        );
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
            assert!(
                rig.file("log").status.to_string().contains("expected a plain file"),
                "{:?}",
                rig.file("log")
            );
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
        assert!(
            rig.file("disk/log").status.to_string().contains("cannot look"),
            "{:?}",
            rig.file("disk/log")
        );
        rig.append("elsewhere/log", "two\n");
        rig.rename("elsewhere", "disk");
        rig.look();
        assert_eq!(rig.lines(), ["one", "two"]);
        rig.check_gaps("disk/log", &[]);
        assert_eq!(rig.file("disk/log").generation, 1);
    });
}
