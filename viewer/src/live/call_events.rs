//! Events of a call, as `domain.events` returns them: one for each line of a log.
//!
//! Rule: answers are untrusted: what is missing or of another kind is skipped, texts are bounded, and of more
//! events than the limit the last are shown. Not here: when they are requested (`flock`).

use super::answers;
use super::ask::Client;
use crate::grid::text::shown;
use crate::jobs::page::LogLine;
use crate::served::Event;
use client::Error;
use client::typed::About;
use compact_str::CompactString;
use serde::Deserialize as _;
use serde_json::{Value, json};
use wire::api::events::{self as api, Attribute, DomainEventsParams, EventsParams};
use wire::event::{Kind, Outcome};
use wire::time::Time;

/// Events of one call that are shown: its last ones.
pub const EVENTS_MAX: usize = 100;
/// Attributes of an event that are shown.
pub const ATTRIBUTES_MAX: usize = 24;

/// Request the last `number` events of a call of a domain; of the daemon's own where none is named. If there
/// are fewer, the daemon scans all its events.
///
/// # Errors
/// See [`Error`].
pub(super) fn ask(client: &mut Client, call: &str, domain: &str, number: u32) -> Result<Vec<Event>, Error> {
    let limit = usize::try_from(number).unwrap_or(EVENTS_MAX).clamp(1, EVENTS_MAX);
    let mut params = json!({ "call": call, "last": true, "limit": limit });
    if !domain.is_empty() {
        params["domain"] = domain.into();
    }
    Ok(events(&client.ask("domain.events", &params)?))
}

/// Request the last events of a job, with their ids.
///
/// # Errors
/// See [`Error`].
pub(super) fn lines(client: &mut Client, job: &str, domain: &str) -> Result<Vec<LogLine>, Error> {
    let params = EventsParams {
        call: Some(job.to_owned()),
        limit: EVENTS_MAX as u64,
        last: true,
        ..EventsParams::default()
    };
    let about = About { domain: Some(domain.to_owned()).filter(|domain| !domain.is_empty()), host: None };
    let events = client.call(&DomainEventsParams(params), &about)?.events;
    let line = |one: api::Event| LogLine { id: shown(&one.id).text, event: event(one) };
    let mut lines: Vec<LogLine> = events.into_iter().take(EVENTS_MAX).map(line).collect();
    lines.sort_by_key(|line| order(&line.event));
    Ok(lines)
}

/// The events of an answer, by time.
fn events(answer: &Value) -> Vec<Event> {
    let read = answers::items(answer, "events").take(EVENTS_MAX);
    let mut events: Vec<Event> =
        read.filter_map(|event| api::Event::deserialize(event).ok()).map(event).collect();
    by_time(&mut events);
    events
}

/// Sort by time: several logs describe a call, some with a resolution of seconds. At the same time the
/// submission comes first and the end last.
pub fn by_time(events: &mut [Event]) {
    events.sort_by_key(order);
}

fn order(event: &Event) -> (Time, bool, bool) {
    (event.time, event.kind == Kind::JobEnd, event.kind != Kind::JobSubmit)
}

fn event(event: api::Event) -> Event {
    let text = |text: &str| shown(text).text;
    Event {
        time: event.time.0,
        kind: event.kind,
        from: text(&event.from),
        to: text(&event.to),
        outcome: event.outcome.map_or("", Outcome::as_str).to_owned(),
        source: format!("{}:{}", text(&event.source.host), text(&event.source.file)),
        attributes: event.attributes.0.iter().take(ATTRIBUTES_MAX).map(attribute).collect(),
    }
}

fn attribute((name, value): &(CompactString, Attribute)) -> String {
    match value {
        Attribute::Text(text) => attribute_words(name, text),
        Attribute::List(texts) => attribute_words(name, &texts.join(", ")),
        Attribute::Bytes(bytes) => attribute_words(name, &String::from_utf8_lossy(bytes)),
    }
}

/// Text of an attribute, sanitized for display.
pub fn attribute_words(name: &str, value: &str) -> String {
    format!("{}: {}", shown(name).text, shown(value).text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_listed_by_time_and_nonsense_is_left_out() {
        let event = |time: f64, kind: &str, outcome: Option<&str>, attributes: Value| {
            let source = json!({"host": "head", "file": "/var/log/slurmctld.log"});
            let mut event = json!({"id": "1-1-0", "time": time, "kind": kind, "seen": 21.0, "call": "slurm:7", "job": "7", "user": "",
                "from": "wn01", "to": "", "attributes": attributes, "source": source});
            outcome.into_iter().for_each(|outcome| event["outcome"] = outcome.into());
            event
        };
        let attributes = json!({"exit": "2", "nodes": ["wn01", "wn\u{1b}02"]});
        let answer = json!({"events": [
            event(20.5, "job_end", Some("failed"), attributes), event(10.0, "job_submit", None, json!({})),
            {"time": "soon", "kind": "job_end"}, {"time": 1.0, "kind": "job_end"}, 7,
        ]});
        let events = events(&answer);
        let kinds: Vec<_> = events.iter().map(|event| (event.kind, event.outcome.as_str())).collect();
        assert_eq!(kinds, [(Kind::JobSubmit, ""), (Kind::JobEnd, "failed")]);
        assert_eq!(events[1].source, "head:/var/log/slurmctld.log");
        assert_eq!(events[1].attributes, ["exit: 2", "nodes: wn01, wn\u{fffd}02"]);
        let at_once = ["job_end", "job_start", "job_submit"].map(|kind| event(5.0, kind, None, json!({})));
        let kinds: Vec<Kind> =
            super::events(&json!({ "events": at_once })).iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [Kind::JobSubmit, Kind::JobStart, Kind::JobEnd], "of one second");
        for nonsense in [json!(null), json!({"events": {}})] {
            assert!(super::events(&nonsense).is_empty());
        }
    }
}
