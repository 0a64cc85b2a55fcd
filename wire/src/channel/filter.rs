//! What passes a channel, and what is signalled on it.
//!
//! Pure. Fields are named, as the source that evaluates this knows them.
//! Not here: how it is written (`expression`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most predicates of a filter: each costs at every process.
pub const PREDICATES_MAX: usize = 16;
/// Longest a condition may be asked to hold before it is signalled, in seconds.
pub const HOLD_MAX_SECS: f64 = 3600.0;

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// More than it.
    Above,
    /// It or more.
    AtLeast,
    /// Less than it.
    Below,
    /// It or less.
    AtMost,
    /// It.
    Equal,
    /// Another.
    Other,
}

impl Comparison {
    /// Whether `value` stands so to `bound`.
    #[must_use]
    #[allow(clippy::float_cmp)] // That is what was asked for; whole numbers below 2^53 are exact.
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

/// What a record must be to pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Predicate {
    /// A number against a bound: `cpu > 0.5`.
    Threshold {
        /// The field.
        field: CompactString,
        /// How.
        comparison: Comparison,
        /// Against what.
        bound: f64,
    },
    /// A number differs by more than so much from what was last sent of this process: `rss_bytes changes by 1M`.
    Changes {
        /// The field.
        field: CompactString,
        /// More than so much.
        by: f64,
    },
    /// How much a number grows in a second, against a bound: `rate of read_bytes > 1M`.
    Growth {
        /// The field.
        field: CompactString,
        /// How.
        comparison: Comparison,
        /// Against what, a second.
        bound: f64,
    },
    /// A text contains what a regular expression describes, or does not: `name ~ "^slurm"`.
    Matches {
        /// The field.
        field: CompactString,
        /// The expression.
        pattern: CompactString,
        /// False: it must not.
        is_wanted: bool,
    },
    /// A text is this one, or is not: `state = "running"`.
    Is {
        /// The field.
        field: CompactString,
        /// The text.
        text: CompactString,
        /// False: it must not be.
        is_wanted: bool,
    },
    /// It is the parent of the process of this number: `parent of 4711`.
    ParentOf(u32),
    /// The process of this number is its parent: `child of 4711`.
    ChildOf(u32),
}

/// The N that have most of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    /// N.
    pub count: u32,
    /// By which number.
    pub field: CompactString,
}

/// What passes: the records that fit all predicates, and of these the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// All must hold; at most [`PREDICATES_MAX`].
    pub predicates: Vec<Predicate>,
    /// Only these of those that fit, the most first.
    pub top: Option<Top>,
}

/// A number of a whole sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// How many records there are.
    Count,
    /// The sum of a field over the records.
    Sum(CompactString),
    /// The largest.
    Max(CompactString),
    /// The smallest.
    Min(CompactString),
    /// The mean.
    Mean(CompactString),
}

/// Something that becomes true and false again, each of which is signalled: with hysteresis, so that a measure at the
/// threshold does not signal all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Of the records that passed the filter.
    pub measure: Measure,
    /// Whether it is true when the measure is high; else when it is low.
    pub is_high: bool,
    /// True from beyond this on.
    pub on: f64,
    /// False again from back at this; on the other side of `on`, or the same.
    pub off: f64,
    /// A change must have lasted so many seconds before it is signalled.
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
