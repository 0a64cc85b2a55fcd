//! Permissions lost and regained, as a user bound by them: if root runs it, the test first drops root's
//! privileges.

use crate::tail::changed::{Sensor, changed, check, every_way};
use crate::tail::confined;
use crate::tail::rig::Rig;
use sensor::tail::path_status::PathStatus;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Runs the test in a process that is bound by permissions.
fn as_ordinary_user(test: &str, body: impl Fn()) {
    if confined::has_rights() && !confined::is_inside() {
        return confined::run_again(test, "setpriv", &["--bounding-set=-all", "--inh-caps=-all"]);
    }
    body();
}

fn mode(rig: &Rig, name: &str, mode: u32) {
    std::fs::set_permissions(rig.path(name), Permissions::from_mode(mode)).unwrap();
}

fn take_away(rig: &Rig, name: &str) {
    mode(rig, name, 0);
    let refused =
        std::fs::File::open(rig.path(name)).and_then(|_| std::fs::read_dir(rig.path(name)).map(drop));
    assert!(refused.is_err(), "permissions do not bind this process: the test would show nothing");
}

#[test]
fn permissions_of_a_file_lost_and_regained_lose_nothing() {
    as_ordinary_user("tail::rights::permissions_of_a_file_lost_and_regained_lose_nothing", || {
        every_way(|sensor| {
            let mut rig = changed(sensor, |rig| {
                let mut writer = rig.open("log");
                take_away(rig, "log");
                writer.write_all(b"three\n").unwrap();
            });
            if sensor == Sensor::Running {
                check(&rig, &["three"]);
            } else {
                check(&rig, &[]);
                assert!(rig.file("log").status.to_string().contains("denied"), "{:?}", rig.file("log"));
            }
            rig.pass(Duration::from_secs(60));
            mode(&rig, "log", 0o600);
            rig.pass(Duration::from_secs(2));
            check(&rig, &["three"]);
            assert_eq!(rig.file("log").status.to_string(), "");
            rig.check_gaps("log", &[]);
        });
    });
}

#[test]
fn a_file_that_may_not_be_read_is_reported_as_unreadable_with_the_filter_of_its_name() {
    as_ordinary_user(
        "tail::rights::a_file_that_may_not_be_read_is_reported_as_unreadable_with_the_filter_of_its_name",
        || {
            let mut rig = Rig::new("*");
            for name in ["log", "unknown"] {
                rig.append(name, "one\n");
                take_away(&rig, name);
            }
            rig.start();
            for (name, filter, ill) in [("log", "each-line", true), ("unknown", "", false)] {
                let file = rig.file(name);
                assert_eq!((file.filter.as_str(), file.is_unhealthy()), (filter, ill), "{file:?}");
                let PathStatus::Unreadable(why) = &file.status else { panic!("{file:?}") };
                assert!(why.contains("Permission denied"), "{why}");
            }
            mode(&rig, "log", 0o600);
            rig.pass(Duration::from_secs(2));
            assert_eq!((rig.lines(), rig.file("log").status), (vec!["one".into()], PathStatus::Following));
        },
    );
}

#[test]
fn a_successor_that_may_not_be_read_at_first_is_read_from_its_beginning() {
    as_ordinary_user(
        "tail::rights::a_successor_that_may_not_be_read_at_first_is_read_from_its_beginning",
        || {
            every_way(|sensor| {
                let mut rig = changed(sensor, |rig| {
                    rig.append("log", "three\n");
                    rig.rename("log", "log.1");
                    rig.append("log", "four\n");
                    take_away(rig, "log");
                });
                check(&rig, &["three"]);
                assert!(rig.file("log").status.to_string().contains("denied"), "{:?}", rig.file("log"));
                mode(&rig, "log", 0o600);
                rig.pass(Duration::from_secs(2));
                check(&rig, &["three", "four"]);
                assert_eq!(rig.file("log").status.to_string(), "");
                rig.check_gaps("log", &[]);
            });
        },
    );
}

#[test]
fn permissions_of_a_folder_lost_and_regained_lose_nothing() {
    as_ordinary_user("tail::rights::permissions_of_a_folder_lost_and_regained_lose_nothing", || {
        every_way(|sensor| {
            let mut rig = Rig::new("folder/log");
            std::fs::create_dir(rig.path("folder")).unwrap();
            rig.append("folder/log", "one\n");
            rig.start();
            if sensor != Sensor::Running {
                rig.kill();
            }
            let mut writer = rig.open("folder/log");
            take_away(&rig, "folder");
            writer.write_all(b"two\n").unwrap();
            if sensor != Sensor::Running {
                rig.start();
            }
            rig.pass(Duration::from_secs(60));
            assert!(
                rig.file("folder/log").status.to_string().contains("denied"),
                "{:?}",
                rig.file("folder/log")
            );
            mode(&rig, "folder", 0o700);
            rig.pass(Duration::from_secs(2));
            assert_eq!(
                (rig.lines(), rig.file("folder/log").status.to_string()),
                (vec!["one".into(), "two".into()], String::new())
            );
            rig.check_gaps("folder/log", &[]);
        });
    });
}
