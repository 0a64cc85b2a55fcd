//! Benchmark of reporting: from a member's tables and events to the representative's table, store and
//! acknowledgements, with the bytes of the real protocol in memory.
//!
//! Prints the bytes of a sample on an idle and a busy host (collectors of this machine), samples per second
//! on one core for both ends with 20 members, the cost per second of 500 members with 200 metrics each, and
//! events per second with durable acknowledgements and their latency. `VISPERF_BENCH_SECS` sets how long the
//! collectors are sampled in each state (default: 30 s).

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]
#![allow(clippy::cast_precision_loss)]

mod made_up;

use made_up::{Host, Names};
use sensor::report::sender::{Identity, JournalRange, Sender};
use sensor::representative::domain::{Config, Domain, Link, Now, Output};
use sensor::sample::collector::{Collectors, Now as SampleNow};
use sensor::sample::host::{PROC, collectors};
use sensor::sample::table::Table;
use sensor::segments::disk::Directory;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use wire::call::{Authority, Keys, Naming};
use wire::credential::Serial;
use wire::event::{Content, Kind, Source, Value};
use wire::id::{Generation, HostName, PeerKey, SensorKey};
use wire::report::marks::MarkList;
use wire::report::{Events, Record, Run, StoreKey};
use wire::time::{Moment, Time};

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let secs = std::env::var("VISPERF_BENCH_SECS").ok().and_then(|secs| secs.parse().ok()).unwrap_or(30);
    let idle = watch(secs);
    let busy = under_load(|| watch(secs));
    bytes_of_a_sample("idle", &idle);
    bytes_of_a_sample("busy", &busy);
    twenty_members(&busy);
    five_hundred_members();
    events();
}

/// CPU time of the whole process, in seconds.
fn work() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn resident_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sweeps the collectors of this machine once per second.
fn watch(secs: u64) -> Vec<Table> {
    let mut collectors = Collectors::new(collectors(Path::new(PROC)));
    let began = Instant::now();
    let mut tables = Vec::new();
    for second in 0..secs {
        std::thread::sleep(Duration::from_secs(second).saturating_sub(began.elapsed()));
        let now = SampleNow { calendar: SystemTime::now().into(), running: began.elapsed() };
        tables.push(collectors.sweep(now, || began.elapsed()));
    }
    tables
}

/// Runs `run` while every core computes and writes.
fn under_load<T>(run: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                let mut file = tempfile::tempfile().unwrap();
                let block = vec![1u8; 1 << 20];
                while !stop.load(Ordering::Relaxed) {
                    std::hint::black_box((0..5_000_000u64).fold(0, |sum, n| sum ^ (n * n)));
                    std::io::Write::write_all(&mut file, &block).unwrap();
                    file.set_len(0).unwrap();
                }
            });
        }
        let result = run();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn host(nth: u32) -> HostName {
    HostName::try_from(format!("h{nth:03}").as_str()).unwrap()
}

fn member(nth: u32) -> (Sender, PeerKey) {
    let mut peer = [0; 32];
    peer[..4].copy_from_slice(&nth.to_le_bytes());
    let identity = Identity {
        program: "bench".into(),
        sensor: SensorKey(u64::from(nth) + 1),
        host: host(nth),
        hosts: Vec::new(),
        boot: "boot".into(),
        started: Time::from_micros(1),
        stores: wire::report::Stores::default(),
    };
    (Sender::new(identity, MarkList::default()), PeerKey(peer))
}

struct Bench {
    domain: Domain,
    members: Vec<(Sender, Link)>,
    _directory: tempfile::TempDir,
}

fn now(second: u64) -> Now {
    Now {
        moment: Moment(Duration::from_secs(second)),
        wall: Time::from_micros(i64::try_from(second).unwrap() * 1_000_000),
    }
}

impl Bench {
    fn new(members: u32) -> Bench {
        let directory = tempfile::tempdir_in(".").unwrap();
        let disk = Arc::new(Directory::new(directory.path().to_owned()).unwrap());
        let (mut domain, _) = Domain::open(disk, Config::default(), StoreKey(1)).unwrap();
        let mut all = Vec::new();
        for nth in 0..members {
            let (mut sender, peer) = member(nth);
            sender.connect(JournalRange { oldest: 0, next: 0, acknowledged: None }, Time::default());
            all.push((sender, domain.connect((peer, Serial(0)), host(nth), Moment::default()).unwrap()));
        }
        let mut bench = Bench { domain, members: all, _directory: directory };
        bench.exchange(0);
        bench
    }

    /// Exchanges everything that waits in both directions; commits and acknowledges what came.
    fn exchange(&mut self, second: u64) {
        for (sender, link) in &mut self.members {
            self.domain.handle_bytes(*link, sender.output(), now(second));
            let len = sender.output().len();
            sender.consume(len);
        }
        self.answer();
    }

    fn answer(&mut self) {
        if let Some(mut commit) = self.domain.take_commit().unwrap() {
            commit.run().unwrap();
            self.domain.handle_committed(commit);
        }
        while let Some(output) = self.domain.poll_output() {
            match output {
                Output::Send(link, bytes) => {
                    self.domain.handle_written(link);
                    let sender = self.members.iter_mut().find(|(_, of)| *of == link).unwrap();
                    sender.0.handle_bytes(&bytes).unwrap();
                }
                Output::Copy(_) | Output::Fetch(..) | Output::FetchCalls(..) => panic!("nothing is copied"),
                Output::Close(_, why) => panic!("closed: {why}"),
            }
        }
    }
}

fn bytes_of_a_sample(what: &str, tables: &[Table]) {
    let mut bench = Bench::new(1);
    let before = bench.members[0].0.counts();
    for table in tables {
        bench.members[0].0.handle_sweep(table);
        bench.exchange(1);
    }
    let after = bench.members[0].0.counts();
    let (samples, len) = (after.samples_total, after.len_bytes_total - before.len_bytes_total);
    // Names are sent once; their share shrinks over an hour of sweeps.
    let first = {
        let mut bench = Bench::new(1);
        let before = bench.members[0].0.counts().len_bytes_total;
        bench.members[0].0.handle_sweep(&tables[0]);
        bench.members[0].0.counts().len_bytes_total - before
    };
    println!(
        "{what}: {} metrics, {:.3} bytes a sample with names over {} s, {:.3} without the first sweep ({first} bytes)",
        tables[0].values().len(),
        len as f64 / samples as f64,
        tables.len(),
        (len - first) as f64 / (samples - tables[0].values().len() as u64) as f64,
    );
}

/// Measures each end alone, in CPU time: 20 members with the tables of this busy machine.
fn twenty_members(tables: &[Table]) {
    let rounds = 2_000_000 / (20 * tables.iter().map(|table| table.values().len()).sum::<usize>()).max(1) + 1;
    let mut bench = Bench::new(20);
    let (mut sent, mut took) = (0u64, 0u64);
    let (mut encoding, mut decoding) = (0.0, 0.0);
    for round in 0..rounds {
        for table in tables {
            let begin = work();
            for (sender, _) in &mut bench.members {
                sender.handle_sweep(table);
                sent += table.values().len() as u64;
            }
            let middle = work();
            bench.exchange(round as u64);
            encoding += middle - begin;
            decoding += work() - middle;
        }
    }
    took += bench.domain.counts().samples_total;
    assert_eq!(sent, took);
    println!(
        "20 members: {:.1} M samples/s encoded, {:.1} M samples/s taken in (unpacked, table, recent), by processor time",
        sent as f64 / encoding / 1e6,
        took as f64 / decoding / 1e6
    );
}

fn five_hundred_members() {
    const SECONDS: u64 = 900;
    let names = Names::default();
    let before = resident_kib("VmRSS");
    let mut bench = Bench::new(500);
    let mut hosts: Vec<Host> = (0..500).map(|nth| Host::new(&names, nth)).collect();
    let (mut taking, mut largest) = (0.0, 0);
    for second in 0..SECONDS {
        for ((sender, _), host) in bench.members.iter_mut().zip(&mut hosts) {
            sender.handle_sweep(&host.sweep(second, Time::from_micros(second as i64 * 1_000_000)));
        }
        let begin = work();
        bench.exchange(second);
        taking += work() - begin;
        largest = largest.max(resident_kib("VmRSS"));
    }
    let summary = {
        let begin = work();
        let summary = bench.domain.summary(Moment(Duration::from_secs(SECONDS)));
        std::hint::black_box(&summary);
        work() - begin
    };
    println!(
        "500 members x 200 metrics at 1 Hz: {:.1} % of one core, resident {} MiB (with the senders' side; {} MiB before), summary {:.1} ms",
        taking / SECONDS as f64 * 100.0,
        largest >> 10,
        before >> 10,
        summary * 1e3,
    );
}

fn some_events(first: u64, count: u64, nth: u64) -> Events {
    let record = |number: u64| {
        let mut content = Content::new(Kind::JobStart, Time::from_micros(number as i64));
        content.job = format!("{}", number / 4).into();
        content.user = "alice".into();
        content.from = "submit.example.org".into();
        content.to = format!("wn{:03}", number % 200).into();
        content.attributes.push(("partition".into(), Value::Text("batch".into())));
        content.attributes.push(("nodes".into(), Value::Text("1".into())));
        Record {
            offset: number * 120,
            number: 0,
            call: format!("slurm/c{nth}:{}", number / 4).into(),
            content,
            keys: Some(Keys {
                scope: format!("slurm/c{nth}").into(),
                names: vec![format!("{}", number / 4).into()],
                parent: None,
                naming: Naming::Unique,
                authority: Authority::Scheduler,
            }),
        }
    };
    let source = Source {
        host: format!("h{nth:03}").into(),
        file: "/var/log/slurmctld.log".into(),
        filter: "slurmctld".into(),
    };
    let records = (first..first + count).map(record).collect();
    Events {
        first,
        lost: 0,
        runs: vec![Run { generation: Generation(1), source, seen: Time::default(), records }],
    }
}

fn events() {
    const EACH: u64 = 20_000;
    const AT_ONCE: u64 = 200;
    let mut bench = Bench::new(20);
    let (mut taking, mut wall) = (0.0, Duration::ZERO);
    for first in (0..EACH).step_by(AT_ONCE as usize) {
        for (nth, (sender, _)) in (0..).zip(&mut bench.members) {
            sender.handle_events(some_events(first, AT_ONCE, nth));
        }
        let (begin, clock) = (work(), Instant::now());
        bench.exchange(first);
        taking += work() - begin;
        wall += clock.elapsed();
    }
    let events = bench.domain.counts().events_total;
    assert_eq!(events, EACH * 20);
    let bytes: u64 = bench.members.iter().map(|(sender, _)| sender.counts().len_bytes_total).sum();
    println!(
        "events, 20 members: {:.0}/s by processor time, {:.0}/s by the clock with a sync for each {}, {:.0} bytes each",
        events as f64 / taking,
        events as f64 / wall.as_secs_f64(),
        AT_ONCE * 20,
        bytes as f64 / events as f64,
    );
    // One event at a time: from the bytes to the acknowledgement at the member.
    let mut times = Vec::new();
    for number in EACH..EACH + 1000 {
        bench.members[0].0.handle_events(some_events(number, 1, 0));
        let clock = Instant::now();
        bench.exchange(number);
        assert_eq!(bench.members[0].0.take_acknowledged().map(|mark| mark.next), Some(number + 1));
        times.push(clock.elapsed());
    }
    times.sort_unstable();
    println!("one event, acknowledged by the disk: p50 {:?}, p99 {:?}", times[500], times[990]);
}
