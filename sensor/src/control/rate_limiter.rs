//! Rate limiter: a burst, and then one event after each interval (the generic cell rate algorithm, ITU-T
//! I.371, as virtual scheduling).
//!
//! Pure: callers pass the time. Rule: only accepted events count; a rejected attempt does not delay the next
//! one.
//! Not here: what is limited (`worker`, `trail`).

use std::time::Duration;
use wire::time::Moment;

/// State of the rate limiter.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimiter {
    burst: u32,
    interval: Duration,
    /// Time at which a full burst is available again.
    full_at: Moment,
}

impl RateLimiter {
    /// Allows `burst` at once, at least one, and one more after each `interval`.
    pub(super) fn new(burst: u32, interval: Duration) -> RateLimiter {
        RateLimiter { burst, interval, full_at: Moment::default() }
    }

    /// Takes one event.
    ///
    /// # Errors
    /// How long to wait first; nothing was taken then.
    pub(super) fn take(&mut self, at: Moment) -> Result<(), Duration> {
        let owed = self.full_at.since(at);
        let wait = owed.saturating_sub(self.interval.saturating_mul(self.burst.saturating_sub(1)));
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.full_at = self.full_at.max(at).plus(self.interval);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_an_interval() {
        let second = Duration::from_secs(1);
        let at = |secs: u64| Moment(Duration::from_secs(secs));
        let mut limiter = RateLimiter::new(3, second);
        for (now, expected) in [
            (100, Ok(())),
            (100, Ok(())),
            (100, Ok(())),
            (100, Err(second)),
            (101, Ok(())),
            (101, Err(second)),
        ] {
            assert_eq!(limiter.take(at(now)), expected, "{now}");
        }
        // However much time passes, it is one burst.
        for expected in [Ok(()), Ok(()), Ok(()), Err(second)] {
            assert_eq!(limiter.take(at(1000)), expected);
        }
    }
}
