//! A log whose path names no file any more: since when, why, and its return.

use crate::tail::changed::Sensor::{Killed, Running, Stopped};
use crate::tail::changed::{changed, check, every_way};
use crate::tail::rig::Rig;
use sensor::tail::path_status::{Departure, PathStatus};
use std::io::Write;
use std::time::Duration;
use wire::time::Time;

fn now(rig: &Rig) -> Time {
    Time::from_micros(rig.clocks.wall_micros.load(std::sync::atomic::Ordering::SeqCst))
}

#[test]
fn a_deleted_log_is_gone_since_it_was_seen_and_followed_again_when_it_comes_back() {
    every_way(|sensor| {
        let mut rig = changed(sensor, |rig| rig.remove("log"));
        let (since, departure) = match sensor {
            // Detected at once; `changed` lets three seconds pass afterwards.
            Running => (Some(now(&rig).minus(Duration::from_secs(3))), Departure::Deleted),
            Stopped | Killed => (None, Departure::Unseen),
        };
        let gone = PathStatus::Gone { since, departure };
        rig.pass(Duration::from_secs(60));
        let file = rig.file("log");
        assert_eq!(file.status, gone, "as of the first look, not of the last");
        assert_eq!((file.filter.as_str(), file.is_unhealthy()), ("each-line", false));
        rig.append("log", "three\n");
        rig.pass(Duration::from_secs(2));
        assert_eq!(rig.file("log").status, PathStatus::Following);
        check(&rig, &["three"]);
        rig.remove("log");
        rig.look();
        let again = PathStatus::Gone { since: Some(now(&rig)), departure: Departure::Deleted };
        assert_eq!(rig.file("log").status, again);
    });
}

#[test]
fn a_log_that_was_moved_away_is_gone_and_read_on() {
    let mut writer = None;
    let mut rig = changed(Running, |rig| {
        writer = Some(rig.open("log"));
        rig.rename("log", "log.1");
    });
    let gone = |rig: &Rig| {
        let status = rig.file("log").status;
        let PathStatus::Gone { departure, .. } = status else { panic!("{status:?}") };
        departure
    };
    assert_eq!(gone(&rig), Departure::Moved);
    writer.unwrap().write_all(b"three\n").unwrap();
    rig.pass(Duration::from_secs(2));
    check(&rig, &["three"]);
    rig.remove("log.1");
    rig.pass(Duration::from_secs(2));
    assert_eq!(gone(&rig), Departure::Deleted);
}
