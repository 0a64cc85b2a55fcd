//! How far the clock of a host is from the viewer's, as the times of its samples tell.
//!
//! Pure. Rule: a clock is only believed to be wrong where samples keep coming and stay as far away: those of a host that is gone
//! are old, and those that were held up come nearer. Not here: a flock's clocks, whose samples come at once (`flock::herd`).

use crate::grid::builder::AHEAD;
use std::time::Duration;
use wire::time::Time;

/// A clock that is no farther from the viewer's is right; what comes may be some seconds old.
const APART_MAX: Duration = Duration::from_secs(5);
/// What stays so much as far away, stays.
const STEADY: Duration = Duration::from_secs(2);

/// What is known of a clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The newest sample of the last answer, and how long after it that came, in microseconds.
    last: Option<(Time, i64)>,
    moved: i64,
}

impl Clock {
    /// The newest sample of an answer that came at a time; whether the clock was set back since the last.
    pub(super) fn seen(&mut self, newest: Time, came: Time) -> bool {
        let apart = came.micros().saturating_sub(newest.micros());
        let last = self.last.replace((newest, apart));
        let Some((before, was_apart)) = last else { return false };
        if newest < before.minus(APART_MAX) {
            *self = Clock { last: Some((newest, apart)), moved: 0 };
            return true;
        }
        // Who is wrong by little more than what is right is not now the one and now the other.
        let right = if self.moved == 0 { APART_MAX } else { STEADY };
        let is_steady = apart.abs_diff(was_apart) <= micros(STEADY);
        if apart.unsigned_abs() <= micros(right) {
            self.moved = 0;
        } else if newest > before && is_steady && apart.abs_diff(self.moved) > micros(APART_MAX) {
            self.moved = apart;
        }
        false
    }

    /// How many microseconds later than it says something was, by the viewer's clock.
    pub(super) fn moved(&self) -> i64 {
        self.moved
    }

    /// What is wrong with it in words, if anything.
    pub(super) fn trouble(&self) -> Option<String> {
        let secs = self.moved.unsigned_abs() / 1_000_000;
        let way = if self.moved > 0 { "behind" } else { "ahead of" };
        (self.moved != 0)
            .then(|| format!("its clock is {secs} s {way} this machine's; its graphs are moved by as much"))
    }
}

/// Whether a sample may be believed that came at a time, by a clock that is not wrong by more than a day.
pub(super) fn is_believed(time: Time, came: Time) -> bool {
    time <= came.plus(AHEAD)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: i64 = 1_000_000;

    /// What a clock is moved by after answers, each the newest sample and when it came, in seconds.
    fn moved(answers: &[(i64, i64)]) -> i64 {
        let mut clock = Clock::default();
        for (newest, came) in answers {
            clock.seen(Time::from_micros(newest * SEC), Time::from_micros(came * SEC));
        }
        clock.moved() / SEC
    }

    #[test]
    fn a_clock_that_stays_as_far_away_is_wrong() {
        assert_eq!(moved(&[(1_000, 1_001), (1_001, 1_002)]), 0, "it is right");
        assert_eq!(moved(&[(1_000, 1_060)]), 0, "once may be old");
        assert_eq!(moved(&[(1_000, 1_060), (1_001, 1_061)]), 60);
        assert_eq!(moved(&[(9_000, 1_000), (9_004, 1_004)]), -8_000);
        assert_eq!(moved(&[(1_000, 1_060), (1_001, 1_061), (1_061, 1_062)]), 0, "it was set right");
        assert_eq!(
            moved(&[(1_000, 1_006), (1_001, 1_007), (1_003, 1_008)]),
            6,
            "it is little more than right"
        );
        assert_eq!(
            moved(&[(1_000, 1_060), (1_001, 1_061), (1_003, 1_062)]),
            60,
            "not at each sample another"
        );
    }

    #[test]
    fn samples_that_are_old_or_held_up_say_nothing_of_the_clock() {
        assert_eq!(moved(&[(1_000, 1_060), (1_000, 1_061), (1_000, 1_062)]), 0, "the host is gone");
        assert_eq!(moved(&[(1_000, 1_060), (1_020, 1_061), (1_050, 1_062)]), 0, "they come nearer");
    }

    #[test]
    fn a_clock_that_is_set_back_is_told_and_begun_anew() {
        let mut clock = Clock::default();
        let seen = |clock: &mut Clock, newest: i64, came: i64| {
            clock.seen(Time::from_micros(newest * SEC), Time::from_micros(came * SEC))
        };
        assert!(!seen(&mut clock, 9_000, 1_000) && !seen(&mut clock, 9_001, 1_001));
        assert!(
            clock.trouble().is_some_and(|told| told.contains("8000 s ahead of")),
            "{:?}",
            clock.trouble()
        );
        assert!(seen(&mut clock, 1_002, 1_002));
        assert_eq!((clock.moved(), clock.trouble()), (0, None));
    }
}
