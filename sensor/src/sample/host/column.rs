//! What a column of the kernel's text is called and how its numbers are to be read.
//!
//! Pure.

use crate::sample::table;
use std::sync::Arc;
use wire::sample::{Metric, Number, Semantics};

/// Ticks of a second in `/proc/stat`: part of Linux's binary interface, the same on every architecture
/// that visperf is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes of a sector in `/proc/diskstats`, whatever the disk's own sectors are.
const SECTOR_LEN_BYTES: u64 = 512;

/// How a raw number becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// It is the value.
    Count,
    /// Sectors; told in bytes.
    Sectors,
    /// Kibibytes; told in bytes.
    Kibibytes,
    /// Clock ticks; told in seconds.
    Ticks,
    /// Milliseconds; told in seconds.
    Millis,
    /// Microseconds; told in seconds.
    Micros,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// node_exporter's name.
    pub name: &'static str,
    /// The unit of the value, empty for a count.
    pub unit: &'static str,
    /// How to read the value.
    pub semantics: Semantics,
    /// How to get it.
    pub raw: Raw,
}

impl Column {
    /// A counter.
    #[must_use]
    pub const fn counter(name: &'static str, unit: &'static str, raw: Raw) -> Column {
        Column { name, unit, semantics: Semantics::Counter, raw }
    }

    /// A gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, unit: &'static str, raw: Raw) -> Column {
        Column { name, unit, semantics: Semantics::Gauge, raw }
    }

    /// The metric of this column for the thing that the labels name.
    #[must_use]
    pub fn metric(&self, labels: &[(&str, &str)]) -> Arc<Metric> {
        table::metric(self.name, self.unit, self.semantics, labels)
    }
}

impl Raw {
    /// The value of a raw number.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Times are measures; counts and bytes stay whole.
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
