//! Retry schedule: pauses between attempts that double from a first to a longest one, and their random jitter.
//!
//! Pure. Rule: every retry of the workspace takes its pauses from here; the caller draws the random numbers.
//! Not here: which errors are worth a retry.

use std::time::Duration;

/// The pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// Creates a schedule from the first pause to the longest one.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest }
    }

    /// Returns the pause after an attempt failed that followed `failures` other failures in a row.
    #[must_use]
    pub fn pause(&self, failures: u32) -> Duration {
        // 2^31 is beyond any schedule, and does not overflow.
        self.first.saturating_mul(1 << failures.min(31)).min(self.longest)
    }
}

/// Returns a duration from `low` to `high`, both included, to the microsecond; `random` is any number.
#[must_use]
pub fn between(low: Duration, high: Duration, random: u64) -> Duration {
    let width = u64::try_from(high.saturating_sub(low).as_micros()).unwrap_or(u64::MAX);
    low + Duration::from_micros(random % width.saturating_add(1))
}

/// Returns `pause` plus or minus up to `percent` of it, so that many timers do not fire together.
#[must_use]
pub fn jittered(pause: Duration, percent: u32, random: u64) -> Duration {
    let most = pause * percent.min(100) / 100;
    between(pause - most, pause + most, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_one() {
        let backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
        let check = |failures, millis| {
            assert_eq!(backoff.pause(failures), Duration::from_millis(millis), "{failures} failures");
        };
        check(0, 250);
        check(1, 500);
        check(4, 4_000);
        check(5, 5_000);
        check(u32::MAX, 5_000);
    }

    #[test]
    fn jitter_has_both_bounds_and_nothing_beyond() {
        let pause = Duration::from_millis(500);
        let check = |percent, random, micros| {
            assert_eq!(jittered(pause, percent, random), Duration::from_micros(micros), "{percent} {random}");
        };
        check(10, 0, 450_000);
        check(10, 100_000, 550_000);
        check(10, 100_001, 450_000);
        check(0, u64::MAX, 500_000);
        check(200, 0, 0);
        assert_eq!(between(pause, pause / 2, 7), pause, "an empty range");
        let _ = between(Duration::ZERO, Duration::MAX, u64::MAX);
    }

    #[test]
    fn a_long_first_pause_does_not_overflow() {
        let backoff = Backoff::new(Duration::from_secs(u64::MAX), Duration::from_secs(9));
        assert_eq!(backoff.pause(u32::MAX), Duration::from_secs(9));
    }
}
