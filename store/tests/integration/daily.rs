//! A log by the day: what was appended is read, within its limits, whatever happened to the files.

use std::path::Path;
use std::time::Duration;
use store::daily::{DailyLimit, DailyLog};
use wire::time::Time;
use wire::version::PROCESS_HISTORY;

pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// The start of 2026-11-27.
pub(crate) const START: Time = Time::from_micros(1_795_737_600_000_000);
pub(crate) const LARGE: DailyLimit = DailyLimit { bytes: 1 << 30, days: 1000 };

pub(crate) fn open(folder: &Path, limit: DailyLimit) -> DailyLog {
    DailyLog::open(folder, PROCESS_HISTORY, limit).expect("a folder")
}

pub(crate) fn minute(number: u32) -> Time {
    START.plus(Duration::from_secs(60) * number)
}

fn read(folder: &Path, since: Time, until: Time) -> (Vec<(Time, String)>, u64) {
    let mut found = Vec::new();
    let damaged = open(folder, LARGE).reader().each(since, until, |time, record| {
        found.push((time, String::from_utf8(record.to_vec()).expect("text")));
        true
    });
    (found, damaged.expect("readable"))
}

pub(crate) fn all(folder: &Path) -> (Vec<String>, u64) {
    let (found, damaged) = read(folder, Time::from_micros(0), Time::from_micros(i64::MAX));
    (found.into_iter().map(|(_, record)| record).collect(), damaged)
}

#[test]
fn a_state_folder_that_was_removed_is_not_made_again() {
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().join("sensor/process-history");
    let error = DailyLog::open(&folder, PROCESS_HISTORY, LARGE).expect_err("no folder around it");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(!state.path().join("sensor").exists());
    std::fs::create_dir(state.path().join("sensor")).expect("put back");
    open(&folder, LARGE);
}

#[test]
fn records_are_read_by_their_time_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = open(folder.path(), LARGE);
    for number in 0..2000 {
        log.append(minute(number), format!("minute {number}").as_bytes()).expect("there is room");
        if number == 700 {
            log = open(folder.path(), LARGE);
        }
    }
    // The clock is set back a day.
    log.append(minute(10), b"again").expect("there is room");
    let days = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(days, 2);
    let (found, damaged) = read(folder.path(), minute(1438), minute(1442));
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((texts, damaged), (vec!["minute 1438", "minute 1439", "minute 1440", "minute 1441"], 0));
    let (found, _) = read(folder.path(), minute(10), minute(11));
    assert_eq!(found.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["minute 10", "again"]);
    assert_eq!(log.reader().oldest().expect("readable"), Some(minute(0)));
    let mut count = 0;
    let stopped = log.reader().each(minute(0), minute(2000), |_, _| {
        count += 1;
        count < 5
    });
    assert_eq!((stopped.expect("readable"), count), (0, 5));
}

#[test]
fn the_oldest_days_make_room_and_the_limit_is_never_exceeded() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = DailyLimit { bytes: 20_000, days: 1000 };
    let mut log = open(folder.path(), limit);
    for number in 0..400u32 {
        log.append(START.plus(DAY / 50 * number), &[b'x'; 200]).expect("there is room");
        let used: u64 = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file").len())
            .sum();
        assert!(used <= limit.bytes, "{used}");
        assert_eq!(used, log.used_bytes());
    }
    let newest = all(folder.path()).0.len();
    assert!((20..90).contains(&newest), "{newest}");
    let mut small = open(folder.path(), DailyLimit { bytes: 1 << 30, days: 1 });
    small.append(START.plus(DAY * 8), b"a new day").expect("there is room");
    assert_eq!(all(folder.path()).0, ["a new day"], "one day is retained");
    let mut tiny = open(folder.path(), DailyLimit { bytes: 100, days: 1000 });
    let error = tiny.append(START.plus(DAY * 8), &[0; 200]).expect_err("larger than the limit");
    assert_eq!(error.kind(), std::io::ErrorKind::QuotaExceeded);
    assert_eq!(all(folder.path()).0, ["a new day"]);
}

#[test]
fn a_clock_that_is_years_ahead_for_a_while_deletes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = open(folder.path(), DailyLimit { bytes: 1 << 20, days: 5 });
    for day in [0, 1, 2, 4000, 3] {
        log.append(START.plus(DAY * day), format!("day {day}").as_bytes()).expect("there is room");
    }
    assert_eq!(all(folder.path()).0.len(), 5);
}

#[test]
fn damage_loses_what_is_damaged_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = open(folder.path(), LARGE);
    let text = |number: u32| format!("the record of minute {number}");
    (0..20).for_each(|number| log.append(minute(number), text(number).as_bytes()).expect("there is room"));
    let path = folder.path().join("2026-11-27.log");
    let whole = std::fs::read(&path).expect("a file");
    for at in (60..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, flipped).expect("written");
        let (found, damaged) = all(folder.path());
        assert!(
            found.len() >= 19 && damaged > 0 || at > whole.len() - 60,
            "byte {at}: {} records",
            found.len()
        );
        let expected: Vec<String> = (0..20).map(text).collect();
        assert!(found.iter().all(|found| expected.contains(found)), "byte {at}: nothing is changed");
    }
    for len in (60..whole.len()).step_by(11) {
        std::fs::write(&path, &whole[..len]).expect("written");
        let before = all(folder.path()).0;
        let mut log = open(folder.path(), LARGE);
        log.append(minute(50), b"later").expect("there is room");
        let mut expected = before.clone();
        expected.push("later".to_owned());
        assert_eq!(all(folder.path()), (expected, 0), "cut at {len}");
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("2026-11-27.log"), "other notes").expect("written");
    std::fs::write(folder.path().join("notes.log"), "more").expect("written");
    let mut log = open(folder.path(), LARGE);
    let error = log.append(START, b"record").expect_err("it is not a file of the history");
    assert!(error.to_string().contains("not a file of the process history"), "{error}");
    assert_eq!(std::fs::read(folder.path().join("2026-11-27.log")).expect("a file"), b"other notes");
    log.append(START.plus(DAY), b"record").expect("another day");
}
