//! How often a log may be made durable because somebody waits for it: at once, but not without end.
//!
//! Pure. A sync costs a disk that others need and, on flash, a part of its life. So syncs are spread: for long one
//! each [`SPACING`], and [`BURST`] in a row after a rest. What comes before the next one is made durable by it.
//! Not here: whether somebody waits, and how late a sync may be that no one waits for.

use std::time::Duration;

/// Time between two syncs for long: fifty a second are a half of what a turning disk can do, and on flash about
/// 1 MB each second of pages and file system journal.
pub const SPACING: Duration = Duration::from_millis(20);

/// Syncs that may follow each other at once after a rest: a handful of events each second never wait.
pub const BURST: u32 = 50;

/// When the next sync may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// When all that was used of the burst will be there again.
    whole_at: Duration,
}

impl Pace {
    /// When a sync may begin, by the clock of [`Pace::note`].
    #[must_use]
    pub fn due(&self) -> Duration {
        self.whole_at.saturating_sub(SPACING * (BURST - 1))
    }

    /// A sync begins, because somebody waits or for whatever reason.
    pub fn note(&mut self, now: Duration) {
        self.whole_at = self.whole_at.max(now) + SPACING;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Syncs of somebody who waits all the time, from one moment on for so long.
    fn syncs(pace: &mut Pace, from: Duration, span: Duration) -> u32 {
        let (mut now, mut syncs) = (from, 0);
        while now < from + span {
            while now >= pace.due() {
                pace.note(now);
                syncs += 1;
            }
            now += Duration::from_micros(500);
        }
        syncs
    }

    #[test]
    fn a_burst_goes_at_once_and_then_one_each_spacing() {
        let mut pace = Pace::default();
        let from = Duration::from_secs(1000);
        assert_eq!(syncs(&mut pace, from, SPACING), BURST);
        let after = from + SPACING;
        assert_eq!(syncs(&mut pace, after, Duration::from_secs(10)), 500);
    }

    #[test]
    fn a_rest_gives_the_burst_back_and_no_more() {
        let mut pace = Pace::default();
        syncs(&mut pace, Duration::ZERO, Duration::from_secs(2));
        assert_eq!(syncs(&mut pace, Duration::from_secs(3), Duration::from_millis(1)), BURST);
        assert_eq!(syncs(&mut pace, Duration::from_secs(86_400), Duration::from_millis(1)), BURST);
    }

    #[test]
    fn whoever_syncs_rarely_never_waits() {
        let mut pace = Pace::default();
        for at in (0..1000).map(|nth| Duration::from_millis(nth * 25)) {
            assert!(pace.due() <= at);
            pace.note(at);
        }
    }
}
