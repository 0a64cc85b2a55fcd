//! What was taken of a subscription, as a value.
//!
//! Pure. Not here: processes (`wire::api`), events, calls and metrics (`shape`) as values.

use super::shape;
use crate::channel::hub::Answer;
use crate::representative::cursor::Cursor;
use compact_str::CompactString;
use rpc::value::{Name, Value};
use std::time::Duration;
use wire::api::processes as api;
use wire::channel::stream::{Body, Entry, Reading, Record};
use wire::time::Time;

/// The number in the journal of the first event that was not handed out, or that may have been handed out in part, where `waiting`
/// are left of all before `looked_at`; none where the entries do not tell.
pub(super) fn place_after(entries: &[Entry], waiting: usize, looked_at: u64) -> Option<u64> {
    if waiting == 0 {
        return Some(looked_at);
    }
    entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Event(event) => Some(event.number + 1),
        // Of one event there may be two, of which the second waits.
        Body::Call(call) => Some(call.number),
        Body::Sample { .. }
        | Body::Readings { .. }
        | Body::Figures(_)
        | Body::Signal { .. }
        | Body::Missed(_)
        | Body::Quarantined(_) => None,
    })
}

/// The answer of `sensor.take`; `place` is where to go on in the journal, where that is known.
pub(super) fn answer(answer: &Answer, booted: Time, place: Option<Cursor>) -> Value {
    let missed = |entry: &Entry| if let Body::Missed(count) = entry.body { count } else { 0 };
    let next = answer.entries.last().map_or(answer.standing.next, |last| last.number + missed(last).max(1));
    let mut members: Vec<(Name, Value)> = vec![
        ("entries".into(), Value::array(answer.entries.iter().map(|told| entry(told, booted)))),
        ("next".into(), Value::UInt(next)),
        ("missed".into(), Value::UInt(answer.entries.iter().map(missed).sum())),
        ("waiting".into(), Value::UInt(answer.standing.waiting.0 as u64)),
        ("revision".into(), Value::UInt(answer.standing.revision)),
    ];
    members.extend(place.map(|place| ("cursor".into(), Value::Text(place.to_string()))));
    members.extend(answer.standing.is_true.map(|is_true| ("condition".into(), Value::Bool(is_true))));
    let reason = answer.standing.quarantined.clone();
    members.extend(reason.map(|reason| ("quarantined".into(), Value::Text(reason))));
    Value::Struct(members)
}

/// The same, as daemons hand it on.
pub(super) fn packed(answer: &Answer, booted: Time) -> Value {
    let bytes = postcard::to_stdvec(&answer.entries).expect("a value of plain types is written into memory");
    let mut members: Vec<(Name, Value)> =
        vec![("packed".into(), Value::Bytes(bytes)), ("booted".into(), Value::Double(booted.secs_f64()))];
    let reason = answer.standing.quarantined.clone();
    members.extend(reason.map(|reason| ("quarantined".into(), Value::Text(reason))));
    Value::Struct(members)
}

/// One entry.
pub(crate) fn entry(entry: &Entry, booted: Time) -> Value {
    let mut members: Vec<(Name, Value)> =
        vec![("number".into(), Value::UInt(entry.number)), ("revision".into(), Value::UInt(entry.revision))];
    // What had to make room has no one time.
    if entry.at_ns > 0 {
        members.push(("time".into(), shape::time(booted.plus(Duration::from_nanos(entry.at_ns)))));
    }
    match &entry.body {
        Body::Sample { sweep, gone, records, left_out, figures } => {
            members.push(("what".into(), Value::from("sample")));
            if let Some(gone) = gone {
                members
                    .push(("gone".into(), Value::array(gone.iter().map(|pid| Value::UInt((*pid).into())))));
            }
            members.push(("sweep".into(), Value::UInt(*sweep)));
            members.push(("processes".into(), Value::array(records.iter().map(|one| process(one, booted)))));
            members.push(("left_out".into(), Value::UInt((*left_out).into())));
            members.push(("figures".into(), of_script(figures)));
        }
        Body::Readings { sweep, readings, left_out, figures } => {
            members.push(("what".into(), Value::from("sample")));
            members.push(("sweep".into(), Value::UInt(*sweep)));
            members.push(("metrics".into(), Value::array(readings.iter().map(metric))));
            members.push(("left_out".into(), Value::UInt((*left_out).into())));
            members.push(("figures".into(), of_script(figures)));
        }
        Body::Figures(figures) => {
            members.push(("what".into(), Value::from("sample")));
            members.push(("figures".into(), of_script(figures)));
        }
        Body::Event(told) => {
            members.push(("what".into(), Value::from("event")));
            members.push(("event".into(), shape::event(&told.event)));
            for (name, text) in [("name", &told.name), ("user", &told.user)] {
                if !text.is_empty() {
                    members.push((name.into(), Value::from(text.as_str())));
                }
            }
        }
        Body::Call(told) => {
            members.push(("what".into(), Value::from("call")));
            members.push(("call".into(), shape::call(&told.call)));
        }
        Body::Signal { is_true, value } => {
            members.push(("what".into(), Value::from("signal")));
            members.push(("is_true".into(), Value::Bool(*is_true)));
            // Of nothing there is no measure.
            members.extend(value.is_finite().then(|| ("value".into(), Value::Double(*value))));
        }
        Body::Missed(count) => {
            members.push(("what".into(), Value::from("missed")));
            members.push(("count".into(), Value::UInt(*count)));
        }
        Body::Quarantined(reason) => {
            members.push(("what".into(), Value::from("quarantined")));
            members.push(("reason".into(), Value::Text(reason.clone())));
        }
    }
    Value::Struct(members)
}

fn of_script(figures: &[(CompactString, f64)]) -> Value {
    Value::object(figures.iter().map(|(name, value)| (name.to_string(), Value::Double(*value))))
}

fn metric(reading: &Reading) -> Value {
    let mut members = shape::metric(&reading.metric);
    members.push(("value".into(), shape::number(reading.value)));
    Value::Struct(members)
}

/// A process of a sweep.
fn process(record: &Record, booted: Time) -> Value {
    let process = api::Process { cpu: record.cpu, ..api::Process::of(&record.process, booted) };
    rpc::codec::value(&process, &[]).unwrap_or_default()
}
