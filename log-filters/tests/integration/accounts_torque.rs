//! Torque: every job of its accounting, compared with the calls of the filters.
//!
//! The accounting file is parsed here independently of the filters, and every job must be one call with the
//! same times, hosts and outcome: from that file alone, and from all files of the site in any order.
#![allow(clippy::unwrap_used)]

use crate::collection;

use log_filters::registry::Registry;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::time::Time;

const PRODUCT: &str = "torque/2.4.16-delta";
const ACCOUNTING: &str = "accounting.20261120";
const FILES: [&str; 6] = [
    ACCOUNTING,
    "server_log.20261120",
    "mom_log.n01.20261120",
    "mom_log.n02.20261120",
    "mom_log.n03.20261120",
    "sched_log.20261120",
];

/// Read the logs of these files, in this order.
fn read(files: &[&str]) -> Vec<collection::Read> {
    let registry = Registry::shipped();
    let read = |file: &&str| {
        collection::read(&registry, &collection::folder().join(PRODUCT).join(file)).expect(file)
    };
    files.iter().map(read).collect()
}

fn text(file: &str) -> String {
    std::fs::read_to_string(collection::folder().join(PRODUCT).join(file)).unwrap()
}

fn secs(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.micros().div_euclid(1_000_000))
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    user: String,
    name: String,
    submitted: Option<i64>,
    started: Option<i64>,
    ended: Option<i64>,
    hosts: Vec<String>,
    outcome: Option<Outcome>,
    code: String,
    starts: u32,
}

/// The last record of each job.
fn accounts(text: &str) -> BTreeMap<String, Account> {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    let mut deleted = Vec::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.splitn(4, ';').collect();
        let (kind, job, words) = (parts[1], parts[2], parts[3]);
        let value = |key: &str| -> String {
            let found = words.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        let account = accounts.entry(job.to_owned()).or_default();
        match kind {
            "D" => deleted.push(job.to_owned()),
            "S" => account.starts += 1,
            "E" => {
                account.user = value("user");
                account.name = value("jobname");
                account.submitted = value("ctime").parse().ok();
                account.started = value("start").parse().ok();
                account.ended = value("end").parse().ok();
                account.code = value("Exit_status");
                account.hosts =
                    value("exec_host").split('+').map(|s| s.split('/').next().unwrap().into()).collect();
                account.hosts.sort();
                account.hosts.dedup();
                account.outcome = Some(match account.code.as_str() {
                    _ if deleted.iter().any(|gone| gone == job) => Outcome::Cancelled,
                    "0" => Outcome::Ok,
                    _ => Outcome::Failed,
                });
            }
            _ => {}
        }
    }
    accounts
}

fn account_of(call: &Call) -> Account {
    let mut hosts: Vec<String> = call.hosts.iter().map(ToString::to_string).collect();
    hosts.sort();
    Account {
        user: call.user.to_string(),
        name: call.name.to_string(),
        submitted: secs(call.submitted),
        started: secs(call.started),
        ended: secs(call.ended),
        hosts,
        outcome: call.outcome,
        code: call.code.to_string(),
        starts: call.tries,
    }
}

fn by_job(calls: &[Call]) -> BTreeMap<String, Account> {
    let by_job: BTreeMap<String, Account> =
        calls.iter().map(|call| (call.job.to_string(), account_of(call))).collect();
    assert_eq!(by_job.len(), calls.len(), "two calls of one job");
    by_job
}

fn check(files: &[&str]) {
    let expected = accounts(&text(ACCOUNTING));
    assert_eq!(expected.len(), 107);
    let found = by_job(&collection::join(&read(files)));
    for (job, account) in &expected {
        assert_eq!(found.get(job), Some(account), "job {job} from {files:?}");
    }
    assert_eq!(found.len(), expected.len(), "calls of no job in {files:?}");
}

#[test]
fn every_job_of_the_accounting_is_one_call() {
    check(&[ACCOUNTING]);
}

#[test]
fn all_files_give_the_same_calls_in_any_order() {
    check(&FILES);
    let mut backwards = FILES;
    backwards.reverse();
    check(&backwards);
    check(&[FILES[3], FILES[0], FILES[5], FILES[1], FILES[4], FILES[2]]);
}

#[test]
fn the_server_log_alone_reports_nearly_all() {
    let expected = accounts(&text(ACCOUNTING));
    let found = by_job(&collection::join(&read(&[FILES[1]])));
    assert_eq!(found.len(), expected.len());
    for (job, account) in &expected {
        let call = &found[job];
        let near = |one: Option<i64>, other: Option<i64>| (one.unwrap() - other.unwrap()).abs() <= 1;
        assert!(near(call.submitted, account.submitted), "{job}: submitted {call:?}, {account:?}");
        assert!(near(call.started, account.started), "{job}: started {call:?}, {account:?}");
        assert!(near(call.ended, account.ended), "{job}: ended {call:?}, {account:?}");
        assert_eq!(
            (call.outcome, &call.code, call.starts),
            (account.outcome, &account.code, account.starts),
            "{job}"
        );
    }
}

#[test]
fn every_line_is_known() {
    for log in read(&FILES) {
        assert_eq!(log.unknown, Vec::<String>::new(), "{}", log.filter);
    }
}

#[test]
fn the_nodes_report_every_start_once() {
    for (file, started) in [(FILES[2], 58), (FILES[3], 33), (FILES[4], 16)] {
        let starts = text(file).lines().filter(|line| line.contains(" started, pid = ")).count();
        assert_eq!(starts, started, "{file}");
        let log = read(&[file]).remove(0);
        let count = |kind: &str| log.found.iter().filter(|found| found.content.kind.as_str() == kind).count();
        assert_eq!((count("job_start"), count("job_end")), (starts, starts), "{file}");
    }
}

#[test]
fn jobs_that_wait_are_requeued_or_run_out_of_time() {
    let text = "\
11/20/2026 10:00:00;Q;1.head;queue=batch
11/20/2026 10:00:05;D;1.head;requestor=root@head
11/20/2026 10:00:00;Q;2.head;queue=batch
11/20/2026 10:00:01;S;2.head;user=u jobname=a ctime=1795168800 start=1795168801 owner=u@ui exec_host=n1/0
11/20/2026 10:00:09;R;2.head;
11/20/2026 10:00:20;S;2.head;user=u jobname=a ctime=1795168800 start=1795168820 owner=u@ui exec_host=n2/0
11/20/2026 10:01:21;E;2.head;user=u jobname=a ctime=1795168800 start=1795168820 owner=u@ui exec_host=n2/0 Resource_List.walltime=00:01:00 end=1795168881 Exit_status=271 resources_used.walltime=00:01:01
11/20/2026 10:02:00;S;3.head;user=u jobname=b ctime=1795168800 start=1795168920 owner=u@ui exec_host=n2/0
11/20/2026 10:02:10;A;3.head;
";
    let log = collection::read_bytes(&Registry::shipped(), ACCOUNTING, text.as_bytes()).unwrap();
    let calls = collection::join([&log]);
    let states: Vec<_> =
        calls.iter().map(|call| (call.job.as_str(), call.state, call.outcome, call.tries)).collect();
    assert_eq!(
        states,
        [
            ("1.head", State::Ended, Some(Outcome::Cancelled), 0),
            ("2.head", State::Ended, Some(Outcome::Timeout), 2),
            ("3.head", State::Ended, Some(Outcome::Failed), 1),
        ]
    );
    assert_eq!(calls[1].hosts, ["n2"]);
    assert_eq!(secs(calls[1].started), Some(1_795_168_820));
}
