//! What a subscription may use: so much a second, and at most a second's worth at once.
//!
//! Pure: callers pass `now`. Rule: what is used is subtracted after the fact, so that one large piece is paid for by the
//! time after it.

use std::time::Duration;

/// An allowance that grows with time.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    per_sec: f64,
    left: f64,
    at: Duration,
    total: f64,
}

impl Meter {
    /// A second's worth to begin with.
    #[must_use]
    pub fn new(per_sec: f64, now: Duration) -> Meter {
        Meter { per_sec, left: per_sec, at: now, total: 0.0 }
    }

    /// From now on, another allowance; what was used stays used.
    pub fn set(&mut self, per_sec: f64, now: Duration) {
        let total = self.total;
        *self = Meter { total, ..Meter::new(per_sec, now) };
    }

    /// From now on, another allowance; what is left stays, as far as it is within a second's worth of that.
    pub fn limit(&mut self, per_sec: f64, now: Duration) {
        self.has_left(now);
        (self.per_sec, self.left) = (per_sec, self.left.min(per_sec));
    }

    /// How much was left when it was asked last.
    #[must_use]
    pub fn left(&self) -> f64 {
        self.left
    }

    /// Whether there is something left at `now`.
    pub fn has_left(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = (self.left + passed * self.per_sec).min(self.per_sec);
        self.left > 0.0
    }

    /// So much was used.
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
