//! What comes back from a subscription: entries, each with a number.
//!
//! Pure. Rule: numbers have no gap; what was left out is an entry too ([`Body::Missed`]), so that a reader of a stream knows
//! what it has not seen.

use crate::call::Call;
use crate::event::Event;
use crate::process::Process;
use crate::sample::{Metric, Number};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Most records of a sample; of a host with more a filter has to choose.
pub const RECORDS_MAX: usize = 10_000;
/// Most figures that a script may make of a sample.
pub const FIGURES_MAX: usize = 64;

/// A process in a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// As the sweep saw it.
    pub process: Process,
    /// The share of a core since the subscription's sample before; unknown in the first that has it.
    pub cpu: Option<f64>,
}

/// A metric in a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Which.
    pub metric: Metric,
    /// How much.
    pub value: Number,
}

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// Its number in the journal of its sensor.
    pub number: u64,
    /// What the log says.
    pub event: Event,
    /// What its user named the call of the event, as far as known then; empty if not.
    pub name: CompactString,
    /// The user of the call; the event's own if it names one.
    pub user: CompactString,
}

/// That the state of a call is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number of the event that changed it in the journal of the sensor.
    pub number: u64,
    /// The call as it was known when it was sent.
    pub call: Call,
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number; of several that were missed, that of the first.
    pub number: u64,
    /// How often the subscription had been altered when it came to be.
    pub revision: u64,
    /// When, in nanoseconds since boot: the begin of the sweep, or when the event was looked at.
    pub at_ns: u64,
    /// What.
    pub body: Body,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// What was seen.
    Sample {
        /// The number of the sweep.
        sweep: u64,
        /// None: `records` are all that passed. Else they are those of them that changed since the sample before, and these
        /// are the numbers of processes that were sent before, and have ended or match no longer.
        gone: Option<Vec<u32>>,
        /// The records that passed, at most [`RECORDS_MAX`].
        records: Vec<Record>,
        /// Records that passed and had no place.
        left_out: u32,
        /// What the script made of them.
        figures: Vec<(CompactString, f64)>,
    },
    /// The condition became true, or false again.
    Signal {
        /// Which.
        is_true: bool,
        /// The measure then.
        value: f64,
    },
    /// So many entries were left out here.
    Missed(u64),
    /// The subscription was stopped, for this reason; altering it makes it go on.
    Quarantined(String),
    /// What was seen of a host.
    Readings {
        /// The number of the sweep.
        sweep: u64,
        /// The metrics that passed, at most [`RECORDS_MAX`].
        readings: Vec<Reading>,
        /// Metrics that passed and had no place.
        left_out: u32,
        /// What the script made of them.
        figures: Vec<(CompactString, f64)>,
    },
    /// An event that passed.
    Event(Box<Occurrence>),
    /// A call that passed.
    Call(Box<Change>),
    /// What the script made of the events or calls since the entry of this kind before.
    Figures(Vec<(CompactString, f64)>),
}

impl Body {
    /// How many records it has.
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
