//! Column of a kernel text: the metric of its numbers and their unit.
//!
//! Pure.

use crate::sample::table;
use std::sync::Arc;
use wire::sample::{Metric, Number, Semantics};

/// Ticks per second in `/proc/stat`: part of Linux's binary interface, the same on every architecture that
/// visperf is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes per sector in `/proc/diskstats`, whatever the sector size of the disk is.
const SECTOR_LEN_BYTES: u64 = 512;

/// Unit of a raw number, and its conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A plain number; not converted.
    Count,
    /// Sectors; converted to bytes.
    Sectors,
    /// Kibibytes; converted to bytes.
    Kibibytes,
    /// Clock ticks; converted to seconds.
    Ticks,
    /// Milliseconds; converted to seconds.
    Millis,
    /// Microseconds; converted to seconds.
    Micros,
}

/// Metric and unit of one column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name of the metric, as in node_exporter.
    pub name: &'static str,
    /// Unit of the metric, empty for a count.
    pub unit: &'static str,
    /// Whether the value is a counter or a gauge.
    pub semantics: Semantics,
    /// Unit of the raw number.
    pub raw: Raw,
}

impl Column {
    /// Creates the column of a counter.
    #[must_use]
    pub const fn counter(name: &'static str, unit: &'static str, raw: Raw) -> Column {
        Column { name, unit, semantics: Semantics::Counter, raw }
    }

    /// Creates the column of a gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, unit: &'static str, raw: Raw) -> Column {
        Column { name, unit, semantics: Semantics::Gauge, raw }
    }

    /// Returns the metric of this column for the object that the labels name.
    #[must_use]
    pub fn metric(&self, labels: &[(&str, &str)]) -> Arc<Metric> {
        table::metric(self.name, self.unit, self.semantics, labels)
    }
}

impl Raw {
    /// Converts a raw number to the value.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Times are real numbers; counts and bytes stay whole.
    pub fn value(self, raw: u64) -> Number {
        match self {
            Raw::Count => Number::Whole(raw),
            Raw::Sectors => Number::Whole(raw.saturating_mul(SECTOR_LEN_BYTES)),
            Raw::Kibibytes => Number::Whole(raw.saturating_mul(1024)),
            Raw::Ticks => Number::Real(raw as f64 / TICKS_PER_SECOND),
            Raw::Millis => Number::Real(raw as f64 / 1e3),
            Raw::Micros => Number::Real(raw as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_numbers_become_base_units() {
        for (raw, number, expected) in [
            (Raw::Count, u64::MAX, Number::Whole(u64::MAX)),
            (Raw::Sectors, 3, Number::Whole(1536)),
            (Raw::Sectors, u64::MAX, Number::Whole(u64::MAX)),
            (Raw::Kibibytes, 7, Number::Whole(7168)),
            (Raw::Ticks, 12_345, Number::Real(123.45)),
            (Raw::Millis, 1500, Number::Real(1.5)),
            (Raw::Micros, 1, Number::Real(1e-6)),
        ] {
            assert_eq!(raw.value(number), expected, "{raw:?}");
        }
    }
}
