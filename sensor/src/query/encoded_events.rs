//! Events of an answer, encoded while they are collected: as values, or as text of the requested document.
//!
//! Pure. Not here: the search (`events`, `domain_events`), the fields of an event (`wire::api`).

use rpc::codec::value::Value;
use rpc::codec::{self, Items};
use rpc::dispatch::encoded_answer::Answered;
use rpc::fault::Fault;
use serde::Serialize;
use wire::api::events::EventRef;
use wire::event::Event;
use wire::query::Form;

/// Name of the list of events in the answer.
const EVENTS: &str = "events";

/// Encoded events, in order.
pub(super) enum EncodedEvents {
    Values(Vec<Value>),
    Texts(Items),
}

impl EncodedEvents {
    /// Creates an empty list for a document in `form`, if one is requested.
    pub(super) fn new(form: Option<Form>) -> EncodedEvents {
        form.map_or_else(
            || EncodedEvents::Values(Vec::new()),
            |form| EncodedEvents::Texts(Items::new(form, EVENTS)),
        )
    }

    pub(super) fn len(&self) -> usize {
        match self {
            EncodedEvents::Values(values) => values.len(),
            EncodedEvents::Texts(items) => items.len(),
        }
    }

    /// Adds an event of the call `call`.
    pub(super) fn add(&mut self, event: &Event, call: &str) {
        let event = EventRef::new(event, call);
        match self {
            EncodedEvents::Values(values) => values.push(codec::value(&event, &[]).expect(WRITTEN)),
            EncodedEvents::Texts(items) => items.add(&event).expect(WRITTEN),
        }
    }

    /// Appends the events of `other`, which has the same form.
    pub(super) fn append(&mut self, other: EncodedEvents) {
        match (self, other) {
            (EncodedEvents::Values(values), EncodedEvents::Values(more)) => values.extend(more),
            (EncodedEvents::Texts(items), EncodedEvents::Texts(more)) => items.append(&more),
            (EncodedEvents::Values(_), EncodedEvents::Texts(_))
            | (EncodedEvents::Texts(_), EncodedEvents::Values(_)) => {
                unreachable!("all parts of an answer are of the form that was asked for")
            }
        }
    }

    /// Builds the answer.
    pub(super) fn answer(self, rest: &AnswerFields<'_>) -> Result<Answered, Fault> {
        let answered = match self {
            EncodedEvents::Values(events) => codec::value(rest, &[]).map(|mut answer| {
                if let Value::Struct(members) = &mut answer {
                    members.insert(0, (EVENTS.into(), Value::Array(events)));
                }
                Answered::Value(answer)
            }),
            EncodedEvents::Texts(items) => items.document(rest).map(|text| Answered::Written(text.into())),
        };
        answered.map_err(|error| Fault::internal(error.to_string()))
    }
}

/// Expectation on the type of an event.
const WRITTEN: &str = "its maps have texts as keys";

/// The other fields of the answer, as in [`wire::api::events::Events`].
#[derive(Serialize)]
pub(super) struct AnswerFields<'a> {
    pub(super) cursor: String,
    pub(super) missed: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) unheard: &'a [String],
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize as _;
    use wire::api::events::{Event as Shown, Events};
    use wire::event::{Content, Id, Kind, Source};
    use wire::id::{Generation, SensorKey};
    use wire::query::{Integers, Syntax};
    use wire::time::Time;

    #[test]
    fn an_answer_is_of_its_type_in_every_form() {
        let event = |number| Event {
            id: Id { sensor: SensorKey(1), generation: Generation(2), offset: 3, number },
            seen: Time::from_micros(2_000_000),
            call: "slurm:1".into(),
            content: Content::new(Kind::JobEnd, Time::from_micros(1_500_000)),
            source: Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        };
        let (events, unheard) = ([event(0), event(1)], ["wn01".to_owned()]);
        let expected = Events {
            events: events.iter().map(|event| Shown::from(event.clone())).collect(),
            cursor: "c".to_owned(),
            missed: 7,
            unheard: unheard.to_vec(),
        };
        let answer = |form| {
            let (mut found, mut more) = (EncodedEvents::new(form), EncodedEvents::new(form));
            found.add(&events[0], &events[0].call);
            more.add(&events[1], &events[1].call);
            found.append(more);
            assert_eq!(found.len(), 2);
            found.answer(&AnswerFields { cursor: "c".to_owned(), missed: 7, unheard: &unheard })
        };
        let Ok(Answered::Value(value)) = answer(None) else { panic!("no form was asked for") };
        assert_eq!(Events::deserialize(codec::Source(&value)), Ok(expected.clone()));
        for syntax in [Syntax::Json, Syntax::Xml] {
            let form = Form { syntax, integers: Integers::Number };
            let Ok(Answered::Written(text)) = answer(Some(form)) else { panic!("a document was asked for") };
            assert_eq!(
                codec::document(form, &expected, &[]),
                Ok(String::from_utf8(text.to_vec()).expect("text"))
            );
        }
    }
}
