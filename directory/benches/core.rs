//! Cost of a directory of ten thousand domains: accepting statements, answering look-ups, feeding another
//! directory.
//!
//! Prints the CPU time per operation of the core, without signatures and streams; the load of one core by ten
//! thousand domains that renew every 5 seconds and 20,000 look-ups per second; the memory of the table; and
//! the bytes between two directories, at rest and while all domains renew.
#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::cast_precision_loss)]

use directory::admission::{Admission, List};
use directory::opened::{Opened, OpenedItem};
use directory::registry::Registry;
use directory::replicate::{Output, Replicas};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wire::credential::{Certificate, Chain, Delegation, Roles, Serial, Statement};
use wire::id::{DomainName, HostName, PeerKey};
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Answer, Question, ReplicaAnswer, ReplicaQuestion};
use wire::sealed::Sealed;
use wire::time::{Moment, Time};

const DOMAINS: u32 = 10_000;
const RENEWAL: Duration = Duration::from_secs(5);
const ROOT: PeerKey = PeerKey([1; 32]);

fn name(at: u32) -> DomainName {
    DomainName::try_from(format!("SITE-{at:05}").as_str()).expect("a name")
}

fn peer(at: u32) -> PeerKey {
    let mut key = [3; 32];
    key[..4].copy_from_slice(&at.to_le_bytes());
    PeerKey(key)
}

fn chain(at: u32) -> Chain {
    let (domain, host) = (name(at), HostName::try_from("head.site.example").expect("a name"));
    let (issued, expires) = (Time::default(), Time::from_micros(i64::MAX));
    let issuer = PeerKey([2; 32]);
    let certificate = Certificate {
        domain: domain.clone(),
        root: ROOT,
        peer: peer(at),
        host,
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(1),
        issued,
        expires,
    };
    let delegation = Delegation { domain, root: ROOT, issuer, number: 1, issued, expires };
    Chain {
        certificate: Sealed::new(&certificate, issuer, |_| [7; 64]).expect("short"),
        delegation: Some(Sealed::new(&delegation, ROOT, |_| [7; 64]).expect("short")),
    }
}

fn statement(at: u32, sequence: u64) -> Opened {
    let addresses = vec!["head.site.example:7742".parse().expect("an address")];
    let coverage = Coverage::Whole { hosts: 500 };
    let record = Record {
        domain: name(at),
        host: HostName::try_from("head.site.example").expect("a name"),
        port: 7317,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://head.site.example:7317".to_owned()],
        term: 1,
        sequence,
        stated: Time::from_micros(1_795_178_489_123_456),
        reach: Some(Reach { root: ROOT, peer: peer(at), addresses, coverage }),
    };
    let sealed = Sealed::new(&record, peer(at), |_| [7; 64]).expect("short");
    Opened::signed(record, Statement { record: sealed, chain: chain(at) }).expect("has a reach")
}

fn directory(key: u8, other: u8) -> (PeerKey, Replicas) {
    let mut list = List::default();
    for at in 0..DOMAINS {
        list.add(name(at), ROOT).expect("few");
    }
    let admission = Admission::new(list, List::default());
    let registry = Registry::new(DOMAINS as usize);
    let peers = [PeerKey([other; 32])];
    let replicas = Replicas::among(registry, admission, &peers, key.into(), Moment::default());
    (PeerKey([key; 32]), replicas.expect("one"))
}

/// Resident memory of this process in bytes.
fn rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Nanoseconds per run, averaged over `count` runs of `act`.
fn each(count: u32, mut act: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut act);
    start.elapsed().as_nanos() as f64 / f64::from(count)
}

#[derive(Default)]
struct Traffic {
    hints: u64,
    digests: u64,
    details: u64,
    fetches: u64,
    items: u64,
    spent: Duration,
}

/// Two directories, and the number of bytes they exchange.
struct Pair {
    directories: [(PeerKey, Replicas); 2],
    now: Moment,
    traffic: Traffic,
}

fn len<T: serde::Serialize>(value: &T) -> u64 {
    postcard::to_stdvec(value).expect("encodes").len() as u64
}

impl Pair {
    /// Deliver all messages without delay until none is left.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for at in 0..2 {
                while let Some(output) = self.directories[at].1.poll_output() {
                    let Output::Ask { id, question, .. } = output else { continue };
                    quiet = false;
                    self.ask(at, id, question);
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn ask(&mut self, from: usize, id: u64, question: ReplicaQuestion) {
        let asked = len(&Question::Replica(question.clone()));
        match question {
            ReplicaQuestion::Hints(_) => self.traffic.hints += asked,
            ReplicaQuestion::Digest { .. } => self.traffic.digests += asked,
            ReplicaQuestion::Fetch(_) => self.traffic.fetches += asked,
        }
        let (asker, now) = (self.directories[from].0, self.now);
        let (answerer, to) = (self.directories[1 - from].0, 1 - from);
        let start = Instant::now();
        let answer = self.directories[to].1.handle_question(asker, question, now).expect("known");
        self.traffic.spent += start.elapsed();
        match &answer {
            ReplicaAnswer::Taken => {}
            ReplicaAnswer::Details { details, buckets, settled } => {
                let answer =
                    ReplicaAnswer::Details { details: details.clone(), buckets: *buckets, settled: *settled };
                self.traffic.details += len(&Answer::Replica(answer));
            }
            ReplicaAnswer::Items { items, domains } => {
                let items = items.iter().filter_map(OpenedItem::to_wire).collect();
                let answer = ReplicaAnswer::Items { items, domains: *domains };
                self.traffic.items += len(&Answer::Replica(answer));
            }
        }
        let start = Instant::now();
        self.directories[from].1.handle_answer(answerer, id, answer, now);
        self.traffic.spent += start.elapsed();
    }

    fn timeout(&mut self, at: Moment) {
        self.now = at;
        for (_, directory) in &mut self.directories {
            let start = Instant::now();
            directory.handle_timeout(at);
            self.traffic.spent += start.elapsed();
        }
        self.settle();
    }

    fn report(&mut self, what: &str) {
        let Traffic { hints, digests, details, fetches, items, spent } = std::mem::take(&mut self.traffic);
        println!(
            "{what:<34} hints {hints:>9} B  digests {digests:>7} B  details {details:>8} B  fetches {fetches:>8} B  \
             items {items:>9} B  CPU {:.1} ms",
            spent.as_secs_f64() * 1e3
        );
    }
}

fn main() {
    let empty = rss();
    let (_, mut replicas) = directory(10, 11);
    let admitted = rss();
    let mut now = Moment::default();
    let mut sequence = 0;
    let mut round = |replicas: &mut Replicas, now: Moment| {
        sequence += 1;
        let opened: Vec<Opened> = (0..DOMAINS).map(|at| statement(at, sequence)).collect();
        let mut opened = opened.into_iter();
        let spent = each(DOMAINS, |at| {
            let opened = opened.next().expect("one each");
            black_box(replicas.state(peer(at), opened, now)).expect("accepted");
        });
        replicas.handle_timeout(now.plus(Duration::from_millis(100)));
        while replicas.poll_output().is_some() {}
        spent
    };
    let first = round(&mut replicas, now);
    let full = rss();
    let mut renewals = Vec::new();
    for _ in 0..5 {
        now = now.plus(RENEWAL);
        renewals.push(round(&mut replicas, now));
    }
    renewals.sort_by(f64::total_cmp);
    let renewal = renewals[2];
    let names: Vec<DomainName> = (0..DOMAINS).map(|at| name(at * 7919 % DOMAINS)).collect();
    let resolve = each(200_000, |at| {
        let found = replicas.registry().resolve(&names[(at % DOMAINS) as usize], now).expect("held");
        black_box(found.record.clone());
    });
    let digest = each(100, |_| {
        black_box(replicas.registry().details(0, 1024, &[0; 1024], 2048));
    });
    println!(
        "{DOMAINS} domains: statement {} bytes encoded",
        len(&**statement(1, 1).statement().expect("signed"))
    );
    println!(
        "first statement {first:.0} ns, renewal {renewal:.0} ns, look-up {resolve:.0} ns, full digest answer {digest:.0} ns"
    );
    let share = f64::from(DOMAINS) / RENEWAL.as_secs_f64() * renewal / 1e9 + 20_000.0 * resolve / 1e9;
    println!("renewals each 5 s and 20000 look-ups a second: {:.2} % of a core", share * 100.0);
    println!(
        "memory: {:.1} MiB for the list of admitted names, {:.1} MiB for the table",
        (admitted - empty) as f64 / f64::from(1 << 20),
        (full - admitted) as f64 / f64::from(1 << 20)
    );
    drop(replicas);
    between_two();
}

fn between_two() {
    let mut pair = Pair {
        directories: [directory(10, 11), directory(11, 10)],
        now: Moment::default(),
        traffic: Traffic::default(),
    };
    let state = |pair: &mut Pair, sequence: u64, range: std::ops::Range<u32>| {
        for at in range {
            let now = pair.now;
            pair.directories[0].1.state(peer(at), statement(at, sequence), now).expect("accepted");
        }
    };
    state(&mut pair, 1, 0..DOMAINS);
    pair.directories[0].1.handle_timeout(Moment::default());
    while pair.directories[0].1.poll_output().is_some() {}
    pair.traffic = Traffic::default();
    // The second directory is empty: its first digests fetch everything.
    pair.timeout(Moment(Duration::from_millis(10)));
    pair.report("an empty directory learns all");
    pair.timeout(Moment(Duration::from_secs(6)));
    pair.traffic = Traffic::default();
    pair.timeout(Moment(Duration::from_secs(12)));
    pair.report("at rest, one digest each way");
    // All domains renew within five seconds, in steps of the delay for which hints are gathered.
    for step in 0..100_u32 {
        pair.now = Moment(Duration::from_millis(12_500 + u64::from(step) * 50));
        state(&mut pair, 2, step * 100..step * 100 + 100);
        pair.timeout(pair.now);
    }
    pair.timeout(Moment(Duration::from_millis(17_600)));
    pair.report("all renew once, in five seconds");
    let same = pair.directories[0].1.registry().sums() == pair.directories[1].1.registry().sums();
    assert!(same, "both hold the same in the end");
}
