//! How fast a filter is, and whether it may go on.
//!
//! Pure: the shell measures the time. Rule: a filter is judged by stretches of at least [`STRETCH_BYTES`]
//! or [`STRETCH`] of work; one slower than the threshold for [`PATIENCE`] of work, stretch after stretch, is in quarantine for
//! the rest of this run. A machine that stands still for a moment makes one stretch slow, not several.

use std::time::Duration;

/// Slowest filter that is let go on, in bytes each second, unless configured otherwise.
pub const BYTES_PER_SEC_MIN: u64 = 5_000_000;

/// A stretch is over after so many bytes.
pub const STRETCH_BYTES: u64 = 1 << 20;

/// A stretch is over after so much work.
pub const STRETCH: Duration = Duration::from_millis(200);

/// So much slow work without a better stretch in between is the filter's doing.
pub const PATIENCE: Duration = Duration::from_millis(800);

/// The meter of one filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    bytes: u64,
    work: Duration,
    /// Work of slow stretches in a row.
    slow: Duration,
    too_slow: Option<u64>,
}

impl Meter {
    /// Add a stretch of work; the filter's speed in bytes each second if it goes into quarantine by it.
    pub fn add(&mut self, bytes: u64, work: Duration, bytes_per_sec_min: u64) -> Option<u64> {
        self.bytes += bytes;
        self.work += work;
        if self.too_slow.is_some() || (self.bytes < STRETCH_BYTES && self.work < STRETCH) {
            return None;
        }
        let (bytes, work) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.work));
        let micros = u64::try_from(work.as_micros()).unwrap_or(u64::MAX).max(1);
        let speed = bytes.saturating_mul(1_000_000) / micros;
        self.slow = if speed < bytes_per_sec_min { self.slow + work } else { Duration::ZERO };
        self.too_slow = (self.slow >= PATIENCE).then_some(speed);
        self.too_slow
    }

    /// Whether the filter is in quarantine, and the speed that brought it there, in bytes each second.
    #[must_use]
    pub fn too_slow(&self) -> Option<u64> {
        self.too_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_filter_is_found_out_after_a_stretch_and_told_once() {
        let mut meter = Meter::default();
        assert_eq!(meter.add(100_000, PATIENCE - STRETCH, BYTES_PER_SEC_MIN), None);
        assert_eq!(meter.add(100_000, Duration::from_millis(150), BYTES_PER_SEC_MIN), None);
        assert_eq!(meter.add(100_000, Duration::from_millis(50), BYTES_PER_SEC_MIN), Some(1_000_000));
        assert_eq!(meter.add(1, Duration::from_secs(1), BYTES_PER_SEC_MIN), None);
        assert_eq!(meter.too_slow(), Some(1_000_000));
    }

    #[test]
    fn a_machine_that_stands_still_for_a_moment_stops_no_filter() {
        let mut meter = Meter::default();
        for _ in 0..10 {
            assert_eq!(meter.add(10, PATIENCE - STRETCH, BYTES_PER_SEC_MIN), None);
            assert_eq!(meter.add(STRETCH_BYTES, STRETCH / 10, BYTES_PER_SEC_MIN), None);
        }
        assert_eq!(meter.too_slow(), None);
    }

    #[test]
    fn a_fast_filter_is_never_stopped_and_one_pause_is_forgiven_by_the_next_stretch() {
        let mut meter = Meter::default();
        for _ in 0..100 {
            assert_eq!(meter.add(256 << 10, Duration::from_millis(2), BYTES_PER_SEC_MIN), None);
        }
        assert_eq!(meter.too_slow(), None);
    }
}
