//! Tests of past processes: entries built from segments, applied as a client would.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::process::delta::{Encoder, Sweep};
use wire::process::{ProcessKey, Usage};

const SECOND_NS: u64 = 1_000_000_000;
const BASE: Time = Time::from_micros(1_700_000_000_000_000);

/// More rows than any of these tables has.
const PLACES: usize = 16;

type Rows = Vec<Option<Process>>;

fn process(pid: u32, start_ns: u64, cpu_ns: u64) -> Process {
    let usage = Usage { cpu_ns, ..Usage::default() };
    Process { key: ProcessKey { pid, start_ns }, usage, name: format!("p{pid}").into(), ..Process::default() }
}

/// Builds segments with sweeps at these times, `per_segment` in each.
fn segments(sweeps: &[(u64, Rows)], per_segment: usize) -> Vec<Segment> {
    let mut encoder = Encoder::default();
    let mut number = 0;
    let segment = |sweeps: &[(u64, Rows)]| {
        let mut segment = Segment::default();
        for (place, (begin_ns, rows)) in sweeps.iter().enumerate() {
            number += 1;
            let sweep = Sweep { number, begin_ns: *begin_ns, took_ns: 1 };
            segment.push_sweep(*begin_ns, rows.len(), |out| match place {
                0 => encoder.whole(sweep, rows, out),
                _ => drop(encoder.changes(sweep, rows, 0..PLACES, out)),
            });
        }
        segment
    };
    sweeps.chunks(per_segment).map(segment).collect()
}

fn at(secs: f64) -> Time {
    BASE.plus(Duration::from_secs_f64(secs))
}

fn wanted(from: f64, to: f64) -> SweepQuery {
    SweepQuery {
        from: at(from),
        to: at(to),
        every: Duration::ZERO,
        limit: 10_000,
        visibility: Visibility::ALL,
    }
}

fn gathered(wanted: SweepQuery, segments: &[Segment]) -> EntryBuilder {
    let mut past = EntryBuilder::new(wanted);
    segments.iter().for_each(|segment| past.play(segment, BASE));
    past.end(None);
    past
}

/// Shows each entry as milliseconds since the base, `*` for a whole sweep, `~` for a gap, and the number of
/// processes that it names.
fn summary(past: &EntryBuilder) -> Vec<String> {
    let entry = |entry: &PastEntry| {
        let ms = (entry.time.0.micros() - BASE.micros() + 500).div_euclid(1_000);
        match (entry.processes.as_ref().map(Vec::len), &entry.gone) {
            (None, _) => format!("{ms}~"),
            (Some(named), None) => format!("{ms}*{named}"),
            (Some(named), Some(_)) => format!("{ms}+{named}"),
        }
    };
    past.entries.iter().map(entry).collect()
}

fn steady(from_s: u64, to_s: u64) -> Vec<(u64, Rows)> {
    let rows = |second| vec![Some(process(1, 1, second)), None, Some(process(2, 1, 7))];
    (from_s..=to_s).map(|second| (second * SECOND_NS, rows(second))).collect()
}

#[test]
fn what_changed_is_returned_and_what_is_not_known() {
    let mut sweeps = steady(10, 13);
    sweeps.extend(steady(20, 21));
    let past = gathered(wanted(9.0, 30.0), &segments(&sweeps, 3));
    let expected = ["10000*2", "11000+1", "12000+1", "13000+1", "14000~", "20000*2", "21000+1", "22000~"];
    assert_eq!((summary(&past), past.next), (expected.map(str::to_owned).to_vec(), None));
    let past = gathered(wanted(11.5, 12.5), &segments(&sweeps, 3));
    assert_eq!(summary(&past), ["12000*2"]);
    for (wanted, expected) in
        [(wanted(2.0, 10.5), vec!["2000~", "10000*2"]), (wanted(2.0, 4.0), vec!["2000~"])]
    {
        assert_eq!(summary(&gathered(wanted, &segments(&sweeps, 3))), expected);
    }
    assert_eq!(summary(&gathered(wanted(15.0, 19.0), &segments(&sweeps, 3))), ["15000~"]);
}

#[test]
fn what_two_recordings_hold_is_returned_once() {
    let (one, other) = (segments(&steady(10, 14), 2), segments(&steady(12, 16), 5));
    let mut past = EntryBuilder::new(wanted(0.0, 16.0));
    one.iter().chain(&other).for_each(|segment| past.play(segment, BASE));
    past.end(None);
    let times: Vec<String> = summary(&past).into_iter().skip(1).collect();
    assert_eq!(times, ["10000*2", "11000+1", "12000+1", "13000+1", "14000+1", "15000+1", "16000+1"]);
}

#[test]
fn between_two_sweeps_nothing_is_missing() {
    let sweeps = segments(&steady(10, 13), 2);
    for (from, to) in [(11.2, 11.4), (12.2, 12.4), (13.2, 14.0)] {
        assert_eq!(summary(&gathered(wanted(from, to), &sweeps)), [] as [&str; 0], "sweeps surround it");
    }
    assert_eq!(summary(&gathered(wanted(13.2, 18.0), &sweeps)), ["13200~"], "long after the last");
    let mut past = EntryBuilder::new(wanted(10.0, 12.0));
    sweeps.iter().for_each(|segment| past.play(segment, BASE));
    past.end(Some(at(12.5)));
    assert_eq!((summary(&past).len(), past.next), (3, Some(at(12.5))), "there is more from then on");
}

#[test]
fn slow_sweeps_are_no_gaps_and_fast_ones_are_thinned_out_evenly() {
    let slow: Vec<_> = (0..5).map(|sweep| (sweep * 3 * SECOND_NS, steady(1, 1)[0].1.clone())).collect();
    let past = gathered(wanted(0.0, 15.0), &segments(&slow, 9));
    assert_eq!(summary(&past), ["0*2", "3000+0", "6000+0", "9000+0", "12000+0"]);
    let fast: Vec<_> = (0..160).map(|sweep| (sweep * SECOND_NS / 16, steady(1, 1)[0].1.clone())).collect();
    let every = Duration::from_millis(100);
    let past = gathered(SweepQuery { every, ..wanted(0.0, 10.0) }, &segments(&fast, 40));
    assert!((95..=101).contains(&past.entries.len()), "ten a second of sixteen: {}", past.entries.len());
}

#[test]
fn a_segment_that_is_spoilt_is_counted_and_the_next_one_is_returned() {
    let whole = segments(&steady(10, 15), 3);
    let bytes = postcard::to_stdvec(&whole[0]).unwrap();
    let cut =
        bytes.iter().enumerate().map(|(place, byte)| if place > bytes.len() - 4 { 0xff } else { *byte });
    let spoilt: Segment = postcard::from_bytes(&cut.collect::<Vec<u8>>()).unwrap();
    let past = gathered(wanted(10.0, 15.0), &[spoilt, whole[1].clone()]);
    assert_eq!((past.unreadable, summary(&past).last().map(String::as_str)), (1, Some("15000+1")));
}

/// Returns the table of a client that applies the entries, at each time.
fn apply(known: &mut BTreeMap<u32, u64>, entry: &PastEntry) {
    match &entry.gone {
        None => known.clear(),
        Some(gone) => gone.iter().for_each(|pid| assert!(known.remove(pid).is_some())),
    }
    known.extend(entry.processes.iter().flatten().map(|process| (process.pid, process.start_ns)));
}

proptest! {
    #[test]
    fn who_applies_the_entries_of_all_answers_knows_each_sweep(
        sweeps in prop::collection::vec(prop::collection::vec(prop::option::of((1..9_u32, 0..3_u64, 0..3_u64)), 0..6), 1..40),
        per_segment in 1..9_usize,
        limit in 1..20_usize,
    ) {
        let rows = |row: &Vec<Option<(u32, u64, u64)>>| -> Rows {
            // There is one process for each pid.
            let mut numbers = std::collections::BTreeSet::new();
            row.iter().map(|one| one.filter(|(pid, ..)| numbers.insert(*pid)).map(|(pid, start, cpu)| process(pid, start, cpu))).collect()
        };
        let sweeps: Vec<(u64, Rows)> =
            (0_u64..).zip(&sweeps).map(|(number, row)| ((number + 1) * SECOND_NS, rows(row))).collect();
        let segments = segments(&sweeps, per_segment);
        let mut known = BTreeMap::new();
        let mut wanted = SweepQuery { limit, ..wanted(0.5, 100.0) };
        let mut expected = sweeps.iter();
        for _ in 0..=sweeps.len() {
            let past = gathered(wanted, &segments);
            let samples = past.entries.iter().filter(|entry| entry.processes.is_some());
            for entry in samples {
                apply(&mut known, entry);
                let (_, rows) = expected.next().unwrap();
                let are: BTreeMap<u32, u64> = rows.iter().flatten().map(|row| (row.key.pid, row.key.start_ns)).collect();
                prop_assert_eq!(&known, &are);
            }
            match past.next {
                Some(next) => wanted.from = next,
                None => break,
            }
        }
        prop_assert!(expected.next().is_none());
    }
}
