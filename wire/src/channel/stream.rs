//! Entries of a subscription's stream, numbered.
//!
//! Pure. Rule: numbers have no gaps; entries that were dropped are reported by an entry, too
//! ([`Body::Missed`]), so a reader knows what it has missed.

use crate::call::Call;
use crate::event::Event;
use crate::process::Process;
use crate::sample::{Metric, Number};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Most records of a sample; for a host with more, a filter has to select.
pub const RECORDS_MAX: usize = 10_000;
/// Most figures that a script may compute from a sample.
pub const FIGURES_MAX: usize = 64;

/// A process in a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The process, as the sweep read it.
    pub process: Process,
    /// Share of a core since the previous sample of the subscription; `None` in the first one with the
    /// process.
    pub cpu: Option<f64>,
}

/// A metric in a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The metric.
    pub metric: Metric,
    /// Its value.
    pub value: Number,
}

/// An event in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// Its number in the journal of its sensor.
    pub number: u64,
    /// The event from the log.
    pub event: Event,
    /// The user's name for the call of the event, as far as known then; otherwise empty.
    pub name: CompactString,
    /// The user of the call; the event's own user if it names one.
    pub user: CompactString,
}

/// Change of the state of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Number of the event that changed it, in the journal of the sensor.
    pub number: u64,
    /// The call as known when the entry was sent.
    pub call: Call,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number; of several dropped entries, that of the first.
    pub number: u64,
    /// How often the subscription had been altered before this entry.
    pub revision: u64,
    /// Time in nanoseconds since boot: start of the sweep, or when the event was evaluated.
    pub at_ns: u64,
    /// Content of the entry.
    pub body: Body,
}

/// Content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Processes of a host.
    Sample {
        /// Number of the sweep.
        sweep: u64,
        /// `None`: `records` are all that passed. Otherwise `records` are those that changed since the
        /// previous sample, and these are the pids of processes that were sent before, and have ended or no
        /// longer pass.
        gone: Option<Vec<u32>>,
        /// The records that passed, at most [`RECORDS_MAX`].
        records: Vec<Record>,
        /// Number of records that passed and exceeded the limit.
        left_out: u32,
        /// Figures that the script computed.
        figures: Vec<(CompactString, f64)>,
    },
    /// The condition became true, or false again.
    Signal {
        /// Whether it became true.
        is_true: bool,
        /// Value of the measure at that time.
        value: f64,
    },
    /// Number of entries dropped here.
    Missed(u64),
    /// The subscription was stopped for this reason; altering it starts it again.
    Quarantined(String),
    /// Metrics of a host.
    Readings {
        /// Number of the sweep.
        sweep: u64,
        /// The metrics that passed, at most [`RECORDS_MAX`].
        readings: Vec<Reading>,
        /// Number of metrics that passed and exceeded the limit.
        left_out: u32,
        /// Figures that the script computed.
        figures: Vec<(CompactString, f64)>,
    },
    /// An event that passed.
    Event(Box<Occurrence>),
    /// A call that passed.
    Call(Box<Change>),
    /// Figures that the script computed from the events or calls since the previous entry of this kind.
    Figures(Vec<(CompactString, f64)>),
}

impl Body {
    /// Number of records.
    #[must_use]
    pub fn records(&self) -> usize {
        match self {
            Body::Sample { records, .. } => records.len(),
            Body::Readings { readings, .. } => readings.len(),
            Body::Event(_) | Body::Call(_) => 1,
            Body::Signal { .. } | Body::Missed(_) | Body::Quarantined(_) | Body::Figures(_) => 0,
        }
    }
}
