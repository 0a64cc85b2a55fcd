//! Speed meter of a filter, and its quarantine.
//!
//! Pure: the shell measures the time. Rule: the speed is measured in stretches of at least
//! [`STRETCH_BYTES`] or [`STRETCH`] of work; a filter that is slower than the threshold for [`PATIENCE`] of
//! work, stretch after stretch, is put in quarantine. It is tried again after [`REST`], and after twice as
//! long each time that it is slow again. A machine that stalls for a moment makes one stretch slow, not
//! several; and the fixed cost of each reading, [`READING`], is not counted: it would make the filter of a
//! log that grows line by line on a busy machine look slow.

use std::time::Duration;

/// Least speed of a filter, in bytes each second, unless configured otherwise.
pub const BYTES_PER_SEC_MIN: u64 = 5_000_000;

/// A stretch ends after so many bytes.
pub const STRETCH_BYTES: u64 = 1 << 20;

/// A stretch ends after so much work.
pub const STRETCH: Duration = Duration::from_millis(200);

/// So much slow work without a fast stretch in between is caused by the filter.
pub const PATIENCE: Duration = Duration::from_millis(800);

/// Fixed cost of a reading, at most: caches that other programs filled meanwhile. A filter that takes this
/// long for each of a hundred lines a second takes a twentieth of a core, and many lines at once are one
/// reading.
pub const READING: Duration = Duration::from_micros(500);

/// Length of the first quarantine.
pub const REST: Duration = Duration::from_secs(60);

/// The quarantine is doubled so often at most: to an hour and some minutes, then the filter is tried for
/// [`PATIENCE`].
const DOUBLINGS_MAX: u32 = 6;

/// Speed meter of one filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    bytes: u64,
    work: Duration,
    /// Work of slow stretches in a row.
    slow: Duration,
    quarantine: Option<Quarantine>,
    /// How often it was put in quarantine without a fast stretch since.
    times: u32,
}

/// Why a filter is in quarantine, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quarantine {
    bytes_per_sec: u64,
    until: Duration,
}

impl Meter {
    /// Add the work of a reading that ended at `now`. Returns the filter's speed in bytes each second if
    /// that puts it in quarantine.
    pub fn add(&mut self, bytes: u64, work: Duration, bytes_per_sec_min: u64, now: Duration) -> Option<u64> {
        self.bytes += bytes;
        self.work += work.saturating_sub(READING);
        if self.too_slow(now).is_some() || (self.bytes < STRETCH_BYTES && self.work < STRETCH) {
            return None;
        }
        let (bytes, work) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.work));
        let micros = u64::try_from(work.as_micros()).unwrap_or(u64::MAX).max(1);
        let speed = bytes.saturating_mul(1_000_000) / micros;
        if speed >= bytes_per_sec_min {
            (self.slow, self.times) = (Duration::ZERO, 0);
            return None;
        }
        self.slow += work;
        if self.slow < PATIENCE {
            return None;
        }
        let until = now + REST * 2_u32.pow(self.times.min(DOUBLINGS_MAX));
        self.quarantine = Some(Quarantine { bytes_per_sec: speed, until });
        (self.slow, self.times) = (Duration::ZERO, self.times.saturating_add(1));
        Some(speed)
    }

    /// The speed that put the filter in quarantine, in bytes each second, if it is in quarantine at `now`.
    #[must_use]
    pub fn too_slow(&self, now: Duration) -> Option<u64> {
        self.quarantine.filter(|quarantine| now < quarantine.until).map(|quarantine| quarantine.bytes_per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    #[test]
    fn a_slow_filter_is_found_out_after_a_stretch_and_reported_once() {
        let mut meter = Meter::default();
        let mut add = |work: Duration| meter.add(100_000, work + READING, BYTES_PER_SEC_MIN, START);
        assert_eq!(add(PATIENCE - STRETCH), None);
        assert_eq!(add(Duration::from_millis(150)), None);
        assert_eq!(add(Duration::from_millis(50)), Some(1_000_000));
        assert_eq!(meter.add(1, Duration::from_secs(1), BYTES_PER_SEC_MIN, START), None);
        assert_eq!(meter.too_slow(START), Some(1_000_000));
    }

    #[test]
    fn it_is_tried_again_after_ever_longer_rests_until_it_is_fast() {
        let slow = |meter: &mut Meter, now| meter.add(100_000, PATIENCE + READING, BYTES_PER_SEC_MIN, now);
        let (mut meter, mut now) = (Meter::default(), START);
        for rests in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(slow(&mut meter, now).is_some(), "after {rests}");
            now += REST * rests;
            assert!(meter.too_slow(now - Duration::from_micros(1)).is_some(), "{rests}");
            assert_eq!(meter.too_slow(now), None, "{rests}");
        }
        assert_eq!(meter.add(STRETCH_BYTES, STRETCH / 10, BYTES_PER_SEC_MIN, now), None);
        assert!(slow(&mut meter, now).is_some());
        assert_eq!(meter.too_slow(now + REST), None, "what was before is forgiven");
    }

    #[test]
    fn a_machine_that_stands_still_for_a_moment_stops_no_filter() {
        let mut meter = Meter::default();
        for _ in 0..10 {
            assert_eq!(meter.add(10, PATIENCE - STRETCH, BYTES_PER_SEC_MIN, START), None);
            assert_eq!(meter.add(STRETCH_BYTES, STRETCH / 10, BYTES_PER_SEC_MIN, START), None);
        }
        assert_eq!(meter.too_slow(START), None);
    }

    #[test]
    fn a_log_that_grows_line_by_line_makes_no_filter_slow_and_hides_none_that_is() {
        let mut meter = Meter::default();
        for _ in 0..200_000 {
            assert_eq!(meter.add(80, Duration::from_micros(50), BYTES_PER_SEC_MIN, START), None);
        }
        let found = (0..100).find_map(|_| meter.add(80, Duration::from_millis(10), BYTES_PER_SEC_MIN, START));
        assert!(found.is_some_and(|speed| speed < 10_000), "{found:?}");
    }

    #[test]
    fn a_fast_filter_is_never_stopped_and_one_pause_is_forgiven_by_the_next_stretch() {
        let mut meter = Meter::default();
        for _ in 0..100 {
            assert_eq!(meter.add(256 << 10, Duration::from_millis(2), BYTES_PER_SEC_MIN, START), None);
        }
        assert_eq!(meter.too_slow(START), None);
    }
}
