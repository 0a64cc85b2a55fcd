//! Event found in a log, in the form of a sensor's answer (`docs/methods.md`), with the line numbers of its
//! record.
//!
//! Pure.

use log_filters::found::Found;
use serde::Serialize;
use wire::api::events;
use wire::event::{Event, Id, Source};
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

/// An event with the line numbers of its record.
#[derive(Debug, Serialize)]
pub(crate) struct InLog {
    #[serde(flatten)]
    pub(crate) event: events::Event,
    line: u64,
    last_line: u64,
}

impl InLog {
    /// An event found at this place, read at the time `seen`.
    pub(crate) fn new(found: &Found, id: Id, call: &str, seen: Time, place: &Place<'_>) -> InLog {
        let source = Source { host: place.host.into(), file: place.file.into(), filter: place.filter.into() };
        let event = Event { id, seen, call: call.into(), content: found.content.clone(), source };
        InLog { event: event.into(), line: place.line, last_line: place.last_line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::as_answered;
    use wire::event::{Content, Kind, Outcome, Value as Attribute};
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
            r#""user":"","from":"","to":"","outcome":"ok","ended":2.0,"attributes":{"host":"wn01","hosts":["a","b"],"#,
            r#""raw":"AQID"},"source":{"sensor":"0000000000000000","host":"h","file":"x.log","filter":"f","#,
            r#""offset":70},"line":3,"last_line":4}"#,
        );
        let event = InLog::new(&found, id, "s:7", Time::from_micros(9_000_000), &place);
        assert_eq!(as_answered(&event).expect("it is written").to_string(), expected);
    }
}
