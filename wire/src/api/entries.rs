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

/// Return the waiting entries of a subscription, oldest first, and remove them from its queue.
///
/// Each entry is delivered once. An answer contains at most 10000 processes, unless its first entry alone has
/// more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakeParams {
    /// Id of the subscription, as returned by sensor.subscribe.
    pub subscription: String,
    /// Maximum number of entries.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: u64,
    /// Time to wait for the first entry, at most 25 s.
    #[serde(default)]
    pub wait: Span,
    /// Return the entries in the binary format of visperf (`packed`) instead of `entries`.
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
    type Answer = TakeAnswer;
}

/// Entries taken from a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TakeAnswer {
    /// Entries, oldest first; empty if they are in `packed`.
    #[serde(deserialize_with = "entries_at_most")]
    pub entries: Vec<Entry>,
    /// Number of the first entry of the next answer.
    pub next: u64,
    /// Number of dropped entries: the sum of `count` over the entries of kind `missed`.
    pub missed: u64,
    /// Number of entries left in the queue.
    pub waiting: u64,
    /// Number of times the subscription was altered.
    pub revision: u64,
    /// Cursor for sensor.subscribe to continue after these entries if the subscription is lost. Absent for
    /// kinds other than `event` and `call`, with a script, and if the position is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether the condition is true. Absent without a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<bool>,
    /// Reason why the subscription was stopped. Absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// Entries in the binary format of visperf (postcard), which adjacent versions share. Absent unless
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packed: Option<Bytes>,
    /// Boot time of the host, to which times in `packed` are relative. Absent unless `packed` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub booted: Option<UnixTime>,
}

/// Deserialize at most [`LIMIT_MAX`] entries; more than a daemon sends could exhaust the memory.
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

impl TakeAnswer {
    /// Decode the entries of `packed`; `None` if the answer is not packed.
    ///
    /// # Errors
    /// If another version encoded them in another format.
    pub fn packed_entries(&self) -> Option<Result<Vec<stream::Entry>, postcard::Error>> {
        Some(postcard::from_bytes(&self.packed.as_ref()?.0))
    }

    /// The same answer, with packed entries decoded into `entries`.
    ///
    /// # Errors
    /// As [`TakeAnswer::packed_entries`].
    pub fn unpacked(mut self) -> Result<TakeAnswer, postcard::Error> {
        if let Some(entries) = self.packed_entries().transpose()? {
            let booted = self.booted.take().unwrap_or_default().0;
            self.entries = entries.into_iter().map(|entry| Entry::of(entry, booted)).collect();
            self.packed = None;
        }
        Ok(self)
    }
}

/// Entry of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Entry {
    /// Number of the entry. Numbers increase by 1; an entry of kind `missed` covers `count` numbers, starting
    /// with this one.
    pub number: u64,
    /// Number of times the subscription had been altered before this entry.
    pub revision: u64,
    /// Start of the sweep, or time when the event was evaluated. Absent for entries of kind `missed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<UnixTime>,
    /// Kind of entry.
    pub what: EntryKind,
    /// Number of the sweep. Present in samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u64>,
    /// Process ids that have ended or no longer pass the filter. Present in samples that contain only
    /// changes; absent if the sample lists all processes that pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<Vec<u32>>,
    /// Processes that passed the filter. Present in samples of kind `process`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
    /// Metrics that passed the filter. Present in samples of kind `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<Metric>>,
    /// Number of records that passed and exceed the maximum of 10000 per sample. Present in samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u32>,
    /// Figures computed by the script. Present in samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, f64>>")]
    pub figures: Option<Named<Value>>,
    /// Event. Present in entries of kind `event`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Box<Event>>,
    /// Name given by the user to the call of the event. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// User of the event's call. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub user: Option<CompactString>,
    /// Call, as known when its state changed. Present in entries of kind `call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Whether the condition became true. Present in signals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_true: Option<bool>,
    /// Value of the measure at that time. Present in signals; absent if there was nothing to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Number of dropped entries. Present in entries of kind `missed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Reason why the subscription was stopped. Present in entries of kind `quarantined`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Sample of processes or metrics, or figures computed by a script.
    Sample,
    /// Event.
    Event,
    /// Call whose state changed.
    Call,
    /// The condition became true, or false again.
    Signal,
    /// Entries were dropped here.
    Missed,
    /// The subscription was stopped; sensor.alter resumes it.
    Quarantined,
    /// Kind that only a later version knows.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl Entry {
    /// Convert an entry; `booted` is the boot time of the host.
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
