//! Printing of a subscription's entries: one line each, or JSON.
//!
//! Rule: a subscription that the sensor stopped ends the command. Not here: the subscription
//! (`renewed_subscription`).

use super::Args;
use super::renewed_subscription::StreamAnswer;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::event_lines::EventLines;
use crate::output::figures::number;
use crate::output::times::{below, offset_now};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use wire::api::calls::Call;
use wire::api::entries::{Entry, EntryKind};
use wire::call::State;
use wire::channel::CPU_MAX_MS;
use wire::event::Outcome;
use wire::shown::{share, whole_bytes};

/// Prints entries as they arrive.
pub(super) struct Printing<'a> {
    args: &'a Args,
    output: Output,
    zone: TimeZone,
    events: EventLines,
    /// Zone offset that the head shows.
    offset: String,
    /// Whether the head is still to be printed; event lines print their own.
    is_head_due: bool,
    left: u64,
}

impl Printing<'_> {
    /// A printer with the settings of the command.
    pub(super) fn new(args: &Args) -> Printing<'_> {
        let left = args.samples.unwrap_or(u64::MAX);
        let (output, zone) = (args.query.width.output(), TimeZone::system());
        let events = EventLines::new(zone.clone(), &output);
        let is_head_due = output.width().is_some() && !args.query.json && args.kind != "event";
        let offset = offset_now(&zone);
        Printing { args, output, zone, events, offset, is_head_due, left }
    }

    /// Print the received entries; returns whether more are expected.
    pub(super) fn print(&mut self, received: &StreamAnswer) -> Result<bool, Failure> {
        let entries = &received.taken.entries;
        if !entries.is_empty() && std::mem::take(&mut self.is_head_due) {
            let head = format!("TIME {}", self.offset);
            let head = self.output.paint(Color::Head, &head).into_owned();
            self.output.line(&head)?;
        }
        for (nth, entry) in entries.iter().enumerate() {
            if self.left == 0 {
                break;
            }
            self.left -=
                u64::from(matches!(entry.what, EntryKind::Sample | EntryKind::Event | EntryKind::Call));
            if self.args.query.json {
                received.raw.get(nth).map_or(Ok(()), |raw| self.output.json(raw))?;
                continue;
            }
            let line = if let Some(event) = &entry.event {
                self.events.line(event, &self.output)
            } else {
                let time = entry.time.map(|time| below(&self.offset, time.0, &self.zone, &self.output));
                line(entry, time.as_deref(), &self.output)
            };
            self.output.line(&line)?;
        }
        self.output.flush()?;
        match &received.taken.quarantined {
            Some(reason) => {
                let what_to_do = what_to_do(reason);
                Err(Failure::Failed(format!("the sensor stopped it: {reason}{what_to_do}")))
            }
            None => Ok(self.left > 0),
        }
    }
}

/// Which option raises the limit that the sensor names.
fn what_to_do(reason: &str) -> String {
    match reason.contains("cpu_ms") {
        true => format!("; --cpu-ms N gives it more, at most {CPU_MAX_MS}"),
        false => String::new(),
    }
}

/// An entry as one line.
fn line(entry: &Entry, time: Option<&str>, output: &Output) -> String {
    let painted = |color, text: String| output.paint(color, &text).into_owned();
    let shown = match entry.what {
        EntryKind::Sample => sample(entry, output),
        EntryKind::Call => entry.call.as_ref().map(|one| call(one, output)).unwrap_or_default(),
        EntryKind::Signal => {
            let value = entry.value.map(|value| format!(" at {}", number(value))).unwrap_or_default();
            match entry.is_true {
                Some(true) => painted(Color::Caution, format!("the condition is true{value}")),
                Some(false) | None => painted(Color::Good, format!("the condition is false{value}")),
            }
        }
        EntryKind::Missed => {
            let missed = super::renewed_subscription::entries_text(entry.count.unwrap_or(0));
            painted(Color::Bad, format!("{missed} missed"))
        }
        EntryKind::Quarantined => {
            painted(Color::Bad, clean(entry.reason.as_deref().unwrap_or_default()).into_owned())
        }
        EntryKind::Event | EntryKind::Unknown => {
            painted(Color::Dim, "an entry that only a later version shows".to_owned())
        }
    };
    format!("{}  {shown}", output.paint(Color::Dim, time.unwrap_or("-")))
}

fn sample(entry: &Entry, output: &Output) -> String {
    let mut shown = String::new();
    // Writing to a `String` cannot fail.
    for (name, value) in entry.figures.iter().flat_map(|figures| &figures.0) {
        let _ = write!(shown, "{} {}  ", output.paint(Color::Name, &clean(name)), number(value.as_f64()));
    }
    for process in entry.processes.iter().flatten() {
        let (cpu, memory) = (process.cpu.map(share).unwrap_or_default(), whole_bytes(process.rss_bytes));
        let name = clean(&process.name);
        let _ = write!(shown, "{}[{}] {cpu} {memory}  ", output.paint(Color::Name, &name), process.pid);
    }
    for metric in entry.metrics.iter().flatten() {
        let value = metric.value.map(|value| number(value.as_f64())).unwrap_or_default();
        let labels: Vec<String> =
            metric.labels.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let name = output.paint(Color::Name, &clean(&metric.name)).into_owned();
        let _ = write!(shown, "{name}{} {value}  ", clean(&labels));
    }
    if let Some(gone) = entry.gone.as_ref().filter(|gone| !gone.is_empty()) {
        let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
        let _ = write!(shown, "{} {}  ", output.paint(Color::Dim, "gone:"), gone.join(", "));
    }
    if let Some(left_out) = entry.left_out.filter(|left_out| *left_out > 0) {
        let _ = write!(shown, "and {left_out} more");
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// A call: its id, state, name, user, hosts and reason.
fn call(call: &Call, output: &Output) -> String {
    let (state, color) = match (call.outcome, call.state) {
        (Some(outcome @ (Outcome::Ok | Outcome::Finished)), _) => (outcome.as_str(), Color::Good),
        (Some(outcome), _) => (outcome.as_str(), Color::Bad),
        (None, state @ State::Running) => (state.as_str(), Color::Name),
        (None, state @ State::Waiting) => (state.as_str(), Color::Dim),
        (None, state) => (state.as_str(), Color::Bad),
    };
    let mut shown =
        format!("{}  {}", output.paint(Color::Name, &clean(&call.id)), output.paint(color, state));
    let hosts = call.hosts.join(",");
    for part in [&call.name, &call.user, &hosts, &call.reason].into_iter().filter(|part| !part.is_empty()) {
        shown += "  ";
        shown += &clean(part);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn every_kind_of_entry_is_a_line() {
        let output = Output::into_writer(Vec::new(), None);
        let check = |entry: Value, expected: &str| {
            let entry: Entry = serde_json::from_value(entry).expect("an entry");
            assert_eq!(line(&entry, None, &output), expected, "{entry:?}");
        };
        check(
            json!({"what": "sample", "left_out": 2, "figures": {}, "processes": [
                {"name": "a\u{1b}b", "pid": 7, "cpu": 0.5, "rss_bytes": 4096},
                {"name": "bash", "pid": 8, "rss_bytes": 1_048_576},
            ]}),
            "-  a\\u{1b}b[7] 50 % 4.0 KiB  bash[8]  1.0 MiB  and 2 more",
        );
        check(json!({"what": "sample", "figures": {"mean": 2.5}, "processes": []}), "-  mean 2.5");
        check(json!({"what": "sample", "gone": [7, 8], "processes": []}), "-  gone: 7, 8");
        check(json!({"what": "later"}), "-  an entry that only a later version shows");
        check(json!({"what": "sample", "figures": {"mean": 2.5}}), "-  mean 2.5");
        check(
            json!({"what": "sample", "metrics": [
                {"name": "node_load1", "labels": {}, "value": 2.5},
                {"name": "node_cpu_seconds_total", "labels": {"cpu": "0", "mode": "user"}, "value": 7},
            ]}),
            "-  node_load1 2.5  node_cpu_seconds_total{cpu=0,mode=user} 7",
        );
        check(
            json!({"what": "call", "call": {"id": "slurm:17", "job": "17", "state": "ended", "outcome": "failed", "user": "ada",
                "name": "train", "hosts": ["wn1", "wn2"], "reason": "OOM", "from": "", "offers": [], "tries": 1, "events": 3}}),
            "-  slurm:17  failed  train  ada  wn1,wn2  OOM",
        );
        check(json!({"what": "signal", "is_true": true, "value": 3.0}), "-  the condition is true at 3");
        check(json!({"what": "signal", "is_true": false}), "-  the condition is false");
        check(json!({"what": "missed", "count": 7}), "-  7 entries missed");
        check(json!({"what": "quarantined", "reason": "too dear"}), "-  too dear");
    }
}
