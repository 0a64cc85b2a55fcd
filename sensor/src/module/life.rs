//! State machine of a module: when it is started, how long it waits after a failure (backoff), and when it is
//! quarantined.
//!
//! Pure: callers pass `now`, since a fixed start. Rules: each failure doubles the wait; several failures in a
//! row, without a quiet time between them, end in quarantine, which only a command or a changed file ends.
//! Not here: what a failure is (`runner`, `protocol`).

use std::time::Duration;
use wire::api::modules::ModuleState;
use wire::backoff::Backoff;

/// When a module that failed is started again, and when it is quarantined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Waits after failures in a row.
    pub backoff: Backoff,
    /// Failures in a row that end in quarantine.
    pub failures_max: u32,
    /// Time without a failure after which earlier ones are forgotten.
    pub forgiven_after: Duration,
}

impl Default for RestartPolicy {
    /// A module that fails at once is tried for 15 seconds.
    fn default() -> RestartPolicy {
        RestartPolicy {
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(30)),
            failures_max: 5,
            forgiven_after: Duration::from_secs(60),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is to be started now.
    Due,
    /// It said hello and answers calls.
    Running,
    /// It failed, and is started again at `until`.
    Waiting {
        /// Since a fixed start.
        until: Duration,
    },
    /// It failed too often.
    Quarantined,
    /// Stopped by a command.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Starts that led to a hello.
    pub starts_total: u64,
    /// Calls that were answered.
    pub calls_total: u64,
    /// Time until the answers, in total.
    pub answering: Duration,
    /// Failures to start, to answer, or to respect a limit.
    pub failures_total: u64,
}

/// State of a module with its counters and its last failure.
#[derive(Clone, Debug)]
pub struct Life {
    policy: RestartPolicy,
    state: State,
    in_a_row: u32,
    failed_at: Duration,
    counts: Counts,
    last_error: Option<String>,
}

impl Life {
    #[must_use]
    pub fn new(policy: RestartPolicy, is_on: bool) -> Life {
        Life {
            policy,
            state: if is_on { State::Due } else { State::Off },
            in_a_row: 0,
            failed_at: Duration::ZERO,
            counts: Counts::default(),
            last_error: None,
        }
    }

    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

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

    /// How long until the next start; `None` if that depends on a command.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Due => Some(Duration::ZERO),
            State::Waiting { until } => Some(until.saturating_sub(now)),
            State::Running | State::Quarantined | State::Stopped | State::Off => None,
        }
    }

    /// Records a start that led to a hello.
    pub fn started(&mut self) {
        self.state = State::Running;
        self.counts.starts_total += 1;
    }

    /// Records an answered call, and the time until the answer.
    pub fn answered(&mut self, took: Duration) {
        self.counts.calls_total += 1;
        self.counts.answering += took;
    }

    /// Records a failure; sets the backoff or the quarantine.
    pub fn failed(&mut self, why: String, now: Duration) {
        if now.saturating_sub(self.failed_at) >= self.policy.forgiven_after {
            self.in_a_row = 0;
        }
        self.counts.failures_total += 1;
        self.in_a_row += 1;
        self.last_error = Some(why);
        self.state = if self.in_a_row >= self.policy.failures_max {
            State::Quarantined
        } else {
            State::Waiting { until: now + self.policy.backoff.pause(self.in_a_row - 1) }
        };
        // Counted from the end of the wait, so that a long wait is not a quiet time.
        self.failed_at = match self.state {
            State::Waiting { until } => until,
            State::Due | State::Running | State::Quarantined | State::Stopped | State::Off => now,
        };
    }

    /// Stops it on command.
    pub fn stop(&mut self) {
        self.state = State::Stopped;
    }

    /// Makes it due, or turns it off; earlier failures do not count any more.
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

    fn policy() -> RestartPolicy {
        let backoff = Backoff::new(SECOND, 4 * SECOND);
        RestartPolicy { backoff, failures_max: 5, forgiven_after: 60 * SECOND }
    }

    #[test]
    fn waits_double_and_end_in_quarantine() {
        let (mut life, mut now, mut waits) = (Life::new(policy(), true), 10 * SECOND, Vec::new());
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
        let slow = RestartPolicy { backoff: Backoff::new(100 * SECOND, 100 * SECOND), ..policy() };
        for (policy, pause, expected) in [(policy(), 70, false), (policy(), 50, true), (slow, 0, true)] {
            let (mut life, mut now) = (Life::new(policy, true), SECOND);
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
        let mut life = Life::new(policy(), false);
        assert!(!life.is_due(SECOND) && life.wait(SECOND).is_none() && life.state() == State::Off);
        life.start(true);
        life.started();
        life.answered(SECOND);
        life.stop();
        assert!(!life.is_due(1000 * SECOND) && life.state() == State::Stopped);
        assert_eq!((life.counts().calls_total, life.counts().answering), (1, SECOND));
    }
}
