//! Time in messages: microseconds since 1970-01-01T00:00:00Z, signed, without leap seconds; and moments on a
//! clock that never goes back, for leases and timeouts.
//!
//! Pure: it has no clock; callers read one and pass the value.
//! Not here: dates as logs print them (`log_filters::timestamp`).

use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    /// From whole microseconds since 1970.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    /// From seconds since 1970, rounded to the microsecond; values out of range are clamped.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn from_secs_f64(secs: f64) -> Time {
        Time((secs * 1e6).round() as i64)
    }

    /// Whole microseconds since 1970.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Seconds since 1970 with microseconds: the form in which scripts receive times.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This moment plus `span`, clamped to the end of the range.
    #[must_use]
    pub fn plus(self, span: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// This moment minus `span`, clamped to the start of the range.
    #[must_use]
    pub fn minus(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl From<SystemTime> for Time {
    fn from(at: SystemTime) -> Time {
        match at.duration_since(UNIX_EPOCH) {
            Ok(after) => Time(i64::try_from(after.as_micros()).unwrap_or(i64::MAX)),
            Err(before) => {
                Time(i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros))
            }
        }
    }
}

/// A moment on one host's clock that never goes back, including suspension: time since some fixed start. It
/// has no meaning on another host, so it is never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl Moment {
    /// This moment plus `span`.
    #[must_use]
    pub fn plus(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(span))
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_their_microseconds() {
        for micros in [0, 1, -1, 1_795_178_489_123_456, -86_400_000_001] {
            assert_eq!(Time::from_secs_f64(Time::from_micros(micros).secs_f64()).micros(), micros);
        }
    }

    #[test]
    fn moments_before_1970_are_negative() {
        assert_eq!(Time::from(UNIX_EPOCH - Duration::from_micros(5)).micros(), -5);
    }
}
