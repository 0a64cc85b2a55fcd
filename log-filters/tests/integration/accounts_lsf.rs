//! LSF: every job of the accounting file is one call, with the right times, hosts and end.
//!
//! The accounting is parsed here by an independent parser; LSF numbers the fields of a record as below.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::accounting::lsf_fields::fields;
use crate::collection;
use log_filters::registry::Registry;
use std::fs;
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::time::Time;

struct Job {
    id: String,
    user: String,
    name: String,
    submitted: i64,
    started: i64,
    ended: i64,
    hosts: Vec<String>,
    is_done: bool,
}

fn job(line: &str) -> Option<Job> {
    let fields = fields(line);
    if fields[0] != "JOB_FINISH" {
        return None;
    }
    let number = |at: usize| fields[at].parse::<i64>().unwrap();
    let asked = usize::try_from(number(22)).unwrap();
    let ran = usize::try_from(number(23 + asked)).unwrap();
    let mut hosts = fields[24 + asked..24 + asked + ran].to_vec();
    hosts.dedup();
    let after = 24 + asked + ran;
    let index = &fields[after + 29];
    Some(Job {
        id: if index == "0" { format!("lsf:{}", fields[3]) } else { format!("lsf:{}[{index}]", fields[3]) },
        user: fields[11].clone(),
        name: fields[after + 2].clone(),
        submitted: number(7),
        started: number(10),
        ended: number(2),
        hosts,
        is_done: number(after) == 64,
    })
}

fn check(job: &Job, call: &Call) {
    let at = |secs: i64| Some(Time::from_micros(secs * 1_000_000));
    let is_right = call.id == job.id
        && call.user == job.user
        && call.name == job.name
        && call.state == State::Ended
        && call.submitted == at(job.submitted)
        && call.started == at(job.started).filter(|_| job.started != 0)
        && call.ended == at(job.ended)
        && call.hosts == job.hosts
        && (call.outcome == Some(Outcome::Ok)) == job.is_done
        && call.outcome.is_some();
    assert!(is_right, "{}: {call:#?}", job.id);
}

fn check_all(text: &str, jobs_expected: usize) {
    let log = collection::read_bytes(collection::registry(), "lsb.acct", text.as_bytes())
        .expect("a filter claims it");
    assert_eq!(log.filter, "lsf-acct");
    assert_eq!(log.unknown, Vec::<String>::new());
    let jobs: Vec<Job> = text.lines().filter_map(job).collect();
    assert_eq!(jobs.len(), jobs_expected);
    let calls = collection::join([&log]);
    assert_eq!(calls.len(), jobs.len());
    for (job, call) in jobs.iter().zip(&calls) {
        check(job, call);
    }
}

#[test]
fn every_accounted_job_is_one_call() {
    let path = collection::folder().join("lsf/from-apel-tests/lsb.acct");
    check_all(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())), 3);
}

#[test]
fn elements_of_an_array_and_jobs_that_never_started_are_calls_of_their_own() {
    let usage = "-1 ".repeat(19);
    let mut text = String::new();
    for (index, (state, started, hosts)) in
        [(64, 1_302_184_004, r#"2 "h1" "h2""#), (32, 1_302_184_005, r#"1 "h3""#), (32, 0, "0")]
            .iter()
            .enumerate()
    {
        text += &format!(
            "\"JOB_FINISH\" \"10.1\" {} 77 10001 33816691 2 1302184001 0 0 {started} \"zoë\" \"normal\" \"\" \"\" \"\" \
             \"sub01\" \"w\" \"\" \"\" \"\" \"j\" 1 \"asked\" {hosts} {state} 60.0 \"a \"\"b\"\" [1-3]\" \"sleep 1\" \
             {usage}\"\" \"default\" 0 2 \"\" \"\" {} 2 25 \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" -1\n",
            1_302_184_020 + index,
            index + 1,
        );
    }
    check_all(&text, 3);
}

/// A job, and an element of an array, in the event file and in the accounting file.
#[test]
fn the_event_file_and_accounting_are_one_call_in_either_order() {
    let events = r#"# 0
"JOB_NEW" "10.1" 1771086492 102 1000 33554434 2 1771086492 0 0 0 0 -1 "ada" -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" 100.00 18 "normal" "" "login1" "run" "" "" "" "" "/home/ada" "1771086492.102" 0 "" "" "lake" "sleep 100" 0 "" "default" 2 "" "" 0 0 "" "" "" 0
"JOB_NEW" "10.1" 1771086492 103 1000 33554434 1 1771086492 0 0 0 0 -1 "ada" -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" 100.00 18 "normal" "" "login1" "run" "" "" "" "" "/home/ada" "1771086492.103" 0 "" "" "sweep[1-2]" "sleep 100" 0 "" "default" 2 "" "" 0 0 "" "" "" 0
"JOB_START" "10.1" 1771086493 102 4 0 0 100.0 2 "wn01" "wn02" "" "" 0 "" 0 "" 0 0
"JOB_START" "10.1" 1771086494 103 4 0 0 100.0 1 "wn03" "" "" 0 "" 1 "" 0 0
"JOB_STATUS" "10.1" 1771086593 102 64 0 0 0.2000 1771086593 0 0 0 0 0 0
"JOB_STATUS" "10.1" 1771086594 103 32 0 0 0.2000 1771086594 0 256 1 0 0 0
"#;
    let usage = "0.1 0.1 3000 0 -1 0 0 200 0 0 0 0 -1 0 0 0 10 5 -1";
    let rest = r#""" "" "" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 0"#;
    let accounting = format!(
        r#""JOB_FINISH" "10.1" 1771086593 102 1000 33554434 2 1771086492 0 0 1771086493 "ada" "normal" "" "" "" "login1" "run" "" "" "" "1771086492.102" 0 2 "wn01" "wn02" 64 100.0 "lake" "sleep 100" {usage} "" "default" 0 2 "" "" 0 0 0 "" {rest}
"JOB_FINISH" "10.1" 1771086594 103 1000 33554434 1 1771086492 0 0 1771086494 "ada" "normal" "" "" "" "login1" "run" "" "" "" "1771086492.103" 0 1 "wn03" 32 100.0 "sweep[1-2]" "sleep 100" {usage} "" "default" 256 1 "" "" 1 0 0 "" {rest}
"#
    );
    let read = |name: &str, text: &str| {
        collection::read_bytes(&Registry::shipped(), name, text.as_bytes())
            .unwrap_or_else(|| panic!("{name}"))
    };
    let (events, accounting) = (read("lsb.events", events), read("lsb.acct", &accounting));
    assert_eq!((events.filter.as_str(), events.unknown.len()), ("lsf-events", 0));
    type Row = (String, String, String, State, Option<Outcome>, String, Option<i64>, Option<i64>, String);
    let rows = |logs: &[&collection::Read]| -> Vec<Row> {
        let secs = |time: Option<Time>| time.map(|time| time.micros() / 1_000_000);
        let mut rows: Vec<_> = collection::join(logs.iter().copied())
            .iter()
            .map(|call| {
                let hosts: Vec<&str> = call.hosts.iter().map(|host| host.as_str()).collect();
                (
                    call.id.to_string(),
                    call.name.to_string(),
                    call.user.to_string(),
                    call.state,
                    call.outcome,
                    call.code.to_string(),
                    secs(call.started),
                    secs(call.ended),
                    hosts.join(","),
                )
            })
            .collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    };
    let alone = rows(&[&events]);
    let expected = [
        "lsf:102 lake Ok 0 wn01,wn02",
        "lsf:103 sweep[1-2] Failed  wn03",
        "lsf:103[1] sweep[1-2] Failed 1 wn03",
    ];
    for (call, expected) in alone.iter().zip(expected) {
        let (id, name, user, state, outcome, code, _, _, hosts) = call;
        assert_eq!(format!("{id} {name} {:?} {code} {hosts}", outcome.unwrap()), expected, "{call:?}");
        assert_eq!((user.as_str(), *state), ("ada", State::Ended), "{call:?}");
    }
    assert_eq!(alone.len(), 3, "{alone:#?}");
    assert_eq!(rows(&[&events, &accounting]), alone);
    assert_eq!(rows(&[&accounting, &events]), alone);
}
