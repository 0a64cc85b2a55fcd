//! Fields of an event, for filters, conditions and scripts.
//!
//! Pure. Rule: names and units are those of `sensor.events`; `name` and `user` may also come from the event's
//! call. Not here: finding a field by name (`fields`).

use super::{Number, Subject, Text, secs};
use std::borrow::Cow;
use wire::channel::stream::Occurrence;
use wire::event::{Kind, Outcome};

/// A text field; an empty text counts as unknown.
macro_rules! text {
    ($name:literal, $help:literal, |$one:ident| $text:expr) => {
        Text { name: $name, help: $help, words: &[], get: |$one| non_empty($text) }
    };
}
pub(super) use text;

/// The events that a sensor finds.
#[derive(Debug)]
pub struct Events;

impl Subject for Events {
    const ONE: &'static str = "an event";
    const HAS_PAST: bool = false;
    const HAS_FAMILY: bool = false;
    type Record = Occurrence;
    type View<'a> = &'a Occurrence;
    type Context = ();

    fn numbers() -> &'static [Number<Events>] {
        &NUMBERS
    }

    fn texts() -> &'static [Text<Events>] {
        &TEXTS
    }

    fn view(record: &Occurrence) -> &Occurrence {
        record
    }
}

pub static NUMBERS: [Number<Events>; 3] = [
    Number {
        name: "time",
        unit: "seconds",
        help: "when, by the log's own account, since 1970",
        get: |one| secs(one.event.content.time),
    },
    Number {
        name: "seen",
        unit: "seconds",
        help: "when the sensor read it, since 1970",
        get: |one| secs(one.event.seen),
    },
    Number {
        name: "delay",
        unit: "seconds",
        help: "from the one to the other",
        get: |one| Some(one.event.seen.secs_f64() - one.event.content.time.secs_f64()),
    },
];

pub static TEXTS: [Text<Events>; 11] = [
    Text {
        name: "kind",
        help: "what happened: job_start, job_end ...",
        words: &KINDS,
        get: |one| Some(one.event.content.kind.as_str().into()),
    },
    text!("call", "the id of its call", |one| &one.event.call),
    text!("job", "the middleware's name of the job", |one| &one.event.content.job),
    text!("name", "what its user named the call, as far as known", |one| &one.name),
    text!("user", "whose, as far as known", |one| &one.user),
    text!("from", "the party that acts", |one| &one.event.content.from),
    text!("to", "the party acted on", |one| &one.event.content.to),
    Text {
        name: "outcome",
        help: "how it ended: ok, failed ...; not known of what ends nothing",
        words: &OUTCOMES,
        get: |one| one.event.content.outcome.map(|outcome| outcome.as_str().into()),
    },
    text!("host", "the host of the log", |one| &one.event.source.host),
    text!("file", "the log", |one| &one.event.source.file),
    text!("filter", "the log filter that found it", |one| &one.event.source.filter),
];

static KINDS: [&str; Kind::ALL.len()] = {
    let mut words = [""; Kind::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = Kind::ALL[at].as_str();
        at += 1;
    }
    words
};

/// The text, or `None` if it is empty.
pub(super) fn non_empty(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

/// All values of an outcome.
pub(super) static OUTCOMES: [&str; Outcome::ALL.len()] = {
    let mut words = [""; Outcome::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = Outcome::ALL[at].as_str();
        at += 1;
    }
    words
};
