//! Globus GRAM: every job in the logs of the job managers and of the scheduler event generator, compared with
//! the calls of the filters.
//!
//! The logs are parsed here independently of the filters. A job is joined by its contact path in the job
//! manager's log, and by the local resource manager's number in all three.
#![allow(clippy::unwrap_used)]

use crate::collection;

use log_filters::registry::Registry;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;

const PRODUCT: &str = "globus-gram/15.8-alpha";
const USERS: [&str; 3] = ["gram_aliu.log", "gram_bkumar.log", "gram_mrossi.log"];
const SEG: &str = "globus-seg-fork.20261120";
const GATEKEEPER: &str = "globus-gatekeeper.log";

fn text(file: &str) -> String {
    std::fs::read_to_string(collection::folder().join(PRODUCT).join(file)).unwrap()
}

fn read(files: &[&str]) -> Vec<collection::Read> {
    let registry = Registry::shipped();
    let read = |file: &&str| {
        collection::read(&registry, &collection::folder().join(PRODUCT).join(file)).expect(file)
    };
    files.iter().map(read).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    user: String,
    submitted: Option<i64>,
    started: Option<i64>,
    ended: Option<i64>,
    outcome: Option<Outcome>,
    code: String,
}

fn word<'a>(line: &'a str, key: &str) -> &'a str {
    let found = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_default().trim_matches('"')
}

/// Accounts by contact path, from the job managers' logs, and the local number of each.
fn accounts() -> (BTreeMap<String, Account>, BTreeMap<String, String>) {
    let (mut accounts, mut numbers) = (BTreeMap::<String, Account>::new(), BTreeMap::new());
    for file in USERS {
        for line in text(file).lines() {
            let job = word(line, "gramid").to_owned();
            let time = || Some(collection::moment(word(line, "ts").trim_end_matches('Z')).micros());
            let account = accounts.entry(job.clone()).or_default();
            match word(line, "event") {
                "gram.job.start" => {
                    account.submitted = time();
                    account.user = file["gram_".len()..file.len() - ".log".len()].to_owned();
                }
                "gram.job.info" if line.contains("job submitted to lrm") => {
                    account.started = time();
                    numbers.insert(word(line, "lrm_id").to_owned(), job);
                }
                "gram.job.end" => {
                    account.ended = time();
                    account.code = word(line, "exit_code").to_owned();
                    account.outcome = Some(match (word(line, "exit_code"), word(line, "status")) {
                        ("0", _) => Outcome::Ok,
                        ("", "-8") => Outcome::Cancelled,
                        _ => Outcome::Failed,
                    });
                }
                _ => {}
            }
        }
    }
    accounts.retain(|_, account| account.submitted.is_some());
    (accounts, numbers)
}

fn account_of(call: &Call) -> Account {
    let micros = |time: Option<wire::time::Time>| time.map(wire::time::Time::micros);
    Account {
        user: call.user.to_string(),
        submitted: micros(call.submitted),
        started: micros(call.started),
        ended: micros(call.ended),
        outcome: call.outcome,
        code: call.code.to_string(),
    }
}

fn check(files: &[&str]) {
    let (expected, _) = accounts();
    assert_eq!(expected.len(), 31);
    let calls = collection::join(&read(files));
    let found: BTreeMap<String, Account> =
        calls.iter().map(|call| (call.job.to_string(), account_of(call))).collect();
    assert_eq!(found.len(), calls.len(), "two calls of one job in {files:?}");
    assert_eq!(found, expected, "{files:?}");
}

#[test]
fn every_job_of_the_job_managers_is_one_call() {
    check(&USERS);
}

#[test]
fn all_logs_give_the_same_calls_in_any_order() {
    check(&[USERS[0], USERS[1], USERS[2], SEG, GATEKEEPER]);
    check(&[GATEKEEPER, SEG, USERS[2], USERS[1], USERS[0]]);
    check(&[SEG, USERS[1], GATEKEEPER, USERS[0], USERS[2]]);
}

#[test]
fn the_event_generator_alone_reports_every_job_it_saw() {
    let mut expected: BTreeMap<String, (Option<i64>, Option<i64>, bool)> = BTreeMap::new();
    for line in text(SEG).lines() {
        let parts: Vec<&str> = line.split(';').collect();
        let at: i64 = parts[1].parse().unwrap();
        let job = expected.entry(parts[2].to_owned()).or_default();
        match parts[3] {
            "2" => job.0 = Some(at),
            _ => (job.1, job.2) = (Some(at), parts[3] == "8" && parts[4] == "0"),
        }
    }
    assert_eq!(expected.len(), 27);
    let calls = collection::join(&read(&[SEG]));
    assert_eq!(calls.len(), expected.len());
    for call in &calls {
        let number = call.id.strip_prefix("globus-gram:").unwrap();
        let secs = |time: Option<wire::time::Time>| time.map(|time| time.micros() / 1_000_000);
        let found = (secs(call.started), secs(call.ended), call.outcome == Some(Outcome::Ok));
        assert_eq!(Some(&found), expected.get(number), "{number}");
    }
}

#[test]
fn the_gatekeeper_alone_reports_every_job_it_handed_on() {
    let handed = text(GATEKEEPER).lines().filter(|line| line.contains(" has GRAM_SCRIPT_JOB_ID ")).count();
    assert_eq!(handed, 27);
    let calls = collection::join(&read(&[GATEKEEPER]));
    assert_eq!(calls.len(), handed);
    for call in &calls {
        assert_eq!(call.state, State::Running, "{call:?}");
        assert!(call.submitted.is_some() && !call.user.is_empty() && !call.from.is_empty(), "{call:?}");
    }
}

#[test]
fn every_line_is_known() {
    for log in read(&[USERS[0], USERS[1], USERS[2], SEG, GATEKEEPER]) {
        assert_eq!(log.unknown, Vec::<String>::new(), "{}", log.filter);
    }
}
