//! Embedded tests of filters: lines, and the events that they must give.
//!
//! Pure. Not here: their compilation (`filter`), tests of the engine.

use crate::engine::{Engine, Source};
use crate::filter::Filter;
use crate::filter::embedded_test::Test;
use crate::found::Found;
use std::fmt::Write as _;
use std::sync::Arc;
use toml::Value as Toml;
use wire::event::{Outcome, Value};
use wire::time::Time;

/// Failure of an embedded test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the test.
    pub test: String,
    /// Expected and found events, as text.
    pub message: String,
}

/// Run the tests of a filter.
#[must_use]
pub fn run(filter: &Arc<Filter>) -> Vec<Failure> {
    let fail = |test: &Test, message| Failure { test: test.name.clone(), message };
    filter
        .test_lines()
        .iter()
        .filter_map(|test| check(filter, test).err().map(|message| fail(test, message)))
        .collect()
}

fn check(filter: &Arc<Filter>, test: &Test) -> Result<(), String> {
    let source = Source {
        file_name: test.file.clone(),
        host: String::new(),
        cluster: String::new(),
        zone: test.zone.clone(),
    };
    let mut engine = Engine::new(Arc::clone(filter), &source);
    engine.keep_unknown();
    let seen = reading_time(test);
    let (mut found, mut starts, mut offset) = (Vec::new(), Vec::new(), 0u64);
    for line in test.lines.lines() {
        starts.push(offset);
        engine.line(line.as_bytes(), offset, seen, &mut found);
        offset += line.len() as u64 + 1;
    }
    engine.idle(seen, &mut found);
    let line_of = |offset: u64| starts.partition_point(|&start| start <= offset);
    let mut problems = String::new();
    for at in 0..found.len().max(test.events.len()) {
        match (found.get(at), test.events.get(at)) {
            (Some(found), Some(expected)) => {
                differences(found, line_of(found.offset), expected, &mut problems)
            }
            (Some(found), None) => {
                let _ = writeln!(problems, "not expected: {}", shown(found, line_of(found.offset)));
            }
            (None, Some(expected)) => {
                let _ = writeln!(problems, "missing: {expected}");
            }
            (None, None) => {}
        }
    }
    let unknown = engine.take_unknown();
    if unknown.len() as u64 != test.unknown {
        let _ = writeln!(problems, "{} lines that no rule takes, expected {}:", unknown.len(), test.unknown);
        for (offset, text) in unknown.iter().take(5) {
            let _ = writeln!(problems, "  line {}: {}", line_of(*offset), String::from_utf8_lossy(text));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Time of reading: a second after the last expected time, so that stamps without a year resolve to it.
fn reading_time(test: &Test) -> Time {
    let latest = test.events.iter().filter_map(|event| moment(event.get("time")?)).max();
    latest.unwrap_or(Time::from_micros(1_798_761_600_000_000)).plus(std::time::Duration::from_secs(1))
}

fn moment(value: &Toml) -> Option<Time> {
    let text = match value {
        Toml::String(text) => text.clone(),
        Toml::Datetime(date) => date.to_string(),
        Toml::Integer(_) | Toml::Float(_) | Toml::Boolean(_) | Toml::Array(_) | Toml::Table(_) => {
            return None;
        }
    };
    let stamp = text.parse::<jiff::Timestamp>().ok()?;
    Some(Time::from_micros(stamp.as_microsecond()))
}

fn show_time(time: Option<Time>) -> String {
    let stamp = time.and_then(|time| jiff::Timestamp::from_microsecond(time.micros()).ok());
    stamp.map_or("none".to_owned(), |stamp| stamp.to_string())
}

fn differences(found: &Found, line: usize, expected: &toml::Table, problems: &mut String) {
    let content = &found.content;
    for (key, want) in expected {
        let has: String = match key.as_str() {
            "kind" => content.kind.to_string(),
            "line" => line.to_string(),
            "job" => content.job.to_string(),
            "user" => content.user.to_string(),
            "from" => content.from.to_string(),
            "to" => content.to.to_string(),
            "outcome" => content.outcome.map_or("", Outcome::as_str).to_owned(),
            "call" => found.keys.as_ref().map(|keys| keys.names[0].to_string()).unwrap_or_default(),
            "time" | "submitted" | "started" | "ended" => {
                let has = match key.as_str() {
                    "time" => Some(content.time),
                    "submitted" => content.submitted,
                    "started" => content.started,
                    _ => content.ended,
                };
                if moment(want) != has || has.is_none() {
                    let _ = writeln!(
                        problems,
                        "{key} is {}, expected {want}: {}",
                        show_time(has),
                        shown(found, line)
                    );
                }
                continue;
            }
            "absent" => {
                absent(found, line, want, problems);
                continue;
            }
            attribute => content.attribute(attribute).map(show_value).unwrap_or_default(),
        };
        let want = show_toml(want);
        if has != want {
            let _ = writeln!(problems, "{key} is `{has}`, expected `{want}`: {}", shown(found, line));
        }
    }
}

fn absent(found: &Found, line: usize, names: &Toml, problems: &mut String) {
    for name in names.as_array().into_iter().flatten().filter_map(Toml::as_str) {
        let content = &found.content;
        let has = match name {
            "job" => !content.job.is_empty(),
            "user" => !content.user.is_empty(),
            "from" => !content.from.is_empty(),
            "to" => !content.to.is_empty(),
            "outcome" => content.outcome.is_some(),
            "submitted" => content.submitted.is_some(),
            "started" => content.started.is_some(),
            "ended" => content.ended.is_some(),
            "call" => found.keys.is_some(),
            attribute => content.attribute(attribute).is_some(),
        };
        if has {
            let _ = writeln!(problems, "{name} is there, expected to be absent: {}", shown(found, line));
        }
    }
}

fn show_toml(value: &Toml) -> String {
    match value {
        Toml::String(text) => text.clone(),
        Toml::Array(items) => items.iter().map(show_toml).collect::<Vec<_>>().join(","),
        Toml::Integer(_) | Toml::Float(_) | Toml::Boolean(_) | Toml::Datetime(_) | Toml::Table(_) => {
            value.to_string()
        }
    }
}

fn show_value(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::List(list) => list.join(","),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// An event as one line, for messages.
#[must_use]
pub fn shown(found: &Found, line: usize) -> String {
    let content = &found.content;
    let mut text = format!("line {line} {} {}", content.kind, show_time(Some(content.time)));
    for (name, value) in
        [("job", &content.job), ("user", &content.user), ("from", &content.from), ("to", &content.to)]
    {
        if !value.is_empty() {
            let _ = write!(text, " {name}={value}");
        }
    }
    if let Some(outcome) = content.outcome {
        let _ = write!(text, " outcome={outcome}");
    }
    for (name, value) in &content.attributes {
        let _ = write!(text, " {name}={}", show_value(value));
    }
    for (name, time) in
        [("submitted", content.submitted), ("started", content.started), ("ended", content.ended)]
    {
        if time.is_some() {
            let _ = write!(text, " {name}={}", show_time(time));
        }
    }
    if let Some(keys) = &found.keys {
        let _ = write!(text, " call={}:{}", keys.scope, keys.names.join("+"));
    }
    text
}
