//! Files that are torn, flipped, truncated or not ours.

use crate::made::{Dice, Made, Maker, open, push};
use std::fs;
use std::path::{Path, PathBuf};
use store::reader::Selection;
use store::tier::Tier;
use wire::sample::Number;
use wire::time::Time;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("read").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Every sample that is answered was stored like this; returns how many.
fn check_samples(folder: &Path, made: &[Made]) -> usize {
    let writer = open(folder);
    let until = Time::from_micros(i64::MAX);
    let selection = Selection { host: &|_| true, metric: &|_| true, since: Time::from_micros(0), until };
    let answer = writer.reader().values(&selection, usize::MAX).expect("any size");
    let mut count = 0;
    for (subject, points) in &answer.series {
        let stored: Vec<(Time, Number)> = made
            .iter()
            .flat_map(|sweep| {
                let at = sweep.metrics.iter().position(|metric| **metric == subject.metric);
                at.map(|at| (sweep.time, sweep.values[at]))
            })
            .collect();
        // What is missing is answered by coarser tiers, at the starts of their buckets.
        let raw = answer.parts.iter().find(|part| part.tier == Tier::Raw).map_or(until, |part| part.since);
        let points: Vec<_> = points.iter().filter(|(time, _)| *time >= raw).collect();
        for point in &points {
            assert!(stored.contains(point), "{point:?} of {} was never stored", subject.metric.name);
        }
        count += points.len();
    }
    count
}

fn stored(folder: &Path) -> Vec<Made> {
    let mut writer = open(folder);
    let mut maker = Maker::new("wn01", 21);
    let made: Vec<Made> = std::iter::repeat_with(|| maker.next()).take(2500).collect();
    made.iter().for_each(|sweep| push(&mut writer, sweep));
    writer.close();
    made
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("below it"));
        fs::create_dir_all(target.parent().expect("a folder")).expect("created");
        fs::copy(&file, target).expect("copied");
    }
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = stored(folder.path());
    let whole = {
        let copied = tempfile::tempdir().expect("a folder");
        copy(folder.path(), copied.path());
        check_samples(copied.path(), &made)
    };
    let mut dice = Dice(99);
    let mut worst = whole;
    for round in 0..60 {
        let copied = tempfile::tempdir().expect("a folder");
        copy(folder.path(), copied.path());
        let files = files(copied.path());
        let file = &files[dice.below(files.len() as u64) as usize];
        let mut bytes = fs::read(file).expect("read");
        let at = dice.below(bytes.len() as u64) as usize;
        match round % 3 {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.truncate(at),
            _ => bytes[at..].fill(0),
        }
        fs::write(file, bytes).expect("written");
        worst = worst.min(check_samples(copied.path(), &made));
        // What is cut off once is not reported twice, and what is whole stays so.
        check_samples(copied.path(), &made);
    }
    assert!(worst < whole, "some damage was felt");
}

#[test]
fn a_flipped_bit_in_a_chunk_costs_one_series_of_one_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = stored(folder.path());
    let raw = files(&folder.path().join("raw")).remove(0);
    let whole = check_samples(folder.path(), &made);
    let mut bytes = fs::read(&raw).expect("read");
    let middle = bytes.len() / 4;
    bytes[middle] ^= 1;
    fs::write(&raw, bytes).expect("written");
    let remaining = check_samples(folder.path(), &made);
    assert!((whole - 1024..whole).contains(&remaining), "{remaining} of {whole}");
}

#[test]
fn other_files_are_left_alone_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = stored(folder.path());
    let whole = check_samples(folder.path(), &made);
    let other = folder.path().join("raw").join(format!("{:020}.seg", 77));
    fs::write(&other, "a note of the operator").expect("written");
    assert_eq!(check_samples(folder.path(), &made), whole);
    assert!(other.exists());
    let writer = open(folder.path());
    assert_eq!(writer.reader().state().tiers[0].files.unreadable_files, 1);
}
