//! Channels between hosts with the real program: a client that subscribes to a host at any daemon of its
//! domain gets its processes, identical subscriptions share a stream, and all continue after the
//! representative died; every event of a host arrives once, although its sensor was killed meanwhile.
//!
//! Not here: that what comes is what the host itself would give (`sensor/tests/integration/relays.rs`).

use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, sensor, settled};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::logs;
use system_tests::wait::{self, Seen};

/// Timeout for a stream.
const PATIENCE: Duration = Duration::from_secs(30);
/// A rate at which no sensor sweeps by default.
const RATE: f64 = 64.0;

/// Queue size for entries while a client does not take them, as the test is about the transfer between hosts.
fn room() -> Value {
    json!({"queue_bytes": 8 << 20})
}

fn subscribe(daemon: &Daemon, host: &str, rate: f64) -> Value {
    let wanted = json!({"host": host, "rate": rate, "filter": "pid > 0", "budget": room()});
    daemon.result("sensor.subscribe", &wanted).unwrap()["subscription"].clone()
}

/// Take entries until there are `least` sweeps; returns the numbers of the sweeps.
fn take(daemon: &Daemon, host: &str, subscription: &Value, least: usize) -> Vec<u64> {
    let start = Stopwatch::start();
    let mut sweeps = Vec::new();
    while sweeps.len() < least {
        assert!(start.elapsed() < PATIENCE, "{sweeps:?}");
        let params = json!({"host": host, "subscription": subscription, "wait": 5, "limit": 1000});
        let answer = daemon.result("sensor.take", &params).unwrap();
        for entry in answer["entries"].as_array().unwrap() {
            assert_eq!(entry["what"], "sample", "{entry}");
            assert!(!entry["processes"].as_array().unwrap().is_empty());
            sweeps.push(entry["sweep"].as_u64().unwrap());
        }
    }
    sweeps
}

#[test]
fn subscribers_anywhere_get_the_processes_of_a_host_by_one_stream() {
    let name = "lab_channels::subscribers_anywhere_get_the_processes_of_a_host_by_one_stream";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let mut daemons = Domain::create("UT-ICL", network.hosts()).unwrap().start(&[], |_| Vec::new()).unwrap();
    let (representative, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();

    let others: Vec<usize> =
        (0..daemons.len()).filter(|nth| daemons[*nth].host().name() != representative).collect();
    let (watched, near, far) = (others[0], others[1], others[2]);
    let host = daemons[watched].host().name().to_owned();
    let (fast, slow) = (subscribe(&daemons[near], &host, RATE), subscribe(&daemons[far], &host, RATE / 8.0));
    let sweeps = take(&daemons[near], &host, &fast, 128);
    assert!(take(&daemons[far], &host, &slow, 16).len() >= 16);
    // Each sweep, except those that the host skipped: none arrives twice, and none is lost on the way.
    assert!(sweeps.windows(2).all(|pair| pair[1] > pair[0]), "{sweeps:?}");
    let at_host = daemons[watched].result("sensor.subscriptions", &json!({})).unwrap();
    let rates: Vec<&Value> =
        at_host["subscriptions"].as_array().unwrap().iter().map(|one| &one["rate"]).collect();
    assert_eq!(rates, [&json!(RATE)], "{at_host}");

    // Scripts are programs; a daemon does not forward those of others.
    let scripted = json!({"host": host, "script": "true"});
    assert!(daemons[near].result("sensor.subscribe", &scripted).is_err());
    let unknown = json!({"host": "nobody"});
    assert!(daemons[near].result("sensor.subscribe", &unknown).is_err());

    // Another representative: a client that subscribes again there gets all entries again.
    let at = daemons.iter().position(|daemon| daemon.host().name() == representative).unwrap();
    daemons.remove(at).kill().unwrap();
    agreed(&daemons, Some(&representative)).unwrap();
    let near = daemons.iter().find(|daemon| daemon.host().name() != host).unwrap();
    let start = Stopwatch::start();
    let again = loop {
        // The new representative may not be connected to all members yet.
        match near.result("sensor.subscribe", &json!({"host": host, "rate": RATE, "budget": room()})) {
            Ok(made) => break made["subscription"].clone(),
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
    };
    take(near, &host, &again, 32);

    // The dead one is listed by a representative to which it never reported.
    wait::until(PATIENCE, "the previous representative among the hosts", || {
        let answer = near.result("domain.hosts", &json!({}))?;
        let is_it = |row: &&Value| row["host"].as_str() == Some(&representative);
        let found = answer["hosts"].as_array().and_then(|rows| rows.iter().find(is_it));
        Ok(match found.and_then(|row| row["state"].as_str()) {
            Some("last_seen") => Seen::Done(()),
            _ => Seen::NotYet(answer.to_string()),
        })
    })
    .unwrap();
}

fn log(host: &Host) -> PathBuf {
    host.folder().join("logs/slurmctld.log")
}

/// Options that make a host's sensor follow its log, from the start.
fn following(host: &Host) -> Vec<String> {
    vec!["--tail".to_owned(), format!("{}=slurmctld", log(host).display())]
}

/// Append submissions of these jobs to the log.
fn write(host: &Host, jobs: std::ops::Range<usize>) {
    std::fs::create_dir_all(log(host).parent().unwrap()).unwrap();
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log(host)).unwrap();
    log.write_all(jobs.map(logs::line).collect::<String>().as_bytes()).unwrap();
}

/// Take events until there are `count`; returns their jobs. Meanwhile the host may be down.
fn take_events(daemon: &Daemon, host: &str, subscription: &Value, count: usize) -> Vec<usize> {
    let start = Stopwatch::start();
    let (mut jobs, mut trouble) = (Vec::new(), String::new());
    while jobs.len() < count {
        assert!(
            start.elapsed() < PATIENCE * 2,
            "{} of {count}, the last {:?}: {trouble}",
            jobs.len(),
            jobs.last()
        );
        let params = json!({"host": host, "subscription": subscription, "wait": 2, "limit": 1000});
        match daemon.result("sensor.take", &params) {
            Ok(answer) => {
                assert_eq!(answer["missed"], json!(0), "{answer}");
                let entries = answer["entries"].as_array().unwrap().iter();
                let events = entries.filter(|entry| entry["what"] == "event");
                jobs.extend(
                    events.map(|entry| entry["event"]["job"].as_str().unwrap().parse::<usize>().unwrap()),
                );
            }
            Err(error) => {
                trouble = error.to_string();
                std::thread::sleep(wait::PAUSE);
            }
        }
    }
    jobs
}

#[test]
fn every_event_of_a_host_comes_once_to_each_subscriber() {
    let name = "lab_channels::every_event_of_a_host_comes_once_to_each_subscriber";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    network.hosts().iter().for_each(|host| write(host, 1..11));
    let mut daemons = Domain::create("UT-ICL", network.hosts()).unwrap().start(&[], following).unwrap();
    let (representative, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let others: Vec<usize> =
        (0..daemons.len()).filter(|nth| daemons[*nth].host().name() != representative).collect();
    let (watched, near, far) = (others[2], others[0], others[1]);
    let on = daemons[watched].host().clone();
    let subscribe = |daemon: &Daemon, filter: &str| {
        let wanted = json!({"host": on.name(), "kind": "event", "rate": 20, "filter": filter});
        daemon.result("sensor.subscribe", &wanted).unwrap()["subscription"].clone()
    };
    let all = subscribe(&daemons[near], "");
    let few = subscribe(&daemons[far], "job ~ \"[13579]$\"");
    wait::until(PATIENCE, "one stream for both", || {
        let answer = daemons[watched].result("sensor.subscriptions", &json!({}))?;
        Ok(match answer["subscriptions"].as_array().map(Vec::len) {
            Some(1) => Seen::Done(()),
            _ => Seen::NotYet(answer.to_string()),
        })
    })
    .unwrap();
    write(&on, 100..300);
    assert_eq!(take_events(&daemons[near], on.name(), &all, 200), (100..300).collect::<Vec<_>>());

    // Its sensor is killed, and the events written meanwhile arrive too.
    daemons.remove(watched).kill().unwrap();
    write(&on, 300..400);
    daemons.push(sensor(&on, &following(&on)).unwrap());
    write(&on, 400..500);
    assert_eq!(take_events(&daemons[near], on.name(), &all, 200), (300..500).collect::<Vec<_>>());
    let odd: Vec<usize> = (100..500).filter(|job| job % 2 == 1).collect();
    assert_eq!(take_events(&daemons[far], on.name(), &few, odd.len()), odd);
}
