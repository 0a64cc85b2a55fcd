//! The past of a domain is with its representative: that of hosts that are down too, and after a fail-over.
//!
//! Each host begins with an hour of its own past in its state folder, as after a restart. Then the representative and
//! another host are killed for good: all that they had stored when the standby fetched it last must be answered. So
//! must it by a host that represents the domain without having copied anything, if one that has comes back.
//! With `VISPERF_MINUTES` (default 0) the representative is killed every minute for so long and started again, and no minute
//! of any host may be missing at the end.
//! Not here: what is stored on a host (`store/tests`), exact copies through every fault (`store/tests/integration/copies.rs`).

use super::past;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use system_tests::lab::domains::{Domain, agreed, sensor, settled, standbys, state, take, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::wait::Seen;
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

const HOSTS: u16 = 5;
/// Minutes of the past of each host when it starts.
const PAST_MINUTES: u64 = 60;
/// Samples of the past are so far apart.
const EVERY: Duration = Duration::from_secs(10);
/// Timeout for copies: minutes are fetched every 20 seconds by the representative, samples every 60, and from it by the
/// standby.
const COPIED: Duration = Duration::from_secs(90);
/// Name of the metric in the past; its value is the number of the host.
const NAME: &str = "made_up";

fn now() -> Time {
    overlay::clock::calendar()
}

/// Stores the past of a host.
fn remember(host: &Host, number: u64) {
    let folder = host.folder().join("sensor/sensor");
    std::fs::create_dir_all(&folder).unwrap();
    let limit = Limit { bytes: 64 << 20, age: Duration::from_secs(30 * 86_400) };
    let mut writer = Writer::open(&folder.join("history"), [limit; 3]).unwrap();
    let (labels, unit) = (Vec::new(), "".into());
    let metric = Metric { name: NAME.into(), labels, unit, semantics: Semantics::Gauge };
    let metrics: Arc<[Arc<Metric>]> = [Arc::new(metric)].into();
    let name = HostName::try_from(host.name()).unwrap();
    let (end, mut time) = (now(), now().minus(Duration::from_secs(60 * PAST_MINUTES)));
    while time < end {
        writer.push(&name, Sweep { time, metrics: &metrics, values: &[Number::Whole(number)] });
        time = time.plus(EVERY);
    }
    writer.close();
    let minute = Time::from_micros(end.micros() / 60_000_000 * 60_000_000);
    let minutes = (1..=10).rev().map(|ago| minute.minus(Duration::from_secs(60) * ago));
    let minutes = minutes.map(|start| (start, vec![past::row(7, 1002, "made-up")]));
    past::store_processes(&host.folder().join("sensor"), minute.minus(Duration::from_secs(3600)), minutes);
}

/// Minutes of each host for which a metric has a value, by any daemon.
fn minutes(daemon: &Daemon, name: &str, secs: u64) -> BTreeMap<String, BTreeMap<u64, f64>> {
    let since = now().minus(Duration::from_secs(secs)).micros() / 1_000_000;
    let params = json!({"name": name, "since": since, "step": 60, "aggregate": "last"});
    let Ok(answer) = daemon.result("domain.history", &params) else { return BTreeMap::new() };
    let none = Vec::new();
    let series = answer["series"].as_array().unwrap_or(&none);
    let sample =
        |sample: &Value| (sample["time"].as_f64().unwrap() as u64, sample["value"].as_f64().unwrap());
    let samples = |one: &Value| one["samples"].as_array().unwrap().iter().map(sample).collect();
    series.iter().map(|one| (one["host"].as_str().unwrap().to_owned(), samples(one))).collect()
}

/// Times of the samples that were made up for a host, and the time of its newest sample of its own, by the copies.
fn samples(daemon: &Daemon, host: &str) -> (Vec<f64>, Time) {
    let of = |name: &str| -> Vec<f64> {
        let since = now().minus(Duration::from_secs(60 * (PAST_MINUTES + 5))).micros() / 1_000_000;
        let params = json!({"name": name, "since": since, "step": 0, "host": host});
        let answer = daemon.result("domain.history", &params).unwrap();
        let tiers: Vec<&str> =
            answer["tiers"].as_array().unwrap().iter().filter_map(|part| part["tier"].as_str()).collect();
        assert_eq!(tiers.last(), Some(&"raw"), "{answer}");
        let samples = answer["series"][0]["samples"].as_array().unwrap();
        samples.iter().map(|sample| sample["time"].as_f64().unwrap()).collect()
    };
    let newest = of("node_load1").into_iter().fold(0.0, f64::max);
    (of(NAME), Time::from_micros((newest * 1e6) as i64))
}

fn until_copied(daemon: &Daemon, hosts: &[Host]) -> Duration {
    let expected = usize::try_from(PAST_MINUTES).unwrap() - 1;
    let look = || {
        let found = minutes(daemon, NAME, 60 * (PAST_MINUTES + 5));
        let behind = |host: &&Host| found.get(host.name()).is_none_or(|minutes| minutes.len() < expected);
        let behind: Vec<&str> = hosts.iter().filter(behind).map(Host::name).collect();
        Ok(if behind.is_empty() { Seen::Done(()) } else { Seen::NotYet(behind.join(", ")) })
    };
    let mut watch = Stopwatch::start();
    watch.until(COPIED, "the past of every host", look).unwrap_or_else(|error| {
        panic!("{error:#}\n{}", daemon.output());
    });
    watch.elapsed()
}

#[test]
fn the_past_of_hosts_that_are_down_is_answered_after_a_failover() {
    let Some(lab) =
        lab::enter("lab_history::the_past_of_hosts_that_are_down_is_answered_after_a_failover").unwrap()
    else {
        return;
    };
    let network = lab.network(HOSTS).unwrap();
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    network.hosts().iter().zip(1..).for_each(|(host, number)| remember(host, number));
    let mut daemons = domain.start(&[], |_| Vec::new()).unwrap();
    let (first, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let took = until_copied(&daemons[0], network.hosts());
    report(&format!("an hour of {HOSTS} hosts is copied {} ms after the start", took.as_millis()));
    // The standby fetches within this time.
    std::thread::sleep(Duration::from_secs(62));
    let standbys = standbys(&daemons[0]).unwrap();
    let remain = |name: &&str| *name != first && !standbys.iter().any(|standby| standby == name);
    let gone = daemons.iter().map(|daemon| daemon.host().name()).find(remain).unwrap().to_owned();
    let killed = now();
    take(&mut daemons, &gone).kill().unwrap();
    take(&mut daemons, &first).kill().unwrap();
    let (next, took) = agreed(&daemons, Some(&first)).unwrap();
    report(&format!("{next} follows {first} after {} ms; {gone} is down too", took.as_millis()));
    let took = until_copied(&daemons[0], network.hosts());
    report(&format!("the past of all is answered {} ms later", took.as_millis()));
    for (host, number) in network.hosts().iter().zip(1u32..) {
        let found = minutes(&daemons[0], NAME, 60 * (PAST_MINUTES + 5));
        let values = &found[host.name()];
        assert!(values.values().all(|value| *value == f64::from(number)), "{}: {values:?}", host.name());
    }
    // Samples too, of those that are down: six a minute, and the last minute before their end.
    for host in [&gone, &first] {
        let (times, newest) = samples(&daemons[0], host);
        let behind = killed.since(newest);
        report(&format!(
            "{host}: {} samples, the newest {} s before it was killed",
            times.len(),
            behind.as_secs()
        ));
        assert!(times.len() >= 6 * usize::try_from(PAST_MINUTES - 1).unwrap(), "{host}: {times:?}");
        assert!(behind < Duration::from_secs(130), "{host}: {behind:?}");
    }
    let near = daemons[0].host();
    let arguments = |more: &[&'static str]| [&["metrics", NAME, "--since", "1h"], more].concat();
    let text = visperf(near, &arguments(&["--step", "1m"])).unwrap();
    assert!(text.contains(&gone) && text.contains(&first), "{text}");
    let all =
        visperf(near, &arguments(&["--by", "domain", "--agg", "sum", "--step", "10m", "--csv"])).unwrap();
    // Five hosts, six samples a minute, ten minutes.
    let whole = f64::from((1..=u32::from(HOSTS)).sum::<u32>() * 60);
    assert!(all.lines().any(|line| line.ends_with(&format!(",{whole},"))), "{all}");
    let hosts = daemons[0].result("domain.hosts", &json!({})).unwrap();
    let rows = hosts["hosts"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["copied_until"].is_number() || row["copied_until"].is_string()),
        "{hosts}"
    );
    exported(near, [&gone, &first]);
    let daemons = without_copies(daemons, &next, network.hosts());
    again_and_again(daemons, network.hosts());
}

/// Exports all that is stored: the metrics of all hosts, the processes of those that are up.
fn exported(near: &Host, down: [&String; 2]) {
    let place = near.folder().join("exported");
    let place = place.to_str().unwrap();
    let state = state(near);
    let days = visperf(near, &["history", "export", place, "--today", "--json", "--state", &state]).unwrap();
    for day in days.lines() {
        let day: Value = serde_json::from_str(day).unwrap();
        let mut silent: Vec<&str> =
            day["silent"].as_array().unwrap().iter().flat_map(|host| host.as_str()).collect();
        silent.sort_unstable();
        let mut down = down.map(String::as_str);
        down.sort_unstable();
        assert_eq!(silent, down, "{day}");
    }
    let all = ["processes", "--from", place, "--since", "1d", "--name", "made-up", "--json"];
    let processes = visperf(near, &all).unwrap();
    let hosts: BTreeSet<String> = processes
        .lines()
        .map(|process| serde_json::from_str::<Value>(process).unwrap()["host"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(hosts.len(), usize::from(HOSTS) - down.len(), "{processes}");
    assert!(!down.iter().any(|host| hosts.contains(*host)), "{hosts:?}");
    let metrics =
        visperf(near, &["metrics", NAME, "--from", place, "--since", "1d", "--by", "host"]).unwrap();
    assert!(down.iter().all(|host| metrics.contains(host.as_str())), "{metrics}");
}

/// Kills all that is left, and starts a host that has copied nothing, and later another that has.
fn without_copies(mut daemons: Vec<Daemon>, representative: &str, hosts: &[Host]) -> Vec<Daemon> {
    std::thread::sleep(Duration::from_secs(30));
    take(&mut daemons, representative).kill().unwrap();
    let [one, other] = [daemons.remove(0), daemons.remove(0)];
    let [with, without] = [one, other].map(|daemon| {
        let host = daemon.host().clone();
        daemon.kill().unwrap();
        host
    });
    std::fs::remove_dir_all(without.folder().join("sensor/sensor/domain-history")).unwrap();
    // The host that they had joined by may be down.
    let seed = format!("[overlay]\nseeds = [\"{}:7318\"]\n", without.name());
    std::fs::write(with.folder().join("sensor.toml"), seed).unwrap();
    daemons.push(sensor(&without, &[]).unwrap());
    let (name, _) = agreed(&daemons, None).unwrap();
    assert_eq!(name, without.name());
    daemons.push(sensor(&with, &[]).unwrap());
    agreed(&daemons, None).unwrap();
    let took = until_copied(&daemons[0], hosts);
    report(&format!("{name} without copies answers the past of all {} ms later", took.as_millis()));
    daemons
}

/// Kills the representative every minute and starts it again; then no minute of any host is missing.
fn again_and_again(mut daemons: Vec<Daemon>, hosts: &[Host]) {
    let count: u64 = std::env::var("VISPERF_MINUTES").map_or(0, |count| count.parse().unwrap());
    if count == 0 {
        return;
    }
    for host in hosts {
        if !daemons.iter().any(|daemon| daemon.host().name() == host.name()) {
            daemons.push(sensor(host, &[]).unwrap());
        }
    }
    let (mut current, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let start = now();
    for _ in 0..count {
        std::thread::sleep(Duration::from_secs(50));
        let dead = take(&mut daemons, &current);
        let host = dead.host().clone();
        dead.kill().unwrap();
        agreed(&daemons, Some(&current)).unwrap();
        daemons.push(sensor(&host, &[]).unwrap());
        (current, _) = agreed(&daemons, None).unwrap();
    }
    let end = now();
    // The minute of the last sample is over, and is fetched.
    std::thread::sleep(Duration::from_secs(60) + COPIED);
    let secs = now().since(start).as_secs();
    let found = minutes(&daemons[0], "node_load1", secs);
    let minute = |time: Time| time.micros().unsigned_abs() / 60_000_000;
    // A fail-over takes less than a minute: the last one is over by the clock, not by their number.
    let (from, to) = (minute(start) + 1, minute(end));
    let missing: Vec<String> = hosts
        .iter()
        .flat_map(|host| {
            let of_host = found.get(host.name());
            let is_missing =
                |minute: &u64| !of_host.is_some_and(|of_host| of_host.contains_key(&(minute * 60)));
            (from..to)
                .filter(is_missing)
                .map(|minute| format!("{} {minute}", host.name()))
                .collect::<Vec<_>>()
        })
        .collect();
    report(&format!(
        "{count} fail-overs, {} minutes of {} hosts, {} missing",
        to - from,
        hosts.len(),
        missing.len()
    ));
    assert!(missing.is_empty(), "{missing:?}");
}

#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn report(line: &str) {
    println!("{line}");
}
