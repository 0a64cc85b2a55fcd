//! When somebody is asked again.
//!
//! Pure: times are spans since asking began. Rule: no one is asked twice at a time; who is in trouble is asked later each
//! time, up to [`TROUBLED_MAX`], and who answers slowly more seldom. Not here: what is asked (`known`).

use std::time::Duration;

/// How often who does well is asked for everything; hosts report each second.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Longest time until who is in trouble is asked again.
pub(super) const TROUBLED_MAX: Duration = Duration::from_secs(30);
/// Two questions are at least so long apart, however much happens: no one sees more pictures.
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// A pause is so many times what the last answer took: whoever is asked has most of its time for others.
const PAUSE_RATIO: u32 = 4;
/// Who takes longer counts as slow.
const SLOW: Duration = Duration::from_secs(2);

/// What it is time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Everything.
    All,
    /// Only what follows from what happened.
    Happened,
}

/// When one is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    every: Duration,
    is_out: bool,
    due: Duration,
    not_before: Duration,
    failures: u32,
    is_slow: bool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn::every(EVERY)
    }
}

impl Turn {
    /// At once, and then so often.
    pub(super) fn every(every: Duration) -> Turn {
        let (due, not_before) = (Duration::ZERO, Duration::ZERO);
        Turn { every, is_out: false, due, not_before, failures: 0, is_slow: false }
    }

    /// What it is time for; nothing while an answer is waited for.
    pub(super) fn due(&self, now: Duration, has_happened: bool) -> Option<Due> {
        match self.is_out {
            true => None,
            false if now >= self.due => Some(Due::All),
            false if has_happened && self.failures == 0 && now >= self.not_before => Some(Due::Happened),
            false => None,
        }
    }

    /// When it is time for something, unless an answer is waited for.
    pub(super) fn next(&self, has_happened: bool) -> Option<Duration> {
        let early = if has_happened && self.failures == 0 { self.not_before } else { self.due };
        (!self.is_out).then_some(self.due.min(early))
    }

    /// Asked.
    pub(super) fn ask(&mut self) {
        self.is_out = true;
    }

    /// An answer came to what was due, after `took`.
    pub(super) fn answered(&mut self, due: Due, now: Duration, took: Duration) {
        (self.is_out, self.failures, self.is_slow) = (false, 0, took > SLOW);
        self.not_before = now + PAUSE_MIN.max(took * PAUSE_RATIO).min(TROUBLED_MAX);
        if due == Due::All {
            self.due = now + self.every.max(took);
        }
    }

    /// No answer came.
    pub(super) fn failed(&mut self, now: Duration) {
        (self.is_out, self.failures) = (false, self.failures.saturating_add(1));
        self.due = now + (EVERY * (1 << self.failures.min(8))).min(TROUBLED_MAX).max(self.every);
    }

    /// No one could be asked: it says nothing of this one.
    pub(super) fn put_back(&mut self) {
        self.is_out = false;
    }

    /// From the next answer on, so often.
    pub(super) fn set_every(&mut self, every: Duration) {
        self.every = every;
    }

    /// Have it asked at once.
    pub(super) fn hurry(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Whether an answer is waited for.
    pub(super) fn is_out(&self) -> bool {
        self.is_out
    }

    /// Whether the last question was not answered.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether it may keep who asks for long.
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
        let mut turn = Turn::default();
        assert_eq!(turn.due(Duration::ZERO, false), Some(Due::All));
        turn.ask();
        assert_eq!((turn.due(5_000 * MS, true), turn.next(true)), (None, None), "one question at a time");
        turn.answered(Due::All, 100 * MS, 2 * MS);
        assert_eq!(turn.due(124 * MS, true), None);
        assert_eq!(turn.due(125 * MS, true), Some(Due::Happened));
        assert_eq!(turn.due(1_099 * MS, false), None);
        assert_eq!(turn.due(1_100 * MS, false), Some(Due::All));
        turn.ask();
        turn.answered(Due::Happened, 200 * MS, 100 * MS);
        assert_eq!(
            (turn.next(true), turn.next(false)),
            (Some(600 * MS), Some(1_100 * MS)),
            "four times as long"
        );
    }

    #[test]
    fn trouble_is_asked_later_each_time_and_forgotten_at_an_answer() {
        let mut turn = Turn::default();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            turn.ask();
            turn.failed(Duration::ZERO);
            pauses.extend(turn.next(true).map(|due| due.as_secs()));
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 30]);
        assert!(turn.is_troubled());
        turn.answered(Due::All, Duration::ZERO, 1_000 * MS);
        assert!(!turn.is_troubled());
        turn.answered(Due::All, Duration::ZERO, 3_000 * MS);
        assert!(turn.is_troubled() && turn.next(false) == Some(3_000 * MS));
    }
}
