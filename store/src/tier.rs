//! Tiers: the resolutions at which every metric is stored.
//!
//! Pure. All tiers are written together; a coarser one is the exact merge of the finer one.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::time::Time;

/// A resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Every sample.
    Raw,
    /// Buckets of a minute.
    Minute,
    /// Buckets of an hour.
    Hour,
}

impl Tier {
    /// All tiers, the finest first.
    pub const ALL: [Tier; 3] = [Tier::Raw, Tier::Minute, Tier::Hour];

    /// Name in answers and of the folder: `raw`, `1m`, `1h`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Raw => "raw",
            Tier::Minute => "1m",
            Tier::Hour => "1h",
        }
    }

    /// Length of a bucket; `None` for samples.
    #[must_use]
    pub const fn period(self) -> Option<Duration> {
        match self {
            Tier::Raw => None,
            Tier::Minute => Some(Duration::from_secs(60)),
            Tier::Hour => Some(Duration::from_secs(3600)),
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Start of the span of this length that `time` is in; spans are counted from 1970.
#[must_use]
pub fn floor(time: Time, period: Duration) -> Time {
    let period = i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1);
    Time::from_micros(time.micros().div_euclid(period).saturating_mul(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_start_at_round_times() {
        let minute = Duration::from_secs(60);
        let check = |micros, expected| {
            assert_eq!(floor(Time::from_micros(micros), minute).micros(), expected, "{micros}");
        };
        check(0, 0);
        check(59_999_999, 0);
        check(60_000_000, 60_000_000);
        check(-1, -60_000_000);
    }
}
