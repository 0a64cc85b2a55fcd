//! A call as it is drawn: who asked whom, when each step was, how it ended.
//!
//! Pure. Invariant: the times that are there ascend, and lie within what the grid takes.
//! Not here: where its mark stands at a time (`scene::course`).

use super::place::{DomainId, PlaceId};
use std::time::Duration;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id as `visperf calls` prints it.
    pub id: String,
    /// In whose domain it was told.
    pub domain: DomainId,
    /// The middleware's number of it.
    pub job: String,
    /// The name its user gave it.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// Why it waits or ended so.
    pub reason: String,
    /// Who asked.
    pub client: PlaceId,
    /// Who chose, where somebody did.
    pub scheduler: Option<PlaceId>,
    /// Where it ran.
    pub hosts: Vec<PlaceId>,
    /// The servers offered, best first.
    pub offers: Vec<PlaceId>,
    /// When it was handed in.
    pub submitted: Option<Time>,
    /// When servers were offered.
    pub offered: Option<Time>,
    /// When a host was chosen, or the work began where no choice is told.
    pub assigned: Option<Time>,
    /// When the work began.
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// Where it stands at last.
    pub state: State,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// How often it was started.
    pub tries: u32,
    /// How many events tell of it.
    pub events: u32,
}

/// The steps of a call that were by a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Until when steps are told.
    pub until: Time,
    /// When it was handed in.
    pub submitted: Option<Time>,
    /// When servers were offered.
    pub offered: Option<Time>,
    /// When its work began, or a host was chosen where that is not told.
    pub begun: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
}

impl Steps {
    /// How long it waited by then, where it was handed in.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        Some(self.begun.or(self.ended).unwrap_or(self.until).since(self.submitted?))
    }

    /// How long it worked by then, where it began.
    #[must_use]
    pub fn worked(&self) -> Option<Duration> {
        Some(self.ended.unwrap_or(self.until).since(self.begun?))
    }
}

impl Call {
    /// What was of it by a time.
    #[must_use]
    pub fn steps(&self, until: Time) -> Steps {
        let by_then = |step: Option<Time>| step.filter(|&at| at <= until);
        Steps {
            until,
            submitted: by_then(self.submitted),
            offered: by_then(self.offered),
            begun: by_then(self.started.or(self.assigned)),
            ended: by_then(self.ended),
        }
    }

    /// When it is first heard of.
    #[must_use]
    pub fn first(&self) -> Option<Time> {
        self.submitted.or(self.assigned).or(self.started).or(self.ended)
    }

    /// When it is last heard of.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        self.ended.or(self.started).or(self.assigned).or(self.offered).or(self.submitted)
    }

    /// Whether it ended as no one wanted.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Failed | Outcome::Timeout | Outcome::NodeFail))
    }

    /// Where it stood at a time: by its times, so that the past is told as it was.
    #[must_use]
    pub fn state_at(&self, time: Time) -> Option<State> {
        let steps = self.steps(time);
        match (steps.ended, steps.begun) {
            (Some(_), _) => Some(State::Ended),
            (None, Some(_)) => Some(State::Running),
            (None, None) => self.first().is_some_and(|first| first <= time).then_some(State::Waiting),
        }
    }

    /// Make the times ascend: a step told to be later than one that follows it is moved before that.
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
