//! Methods about events: `sensor.events`, `domain.events`.
//!
//! Pure. Not here: events as sensors store and report them ([`crate::event`]).

use super::{Effect, Named, Request, Span, Subject, UnixTime};
use crate::call::host_names;
use crate::event::{self, Fields, Kind, Outcome};
use crate::id::SensorKey;
use crate::text_regex::TextRegex;
use compact_str::{CompactString, ToCompactString};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Events of an answer by default.
const LIMIT_DEFAULT: u64 = 1000;

/// Filters for events, and the position to start from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EventsParams {
    /// Position to continue from, as `cursor` of an earlier answer; "" for the oldest stored event, "end" for
    /// the position after the newest. Default: the oldest stored event.
    pub cursor: Option<String>,
    /// Maximum number of events.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
    /// Return the last `limit` matching events, oldest first, instead of the first ones after the cursor.
    /// Cannot be combined with `cursor` or `wait`.
    pub last: bool,
    /// Only events of one of these kinds.
    pub kind: Vec<Kind>,
    /// Only events of this call; `*` and `…` in the id match any characters.
    pub call: Option<String>,
    /// Only events of calls with this job number, and of their parts.
    pub job: Option<String>,
    /// Only events of calls of this user.
    pub user: Option<String>,
    /// Only events from or to this host, with or without its domain.
    pub on_host: Option<String>,
    /// Only events with a text that this regular expression matches: the job, the user, `from`, `to` or a text
    /// of the attributes. In the syntax of the Rust crate `regex`, which is close to that of Perl.
    pub regex: Option<TextRegex>,
    /// Only events at this time or later.
    pub since: Option<UnixTime>,
    /// Only events at this time or earlier.
    pub until: Option<UnixTime>,
    /// Time to wait for the first event, at most 25 s.
    pub wait: Span,
}

impl Default for EventsParams {
    fn default() -> EventsParams {
        EventsParams {
            cursor: None,
            limit: LIMIT_DEFAULT,
            last: false,
            kind: Vec::new(),
            call: None,
            job: None,
            user: None,
            on_host: None,
            regex: None,
            since: None,
            until: None,
            wait: Span::default(),
        }
    }
}

impl EventsParams {
    /// Whether an event fits all that is asked of the event itself: not its call, job or user, which calls may know
    /// better.
    #[must_use]
    pub fn fit(&self, event: &dyn Fields) -> bool {
        let EventsParams { kind, on_host, regex, since, until, .. } = self;
        (kind.is_empty() || kind.contains(&event.kind()))
            && since.is_none_or(|since| event.time() >= since.0)
            && until.is_none_or(|until| event.time() <= until.0)
            && on_host.as_ref().is_none_or(|host| is_party(event, host))
            && regex.as_ref().is_none_or(|regex| event.has_text(&|text| regex.is_match(text.as_bytes())))
    }
}

/// Whether a host is the source or the target of an event.
fn is_party(event: &dyn Fields, host: &str) -> bool {
    let parties = event.from().split(',').chain(event.to().split(','));
    parties.map(str::trim).any(|party| host_names(party).contains(&host))
}

/// List the events found in this sensor's logs, starting at a cursor.
///
/// Events of kind `workload` with a user say what that user's job used: they are answered to that user, root and operators.
/// To continue, pass the `cursor` of the answer to the next call. A cursor remains valid after restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SensorEventsParams(pub EventsParams);

impl Request for SensorEventsParams {
    const METHOD: &'static str = "sensor.events";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Events;
}

/// List the events found on all hosts of the domain, starting at a cursor.
///
/// Events of kind `workload` with a user say what that user's job used: they are answered to that user, root and operators.
/// To continue, pass the `cursor` of the answer to the next call. A cursor remains valid after restarts and
/// after a change of the representative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DomainEventsParams(pub EventsParams);

impl Request for DomainEventsParams {
    const METHOD: &'static str = "domain.events";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Events;
}

/// Page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Events {
    /// Matching events, in the order in which they were stored.
    pub events: Vec<Event>,
    /// Cursor for the next call.
    pub cursor: String,
    /// Number of events in the requested range that cannot be read any more: deleted to stay within the disk
    /// budget, or damaged.
    pub missed: u64,
    /// Hosts of the domain that are `last_seen` and have not reported to this representative; their events
    /// may be missing. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// Event: the content of one record of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Permanent id of the event: `SENSOR-GENERATION-OFFSET`, with `-NUMBER` for the second and later events
    /// of one record.
    #[schemars(with = "String")]
    pub id: CompactString,
    /// Kind of event. A kind that only a later version knows is read as `message`.
    #[serde(deserialize_with = "known_kind")]
    pub kind: Kind,
    /// Time of the event according to the log; the time of reading if the log has none.
    pub time: UnixTime,
    /// Time when the sensor read the record.
    pub seen: UnixTime,
    /// Id of the call that the event belongs to; empty if none.
    #[schemars(with = "String")]
    pub call: CompactString,
    /// Job id of the middleware; empty if none.
    #[schemars(with = "String")]
    pub job: CompactString,
    /// User of the job, as a number if the log prints only the number; empty if unknown.
    #[schemars(with = "String")]
    pub user: CompactString,
    /// Acting party: client, submit host, sending side. Empty if unknown.
    #[schemars(with = "String")]
    pub from: CompactString,
    /// Party acted on: server, execution host, receiving side. Several are joined by commas; empty if
    /// unknown.
    #[schemars(with = "String")]
    pub to: CompactString,
    /// Outcome, for kinds that end something. Absent for other kinds. An outcome that only a later version
    /// knows is read as `finished`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_outcome")]
    pub outcome: Option<Outcome>,
    /// Time when the job was submitted. Absent if the record does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<UnixTime>,
    /// Time when the job was started. Absent if the record does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// Time when the job ended. Absent if the record does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// Further fields of the record, by name.
    #[schemars(with = "BTreeMap<String, Attribute>")]
    pub attributes: Named<Attribute>,
    /// Location of the record.
    pub source: Source,
}

/// Location of a log record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "EventSource")]
pub struct Source {
    /// Id of the sensor.
    #[schemars(with = "String")]
    pub sensor: CompactString,
    /// Host of the sensor.
    #[schemars(with = "String")]
    pub host: CompactString,
    /// Path of the log file on that host.
    #[schemars(with = "String")]
    pub file: CompactString,
    /// Name of the log filter.
    #[schemars(with = "String")]
    pub filter: CompactString,
    /// Offset of the record in the file, in bytes.
    pub offset: u64,
}

/// Value of an attribute: a text or a list of texts. Bytes that are not UTF-8 are base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Attribute {
    /// Text.
    Text(#[schemars(with = "String")] CompactString),
    /// List of texts.
    List(#[schemars(with = "Vec<String>")] Vec<CompactString>),
    /// Bytes that are not UTF-8, as base64.
    Bytes(
        #[serde(with = "crate::bytes")]
        #[schemars(with = "super::Bytes")]
        Vec<u8>,
    ),
}

impl From<event::Value> for Attribute {
    fn from(value: event::Value) -> Attribute {
        match value {
            event::Value::Text(text) => Attribute::Text(text),
            event::Value::List(texts) => Attribute::List(texts),
            event::Value::Bytes(bytes) => Attribute::Bytes(bytes),
        }
    }
}

impl From<event::Event> for Event {
    fn from(event: event::Event) -> Event {
        let event::Event { id, seen, call, content, source } = event;
        let attributes = content.attributes.into_iter().map(|(name, value)| (name, value.into()));
        Event {
            id: id.to_compact_string(),
            kind: content.kind,
            time: UnixTime(content.time),
            seen: UnixTime(seen),
            call,
            job: content.job,
            user: content.user,
            from: content.from,
            to: content.to,
            outcome: content.outcome,
            submitted: content.submitted.map(UnixTime),
            started: content.started.map(UnixTime),
            ended: content.ended.map(UnixTime),
            attributes: Named(attributes.collect()),
            source: Source {
                sensor: id.sensor.to_compact_string(),
                host: source.host,
                file: source.file,
                filter: source.filter,
                offset: id.offset,
            },
        }
    }
}

/// [`Event`] by reference, serialized without a copy.
#[derive(Debug, Serialize)]
pub struct EventRef<'a> {
    #[serde(serialize_with = "displayed")]
    id: event::Id,
    kind: Kind,
    time: UnixTime,
    seen: UnixTime,
    call: &'a str,
    job: &'a str,
    user: &'a str,
    from: &'a str,
    to: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submitted: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<UnixTime>,
    #[serde(serialize_with = "attributes")]
    attributes: &'a [(CompactString, event::Value)],
    source: SourceRef<'a>,
}

#[derive(Debug, Serialize)]
struct SourceRef<'a> {
    #[serde(serialize_with = "displayed")]
    sensor: SensorKey,
    host: &'a str,
    file: &'a str,
    filter: &'a str,
    offset: u64,
}

impl<'a> EventRef<'a> {
    /// Refer to `event`; `call` is the present id of its call.
    #[must_use]
    pub fn new(event: &'a event::Event, call: &'a str) -> EventRef<'a> {
        let event::Event { id, seen, content, source, .. } = event;
        EventRef {
            id: *id,
            kind: content.kind,
            time: UnixTime(content.time),
            seen: UnixTime(*seen),
            call,
            job: &content.job,
            user: &content.user,
            from: &content.from,
            to: &content.to,
            outcome: content.outcome,
            submitted: content.submitted.map(UnixTime),
            started: content.started.map(UnixTime),
            ended: content.ended.map(UnixTime),
            attributes: &content.attributes,
            source: SourceRef {
                sensor: id.sensor,
                host: &source.host,
                file: &source.file,
                filter: &source.filter,
                offset: id.offset,
            },
        }
    }
}

fn displayed<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn attributes<S: Serializer>(
    attributes: &[(CompactString, event::Value)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct AttributeRef<'a>(&'a event::Value);

    impl Serialize for AttributeRef<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                event::Value::Text(text) => serializer.serialize_str(text),
                event::Value::List(texts) => serializer.collect_seq(texts),
                event::Value::Bytes(bytes) => serializer.serialize_bytes(bytes),
            }
        }
    }

    serializer.collect_map(attributes.iter().map(|(name, value)| (name, AttributeRef(value))))
}

fn known_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    let word = CompactString::deserialize(deserializer)?;
    Ok(Kind::from_word(&word).unwrap_or(Kind::Message))
}

/// Parse an outcome; one that only a later version knows is `Finished`.
pub(super) fn known_outcome<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Outcome>, D::Error> {
    let word = Option::<CompactString>::deserialize(deserializer)?;
    Ok(word.map(|word| Outcome::from_word(&word).unwrap_or(Outcome::Finished)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Content, Id};
    use crate::id::Generation;
    use crate::time::Time;
    use serde_json::json;

    fn event() -> event::Event {
        let mut content = Content::new(Kind::JobEnd, Time::from_micros(1_500_000));
        content.outcome = Some(Outcome::Ok);
        content.ended = Some(Time::from_micros(1_250_000));
        content.attributes = vec![
            ("code".into(), event::Value::Text("0".into())),
            ("asked".into(), event::Value::List(vec!["a".into(), "b".into()])),
        ];
        event::Event {
            id: Id { sensor: SensorKey(1), generation: Generation(2), offset: 3, number: 1 },
            seen: Time::from_micros(2_000_000),
            call: "slurm:1".into(),
            content,
            source: event::Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        }
    }

    #[test]
    fn an_event_has_the_fields_of_the_contract() {
        let written = serde_json::to_value(Event::from(event())).expect("it is written");
        let expected = json!({
            "id": "0000000000000001-2-3-1", "kind": "job_end", "time": 1.5, "seen": 2.0, "call": "slurm:1", "job": "", "user": "",
            "from": "", "to": "", "outcome": "ok", "ended": 1.25, "attributes": {"code": "0", "asked": ["a", "b"]},
            "source": {"sensor": "0000000000000001", "host": "h", "file": "/f", "filter": "slurmctld", "offset": 3},
        });
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Event>(written).expect("it is read"), Event::from(event()));
    }

    #[test]
    fn an_event_that_is_written_where_it_is_read_is_the_same() {
        let mut full = event();
        full.content.attributes.push(("raw".into(), event::Value::Bytes(vec![1, 2])));
        full.content.submitted = Some(Time::from_micros(1));
        full.content.started = Some(Time::from_micros(2));
        let bare = event::Event { content: Content::new(Kind::Message, Time::default()), ..event() };
        for event in [full, bare] {
            let known = event::Event { call: "slurm:2".into(), ..event.clone() };
            let written = serde_json::to_string(&EventRef::new(&event, "slurm:2")).expect("it is written");
            assert_eq!(written, serde_json::to_string(&Event::from(known)).expect("it is written"));
        }
    }

    #[test]
    fn words_of_a_later_version_are_read() {
        let mut written = serde_json::to_value(Event::from(event())).expect("it is written");
        written["kind"] = "job_migrate".into();
        written["outcome"] = "migrated".into();
        written["later"] = json!([1]);
        let read: Event = serde_json::from_value(written).expect("it is read");
        assert_eq!((read.kind, read.outcome), (Kind::Message, Some(Outcome::Finished)));
    }

    #[test]
    fn a_wait_below_zero_is_none() {
        let wait = |secs| {
            serde_json::from_value::<EventsParams>(json!({"wait": secs}))
                .expect("a number")
                .wait
                .0
                .as_secs_f64()
        };
        assert_eq!((wait(-1.0), wait(2.5)), (0.0, 2.5));
        assert!(wait(1e300) > 1e18);
    }
}
