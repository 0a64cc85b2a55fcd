//! Fields of a call, for filters, conditions and scripts.
//!
//! Pure. Rule: names and units are those of `sensor.calls`. Not here: finding a field by name (`fields`).

use super::event::{OUTCOMES, non_empty, text};
use super::{Number, Subject, Text, secs};
use std::borrow::Cow;
use wire::call::State;
use wire::channel::stream::Change;
use wire::time::Time;

/// The calls that a sensor knows.
#[derive(Debug)]
pub struct Calls;

impl Subject for Calls {
    const ONE: &'static str = "a call";
    const HAS_PAST: bool = false;
    const HAS_FAMILY: bool = false;
    type Record = Change;
    type View<'a> = &'a Change;
    type Context = ();

    fn numbers() -> &'static [Number<Calls>] {
        &NUMBERS
    }

    fn texts() -> &'static [Text<Calls>] {
        &TEXTS
    }

    fn view(record: &Change) -> &Change {
        record
    }
}

pub static NUMBERS: [Number<Calls>; 7] = [
    number("submitted", "seconds", "when it was handed in, since 1970", |one| {
        one.call.submitted.and_then(secs)
    }),
    number("started", "seconds", "when the work began, since 1970", |one| one.call.started.and_then(secs)),
    number("ended", "seconds", "when it was over, since 1970", |one| one.call.ended.and_then(secs)),
    number("waited", "seconds", "from when it was handed in until the work began", |one| {
        between(one.call.submitted, one.call.started)
    }),
    number("ran", "seconds", "from when the work began until it was over", |one| {
        between(one.call.started, one.call.ended)
    }),
    number("tries", "", "how often it was started", |one| Some(one.call.tries.into())),
    number("events", "", "how many events it has", |one| Some(one.call.events.into())),
];

pub static TEXTS: [Text<Calls>; 11] = [
    text!("id", "its id", |one| &one.call.id),
    text!("job", "the middleware's name of the job", |one| &one.call.job),
    text!("name", "what its user named it", |one| &one.call.name),
    text!("user", "whose", |one| &one.call.user),
    text!("from", "who asked: client or submit host", |one| &one.call.from),
    Text {
        name: "state",
        help: "waiting, running or ended",
        words: &STATES,
        get: |one| Some(one.call.state.as_str().into()),
    },
    Text {
        name: "outcome",
        help: "how it ended: ok, failed ...; not known of one that has not",
        words: &OUTCOMES,
        get: |one| one.call.outcome.map(|outcome| outcome.as_str().into()),
    },
    Text {
        name: "hosts",
        help: "the hosts it ran on, with commas between them",
        words: &[],
        get: |one| (!one.call.hosts.is_empty()).then(|| Cow::Owned(one.call.hosts.join(","))),
    },
    text!("code", "its exit code as printed", |one| &one.call.code),
    text!("signal", "the signal as printed", |one| &one.call.signal),
    text!("reason", "why it waits or ended as it did", |one| &one.call.reason),
];

static STATES: [&str; State::ALL.len()] =
    [State::ALL[0].as_str(), State::ALL[1].as_str(), State::ALL[2].as_str()];

const fn number(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    get: fn(&&Change) -> Option<f64>,
) -> Number<Calls> {
    Number { name, unit, help, get }
}

fn between(from: Option<Time>, to: Option<Time>) -> Option<f64> {
    Some(to?.secs_f64() - from?.secs_f64())
}
