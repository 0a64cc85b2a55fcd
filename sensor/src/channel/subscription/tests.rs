//! Tests of subscriptions over made-up sweeps at made-up times.

use super::*;
use crate::process::table::Coverage;
use wire::channel::stream::{Body, Entry};
use wire::channel::{Budget, expression};
use wire::process::{Process, ProcessKey};

/// Sweeps at a rate, over processes that each use a fraction of a core.
struct Sweeps {
    view: View,
    number: u64,
    now: Duration,
    shares: Vec<f64>,
}

impl Sweeps {
    fn new(shares: &[f64]) -> Sweeps {
        Sweeps { view: View::default(), number: 0, now: Duration::from_secs(100), shares: shares.to_vec() }
    }

    /// Makes the next sweep, this long after the previous one.
    fn next(&mut self, after: Duration) {
        self.number += 1;
        self.now += after;
        let at_ns = u64::try_from(self.now.as_nanos()).expect("not long after boot");
        self.view.table.begin(self.number, at_ns, Coverage::All);
        for (pid, share) in (1..).zip(&self.shares) {
            let mut process = Process { key: ProcessKey { pid, start_ns: 1 }, ..Process::default() };
            process.usage.cpu_ns = (self.now.as_secs_f64() * share * 1e9) as u64;
            self.view.table.set(process);
        }
        self.view.table.end(0);
    }

    fn offer(&self, subscription: &mut Subscription) {
        if subscription.is_due(self.now) {
            subscription.sample(&self.view, self.now);
        }
    }
}

fn compiled(rate: f64, filter: &str, change: impl FnOnce(&mut ChannelRequest)) -> CompiledRequest {
    let rate = rate.try_into().expect("allowed");
    let mut wanted = ChannelRequest {
        rate,
        filter: expression::filter(filter).expect("understood"),
        ..ChannelRequest::default()
    };
    change(&mut wanted);
    CompiledRequest::new(wanted, || Duration::ZERO).expect("it can be used")
}

fn subscription(rate: f64, filter: &str) -> Subscription {
    Subscription::new(compiled(rate, filter, |_| ()), Duration::from_secs(100))
}

fn take(subscription: &mut Subscription) -> Vec<Entry> {
    subscription.take(usize::MAX).entries().collect()
}

fn sweeps_of(entries: &[Entry]) -> Vec<u64> {
    let sweep = |entry: &Entry| match &entry.body {
        Body::Sample { sweep, .. } => Some(*sweep),
        Body::Signal { .. }
        | Body::Missed(_)
        | Body::Quarantined(_)
        | Body::Readings { .. }
        | Body::Event(_)
        | Body::Call(_)
        | Body::Figures(_) => None,
    };
    entries.iter().filter_map(sweep).collect()
}

/// Delay of a sweep: up to some tenths of a millisecond, as in practice.
fn jitter(number: u64) -> Duration {
    Duration::from_micros(number * 7919 % 300)
}

#[test]
fn each_rate_gets_the_sweeps_due_to_it_though_none_is_exactly_on_time() {
    for (of, per) in [(64.0, 1), (32.0, 2), (16.0, 4), (64.0 / 3.0, 3), (1.0, 64)] {
        let mut sweeps = Sweeps::new(&[0.5]);
        let mut subscription = subscription(of, "");
        let period = Duration::from_secs_f64(1.0 / 64.0);
        for number in 0..640 {
            sweeps.next(period + jitter(number + 1) - jitter(number).min(period));
            sweeps.offer(&mut subscription);
        }
        let received = sweeps_of(&take(&mut subscription));
        assert_eq!(received, (1..=640).step_by(per).collect::<Vec<_>>(), "{of} Hz");
    }
}

#[test]
fn a_rate_that_does_not_divide_that_of_the_sweeps_is_kept_on_average() {
    let mut sweeps = Sweeps::new(&[0.5]);
    let mut subscription = subscription(50.0, "");
    let mut received = Vec::new();
    for _ in 0..6400 {
        sweeps.next(Duration::from_secs_f64(1.0 / 64.0));
        sweeps.offer(&mut subscription);
        received.extend(sweeps_of(&take(&mut subscription)));
    }
    assert!((4999..=5001).contains(&received.len()), "{}", received.len());
    assert!(received.windows(2).all(|pair| pair[1] - pair[0] <= 2));
}

#[test]
fn altering_a_thousand_times_loses_nothing() {
    let mut sweeps = Sweeps::new(&[0.5, 0.1, 0.9]);
    let mut subscription = subscription(64.0, "");
    let period = Duration::from_secs_f64(1.0 / 64.0);
    let mut entries = Vec::new();
    for number in 0..2000_u64 {
        sweeps.next(period);
        sweeps.offer(&mut subscription);
        if number % 2 == 1 {
            // Rate and filter change by turns, but every sweep is due at each of these rates.
            let rate = [64.0, 70.0, 100.0, 1000.0][number as usize / 2 % 4];
            let filter =
                ["", "cpu >= 0", "top 2 by cpu", "pid < 3 and cpu_seconds changes"][number as usize / 8 % 4];
            subscription.alter(compiled(rate, filter, |_| ()), sweeps.now);
        }
        if number % 50 == 0 {
            entries.extend(take(&mut subscription));
        }
    }
    entries.extend(take(&mut subscription));
    assert_eq!(sweeps_of(&entries), (1..=2000).collect::<Vec<_>>());
    assert!(entries.iter().zip(0..).all(|(entry, number)| entry.number == number));
    assert_eq!(
        entries.last().map(|entry| entry.revision),
        Some(999),
        "the last one was altered after its sample"
    );
    assert_eq!(subscription.status().revision, 1000);
    assert_eq!(subscription.status().missed_total, 0);
}

#[test]
fn a_filter_holds_from_the_sample_after_it_was_altered() {
    let mut sweeps = Sweeps::new(&[0.5, 0.1, 0.9]);
    let mut subscription = subscription(10.0, "cpu > 0.3");
    let pids = |subscription: &mut Subscription, sweeps: &mut Sweeps| -> Vec<Vec<u32>> {
        sweeps.next(Duration::from_millis(100));
        sweeps.offer(subscription);
        let of = |entry: Entry| {
            let Body::Sample { records, .. } = &entry.body else { panic!("{entry:?}") };
            records.iter().map(|record| record.process.key.pid).collect()
        };
        take(subscription).into_iter().map(of).collect()
    };
    assert!(pids(&mut subscription, &mut sweeps).is_empty(), "no share is known yet");
    assert_eq!(pids(&mut subscription, &mut sweeps), [[1, 3]]);
    subscription.alter(compiled(10.0, "cpu > 0.3 top 1 by cpu", |_| ()), sweeps.now);
    assert_eq!(pids(&mut subscription, &mut sweeps), [[3]], "shares go on");
    let status = subscription.status();
    assert_eq!(status.counts, Counts { due_total: 3, empty_total: 1 });
}

#[test]
fn a_condition_signals_in_the_stream() {
    let mut sweeps = Sweeps::new(&[0.5]);
    let wanted = |wanted: &mut ChannelRequest| {
        wanted.condition = Some(expression::condition("sum cpu > 1.5 until 1").expect("understood"));
    };
    let mut subscription = Subscription::new(compiled(1.0, "top 1 by cpu", wanted), sweeps.now);
    subscription.alter(compiled(1.0, "", wanted), sweeps.now);
    let mut signals = Vec::new();
    for shares in
        [vec![0.5, 0.5], vec![0.5, 0.5], vec![0.5, 0.5, 0.9], vec![0.5, 0.5, 0.9], vec![0.5], vec![0.5]]
    {
        sweeps.shares = shares;
        sweeps.next(Duration::from_secs(1));
        sweeps.offer(&mut subscription);
        for entry in take(&mut subscription) {
            if let Body::Signal { is_true, .. } = entry.body {
                signals.push((sweeps.number, is_true));
            }
        }
    }
    assert_eq!(signals, [(4, true), (5, false)], "the third is known from the sample after its first");
    assert_eq!(subscription.status().is_true, Some(false));
}

#[test]
fn bytes_beyond_the_budget_are_missed_and_reported_in_the_stream() {
    let mut sweeps = Sweeps::new(&[0.5; 200]);
    let mut subscription = Subscription::new(
        compiled(100.0, "", |wanted| wanted.budget = Budget { bytes: 20_000, ..Budget::default() }),
        sweeps.now,
    );
    for _ in 0..1000 {
        sweeps.next(Duration::from_millis(10));
        sweeps.offer(&mut subscription);
    }
    let status = subscription.status();
    assert!((200_000.0..=230_000.0).contains(&status.bytes_total), "ten seconds: {}", status.bytes_total);
    let (mut next, mut missed) = (0, 0);
    for entry in take(&mut subscription) {
        assert_eq!(entry.number, next);
        next += match entry.body {
            Body::Missed(count) => {
                missed += count;
                count
            }
            Body::Sample { .. }
            | Body::Signal { .. }
            | Body::Quarantined(_)
            | Body::Readings { .. }
            | Body::Event(_)
            | Body::Call(_)
            | Body::Figures(_) => 1,
        };
    }
    assert_eq!((next, missed), (1000, status.missed_total));
    assert!(missed > 900, "{missed}");
}

#[test]
fn what_costs_too_much_is_stopped_reported_and_goes_on_when_altered() {
    let mut sweeps = Sweeps::new(&[0.5]);
    let endless = |wanted: &mut ChannelRequest| wanted.script = Some("loop {}".to_owned());
    let mut subscription = Subscription::new(compiled(10.0, "", endless), sweeps.now);
    let mut run = |subscription: &mut Subscription, cpu: Duration| {
        for _ in 0..20 {
            sweeps.next(Duration::from_millis(100));
            if subscription.is_due(sweeps.now) {
                subscription.sample(&sweeps.view, sweeps.now);
                subscription.charge(cpu, 1, sweeps.now);
            }
        }
        sweeps.now
    };
    let now = run(&mut subscription, Duration::ZERO);
    let entries = take(&mut subscription);
    assert!(
        matches!(entries.as_slice(), [Entry { body: Body::Quarantined(reason), .. }] if reason.contains("end the loop")),
        "{entries:?}"
    );
    assert_eq!(subscription.status().counts.due_total, 1, "it is not run again");
    subscription.alter(compiled(10.0, "", |_| ()), now);
    let now = run(&mut subscription, Duration::from_millis(1));
    assert_eq!(sweeps_of(&take(&mut subscription)).len(), 20);
    run(&mut subscription, Duration::from_millis(15));
    let status = subscription.status();
    assert!(status.quarantined.is_some_and(|reason| reason.contains("at most 20 ms of CPU time")));
    assert!((2..=4).contains(&sweeps_of(&take(&mut subscription)).len()));
    subscription.alter(compiled(10.0, "", |wanted| wanted.budget.cpu_ms = 500), now + Duration::from_secs(9));
    run(&mut subscription, Duration::from_millis(15));
    assert!(subscription.is_live());
}

#[test]
fn what_comes_from_another_source_goes_by_its_clock() {
    let mut subscription = subscription(1.0, "");
    let mut late = Sweeps::new(&[0.5]);
    late.now = Duration::from_secs(10_000);
    late.next(Duration::from_millis(900));
    late.offer(&mut subscription);
    subscription.restart();
    let mut early = Sweeps::new(&[0.5]);
    for _ in 0..3 {
        early.next(Duration::from_secs(1));
        early.offer(&mut subscription);
    }
    assert_eq!(sweeps_of(&take(&mut subscription)), [1, 1, 2, 3]);
}

/// A consumer that applies the entries it is sent, with its processes by id.
#[derive(Default)]
struct Consumer {
    known: std::collections::BTreeMap<u32, Process>,
    wholes: usize,
    records: usize,
}

impl Consumer {
    fn apply(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let Body::Sample { gone, records, .. } = entry.body else { panic!("{entry:?}") };
            match gone {
                None => {
                    self.known.clear();
                    self.wholes += 1;
                }
                Some(gone) => gone.iter().for_each(|pid| assert!(self.known.remove(pid).is_some(), "{pid}")),
            }
            self.records += records.len();
            self.known.extend(records.into_iter().map(|record| (record.process.key.pid, record.process)));
        }
    }
}

#[test]
fn changes_say_the_same_as_whole_samples_with_fewer_records() {
    for filter in ["", "cpu > 0.05", "pid < 9", "top 3 by cpu", "cpu_seconds changes by 1"] {
        // Half of them do not change.
        let shares: Vec<f64> =
            (0..20).map(|nth| if nth % 2 == 0 { 0.0 } else { 0.01 * f64::from(nth) }).collect();
        let mut sweeps = Sweeps::new(&shares);
        let mut of_all = subscription(64.0, filter);
        let changes = compiled(32.0, filter, |wanted| wanted.changes = true);
        let mut of_changes = Subscription::new(changes, Duration::from_secs(100));
        let slow = compiled(32.0, filter, |_| ());
        let mut slow = Subscription::new(slow, Duration::from_secs(100));
        let mut consumer = Consumer::default();
        let mut records = 0;
        for number in 0..400 {
            if number == 200 {
                sweeps.shares.truncate(12);
            }
            sweeps.next(Duration::from_secs_f64(1.0 / 64.0));
            for subscription in [&mut of_all, &mut of_changes, &mut slow] {
                sweeps.offer(subscription);
            }
            consumer.apply(take(&mut of_changes));
            take(&mut of_all);
            let due = number % 2 == 0;
            let received = take(&mut slow);
            let all: Vec<Process> = received
                .into_iter()
                .flat_map(|entry| {
                    let Body::Sample { records, .. } = entry.body else { panic!("{entry:?}") };
                    records
                })
                .map(|record| record.process)
                .collect();
            if due {
                records += all.len();
                let mut all: Vec<Process> = all;
                all.sort_by_key(|process| process.key);
                let known: Vec<Process> = consumer.known.values().cloned().collect();
                assert_eq!(known, all, "{filter}, sweep {number}");
            }
        }
        assert_eq!(consumer.wholes, 1, "{filter}");
        if filter.is_empty() {
            assert!(consumer.records * 3 < records * 2, "{} of {records}", consumer.records);
        }
    }
}

#[test]
fn after_a_miss_comes_a_whole_sample() {
    let mut sweeps = Sweeps::new(&[0.5; 50]);
    let changes = compiled(64.0, "", |wanted| {
        wanted.changes = true;
        wanted.budget.queue_bytes = wire::channel::QUEUE_MIN_BYTES;
    });
    let mut subscription = Subscription::new(changes, Duration::from_secs(100));
    let mut step = |subscription: &mut Subscription| {
        sweeps.next(Duration::from_millis(16));
        sweeps.offer(subscription);
    };
    (0..20).for_each(|_| step(&mut subscription));
    let entries = take(&mut subscription);
    assert!(matches!(entries[0].body, Body::Missed(_)), "{:?}", entries[0]);
    step(&mut subscription);
    let next = take(&mut subscription);
    assert!(matches!(&next[0].body, Body::Sample { gone: None, records, .. } if records.len() == 50));
    step(&mut subscription);
    let next = take(&mut subscription);
    assert!(matches!(&next[0].body, Body::Sample { gone: Some(_), .. }));
}

#[test]
fn a_script_says_itself_what_is_sent() {
    let wanted =
        ChannelRequest { changes: true, script: Some("true".to_owned()), ..ChannelRequest::default() };
    assert!(matches!(CompiledRequest::new(wanted, || Duration::ZERO), Err(Error::ChangesOfScript)));
}
