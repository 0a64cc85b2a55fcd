//! An event found in a log as JSON, with the fields that a sensor's answers have (`docs/methods.md`).
//!
//! Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use log_filters::found::Found;
use serde_json::{Map, Value, json};
use wire::call::Call;
use wire::event::{Id, Value as Attribute};
use wire::time::Time;

/// Where an event was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The log's host.
    pub(crate) host: &'a str,
    /// The log as the user named it.
    pub(crate) file: &'a str,
    /// The filter's name.
    pub(crate) filter: &'a str,
    /// The record's first line, from 1.
    pub(crate) line: u64,
    /// The record's last line.
    pub(crate) last_line: u64,
}

/// The event as JSON.
pub(crate) fn event(found: &Found, id: Id, call: &str, seen: Time, place: &Place<'_>) -> Value {
    let content = &found.content;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("id", id.to_string().into());
    put("kind", content.kind.as_str().into());
    put("time", content.time.secs_f64().into());
    put("seen", seen.secs_f64().into());
    put("call", call.into());
    put("job", content.job.as_str().into());
    put("user", content.user.as_str().into());
    put("from", content.from.as_str().into());
    put("to", content.to.as_str().into());
    if let Some(outcome) = content.outcome {
        put("outcome", outcome.as_str().into());
    }
    let attributes = content.attributes.iter().map(|(name, value)| (name.to_string(), attribute(value)));
    put("attributes", Value::Object(attributes.collect()));
    put(
        "source",
        json!({
            "sensor": id.sensor.to_string(), "host": place.host, "file": place.file, "filter": place.filter,
            "offset": found.offset,
        }),
    );
    for (name, time) in
        [("submitted", content.submitted), ("started", content.started), ("ended", content.ended)]
    {
        if let Some(time) = time {
            put(name, time.secs_f64().into());
        }
    }
    put("line", place.line.into());
    put("last_line", place.last_line.into());
    Value::Object(fields)
}

fn attribute(value: &Attribute) -> Value {
    match value {
        Attribute::Text(text) => text.as_str().into(),
        Attribute::List(items) => items.iter().map(|item| item.as_str()).collect(),
        Attribute::Bytes(bytes) => STANDARD.encode(bytes).into(),
    }
}

/// A call as JSON.
pub(crate) fn call(call: &Call) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("id", call.id.as_str().into());
    put("job", call.job.as_str().into());
    put("name", call.name.as_str().into());
    put("user", call.user.as_str().into());
    put("from", call.from.as_str().into());
    put("state", call.state.as_str().into());
    for (name, time) in [
        ("submitted", call.submitted),
        ("offered", call.offered),
        ("selected", call.selected),
        ("started", call.started),
        ("ended", call.ended),
    ] {
        if let Some(time) = time {
            put(name, time.secs_f64().into());
        }
    }
    let names =
        |list: &[_]| list.iter().map(|name: &compact_str::CompactString| name.as_str()).collect::<Value>();
    put("offers", names(&call.offers));
    put("hosts", names(&call.hosts));
    if let Some(outcome) = call.outcome {
        put("outcome", outcome.as_str().into());
    }
    for (name, text) in [("code", &call.code), ("signal", &call.signal), ("reason", &call.reason)] {
        if !text.is_empty() {
            put(name, text.as_str().into());
        }
    }
    put("tries", call.tries.into());
    put("events", call.events.into());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Content, Kind, Outcome};
    use wire::id::{Generation, SensorKey};

    #[test]
    fn an_event_has_the_fields_of_the_contract() {
        let mut content = Content::new(Kind::JobEnd, Time::from_micros(1_500_000));
        content.job = "7".into();
        content.outcome = Some(Outcome::Ok);
        content.ended = Some(Time::from_micros(2_000_000));
        content.attributes = vec![
            ("host".into(), Attribute::Text("wn01".into())),
            ("hosts".into(), Attribute::List(vec!["a".into(), "b".into()])),
            ("raw".into(), Attribute::Bytes(vec![1, 2, 3])),
        ];
        let found = Found { offset: 70, number: 0, content, keys: None };
        let id = Id { sensor: SensorKey(0), generation: Generation(1), offset: 70, number: 0 };
        let place = Place { host: "h", file: "x.log", filter: "f", line: 3, last_line: 4 };
        let expected = concat!(
            r#"{"id":"0000000000000000-1-70","kind":"job_end","time":1.5,"seen":9.0,"call":"s:7","job":"7","#,
            r#""user":"","from":"","to":"","outcome":"ok","attributes":{"host":"wn01","hosts":["a","b"],"#,
            r#""raw":"AQID"},"source":{"sensor":"0000000000000000","host":"h","file":"x.log","filter":"f","#,
            r#""offset":70},"ended":2.0,"line":3,"last_line":4}"#,
        );
        assert_eq!(event(&found, id, "s:7", Time::from_micros(9_000_000), &place).to_string(), expected);
    }
}
