//! Many subscriptions on one sensor: each gets its own samples, independent of the others.

#![allow(clippy::unwrap_used)]

use sensor::channel::hub::{Budget as Shares, Error, Hub, IDLE_MAX, Id, SUBSCRIPTIONS_MAX};
use sensor::process::sampler::Sampler;
use sensor::process::source::{self, ChosenSource, Kind, Source, View};
use sensor::process::table::Coverage;
use sensor::sample::schedule;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::channel::stream::{Body, Entry};
use wire::channel::{Budget, ChannelRequest, expression};
use wire::process::{Process, ProcessKey};

/// Processes of the simulated host.
const PROCESSES: u32 = 40;

/// Sweeps a host on which process N uses N hundredths of a core.
fn sweep(view: &mut View, number: u64, at: Duration) {
    view.table.begin(number, u64::try_from(at.as_nanos()).unwrap(), Coverage::All);
    for pid in 1..=PROCESSES {
        let mut process =
            Process { key: ProcessKey { pid, start_ns: 1 }, rss_kib: u64::from(pid), ..Process::default() };
        process.usage.cpu_ns = u64::try_from(at.as_nanos()).unwrap() / 100 * u64::from(pid);
        view.table.set(process);
    }
    view.table.end(0);
}

fn wanted(rate: f64, filter: &str) -> ChannelRequest {
    // The cost of the evaluation without optimization is not tested here.
    let budget = Budget { cpu_ms: 500, ..Budget::default() };
    let filter = expression::filter(filter).unwrap();
    ChannelRequest { rate: rate.try_into().unwrap(), filter, budget, ..ChannelRequest::default() }
}

fn scripted(script: &str) -> ChannelRequest {
    ChannelRequest { script: Some(script.to_owned()), ..wanted(64.0, "") }
}

/// Subscriber: its request, and the entries it received.
struct Taker {
    id: Id,
    /// A sample is due at every sweep of this multiple.
    every: usize,
    pids: Vec<u32>,
    got: Vec<Entry>,
}

impl Taker {
    async fn take(&mut self, hub: &Hub) {
        self.got.extend(hub.take(self.id, 1000, Duration::ZERO).await.unwrap().entries);
    }

    /// Checks that every due sample is there, with the matching processes, numbered without a gap.
    fn check(&self, sweeps: u64) {
        let mut due = (1..=sweeps).step_by(self.every);
        for (entry, number) in self.got.iter().zip(0..) {
            assert_eq!(entry.number, number);
            let Body::Sample { sweep, records, .. } = &entry.body else { panic!("{entry:?}") };
            assert_eq!(Some(*sweep), due.next());
            let pids: Vec<u32> = records.iter().map(|record| record.process.key.pid).collect();
            assert_eq!(pids, self.pids);
        }
        assert_eq!(due.next(), None, "every {}th of {sweeps}", self.every);
    }
}

/// Filters, with the process ids that match.
fn filters() -> Vec<(&'static str, Vec<u32>)> {
    vec![
        ("", (1..=PROCESSES).collect()),
        ("pid <= 7", (1..=7).collect()),
        ("top 3 by rss_bytes", vec![40, 39, 38]),
        ("rss_bytes >= 38ki and pid != 39", vec![38, 40]),
        ("state = \"sleeping\" and name !~ \"x\" top 1 by pid", vec![40]),
    ]
}

/// A subscriber that joins while a host is swept gets CPU usage in its first sample.
#[tokio::test]
async fn a_first_sample_has_what_was_used_of_late() {
    let (hub, mut view) = (Hub::default(), View::default());
    for number in 1..4 {
        sweep(&mut view, number, Duration::from_secs(number));
        view.recent.update(&view.table);
    }
    let mut tap = hub.tap();
    let id = hub.subscribe(wanted(64.0, "top 2 by cpu")).unwrap();
    sweep(&mut view, 4, Duration::from_secs(4));
    tap.swept(&view, Duration::from_secs(4));
    let entries = hub.take(id, 10, Duration::ZERO).await.unwrap().entries;
    let Some(Body::Sample { records, .. }) = entries.first().map(|entry| &entry.body) else {
        panic!("{entries:?}")
    };
    let shares: Vec<_> = records.iter().map(|record| (record.process.key.pid, record.cpu)).collect();
    assert_eq!(shares, [(40, Some(0.4)), (39, Some(0.39))]);
}

#[tokio::test]
async fn stalled_and_endless_subscribers_cost_the_others_nothing() {
    const SWEEPS: u64 = 640;
    // Slow enough for a hundred evaluations without optimization between two sweeps: their cost is not tested here.
    const RATE_HZ: f64 = 8.0;
    let hub = Hub::with_budget(Shares::new(10_000, 10_000));
    let mut tap = hub.tap();
    let filters = filters();
    let mut takers: Vec<Taker> = (0..89)
        .map(|number| {
            let every = [1, 2, 4, 8, 64][number % 5];
            let (filter, pids) = filters[number / 5 % filters.len()].clone();
            let id =
                hub.subscribe(wanted(RATE_HZ / f64::from(u32::try_from(every).unwrap()), filter)).unwrap();
            Taker { id, every, pids, got: Vec::new() }
        })
        .collect();
    let small = |wanted: ChannelRequest| ChannelRequest {
        budget: Budget { queue_bytes: 8192, ..wanted.budget },
        ..wanted
    };
    let stalled: Vec<Id> = (0..10).map(|_| hub.subscribe(small(wanted(RATE_HZ, ""))).unwrap()).collect();
    let endless = hub.subscribe(scripted("loop {}")).unwrap();
    assert_eq!(hub.statuses().len(), 100);
    let (mut view, period) = (View::default(), Duration::from_secs_f64(1.0 / RATE_HZ));
    for number in 1..=SWEEPS {
        let now = Duration::from_secs(1) + period * u32::try_from(number).unwrap();
        sweep(&mut view, number, now);
        tap.swept(&view, now);
        for taker in takers.iter_mut().filter(|taker| number % (taker.every as u64 * 3) == 0) {
            taker.take(&hub).await;
        }
    }
    for taker in &mut takers {
        taker.take(&hub).await;
        taker.check(SWEEPS);
    }
    for id in stalled {
        let answer = hub.take(id, 1000, Duration::ZERO).await.unwrap();
        let first = answer.entries.first().unwrap();
        assert!(
            matches!(first, Entry { number: 0, body: Body::Missed(count), .. } if *count > 500),
            "{first:?}"
        );
        assert_eq!(answer.entries.last().unwrap().number, SWEEPS - 1, "the newest are there");
    }
    let answer = hub.take(endless, 1000, Duration::ZERO).await.unwrap();
    let is_quarantine =
        |entry: &Entry| matches!(&entry.body, Body::Quarantined(reason) if reason.contains("end the loop"));
    assert!(matches!(answer.entries.as_slice(), [entry] if is_quarantine(entry)), "{:?}", answer.entries);
    assert!(answer.status.quarantined.is_some());
    assert_eq!(answer.status.counts.due_total, 1, "it was run once");
    assert!(answer.status.cpu < Duration::from_millis(500), "{:?}", answer.status.cpu);
}

#[tokio::test]
async fn who_takes_of_a_stopped_one_waits_until_it_goes_on() {
    let hub = Hub::default();
    let mut tap = hub.tap();
    let id = hub.subscribe(scripted("loop {}")).unwrap();
    let mut view = View::default();
    let mut swept = |number: u64| {
        let now = Duration::from_secs(number);
        sweep(&mut view, number, now);
        tap.swept(&view, now);
    };
    swept(1);
    let stopped = hub.take(id, 1, Duration::ZERO).await.unwrap();
    assert!(stopped.status.quarantined.is_some(), "{stopped:?}");
    // Otherwise a client that retries at once would keep both sides busy.
    let mut taking = std::pin::pin!(hub.take(id, 1, Duration::from_secs(60)));
    let at_once = tokio::time::timeout(Duration::ZERO, &mut taking).await;
    assert!(at_once.is_err(), "{at_once:?}");
    hub.alter::<Error>(id, |_| Ok(wanted(64.0, ""))).unwrap();
    swept(2);
    let goes_on = taking.await.unwrap();
    assert!(matches!(goes_on.entries[0].body, Body::Sample { sweep: 2, .. }), "{goes_on:?}");
}

#[tokio::test]
async fn rates_and_filters_altered_a_thousand_times_lose_nothing() {
    let hub = Hub::default();
    let mut tap = hub.tap();
    let id = hub.subscribe(wanted(64.0, "")).unwrap();
    let (mut view, period) = (View::default(), Duration::from_secs_f64(1.0 / 64.0));
    let (filters, mut entries) = (filters(), Vec::new());
    for number in 1..=1000_u32 {
        let now = Duration::from_secs(1) + period * number;
        sweep(&mut view, number.into(), now);
        tap.swept(&view, now);
        // At each of these rates every sweep is due.
        let rate = [64.0, 100.0, 1000.0][number as usize % 3];
        let change = wanted(rate, filters[number as usize % filters.len()].0);
        let altered = hub.alter::<Error>(id, |_| Ok(change.clone())).unwrap();
        assert_eq!(altered.revision, u64::from(number));
        if number % 10 == 0 {
            entries.extend(hub.take(id, 1000, Duration::ZERO).await.unwrap().entries);
        }
    }
    assert_eq!(entries.len(), 1000);
    for (entry, number) in entries.iter().zip(0..) {
        let Body::Sample { sweep, records, .. } = &entry.body else { panic!("{entry:?}") };
        assert_eq!((entry.number, entry.revision, *sweep), (number, number, number + 1));
        let expected = if number == 0 {
            &filters[0].1
        } else {
            &filters[usize::try_from(number).unwrap() % filters.len()].1
        };
        let pids: Vec<u32> = records.iter().map(|record| record.process.key.pid).collect();
        assert_eq!(&pids, expected, "by the filter that held then");
    }
}

#[tokio::test]
async fn who_does_not_take_is_ended_and_there_are_not_too_many() {
    let hub = Hub::default();
    let mut tap = hub.tap();
    let small = ChannelRequest {
        budget: Budget { queue_bytes: 4096, ..Budget::default() },
        ..ChannelRequest::default()
    };
    let ids: Vec<Id> = (0..SUBSCRIPTIONS_MAX).map(|_| hub.subscribe(small.clone()).unwrap()).collect();
    assert!(matches!(hub.subscribe(small.clone()), Err(Error::Full)));
    hub.unsubscribe(ids[0]).unwrap();
    assert!(matches!(hub.unsubscribe(ids[0]), Err(Error::Unknown(_))));
    let large = ChannelRequest {
        budget: Budget { queue_bytes: 8 << 20, ..Budget::default() },
        ..ChannelRequest::default()
    };
    let refused = (0..8).find_map(|number| match number {
        // The large subscriptions take the places of small ones.
        _ if hub.unsubscribe(ids[number + 1]).is_err() => None,
        _ => hub.subscribe(large.clone()).err(),
    });
    assert!(matches!(refused, Some(Error::Queues(more)) if more < 8 << 20), "{refused:?}");
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::from_secs(u64::try_from(now.tv_sec).unwrap());
    let mut view = View::default();
    sweep(&mut view, 1, now);
    tap.swept(&view, now);
    assert!(hub.statuses().len() > 200);
    // The clock of the taking client counts, not that of the sweeps.
    tap.swept(&view, now + 2 * IDLE_MAX);
    assert!(hub.statuses().len() > 200);
    hub.drop_idle(now + IDLE_MAX + Duration::from_secs(2));
    assert!(hub.statuses().is_empty());
    let error = hub.take(ids[20], 1, Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("subscribe again"), "{error}");
}

/// A source that reads the simulated host.
struct MadeUp;

impl Source for MadeUp {
    fn kind(&self) -> Kind {
        Kind::BpfSweep
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), source::Error> {
        sweep(view, number, Duration::from_millis(1000 + number));
        Ok(())
    }

    fn drain(&mut self, _: &mut View) {}

    fn lost_total(&self) -> u64 {
        0
    }
}

#[tokio::test]
async fn the_sensor_sweeps_as_often_as_the_fastest_wants_and_wakes_who_waits() {
    let hub = Hub::default();
    let chosen = ChosenSource { source: Box::new(MadeUp), reasons: Vec::new() };
    let base = schedule::Rate::of_processes(0.1).unwrap();
    let sampler = Sampler::new(chosen, Path::new("/proc"), base, vec![hub.tap()]);
    let handle = sampler.handle();
    hub.set_demand(wire::channel::Kind::Process, handle.demand());
    let shutdown = CancellationToken::new();
    let running = sampler.run(shutdown.clone());
    let asking = async {
        let id = hub.subscribe(wanted(500.0, "top 1 by pid")).unwrap();
        let slow = hub.subscribe(wanted(10.0, "")).unwrap();
        assert_eq!(handle.rate().hz(), 500.0);
        let mut numbers = Vec::new();
        while numbers.len() < 100 {
            let answer = hub.take(id, 1000, Duration::from_secs(20)).await.unwrap();
            assert!(!answer.entries.is_empty(), "it waits for one");
            numbers.extend(answer.entries.iter().map(|entry| entry.number));
        }
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        hub.alter::<Error>(id, |now| Ok(ChannelRequest { rate: 5.0.try_into().unwrap(), ..now })).unwrap();
        assert_eq!(handle.rate().hz(), 10.0);
        hub.unsubscribe(slow).unwrap();
        assert_eq!(handle.rate().hz(), 5.0);
        // A waiting client is notified when the subscription ends.
        hub.alter::<Error>(id, |now| {
            Ok(ChannelRequest { filter: expression::filter("pid > 1000").unwrap(), ..now })
        })
        .unwrap();
        hub.take(id, 1000, Duration::ZERO).await.unwrap();
        let ending = async {
            tokio::task::yield_now().await;
            hub.unsubscribe(id).unwrap();
        };
        let (waited, ()) = tokio::join!(hub.take(id, 1, Duration::from_secs(20)), ending);
        assert!(matches!(waited, Err(Error::Unknown(_))), "{waited:?}");
        assert_eq!(handle.rate(), base);
        shutdown.cancel();
    };
    let both = async { tokio::join!(running, asking).0 };
    tokio::time::timeout(Duration::from_secs(60), both).await.unwrap().unwrap();
}

#[test]
fn of_two_who_alter_at_once_neither_is_lost() {
    const TIMES: u32 = 200;
    let hub = Hub::default();
    let initial = ChannelRequest { budget: Budget::default(), ..wanted(1.0, "") };
    let before = initial.budget;
    let id = hub.subscribe(initial).unwrap();
    let alter = |change: fn(&mut ChannelRequest)| {
        for _ in 0..TIMES {
            let changed = |mut wanted: ChannelRequest| {
                change(&mut wanted);
                // Lets the other task run in between.
                std::thread::yield_now();
                Ok::<_, Error>(wanted)
            };
            hub.alter(id, changed).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| alter(|wanted| wanted.budget.cpu_ms += 1));
        alter(|wanted| wanted.budget.queue_bytes += 1);
    });
    let after = hub.status(id).unwrap().wanted.budget;
    assert_eq!(
        (after.cpu_ms - before.cpu_ms, after.queue_bytes - before.queue_bytes),
        (TIMES, TIMES),
        "each alteration is of what the one before left"
    );
}
