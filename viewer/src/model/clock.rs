//! The current time, and the timeline under all tabs.
//!
//! Pure: the current time is passed in. Invariant: the timeline of a log starts when its first grid arrives;
//! that of a daemon ends now. Not here: how time passes on the timeline (`timeline`).

use super::source::Source;
use crate::grid::builder::EARLIEST;
use crate::timeline::{Mode, Timeline};
use wire::time::Time;

/// Current time and timeline.
#[derive(Clone)]
pub(super) struct Clock {
    now: Time,
    opened_at: Time,
    timeline: Timeline,
    /// Whether the timeline has its span: that of a log is known with its first grid.
    has_span: bool,
}

impl Clock {
    pub(super) fn new(source: &Source, now: Time) -> Clock {
        let timeline = match source {
            Source::Daemon(_) => Timeline::live(now),
            Source::Log(_) | Source::File(_) => Timeline::of_log(now, now),
        };
        Clock { now, opened_at: now, timeline, has_span: source.is_daemon() }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Seconds since `at`; 0 where there is none.
    pub(super) fn secs_since(&self, at: Option<Time>) -> f64 {
        at.map_or(0.0, |at| self.now.since(at).as_secs_f64())
    }

    pub(super) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(super) fn timeline_mut(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Let `secs` of the user's time pass.
    pub(super) fn tick(&mut self, secs: f64) {
        self.timeline.tick(secs, self.now);
    }

    /// Something is stored from this time on.
    pub(super) fn reach_back(&mut self, oldest: Time) {
        // A clock that was wrong once, or a daemon that says so, does not stretch it over centuries.
        if oldest >= EARLIEST && oldest <= self.now {
            self.timeline.reach_back(oldest);
        }
    }

    /// Go to a time and pause there: of a daemon to any time that it may have stored.
    pub(super) fn stop_at(&mut self, time: Time) {
        let (first, last) = self.timeline.span();
        if self.timeline.can_be_live() && (EARLIEST..first).contains(&time) {
            self.timeline.reach(time, last);
        }
        self.timeline.scrub(time);
        self.timeline.pause();
    }

    /// Extend the timeline over `span`, that of the grid; `earliest` returns the first moment that sensors
    /// have stored, given the first and the last moment of the grid.
    pub(super) fn extend(&mut self, span: Option<(Time, Time)>, earliest: impl FnOnce(Time, Time) -> Time) {
        let is_live = self.timeline.can_be_live();
        let Some((first, last)) = span.or(is_live.then_some((self.opened_at, self.now))) else { return };
        if !self.has_span {
            self.timeline = Timeline::of_log(first, last);
            self.has_span = true;
            return;
        }
        let last = if is_live { self.now.max(last) } else { last };
        let first = earliest(first, last);
        // A user who went back stays there, also where nothing is stored of that time any more.
        let is_back = self.timeline.mode() != Mode::Live;
        let first = if is_live && is_back { first.min(self.timeline.time()) } else { first };
        self.timeline.reach(first, last);
    }
}
