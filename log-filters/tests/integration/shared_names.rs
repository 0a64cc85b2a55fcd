//! Calls of shared names in two logs: one has the requests and selections, the other the runs.
//!
//! Not here: the logs of products with such names (the tests of accounts).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter;

use log_filters::join::Joiner;
use wire::call::Call;
use wire::event::{Id, Outcome};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

const FILTER: &str = r#"
[filter]
name = "x"
[time]
prefix = ["%H:%M:%S "]
[calls]
names = ["${.name}"]
naming = "shared"
[[rule]]
match = '^(?P<what>\w+) (?P<name>\w+)(?: (?P<user>\w+))?$'
event = { value = "${what}", map = { ask = "job_submit", pick = "job_select", start = "job_start", end = "job_end", fail = "job_end" } }
user = "${user}"
outcome = { value = "${what}", map = { end = "ok", fail = "failed" } }
attributes = { name = "${name}" }
"#;

/// 2026-11-20T12:00:00Z, after all stamps.
const SEEN: Time = Time::from_micros(1_795_176_000_000_000);

/// Submission, start and end of each call, in seconds of the minute, and its outcome.
type Shape = (Option<i64>, Option<i64>, Option<i64>, Option<Outcome>);

fn shape(call: &Call) -> Shape {
    let secs = |time: Option<Time>| time.map(|time| time.micros() / 1_000_000 % 60);
    (secs(call.submitted), secs(call.started), secs(call.ended), call.outcome)
}

fn joined(logs: &[&str]) -> Vec<Shape> {
    let filter = one_filter::filter(FILTER);
    let mut joiner = Joiner::new(1_000);
    for (number, log) in (1..).zip(logs) {
        let mut engine = one_filter::engine(&filter);
        let (mut found, mut offset) = (Vec::new(), 0);
        for line in log.lines() {
            engine.line(line.as_bytes(), offset, SEEN, &mut found);
            offset += line.len() as u64 + 1;
        }
        assert_eq!(engine.counters().unknown, 0);
        for found in &found {
            let (offset, number) = (found.offset, Generation(number));
            joiner.join(found, Id { sensor: SensorKey(1), generation: number, offset, number: found.number });
        }
    }
    let mut shapes: Vec<Shape> = joiner.calls().map(|call| shape(&call)).collect();
    shapes.sort();
    shapes
}

fn check(asked: &str, done: &str, expected: &[Shape]) {
    assert_eq!(joined(&[asked, done]), expected, "{asked}{done}");
    assert_eq!(joined(&[done, asked]), expected, "{done}{asked}");
}

const ASKED: &str = "10:00:00 ask x\n10:00:01 pick x\n";

#[test]
fn a_request_in_one_log_and_its_run_in_another_are_one_call() {
    let expected = [(Some(0), Some(2), Some(3), Some(Outcome::Ok))];
    check(ASKED, "10:00:02 start x\n10:00:03 end x\n", &expected);
    let expected = [(Some(0), Some(2), Some(33), Some(Outcome::Ok))];
    check(ASKED, "10:00:02 start x\n10:00:33 end x\n", &expected);
}

#[test]
fn several_of_one_name_are_matched_in_order() {
    let asked = ASKED.to_owned() + "10:00:10 ask x\n10:00:11 pick x\n10:00:40 ask x\n";
    let done = "10:00:02 start x\n10:00:13 start x\n10:00:14 end x\n10:00:20 fail x\n";
    let expected = [
        (Some(0), Some(2), Some(14), Some(Outcome::Ok)),
        (Some(10), Some(13), Some(20), Some(Outcome::Failed)),
        (Some(40), None, None, None),
    ];
    check(&asked, done, &expected);
}

#[test]
fn a_run_before_the_request_is_another_call() {
    let done = "10:00:02 start x\n10:00:03 end x\n";
    let asked = "10:00:10 ask x\n10:00:11 pick x\n";
    let expected = [(None, Some(2), Some(3), Some(Outcome::Ok)), (Some(10), None, None, None)];
    check(asked, done, &expected);
}
