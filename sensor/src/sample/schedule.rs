//! Sampling schedule: a fixed grid of deadlines at a rate that can change.
//!
//! Pure: callers pass `now`, the time since a fixed start. Rule: deadlines are absolute, so a late sweep does
//! not shift the later ones; a deadline that passed during a sweep has slipped: it is counted, and not caught
//! up.

use std::time::Duration;

/// Lowest rate, in sweeps per second.
pub const RATE_MIN_HZ: f64 = 0.1;
/// Highest rate of host metrics, in sweeps per second: a higher rate adds cost but no information.
pub const RATE_MAX_HZ: f64 = 10.0;
/// Highest rate of process sweeps, in sweeps per second.
pub const PROCESS_RATE_MAX_HZ: f64 = 1000.0;

/// Sampling rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    hz: f64,
}

/// The error for a rate out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("rate of {hz} sweeps a second; expected {RATE_MIN_HZ} to {max_hz}")]
pub struct RateError {
    /// The rejected rate.
    pub hz: f64,
    /// The highest allowed rate.
    pub max_hz: f64,
}

impl Rate {
    /// Rate of host sweeps, per second.
    ///
    /// # Errors
    /// If it is not between [`RATE_MIN_HZ`] and [`RATE_MAX_HZ`].
    pub fn from_hz(hz: f64) -> Result<Rate, RateError> {
        Rate::within(hz, RATE_MAX_HZ)
    }

    /// Rate of process sweeps, per second.
    ///
    /// # Errors
    /// If it is not between [`RATE_MIN_HZ`] and [`PROCESS_RATE_MAX_HZ`].
    pub fn of_processes(hz: f64) -> Result<Rate, RateError> {
        Rate::within(hz, PROCESS_RATE_MAX_HZ)
    }

    fn within(hz: f64, max_hz: f64) -> Result<Rate, RateError> {
        if (RATE_MIN_HZ..=max_hz).contains(&hz) { Ok(Rate { hz }) } else { Err(RateError { hz, max_hz }) }
    }

    /// Sweeps per second.
    #[must_use]
    pub fn hz(self) -> f64 {
        self.hz
    }

    /// Time between two sweeps.
    #[must_use]
    pub fn period(self) -> Duration {
        Duration::from_secs_f64(1.0 / self.hz)
    }
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { hz: 1.0 }
    }
}

/// Grid of deadlines. The first deadline is at the start.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    period: Duration,
    next: Duration,
    slipped_total: u64,
}

impl Schedule {
    /// Creates a grid that starts at `now`.
    #[must_use]
    pub fn new(rate: Rate, now: Duration) -> Schedule {
        Schedule { period: rate.period(), next: now, slipped_total: 0 }
    }

    /// Changes the rate; the new period counts from the last deadline.
    pub fn set_rate(&mut self, rate: Rate, now: Duration) {
        let last = self.next.saturating_sub(self.period);
        self.period = rate.period();
        self.next = (last + self.period).max(now);
    }

    /// Time to wait at `now`; zero if a sweep is due.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Duration {
        self.next.saturating_sub(now)
    }

    /// Records the start of a sweep at `now`: the next deadline is the first one of the grid after `now`.
    pub fn begin(&mut self, now: Duration) {
        self.next += self.period;
        if self.next <= now {
            let late = now - self.next;
            let slipped = late.as_nanos() / self.period.as_nanos() + 1;
            let slipped = u32::try_from(slipped).unwrap_or(u32::MAX);
            self.next += self.period * slipped;
            self.slipped_total += u64::from(slipped);
        }
    }

    /// Number of slipped deadlines, since the start.
    #[must_use]
    pub fn slipped_total(&self) -> u64 {
        self.slipped_total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn rates_outside_the_bounds_are_refused() {
        for hz in [0.1, 1.0, 10.0] {
            assert_eq!(Rate::from_hz(hz).map(Rate::hz), Ok(hz));
        }
        for hz in [0.0, 0.09, 10.1, -1.0, f64::INFINITY] {
            assert_eq!(Rate::from_hz(hz), Err(RateError { hz, max_hz: RATE_MAX_HZ }));
        }
        assert!(Rate::from_hz(f64::NAN).is_err());
    }

    #[test]
    fn late_sweeps_do_not_shift_the_raster() {
        let mut schedule = Schedule::new(Rate::default(), ms(500));
        assert_eq!(schedule.wait(ms(500)), ms(0));
        schedule.begin(ms(500));
        assert_eq!(schedule.wait(ms(510)), ms(990));
        schedule.begin(ms(1700));
        assert_eq!(schedule.wait(ms(1700)), ms(800), "the raster stays on the half second");
        assert_eq!(schedule.slipped_total(), 0);
    }

    #[test]
    fn passed_moments_are_counted_and_not_made_up_for() {
        let mut schedule = Schedule::new(Rate::default(), ms(0));
        schedule.begin(ms(0));
        schedule.begin(ms(4200)); // Due at 1000; 2000, 3000 and 4000 have slipped.
        assert_eq!(schedule.slipped_total(), 3);
        assert_eq!(schedule.wait(ms(4200)), ms(800));
        schedule.begin(ms(5000));
        assert_eq!((schedule.slipped_total(), schedule.wait(ms(5000))), (3, ms(1000)));
    }

    #[test]
    fn another_rate_counts_from_the_last_sweep() {
        let mut schedule = Schedule::new(Rate::default(), ms(0));
        schedule.begin(ms(0));
        schedule.set_rate(Rate::from_hz(10.0).expect("allowed"), ms(30));
        assert_eq!(schedule.wait(ms(30)), ms(70));
        schedule.begin(ms(100));
        schedule.set_rate(Rate::from_hz(0.5).expect("allowed"), ms(150));
        assert_eq!(schedule.wait(ms(150)), ms(1950));
        schedule.set_rate(Rate::from_hz(10.0).expect("allowed"), ms(1500));
        assert_eq!(schedule.wait(ms(1500)), ms(0), "overdue by the new rate: at once, and nothing slipped");
        assert_eq!(schedule.slipped_total(), 0);
    }
}
