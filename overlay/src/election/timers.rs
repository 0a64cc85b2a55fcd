//! Timers of the state machine and the moment of its last input.
//!
//! Pure. The machine has one deadline at a time, [`Timers::deadline`]: the sooner of the next heartbeat and
//! the next check. Invariant: the deadline is set after every input.
//! Not here: deadlines of single dials (`dialer`), what a timer does (`node`).

use std::time::Duration;
use wire::time::Moment;

/// What is due at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A member looks whether it lost its leader, a representative looks after its domain: with every
    /// heartbeat, and every [`super::Config::look`] while something is pending.
    Check,
    /// A heartbeat on every link.
    Heartbeat,
}

impl Timer {
    /// Every timer, in the order in which they fire.
    pub(super) const ALL: [Timer; 2] = [Timer::Check, Timer::Heartbeat];
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    heartbeat: Moment,
    deadline: Moment,
    last_input: Moment,
}

impl Timers {
    pub(super) fn new(heartbeat: Moment, now: Moment) -> Timers {
        Timers { heartbeat, deadline: heartbeat, last_input: now }
    }

    /// When the machine must be called next.
    pub(super) fn deadline(&self) -> Moment {
        self.deadline
    }

    pub(super) fn last_input(&self) -> Moment {
        self.last_input
    }

    /// Note an input; returns the time since the previous one.
    pub(super) fn note_input(&mut self, now: Moment) -> Duration {
        let gap = now.since(self.last_input);
        self.last_input = self.last_input.max(now);
        gap
    }

    /// Whether `timer` fires when the deadline passes: a check always does.
    pub(super) fn is_due(&self, timer: Timer, now: Moment) -> bool {
        match timer {
            Timer::Check => true,
            Timer::Heartbeat => now >= self.heartbeat,
        }
    }

    pub(super) fn set_heartbeat(&mut self, at: Moment) {
        self.heartbeat = at;
    }

    /// Set the deadline; `check` is the interval of checks while something is pending.
    pub(super) fn set_deadline(&mut self, check: Option<Duration>) {
        let check = check.map_or(self.heartbeat, |interval| self.last_input.plus(interval));
        self.deadline = self.heartbeat.min(check);
    }
}
