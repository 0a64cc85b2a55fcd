//! Samples: the value of a metric at a moment.
//!
//! Pure. Names and units are node_exporter's where one exists (Prometheus naming: base units, `_total` for
//! counters).

use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Meaning of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// Only increases, except at a restart; its rate has a meaning.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// One of a few states, as a number.
    State,
}

impl Semantics {
    /// The meaning as text.
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
    /// A floating-point measure.
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

/// One metric of one host: its name and meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Metric {
    /// node_exporter's name, such as `node_cpu_seconds_total`.
    pub name: CompactString,
    /// Labels that distinguish it from others of the same name, such as `cpu` = `0`, `mode` = `user`; sorted
    /// by name.
    pub labels: Vec<(CompactString, CompactString)>,
    /// Unit of the value: `seconds`, `bytes`, `ratio`, or empty for a plain count.
    pub unit: CompactString,
    /// Meaning of the values.
    pub semantics: Semantics,
}

/// A metric's value at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The metric.
    pub metric: Metric,
    /// Its value.
    pub value: Number,
    /// Time of reading.
    pub time: Time,
}
