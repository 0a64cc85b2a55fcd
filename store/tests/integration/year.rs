//! A year of samples, with the time injected: the limits hold at every hour, and every tier is true.

use crate::made::{Dice, host, metric};
use std::path::Path;
use std::time::Duration;
use store::query::By;
use store::reader::Selection;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::sample::{Number, Semantics};
use wire::time::Time;

const START: i64 = 1_735_689_600_000_000; // 2025-01-01
const MINUTES: u64 = 365 * 24 * 60;

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read"));
    entries.filter(|entry| entry.path().is_file()).map(|entry| entry.metadata().expect("read").len()).sum()
}

fn at(minute: u64) -> Time {
    Time::from_micros(START + minute.cast_signed() * 60_000_000)
}

#[test]
fn a_year_stays_within_its_limits_and_is_answered_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |bytes, days: u64| Limit { bytes, age: Duration::from_secs(days * 86_400) };
    let limits = [limit(200 << 10, 14), limit(400 << 10, 90), limit(400 << 10, 2000)];
    let mut writer = Writer::open(folder.path(), limits).expect("opened");
    let (host, mut dice) = (host("wn01"), Dice(7));
    let metrics =
        [metric("work_total", Semantics::Counter, &[]), metric("load", Semantics::Gauge, &[])].into();
    // Sums of each hour, as they are added.
    let (mut counter, mut loads, mut increases) = (0, vec![0u64; 365 * 24], vec![0u64; 365 * 24]);
    let mut first = true;
    for minute in 0..MINUTES {
        let hour = usize::try_from(minute / 60).expect("small");
        let gained = dice.below(100);
        counter = if dice.below(20_000) == 0 { 0 } else { counter + gained };
        let increase = if counter == 0 { 0 } else { gained };
        let load = dice.below(400);
        loads[hour] += load;
        increases[hour] += if std::mem::take(&mut first) { 0 } else { increase };
        let values = [Number::Whole(counter), Number::Real(load as f64 / 100.0)];
        writer.push(&host, Sweep { time: at(minute), metrics: &metrics, values: &values });
        if minute % 10 == 9 {
            writer.flush();
            writer.compact();
        }
        if minute % 60 == 59 {
            for tier in Tier::ALL {
                let beside = if tier == Tier::Raw { size(folder.path()) } else { 0 };
                let used = size(&folder.path().join(tier.name())) + beside;
                assert!(used <= limits[tier as usize].bytes, "hour {hour}: {tier:?} has {used} bytes");
            }
        }
    }
    assert_eq!(writer.reader().state().error(), None);
    assert!(writer.reader().state().tiers[1].files.compacted_segments > 10);
    let selection = Selection { host: &|_| true, metric: &|_| true, since: at(0), until: at(MINUTES) };
    let answer = writer.reader().steps(&selection, Duration::from_secs(3600), &By::Series, false, usize::MAX);
    let answer = answer.expect("any size");
    let [(_, load), (_, work)] = answer.series.as_slice() else { panic!("two series") };
    assert_eq!((load.len(), work.len()), (365 * 24, 365 * 24), "no hour is missing");
    for hour in 0..365 * 24 {
        let (load, work) = (&load[hour].bucket, &work[hour].bucket);
        assert_eq!((load.count, load.sum.as_f64()), (60, loads[hour] as f64 / 100.0), "hour {hour}");
        assert_eq!(work.increase.expect("a counter").as_f64(), increases[hour] as f64, "hour {hour}");
    }
}
