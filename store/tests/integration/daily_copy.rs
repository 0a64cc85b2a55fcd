//! A copy of a log by the day: it gets what the log has, goes on after any end, and loses nothing that it had.

use super::daily::{DAY, LARGE, START, all, minute, open};
use jiff::civil::{Date, date};
use std::path::Path;
use store::daily::DailyLog;
use store::daily_copy::{DailyCopy, Following, Reached};
use wire::version::PROCESS_HISTORY;

const FIRST: Date = date(2026, 11, 27);

fn append(log: &mut DailyLog, numbers: std::ops::Range<u32>) {
    for number in numbers {
        log.append(minute(number), format!("the record of minute {number}").as_bytes())
            .expect("there is room");
    }
}

/// Copies all days in parts of this length; returns the number of parts.
fn copy(log: &DailyLog, to: &DailyCopy, len_max: usize) -> usize {
    let mut parts = 0;
    for day in log.reader().lens().expect("readable") {
        loop {
            let reached = to.reader().reached(day.date).expect("readable");
            match log.reader().following(&reached, len_max).expect("readable") {
                Following::Bytes(bytes) if bytes.is_empty() => break,
                Following::Bytes(bytes) => to.append(day.date, reached.len, &bytes).expect("there is room"),
                Following::Differs => to.set_aside(day.date).expect("moved"),
                Following::Gone => panic!("{} is there", day.date),
            }
            parts += 1;
        }
    }
    parts
}

fn is_same(one: &Path, other: &Path) -> bool {
    let read = |folder: &Path| {
        let lens = DailyCopy::new(folder, PROCESS_HISTORY).reader().lens().expect("readable");
        let file = |date: Date| std::fs::read(folder.join(format!("{date}.log"))).expect("a file");
        lens.iter().map(|day| (day.date, file(day.date))).collect::<Vec<_>>()
    };
    read(one) == read(other)
}

#[test]
fn a_copy_has_the_same_bytes_whatever_the_length_of_its_parts() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 0..50);
    append(&mut log, 1430..1480);
    for len_max in [1, 7, 60, 61, 1 << 20] {
        let at = state.path().join(format!("{len_max}"));
        let to = DailyCopy::new(&at, PROCESS_HISTORY);
        assert!(copy(&log, &to, len_max) >= 2);
        assert!(is_same(folder.path(), &at), "{len_max}");
        assert_eq!(copy(&log, &to, len_max), 0, "nothing follows");
    }
    append(&mut log, 1480..1500);
    let to = DailyCopy::new(&state.path().join("60"), PROCESS_HISTORY);
    assert_eq!(copy(&log, &to, 1 << 20), 1, "only what follows");
    assert!(is_same(folder.path(), &state.path().join("60")));
}

#[test]
fn what_is_cut_off_is_not_copied_until_it_is_whole() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 0..10);
    let path = folder.path().join("2026-11-27.log");
    let whole = std::fs::read(&path).expect("a file");
    std::fs::write(&path, &whole[..whole.len() - 5]).expect("written");
    let to = DailyCopy::new(&state.path().join("copy"), PROCESS_HISTORY);
    copy(&log, &to, 1 << 20);
    let reached = to.reader().reached(FIRST).expect("readable");
    assert!(reached.len < whole.len() as u64 - 5, "{reached:?}");
    // As after a crash: the rest is cut away, and others follow.
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 20..25);
    assert_eq!(copy(&log, &to, 1 << 20), 1);
    assert!(is_same(folder.path(), &state.path().join("copy")));
    assert_eq!(all(&state.path().join("copy")).0.len(), 14);
}

#[test]
fn a_log_that_lost_what_was_copied_is_copied_beside_it() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let at = state.path().join("copy");
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 0..10);
    let to = DailyCopy::new(&at, PROCESS_HISTORY);
    copy(&log, &to, 1 << 20);
    let path = folder.path().join("2026-11-27.log");
    let cut = |records: usize| {
        let whole = std::fs::read(&path).expect("a file");
        std::fs::write(&path, &whole[..whole.len() - records * 60]).expect("written");
    };
    cut(1);
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 100..130);
    copy(&log, &to, 1 << 20);
    assert!(is_same(folder.path(), &at));
    let earlier = all(&at.join("earlier")).0;
    assert_eq!((earlier.len(), earlier[9].as_str()), (10, "the record of minute 9"), "it is still there");
    // Again, with less: the longest is retained.
    std::fs::remove_file(&path).expect("removed");
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 200..203);
    copy(&log, &to, 1 << 20);
    assert!(all(&at.join("earlier")).0.len() > 30);
    std::fs::remove_file(&path).expect("removed");
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 300..301);
    copy(&log, &to, 1 << 20);
    assert!(all(&at.join("earlier")).0.len() > 30, "not replaced by three records");
    assert_eq!(to.deleted_until().expect("readable"), None);
    let next = FIRST.tomorrow().expect("a day");
    for (date, newest) in [(FIRST, FIRST), (next, next), (FIRST, next)] {
        to.delete(date).expect("deleted");
        assert_eq!(to.deleted_until().expect("readable"), Some(newest));
    }
    assert_eq!((to.reader().lens().expect("readable"), all(&at.join("earlier")).0.len()), (Vec::new(), 0));
}

#[test]
fn a_day_that_is_gone_and_bytes_for_another_place_change_nothing() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut log = open(folder.path(), LARGE);
    append(&mut log, 0..10);
    let to = DailyCopy::new(&state.path().join("copy"), PROCESS_HISTORY);
    copy(&log, &to, 1 << 20);
    let other = Reached { date: FIRST.tomorrow().expect("a day"), len: 0, end: 0 };
    assert_eq!(log.reader().following(&other, 9).expect("readable"), Following::Gone);
    let error = to.append(FIRST, 3, b"elsewhere").expect_err("not its end");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(is_same(folder.path(), &state.path().join("copy")));
    log.append(START.plus(DAY), b"the next day").expect("there is room");
    let missing = DailyCopy::new(&state.path().join("no/folder"), PROCESS_HISTORY);
    assert!(missing.append(FIRST, 0, b"x").is_err(), "the state folder is not made again");
}
