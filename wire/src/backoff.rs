//! Retry schedule: pauses between attempts that double from a first to a longest one.
//!
//! Pure. Rule: every retry of the workspace takes its pauses from here; random spread, where many clients retry at the
//! same time, is added by the caller. Not here: which errors are worth a retry.

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
    fn a_long_first_pause_does_not_overflow() {
        let backoff = Backoff::new(Duration::from_secs(u64::MAX), Duration::from_secs(9));
        assert_eq!(backoff.pause(u32::MAX), Duration::from_secs(9));
    }
}
