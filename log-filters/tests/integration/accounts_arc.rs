//! NorduGrid ARC: every job of its job log, compared with the calls of the filters.
//!
//! The job log is parsed here independently of the filters; every job must be one call that agrees with it,
//! from that file alone and together with A-REX's own log in both orders.
#![allow(clippy::unwrap_used)]

use crate::collection;

use log_filters::registry::Registry;
use std::collections::BTreeMap;
use wire::call::Call;
use wire::event::Outcome;

const PRODUCT: &str = "nordugrid-arc/6.17-alpha";
const JOBS: &str = "arex-jobs.log";
const AREX: &str = "arex.log";
const OTHERS: [&str; 2] = ["ws-interface.log", "infoprovider.log"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    name: String,
    /// Subject of the certificate, if the log has it.
    user: String,
    submitted: Option<i64>,
    ended: Option<i64>,
    outcome: Option<Outcome>,
    code: String,
}

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

fn secs(stamp: &str) -> i64 {
    collection::moment(&stamp[..19].replace(' ', "T")).micros() / 1_000_000
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> &'a str {
    let rest = line.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or("", |(inside, _)| inside)
}

fn accounts() -> BTreeMap<String, Account> {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for line in text(JOBS).lines() {
        let account = accounts.entry(between(line, "job id: ", ",").to_owned()).or_default();
        account.name = between(line, "name: \"", "\"").to_owned();
        account.user = between(line, "owner: \"", "\"").to_owned();
        let at = Some(secs(line));
        if line.contains(" Started - ") {
            account.submitted = at;
            continue;
        }
        account.ended = at;
        let failure = between(line, "failure: \"", "\"");
        account.code = between(failure, "LRMS error: (", ")").to_owned();
        account.outcome = Some(match failure {
            "" => Outcome::Ok,
            text if text.contains("canceled") => Outcome::Cancelled,
            _ => Outcome::Failed,
        });
    }
    accounts
}

fn by_job(calls: &[Call]) -> BTreeMap<String, Account> {
    let account_of = |call: &Call| Account {
        name: call.name.to_string(),
        user: call.user.to_string(),
        submitted: call.submitted.map(|time| time.micros() / 1_000_000),
        ended: call.ended.map(|time| time.micros() / 1_000_000),
        outcome: call.outcome,
        code: call.code.to_string(),
    };
    let by_job: BTreeMap<String, Account> =
        calls.iter().map(|call| (call.job.to_string(), account_of(call))).collect();
    assert_eq!(by_job.len(), calls.len(), "two calls of one job");
    by_job
}

fn check(files: &[&str]) {
    let expected = accounts();
    assert_eq!(expected.len(), 30);
    let failed = expected.values().filter(|account| account.outcome != Some(Outcome::Ok)).count();
    assert_eq!(failed, 10, "jobs with a failure");
    assert!(expected.values().all(|account| account.user.starts_with("/DC=")), "{expected:?}");
    assert_eq!(by_job(&collection::join(&read(files))), expected, "{files:?}");
}

#[test]
fn every_job_of_the_job_log_is_one_call() {
    check(&[JOBS]);
}

#[test]
fn all_logs_give_the_same_calls_in_any_order() {
    check(&[JOBS, AREX, OTHERS[0], OTHERS[1]]);
    check(&[OTHERS[1], AREX, OTHERS[0], JOBS]);
}

#[test]
fn the_service_log_adds_when_jobs_began() {
    let began: BTreeMap<String, i64> = text(AREX)
        .lines()
        .filter(|line| line.contains(": State: INLRMS from "))
        .map(|line| (between(line, "/2] ", ":").to_owned(), secs(&line[1..])))
        .collect();
    assert_eq!(began.len(), 30);
    for call in collection::join(&read(&[JOBS, AREX])) {
        assert_eq!(call.started.map(|time| time.micros() / 1_000_000), began.get(call.job.as_str()).copied());
        assert_eq!(call.tries, 1);
    }
}

#[test]
fn the_service_log_alone_gives_all_but_how_they_ended() {
    let expected = accounts();
    let found = by_job(&collection::join(&read(&[AREX])));
    assert_eq!(found.len(), expected.len());
    for (job, account) in &expected {
        let near = |one: Option<i64>, other: Option<i64>| (one.unwrap() - other.unwrap()).abs() <= 1;
        assert!(near(found[job].submitted, account.submitted), "{job}");
        assert!(near(found[job].ended, account.ended), "{job}");
        assert_eq!(found[job].outcome, Some(Outcome::Finished), "{job}");
    }
}

#[test]
fn every_line_is_known_and_only_two_logs_report_events() {
    for (file, log) in
        [JOBS, AREX, OTHERS[0], OTHERS[1]].iter().zip(read(&[JOBS, AREX, OTHERS[0], OTHERS[1]]))
    {
        assert_eq!(log.unknown, Vec::<String>::new(), "{file}");
        assert_eq!(log.found.is_empty(), OTHERS.contains(file), "{file}");
    }
}
