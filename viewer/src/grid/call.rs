//! A call as it is drawn: its client, scheduler and hosts, the time of each step, and its outcome.
//!
//! Pure. Invariant: the times that are present ascend and lie within the limits of the grid.
//! Not here: the position of its mark at a time (`scene::course`).

use super::place::{DomainId, PlaceId};
use std::time::Duration;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id as `visperf calls` prints it.
    pub id: String,
    /// The domain that reported it.
    pub domain: DomainId,
    /// Number given by the middleware.
    pub job: String,
    /// Name given by its user.
    pub name: String,
    pub user: String,
    /// Why it waits or how it ended.
    pub reason: String,
    pub client: PlaceId,
    /// Scheduler that chose a host, if there was one.
    pub scheduler: Option<PlaceId>,
    /// Hosts where it ran.
    pub hosts: Vec<PlaceId>,
    /// Servers offered, best first.
    pub offers: Vec<PlaceId>,
    /// Time of submission.
    pub submitted: Option<Time>,
    /// Time when servers were offered.
    pub offered: Option<Time>,
    /// Time when a host was chosen; if unknown, when the work started.
    pub assigned: Option<Time>,
    /// Time when the work started.
    pub started: Option<Time>,
    /// Time when it ended.
    pub ended: Option<Time>,
    /// Its last state.
    pub state: State,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Number of times it was started.
    pub tries: u32,
    /// Number of events about it.
    pub events: u32,
}

/// Steps of a call up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The time; later steps are left out.
    pub until: Time,
    /// Time of submission.
    pub submitted: Option<Time>,
    /// Time when servers were offered.
    pub offered: Option<Time>,
    /// Time when the work started; if unknown, when a host was chosen.
    pub started: Option<Time>,
    /// Time when it ended.
    pub ended: Option<Time>,
}

impl Steps {
    /// Waiting time until then, if its submission is known.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        Some(self.started.or(self.ended).unwrap_or(self.until).since(self.submitted?))
    }

    /// Running time until then, if its start is known.
    #[must_use]
    pub fn worked(&self) -> Option<Duration> {
        Some(self.ended.unwrap_or(self.until).since(self.started?))
    }
}

impl Call {
    /// Its steps up to a time.
    #[must_use]
    pub fn steps(&self, until: Time) -> Steps {
        let by_then = |step: Option<Time>| step.filter(|&at| at <= until);
        Steps {
            until,
            submitted: by_then(self.submitted),
            offered: by_then(self.offered),
            started: by_then(self.started.or(self.assigned)),
            ended: by_then(self.ended),
        }
    }

    /// Its first known time, for the order of calls.
    #[must_use]
    pub fn first(&self) -> Option<Time> {
        self.submitted.or(self.assigned).or(self.started).or(self.ended)
    }

    /// Its last known time.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        self.ended.or(self.started).or(self.assigned).or(self.offered).or(self.submitted)
    }

    /// Whether it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Failed | Outcome::Timeout | Outcome::NodeFail))
    }

    /// Its state at a time, derived from its timestamps, so that replay shows the past as it was.
    #[must_use]
    pub fn state_at(&self, time: Time) -> Option<State> {
        let steps = self.steps(time);
        match (steps.ended, steps.started) {
            (Some(_), _) => Some(State::Ended),
            (None, Some(_)) => Some(State::Running),
            (None, None) => self.first().is_some_and(|first| first <= time).then_some(State::Waiting),
        }
    }

    /// Make the times ascend: a step later than the one that follows it is moved back to that time.
    pub(super) fn order_times(&mut self) {
        let mut latest = self.ended;
        for step in [&mut self.started, &mut self.assigned, &mut self.offered, &mut self.submitted] {
            if let Some(at) = *step {
                let at = latest.map_or(at, |latest| at.min(latest));
                *step = Some(at);
                latest = Some(at);
            }
        }
    }
}
