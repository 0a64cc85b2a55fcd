//! A call as it is drawn: who asked whom, when each step was, how it ended.
//!
//! Pure. Invariant: the times that are there ascend, and lie within what the grid takes.
//! Not here: where its mark stands at a time (`scene::course`).

use super::place::{DomainId, PlaceId};
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

impl Call {
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

    /// Whether it ended as nobody wanted.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Failed | Outcome::Timeout | Outcome::NodeFail))
    }

    /// Where it stood at a time: by its times, so that the past is told as it was.
    #[must_use]
    pub fn state_at(&self, time: Time) -> Option<State> {
        let is_past = |step: Option<Time>| step.is_some_and(|at| at <= time);
        if is_past(self.ended) {
            return Some(State::Ended);
        }
        if is_past(self.started.or(self.assigned)) {
            return Some(State::Running);
        }
        is_past(self.first()).then_some(State::Waiting)
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
