//! Compaction: answers stay as they are, whatever happens meanwhile, and blocks become few.

use crate::made::{Dice, Maker, host, metric, push};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::query::{Answer, By, Point};
use store::reader::{Reader, Selection};
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::sample::{Number, Semantics};
use wire::time::Time;

/// Segments of a day of minutes and of hours; nothing expires.
const LIMITS: [Limit; 3] = [Limit { bytes: 64 << 20, age: Duration::from_secs(16 * 86_400) }; 3];

fn open(folder: &Path) -> Writer {
    Writer::open(folder, LIMITS).expect("opened")
}

/// A store of six days, a sample a minute, that was not compacted.
fn made(folder: &Path) -> Reader {
    let mut writer = open(folder);
    // Metrics that are there for two hours in four.
    let all = ["a", "b", "c"].map(|name| metric(name, Semantics::Gauge, &[]));
    let shapes: [Arc<[_]>; 2] = [all[..2].into(), all[1..].into()];
    for minute in 0..3 * 1440 {
        let time = Time::from_micros(1_795_000_000_000_000 + minute * 60_000_000);
        let values = [Number::Whole(minute.cast_unsigned()), Number::Whole(7)];
        let metrics = &shapes[usize::from(minute % 240 >= 120)];
        writer.push(&host("wn03"), Sweep { time, metrics, values: &values });
    }
    let mut makers = ["wn01", "wn02"].map(|name| Maker::new(name, 8));
    makers.iter_mut().for_each(|maker| maker.period_micros = 60_000_000);
    for _ in 0..6 * 1440 {
        makers.iter_mut().for_each(|maker| push(&mut writer, &maker.next()));
    }
    writer.flush();
    writer.reader()
}

fn steps(reader: &Reader, step: Duration) -> Answer<Point> {
    let (since, until) = (Time::from_micros(0), Time::from_micros(i64::MAX));
    let selection = Selection { host: &|_| true, metric: &|_| true, since, until };
    reader.steps(&selection, step, &By::Series, false, usize::MAX).expect("any size")
}

fn answers(reader: &Reader) -> [Answer<Point>; 2] {
    [60, 3600].map(|secs| steps(reader, Duration::from_secs(secs)))
}

fn compacted(writer: &Writer) -> [u64; 3] {
    writer.reader().state().tiers.map(|tier| tier.files.compacted_segments)
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read").path());
    let mut found: Vec<PathBuf> = entries.collect();
    found.sort();
    found
}

fn size(folder: &Path) -> u64 {
    segments(folder).iter().map(|path| path.metadata().expect("a file").len()).sum()
}

#[test]
fn answers_stay_as_they_are_and_the_files_shrink() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = answers(&made(folder.path()));
    let minutes = folder.path().join("1m");
    let (size_before, files) = (size(&minutes), segments(&minutes));
    let mut writer = open(folder.path());
    // Readers that began before see the files as they were.
    let reader = writer.reader();
    for _ in 0..40 {
        writer.compact();
        assert!(answers(&reader) == before);
    }
    assert!(compacted(&writer)[1] >= 5, "{:?}", compacted(&writer));
    assert_eq!(compacted(&writer)[0], 0, "samples are in long blocks");
    assert!(size(&minutes) < size_before * 9 / 10, "{} of {size_before}", size(&minutes));
    assert_eq!(segments(&minutes), files, "nothing is left over");
    assert_eq!(writer.reader().state().error(), None);
    writer.close();
    let mut writer = open(folder.path());
    assert!(answers(&writer.reader()) == before);
    for _ in 0..40 {
        writer.compact();
    }
    assert_eq!(compacted(&writer), [0; 3], "it is not done again");
}

#[test]
fn what_a_crash_leaves_is_removed_and_the_old_file_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = answers(&made(folder.path()));
    let minutes = folder.path().join("1m");
    let left = minutes.join(format!("{:020}.new", 1));
    fs::copy(&segments(&minutes)[0], &left).expect("copied");
    let bytes = fs::read(&left).expect("read");
    fs::write(&left, &bytes[..bytes.len() / 2]).expect("written");
    let writer = open(folder.path());
    assert!(!left.exists());
    assert!(answers(&writer.reader()) == before);
}

#[test]
fn damage_is_neither_spread_nor_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(made(folder.path()));
    let first = segments(&folder.path().join("1m")).remove(0);
    let mut bytes = fs::read(&first).expect("read");
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(&first, bytes).expect("written");
    let mut writer = open(folder.path());
    let before = answers(&writer.reader());
    assert_eq!(before[0].damaged, 1);
    for _ in 0..40 {
        writer.compact();
    }
    assert!(compacted(&writer)[1] >= 4);
    assert!(answers(&writer.reader()) == before, "the same is missing, and reported");
}

#[test]
fn a_disk_that_refuses_the_new_file_costs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = answers(&made(folder.path()));
    let first = segments(&folder.path().join("1m")).remove(0);
    // A folder has its name.
    fs::create_dir(first.with_extension("new")).expect("created");
    let refused = Writer::open(folder.path(), LIMITS);
    assert!(refused.is_err(), "not removed: it is not ours");
    fs::remove_dir(first.with_extension("new")).expect("removed");
    let mut writer = open(folder.path());
    fs::create_dir(first.with_extension("new")).expect("created");
    writer.compact();
    assert_eq!(compacted(&writer)[1], 0);
    assert!(answers(&writer.reader()) == before);
    assert_eq!(writer.reader().state().error(), None, "what is new is stored");
    fs::remove_dir(first.with_extension("new")).expect("removed");
    for _ in 0..500 {
        writer.compact();
    }
    assert!(compacted(&writer)[1] >= 5, "it is tried again");
    assert!(answers(&writer.reader()) == before);
}

#[test]
fn the_limit_holds_while_files_are_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |bytes| Limit { bytes, age: Duration::from_secs(1 << 40) };
    let limits = [limit(40 << 20), limit(36 << 20), limit(4 << 20)];
    let mut writer = Writer::open(folder.path(), limits).expect("opened");
    let metrics = (0..250).map(|number| metric(&format!("m{number}"), Semantics::Gauge, &[])).collect();
    let hosts: Vec<_> = (0..6).map(|number| host(&format!("wn{number}"))).collect();
    let (minutes, mut dice) = (folder.path().join("1m"), Dice(5));
    let (mut fullest, mut unfinished) = (0, 0);
    for minute in 0..3600 {
        let time = Time::from_micros(1_795_000_000_000_000 + minute * 60_000_000);
        for host in &hosts {
            let values: Vec<Number> = (0..250).map(|_| Number::Whole(dice.below(1 << 60))).collect();
            writer.push(host, Sweep { time, metrics: &metrics, values: &values });
        }
        // From when the tier is full of files that are not compacted.
        if minute > 3000 {
            writer.compact();
            let used = size(&minutes);
            assert!(used <= limits[1].bytes, "{used} bytes in minute {minute}");
            fullest = used.max(fullest);
            let names = segments(&minutes);
            unfinished +=
                names.iter().filter(|path| path.extension().is_some_and(|end| end == "new")).count();
        }
    }
    assert!(fullest > 34 << 20, "{fullest}: the limit was reached");
    assert!(unfinished > 5, "{unfinished}: both files were there at times");
    assert_eq!(writer.reader().state().error(), None);
    assert!(compacted(&writer)[1] > 3, "{:?}", compacted(&writer));
}

#[test]
fn a_file_that_cannot_take_its_place_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = answers(&made(folder.path()));
    let mut writer = open(folder.path());
    let first = segments(&folder.path().join("1m")).remove(0);
    fs::remove_file(&first).expect("removed");
    fs::create_dir(&first).expect("created");
    writer.compact();
    assert_eq!(compacted(&writer)[1], 0);
    assert!(!first.with_extension("new").exists(), "it is not counted in the limit");
    assert!(answers(&writer.reader()) == before, "the old one is open");
    fs::remove_dir(&first).expect("removed");
    for _ in 0..500 {
        writer.compact();
    }
    assert!(compacted(&writer)[1] >= 5, "it is tried again");
    assert!(answers(&writer.reader()) == before);
}
