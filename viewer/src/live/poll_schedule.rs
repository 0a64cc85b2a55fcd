//! Poll schedule of one target: interval, backoff after failures, and pause after slow answers.
//!
//! Pure: times are spans since polling started. Rule: a target has at most one request in flight; one that
//! fails is retried later each time, up to [`TROUBLED_MAX`], and one that answers slowly is polled less
//! often. Not here: which request is sent (`cache`).

use std::time::Duration;

/// Interval of full polls of a healthy target; hosts report every second.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Longest delay before a failing target is retried.
pub(super) const TROUBLED_MAX: Duration = Duration::from_secs(30);
/// Shortest pause between two requests, however many events arrive: more frames could not be seen.
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// The pause is also this many times as long as the last answer took, so that the target has most of its time
/// for other clients.
const PAUSE_RATIO: u32 = 4;
/// An answer that takes longer than this is slow.
const SLOW: Duration = Duration::from_secs(2);

/// Extent of the poll that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    All,
    /// Only calls, because an event arrived.
    Happened,
}

/// The schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollSchedule {
    every: Duration,
    is_out: bool,
    due: Duration,
    not_before: Duration,
    failures: u32,
    is_slow: bool,
}

impl Default for PollSchedule {
    fn default() -> PollSchedule {
        PollSchedule::every(EVERY)
    }
}

impl PollSchedule {
    /// A schedule that is due at once, then at this interval.
    pub(super) fn every(every: Duration) -> PollSchedule {
        let (due, not_before) = (Duration::ZERO, Duration::ZERO);
        PollSchedule { every, is_out: false, due, not_before, failures: 0, is_slow: false }
    }

    /// The poll that is due, if any; none while a request is in flight. `has_happened` says that an event
    /// arrived.
    pub(super) fn due(&self, now: Duration, has_happened: bool) -> Option<Due> {
        match self.is_out {
            true => None,
            false if now >= self.due => Some(Due::All),
            false if has_happened && self.failures == 0 && now >= self.not_before => Some(Due::Happened),
            false => None,
        }
    }

    /// When the next poll is due; `None` while a request is in flight.
    pub(super) fn next(&self, has_happened: bool) -> Option<Duration> {
        let early = if has_happened && self.failures == 0 { self.not_before } else { self.due };
        (!self.is_out).then_some(self.due.min(early))
    }

    /// Record that a request was sent.
    pub(super) fn ask(&mut self) {
        self.is_out = true;
    }

    /// Record an answer to the poll `due`, which took `took`.
    pub(super) fn answered(&mut self, due: Due, now: Duration, took: Duration) {
        (self.is_out, self.failures, self.is_slow) = (false, 0, took > SLOW);
        self.not_before = now + PAUSE_MIN.max(took * PAUSE_RATIO).min(TROUBLED_MAX);
        if due == Due::All {
            self.due = now + self.every.max(took);
        }
    }

    /// Record a failure, and compute the delay of the retry.
    pub(super) fn failed(&mut self, now: Duration) {
        (self.is_out, self.failures) = (false, self.failures.saturating_add(1));
        self.due = now + (EVERY * (1 << self.failures.min(8))).min(TROUBLED_MAX).max(self.every);
    }

    /// Record that the daemon itself could not be reached, which says nothing about this target.
    pub(super) fn put_back(&mut self) {
        self.is_out = false;
    }

    /// Set the interval; it applies from the next answer on.
    pub(super) fn set_every(&mut self, every: Duration) {
        self.every = every;
    }

    /// Make the next poll due at once.
    pub(super) fn hurry(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Whether a request is in flight.
    pub(super) fn is_out(&self) -> bool {
        self.is_out
    }

    /// Whether the last request failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether the target is slow or failing, so that it may block an asker for long.
    pub(super) fn is_troubled(&self) -> bool {
        self.is_slow || self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_happens_is_asked_for_soon_and_the_rest_each_second() {
        let mut schedule = PollSchedule::default();
        assert_eq!(schedule.due(Duration::ZERO, false), Some(Due::All));
        schedule.ask();
        assert_eq!(
            (schedule.due(5_000 * MS, true), schedule.next(true)),
            (None, None),
            "one question at a time"
        );
        schedule.answered(Due::All, 100 * MS, 2 * MS);
        assert_eq!(schedule.due(124 * MS, true), None);
        assert_eq!(schedule.due(125 * MS, true), Some(Due::Happened));
        assert_eq!(schedule.due(1_099 * MS, false), None);
        assert_eq!(schedule.due(1_100 * MS, false), Some(Due::All));
        schedule.ask();
        schedule.answered(Due::Happened, 200 * MS, 100 * MS);
        assert_eq!(
            (schedule.next(true), schedule.next(false)),
            (Some(600 * MS), Some(1_100 * MS)),
            "four times as long"
        );
    }

    #[test]
    fn trouble_is_asked_later_each_time_and_forgotten_at_an_answer() {
        let mut schedule = PollSchedule::default();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            schedule.ask();
            schedule.failed(Duration::ZERO);
            pauses.extend(schedule.next(true).map(|due| due.as_secs()));
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 30]);
        assert!(schedule.is_troubled());
        schedule.answered(Due::All, Duration::ZERO, 1_000 * MS);
        assert!(!schedule.is_troubled());
        schedule.answered(Due::All, Duration::ZERO, 3_000 * MS);
        assert!(schedule.is_troubled() && schedule.next(false) == Some(3_000 * MS));
    }
}
