//! Samples: a metric's value at a moment.
//!
//! Pure. Names and units are node_exporter's where one exists (Prometheus naming: base units, `_total`
//! for counters).

use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// How a metric's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// Only grows, but for a restart; its rate has a meaning.
    Counter,
    /// Goes up and down.
    Gauge,
    /// One of a few states, as a number.
    State,
}

impl Semantics {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Semantics::Counter => "counter",
            Semantics::Gauge => "gauge",
            Semantics::State => "state",
        }
    }
}

/// A value. Whole numbers stay whole: a 64-bit byte counter must not lose its low bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// A whole number, as kernels count.
    Whole(u64),
    /// A measure.
    Real(f64),
}

impl Number {
    /// The nearest double.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Real(real) => real,
        }
    }
}

/// One metric of one host: what it is called and how to read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Metric {
    /// node_exporter's name, such as `node_cpu_seconds_total`.
    pub name: CompactString,
    /// What sets it apart from its siblings, such as `cpu` = `0`, `mode` = `user`; sorted by name.
    pub labels: Vec<(CompactString, CompactString)>,
    /// Unit of the value: `seconds`, `bytes`, `ratio`, or empty for a plain count.
    pub unit: CompactString,
    /// How to read it.
    pub semantics: Semantics,
}

/// A metric's value at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Of what.
    pub metric: Metric,
    /// How much.
    pub value: Number,
    /// When it was read.
    pub time: Time,
}
