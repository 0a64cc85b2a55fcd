//! Entries of a subscription as they are printed: a line each, or JSON.
//!
//! Rule: one that the sensor stopped ends it. Not here: the subscription (`kept`).

use super::Args;
use crate::command::query::items;
use crate::exit::Failure;
use crate::output::event_lines::EventLines;
use crate::output::figures::{bytes, number, number_of, share, text_of};
use crate::output::times::{below, offset_now};
use crate::output::{Color, Output, clean};
use jiff::tz::TimeZone;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use wire::api::events::Event;
use wire::channel::CPU_MAX_MS;
use wire::time::Time;

/// Prints entries as they come.
pub(super) struct Printing<'a> {
    args: &'a Args,
    output: Output,
    zone: TimeZone,
    events: EventLines,
    /// Whether the offset of the times is still to be printed; event lines print it themselves.
    /// The offset of the zone that the head says.
    offset: String,
    is_head_due: bool,
    left: u64,
}

impl Printing<'_> {
    /// As the command says.
    pub(super) fn new(args: &Args) -> Printing<'_> {
        let left = args.samples.unwrap_or(u64::MAX);
        let (output, zone) = (args.query.width.output(), TimeZone::system());
        let events = EventLines::new(zone.clone(), &output);
        let is_head_due = output.width().is_some() && !args.query.json && args.kind != "event";
        let offset = offset_now(&zone);
        Printing { args, output, zone, events, offset, is_head_due, left }
    }

    /// Print what was taken; whether there is more to come.
    pub(super) fn print(&mut self, answer: &Value) -> Result<bool, Failure> {
        let entries = items(answer, "entries");
        if !entries.is_empty() && std::mem::take(&mut self.is_head_due) {
            let head = format!("TIME {}", self.offset);
            let head = self.output.paint(Color::Head, &head).into_owned();
            self.output.line(&head)?;
        }
        for entry in &entries {
            if self.left == 0 {
                break;
            }
            self.left -= u64::from(matches!(text_of(entry, "what"), "sample" | "event" | "call"));
            match self.args.query.json {
                true => self.output.json(entry)?,
                false => {
                    let line = match text_of(entry, "what") {
                        "event" => match Event::deserialize(&entry["event"]) {
                            Ok(event) => self.events.line(&event, &self.output),
                            // Of a later version.
                            Err(_) => clean(&entry["event"].to_string()).into_owned(),
                        },
                        _ => {
                            let time = number_of(entry, "time").map(Time::from_secs_f64);
                            let time = time.map(|time| below(&self.offset, time, &self.zone, &self.output));
                            line(entry, time.as_deref(), &self.output)
                        }
                    };
                    self.output.line(&line)?;
                }
            }
        }
        self.output.flush()?;
        match answer.get("quarantined").and_then(Value::as_str) {
            Some(reason) => {
                let what_to_do = what_to_do(reason);
                Err(Failure::Failed(format!("the sensor stopped it: {reason}{what_to_do}")))
            }
            None => Ok(self.left > 0),
        }
    }
}

/// How a command gives it what the sensor says that it needs.
fn what_to_do(reason: &str) -> String {
    match reason.contains("cpu_ms") {
        true => format!("; --cpu-ms N gives it more, at most {CPU_MAX_MS}"),
        false => String::new(),
    }
}

/// An entry in a line.
fn line(entry: &Value, time: Option<&str>, output: &Output) -> String {
    let mut line = output.paint(Color::Dim, time.unwrap_or("-")).into_owned();
    let painted = |color, text: String| output.paint(color, &text).into_owned();
    line += "  ";
    line += &match text_of(entry, "what") {
        "sample" => sample(entry, output),
        "call" => call(&entry["call"], output),
        "signal" => {
            let value =
                number_of(entry, "value").map(|value| format!(" at {}", number(value))).unwrap_or_default();
            match entry["is_true"].as_bool() {
                Some(true) => painted(Color::Caution, format!("the condition is true{value}")),
                _ => painted(Color::Good, format!("the condition is false{value}")),
            }
        }
        "missed" => painted(
            Color::Bad,
            format!("{} missed", super::kept::entries_told(entry["count"].as_u64().unwrap_or(0))),
        ),
        _ => painted(Color::Bad, clean(text_of(entry, "reason")).into_owned()),
    };
    line
}

fn sample(entry: &Value, output: &Output) -> String {
    let mut told = String::new();
    let figures: &Map<String, Value> = match entry.get("figures") {
        Some(Value::Object(figures)) => figures,
        _ => &Map::new(),
    };
    for (name, value) in figures {
        let value = value.as_f64().map(number).unwrap_or_default();
        // Writing into a text does not fail.
        let _ = write!(told, "{} {value}  ", output.paint(Color::Name, &clean(name)));
    }
    for process in items(entry, "processes") {
        let cpu = number_of(&process, "cpu").map(share).unwrap_or_default();
        let memory = number_of(&process, "rss_bytes").map(bytes).unwrap_or_default();
        let pid = process["pid"].as_u64().unwrap_or(0);
        let name = clean(text_of(&process, "name")).into_owned();
        let _ = write!(told, "{}[{pid}] {cpu} {memory}  ", output.paint(Color::Name, &name));
    }
    for metric in items(entry, "metrics") {
        let name = clean(text_of(&metric, "name")).into_owned();
        let value = number_of(&metric, "value").map(number).unwrap_or_default();
        let _ = write!(told, "{}{} {value}  ", output.paint(Color::Name, &name), labels(&metric));
    }
    if let Some(left_out) = entry["left_out"].as_u64().filter(|left_out| *left_out > 0) {
        let _ = write!(told, "and {left_out} more");
    }
    told.truncate(told.trim_end().len());
    told
}

/// Its labels, `{cpu=0,mode=user}`.
fn labels(metric: &Value) -> String {
    let Some(Value::Object(labels)) =
        metric.get("labels").filter(|labels| labels != &&Value::Object(Map::new()))
    else {
        return String::new();
    };
    let pair = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
    let pairs: Vec<String> = labels.iter().map(pair).collect();
    format!("{{{}}}", clean(&pairs.join(",")))
}

/// A call: which, how it stands, whose, where.
fn call(call: &Value, output: &Output) -> String {
    let text = |name: &str| clean(text_of(call, name)).into_owned();
    let state = match text_of(call, "outcome") {
        "" => text("state"),
        outcome => outcome.to_owned(),
    };
    let color = match state.as_str() {
        "running" => Color::Name,
        "ok" | "finished" => Color::Good,
        "waiting" => Color::Dim,
        _ => Color::Bad,
    };
    let hosts: Vec<String> =
        items(call, "hosts").iter().filter_map(|host| host.as_str().map(str::to_owned)).collect();
    let parts = [text("name"), text("user"), clean(&hosts.join(",")).into_owned(), text("reason")];
    let mut told = format!("{}  {}", output.paint(Color::Name, &text("id")), output.paint(color, &state));
    for part in parts.iter().filter(|part| !part.is_empty()) {
        told += "  ";
        told += part;
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_entry_is_a_line() {
        let output = Output::into_writer(Vec::new(), None);
        let check = |entry: Value, expected: &str| {
            assert_eq!(line(&entry, None, &output), expected, "{entry}");
        };
        check(
            json!({"what": "sample", "left_out": 2, "figures": {}, "processes": [
                {"name": "a\u{1b}b", "pid": 7, "cpu": 0.5, "rss_bytes": 4096},
                {"name": "bash", "pid": 8, "rss_bytes": 1_048_576},
            ]}),
            "-  a\\u{1b}b[7] 50 % 4.0 KiB  bash[8]  1.0 MiB  and 2 more",
        );
        check(json!({"what": "sample", "figures": {"mean": 2.5}, "processes": []}), "-  mean 2.5");
        check(json!({"what": "sample", "figures": {"mean": 2.5}}), "-  mean 2.5");
        check(
            json!({"what": "sample", "metrics": [
                {"name": "node_load1", "labels": {}, "value": 2.5},
                {"name": "node_cpu_seconds_total", "labels": {"cpu": "0", "mode": "user"}, "value": 7},
            ]}),
            "-  node_load1 2.5  node_cpu_seconds_total{cpu=0,mode=user} 7",
        );
        check(
            json!({"what": "call", "call": {"id": "slurm:17", "state": "ended", "outcome": "failed", "user": "ada",
                "name": "train", "hosts": ["wn1", "wn2"], "reason": "OOM"}}),
            "-  slurm:17  failed  train  ada  wn1,wn2  OOM",
        );
        check(json!({"what": "signal", "is_true": true, "value": 3.0}), "-  the condition is true at 3");
        check(json!({"what": "signal", "is_true": false}), "-  the condition is false");
        check(json!({"what": "missed", "count": 7}), "-  7 entries missed");
        check(json!({"what": "quarantined", "reason": "too dear"}), "-  too dear");
    }
}
