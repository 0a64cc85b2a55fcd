//! NetSolve agent: every generated call is one call of the filter, with its servers and its end.
//!
//! Random: clients, problems, servers and their loads, overlapping calls, empty lists, a server that never
//! answers, an agent that starts a new log, unrelated records in between.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::Read;
use crate::netsolve_generator::{Draw, Expected, File, Form, Generator, LogEvent};
use log_filters::found::Found;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::{Outcome, Value};

fn says(found: &Found, keys: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let content = &found.content;
    let value = |key: &str| match key {
        "user" => content.user.to_string(),
        "outcome" => content.outcome.map(Outcome::as_str).unwrap_or_default().to_owned(),
        attribute => match content.attribute(attribute) {
            Some(Value::Text(text)) => text.to_string(),
            Some(Value::List(list)) => list.join(" "),
            Some(Value::Bytes(_)) | None => String::new(),
        },
    };
    keys.keys().map(|key| (key.clone(), value(key))).collect()
}

fn check_events(seed: u64, file: &File, log: &Read) {
    assert_eq!(log.filter, "netsolve-agent");
    for (number, expected) in file.events.iter().enumerate() {
        let Some(found) = log.found.get(number) else { panic!("seed {seed}: missing {expected:?}") };
        let has = LogEvent {
            kind: found.content.kind,
            line: log.line(found),
            time: found.content.time,
            says: says(found, &expected.says),
        };
        assert_eq!(&has, expected, "seed {seed}, event {number}");
    }
    assert_eq!(log.found.len(), file.events.len(), "seed {seed}: events found, and events there are");
}

fn check_call(seed: u64, call: &Call, expected: &Expected) {
    let selected = expected.offers.first();
    let outcome = expected.code.map(|code| if code == 0 { Outcome::Ok } else { Outcome::Failed });
    let hosts: Vec<&str> = call.hosts.iter().map(|host| host.split('.').next().unwrap()).collect();
    let host: Vec<&str> = selected.map(|host| host.split('.').next().unwrap()).into_iter().collect();
    let is_right = call.name == expected.name
        && call.user == expected.user
        && call.from == expected.client
        && call.submitted == expected.submitted
        && call.offered.is_some() == expected.is_offered
        && call.offers == expected.offers
        && call.selected.is_some() == selected.is_some()
        && hosts == host
        && call.ended == expected.ended
        && (call.state == State::Ended) == expected.ended.is_some()
        && call.outcome == outcome
        && call.code == expected.code.map(|code| code.to_string()).unwrap_or_default();
    assert!(is_right, "seed {seed}\n{expected:#?}\n{call:#?}");
}

fn check(draw: Draw) {
    let seed = draw.seed;
    let registry = collection::registry();
    let (files, expected) = Generator::new(draw).run();
    let logs: Vec<Read> = files
        .iter()
        .map(|file| {
            collection::read_bytes(registry, "nsagent.log", file.text.as_bytes()).expect("a filter claims it")
        })
        .collect();
    for (file, log) in files.iter().zip(&logs) {
        check_events(seed, file, log);
    }
    let calls = collection::join(&logs);
    assert_eq!(calls.len(), expected.len(), "seed {seed}: calls");
    for (call, expected) in calls.iter().zip(&expected) {
        check_call(seed, call, expected);
    }
}

#[test]
fn every_call_of_many_seeds_is_reported() {
    for seed in 0..20 {
        let form = if seed % 2 == 0 { Form::OneLine } else { Form::Wrapped };
        check(Draw { seed, form, zone_hours: i64::try_from(seed % 25).unwrap() - 12, ..Draw::default() });
    }
}

#[test]
fn two_hundred_calls_a_second_are_reported() {
    for form in [Form::OneLine, Form::Wrapped] {
        check(Draw { seed: 77, calls: 1_200, calls_a_second: 200, servers: 12, form, ..Draw::default() });
    }
}

#[test]
fn a_log_that_is_started_again_keeps_its_calls() {
    for seed in 100..110 {
        let form = if seed % 2 == 0 { Form::OneLine } else { Form::Wrapped };
        check(Draw { seed, form, restarts: true, ..Draw::default() });
    }
}

#[test]
fn a_last_line_without_its_end_is_read() {
    for seed in 200..206 {
        let form = if seed % 2 == 0 { Form::OneLine } else { Form::Wrapped };
        check(Draw { seed, form, ends_without_lf: true, ..Draw::default() });
    }
}

#[test]
fn lists_that_are_all_empty_end_no_call() {
    check(Draw { seed: 300, empty_percent: 100, ..Draw::default() });
}

#[test]
fn one_server_and_one_problem_are_reported_in_order() {
    check(Draw {
        seed: 400,
        servers: 1,
        problems: 1,
        has_dead_server: false,
        farming_percent: 100,
        ..Draw::default()
    });
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let text = |seed| Generator::new(Draw { seed, ..Draw::default() }).run().0.remove(0).text;
    assert_eq!(text(5), text(5));
    assert_ne!(text(5), text(6));
}
