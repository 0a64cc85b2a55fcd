//! Table `events`: a row is what one record of a log says, as sensors read it.
//!
//! Pure. Rule: the day of an event is that of its time according to the log; rows are in the order in which events were
//! stored. Not here: which events there are (`domain.events`).

use crate::column::{batch, counts, known_texts, known_times, maps, texts, times};
use arrow_array::RecordBatch;
use data_encoding::BASE64;
use wire::api::UnixTime;
use wire::api::events::{Attribute, Event};
use wire::event::{Kind, Outcome};
use wire::time::Time;

/// The rows of these events, in their order.
#[must_use]
pub fn rows(events: &[Event]) -> RecordBatch {
    let all = || events.iter();
    let time = |time: Option<UnixTime>| -> Option<Time> { time.map(|UnixTime(time)| time) };
    let attributes: Vec<Vec<(String, String)>> = all().map(attributes).collect();
    batch(vec![
        texts("id", all().map(|event| event.id.as_str())),
        texts("kind", all().map(|event| Kind::as_str(event.kind))),
        times("time", all().map(|event| event.time.0)),
        times("seen", all().map(|event| event.seen.0)),
        known_texts("call", all().map(|event| event.call.as_str())),
        known_texts("job", all().map(|event| event.job.as_str())),
        known_texts("user", all().map(|event| event.user.as_str())),
        known_texts("from", all().map(|event| event.from.as_str())),
        known_texts("to", all().map(|event| event.to.as_str())),
        known_texts("outcome", all().map(|event| event.outcome.map_or("", Outcome::as_str))),
        known_times("submitted", all().map(|event| time(event.submitted))),
        known_times("started", all().map(|event| time(event.started))),
        known_times("ended", all().map(|event| time(event.ended))),
        maps("attributes", attributes.iter().map(Vec::as_slice)),
        texts("host", all().map(|event| event.source.host.as_str())),
        texts("file", all().map(|event| event.source.file.as_str())),
        texts("filter", all().map(|event| event.source.filter.as_str())),
        counts("offset", all().map(|event| event.source.offset)),
    ])
}

/// The attributes as texts; lists are joined by commas.
fn attributes(event: &Event) -> Vec<(String, String)> {
    let text = |value: &Attribute| match value {
        Attribute::Text(text) => text.to_string(),
        Attribute::List(texts) => texts.join(","),
        Attribute::Bytes(bytes) => BASE64.encode(bytes),
    };
    event.attributes.0.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}
