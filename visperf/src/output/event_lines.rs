//! An event as one aligned line: when, what, which job, whose, from whom to whom, how it ended, the rest.
//!
//! Pure. Events come as the JSON that daemons answer and `filter try` makes; both look alike here.

use crate::output::figures::{number_of, plain, text_of};
use crate::output::table::{Cell, Columns};
use crate::output::times::shown;
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Widths that fit most rows from the start: time, kind, job, user, parties.
const WIDTHS: [usize; 5] = [23, 12, 6, 8, 18];

/// Attributes that repeat a time which the event has as a field.
const TIMES: [(&str, &str); 3] = [("submit", "submitted"), ("start", "started"), ("end", "ended")];

/// Formats events one after the other.
#[derive(Debug)]
pub(crate) struct EventLines {
    columns: Columns,
    zone: TimeZone,
}

impl EventLines {
    /// Times are shown in `zone`.
    pub(crate) fn new(zone: TimeZone) -> EventLines {
        EventLines { columns: Columns::new(&WIDTHS), zone }
    }

    /// The line of an event.
    pub(crate) fn line(&mut self, event: &Value, output: &Output) -> String {
        let kind = text_of(event, "kind");
        let outcome = text_of(event, "outcome");
        let time = number_of(event, "time")
            .map_or(String::new(), |secs| shown(Time::from_secs_f64(secs), &self.zone));
        let cells = vec![
            Cell::whole(time).color(Color::Dim),
            Cell::text(kind).color(kind_color(kind)),
            Cell::text(text_of(event, "job")).color(Color::Name),
            Cell::text(text_of(event, "user")),
            Cell::text(parties(event)),
            Cell::text(outcome).color(outcome_color(outcome)),
            Cell::text(rest(event, &self.zone)),
        ];
        self.columns.row(cells, output)
    }
}

/// `from -> to`, or the one that is known.
fn parties(event: &Value) -> String {
    match (text_of(event, "from"), text_of(event, "to")) {
        ("", "") => String::new(),
        (from, "") => format!("{from} ->"),
        ("", to) => format!("-> {to}"),
        (from, to) => format!("{from} -> {to}"),
    }
}

/// The attributes, but for those that the columns show already.
fn rest(event: &Value, zone: &TimeZone) -> String {
    let Some(attributes) = event.get("attributes").and_then(Value::as_object) else { return String::new() };
    let (from, to) = (text_of(event, "from"), text_of(event, "to"));
    let told = |name: &str, value: &str| match name {
        "host" | "hosts" => value == to,
        "client" | "submit_host" => value == from,
        _ => false,
    };
    // A record prints the times of its job in a form of its own; the event has them as times.
    let time = |name: &str| {
        let (_, member) = TIMES.iter().find(|(attribute, _)| *attribute == name)?;
        number_of(event, member).map(|secs| shown(Time::from_secs_f64(secs), zone))
    };
    let pairs =
        attributes.iter().map(|(name, value)| (name, time(name).unwrap_or_else(|| plain(Some(value)))));
    let pairs = pairs.filter(|(name, value)| !told(name, value)).map(|(name, value)| {
        match value.is_empty() || value.contains(char::is_whitespace) {
            true => format!("{name}={value:?}"),
            false => format!("{name}={value}"),
        }
    });
    pairs.collect::<Vec<_>>().join(" ")
}

fn kind_color(kind: &str) -> Color {
    match kind {
        "node_down" | "job_reject" => Color::Bad,
        "node_drain" | "job_cancel" | "job_requeue" | "job_hold" | "job_suspend" => Color::Caution,
        "workload" | "message" => Color::Dim,
        _ => Color::Head,
    }
}

/// The colour of an outcome, wherever it is shown.
pub(crate) fn outcome_color(outcome: &str) -> Color {
    match outcome {
        "ok" => Color::Good,
        "failed" | "node_fail" => Color::Bad,
        "cancelled" | "timeout" => Color::Caution,
        _ => Color::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_one_aligned_line() {
        let output = Output::into_writer(Vec::new(), None);
        let mut lines = EventLines::new(TimeZone::UTC);
        let mut check = |event: Value, expected: &str| assert_eq!(lines.line(&event, &output), expected);
        check(
            json!({"kind": "job_end", "time": 1.5, "job": "7", "user": "mrossi", "from": "", "to": "wn01",
                "outcome": "ok", "attributes": {"host": "wn01", "code": "0", "reason": "a b\u{1b}[2J"}}),
            "1970-01-01T00:00:01.500  job_end       7       mrossi    -> wn01             ok  code=0 reason=\"a b\\u{1b}[2J\"",
        );
        check(
            json!({"kind": "job_end", "time": 2.0, "job": "7", "submitted": 1.0, "ended": 2.25, "from": "", "to": "",
                "attributes": {"submit": "1", "end": "1970-01-01T00:00:02", "start": "?"}}),
            "1970-01-01T00:00:02.000  job_end       7                                         \
             submit=1970-01-01T00:00:01.000 end=1970-01-01T00:00:02.250 start=?",
        );
        check(
            json!({"kind": "node_down", "time": 2.0, "from": "a", "to": "b", "attributes": {}}),
            "1970-01-01T00:00:02.000  node_down                       a -> b",
        );
    }
}
