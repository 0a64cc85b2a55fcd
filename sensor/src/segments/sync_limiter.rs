//! Rate limiter of syncs: while a client waits for durable events, a log syncs at once, but at a bounded
//! rate.
//!
//! Pure. A sync costs time on a disk that others need and, on flash, a part of its lifetime. So the rate is
//! limited to one sync per [`SPACING`] in the long run, and to [`BURST`] in a row after a rest. One sync
//! makes everything durable that was written before it.
//! Not here: whether a client waits, and how late a sync may be when no client waits.

use std::time::Duration;

/// Average time between two syncs: fifty per second are half of what a spinning disk can do, and on flash
/// about 1 MB of pages and file system journal per second.
pub const SPACING: Duration = Duration::from_millis(20);

/// Syncs that may follow each other at once after a rest: a handful of events per second never wait.
pub const BURST: u32 = 50;

/// State of the rate limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncLimiter {
    /// Time when the whole burst will be available again.
    whole_at: Duration,
}

impl SyncLimiter {
    /// Earliest time of the next sync, by the clock of [`SyncLimiter::note`].
    #[must_use]
    pub fn due(&self) -> Duration {
        self.whole_at.saturating_sub(SPACING * (BURST - 1))
    }

    /// Records the start of a sync, whatever its reason.
    pub fn note(&mut self, now: Duration) {
        self.whole_at = self.whole_at.max(now) + SPACING;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the syncs for a client that always waits, from `from` on for `span`.
    fn syncs(limiter: &mut SyncLimiter, from: Duration, span: Duration) -> u32 {
        let (mut now, mut syncs) = (from, 0);
        while now < from + span {
            while now >= limiter.due() {
                limiter.note(now);
                syncs += 1;
            }
            now += Duration::from_micros(500);
        }
        syncs
    }

    #[test]
    fn a_burst_goes_at_once_and_then_one_each_spacing() {
        let mut limiter = SyncLimiter::default();
        let from = Duration::from_secs(1000);
        assert_eq!(syncs(&mut limiter, from, SPACING), BURST);
        let after = from + SPACING;
        assert_eq!(syncs(&mut limiter, after, Duration::from_secs(10)), 500);
    }

    #[test]
    fn a_rest_gives_the_burst_back_and_no_more() {
        let mut limiter = SyncLimiter::default();
        syncs(&mut limiter, Duration::ZERO, Duration::from_secs(2));
        assert_eq!(syncs(&mut limiter, Duration::from_secs(3), Duration::from_millis(1)), BURST);
        assert_eq!(syncs(&mut limiter, Duration::from_secs(86_400), Duration::from_millis(1)), BURST);
    }

    #[test]
    fn a_rare_sync_never_waits() {
        let mut limiter = SyncLimiter::default();
        for at in (0..1000).map(|nth| Duration::from_millis(nth * 25)) {
            assert!(limiter.due() <= at);
            limiter.note(at);
        }
    }
}
