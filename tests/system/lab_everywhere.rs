//! Answers about domains, compared at every daemon of a grid: every query of a domain has the same answer
//! wherever it enters, and every event of the real logs on its hosts is returned once.
//!
//! Rule: whole answers are compared, except times and loads, which change from one query to the next.
//! Not here: the grid and its faults (`lab_grid`), growing logs and dying hosts (`lab_reports`).

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use system_tests::lab::domains::AGREED;
use system_tests::lab::{Daemon, Host, Stopwatch};
use system_tests::program::workspace;
use system_tests::wait::Seen;

/// Real logs, the filter of each, and the number of its events, as its labels state.
const LOGS: [(&str, &str, usize); 4] = [
    ("slurm/15.08.7-linux/slurmctld.log", "slurmctld", 281),
    ("gridengine/8.1.9-alpha/accounting", "gridengine-accounting", 123),
    ("htcondor/23.9.6-cat/sub01.EventLog", "htcondor-eventlog", 352),
    ("gridftp/13.24-alpha/se01.transfer.log", "gridftp-transfer", 103),
];
/// Most events in a page.
const PAGE: usize = 10_000;

fn of(host: &str) -> (&'static str, &'static str, usize) {
    let number: usize = host.trim_start_matches('h').parse().expect("hosts are numbered");
    LOGS[number % LOGS.len()]
}

/// Options that make a host's sensor follow its real log.
pub(super) fn tails(host: &Host) -> Vec<String> {
    let (file, filter, _) = of(host.name());
    let log = workspace().join("log-filters/logs").join(file);
    vec!["--tail".to_owned(), format!("{}={filter}", log.display())]
}

fn ask(daemon: &Daemon, method: &str, domain: &str, mut params: Value) -> Result<Value> {
    params["domain"] = json!(domain);
    daemon.result(method, &params)
}

fn rows<'a>(answer: &'a Value, name: &str) -> Result<impl Iterator<Item = &'a Value>> {
    Ok(answer[name].as_array().with_context(|| format!("{name} in {answer}"))?.iter())
}

/// The ids of all events, in order, and the number of events of each host.
fn events(daemon: &Daemon, domain: &str) -> Result<(Vec<String>, BTreeMap<String, usize>)> {
    let (mut ids, mut hosts, mut cursor) = (Vec::new(), BTreeMap::new(), String::new());
    loop {
        let page = ask(daemon, "domain.events", domain, json!({ "cursor": cursor, "limit": PAGE }))?;
        let before = ids.len();
        for event in rows(&page, "events")? {
            ids.push(event["id"].as_str().unwrap_or_default().to_owned());
            *hosts.entry(event["source"]["host"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        if ids.len() == before {
            return Ok((ids, hosts));
        }
        page["cursor"].as_str().context("a cursor is a text")?.clone_into(&mut cursor);
    }
}

/// A daemon's answers about a domain.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    hosts: Vec<String>,
    summary: String,
    calls: Vec<String>,
    jobs: Vec<String>,
    metrics: Vec<String>,
    events: Vec<String>,
    by_host: BTreeMap<String, usize>,
}

fn answers(daemon: &Daemon, domain: &str) -> Result<Answers> {
    let hosts = ask(daemon, "domain.hosts", domain, json!({}))?;
    let host = |row: &Value| format!("{} {} {} {}", row["host"], row["state"], row["sensor"], row["events"]);
    let summary = ask(daemon, "domain.summary", domain, json!({}))?;
    let counts = ["representative", "hosts_live", "events", "calls"].map(|name| summary[name].to_string());
    let calls = ask(daemon, "domain.calls", domain, json!({ "limit": PAGE }))?;
    let call = |row: &Value| format!("{} {} {}", row["id"], row["state"], row["outcome"]);
    let metrics = ask(daemon, "domain.metrics", domain, json!({ "name": "node_boot_time_seconds" }))?;
    let metric = |row: &Value| format!("{} {}", row["host"], row["name"]);
    let jobs = ask(daemon, "jobs.search", domain, json!({ "limit": PAGE }))?;
    let job = |row: &Value| format!("{} {} {} {}", row["domain"], row["id"], row["state"], row["cpus"]);
    let (events, by_host) = events(daemon, domain)?;
    Ok(Answers {
        hosts: rows(&hosts, "hosts")?.map(host).collect(),
        summary: counts.join(" "),
        calls: rows(&calls, "calls")?.map(call).collect(),
        jobs: rows(&jobs, "jobs")?.map(job).collect(),
        metrics: rows(&metrics, "metrics")?.map(metric).collect(),
        events,
        by_host,
    })
}

/// Wait until all daemons return the same about the domain of these members, with every event of their logs
/// once.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
pub(super) fn same(daemons: &[&Daemon], domain: &str, members: &[Daemon]) {
    let names = members.iter().map(|daemon| daemon.host().name().to_owned());
    let expected: BTreeMap<String, usize> = names.map(|host| (host.clone(), of(&host).2)).collect();
    let look = || {
        let first = answers(daemons[0], domain)?;
        if first.by_host != expected {
            return Ok(Seen::NotYet(format!("events of {:?}, expected {expected:?}", first.by_host)));
        }
        for daemon in &daemons[1..] {
            let other = answers(daemon, domain)?;
            if other != first {
                let name = daemon.host().name();
                return Ok(Seen::NotYet(format!("{name} reports {other:?}, another {first:?}")));
            }
        }
        Ok(Seen::Done(first))
    };
    let (took, all) = Stopwatch::start().until(AGREED, "one answer everywhere", look).unwrap();
    let mut ids = all.events.clone();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.events.len(), "an event is reported twice");
    assert!(all.hosts.len() == members.len() && all.metrics.len() == members.len(), "{all:?}");
    assert!(
        all.calls.len() > 100 && all.jobs.len() > 60,
        "{} calls, {} jobs",
        all.calls.len(),
        all.jobs.len()
    );
    println!(
        "{domain}: {} daemons report the same of {} hosts, {} events, {} calls, after {} ms",
        daemons.len(),
        all.hosts.len(),
        all.events.len(),
        all.calls.len(),
        took.as_millis()
    );
}
