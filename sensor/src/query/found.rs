//! Events that were found, as they are answered: values, or at once the text of the document that is asked for.
//!
//! Pure. Rule: both say the same, to the bit.
//! Not here: finding them (`events`, `domain_events`), what is told of one (`shape`).

use super::shape;
use rpc::members::{List, Members};
use rpc::value::Value;
use rpc::written::Answered;
use wire::event::Event;
use wire::query::Form;

/// The name of their list.
const EVENTS: &str = "events";

/// Some of them, in order.
pub(super) enum Found {
    Values(Vec<Value>),
    Texts(List),
}

impl Found {
    /// None yet, for a document in `form`, if one is asked for.
    pub(super) fn new(form: Option<Form>) -> Found {
        form.map_or_else(|| Found::Values(Vec::new()), |form| Found::Texts(List::new(form, EVENTS)))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Found::Values(values) => values.len(),
            Found::Texts(list) => list.len(),
        }
    }

    /// One more, whose call is known as `call`.
    pub(super) fn add(&mut self, event: &Event, call: &str) {
        match self {
            Found::Values(values) => {
                let mut members = Vec::new();
                shape::fill_event(event, call, &mut members);
                values.push(Value::Struct(members));
            }
            Found::Texts(list) => list.add(|members| shape::fill_event(event, call, members)),
        }
    }

    /// Those of `other`, of the same form, behind these.
    pub(super) fn append(&mut self, other: Found) {
        match (self, other) {
            (Found::Values(values), Found::Values(more)) => values.extend(more),
            (Found::Texts(list), Found::Texts(more)) => list.append(&more),
            (Found::Values(_), Found::Texts(_)) | (Found::Texts(_), Found::Values(_)) => {
                unreachable!("all parts of an answer are of the form that was asked for")
            }
        }
    }

    /// The answer that they are.
    pub(super) fn answer(self, rest: &Rest<'_>) -> Answered {
        match self {
            Found::Values(values) => {
                let mut members = vec![(EVENTS.into(), Value::Array(values))];
                rest.fill(&mut members);
                Answered::Value(Value::Struct(members))
            }
            Found::Texts(list) => Answered::Written(list.document(|members| rest.fill(members)).into()),
        }
    }
}

/// What is answered beside them.
pub(super) struct Rest<'a> {
    pub(super) cursor: String,
    pub(super) missed: u64,
    /// Hosts that are away and told nothing.
    pub(super) unheard: &'a [String],
}

impl Rest<'_> {
    fn fill(&self, members: &mut impl Members) {
        members.text("cursor", &self.cursor);
        members.whole("missed", self.missed);
        if !self.unheard.is_empty() {
            members.texts("unheard", self.unheard.iter().map(String::as_str));
        }
    }
}
