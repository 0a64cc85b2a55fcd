//! Rate limiter of a subscription: an allowance per second, and at most one second's worth at once (a token
//! bucket).
//!
//! Pure: callers pass `now`. Rule: usage is subtracted after the fact, so that the time after a large piece
//! pays for it.

use std::time::Duration;

/// Allowance that grows with time.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    per_sec: f64,
    left: f64,
    at: Duration,
    total: f64,
}

impl Meter {
    /// Creates a meter with one second's worth to start with.
    #[must_use]
    pub fn new(per_sec: f64, now: Duration) -> Meter {
        Meter { per_sec, left: per_sec, at: now, total: 0.0 }
    }

    /// Changes the rate and refills the allowance; the total stays.
    pub fn set(&mut self, per_sec: f64, now: Duration) {
        let total = self.total;
        *self = Meter { total, ..Meter::new(per_sec, now) };
    }

    /// Changes the rate; what is left stays, up to one second's worth at the new rate.
    pub fn limit(&mut self, per_sec: f64, now: Duration) {
        self.has_left(now);
        (self.per_sec, self.left) = (per_sec, self.left.min(per_sec));
    }

    /// What is left, as of the last [`has_left`](Self::has_left).
    #[must_use]
    pub fn left(&self) -> f64 {
        self.left
    }

    /// Whether anything is left at `now`.
    pub fn has_left(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = (self.left + passed * self.per_sec).min(self.per_sec);
        self.left > 0.0
    }

    /// Subtracts what was used.
    pub fn spend(&mut self, amount: f64) {
        self.left -= amount;
        self.total += amount;
    }

    /// All that was used since the start.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_a_second_and_a_seconds_worth_at_once() {
        let at = Duration::from_millis;
        let mut meter = Meter::new(10.0, at(0));
        let mut spent = 0.0;
        // A piece of 3 each tenth of a second, where 1 is allowed.
        for step in 0..100 {
            if meter.has_left(at(step * 100)) {
                meter.spend(3.0);
                spent += 3.0;
            }
        }
        assert!((99.0..=113.0).contains(&spent), "ten seconds' worth and one in advance: {spent}");
        assert!((meter.total() - spent).abs() < 1e-9);
        assert!(meter.has_left(at(60_000)));
        meter.spend(25.0);
        assert!(!meter.has_left(at(61_000)), "it was paid for by 1.5 seconds");
        assert!(meter.has_left(at(61_600)));
    }
}
