//! How often something may happen: so many at once, and then one after each interval (the generic cell rate algorithm,
//! ITU-T I.371, as virtual scheduling).
//!
//! Pure: callers pass the moment. Rule: only what happens counts; who was told to wait owes nothing for having asked.
//! Not here: what is held back by it (`desk`, `trail`).

use std::time::Duration;
use wire::time::Moment;

/// What is left of a burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    burst: u32,
    interval: Duration,
    /// When a full burst may come again.
    full_at: Moment,
}

impl Pace {
    /// `burst` at once, at least one, and one more after each `interval`.
    pub(super) fn new(burst: u32, interval: Duration) -> Pace {
        Pace { burst, interval, full_at: Moment::default() }
    }

    /// It happens once.
    ///
    /// # Errors
    /// How long to wait first; nothing happened then.
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
        let mut pace = Pace::new(3, second);
        for (now, expected) in [
            (100, Ok(())),
            (100, Ok(())),
            (100, Ok(())),
            (100, Err(second)),
            (101, Ok(())),
            (101, Err(second)),
        ] {
            assert_eq!(pace.take(at(now)), expected, "{now}");
        }
        // Whatever time passes, it is one burst.
        for expected in [Ok(()), Ok(()), Ok(()), Err(second)] {
            assert_eq!(pace.take(at(1000)), expected);
        }
    }
}
