//! A representative that reads slower than the samples come: samples are thinned and the loss is counted
//! exactly; events wait.

use crate::report::rig::Rig;
use sensor::representative::domain::Config;
use sensor::sample::table::{Rows, Table, metric};
use wire::report::Allowance;
use wire::sample::{Number, Semantics};
use wire::time::Time;

pub const COLUMNS: u64 = 200;

/// Sweeps a host where every value changes.
pub fn sweep(rows: &mut Rows, second: u64) -> Table {
    let metrics: Vec<_> =
        (0..COLUMNS).map(|at| metric(&format!("m{at}"), "", Semantics::Gauge, &[])).collect();
    for (at, metric) in (0..).zip(&metrics) {
        rows.push_whole(metric, (second * 7919 + at) * 2_654_435_761 % 1_000_003);
    }
    rows.finish(Time::from_micros(second as i64 * 1_000_000))
}

fn run(bytes_per_sweep: usize) -> (Rig, u64) {
    let mut rig = Rig::new(1, Config::default());
    rig.members[0].read(100);
    rig.settle();
    let mut rows = Rows::default();
    let now = rig.now;
    for second in 0..2000 {
        let table = sweep(&mut rows, second);
        rig.members[0].sender.handle_sweep(&table);
        rig.members[0].move_bytes(&mut rig.domain, bytes_per_sweep, now);
        if second % 10 == 0 {
            rig.members[0].read(3);
            rig.members[0].sync();
            rig.members[0].report(1, 1000);
        }
        rig.commit();
        rig.deliver();
    }
    rig.settle();
    // The next sweep that is sent reports the count of all those omitted before it.
    let before = rig.members[0].sender.counts().samples_total;
    let mut taken = 2000;
    while rig.members[0].sender.counts().samples_total == before {
        let table = sweep(&mut rows, taken);
        rig.members[0].sender.handle_sweep(&table);
        rig.settle();
        taken += 1;
    }
    (rig, taken * COLUMNS)
}

#[test]
fn a_slow_reader_gets_fewer_samples_and_all_events_and_knows_how_many_are_missing() {
    let (rig, taken) = run(150);
    let host = &rig.domain.hosts(rig.now.moment)[0];
    let counts = rig.members[0].sender.counts();
    assert!(counts.thinned_total > taken / 4, "{} of {taken} left out", counts.thinned_total);
    assert_eq!(counts.samples_total + counts.thinned_total, taken);
    assert_eq!(host.samples, counts.samples_total, "what was sent came");
    assert_eq!(host.samples + host.samples_thinned, taken, "what was not sent is counted");
    assert_eq!(rig.faults(), (0, 0));
    assert_eq!(rig.domain.counts().events_total, 100 + 200 * 3);
}

#[test]
fn a_fast_reader_gets_everything() {
    let (rig, taken) = run(1 << 20);
    let host = &rig.domain.hosts(rig.now.moment)[0];
    assert_eq!((host.samples, host.samples_thinned), (taken, 0));
}

#[test]
fn the_newest_values_are_those_of_the_last_sweep_sent() {
    let (rig, _) = run(1 << 20);
    let all =
        rig.domain.metrics(|_| true, |metric| metric.name == "m7", Time::from_micros(1_990_000_000), 1000);
    let points = &all.0[0].series[0].points;
    assert_eq!(points.len(), 11);
    for (time, value) in points {
        let second = (time.micros() / 1_000_000) as u64;
        assert_eq!(*value, Number::Whole((second * 7919 + 7) * 2_654_435_761 % 1_000_003));
    }
}

#[test]
fn the_representative_may_ask_for_fewer_sweeps() {
    let mut rig = Rig::new(1, Config::default());
    rig.settle();
    rig.domain.set_allowance(Allowance { events_len_bytes: 1000, stride: 4 });
    rig.settle();
    let mut rows = Rows::default();
    for second in 0..100 {
        let table = sweep(&mut rows, second);
        rig.members[0].sender.handle_sweep(&table);
        rig.settle();
    }
    let counts = rig.members[0].sender.counts();
    assert_eq!((counts.samples_total, counts.thinned_total), (25 * COLUMNS, 75 * COLUMNS));
}

/// Events in flight are bounded by the allowance of the representative.
#[test]
fn events_wait_for_acknowledgements() {
    let mut rig = Rig::new(1, Config::default());
    rig.config.allowance.events_len_bytes = 10_000;
    rig.restart();
    rig.settle();
    rig.members[0].filler = 200;
    rig.members[0].read(5000);
    rig.members[0].sync();
    rig.members[0].report(1000, 20);
    let sent = rig.members[0].sender.counts().events_total;
    assert!((20..80).contains(&sent), "{sent} events of 10,000 bytes allowed");
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
}
