//! Format of an event as one aligned line: time, kind, job, user, parties, outcome, and the remaining
//! attributes.
//!
//! On a terminal, items that do not fit continue on the next line, indented; a line breaks between items and
//! never within one; only names and lists of hosts are shortened, as in every table. There the heads of the
//! columns precede the first line, with the offset of the times from UTC; elsewhere each time has its own.

use crate::harmless::clean;
use crate::output::figures::user;
use crate::output::table::{Cell, Columns};
use crate::output::times::{below, offset_now, shown};
use crate::output::{Color, Output, shortened_within};
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::events::{Attribute, Event};
use wire::event::{Kind, Outcome};
use wire::time::Time;

/// Initial widths that fit most rows: time, kind, job, user, parties.
const WIDTHS: [usize; 5] = [24, 12, 6, 8, 18];

/// A terminal narrower than this has no columns for the parties and the outcome: they follow with the
/// attributes.
const NARROW_CHARS: usize = 110;
/// Widths of the remaining columns on a narrow terminal: time, kind, job, user.
const NARROW_WIDTHS: [usize; 4] = [12, 12, 6, 8];
/// Widths on a wider terminal, which shows only the time of day of recent events.
const TERMINAL_WIDTHS: [usize; 5] = [12, 12, 6, 8, 18];
/// Indentation of continued lines.
const INDENT_CHARS: usize = 14;

/// The messages that the sensor itself writes about a log (`docs/methods.md`, `sensor.files`).
const OWN_MESSAGES: [&str; 3] = ["gap", "incomplete", "oversize"];

/// Formats events one after the other.
#[derive(Debug)]
pub(crate) struct EventLines {
    columns: Columns,
    zone: TimeZone,
    /// The offset of the zone that the head shows.
    offset: String,
    /// Whether the heads are still to be printed.
    is_head_due: bool,
}

impl EventLines {
    /// A formatter for times in `zone`, on this output.
    pub(crate) fn new(zone: TimeZone, output: &Output) -> EventLines {
        let widths = match output.width() {
            Some(width) if width < NARROW_CHARS => &NARROW_WIDTHS[..],
            Some(_) => &TERMINAL_WIDTHS,
            None => &WIDTHS,
        };
        let offset = offset_now(&zone);
        EventLines { columns: Columns::new(widths), zone, offset, is_head_due: output.width().is_some() }
    }

    /// The line of an event; on a terminal several if needed, and the heads above the first.
    pub(crate) fn line(&mut self, event: &Event, output: &Output) -> String {
        match std::mem::take(&mut self.is_head_due) {
            true => format!("{}\n{}", self.head(output), self.line_of(event, output)),
            false => self.line_of(event, output),
        }
    }

    fn head(&mut self, output: &Output) -> String {
        let time = format!("TIME {}", self.offset);
        let narrow = [time.as_str(), "KIND", "JOB", "USER"];
        let rest = ["FROM -> TO", "OUTCOME"];
        let is_narrow = output.width().is_some_and(|width| width < NARROW_CHARS);
        let heads = narrow.into_iter().chain(rest.into_iter().filter(|_| !is_narrow));
        self.columns.row(heads.map(|head| Cell::whole(head).color(Color::Head)).collect(), output)
    }

    fn line_of(&mut self, event: &Event, output: &Output) -> String {
        let outcome = event.outcome.map_or("", Outcome::as_str);
        let time = match output.width() {
            Some(_) => below(&self.offset, event.time.0, &self.zone, output),
            None => shown(event.time.0, &self.zone),
        };
        let mut cells = vec![
            Cell::whole(time).color(Color::Dim),
            Cell::text(event.kind.as_str()).color(kind_color(event.kind)),
            Cell::text(&event.job).color(Color::Name),
            Cell::text(user(&event.user)),
        ];
        let pairs = pairs(event, &self.zone);
        let Some(width) = output.width() else {
            cells.extend([
                Cell::text(parties(event)),
                Cell::text(outcome).color(outcome_color(outcome)),
                Cell::text(pairs.join(" ")),
            ]);
            return self.columns.row(cells, output);
        };
        let mut parts: Vec<(Option<Color>, String)> = Vec::new();
        if width < NARROW_CHARS {
            let parties = shortened_within(&parties(event), width.saturating_sub(INDENT_CHARS)).into_owned();
            parts.extend([(None, parties), (Some(outcome_color(outcome)), outcome.to_owned())]);
        } else {
            cells.extend([Cell::text(parties(event)), Cell::text(outcome).color(outcome_color(outcome))]);
        }
        parts.extend(pairs.into_iter().map(|pair| (None, pair)));
        let (text, chars, next) = self.columns.row_and_end(cells, output);
        let mut flow = Flow { text, chars, next, width };
        for (color, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
            flow.add(color, &clean(&text), output);
        }
        flow.text
    }
}

/// Items one after the other, in lines that fit.
pub(crate) struct Flow {
    pub(crate) text: String,
    /// Characters in the last line.
    pub(crate) chars: usize,
    /// Column at which the next item starts, if it fits.
    pub(crate) next: usize,
    pub(crate) width: usize,
}

impl Flow {
    /// Adds an item, on the next line if it does not fit.
    pub(crate) fn add(&mut self, color: Option<Color>, text: &str, output: &Output) {
        let chars = text.chars().count();
        if self.next + chars > self.width {
            self.text.push('\n');
            (self.chars, self.next) = (0, INDENT_CHARS);
        }
        self.text.push_str(&" ".repeat(self.next - self.chars));
        match color {
            Some(color) => self.text.push_str(&output.paint(color, text)),
            None => self.text.push_str(text),
        }
        self.chars = self.next + chars;
        self.next = self.chars + 1;
    }
}

/// `from -> to`, or the one that is known.
fn parties(event: &Event) -> String {
    match (event.from.as_str(), event.to.as_str()) {
        ("", "") => String::new(),
        (from, "") => format!("{from} ->"),
        ("", to) => format!("-> {to}"),
        (from, to) => format!("{from} -> {to}"),
    }
}

/// The attributes that the columns do not show already.
fn pairs(event: &Event, zone: &TimeZone) -> Vec<String> {
    let is_shown = |name: &str, value: &str| match name {
        "host" | "hosts" => value == event.to,
        "client" | "submit_host" => value == event.from,
        _ => false,
    };
    // A record prints the times of its job in its own format; the event has them as times.
    let time = |name: &str, value: &Attribute| match name {
        "submit" => event.submitted,
        "start" => event.started,
        "end" => event.ended,
        "eligible" => plain(value).parse().ok().map(|secs| UnixTime(Time::from_secs_f64(secs))),
        _ => None,
    };
    let time = |name: &str, value| time(name, value).map(|UnixTime(time)| shown(time, zone));
    let attributes = &event.attributes.0;
    let pairs =
        attributes.iter().map(|(name, value)| (name, time(name, value).unwrap_or_else(|| plain(value))));
    // A message of the sensor about a log is meaningless without the log's name.
    let is_own = |(name, value): &(_, Attribute)| {
        name == "name" && matches!(value, Attribute::Text(text) if OWN_MESSAGES.contains(&text.as_str()))
    };
    let log = attributes.iter().any(is_own).then(|| pair("log", &event.source.file));
    let pairs = pairs.filter(|(name, value)| !is_shown(name, value)).map(|(name, value)| pair(name, &value));
    log.into_iter().chain(pairs).collect()
}

/// A value as plain text: lists are joined by commas.
fn plain(value: &Attribute) -> String {
    match value {
        Attribute::Text(text) => text.to_string(),
        Attribute::List(texts) => texts.join(","),
        Attribute::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn pair(name: &str, value: &str) -> String {
    match value.is_empty() || value.contains(char::is_whitespace) {
        true => format!("{name}={value:?}"),
        false => format!("{name}={value}"),
    }
}

fn kind_color(kind: Kind) -> Color {
    match kind {
        Kind::NodeDown | Kind::JobReject => Color::Bad,
        Kind::NodeDrain | Kind::JobCancel | Kind::JobRequeue | Kind::JobHold | Kind::JobSuspend => {
            Color::Caution
        }
        Kind::Workload | Kind::Message => Color::Dim,
        Kind::JobSubmit
        | Kind::ServerList
        | Kind::JobSelect
        | Kind::JobStart
        | Kind::JobEnd
        | Kind::JobRelease
        | Kind::JobResume
        | Kind::StepStart
        | Kind::StepEnd
        | Kind::TransferStart
        | Kind::TransferEnd
        | Kind::NodeUp
        | Kind::ServiceStart
        | Kind::ServiceStop => Color::Head,
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
    use serde_json::{Value, json};

    /// An event with these fields, and the others empty.
    fn event(fields: Value) -> Event {
        let mut whole = json!({"id": "1-1-0", "seen": 0.0, "call": "", "job": "", "user": "", "from": "", "to": "",
            "attributes": {}, "source": {}});
        let (Value::Object(whole_fields), Value::Object(fields)) = (&mut whole, fields) else {
            panic!("a structure")
        };
        whole_fields.extend(fields);
        serde_json::from_value(whole).expect("an event")
    }

    #[test]
    fn an_event_is_one_aligned_line() {
        let output = Output::into_writer(Vec::new(), None);
        let mut lines = EventLines::new(TimeZone::UTC, &output);
        let mut check = |fields, expected: &str| assert_eq!(lines.line(&event(fields), &output), expected);
        check(
            json!({"kind": "job_end", "time": 1.5, "job": "7", "user": "mrossi", "from": "", "to": "wn01",
                "outcome": "ok", "attributes": {"host": "wn01", "code": "0", "reason": "a b\u{1b}[2J"}}),
            "1970-01-01T00:00:01.500Z  job_end       7       mrossi    -> wn01             ok  code=0 reason=\"a b\\u{1b}[2J\"",
        );
        check(
            json!({"kind": "job_end", "time": 2.0, "job": "7", "submitted": 1.0, "ended": 2.25, "from": "", "to": "",
                "attributes": {"submit": "1", "end": "1970-01-01T00:00:02", "start": "?"}}),
            "1970-01-01T00:00:02.000Z  job_end       7                                         \
             submit=1970-01-01T00:00:01.000Z end=1970-01-01T00:00:02.250Z start=?",
        );
        check(
            json!({"kind": "node_down", "time": 2.0, "from": "a", "to": "b", "attributes": {}}),
            "1970-01-01T00:00:02.000Z  node_down                       a -> b",
        );
    }

    #[test]
    fn a_terminal_has_the_rest_below_and_cuts_nothing() {
        let event = event(
            json!({"kind": "job_end", "time": 1.5, "job": "8123456", "user": "mrossi", "from": "login1",
            "to": "wn01.site.example,wn02.site.example,wn03.site.example", "outcome": "failed",
            "attributes": {"code": "137", "reason": "memory limit exceeded", "queue": "long", "memory": "64 GB"}}),
        );
        let line = |width: usize| {
            let output = Output::into_writer(Vec::new(), Some(width));
            EventLines::new(TimeZone::UTC, &output).line(&event, &output)
        };
        assert_eq!(
            line(80),
            "TIME Z        KIND          JOB     USER\n1970-01-01T00:00:01  job_end       8123456  mrossi\n              \
             login1 -> wn01.site.example,wn02.site.example,wn03.site.example\n              \
             failed code=137 reason=\"memory limit exceeded\" queue=long\n              memory=\"64 GB\""
        );
        let short = self::event(json!({"kind": "job_end", "time": 1.5, "job": "8", "to": "wn01"}));
        let output = Output::into_writer(Vec::new(), Some(80));
        let mut lines = EventLines::new(TimeZone::UTC, &output);
        assert!(lines.line(&short, &output).starts_with("TIME Z"));
        let mut lines = EventLines { is_head_due: false, ..EventLines::new(TimeZone::UTC, &output) };
        assert_eq!(
            lines.line(&short, &output),
            "1970-01-01T00:00:01  job_end       8                 -> wn01"
        );
        let wide = line(200);
        let heads = "TIME Z        KIND          JOB     USER      FROM -> TO          OUTCOME";
        assert!(
            wide.lines().count() == 2 && wide.starts_with(heads) && wide.contains("memory=\"64 GB\""),
            "{wide}"
        );
    }
}
