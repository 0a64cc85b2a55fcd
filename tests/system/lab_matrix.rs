//! Test matrix of elections with the real program: a domain of twenty sensors and three directories under
//! kills, loss, pauses, flapping links, partitions and unresolvable names.
//!
//! Rule: each test prints its measurements and asserts what the row demands; `VISPERF_MATRIX` sets how often
//! and how long: unset for a part of it, `full` for the rows as they are written.
//! Not here: the same rows on simulated time, thousands of times, and the controls that switch each mechanism
//! off (`overlay/tests`).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use system_tests::lab::domains::{AGREED, Directory, Domain, agreed, representatives, sensor, settled};
use system_tests::lab::{self, Daemon, Delay, Host, Lab, Network, Stopwatch, Trials};
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Number of sensors in the domain.
const SENSORS: u16 = 20;

const NAME: &str = "UT-ICL";

fn is_full() -> bool {
    std::env::var("VISPERF_MATRIX").is_ok_and(|value| value == "full")
}

/// A domain and its directories.
struct Stage {
    network: Network,
    sensors: Vec<Daemon>,
    servers: Vec<Daemon>,
}

impl Stage {
    /// Start the daemons; the first hosts are the directories'.
    fn new(lab: &Lab, sensors: u16, directories: u16) -> Stage {
        let network = lab.network(sensors + directories).unwrap();
        let (dirs, hosts) = network.hosts().split_at(directories.into());
        let directories: Vec<Directory> = dirs.iter().map(|host| Directory::new(host).unwrap()).collect();
        let domain = Domain::create(NAME, hosts).unwrap();
        let servers = directories.iter().map(|it| it.start(&directories, &[&domain]).unwrap()).collect();
        let sensors = domain.start(&directories, |_| Vec::new()).unwrap();
        let stage = Stage { network, sensors, servers };
        stage.agreed(None);
        settled(&stage.sensors).unwrap();
        stage
    }

    /// Wait until all sensors name one representative other than `former`.
    fn agreed(&self, former: Option<&str>) -> (String, Duration) {
        agreed(&self.sensors, former).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn at(&self, host: &str) -> usize {
        self.sensors.iter().position(|daemon| daemon.host().name() == host).unwrap()
    }

    /// Wait until every directory names, live, the representative that `asked` follows; returns that host,
    /// and the time taken.
    fn registered(&self, asked: &Daemon) -> (String, Duration) {
        let look = || {
            let Some(followed) = represented(asked) else {
                return Ok(Seen::NotYet("it follows no host".into()));
            };
            let named: Vec<String> = self.servers.iter().map(registered_at).collect();
            Ok(if named.iter().all(|one| one == &format!("{followed} live")) {
                Seen::Done(followed)
            } else {
                Seen::NotYet(format!("it follows {followed}, they name {named:?}"))
            })
        };
        let known = Stopwatch::start().until(AGREED, "directories that know the representative", look);
        let (took, host) = known.unwrap_or_else(|error| panic!("{error:#}\n{}", self.output()));
        (host, took)
    }

    /// Changes of the domain's state in the sensors' logs.
    fn output(&self) -> String {
        let output = |daemon: &Daemon| {
            let output = daemon.output();
            let lines = output.lines().filter(|line| line.contains("the domain's state changed"));
            format!("{}:\n{}", daemon.host().name(), lines.collect::<Vec<_>>().join("\n"))
        };
        self.sensors.iter().map(output).collect::<Vec<_>>().join("\n")
    }

    /// How often each sensor followed another representative.
    fn changes(&self) -> Vec<u64> {
        let count = || self.sensors.iter().map(|daemon| figure(daemon, "changes_total")).collect::<Vec<_>>();
        // A query is forwarded to the representative, even by a sensor that has not noticed the change yet.
        let look = || {
            let counted = count();
            wait(Duration::from_secs(1));
            let is_steady = counted == count();
            Ok(if is_steady { Seen::Done(counted) } else { Seen::NotYet(format!("{counted:?}")) })
        };
        let steady = Stopwatch::start().until(AGREED, "sensors that change no more", look);
        steady.unwrap_or_else(|error| panic!("{error:#}")).1
    }
}

/// The representative that a directory names, and its state.
fn registered_at(server: &Daemon) -> String {
    match server.ask("directory.resolve", &json!({ "domain": NAME })) {
        Ok(Answer::Result(record)) => {
            format!("{} {}", record["host"].as_str().unwrap_or("?"), record["state"].as_str().unwrap_or("?"))
        }
        other => format!("{other:?}"),
    }
}

fn figure(daemon: &Daemon, name: &str) -> u64 {
    daemon.figure("election", name).unwrap()
}

/// The domain's representative according to `daemon`.
fn represented(daemon: &Daemon) -> Option<String> {
    representatives(std::slice::from_ref(daemon), &json!({})).pop().flatten()
}

fn wait(time: Duration) {
    // The test waits to see that nothing happens.
    std::thread::sleep(time);
}

#[test]
fn r1_a_dead_representative_is_followed() {
    let Some(lab) = lab::enter("lab_matrix::r1_a_dead_representative_is_followed").unwrap() else { return };
    let mut stage = Stage::new(&lab, SENSORS, 1);
    let kills = if is_full() { 60 } else { 10 };
    let (mut serving, mut registering) = (Trials::default(), Trials::default());
    // Counts second changes after one death, and returns of the domain to a restarted representative.
    let (mut seconds, mut returns) = (0, 0);
    let (mut current, _) = stage.agreed(None);
    for _ in 0..kills {
        let at = stage.at(&current);
        let dead = stage.sensors.swap_remove(at);
        let host = dead.host().clone();
        dead.kill().unwrap();
        let asked = &stage.sensors[0];
        let look = || match represented(asked) {
            Some(next) if next != current => Ok(Seen::Done(next)),
            other => Ok(Seen::NotYet(format!("{other:?}"))),
        };
        let (took, next) = Stopwatch::start().until(AGREED, "the next representative", look).unwrap();
        serving.add(took);
        let (stayed, took) = stage.registered(asked);
        registering.add(took);
        stage.sensors.push(sensor(&host, &[]).unwrap());
        let (after, _) = stage.agreed(None);
        seconds += u32::from(after != next || stayed != next);
        returns += u32::from(after == host.name());
        settled(&stage.sensors).unwrap();
        current = after;
    }
    println!(
        "R1: a new representative serves after {serving}; then the directory is right after {registering}; after \
         {seconds} deaths a second change"
    );
    assert!(returns * 5 <= kills, "{returns} of {kills} that came back took the domain");
}

#[test]
fn r2_loss_and_starved_hosts_change_nothing() {
    let Some(lab) = lab::enter("lab_matrix::r2_loss_and_starved_hosts_change_nothing").unwrap() else {
        return;
    };
    let stage = Stage::new(&lab, SENSORS, 1);
    let (before, (first, _)) = (stage.changes(), stage.agreed(None));
    let late =
        Delay { time: Duration::from_millis(25), jitter: Duration::from_millis(15), ..Delay::default() };
    let hosts: Vec<Host> = stage.sensors.iter().map(|daemon| daemon.host().clone()).collect();
    for host in &hosts {
        stage.network.delay(host.name(), late).unwrap();
        stage.network.loss(host.name(), 5).unwrap();
    }
    let starved = hosts.iter().filter(|host| host.name() != first).take(3);
    starved.for_each(|host| stage.network.starve(host.name(), 5).unwrap());
    let time = Duration::from_secs(if is_full() { 1800 } else { 45 });
    wait(time);
    let followed: Vec<u64> = stage.changes().iter().zip(&before).map(|(now, then)| now - then).collect();
    println!(
        "R2: {} s at a loss of 10 %, 50 ± 30 ms, three hosts at 5 % of a core: changes {followed:?}",
        time.as_secs()
    );
    assert_eq!(followed.iter().sum::<u64>(), 0, "a failover without a death");
    assert_eq!(stage.agreed(None).0, first);
}

#[test]
fn r3_a_paused_representative_is_not_believed() {
    let Some(lab) = lab::enter("lab_matrix::r3_a_paused_representative_is_not_believed").unwrap() else {
        return;
    };
    let stage = Stage::new(&lab, 7, 1);
    let pauses: Vec<u64> = if is_full() { (1..=30).chain(1..=10).collect() } else { vec![1, 2, 4, 12] };
    let mut yields = Trials::default();
    for secs in pauses {
        let (current, _) = stage.agreed(None);
        let before = stage.changes();
        let paused = &stage.sensors[stage.at(&current)];
        paused.pause().unwrap();
        wait(Duration::from_secs(secs));
        let survivor = stage.sensors.iter().find(|daemon| daemon.host().name() != current).unwrap();
        paused.resume().unwrap();
        let mut resumed = Stopwatch::start();
        // It never insists on its former role while the others follow another one.
        let look = || match (represented(paused), represented(survivor)) {
            (Some(one), Some(other)) if one == other => Ok(Seen::Done(one)),
            named => Ok(Seen::NotYet(format!("it and another name {named:?}"))),
        };
        let followed = resumed.until(AGREED, "the paused one and the others agree", look);
        let (took, meanwhile) = followed.unwrap_or_else(|error| panic!("{error:#}\n{}", stage.output()));
        yields.add(took);
        stage.registered(survivor);
        let changes = stage.changes().iter().zip(&before).map(|(now, then)| now - then).max();
        println!("R3: {secs} s of silence of {current}: {meanwhile} afterwards, at most {changes:?} changes");
        assert!(changes <= Some(1), "more than one change");
    }
    println!("R3: the paused one follows after {yields}");
}

#[test]
fn r4_a_link_that_comes_and_goes_changes_at_most_once_a_minute() {
    let name = "lab_matrix::r4_a_link_that_comes_and_goes_changes_at_most_once_a_minute";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let stage = Stage::new(&lab, 7, 1);
    let (current, _) = stage.agreed(None);
    let before = stage.changes();
    let rounds: u64 = if is_full() { 100 } else { 10 };
    for _ in 0..rounds {
        stage.network.link_down(&current).unwrap();
        wait(Duration::from_secs(3));
        stage.network.link_up(&current).unwrap();
        wait(Duration::from_secs(3));
    }
    let steady = stage.sensors.iter().zip(&before).filter(|(daemon, _)| daemon.host().name() != current);
    let changes = steady.map(|(daemon, then)| figure(daemon, "changes_total") - then).max().unwrap();
    let minutes = (rounds * 6).div_ceil(60);
    println!(
        "R4: {} s of a link 3 s down and 3 s up: at most {changes} changes at those that stay",
        rounds * 6
    );
    assert!(changes <= minutes + 1, "more than one change a minute");
    stage.agreed(None);
}

#[test]
fn r5_two_halves_are_both_visible_and_heal() {
    let Some(lab) = lab::enter("lab_matrix::r5_two_halves_are_both_visible_and_heal").unwrap() else {
        return;
    };
    let stage = Stage::new(&lab, SENSORS, 5);
    let mut names: Vec<&str> = stage.sensors.iter().map(|daemon| daemon.host().name()).collect();
    names.sort_unstable_by_key(|name| name[1..].parse::<u16>().unwrap());
    let (one, other) = names.split_at(names.len() / 2);
    let splits: &[u64] = if is_full() { &[30, 300] } else { &[30] };
    for secs in splits {
        stage.network.partition(&[one, other]).unwrap();
        let mut split = Stopwatch::start();
        let look = || {
            let records = stage
                .servers
                .iter()
                .map(|server| server.result("directory.resolve", &json!({ "domain": NAME })));
            let records: Vec<Value> = records.collect::<Result<_, _>>()?;
            let both = |record: &Value| {
                record["state"] == "live"
                    && record["coverage"] == "part"
                    && record["partial"].as_array().is_some_and(|it| it.len() == 1)
            };
            Ok(if records.iter().all(both) {
                Seen::Done(())
            } else {
                Seen::NotYet(format!("{:?}", records[0]))
            })
        };
        let (seen, ()) = split.until(AGREED, "both halves at every directory", look).unwrap();
        wait(Duration::from_secs(*secs).saturating_sub(split.elapsed()));
        let look = || {
            let halves: BTreeSet<Option<String>> = stage.sensors.iter().map(represented).collect();
            let is_two = halves.len() == 2 && !halves.contains(&None);
            Ok(if is_two { Seen::Done(()) } else { Seen::NotYet(format!("{halves:?}")) })
        };
        Stopwatch::start().until(AGREED, "one view in each half", look).unwrap();
        stage.network.heal_all().unwrap();
        let mut healed = Stopwatch::start();
        let (winner, took) = stage.agreed(None);
        let look = || {
            let records = stage
                .servers
                .iter()
                .map(|server| server.result("directory.resolve", &json!({ "domain": NAME })));
            let records: Vec<Value> = records.collect::<Result<_, _>>()?;
            let whole = |record: &Value| {
                record["host"] == json!(winner)
                    && record["coverage"] == "whole"
                    && record["partial"].as_array().is_some_and(Vec::is_empty)
            };
            Ok(if records.iter().all(whole) {
                Seen::Done(())
            } else {
                Seen::NotYet(format!("{:?}", records[0]))
            })
        };
        let (same, ()) = healed.until(AGREED, "directories that say the same", look).unwrap();
        println!(
            "R5: split for {secs} s: both halves reported after {} ms; healed: one representative after {} ms, all \
             directories alike after {} ms",
            seen.as_millis(),
            took.as_millis(),
            same.as_millis()
        );
    }
}

#[test]
fn r6_a_cold_start_without_names_finds_together() {
    let Some(lab) = lab::enter("lab_matrix::r6_a_cold_start_without_names_finds_together").unwrap() else {
        return;
    };
    let mut stage = Stage::new(&lab, 8, 1);
    let rounds = if is_full() { 20 } else { 3 };
    let silence = Duration::from_secs(if is_full() { 60 } else { 8 });
    let mut hosts: Vec<Host> = stage.sensors.iter().map(|daemon| daemon.host().clone()).collect();
    let mut found = Trials::default();
    for round in 0..rounds {
        stage.sensors.drain(..).for_each(|daemon| daemon.kill().unwrap());
        stage.network.forget_names().unwrap();
        hosts.rotate_left(1 + round % 3);
        stage.sensors = hosts.iter().map(|host| sensor(host, &[]).unwrap()).collect();
        wait(silence);
        stage.network.know_names().unwrap();
        found.add(stage.agreed(None).1);
    }
    println!("R6: one view after names came back: {found}");
}
