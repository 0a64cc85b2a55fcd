//! Clock offset of a host, estimated from the timestamps of its samples.
//!
//! Pure. Rule: an offset is accepted only if samples keep coming with the same offset: samples of a dead host
//! are old, and delayed samples come closer to the present. Not here: the clocks of the flock, whose samples
//! arrive at once (`flock::host_processes`).

use crate::grid::builder::AHEAD;
use std::time::Duration;
use wire::time::Time;

/// Smallest offset that counts as a wrong clock; samples may be some seconds old.
const APART_MAX: Duration = Duration::from_secs(5);
/// Two offsets that differ by no more than this are the same.
const STEADY: Duration = Duration::from_secs(2);

/// Estimate of one clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The newest sample of the last answer, and its age at arrival in microseconds.
    last: Option<(Time, i64)>,
    moved: i64,
}

impl Clock {
    /// Record the newest sample of an answer and its arrival time. Returns whether the clock was set back
    /// since the last answer.
    pub(super) fn observe(&mut self, newest: Time, came: Time) -> bool {
        let apart = came.micros().saturating_sub(newest.micros());
        let last = self.last.replace((newest, apart));
        let Some((before, was_apart)) = last else { return false };
        if newest < before.minus(APART_MAX) {
            *self = Clock { last: Some((newest, apart)), moved: 0 };
            return true;
        }
        // Hysteresis: an offset close to the limit does not switch back and forth.
        let right = if self.moved == 0 { APART_MAX } else { STEADY };
        let is_steady = apart.abs_diff(was_apart) <= micros(STEADY);
        if apart.unsigned_abs() <= micros(right) {
            self.moved = 0;
        } else if newest > before && is_steady && apart.abs_diff(self.moved) > micros(APART_MAX) {
            self.moved = apart;
        }
        false
    }

    /// Offset to add to the host's timestamps to get the viewer's time, in microseconds.
    pub(super) fn moved(&self) -> i64 {
        self.moved
    }

    /// Description of the clock error, if there is one.
    pub(super) fn trouble(&self) -> Option<String> {
        let secs = self.moved.unsigned_abs() / 1_000_000;
        let way = if self.moved > 0 { "behind" } else { "ahead of" };
        (self.moved != 0)
            .then(|| format!("its clock is {secs} s {way} this machine's; its graphs are moved by as much"))
    }
}

/// Whether a sample is plausible: at most a day after its arrival.
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

    /// Offset after these answers, each given as its newest sample and its arrival time, in seconds.
    fn moved(answers: &[(i64, i64)]) -> i64 {
        let mut clock = Clock::default();
        for (newest, came) in answers {
            clock.observe(Time::from_micros(newest * SEC), Time::from_micros(came * SEC));
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
    fn a_clock_that_is_set_back_is_reported_and_measured_again() {
        let mut clock = Clock::default();
        let seen = |clock: &mut Clock, newest: i64, came: i64| {
            clock.observe(Time::from_micros(newest * SEC), Time::from_micros(came * SEC))
        };
        assert!(!seen(&mut clock, 9_000, 1_000) && !seen(&mut clock, 9_001, 1_001));
        assert!(
            clock.trouble().is_some_and(|text| text.contains("8000 s ahead of")),
            "{:?}",
            clock.trouble()
        );
        assert!(seen(&mut clock, 1_002, 1_002));
        assert_eq!((clock.moved(), clock.trouble()), (0, None));
    }
}
