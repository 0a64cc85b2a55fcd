//! Events, calls and metrics as values for scripts: the names and fields of `docs/methods.md`.
//!
//! Pure. Rule: a field without a value is left out, but for those that are always there.

use compact_str::CompactString;
use rpc::members::{self, Plain};
use rpc::value::{Name, Value};
use wire::call::Call;
use wire::event::{self, Event};
use wire::sample::{Metric, Number};
use wire::time::Time;

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Seconds since 1970.
#[must_use]
pub fn time(time: Time) -> Value {
    Value::Double(time.secs_f64())
}

/// An event.
#[must_use]
pub fn event(event: &Event) -> Value {
    let mut members = Vec::new();
    fill_event(event, &event.call, &mut members);
    Value::Struct(members)
}

/// The members of an event whose call is known as `call`.
pub fn fill_event(event: &Event, call: &str, members: &mut impl members::Members) {
    let content = &event.content;
    members.id("id", event.id);
    members.text("kind", content.kind.as_str());
    members.time("time", content.time);
    members.time("seen", event.seen);
    members.text("call", call);
    members.text("job", &content.job);
    members.text("user", &content.user);
    members.text("from", &content.from);
    members.text("to", &content.to);
    if let Some(outcome) = content.outcome {
        members.text("outcome", outcome.as_str());
    }
    let moments = [("submitted", content.submitted), ("started", content.started), ("ended", content.ended)];
    for (name, moment) in moments {
        if let Some(moment) = moment {
            members.time(name, moment);
        }
    }
    members.structure("attributes", |members| {
        for (name, value) in &content.attributes {
            match value {
                event::Value::Text(text) => members.plain(name, Plain::Text(text)),
                event::Value::List(list) => members.texts(name, list.iter().map(CompactString::as_str)),
                event::Value::Bytes(bytes) => members.plain(name, Plain::Bytes(bytes)),
            }
        }
    });
    members.structure("source", |members| {
        members.id("sensor", event.id.sensor);
        members.text("host", &event.source.host);
        members.text("file", &event.source.file);
        members.text("filter", &event.source.filter);
        members.whole("offset", event.id.offset);
    });
}

/// A call, for answers that have no type yet.
#[must_use]
pub fn call(call: &Call) -> Value {
    rpc::codec::value(&wire::api::calls::Call::from(call), &[]).unwrap_or_default()
}

/// A number: whole ones stay whole.
#[must_use]
pub fn number(number: Number) -> Value {
    match number {
        Number::Whole(whole) => Value::UInt(whole),
        Number::Real(real) => Value::Double(real),
    }
}

/// What a metric is called and how to read it, without its value.
#[must_use]
pub fn metric(metric: &Metric) -> Vec<(Name, Value)> {
    let labels = metric.labels.iter().map(|(name, value)| (name.to_string(), text(value)));
    vec![
        ("name".into(), text(&metric.name)),
        ("labels".into(), Value::object(labels)),
        ("unit".into(), text(&metric.unit)),
        ("semantics".into(), text(metric.semantics.as_str())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Content, Id, Kind, Outcome, Source};
    use wire::id::{Generation, SensorKey};

    #[test]
    fn an_event_is_written_as_its_type_says() {
        let mut content = Content::new(Kind::JobEnd, Time::from_micros(1_500_000));
        content.outcome = Some(Outcome::Ok);
        content.ended = Some(Time::from_micros(1_250_000));
        content.attributes = vec![
            ("code".into(), event::Value::Text("0".into())),
            ("hosts".into(), event::Value::List(vec!["a".into(), "b".into()])),
            ("raw".into(), event::Value::Bytes(vec![1, 2])),
        ];
        let full = Event {
            id: Id { sensor: SensorKey(1), generation: Generation(2), offset: 3, number: 0 },
            seen: Time::from_micros(2_000_000),
            call: "slurm:1".into(),
            content,
            source: Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        };
        let bare = Event { content: Content::new(Kind::Message, Time::default()), ..full.clone() };
        for one in [full, bare] {
            let typed = rpc::codec::value(&wire::api::events::Event::from(one.clone()), &[]);
            assert_eq!(Ok(event(&one)), typed);
        }
    }
}
