//! Processor quota of a throttled process: a share of each period, after which it must wait.
//!
//! Pure: callers pass the time and the usage. Rule: it works like the kernel's `cpu.max`; usage beyond the
//! share, because the process was polled late, is deducted from the next periods.
//! Not here: stopping a process ([`super::held`]).

use std::time::{Duration, Instant};

/// Length of a period, the kernel's default.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// Quota of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    part: Duration,
    period_ends: Instant,
    /// Processor time that may be used in total, on the process's own clock.
    allowed: Duration,
}

impl Quota {
    /// Quota of a process that has used `used` so far; each period allows `percent` of one core.
    pub(super) fn new(percent: u32, now: Instant, used: Duration) -> Quota {
        let part = PERIOD * percent / 100;
        Quota { part, period_ends: now + PERIOD, allowed: used + part }
    }

    /// Whether the process must wait.
    pub(super) fn must_wait(&mut self, now: Instant, used: Duration) -> bool {
        while now >= self.period_ends {
            self.period_ends += PERIOD;
            // Unused time is not carried over.
            self.allowed = (self.allowed + self.part).min(used + self.part);
        }
        used >= self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_greedy_process_gets_its_part_and_an_idle_one_saves_nothing() {
        let begin = wait::now();
        let (mut quota, mut used) = (Quota::new(5, begin, MS * 700), MS * 700);
        for at in 0..10_000 {
            // Idle in the first second, then as busy as possible.
            if !quota.must_wait(begin + MS * at, used) && at >= 1000 {
                used += MS;
            }
        }
        let part = used - MS * 700;
        assert!(part >= MS * 450 && part <= MS * 456, "{part:?} of 9 s");
    }

    #[test]
    fn what_was_used_too_much_is_owed() {
        let begin = wait::now();
        let mut quota = Quota::new(10, begin, Duration::ZERO);
        assert!(!quota.must_wait(begin, MS * 9));
        assert!(quota.must_wait(begin + MS, MS * 25));
        assert!(quota.must_wait(begin + PERIOD, MS * 25), "20 ms are allowed by now");
        assert!(!quota.must_wait(begin + PERIOD * 2, MS * 25));
    }
}
