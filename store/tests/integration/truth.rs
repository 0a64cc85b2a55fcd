//! Answers of every tier are equal to what is computed from the samples, through crashes and restarts.

use crate::made::{Dice, Made, Maker, UNLIMITED, host, metric, open, push};
use std::collections::BTreeMap;
use std::time::Duration;
use store::bucket::{Bucket, Previous};
use store::exact::Exact;
use store::query::{By, Subject};
use store::reader::{Reader, Selection};
use store::tier::{Tier, floor};
use store::writer::{Sweep, Writer};
use wire::sample::{Number, Semantics};
use wire::time::Time;

const ALWAYS: (Time, Time) = (Time::from_micros(0), Time::from_micros(i64::MAX));

/// Buckets of this step, computed from the samples.
fn truth(made: &[Made], step: Duration) -> BTreeMap<Subject, BTreeMap<Time, Bucket>> {
    let mut previous: BTreeMap<Subject, Previous> = BTreeMap::new();
    let mut buckets: BTreeMap<Subject, BTreeMap<Time, Bucket>> = BTreeMap::new();
    for sweep in made {
        for (metric, value) in sweep.metrics.iter().zip(&sweep.values) {
            let subject = Subject { host: Some(sweep.host.clone()), metric: (**metric).clone() };
            let is_counter = metric.semantics == Semantics::Counter;
            let previous = previous.entry(subject.clone()).or_default();
            let next = previous.next(Exact::from(*value), sweep.time, is_counter).expect("a number");
            let steps = buckets.entry(subject).or_default();
            steps.entry(floor(sweep.time, step)).and_modify(|bucket| bucket.merge(&next)).or_insert(next);
        }
    }
    buckets
}

fn all(since: Time, until: Time) -> Selection<'static> {
    Selection { host: &|_| true, metric: &|_| true, since, until }
}

/// Compares an answer with the truth; doubles that are sums may differ in their last digits, as their order of
/// addition differs.
fn assert_true(reader: &Reader, made: &[Made], step: Duration, tier: Tier) {
    let answer =
        reader.steps(&all(ALWAYS.0, ALWAYS.1), step, &By::Series, false, usize::MAX).expect("any size");
    assert_eq!(answer.damaged, 0);
    assert_eq!(answer.parts.last().map(|part| part.tier), Some(tier));
    let expected = truth(made, step);
    assert_eq!(answer.series.len(), expected.len());
    for ((subject, points), (expected_subject, expected)) in answer.series.iter().zip(&expected) {
        assert_eq!(subject, expected_subject);
        assert_eq!(points.len(), expected.len(), "{step:?} {}", subject.metric.name);
        for (point, (time, expected)) in points.iter().zip(expected) {
            assert_eq!(point.time, *time);
            let found = point.bucket;
            let context = format!("{step:?} {} {time:?}", subject.metric.name);
            assert_eq!(found.count, expected.count, "{context}");
            for (found, expected) in
                [(found.min, expected.min), (found.max, expected.max), (found.last, expected.last)]
            {
                assert_eq!(found.as_f64().to_bits(), expected.as_f64().to_bits(), "{context}");
            }
            assert_eq!(found.increase, expected.increase, "{context}");
            assert_eq!(found.increase_millis, expected.increase_millis, "{context}");
            let error = (found.sum.as_f64() - expected.sum.as_f64()).abs();
            let is_double = subject.metric.name == "duration_seconds";
            let allowed = if is_double { 1e-9 * expected.sum.as_f64().abs() } else { 0.0 };
            assert!(error <= allowed, "{context}: {:?}, expected {:?}", found.sum, expected.sum);
        }
    }
}

fn assert_samples(reader: &Reader, made: &[Made]) {
    let answer = reader.values(&all(ALWAYS.0, ALWAYS.1), usize::MAX).expect("any size");
    let mut expected: BTreeMap<Subject, Vec<(Time, Number)>> = BTreeMap::new();
    for sweep in made {
        for (metric, value) in sweep.metrics.iter().zip(&sweep.values) {
            let subject = Subject { host: Some(sweep.host.clone()), metric: (**metric).clone() };
            expected.entry(subject).or_default().push((sweep.time, *value));
        }
    }
    assert_eq!(answer.series.len(), expected.len());
    for (subject, points) in &answer.series {
        let expected = expected.get_mut(subject).expect("a series of the samples");
        expected.sort_by_key(|(time, _)| *time);
        let different = points.iter().zip(expected.iter()).position(|(found, expected)| found != expected);
        assert!(
            points == expected,
            "{}: {} points, expected {}; the first different one is {different:?}: {:?}, {:?}",
            subject.metric.name,
            points.len(),
            expected.len(),
            different.map(|at| points[at]),
            different.map(|at| expected[at])
        );
    }
}

fn assert_all(reader: &Reader, made: &[Made]) {
    assert_samples(reader, made);
    for (secs, tier) in
        [(10, Tier::Raw), (60, Tier::Minute), (300, Tier::Minute), (3600, Tier::Hour), (86_400, Tier::Hour)]
    {
        assert_true(reader, made, Duration::from_secs(secs), tier);
    }
}

#[test]
fn every_tier_answers_what_the_samples_say() {
    for seed in [1, 77] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = open(folder.path());
        let mut makers = [Maker::new("wn01", seed), Maker::new("wn02", seed + 1)];
        let (mut made, mut dice) = (Vec::new(), Dice(seed + 5));
        for sweep in 0..9000 {
            let next = makers[dice.below(2) as usize].next();
            push(&mut writer, &next);
            made.push(next);
            match dice.below(1500) {
                // A crash right after a flush: nothing is written any more.
                0 => {
                    writer.flush();
                    drop(writer);
                    writer = open(folder.path());
                    assert_all(&writer.reader(), &made);
                }
                1 => {
                    writer.close();
                    writer = open(folder.path());
                }
                2..100 => writer.flush(),
                100..130 => writer.compact(),
                _ => {}
            }
            if sweep % 3000 == 2999 {
                assert_all(&writer.reader(), &made);
            }
        }
        assert_eq!(writer.reader().state().error(), None);
        assert_eq!(writer.reader().state().lost_rows, 0);
    }
}

#[test]
fn what_was_not_flushed_is_lost_in_a_crash_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    let mut maker = Maker::new("wn01", 3);
    let made: Vec<Made> = std::iter::repeat_with(|| maker.next()).take(1500).collect();
    for sweep in &made[..1490] {
        push(&mut writer, sweep);
    }
    writer.flush();
    for sweep in &made[1490..] {
        push(&mut writer, sweep);
    }
    assert_all(&writer.reader(), &made);
    drop(writer);
    let mut writer = open(folder.path());
    assert_all(&writer.reader(), &made[..1490]);
    let next = maker.next();
    push(&mut writer, &next);
    let expected: Vec<Made> = made[..1490].iter().cloned().chain([next]).collect();
    assert_all(&writer.reader(), &expected);
}

#[test]
fn a_part_of_the_time_and_of_the_series_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    let mut maker = Maker::new("wn01", 9);
    let made: Vec<Made> = std::iter::repeat_with(|| maker.next()).take(4000).collect();
    made.iter().for_each(|sweep| push(&mut writer, sweep));
    let reader = writer.reader();
    let minute = Duration::from_secs(60);
    let (since, until) = (floor(made[1000].time, minute), floor(made[3000].time, minute));
    let selection = Selection { metric: &|metric| metric.name == "bytes_total", ..all(since, until) };
    for step in [10, 60] {
        let step = Duration::from_secs(step);
        let answer = reader.steps(&selection, step, &By::Series, false, usize::MAX).expect("any size");
        let [(subject, points)] = answer.series.as_slice() else { panic!("one series") };
        let expected = &truth(&made, step)[subject];
        let expected: Vec<_> = expected.range(since..until).map(|(time, bucket)| (*time, *bucket)).collect();
        let found: Vec<_> = points.iter().map(|point| (point.time, point.bucket)).collect();
        assert!(found == expected, "step {step:?}");
    }
    let few = reader.steps(&all(ALWAYS.0, ALWAYS.1), minute, &By::Series, false, 100);
    assert!(few.is_err_and(|error| error.to_string().contains("more than 100 values")));
    let by_host = reader.steps(&all(since, until), minute, &By::Host, true, usize::MAX).expect("any size");
    assert_eq!(by_host.series.len(), 6, "one for each name");
    assert!(by_host.series[0].1.iter().all(|point| point.values.is_sorted() && !point.values.is_empty()));
}

#[test]
fn rates_are_true_at_the_first_sample_after_a_gap_and_of_merged_series() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    let metrics = [metric("work_total", Semantics::Counter, &[])].into();
    let at = |secs: u64| Time::from_micros(1_795_000_000_000_000 + secs.cast_signed() * 1_000_000);
    // Ten and three a second, with a gap of 400 seconds.
    for secs in (0..300).chain(700..1000) {
        for (name, rate) in [("wn01", 10), ("wn02", 3)] {
            let values = [Number::Whole(rate * secs)];
            writer.push(&host(name), Sweep { time: at(secs), metrics: &metrics, values: &values });
        }
    }
    let reader = writer.reader();
    for (by, expected) in [(By::Series, vec![10.0, 3.0]), (By::Name, vec![13.0])] {
        for step in [1, 7, 60, 3600] {
            let step = Duration::from_secs(step);
            let answer =
                reader.steps(&all(ALWAYS.0, ALWAYS.1), step, &by, true, usize::MAX).expect("any size");
            let values =
                || answer.series.iter().flat_map(|(_, points)| points).flat_map(|point| &point.values);
            assert!(values().all(|value| *value == 10.0 || *value == 3.0), "{step:?}: they are rates");
            let rates: Vec<Vec<Option<f64>>> = answer
                .series
                .iter()
                .map(|(_, points)| points.iter().map(|point| point.rate).collect())
                .collect();
            for (rates, expected) in rates.iter().zip(&expected) {
                let (first, others) = rates.split_first().expect("some steps");
                assert!(first.is_none_or(|rate| rate == *expected), "{step:?}: {first:?}");
                assert!(others.iter().all(|rate| *rate == Some(*expected)), "{step:?}: {others:?}");
            }
            assert_eq!(rates.len(), expected.len());
        }
    }
}

/// A sample of a minute each, from one o'clock on.
fn minutes(count: usize) -> Vec<Made> {
    let mut maker = Maker::new("wn01", 6);
    let sweeps = std::iter::repeat_with(|| maker.next()).take(count).enumerate();
    let at = |minute: usize| {
        Time::from_micros(1_794_999_600_000_000).plus(Duration::from_secs(60) * minute as u32)
    };
    sweeps.map(|(minute, made)| Made { time: at(minute), ..made }).collect()
}

#[test]
fn minutes_are_counted_once_whenever_the_store_is_opened_again() {
    // Blocks of minutes end at the 60th minute, of hours at the 24th hour: here these are not the same moment.
    let made = minutes(1440 * 2 + 100);
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    for (minute, sweep) in made[37..].iter().enumerate() {
        push(&mut writer, sweep);
        if minute % 1440 > 1390 || minute % 97 == 0 {
            writer.flush();
            drop(writer);
            writer = open(folder.path());
            for (secs, tier) in [(60, Tier::Minute), (3600, Tier::Hour)] {
                assert_true(&writer.reader(), &made[37..=37 + minute], Duration::from_secs(secs), tier);
            }
        }
    }
}

#[test]
fn hours_are_true_though_a_power_failure_lost_their_newest_minutes() {
    let made = minutes(1600);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("1m").join(format!("{:020}.seg", 1));
    let mut writer = Writer::open(folder.path(), UNLIMITED).expect("opened");
    let mut lost = Vec::new();
    for (minute, sweep) in made.iter().enumerate() {
        push(&mut writer, sweep);
        if minute == 1400 {
            lost = std::fs::read(&file).expect("some minutes are stored");
        }
    }
    writer.flush();
    drop(writer);
    std::fs::write(&file, lost).expect("written");
    let writer = Writer::open(folder.path(), UNLIMITED).expect("opened");
    for (secs, tier) in [(60, Tier::Minute), (3600, Tier::Hour)] {
        assert_true(&writer.reader(), &made, Duration::from_secs(secs), tier);
    }
}
