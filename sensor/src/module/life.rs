//! How a module fares: when it is started, how long it is left alone after a failure, and when no longer tried.
//!
//! Pure: callers pass `now`, since a fixed start. Rules: each failure doubles the wait; so many in a row, with no quiet time
//! between them, end in quarantine, out of which only an order or a changed file leads.
//! Not here: what a failure is (`runner`, `protocol`).

use std::time::Duration;
use wire::api::modules::ModuleState;

/// Waits and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After a first failure.
    pub first: Duration,
    /// At most.
    pub longest: Duration,
    /// So many failures end in quarantine.
    pub failures_max: u32,
    /// Failures before so long without one are forgotten.
    pub forgiven_after: Duration,
}

impl Default for Patience {
    /// A module that fails at once is tried for a quarter of a minute.
    fn default() -> Patience {
        Patience {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            failures_max: 5,
            forgiven_after: Duration::from_secs(60),
        }
    }
}

/// What a module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is to be started.
    Due,
    /// It answers.
    Running,
    /// It failed, and is started again then.
    Waiting {
        /// Since a fixed start.
        until: Duration,
    },
    /// It failed too often.
    Quarantined,
    /// Somebody ordered it to stop.
    Stopped,
    /// Its file says `on = false`.
    Off,
}

impl From<State> for ModuleState {
    fn from(state: State) -> ModuleState {
        match state {
            State::Due => ModuleState::Starting,
            State::Running => ModuleState::Running,
            State::Waiting { .. } => ModuleState::Waiting,
            State::Quarantined => ModuleState::Quarantined,
            State::Stopped => ModuleState::Stopped,
            State::Off => ModuleState::Off,
        }
    }
}

/// What has come of a module so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Starts that led to a hello.
    pub starts_total: u64,
    /// Calls that were answered.
    pub calls_total: u64,
    /// How long it took to answer them.
    pub answering: Duration,
    /// What it did that it should not.
    pub failures_total: u64,
}

/// A module's life.
#[derive(Clone, Debug)]
pub struct Life {
    patience: Patience,
    state: State,
    in_a_row: u32,
    failed_at: Duration,
    counts: Counts,
    last_error: Option<String>,
}

impl Life {
    /// Of a module that is on, or not.
    #[must_use]
    pub fn new(patience: Patience, is_on: bool) -> Life {
        Life {
            patience,
            state: if is_on { State::Due } else { State::Off },
            in_a_row: 0,
            failed_at: Duration::ZERO,
            counts: Counts::default(),
            last_error: None,
        }
    }

    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What has come of it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Why it failed the last time.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Whether it is to be started at `now`.
    pub fn is_due(&mut self, now: Duration) -> bool {
        if matches!(self.state, State::Waiting { until } if until <= now) {
            self.state = State::Due;
        }
        self.state == State::Due
    }

    /// How long to wait until it is; none where that depends on an order.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Due => Some(Duration::ZERO),
            State::Waiting { until } => Some(until.saturating_sub(now)),
            State::Running | State::Quarantined | State::Stopped | State::Off => None,
        }
    }

    /// It said hello.
    pub fn started(&mut self) {
        self.state = State::Running;
        self.counts.starts_total += 1;
    }

    /// It answered a call after so long.
    pub fn answered(&mut self, took: Duration) {
        self.counts.calls_total += 1;
        self.counts.answering += took;
    }

    /// It did what it should not, or did not start.
    pub fn failed(&mut self, why: String, now: Duration) {
        if now.saturating_sub(self.failed_at) >= self.patience.forgiven_after {
            self.in_a_row = 0;
        }
        self.counts.failures_total += 1;
        self.in_a_row += 1;
        self.last_error = Some(why);
        self.state = if self.in_a_row >= self.patience.failures_max {
            State::Quarantined
        } else {
            let doublings = (self.in_a_row - 1).min(16);
            let wait = self.patience.first.saturating_mul(1 << doublings).min(self.patience.longest);
            State::Waiting { until: now + wait }
        };
        // After the wait, so that a long one is no quiet time.
        self.failed_at = match self.state {
            State::Waiting { until } => until,
            State::Due | State::Running | State::Quarantined | State::Stopped | State::Off => now,
        };
    }

    /// It is to run no more.
    pub fn stop(&mut self) {
        self.state = State::Stopped;
    }

    /// It is to be started, or restarted: nothing before counts against it.
    pub fn start(&mut self, is_on: bool) {
        self.in_a_row = 0;
        self.last_error = None;
        self.state = if is_on { State::Due } else { State::Off };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience() -> Patience {
        Patience { first: SECOND, longest: 4 * SECOND, failures_max: 5, forgiven_after: 60 * SECOND }
    }

    #[test]
    fn waits_double_and_end_in_quarantine() {
        let (mut life, mut now, mut waits) = (Life::new(patience(), true), 10 * SECOND, Vec::new());
        while life.is_due(now) {
            life.started();
            life.failed("it crashed".to_owned(), now);
            let Some(wait) = life.wait(now) else { break };
            assert!(!life.is_due(now) && matches!(life.state(), State::Waiting { .. }));
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!((waits, life.state()), (vec![1, 2, 4, 4], State::Quarantined));
        assert!(!life.is_due(now + 1_000_000 * SECOND), "only an order leads out");
        assert_eq!((life.counts().failures_total, life.last_error()), (5, Some("it crashed")));
        life.start(true);
        assert!(life.is_due(now) && life.last_error().is_none());
        life.failed("again".to_owned(), now);
        assert_eq!(life.wait(now), Some(SECOND), "nothing before counts");
    }

    #[test]
    fn rare_failures_are_forgiven_and_a_long_wait_is_no_quiet_time() {
        let slow = Patience { longest: 100 * SECOND, first: 100 * SECOND, ..patience() };
        for (patience, pause, expected) in [(patience(), 70, false), (patience(), 50, true), (slow, 0, true)]
        {
            let (mut life, mut now) = (Life::new(patience, true), SECOND);
            for _ in 0..20 {
                if !life.is_due(now) {
                    break;
                }
                life.started();
                now += Duration::from_secs(pause);
                life.failed("it crashed".to_owned(), now);
                now += life.wait(now).unwrap_or_default();
            }
            assert_eq!(life.state() == State::Quarantined, expected, "{pause}");
        }
    }

    #[test]
    fn one_that_is_stopped_or_off_waits_for_an_order() {
        let mut life = Life::new(patience(), false);
        assert!(!life.is_due(SECOND) && life.wait(SECOND).is_none() && life.state() == State::Off);
        life.start(true);
        life.started();
        life.answered(SECOND);
        life.stop();
        assert!(!life.is_due(1000 * SECOND) && life.state() == State::Stopped);
        assert_eq!((life.counts().calls_total, life.counts().answering), (1, SECOND));
    }
}
