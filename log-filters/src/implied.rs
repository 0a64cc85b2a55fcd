//! Start and end of a call implied by other events: a controller logs its choice of a host but no start, and
//! the request to cancel a job but not its end.
//!
//! Pure. Rule: an implied time has the lowest priority: it is used only while no log reports the call's start
//! or end itself, and is never mixed with reported times. Not here: which filter implies what (`engine`), the
//! rest of a call (`progress`).

use serde::{Deserialize, Serialize};
use wire::call::Authority;
use wire::event::{Content, Kind, Outcome};
use wire::time::Time;

/// Start and end of a call, as implied by other events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Implied {
    /// The selection of a host means that the call runs there.
    by_choice: bool,
    end: Option<End>,
    /// Time of the last event that shows the call selected or running.
    goes_on: Option<Time>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct End {
    at: Time,
    outcome: Outcome,
    by: Authority,
    /// The end of a step, which ends the call only if it is running.
    is_step: bool,
}

impl Implied {
    /// Process an event; `last_requeue` is the last known time at which the call was requeued.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds imply nothing")]
    pub(crate) fn apply(&mut self, content: &Content, by: Authority, last_requeue: Option<Time>) {
        let outcome = match content.kind {
            Kind::JobSelect | Kind::JobStart | Kind::StepStart => {
                self.by_choice |= content.kind == Kind::JobSelect && content.started.is_some();
                self.goes_on = self.goes_on.max(Some(content.time));
                return;
            }
            Kind::JobCancel => Outcome::Cancelled,
            Kind::StepEnd => content.outcome.unwrap_or(Outcome::Finished),
            _ => return,
        };
        if let Some(at) = content.ended {
            self.add_end(End { at, outcome, by, is_step: content.kind == Kind::StepEnd }, last_requeue);
        }
    }

    /// Keep the end of the better authority; of one authority the first since the last requeue.
    fn add_end(&mut self, end: End, last_requeue: Option<Time>) {
        let earlier_try = |end: &End| last_requeue.is_some_and(|requeue| end.at < requeue);
        let replaces = match &self.end {
            None => true,
            Some(known) if earlier_try(known) != earlier_try(&end) => earlier_try(known),
            Some(known) => {
                end.by > known.by
                    || (end.by == known.by
                        && (end.at < known.at || self.is_refuted(known) && !self.is_refuted(&end)))
            }
        };
        if replaces {
            self.end = Some(end);
        }
    }

    /// Whether a later event shows that the call continued.
    fn is_refuted(&self, end: &End) -> bool {
        self.goes_on.is_some_and(|at| at > end.at)
    }

    pub(crate) fn absorb(&mut self, other: &Implied, last_requeue: Option<Time>) {
        self.by_choice |= other.by_choice;
        self.goes_on = self.goes_on.max(other.goes_on);
        if let Some(end) = other.end {
            self.add_end(end, last_requeue);
        }
    }

    /// Start time, if the selection of a host at `selected` implies it.
    pub(crate) fn started(&self, selected: Option<Time>) -> Option<Time> {
        selected.filter(|_| self.by_choice)
    }

    /// Time and outcome of the implied end, unless the call continued after it. A host ends a step a moment
    /// after `last_requeue`: if the call has not started since, it waits.
    pub(crate) fn ended(&self, last_requeue: Option<Time>) -> Option<(Time, Outcome)> {
        let waits = last_requeue.is_some_and(|requeue| self.goes_on <= Some(requeue));
        let holds = |end: &End| !(self.is_refuted(end) || end.is_step && waits);
        self.end.filter(holds).map(|end| (end.at, end.outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of these kinds and seconds; `true` if the event's time is also the call's start or end.
    fn after(events: &[(Kind, i64, bool)], by: Authority) -> Implied {
        let mut implied = Implied::default();
        for &(kind, at, implies) in events {
            let mut content = Content::new(kind, secs(at));
            if implies {
                (content.started, content.ended) = (Some(content.time), Some(content.time));
            }
            implied.apply(&content, by, None);
        }
        implied
    }

    fn secs(at: i64) -> Time {
        Time::from_micros(at * 1_000_000)
    }

    #[test]
    fn a_choice_is_a_start_only_where_the_log_means_so() {
        for implies in [false, true] {
            let implied = after(&[(Kind::JobSelect, 5, implies)], Authority::Scheduler);
            assert_eq!(implied.started(Some(secs(5))).is_some(), implies);
        }
    }

    #[test]
    fn a_wish_to_cancel_is_an_end_unless_the_call_goes_on() {
        let both = [(Kind::JobSelect, 5, true), (Kind::JobCancel, 9, true)];
        let implied = after(&both, Authority::Scheduler);
        assert_eq!(implied.ended(None), Some((secs(9), Outcome::Cancelled)));
        for kind in [Kind::JobSelect, Kind::JobStart, Kind::StepStart] {
            let went_on = after(&[both[0], both[1], (kind, 12, false)], Authority::Scheduler);
            assert_eq!(went_on.ended(None), None, "{kind:?}");
        }
        let refused = after(&[both[0], (Kind::JobCancel, 9, false)], Authority::Scheduler);
        assert_eq!(refused.ended(None), None);
    }

    #[test]
    fn a_host_that_is_done_with_a_job_that_was_put_back_does_not_end_it() {
        let host = after(&[(Kind::JobStart, 2, true), (Kind::StepEnd, 8, true)], Authority::Message);
        assert_eq!(host.ended(None), Some((secs(8), Outcome::Finished)));
        assert_eq!(host.ended(Some(secs(7))), None);
        let cancelled = after(&[(Kind::JobCancel, 9, true)], Authority::Scheduler);
        assert_eq!(
            cancelled.ended(Some(secs(7))),
            Some((secs(9), Outcome::Cancelled)),
            "who waits may be cancelled"
        );
    }

    #[test]
    fn the_controllers_end_holds_against_a_hosts_in_either_order() {
        let controller = after(&[(Kind::JobCancel, 9, true)], Authority::Scheduler);
        let host = after(&[(Kind::StepEnd, 8, true)], Authority::Message);
        assert_eq!(host.ended(None), Some((secs(8), Outcome::Finished)));
        for (one, other) in [(&controller, &host), (&host, &controller)] {
            let mut both = one.clone();
            both.absorb(other, None);
            assert_eq!(both.ended(None), Some((secs(9), Outcome::Cancelled)));
        }
    }
}
