//! Ended calls of a domain are with its representative and its standbys: they are answered after a fail-over, though the
//! host whose log showed them is gone for good.
//!
//! Rule: a program that is asked by root, as stored calls are answered to users that are identified.
//! Not here: copies of a database (`call-store/tests`), calls of one sensor (`sensor/tests/integration/past_calls.rs`).

use call_store::answer::Query;
use call_store::store::{CallLimit, CallStore};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, sensor, settled, standbys, state, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::wait::Seen;
use wire::api::calls::CallsParams;

const JOBS: usize = 300;
/// Jobs that are imported.
const IMPORTED: usize = 40;
/// Timeout for calls to be listed, and to be copied.
const SOON: Duration = Duration::from_secs(60);

fn log_of(host: &Host) -> String {
    host.folder().join("jobcomp.log").display().to_string()
}

/// Lets jobs end on a host: a job a second, one in seven failed.
fn end_jobs(host: &Host) {
    let mut lines = String::new();
    for job in 1..=JOBS {
        let at = format!("2026-11-20T{:02}:{:02}:{:02}", job / 3600, job / 60 % 60, job % 60);
        let (state, code) = if job % 7 == 0 { ("FAILED", "1:0") } else { ("COMPLETED", "0:0") };
        writeln!(
            lines,
            "JobId={job} UserId=ada(70123) GroupId=users(100) Name=relax JobState={state} Partition=normal TimeLimit=60 \
             StartTime={at} EndTime={at} NodeList=wn01 NodeCnt=1 ProcCnt=1 WorkDir=/home/ada ExitCode={code} "
        )
        .unwrap();
    }
    let mut log = std::fs::OpenOptions::new().append(true).open(log_of(host)).unwrap();
    log.write_all(lines.as_bytes()).unwrap();
}

/// The output of `visperf calls`, over the local socket of a daemon.
fn listed(host: &Host, more: &[&str]) -> anyhow::Result<String> {
    let state = state(host);
    visperf(host, &[&["calls", "--limit", "1000", "--state", &state], more].concat())
}

/// The domain's ended calls by their ids, as root sees them on a host.
fn calls(daemon: &Daemon) -> BTreeMap<String, Value> {
    // The representative may be changing.
    let text = listed(daemon.host(), &["--json"]).unwrap_or_default();
    let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.map(|call| (call["id"].as_str().unwrap().to_owned(), call)).collect()
}

fn until_all(daemon: &Daemon, what: &str, count: usize) -> (BTreeMap<String, Value>, Duration) {
    let mut watch = Stopwatch::start();
    let look = || {
        let found = calls(daemon);
        Ok(if found.len() == count {
            Seen::Done(found)
        } else {
            Seen::NotYet(format!("{} calls", found.len()))
        })
    };
    let found =
        watch.until(SOON, what, look).unwrap_or_else(|error| panic!("{error:#}\n{}", daemon.output()));
    (found.1, found.0)
}

/// Number of calls that a host has stored of its domain.
fn copied(host: &Host) -> u64 {
    let path = host.folder().join("sensor/sensor/domain-calls/calls.db");
    let store = CallStore::new(&path, CallLimit { bytes: 1 << 30, age: Duration::MAX });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let page = runtime.block_on(store.page(Query::of_all(&CallsParams::default()), None, 1));
    // It may be created at the moment.
    page.map_or(0, |page| page.total)
}

/// Imports jobs of another year, and some that are known, on the host of the representative; another host refuses and
/// says where.
fn import(representative: &Host, other: &Host) {
    let mut lines = "JobID|JobName|User|State|ExitCode|Submit|Start|End|NodeList\n".to_owned();
    for job in 1..=IMPORTED {
        let at = format!("2025-03-01T00:00:{job:02}");
        writeln!(lines, "{}|md|bob|COMPLETED|0:0|{at}|{at}|{at}|wn07", 9000 + job).unwrap();
        let at = format!("2026-11-20T00:00:{job:02}");
        let state = if job % 7 == 0 { "FAILED" } else { "COMPLETED" };
        writeln!(lines, "{job}|relax|ada|{state}|0:0|{at}|{at}|{at}|wn01").unwrap();
    }
    let file = representative.folder().join("sacct.txt");
    std::fs::write(&file, lines).unwrap();
    let file = file.display().to_string();
    let run = |host: &Host| {
        visperf(host, &["jobs", "import", "--zone", "UTC", "--json", "--state", &state(host), &file])
    };
    let refused = format!("{:#}", run(other).unwrap_err());
    assert!(refused.contains("does not represent") && refused.contains(representative.name()), "{refused}");
    let imported: Value = serde_json::from_str(&run(representative).unwrap()).unwrap();
    let sums = ["stored", "completed", "known", "refused"].map(|name| imported[name].as_u64().unwrap());
    assert_eq!(sums[0] as usize, IMPORTED, "{imported}");
    assert_eq!((sums[1] + sums[2]) as usize, IMPORTED, "{imported}");
}

/// Waits until both standbys, whichever hosts they are by then, have copied all calls.
fn until_copied(daemons: &[Daemon], count: usize) -> Duration {
    let look = || {
        let names = standbys(&daemons[0])?;
        let hosts =
            daemons.iter().map(Daemon::host).filter(|host| names.iter().any(|name| name == host.name()));
        let counts: Vec<u64> = hosts.map(copied).collect();
        let is_done = counts.len() == 2 && counts.iter().all(|copied| *copied == count as u64);
        Ok(if is_done { Seen::Done(()) } else { Seen::NotYet(format!("{names:?} have {counts:?} calls")) })
    };
    Stopwatch::start().until(SOON, "a copy of all calls", look).unwrap().0
}

/// The successors of the representative, which are chosen a moment after it is.
fn two_standbys(daemon: &Daemon) -> Vec<String> {
    let look = || {
        let found = standbys(daemon)?;
        Ok(if found.len() == 2 { Seen::Done(found) } else { Seen::NotYet(format!("{found:?}")) })
    };
    Stopwatch::start().until(SOON, "two standbys", look).unwrap().1
}

#[test]
fn calls_of_a_host_that_is_gone_are_answered_after_a_failover() {
    let name = "lab_calls::calls_of_a_host_that_is_gone_are_answered_after_a_failover";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    let tail = |host: &Host| {
        std::fs::write(log_of(host), "").unwrap();
        vec!["--tail".to_owned(), format!("{}=slurm-jobcomp", log_of(host))]
    };
    let mut daemons = domain.start(&[], tail).unwrap();
    settled(&daemons).unwrap();
    let successors = two_standbys(&daemons[0]);
    let (first, _) = agreed(&daemons, None).unwrap();
    let is_member = |daemon: &Daemon| {
        let name = daemon.host().name();
        name != first && !successors.iter().any(|standby| standby == name)
    };
    let at = daemons.iter().position(is_member).unwrap();
    let gone = daemons.swap_remove(at);
    let of = |daemons: &[Daemon], name: &str| {
        daemons.iter().position(|daemon| daemon.host().name() == name).unwrap()
    };

    end_jobs(gone.host());
    let near = of(&daemons, &successors[0]);
    let (_, took) = until_all(&daemons[near], "the jobs of the member", JOBS);
    report(&format!("{JOBS} jobs of a member are listed after {} ms", took.as_millis()));
    report(&format!("both standbys have copied them {} ms later", until_copied(&daemons, JOBS).as_millis()));
    let (first, _) = agreed(&daemons, None).unwrap();
    import(daemons[of(&daemons, &first)].host(), daemons[near].host());
    let (before, _) = until_all(&daemons[near], "imported jobs, too", JOBS + IMPORTED);
    assert!(before["slurm:7"]["user"] == "ada" && before["slurm:9007"]["user"] == "bob", "{before:?}");
    report(&format!(
        "both have the imported ones {} ms later",
        until_copied(&daemons, JOBS + IMPORTED).as_millis()
    ));
    let state = gone.host().folder().join("sensor");
    gone.kill().unwrap();
    std::fs::remove_dir_all(state).unwrap();
    let at = of(&daemons, &first);
    let representative = daemons.swap_remove(at);
    let host = representative.host().clone();
    representative.kill().unwrap();
    let (next, took) = agreed(&daemons, Some(&first)).unwrap();
    report(&format!("{next} follows {first} after {} ms", took.as_millis()));
    let (after, _) = until_all(&daemons[0], "the jobs of the host that is gone", JOBS + IMPORTED);
    assert_eq!(after, before);
    let failed = listed(daemons[0].host(), &["--outcome", "failed"]).unwrap();
    assert_eq!(failed.lines().filter(|line| line.contains("ada")).count(), JOBS / 7, "{failed}");

    // The previous representative comes back with what it has stored, and what both have is listed once.
    daemons.push(sensor(&host, &[]).unwrap());
    agreed(&daemons, None).unwrap();
    let back = "the jobs, when the previous representative is back";
    assert_eq!(until_all(&daemons[0], back, JOBS + IMPORTED).0, before);
}

#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn report(line: &str) {
    println!("{line}");
}
