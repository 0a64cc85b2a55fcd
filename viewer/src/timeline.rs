//! Timeline shared by all tabs: live, paused or playing at some speed, the shown time, and the part of it on the line.
//!
//! Pure: elapsed time is passed in. Invariant: the shown time is within the available range; playback that
//! reaches the end of a live source becomes live.

mod window;

use crate::grid::Failure;
use std::time::Duration;
use window::Window;
use wire::time::Time;

/// Lowest playback speed.
pub const SPEED_MIN: f64 = 0.1;
/// Highest playback speed.
pub const SPEED_MAX: f64 = 10_000.0;
/// Highest speed that is chosen for a log.
const SPEED_CHOSEN_MAX: f64 = 100.0;
/// Duration of a flight, in seconds of real time.
const FLIGHT_SECS: f64 = 1.4;
/// Longest accepted clock step, in seconds: after the machine slept, the log does not run through.
const STEP_MAX_SECS: f64 = 5.0;
/// How long before a failure a jump to it ends, in seconds of real time, so that it is seen to happen.
const BEFORE_FAILURE_SECS: f64 = 0.7;
/// Duration in which a log is played through at the default speed, in seconds.
const PLAYED_IN_SECS: f64 = 90.0;

/// Playback mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Live,
    /// At the chosen speed.
    Playing,
    Paused,
}

/// The timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    mode: Mode,
    at: Time,
    first: Time,
    last: Time,
    /// Oldest moment that is stored anywhere; `None` if none before the first is known.
    oldest: Option<Time>,
    /// The part on the line, if the user zoomed.
    window: Option<Window>,
    speed: f64,
    /// Whether the source is live, so that the end moves.
    grows: bool,
}

impl Timeline {
    /// Timeline of a live grid.
    #[must_use]
    pub fn live(now: Time) -> Timeline {
        let (oldest, window) = (None, None);
        Timeline { mode: Mode::Live, at: now, first: now, last: now, oldest, window, speed: 1.0, grows: true }
    }

    /// Timeline of a log: starts at its beginning, at a speed that plays it through soon.
    #[must_use]
    pub fn of_log(first: Time, last: Time) -> Timeline {
        let speed = (last.since(first).as_secs_f64() / PLAYED_IN_SECS).clamp(1.0, SPEED_CHOSEN_MAX);
        Timeline {
            mode: Mode::Playing,
            at: first,
            first,
            last: last.max(first),
            oldest: None,
            window: None,
            speed: speed.round(),
            grows: false,
        }
    }

    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The shown time.
    #[must_use]
    pub fn time(&self) -> Time {
        self.at
    }

    /// The available range.
    #[must_use]
    pub fn span(&self) -> (Time, Time) {
        (self.oldest.map_or(self.first, |oldest| oldest.min(self.first)), self.last)
    }

    /// The range on the line: what the grid has, unless the user zoomed.
    #[must_use]
    pub fn shown(&self) -> (Time, Time) {
        match self.window {
            Some(window) => window.range(self.span()),
            None => (self.first.min(self.at), self.last),
        }
    }

    /// Whether the user zoomed.
    #[must_use]
    pub fn is_zoomed(&self) -> bool {
        self.window.is_some()
    }

    /// Zoom the line in by a factor; a time keeps its position.
    pub fn zoom(&mut self, factor: f64, at: Time) {
        self.window = Some(Window::zoomed(self.shown(), factor, at, self.span()));
    }

    /// Show this many seconds on the line, around the shown time; what the grid has for `None`.
    pub fn show_secs(&mut self, secs: Option<f64>) {
        self.window = secs.map(|secs| Window::around(self.at, secs, self.span()));
    }

    /// Something is stored from this time on.
    pub fn reach_back(&mut self, oldest: Time) {
        self.oldest = Some(self.oldest.map_or(oldest, |known| known.min(oldest)));
    }

    /// Have the shown time on the line.
    fn keep_in_window(&mut self) {
        let span = self.span();
        if let Some(window) = &mut self.window {
            window.keep(self.at, span);
        }
    }

    /// The chosen speed; 1 while live.
    #[must_use]
    pub fn speed(&self) -> f64 {
        if self.mode == Mode::Live { 1.0 } else { self.speed }
    }

    /// Whether the source is live.
    #[must_use]
    pub fn can_be_live(&self) -> bool {
        self.grows
    }

    /// Duration of a flight, in microseconds of the grid's time.
    #[must_use]
    pub fn flight_micros(&self) -> i64 {
        self.micros(FLIGHT_SECS)
    }

    /// Set the speed; values out of bounds are clamped, NaN becomes 1.
    pub fn set_speed(&mut self, speed: f64) {
        self.speed = if speed.is_nan() { 1.0 } else { speed.clamp(SPEED_MIN, SPEED_MAX) };
    }

    /// Set the available range.
    pub fn reach(&mut self, first: Time, last: Time) {
        self.first = first.min(last);
        self.last = last.max(self.first);
        let (first, last) = self.span();
        self.at = self.at.clamp(first, last);
    }

    /// Advance by `secs` of real time; `now` is the new end if the source is live.
    pub fn tick(&mut self, secs: f64, now: Time) {
        if self.grows {
            self.last = self.last.max(now);
        }
        let secs = if secs.is_nan() { 0.0 } else { secs.clamp(0.0, STEP_MAX_SECS) };
        match self.mode {
            Mode::Live => self.at = self.last,
            Mode::Playing => {
                let step = Duration::from_micros(u64::try_from(self.micros(secs)).unwrap_or(0));
                self.at = self.at.plus(step).min(self.last);
                if self.at >= self.last {
                    self.mode = if self.grows { Mode::Live } else { Mode::Paused };
                }
            }
            Mode::Paused => {}
        }
        self.keep_in_window();
    }

    /// Pause at the shown time.
    pub fn pause(&mut self) {
        self.mode = Mode::Paused;
    }

    /// Play; at the end of a log from its beginning, at the end of a live source live.
    pub fn play(&mut self) {
        if self.at >= self.last {
            match self.grows {
                true => return self.go_live(),
                false => self.at = self.first,
            }
        }
        self.mode = Mode::Playing;
    }

    /// Show the present, if the source is live.
    pub fn go_live(&mut self) {
        if self.grows {
            self.mode = Mode::Live;
            self.at = self.last;
        }
    }

    /// Jump to a time; a live timeline then plays from there.
    pub fn scrub(&mut self, to: Time) {
        let (first, last) = self.span();
        self.at = to.clamp(first, last);
        self.keep_in_window();
        if self.mode == Mode::Live {
            self.mode = Mode::Playing;
        }
    }

    /// Jump to shortly before the next of `failures` (sorted by time), or while paused exactly to it; from
    /// live, where nothing comes next, to the last one. `None` if there is none.
    pub fn jump_to_failure(&mut self, failures: &[Failure]) -> Option<Failure> {
        let before = if self.mode == Mode::Paused { 0 } else { self.micros(BEFORE_FAILURE_SECS) };
        // Skips the failure of the previous jump, which is still slightly ahead.
        let after = self.at.micros().saturating_add(before);
        let next = match self.mode {
            Mode::Live => failures.iter().rfind(|failure| failure.time <= self.last)?.clone(),
            Mode::Playing | Mode::Paused => {
                failures.iter().find(|failure| failure.time.micros() > after)?.clone()
            }
        };
        self.scrub(Time::from_micros(next.time.micros().saturating_sub(before)));
        Some(next)
    }

    /// Microseconds of the grid's time in this many seconds of real time.
    #[allow(clippy::cast_possible_truncation)]
    fn micros(&self, secs: f64) -> i64 {
        (secs * 1e6 * self.speed()).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::FailureOf;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    #[test]
    fn a_log_plays_to_its_end_and_starts_again() {
        let mut timeline = Timeline::of_log(at(100.0), at(1_000.0));
        assert_eq!((timeline.mode(), timeline.speed()), (Mode::Playing, 10.0));
        timeline.tick(2.0, at(9e9));
        assert_eq!(timeline.time(), at(120.0));
        for _ in 0..100 {
            timeline.tick(1.0, at(9e9));
        }
        assert_eq!((timeline.time(), timeline.mode()), (at(1_000.0), Mode::Paused));
        timeline.go_live();
        assert_eq!(timeline.mode(), Mode::Paused, "a log is not live");
        timeline.play();
        assert_eq!((timeline.time(), timeline.mode()), (at(100.0), Mode::Playing));
        timeline.tick(1e9, at(9e9));
        assert_eq!(timeline.time(), at(150.0), "a step of the clock is bounded");
    }

    #[test]
    fn what_was_live_is_live_again_when_it_catches_up() {
        let mut timeline = Timeline::live(at(1_000.0));
        timeline.reach(at(500.0), at(1_000.0));
        timeline.tick(0.1, at(1_001.0));
        assert_eq!(timeline.time(), at(1_001.0));
        timeline.scrub(at(900.0));
        timeline.set_speed(50.0);
        timeline.tick(2.0, at(1_003.0));
        assert_eq!((timeline.time(), timeline.mode()), (at(1_000.0), Mode::Playing));
        timeline.tick(2.0, at(1_005.0));
        assert_eq!((timeline.time(), timeline.mode(), timeline.speed()), (at(1_005.0), Mode::Live, 1.0));
        timeline.pause();
        timeline.tick(2.0, at(1_007.0));
        assert_eq!((timeline.time(), timeline.span().1), (at(1_005.0), at(1_007.0)));
    }

    #[test]
    fn speeds_and_places_stay_within_their_bounds() {
        let mut timeline = Timeline::of_log(at(0.0), at(10.0));
        for (speed, expected) in
            [(1e9, SPEED_MAX), (0.0, 0.1), (f64::NAN, 1.0), (f64::INFINITY, SPEED_MAX), (3.5, 3.5)]
        {
            timeline.set_speed(speed);
            assert_eq!(timeline.speed(), expected);
        }
        timeline.scrub(Time::from_micros(i64::MAX));
        assert_eq!(timeline.time(), at(10.0));
        timeline.scrub(Time::from_micros(i64::MIN));
        assert_eq!(timeline.time(), at(0.0));
        timeline.tick(f64::NAN, at(0.0));
        assert_eq!(timeline.time(), at(0.0));
        timeline.reach(at(5.0), at(20.0));
        assert_eq!(timeline.time(), at(5.0));
    }

    #[test]
    fn jumps_go_from_failure_to_failure() {
        let mut timeline = Timeline::of_log(at(0.0), at(1_000.0));
        timeline.set_speed(1.0);
        let failures: Vec<Failure> =
            [10.0, 10.2, 500.0].map(|secs| Failure { time: at(secs), of: FailureOf::Call(0) }).into();
        let mut met = Vec::new();
        while let Some(failure) = timeline.jump_to_failure(&failures) {
            assert!(
                timeline.time() < failure.time && failure.time.since(timeline.time()).as_secs_f64() < 1.0
            );
            met.push(failure.time.secs_f64());
        }
        assert_eq!(met, [10.0, 10.2, 500.0]);
        timeline.scrub(at(0.0));
        timeline.pause();
        timeline.jump_to_failure(&failures);
        assert_eq!(timeline.time(), at(10.0), "while time stands still what failed is seen to have");
        timeline.jump_to_failure(&failures);
        assert_eq!(timeline.time(), at(10.2));
        let mut live = Timeline::live(at(900.0));
        live.reach(at(0.0), at(900.0));
        assert_eq!(
            live.jump_to_failure(&failures).map(|failure| failure.time),
            Some(at(500.0)),
            "the last one"
        );
        assert_eq!((live.mode(), live.jump_to_failure(&failures)), (Mode::Playing, None));
    }
}
