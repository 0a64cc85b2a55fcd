//! Method that returns the entries of a subscription: `sensor.take`.
//!
//! Pure. Not here: subscriptions (`channels`), entries in the sensor ([`crate::channel::stream`]).

use super::calls::Call;
use super::events::Event;
use super::metrics::{Metric, Value};
use super::processes::Process;
use super::{Bytes, Effect, Named, Request, Span, Subject, UnixTime};
use crate::channel::stream::{self, Body, Reading, Record};
use crate::sample::Number;
use crate::time::Time;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Entries of an answer by default.
const LIMIT_DEFAULT: u64 = 100;
/// Most entries of an answer.
const LIMIT_MAX: usize = 1_000;

/// Take what waits of a subscription, the oldest first; each entry is given once.
///
/// An answer has at most 10000 processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakeParams {
    /// Which, as sensor.subscribe gave it.
    pub subscription: String,
    /// At most so many entries.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: u64,
    /// How long to wait for a first entry, at most 25 s.
    #[serde(default)]
    pub wait: Span,
    /// The entries in visperf's own form (`packed`) instead of `entries`.
    #[serde(default)]
    pub packed: bool,
}

fn limit_default() -> u64 {
    LIMIT_DEFAULT
}

impl Default for TakeParams {
    fn default() -> TakeParams {
        TakeParams { subscription: String::new(), limit: LIMIT_DEFAULT, wait: Span::default(), packed: false }
    }
}

impl Request for TakeParams {
    const METHOD: &'static str = "sensor.take";
    const EFFECT: Effect = Effect::KeepsForClient;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Taken;
}

/// What was taken of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Taken {
    /// The entries, the oldest first; none where they are in `packed`.
    #[serde(deserialize_with = "entries_at_most")]
    pub entries: Vec<Entry>,
    /// The number of the first entry of the next answer.
    pub next: u64,
    /// Entries that were left out: the sum of the `count` of its entries `missed`.
    pub missed: u64,
    /// Entries that wait still.
    pub waiting: u64,
    /// How often the subscription was altered.
    pub revision: u64,
    /// Of events and calls, from the sensor itself: where sensor.subscribe goes on behind these entries, should the subscription be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether the condition is true, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
    /// Why the subscription was stopped, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// The entries in visperf's own form (postcard), which adjacent versions share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packed: Option<Bytes>,
    /// When the host was booted, from which times within `packed` count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub booted: Option<UnixTime>,
}

/// More are no answer of a daemon: an entry takes more memory than its text.
fn entries_at_most<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    struct Reading;

    impl<'de> Visitor<'de> for Reading {
        type Value = Vec<Entry>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {LIMIT_MAX} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Entry>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = seq.next_element()? {
                if entries.len() == LIMIT_MAX {
                    return Err(A::Error::invalid_length(LIMIT_MAX + 1, &self));
                }
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_seq(Reading)
}

impl Taken {
    /// The entries as sensors have them, where they came packed.
    ///
    /// # Errors
    /// If they are of another version's form.
    pub fn packed_entries(&self) -> Option<Result<Vec<stream::Entry>, postcard::Error>> {
        Some(postcard::from_bytes(&self.packed.as_ref()?.0))
    }

    /// The same answer, with its entries in `entries` where they came packed.
    ///
    /// # Errors
    /// As [`Taken::packed_entries`].
    pub fn unpacked(mut self) -> Result<Taken, postcard::Error> {
        if let Some(entries) = self.packed_entries().transpose()? {
            let booted = self.booted.take().unwrap_or_default().0;
            self.entries = entries.into_iter().map(|entry| Entry::of(entry, booted)).collect();
            self.packed = None;
        }
        Ok(self)
    }
}

/// An entry of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Entry {
    /// Its number. They rise by 1; what was missed stands for `count` numbers, of which this is the first.
    pub number: u64,
    /// How often the subscription was altered before it.
    pub revision: u64,
    /// When: the beginning of the sweep, or when the event was read. What was missed has no one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<UnixTime>,
    /// What it is.
    pub what: EntryKind,
    /// Of a sample: the number of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u64>,
    /// Of a sample that has only changes: the processes that ended, or pass no longer. Where it is left out all that pass are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<Vec<u32>>,
    /// Of a sample of processes: those that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
    /// Of a sample of the host: the metrics that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<Metric>>,
    /// Of a sample: how many more passed, beyond the 10000 that one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u32>,
    /// Of a sample: what the script made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, f64>>")]
    pub figures: Option<Named<Value>>,
    /// An event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Box<Event>>,
    /// What its user named the call of the event, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// Whose the call of the event is, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub user: Option<CompactString>,
    /// A call, as it was known when its state changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Of a signal: whether the condition became true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_true: Option<bool>,
    /// Of a signal: the measure then; left out where there was nothing to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Of what was missed: how many entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of a stop: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A sample of processes or metrics, or what a script made of one.
    Sample,
    /// An event.
    Event,
    /// A call whose state changed.
    Call,
    /// The condition became true, or false again.
    Signal,
    /// Entries that were left out here.
    Missed,
    /// The subscription was stopped; altering it makes it go on.
    Quarantined,
    /// A word that a later version has.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl Entry {
    /// An entry of a host that was booted then.
    #[must_use]
    pub fn of(entry: stream::Entry, booted: Time) -> Entry {
        let stream::Entry { number, revision, at_ns, body } = entry;
        // Dropped entries have no single time.
        let time = (at_ns > 0).then(|| UnixTime(booted.plus(Duration::from_nanos(at_ns))));
        Entry { number, revision, time, ..Entry::of_body(body, booted) }
    }

    fn of_body(body: Body, booted: Time) -> Entry {
        let sample = Entry { what: EntryKind::Sample, ..Entry::default() };
        match body {
            Body::Sample { sweep, gone, records, left_out, figures } => Entry {
                sweep: Some(sweep),
                gone,
                processes: Some(records.iter().map(|record| of_record(record, booted)).collect()),
                left_out: Some(left_out),
                figures: Some(of_figures(figures)),
                ..sample
            },
            Body::Readings { sweep, readings, left_out, figures } => Entry {
                sweep: Some(sweep),
                metrics: Some(readings.iter().map(of_reading).collect()),
                left_out: Some(left_out),
                figures: Some(of_figures(figures)),
                ..sample
            },
            Body::Figures(figures) => Entry { figures: Some(of_figures(figures)), ..sample },
            Body::Event(event) => Entry {
                what: EntryKind::Event,
                name: Some(event.name).filter(|name| !name.is_empty()),
                user: Some(event.user).filter(|user| !user.is_empty()),
                event: Some(Box::new(event.event.into())),
                ..Entry::default()
            },
            Body::Call(change) => Entry {
                what: EntryKind::Call,
                call: Some(Box::new(Call::from(&change.call))),
                ..Entry::default()
            },
            Body::Signal { is_true, value } => Entry {
                what: EntryKind::Signal,
                is_true: Some(is_true),
                value: Some(value).filter(|value| value.is_finite()),
                ..Entry::default()
            },
            Body::Missed(count) => Entry { what: EntryKind::Missed, count: Some(count), ..Entry::default() },
            Body::Quarantined(reason) => {
                Entry { what: EntryKind::Quarantined, reason: Some(reason), ..Entry::default() }
            }
        }
    }
}

fn of_record(record: &Record, booted: Time) -> Process {
    Process { cpu: record.cpu, ..Process::of(&record.process, booted) }
}

fn of_figures(figures: Vec<(CompactString, f64)>) -> Named<Value> {
    Named(figures.into_iter().map(|(name, value)| (name, Value(Number::Real(value)))).collect())
}

fn of_reading(reading: &Reading) -> Metric {
    Metric { value: Some(Value(reading.value)), ..Metric::of(&reading.metric) }
}

#[cfg(test)]
mod tests;
