//! The limits of space and age.

use crate::made::{Made, Maker, push};
use std::path::Path;
use std::time::Duration;
use store::exported::ExportedTimes;
use store::reader::Selection;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::Writer;
use wire::time::Time;

const DAY: Duration = Duration::from_secs(86_400);

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read"));
    entries.filter(|entry| entry.path().is_file()).map(|entry| entry.metadata().expect("read").len()).sum()
}

#[test]
fn no_tier_ever_exceeds_its_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |bytes| Limit { bytes, age: DAY * 10_000 };
    let limits = [limit(300 << 10), limit(600 << 10), limit(200 << 10)];
    let mut writer = Writer::open(folder.path(), limits).expect("opened");
    let mut maker = Maker::new("wn01", 5);
    maker.period_micros = 20_000_000;
    let mut fullest = [0; 3];
    for sweep in 0..60_000 {
        push(&mut writer, &maker.next());
        if sweep % 10 == 0 {
            writer.flush();
            writer.compact();
            for tier in Tier::ALL {
                let beside = if tier == Tier::Raw { size(folder.path()) } else { 0 };
                let used = size(&folder.path().join(tier.name())) + beside;
                assert!(used <= limits[tier as usize].bytes, "{tier:?} has {used} bytes");
                fullest[tier as usize] = used.max(fullest[tier as usize]);
            }
        }
    }
    assert_eq!(writer.reader().state().error(), None);
    assert!(fullest[0] > 250 << 10 && fullest[1] > 540 << 10, "{fullest:?}: the limits were reached");
    let state = writer.reader().state();
    assert!(state.tiers[0].files.deleted_segments > 0 && state.tiers[1].files.deleted_segments > 0);
    let oldest = writer.reader().oldest(&|_| true);
    assert!(oldest[2] < oldest[1] && oldest[1] < oldest[0], "{oldest:?}: coarser tiers reach further back");
}

#[test]
fn values_expire_by_age_and_a_clock_that_is_wrong_for_a_while_deletes_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |age| Limit { bytes: 2 << 20, age };
    let limits = [limit(DAY * 2), limit(DAY * 10_000), limit(DAY * 10_000)];
    let mut writer = Writer::open(folder.path(), limits).expect("opened");
    let mut maker = Maker::new("wn01", 5);
    maker.period_micros = 2_000_000;
    let mut first = None;
    let mut day = |writer: &mut Writer, sweeps| {
        for _ in 0..sweeps {
            let next = maker.next();
            first.get_or_insert(next.time);
            push(writer, &next);
        }
        (first.expect("set"), maker.next())
    };
    let (first, Made { time, .. }) = day(&mut writer, 30_000);
    assert_eq!(writer.reader().oldest(&|_| true)[0], Some(first));
    let mut wrong = Maker::new("wn01", 6);
    wrong.time = time.plus(DAY * 20_000).micros();
    for _ in 0..3000 {
        push(&mut writer, &wrong.next());
    }
    assert_eq!(writer.reader().oldest(&|_| true)[0], Some(first), "the clock was wrong for three blocks");
    let (_, Made { time, .. }) = day(&mut writer, 260_000);
    let oldest = writer.reader().oldest(&|_| true)[0].expect("some are stored");
    assert!(oldest > first, "older ones have expired");
    assert!(oldest < time.minus(DAY * 2), "none that is younger");
    let selection = Selection { host: &|_| true, metric: &|_| true, since: time.minus(DAY), until: time };
    assert!(!reader_is_empty(&writer, &selection));
}

fn reader_is_empty(writer: &Writer, selection: &Selection) -> bool {
    writer.reader().values(selection, usize::MAX).expect("any size").series.is_empty()
}

#[test]
fn a_block_larger_than_its_tier_is_refused_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |bytes| Limit { bytes, age: DAY };
    let mut writer =
        Writer::open(folder.path(), [limit(3 << 10), limit(1 << 20), limit(1 << 20)]).expect("opened");
    let mut maker = Maker::new("wn01", 5);
    for _ in 0..12_000 {
        push(&mut writer, &maker.next());
    }
    let state = writer.reader().state();
    assert!(state.error().is_some_and(|error| error.contains("exceeds the limit")), "{state:?}");
    assert!(state.lost_rows > 5000, "{}", state.lost_rows);
    writer.set_limits([limit(1 << 20); 3]);
    writer.flush();
    assert_eq!(writer.reader().state().error(), None, "it goes on");
    let now = Time::from_micros(i64::MAX);
    let selection = Selection { host: &|_| true, metric: &|_| true, since: Time::from_micros(0), until: now };
    assert!(!reader_is_empty(&writer, &selection));
}

#[test]
fn minutes_that_are_not_exported_are_held_beyond_their_age_as_long_as_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = |minute_bytes| {
        let limit = |bytes, age| Limit { bytes, age };
        [limit(4 << 20, DAY), limit(minute_bytes, DAY), limit(4 << 20, DAY * 10_000)]
    };
    let mut writer = Writer::open(folder.path(), limits(64 << 20)).expect("opened");
    let mut maker = Maker::new("wn01", 5);
    maker.period_micros = 20_000_000;
    let first = maker.next();
    push(&mut writer, &first);
    let mut days = |writer: &mut Writer, days: u64| {
        for _ in 0..days * 4320 {
            push(writer, &maker.next());
        }
        writer.flush();
        let state = writer.reader().state().tiers[1].clone();
        (
            writer.reader().oldest(&|_| true)[1].expect("stored"),
            state.is_held,
            state.files.unexported_segments,
        )
    };
    let minute = store::tier::floor(first.time, Duration::from_secs(60));
    writer.hold_unexported(Some(ExportedTimes::new(Vec::new())));
    assert_eq!(days(&mut writer, 3), (minute, true, 0), "nothing is exported");
    // What follows is held from there on.
    writer.hold_unexported(Some(ExportedTimes::new(vec![(first.time.minus(DAY), minute.plus(DAY))])));
    let (oldest, is_held, lost) = days(&mut writer, 1);
    assert!(oldest > minute.plus(DAY * 3 / 4) && oldest <= minute.plus(DAY), "{oldest:?} after {minute:?}");
    assert_eq!((is_held, lost), (true, 0));
    // The limit of space is hard, and what it costs is counted.
    let used = writer.reader().state().tiers[1].used_bytes;
    writer.set_limits(limits(used));
    let (later, is_held, lost) = days(&mut writer, 1);
    assert!(later > oldest && is_held && lost > 0, "{later:?} after {oldest:?}, {lost}");
    assert!(writer.reader().state().tiers[1].used_bytes <= used);
    // Without a place nothing is held.
    writer.hold_unexported(None);
    let (oldest, is_held, still) = days(&mut writer, 1);
    let newest = minute.plus(DAY * 6);
    assert!(oldest > newest.minus(DAY * 3 / 2) && !is_held && still == lost, "{oldest:?}, {still}");
}
