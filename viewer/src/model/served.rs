//! Events and processes of the selected call, and when they are requested again.
//!
//! Pure. Rule: a running call is requested every two seconds, one that ended until its last samples have
//! arrived, and a host that could not be queried after increasing pauses. Not here: how they are requested
//! (`live::served`), how they are shown (`app::served`).

use crate::feed::Served;
use crate::grid::call::Call;
use crate::served::Event;
use crate::served::ServedBy;
use std::sync::Arc;
use wire::call::State;
use wire::time::Time;

/// Interval of requests for a running call, in seconds.
const INTERVAL_SECS: f64 = 2.0;
/// The last samples of a call have arrived this long after its end, in seconds.
const SETTLED_SECS: f64 = 5.0;
/// First and longest pause before a host that could not be queried is queried again, in seconds.
const RETRY_SECS: f64 = 4.0;
const RETRY_MAX_SECS: f64 = 60.0;
/// Timeout of an answer, in seconds: a domain and eight hosts, each with a timeout of 35.
const ANSWER_MAX_SECS: f64 = 330.0;

/// Events and processes of the selected call.
#[derive(Clone, Default)]
pub struct ServedCall {
    call: String,
    by: Option<Arc<ServedBy>>,
    events: Arc<[Event]>,
    /// How many events the call had when they were requested.
    events_requested: Option<u32>,
    requested_at: Option<Time>,
    is_waiting: bool,
    /// Consecutive answers that lack a host.
    partial_answers: i32,
}

impl ServedCall {
    /// The processes of this call, if they are known.
    #[must_use]
    pub fn of(&self, call: &str) -> Option<&ServedBy> {
        self.by.as_deref().filter(|_| self.call == call)
    }

    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn take(&mut self, call: &str, mut by: Arc<ServedBy>) {
        if self.call != call {
            return;
        }
        if let Some(before) = &self.by {
            Arc::make_mut(&mut by).keep(before);
        }
        self.is_waiting = false;
        match &by.events {
            Some(events) => self.events = events.as_slice().into(),
            None if by.is_partial => self.events_requested = None,
            None => {}
        }
        self.partial_answers = if by.is_partial { self.partial_answers.saturating_add(1) } else { 0 };
        self.by = Some(by);
    }

    /// Show an answer for a call, whatever was shown before.
    pub(super) fn show(&mut self, call: &Call, by: Arc<ServedBy>, now: Time) {
        *self = ServedCall {
            call: call.id.clone(),
            events_requested: Some(call.events),
            requested_at: Some(now),
            ..ServedCall::default()
        };
        self.take(&call.id, by);
    }

    /// Whether a call is to be requested now.
    pub(super) fn is_due(&self, call: &Call, now: Time, has_processes: bool) -> bool {
        let Some(requested_at) = self.requested_at.filter(|_| self.call == call.id) else { return true };
        let since = now.since(requested_at).as_secs_f64();
        if self.is_waiting {
            return since > ANSWER_MAX_SECS;
        }
        if self.partial_answers > 0 {
            let pause = RETRY_SECS * 2_f64.powi(self.partial_answers.min(8) - 1);
            return since > pause.min(RETRY_MAX_SECS);
        }
        let is_settled =
            call.ended.is_some_and(|ended| requested_at.since(ended).as_secs_f64() > SETTLED_SECS);
        // A call that waits has events alone.
        let has_samples = call.state == State::Running || call.state == State::Ended && !is_settled;
        since > INTERVAL_SECS && (has_samples && has_processes || self.events_requested != Some(call.events))
    }

    /// How many events of a call are to be requested, if they are not known yet.
    pub(super) fn missing_events(&self, call: &Call) -> Option<u32> {
        let are_known = self.call == call.id && self.events_requested == Some(call.events);
        (!are_known).then_some(call.events)
    }

    /// A request for a call was sent.
    pub(super) fn requested(&mut self, request: &Served, now: Time) {
        if self.call != request.call {
            *self = ServedCall { call: request.call.clone(), ..ServedCall::default() };
        }
        (self.requested_at, self.is_waiting) = (Some(now), true);
        self.events_requested = request.events.or(self.events_requested);
    }
}
