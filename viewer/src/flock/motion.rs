//! Motion paths: one keyframe for each sweep with new data about a process, and linear interpolation between
//! them.
//!
//! Pure. Invariant: the position at a time depends only on the keyframes before and after that time, and on
//! nothing later; so a look back shows the same as the live view did. A process at rest costs two keyframes,
//! however long it rests.

use super::measure::{Spot, Spots, resting_spots};
use std::cell::Cell;
use std::collections::VecDeque;
use wire::time::Time;

/// Maximum number of keyframes of one process: a minute of ten sweeps a second, ten seconds of 64.
pub const KEYFRAMES_MAX: usize = 640;

/// Steps of the linear search around a guessed index.
const STEPS_MAX: usize = 4;

/// Keyframe: the positions at a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Keyframe {
    time: Time,
    spots: Spots,
}

/// The motion path of a process.
#[derive(Clone, Debug, Default)]
pub struct Trajectory {
    keyframes: VecDeque<Keyframe>,
    ended: Option<Time>,
    /// Search hints: the index found last, and the one found last for an earlier time: frames ask for
    /// increasing times, and trails follow behind them.
    found: Cell<usize>,
    found_behind: Cell<usize>,
}

impl Trajectory {
    /// The path of a process first seen at this time.
    #[must_use]
    pub fn new(time: Time, spots: Spots) -> Trajectory {
        Trajectory { keyframes: VecDeque::from([Keyframe { time, spots }]), ..Trajectory::default() }
    }

    /// Add a keyframe at a sweep; up to the host's sweep before, `previous`, the process rested at its last
    /// positions. Returns the number of keyframes added.
    pub fn stood(&mut self, time: Time, previous: Time, spots: Spots) -> isize {
        let before = self.keyframes.len();
        if let Some(last) =
            self.keyframes.back().copied().filter(|last| last.time < previous && previous < time)
        {
            self.push(Keyframe { time: previous, spots: last.spots });
        }
        self.push(Keyframe { time, spots });
        self.keyframes.len().cast_signed() - before.cast_signed()
    }

    /// Add a keyframe for a sweep in which the process used nothing. Returns the number of keyframes added.
    pub fn rested(&mut self, time: Time) -> isize {
        let before = self.keyframes.len();
        if let Some(last) = self.keyframes.back().copied() {
            self.push(Keyframe { time, spots: resting_spots(&last.spots) });
        }
        self.keyframes.len().cast_signed() - before.cast_signed()
    }

    /// Record the sweep at which the process was gone.
    pub fn end(&mut self, time: Time) {
        self.ended = Some(time);
    }

    /// Drop the oldest keyframes until `keyframes` are left; the newest two always stay. Returns the number
    /// dropped.
    pub fn shorten(&mut self, keyframes: usize) -> usize {
        let beyond = self.keyframes.len().saturating_sub(keyframes.max(2));
        self.keyframes.drain(..beyond);
        beyond
    }

    /// Number of keyframes.
    #[must_use]
    pub fn keyframes(&self) -> usize {
        self.keyframes.len()
    }

    /// When the process ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Time> {
        self.ended
    }

    /// Time of the oldest keyframe: earlier positions are unknown.
    #[must_use]
    pub fn first(&self) -> Option<Time> {
        self.keyframes.front().map(|keyframe| keyframe.time)
    }

    /// Whether each new keyframe replaces the oldest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.keyframes.len() >= KEYFRAMES_MAX
    }

    /// The last positions.
    #[must_use]
    pub fn last(&self) -> Spots {
        self.keyframes.back().map_or(Spots::default(), |keyframe| keyframe.spots)
    }

    /// The positions at a time; `None` before the first keyframe and after the end.
    #[must_use]
    pub fn at(&self, time: Time) -> Option<Spots> {
        self.after(self.until(time, &self.found), time)
    }

    /// The same, for callers whose times are somewhat earlier than those passed to [`Trajectory::at`]: each has its
    /// own search hint.
    #[must_use]
    pub fn behind(&self, time: Time) -> Option<Spots> {
        self.after(self.until(time, &self.found_behind), time)
    }

    /// The positions at increasing times, which start near one passed to [`Trajectory::behind`].
    pub fn along(&self, times: impl Iterator<Item = Time>) -> impl Iterator<Item = Spots> {
        let mut until = None;
        times.filter_map(move |time| {
            let mut at = until.unwrap_or_else(|| self.until(time, &self.found_behind));
            while self.keyframes.get(at).is_some_and(|keyframe| keyframe.time <= time) {
                at += 1;
            }
            until = Some(at);
            self.after(at, time)
        })
    }

    /// The positions at a time, given the number of keyframes until then.
    fn after(&self, until: usize, time: Time) -> Option<Spots> {
        if self.ended.is_some_and(|ended| time >= ended) {
            return None;
        }
        let before = self.keyframes.get(until.checked_sub(1)?)?;
        Some(match self.keyframes.get(until) {
            Some(next) => between(before, next, time),
            None => before.spots,
        })
    }

    /// Number of keyframes up to a time. Searches first near the last result, then by interpolation: a binary
    /// search would wait for memory at each step.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn until(&self, time: Time, found: &Cell<usize>) -> usize {
        let near = self.near(found.get(), time).or_else(|| {
            let (first, last) = (self.keyframes.front()?.time, self.keyframes.back()?.time);
            let since_first = |at: Time| at.micros().saturating_sub(first.micros()).max(0) as f32;
            let share = since_first(time) / since_first(last).max(1.0);
            self.near((share * self.keyframes.len() as f32) as usize, time)
        });
        let until = near.unwrap_or_else(|| self.keyframes.partition_point(|keyframe| keyframe.time <= time));
        found.set(until);
        until
    }

    /// The same by linear search around a guess; `None` if it is too far off.
    fn near(&self, guess: usize, time: Time) -> Option<usize> {
        let is_until = |at: usize| self.keyframes.get(at).is_some_and(|keyframe| keyframe.time <= time);
        let mut until = guess.min(self.keyframes.len());
        for _ in 0..STEPS_MAX {
            match (until > 0 && !is_until(until - 1), is_until(until)) {
                (true, _) => until -= 1,
                (false, true) => until += 1,
                (false, false) => return Some(until),
            }
        }
        None
    }

    fn push(&mut self, keyframe: Keyframe) {
        let len = self.keyframes.len();
        if self.keyframes.back().is_some_and(|last| keyframe.time <= last.time) {
            return;
        }
        // A process at rest: only the time of the last keyframe moves, so no interpolated position changes.
        let stands = len >= 2
            && self.keyframes[len - 1].spots == keyframe.spots
            && self.keyframes[len - 2].spots == keyframe.spots;
        if stands {
            self.keyframes[len - 1].time = keyframe.time;
            return;
        }
        if len >= KEYFRAMES_MAX {
            self.keyframes.pop_front();
        }
        self.keyframes.push_back(keyframe);
    }
}

#[allow(clippy::cast_precision_loss)]
fn between(before: &Keyframe, after: &Keyframe, time: Time) -> Spots {
    let whole = after.time.micros().saturating_sub(before.time.micros()).max(1) as f32;
    let share = (time.micros().saturating_sub(before.time.micros()) as f32 / whole).clamp(0.0, 1.0);
    let mut spots = before.spots;
    for (spot, next) in spots.iter_mut().zip(after.spots) {
        *spot = Spot { x: spot.x + (next.x - spot.x) * share, y: spot.y + (next.y - spot.y) * share };
    }
    spots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    fn spots(x: f32) -> Spots {
        [Spot { x, y: 0.5 }; 4]
    }

    #[test]
    fn between_two_sweeps_it_is_on_the_straight_way() {
        let mut trajectory = Trajectory::new(at(10.0), spots(0.0));
        trajectory.stood(at(12.0), at(10.0), spots(1.0));
        assert_eq!(trajectory.at(at(9.0)), None);
        assert_eq!(trajectory.at(at(10.5)).map(|spots| spots[0].x), Some(0.25));
        assert_eq!(trajectory.at(at(99.0)).map(|spots| spots[0].x), Some(1.0), "nothing newer is known");
        trajectory.end(at(13.0));
        assert_eq!((trajectory.at(at(12.5)).is_some(), trajectory.at(at(13.0))), (true, None));
    }

    #[test]
    fn who_rests_sets_out_from_the_sweep_before() {
        let mut trajectory = Trajectory::new(at(0.0), spots(1.0));
        for secs in 1..50 {
            trajectory.rested(at(f64::from(secs)));
        }
        assert_eq!(trajectory.keyframes(), 3, "a rest is its begin and its end");
        trajectory.stood(at(51.0), at(50.0), spots(1.0));
        assert_eq!(trajectory.at(at(30.0)).map(|spots| spots[0].x), Some(0.0));
        assert_eq!(trajectory.at(at(50.0)).map(|spots| spots[0].x), Some(0.0));
        assert_eq!(trajectory.at(at(50.5)).map(|spots| spots[0].x), Some(0.5));
    }

    proptest! {
        #[test]
        fn a_time_is_found_however_uneven_sweeps_are(
            pauses in prop::collection::vec(1_i64..5_000_000, 1..60),
            asked in 0_i64..300_000_000,
        ) {
            let mut trajectory = Trajectory::new(Time::from_micros(0), spots(0.0));
            let (mut now, mut times) = (0, vec![0]);
            for (pause, at) in pauses.into_iter().zip(1_i16..) {
                let before = now;
                now += if pause % 7 == 0 { pause } else { pause % 1_000 + 1 };
                trajectory.stood(Time::from_micros(now), Time::from_micros(before), spots(f32::from(at) / 64.0));
                times.push(now);
            }
            for asked in times.iter().flat_map(|time| [time - 1, *time, time + 1]).chain([asked]) {
                let until = times.iter().filter(|time| **time <= asked).count();
                prop_assert_eq!(trajectory.until(Time::from_micros(asked), &trajectory.found), until, "{} in {:?}", asked, times);
            }
            let mut along: Vec<Time> = times.iter().map(|time| Time::from_micros(time + 500)).collect();
            along.push(Time::from_micros(asked));
            along.sort();
            let alone: Vec<_> = along.iter().filter_map(|time| trajectory.at(*time)).collect();
            prop_assert_eq!(trajectory.along(along.iter().copied()).collect::<Vec<_>>(), alone.clone());
            prop_assert_eq!(along.iter().rev().filter_map(|time| trajectory.behind(*time)).count(), alone.len());
        }
    }

    #[test]
    fn keyframes_are_bounded_and_the_newest_stay() {
        let mut trajectory = Trajectory::new(at(0.0), spots(0.0));
        for secs in 1..2_000 {
            trajectory.stood(at(f64::from(secs)), at(f64::from(secs - 1)), spots((secs % 7) as f32 / 7.0));
        }
        assert_eq!(trajectory.keyframes(), KEYFRAMES_MAX);
        trajectory.shorten(0);
        assert_eq!(trajectory.keyframes(), 2);
        assert_eq!(trajectory.last(), spots((1_999 % 7) as f32 / 7.0));
        trajectory.stood(at(5.0), at(4.0), spots(0.0));
        assert_eq!(trajectory.keyframes(), 2, "what is older than the last is not taken");
    }
}
