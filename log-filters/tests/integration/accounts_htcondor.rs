//! HTCondor: every job of the event log has one call that agrees with it, whichever files are read, in any
//! order.
//!
//! Rule: the expected values are computed here from the event log, independently of the filter.
#![allow(clippy::unwrap_used)]

use crate::collection;

use crate::collection::Read;
use log_filters::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use wire::call::{Call, State};
use wire::event::{Kind, Outcome};
use wire::time::Time;

const FOLDER: &str = "htcondor/23.9.6-cat";

/// A job in the event log.
#[derive(Clone, Debug, Default, PartialEq)]
struct Account {
    submitted: Option<Time>,
    started: Option<Time>,
    ended: Option<Time>,
    host: String,
    outcome: Option<Outcome>,
    code: String,
    signal: String,
    starts: u32,
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &[char]) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after).unwrap_or(rest.len())])
}

/// Records end with three dots; their first line is `NNN (CLUSTER.PROC.SUB) DATE TIME TEXT`.
fn accounts(text: &str, year: &str) -> BTreeMap<String, Account> {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for record in text.split("...\n").filter(|record| record.contains('(')) {
        let words: Vec<&str> = record.splitn(5, ' ').collect();
        let numbers: Vec<&str> = words[1].trim_matches(['(', ')']).split('.').collect();
        let Ok(cluster) = numbers[0].parse::<u32>() else { continue };
        let job = format!("{cluster}.{}", numbers[1].parse::<u32>().unwrap());
        let date = match words[2].split_once('/') {
            Some((month, day)) => format!("{year}-{month}-{day}"),
            None => words[2].to_owned(),
        };
        let time = Some(collection::moment(&format!("{date}T{}", words[3])));
        apply(accounts.entry(job).or_default(), words[0], time, record);
    }
    accounts
}

fn apply(account: &mut Account, number: &str, time: Option<Time>, record: &str) {
    let over = account.ended.is_some();
    match number {
        "000" => account.submitted = time,
        "001" => {
            account.started = time;
            account.starts += 1;
            let address = between(record, "host: <", &[':', '>']).unwrap_or_default();
            account.host = between(record, "alias=", &['&', '>']).unwrap_or(address).to_owned();
        }
        "005" => {
            account.ended = time;
            account.code = between(record, "(return value ", &[')']).unwrap_or_default().to_owned();
            account.signal = between(record, "(signal ", &[')']).unwrap_or_default().to_owned();
            account.outcome = Some(if account.code == "0" { Outcome::Ok } else { Outcome::Failed });
        }
        "009" if !over => (account.ended, account.outcome) = (time, Some(Outcome::Cancelled)),
        _ => {}
    }
}

fn logs_of(folder: &str) -> Vec<Read> {
    let registry = Registry::shipped();
    let root = collection::folder().join(folder);
    let mut paths: Vec<_> = [root.clone(), root.join("joblogs")]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && !path.extension().is_some_and(|end| end == "json" || end == "jsonl"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let log = collection::read(&registry, path);
            let log = log.unwrap_or_else(|| panic!("no filter reads {}", path.display()));
            assert!(log.filter.starts_with("htcondor-"), "{} is read by {}", path.display(), log.filter);
            log
        })
        .collect()
}

fn check(calls: &[Call], accounts: &BTreeMap<String, Account>, what: &str) {
    let mut of_job: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        of_job.entry(call.job.as_str()).or_default().push(call);
    }
    let jobs: BTreeSet<&str> = accounts.keys().map(String::as_str).collect();
    assert_eq!(of_job.keys().copied().collect::<BTreeSet<_>>(), jobs, "{what}: jobs that have a call");
    for (job, account) in accounts {
        let [call] = of_job[job.as_str()].as_slice() else {
            panic!("{what}: {job} has the calls {:#?}", of_job[job.as_str()]);
        };
        let hosts: Vec<&str> = call.hosts.iter().map(|host| host.as_str()).collect();
        let found = Account {
            submitted: call.submitted,
            started: call.started,
            ended: call.ended,
            host: hosts.join(","),
            outcome: call.outcome,
            code: call.code.to_string(),
            signal: call.signal.to_string(),
            starts: call.tries,
        };
        assert_eq!(&found, account, "{what}: {job}: {call:#?}");
        assert_eq!(call.state, State::Ended, "{what}: {job}");
    }
}

fn truth() -> BTreeMap<String, Account> {
    let text = fs::read_to_string(collection::folder().join(FOLDER).join("sub01.EventLog")).unwrap();
    let accounts = accounts(&text, "2026");
    let totals = fs::read_to_string(collection::folder().join(FOLDER).join("totals.json")).unwrap();
    let totals: serde_json::Value = serde_json::from_str(&totals).unwrap();
    let totals = &totals["files"]["sub01.EventLog"];
    let count =
        |of: &dyn Fn(&Account) -> bool| accounts.values().filter(|account| of(account)).count() as u64;
    assert_eq!(Some(accounts.len() as u64), totals["e000"].as_u64());
    let cancelled = |account: &Account| account.outcome == Some(Outcome::Cancelled);
    assert_eq!(Some(count(&cancelled)), totals["e009"].as_u64());
    assert_eq!(Some(count(&|account| !account.signal.is_empty())), totals["abnormal"].as_u64());
    let starts: u64 = accounts.values().map(|account| u64::from(account.starts)).sum();
    assert_eq!(Some(starts), totals["e001"].as_u64());
    accounts
}

#[test]
fn the_event_log_alone_gives_each_job_its_call() {
    let logs = logs_of(FOLDER);
    check(
        &collection::join(logs.iter().filter(|log| log.filter == "htcondor-eventlog").take(1)),
        &{
            // All jobs in the first file by name are of one user.
            let text =
                fs::read_to_string(collection::folder().join(FOLDER).join("joblogs/mrossi.1.log")).unwrap();
            accounts(&text, "2026")
        },
        "a user's log",
    );
    let event_log =
        collection::read(&Registry::shipped(), &collection::folder().join(FOLDER).join("sub01.EventLog"));
    check(&collection::join(&event_log), &truth(), "event log");
}

#[test]
fn all_logs_of_the_pool_together_agree_with_the_event_log_in_any_order() {
    let logs = logs_of(FOLDER);
    assert!(logs.len() >= 17, "{} logs", logs.len());
    let truth = truth();
    check(&collection::join(&logs), &truth, "by name");
    check(&collection::join(logs.iter().rev()), &truth, "reversed");
    for first in 0..logs.len() {
        let order = logs[first..].iter().chain(&logs[..first]);
        check(&collection::join(order), &truth, &format!("beginning with {} ({first})", logs[first].filter));
    }
}

/// A shadow that continues with another job of its owner prints no user name.
fn check_owner(call: &Call, owners: &BTreeMap<&str, &str>) {
    let is_known = || owners.values().any(|owner| call.user == *owner);
    let is_right = owners.get(call.job.as_str()).map_or_else(is_known, |owner| call.user == *owner);
    assert!(is_right, "{call:#?}");
}

#[test]
fn a_match_is_one_event_of_its_call_and_names_the_owner() {
    let logs = logs_of(FOLDER);
    let selects = |filter: &str, of_a_call: bool| {
        let found = logs.iter().filter(|log| log.filter == filter).flat_map(|log| &log.found);
        found.filter(|f| f.content.kind == Kind::JobSelect && f.keys.is_some() == of_a_call).count()
    };
    assert_eq!((selects("htcondor-match", true), selects("htcondor-negotiator", true)), (30, 0));
    assert_eq!(selects("htcondor-negotiator", false), 30);
    // As condor_q prints them: without the domain that some logs add to user names.
    let schedd = fs::read_to_string(collection::folder().join(FOLDER).join("sub01.SchedLog")).unwrap();
    let owners: BTreeMap<&str, &str> = schedd
        .lines()
        .filter_map(|line| {
            Some((between(line, "Started shadow for job ", &[' '])?, between(line, "> for ", &[','])?))
        })
        .collect();
    assert!(owners.len() > 50, "{owners:?}");
    for calls in [collection::join(&logs), collection::join(logs.iter().rev())] {
        for call in calls.iter().filter(|call| call.started.is_some()) {
            check_owner(call, &owners);
        }
    }
    let matched = logs.iter().find(|log| log.filter == "htcondor-match").unwrap();
    for call in collection::join([matched]) {
        check_owner(&call, &owners);
    }
}

#[test]
fn logs_of_older_versions_give_each_job_its_call() {
    let root = collection::folder().join("htcondor/from-repository");
    let mut jobs = 0;
    for (name, year) in [
        ("job_dagman_gt1957.testlog", "2026"),
        ("recovery_event_check.log", "2026"),
        ("abnormal_term.log", "2026"),
    ] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let log = collection::read(&Registry::shipped(), &root.join(name)).unwrap();
        assert_eq!(log.unknown, Vec::<String>::new(), "{name}");
        let accounts = accounts(&text, year);
        jobs += accounts.len();
        check(&collection::join([&log]), &accounts, name);
    }
    assert_eq!(jobs, 5);
}

/// From any single log, no call of a finished job stays running, and its end is that of the event log.
#[test]
fn a_log_of_a_host_or_of_the_queue_alone_ends_what_it_began() {
    let truth = truth();
    let logs = logs_of(FOLDER);
    let mut ended = 0;
    for filter in ["htcondor-schedd", "htcondor-startd"] {
        for log in logs.iter().filter(|log| log.filter == filter) {
            let began: BTreeSet<&str> = log
                .found
                .iter()
                .filter(|found| found.content.kind == Kind::JobStart)
                .map(|found| found.content.job.as_str())
                .collect();
            for call in collection::join([log]) {
                assert_eq!(call.state, State::Ended, "{filter}: {call:#?}");
                let account = &truth[call.job.as_str()];
                let secs = |time: Option<Time>| time.unwrap().micros() / 1_000_000;
                assert!(
                    (secs(call.ended) - secs(account.ended)).abs() <= 2,
                    "{filter}: {call:#?} {account:?}"
                );
                let is_right = call.outcome == Some(Outcome::Finished) || call.outcome == account.outcome;
                assert!(is_right, "{filter}: {call:#?} {account:?}");
                ended += usize::from(began.contains(call.job.as_str()));
            }
        }
    }
    assert!(ended >= 94 + 33 + 16, "{ended} calls");
}

/// The host reports the end of a job shortly after the job was requeued or held.
#[test]
fn a_job_that_is_put_back_waits_although_the_host_is_done_with_it() {
    let schedd = "\
11/20/26 10:00:09 (pid:1) Started shadow for job 7.0 on slot1@wn1.example <10.0.0.2:9618> for aliu, (shadow pid = 5)
11/20/26 10:00:09 (pid:1) Started shadow for job 8.0 on slot2@wn1.example <10.0.0.2:9618> for aliu, (shadow pid = 6)
11/20/26 10:01:00 (pid:1) Shadow pid 5 for job 7.0 exited with status 107
11/20/26 10:01:00 (pid:1) Job 8.0 put on hold: via condor_hold (by user aliu)
11/20/26 10:01:01 (pid:1) Shadow pid 6 for job 8.0 exited with status 102
";
    let startd = "\
11/20/26 10:00:10 slot1: Remote job ID is 7.0
11/20/26 10:00:10 slot1: Changing activity: Idle -> Busy
11/20/26 10:00:10 slot2: Remote job ID is 8.0
11/20/26 10:00:10 slot2: Changing activity: Idle -> Busy
11/20/26 10:01:02 slot1: State change: starter exited
11/20/26 10:01:02 slot2: State change: starter exited
";
    let again = "\
11/20/26 10:02:00 slot1: Remote job ID is 7.0
11/20/26 10:02:00 slot1: Changing activity: Idle -> Busy
11/20/26 10:03:00 slot1: State change: starter exited
";
    let read =
        |name: &str, text: &str| collection::read_bytes(&Registry::shipped(), name, text.as_bytes()).unwrap();
    let states = |logs: &[&Read]| -> Vec<State> {
        collection::join(logs.iter().copied()).iter().map(|call| call.state).collect()
    };
    let (schedd, host) = (read("SchedLog", schedd), read("StartLog", startd));
    assert_eq!(states(&[&schedd]), [State::Waiting, State::Waiting]);
    assert_eq!(states(&[&host]), [State::Ended, State::Ended], "all that the host knows");
    for order in [[&schedd, &host], [&host, &schedd]] {
        assert_eq!(states(&order), [State::Waiting, State::Waiting]);
    }
    let host = read("StartLog", &format!("{startd}{again}"));
    for order in [[&schedd, &host], [&host, &schedd]] {
        assert_eq!(states(&order), [State::Ended, State::Waiting]);
    }
}

/// A job that is evicted twice and runs on two hosts, in the event log, the schedd's and the shadow's.
#[test]
fn a_job_that_goes_back_to_the_queue_is_one_call() {
    let event_log = "\
000 (007.000.000) 2026-11-20 10:00:00 Job submitted from host: <10.0.0.1:9618?alias=sub.example>
...
001 (007.000.000) 2026-11-20 10:00:10 Job executing on host: <10.0.0.2:9618?alias=wn1.example>
...
004 (007.000.000) 2026-11-20 10:01:00 Job was evicted.
...
001 (007.000.000) 2026-11-20 10:05:00 Job executing on host: <10.0.0.3:9618?alias=wn2.example>
...
007 (007.000.000) 2026-11-20 10:06:00 Shadow exception!
\tError from slot1@wn2.example: lost
...
001 (007.000.000) 2026-11-20 10:07:00 Job executing on host: <10.0.0.3:9618?alias=wn2.example>
...
005 (007.000.000) 2026-11-20 10:09:00 Job terminated.
\t(1) Normal termination (return value 0)
...
";
    let schedd = "\
11/20/26 10:00:09 (pid:1) Started shadow for job 7.0 on slot1@wn1.example <10.0.0.2:9618> for aliu, (shadow pid = 5)
11/20/26 10:01:01 (pid:1) Shadow pid 5 for job 7.0 exited with status 107
11/20/26 10:04:59 (pid:1) Started shadow for job 7.0 on slot1@wn2.example <10.0.0.3:9618> for aliu, (shadow pid = 6)
11/20/26 10:06:00 (pid:1) Shadow pid 6 for job 7.0 exited with status 104
11/20/26 10:06:59 (pid:1) Started shadow for job 7.0 on slot1@wn2.example <10.0.0.3:9618> for aliu, (shadow pid = 7)
11/20/26 10:09:01 (pid:1) Shadow pid 7 for job 7.0 reports job exit reason 100.
";
    let shadow = "\
11/20/26 10:00:10 (7.0) (5): Request to run on slot1@wn1.example <10.0.0.2:9618> was ACCEPTED
11/20/26 10:01:00 (7.0) (5): Job 7.0 is being evicted from slot1@wn1.example
11/20/26 10:05:00 (7.0) (6): Request to run on slot1@wn2.example <10.0.0.3:9618> was ACCEPTED
11/20/26 10:07:00 (7.0) (7): Request to run on slot1@wn2.example <10.0.0.3:9618> was ACCEPTED
11/20/26 10:09:00 (7.0) (7): Job 7.0 terminated: exited with status 0
";
    let registry = Registry::shipped();
    let logs: Vec<Read> = [("EventLog", event_log), ("SchedLog", schedd), ("ShadowLog", shadow)]
        .iter()
        .map(|(name, text)| collection::read_bytes(&registry, name, text.as_bytes()).unwrap())
        .collect();
    let truth = accounts(event_log, "2026");
    assert_eq!(truth["7.0"].starts, 3);
    check(&collection::join(&logs[..1]), &truth, "event log alone");
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let calls = collection::join(order.map(|at| &logs[at]));
        assert_eq!(calls.len(), 1, "{order:?}");
        let call = &calls[0];
        let account = &truth["7.0"];
        assert_eq!(
            (call.submitted, call.started, call.ended, call.outcome),
            (account.submitted, account.started, account.ended, account.outcome),
            "{order:?}: {call:#?}"
        );
        assert_eq!(call.hosts, ["wn2.example"], "{order:?}");
        assert_eq!(call.user, "aliu");
    }
}
