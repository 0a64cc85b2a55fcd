//! Time that a client of a domain waits when the representative is lost: killed, cut off without notice, or
//! paused, again and again, some seconds apart.
//!
//! Rule: the client is outside the daemons. Each 100 ms it asks any member but the lost one, however lately that one came
//! back itself, for the domain's summary; what it waits is all the time from the fault on in which a question was
//! without its answer. Times between in which every question was answered at once do not count.
//! How many faults is set by `VISPERF_TRIALS`; a seed is printed and can be given (`VISPERF_SEED`).
//! Not here: the same on simulated time (`overlay/tests/integration/election_faults.rs`), other faults (`lab_matrix`).

mod client;
mod follower;

use client::{ASKED_EACH, Asked, Client, Members};
use follower::{Follower, LINES_PER_SEC};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};
use system_tests::lab::domains::{Directory, Domain, agreed, sensor, settled};
use system_tests::lab::{self, Daemon, Host, Lab, Network, Trials};
use system_tests::logs::Writer;
use system_tests::random::Random;
use system_tests::wait::now;

/// After a fail-over a reader gets at most the events of this time span again.
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// Longest time that a client may wait (90 of 100 trials wait far less).
const WAIT_MAX: Duration = Duration::from_secs(5);
/// A fault after which the domain has no representative for this long fails the test.
const LOST_MAX: Duration = Duration::from_secs(30);
/// Default number of faults (`VISPERF_TRIALS`).
const TRIALS: usize = 9;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Cut,
    Pause,
}

const KINDS: [Fault; 3] = [Fault::Kill, Fault::Cut, Fault::Pause];

struct Stage {
    network: Network,
    sensors: Vec<Option<Daemon>>,
    members: Members,
    client: Client,
    random: Random,
    /// False claims of sensors that were killed.
    false_claims: usize,
    _directory: Daemon,
}

impl Stage {
    fn new(lab: &Lab, hosts: u16, seed: u64) -> (Stage, BTreeMap<String, Writer>) {
        let network = lab.network(hosts + 1).unwrap();
        let (first, rest) = network.hosts().split_first().unwrap();
        let directory = Directory::new(first).unwrap();
        let writers = Follower::logs(rest);
        let domain = Domain::create("UT-ICL", rest).unwrap();
        let server = directory.start(std::slice::from_ref(&directory), &[&domain]).unwrap();
        let sensors = domain.start(std::slice::from_ref(&directory), follower::options).unwrap();
        agreed(&sensors, None).unwrap();
        settled(&sensors).unwrap();
        let sensors = sensors.into_iter().map(Some).collect();
        let members = Members::default();
        let client = Client::start(members.clone(), seed);
        let random = Random::new(seed);
        let stage = Stage { network, sensors, members, client, random, false_claims: 0, _directory: server };
        (stage, writers)
    }

    fn span(&mut self, low_ms: u64, high_ms: u64) -> Duration {
        Duration::from_millis(low_ms + self.random.below(high_ms - low_ms))
    }

    fn begin(&mut self, fault: Fault, lost: usize) {
        let daemon = self.sensors[lost].as_ref().unwrap();
        let name = daemon.host().name().to_owned();
        match fault {
            Fault::Kill => {
                self.false_claims += false_claims(daemon);
                self.sensors[lost].take().unwrap().kill().unwrap();
            }
            Fault::Cut => {
                let hosts = self.network.hosts().iter().map(Host::name);
                let others: Vec<&str> = hosts.filter(|other| *other != name).collect();
                self.network.partition(&[&[&name], &others]).unwrap();
            }
            Fault::Pause => daemon.pause().unwrap(),
        }
    }

    fn end(&mut self, fault: Fault, lost: usize, host: &Host) {
        match fault {
            Fault::Kill => self.sensors[lost] = Some(sensor(host, &follower::options(host)).unwrap()),
            Fault::Cut => self.network.heal_all().unwrap(),
            Fault::Pause => self.sensors[lost].as_ref().unwrap().resume().unwrap(),
        }
    }

    fn others(&self, lost: usize) -> Vec<&Daemon> {
        let others = self.sensors.iter().enumerate().filter(|(at, _)| *at != lost);
        others.filter_map(|(_, daemon)| daemon.as_ref()).collect()
    }

    /// Lose the representative for a while; returns how long the client waited, and its queries.
    fn lose(&mut self, fault: Fault, current: &str) -> (Duration, Vec<Asked>) {
        let lost = self
            .sensors
            .iter()
            .position(|one| one.as_ref().is_some_and(|one| one.host().name() == current))
            .unwrap();
        let host = self.sensors[lost].as_ref().unwrap().host().clone();
        self.members.are(&self.others(lost));
        let period = self.span(3000, 8000);
        let away = self.span(1000, 6000).min(period.checked_sub(Duration::from_millis(500)).unwrap());
        let start = now();
        self.begin(fault, lost);
        std::thread::sleep(away);
        self.end(fault, lost, &host);
        std::thread::sleep(period.saturating_sub(now() - start));
        loop {
            let asked = self.client.asked_since(start);
            // The last queries were answered at once, and none is waiting: the trial is over.
            let settled = asked.iter().rev().filter(|one| one.answered.is_some()).take(3);
            if settled.filter(|one| one.waited_until().is_none()).count() == 3
                && !asked.iter().any(|one| one.waits(now()))
            {
                return (client::waited(&asked), asked);
            }
            assert!(
                now() - start < LOST_MAX,
                "after {fault:?} of {current}:\n{}{}",
                seen(&asked, start),
                self.log()
            );
            std::thread::sleep(ASKED_EACH);
        }
    }

    fn log(&self) -> String {
        let daemons = self.sensors.iter().flatten();
        let lines = daemons.map(|daemon| {
            let log = daemon.output();
            let lines = log.lines().filter(|line| line.contains("the domain's state changed"));
            format!("{}:\n{}", daemon.host().name(), lines.collect::<Vec<_>>().join("\n"))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn false_claims(&self) -> usize {
        self.false_claims + self.sensors.iter().flatten().map(false_claims).sum::<usize>()
    }
}

/// How often this daemon covered only itself and claimed the whole domain.
fn false_claims(daemon: &Daemon) -> usize {
    let is_false = |line: &&str| {
        let has = |word: &str| line.split_whitespace().any(|found| found == word);
        line.contains("the domain's state changed")
            && line.contains("role=\"representative\"")
            && has("partial=false")
            && has("covered=1")
    };
    daemon.output().lines().filter(is_false).count()
}

/// The queries that waited, and the answers that named another representative, in the order of sending.
fn seen(asked: &[Asked], start: Instant) -> String {
    let mut text = String::new();
    let mut former = None;
    for one in asked {
        let is_new = one.named().is_some_and(|named| Some(named) != former);
        if one.waited_until().is_some() || one.answered.is_none() || is_new {
            let at = (one.at - start).as_secs_f64();
            let took = one.answered.as_ref().map(|(answered, _)| (*answered - one.at).as_secs_f64());
            let answer = one.answered.as_ref().map(|(_, answer)| answer);
            let _ = writeln!(text, "  {at:7.3} s  {}: {took:.3?} s, {answer:?}", one.host);
        }
        former = one.named().or(former);
    }
    text
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("expected a number"))
}

/// Waiting times of the client, for each kind of fault and in total.
#[derive(Default)]
struct Times {
    of_kind: [Trials; 3],
    all: Trials,
}

#[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
fn lose_again_and_again(stage: &mut Stage, trials: usize) -> Times {
    let mut times = Times::default();
    let daemons: Vec<&Daemon> = stage.sensors.iter().flatten().collect();
    let first = daemons[0].result("domain.summary", &json!({})).unwrap();
    let mut current = first["representative"].as_str().unwrap().to_owned();
    let mut kinds = Vec::new();
    for trial in 0..trials {
        if kinds.is_empty() {
            kinds = vec![0, 1, 2];
        }
        // Equal numbers of each kind, in random order.
        let at = usize::try_from(stage.random.below(kinds.len() as u64)).unwrap();
        let kind = kinds.swap_remove(at);
        let (time, asked) = stage.lose(KINDS[kind], &current);
        times.of_kind[kind].add(time);
        times.all.add(time);
        let mut named: Vec<&String> = asked.iter().filter_map(Asked::named).collect();
        named.dedup();
        println!(
            "trial {trial}: {:?} of {current}: {:.3} s, {} of {} failed, then {named:?}",
            KINDS[kind],
            time.as_secs_f64(),
            asked.iter().filter(|one| one.failed()).count(),
            asked.len()
        );
        for one in asked.iter().filter(|one| one.failed()) {
            println!("  {} failed: {:?}", one.host, one.answered.as_ref().map(|(_, answer)| answer));
        }
        if time > WAIT_MAX {
            println!("{}{}", seen(&asked, asked[0].at), stage.log());
        }
        current = named.last().unwrap().to_string();
    }
    times
}

#[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
fn fail_over(lab: &Lab, hosts: u16) {
    let (trials, seed) = (number("VISPERF_TRIALS", TRIALS), number("VISPERF_SEED", 1) as u64);
    let (mut stage, writers) = Stage::new(lab, hosts, seed);
    // Initially the first host had no other members.
    let alone_at_first = stage.false_claims();
    stage.members.are(&stage.others(usize::MAX));
    let follower = Follower::start(writers, stage.members.clone(), seed);
    let times = lose_again_and_again(&mut stage, trials);
    let (written, account) = follower.end(stage.sensors[0].as_ref().unwrap());
    let false_claims = stage.false_claims() - alone_at_first;
    println!("F1: {hosts} hosts, seed {seed}, all: {}", times.all);
    let of_kind = KINDS.iter().zip(&times.of_kind);
    of_kind.for_each(|(kind, times)| println!("F1: {hosts} hosts, {kind:?}: {times}"));
    println!("F1: {hosts} hosts: {false_claims} claims of the whole domain by one that covered itself alone");
    if false_claims > 0 {
        println!("{}", stage.log());
    }
    println!(
        "F1: {hosts} hosts: {} of {} lines came to one who read on, {} came again, {} were missed",
        account.count(),
        written.values().sum::<usize>(),
        account.again,
        account.missed
    );
    for (host, verdict) in account.verdicts(&written) {
        assert!(verdict.is_clean(), "{host}: {verdict}");
    }
    let again_max = trials * LINES_PER_SEC * usize::from(hosts) * AGAIN_MAX.as_secs() as usize;
    assert!(account.again <= again_max, "{} events came again, expected {again_max} at most", account.again);
    assert!(times.all.max() <= WAIT_MAX, "a client waited {:?}", times.all.max());
    assert_eq!(false_claims, 0, "{}", stage.log());
}

#[test]
fn f1_a_client_waits_five_seconds_at_most_of_five_hosts() {
    let name = "lab_failover::f1_a_client_waits_five_seconds_at_most_of_five_hosts";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    fail_over(&lab, 5);
}

#[test]
fn f1_a_client_waits_five_seconds_at_most_of_thirteen_hosts() {
    let name = "lab_failover::f1_a_client_waits_five_seconds_at_most_of_thirteen_hosts";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    fail_over(&lab, 13);
}
