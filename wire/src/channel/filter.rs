//! Filter and condition of a channel: which records are sent, and what is signalled.
//!
//! Pure. Fields have the names that the evaluating source uses. Not here: the text syntax (`expression`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most predicates of a filter: each costs time for every process.
pub const PREDICATES_MAX: usize = 16;
/// Longest time in seconds that a condition may have to last before it is signalled.
pub const HOLD_MAX_SECS: f64 = 3600.0;

/// Comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Greater than.
    Above,
    /// Greater than or equal.
    AtLeast,
    /// Less than.
    Below,
    /// Less than or equal.
    AtMost,
    /// Equal.
    Equal,
    /// Not equal.
    Other,
}

impl Comparison {
    /// Whether the comparison of `value` with `bound` is true.
    #[must_use]
    #[allow(clippy::float_cmp)] // Exact comparison was requested; whole numbers below 2^53 are exact.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Above => value > bound,
            Comparison::AtLeast => value >= bound,
            Comparison::Below => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::Equal => value == bound,
            Comparison::Other => value != bound,
        }
    }
}

/// Predicate of a filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Predicate {
    /// Compares a number with a bound: `cpu > 0.5`.
    Threshold {
        /// Name of the field.
        field: CompactString,
        /// Kind of comparison.
        comparison: Comparison,
        /// Number to compare with.
        bound: f64,
    },
    /// A number differs by more than an amount from what was last sent of this process:
    /// `rss_bytes changes by 1M`.
    Changes {
        /// Name of the field.
        field: CompactString,
        /// Difference that must be exceeded.
        by: f64,
    },
    /// Compares the increase of a number per second with a bound: `rate of read_bytes > 1M`.
    Growth {
        /// Name of the field.
        field: CompactString,
        /// Kind of comparison.
        comparison: Comparison,
        /// Rate to compare with, per second.
        bound: f64,
    },
    /// A text matches a regular expression, or does not: `name ~ "^slurm"`.
    Matches {
        /// Name of the field.
        field: CompactString,
        /// The regular expression.
        pattern: CompactString,
        /// Whether it must match, or must not.
        is_wanted: bool,
    },
    /// A text is equal to another, or is not: `state = "running"`.
    Is {
        /// Name of the field.
        field: CompactString,
        /// The text to compare with.
        text: CompactString,
        /// Whether it must be equal, or must not.
        is_wanted: bool,
    },
    /// The parent of the process with this pid: `parent of 4711`.
    ParentOf(u32),
    /// The children of the process with this pid: `child of 4711`.
    ChildOf(u32),
}

/// The N records with the largest value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    /// Number of records.
    pub count: u32,
    /// Name of the field.
    pub field: CompactString,
}

/// Filter: selects the records that satisfy all predicates, and of these the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// All must be satisfied; at most [`PREDICATES_MAX`].
    pub predicates: Vec<Predicate>,
    /// Limits the result to the records with the largest values.
    pub top: Option<Top>,
}

/// A number computed from a whole sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Number of records.
    Count,
    /// Sum of a field over the records.
    Sum(CompactString),
    /// Largest value of a field.
    Max(CompactString),
    /// Smallest value of a field.
    Min(CompactString),
    /// Mean of a field.
    Mean(CompactString),
}

/// Condition whose changes between true and false are signalled, with hysteresis, so that a measure near the
/// threshold does not signal all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The measure, over the records that passed the filter.
    pub measure: Measure,
    /// Whether the condition is true when the measure is high, or when it is low.
    pub is_high: bool,
    /// Threshold beyond which it becomes true.
    pub on: f64,
    /// Threshold at which it becomes false again; on the other side of `on`, or equal to it.
    pub off: f64,
    /// Time in seconds that a change must last before it is signalled.
    pub hold_secs: f64,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Above => ">",
            Comparison::AtLeast => ">=",
            Comparison::Below => "<",
            Comparison::AtMost => "<=",
            Comparison::Equal => "=",
            Comparison::Other => "!=",
        })
    }
}
