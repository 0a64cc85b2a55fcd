//! Scheduler of evaluations: passes sweeps, events and calls to the subscriptions that are due.
//!
//! Shell: the CPU clock that each evaluation is charged by. Rules: no lock that a client needs is held during
//! an evaluation; subscriptions whose owners have used least go first; a round of evaluations takes at most
//! half the interval between two sweeps, or 2 ms if that is more. A sample that a round leaves out, or that
//! exceeds the common budget, counts as missed by its subscription; the sensor's own subscriptions are
//! exempt. Events and calls are never left out: they wait in the journal.
//! Not here: where sweeps and events come from (`process`, `handover`, `pump`, `query::channels::relays`).

use super::budget::round;
use super::event_evaluation::EventOrCall;
use super::host_evaluation::Sweep;
use super::hub::{Hub, Id, Shared, Slot, thread_time};
use super::owner::Owner;
use super::subscription::Subscription;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::ticker::locked;
use std::sync::Arc;
use std::time::Duration;
use wire::channel::{ChannelRequest, Kind};

/// Assumed interval between sweeps over the host, for the limit on a round.
const HOST_INTERVAL: Duration = Duration::from_millis(50);

/// Evaluates the subscriptions to processes, on the thread that passes it a sweep.
pub(super) struct Scheduler {
    hub: Hub,
    /// `None` for both lanes.
    lane: Option<Lane>,
    swept_at: Duration,
}

/// Group of subscriptions that are evaluated one after the other. A script may run for milliseconds and must
/// not delay subscriptions without one, so `handover` gives each lane a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Subscriptions without a script.
    Plain,
    /// Subscriptions with a script.
    Scripted,
}

impl Lane {
    pub const ALL: [Lane; 2] = [Lane::Plain, Lane::Scripted];

    /// The lane of a subscription with this request.
    pub(super) fn of(wanted: &ChannelRequest) -> Lane {
        if wanted.script.is_some() { Lane::Scripted } else { Lane::Plain }
    }
}

impl Scheduler {
    pub(super) fn new(shared: Arc<Shared>, lane: Option<Lane>) -> Scheduler {
        Scheduler { hub: Hub(shared), lane, swept_at: Duration::ZERO }
    }
}

impl Tap for Scheduler {
    fn swept(&mut self, view: &View, now: Duration) {
        let interval = now.saturating_sub(std::mem::replace(&mut self.swept_at, now));
        let at_ns = view.table.sweep().begin_ns;
        let lane = self.lane;
        self.hub.sample_all((Kind::Process, lane), interval, at_ns, now, |one| one.sample(view, now));
    }
}

impl Hub {
    /// Whether there is a subscription of this kind.
    #[must_use]
    pub fn wants(&self, kind: Kind) -> bool {
        !self.of_kinds(&[kind]).is_empty()
    }

    /// Passes on a sweep over the host that started at `now`.
    pub fn swept_host(&self, sweep: &Sweep<'_>, now: Duration) {
        self.sample_all((Kind::Host, None), HOST_INTERVAL, sweep.at_ns, now, |one| {
            one.sample_host(sweep, now)
        });
    }

    /// Passes an event or a call to all subscriptions of its kind.
    pub fn pass_event(&self, happened: &EventOrCall<'_>, at_ns: u64, now: Duration) {
        let kind = match happened {
            EventOrCall::Event(_) => Kind::Event,
            EventOrCall::Call(_) => Kind::Call,
        };
        for (_, slot) in self.of_kinds(&[kind]) {
            self.run(&slot, at_ns, now, |one| one.handle_event(happened, at_ns, now));
        }
    }

    /// Evaluates the conditions and scripts of events and calls that are due at `now`, whether anything
    /// happened or not.
    pub fn check_due(&self, at_ns: u64, now: Duration) {
        for (_, slot) in self.of_kinds(&[Kind::Event, Kind::Call]) {
            self.run(&slot, at_ns, now, |one| one.is_due(now) && one.check_due(at_ns, now));
        }
    }

    /// Subscriptions to events and calls that have room and whose owners have CPU budget left, each with the
    /// number in the journal of the next event it needs.
    #[must_use]
    pub fn places(&self, now: Duration) -> Vec<(u64, Id)> {
        let happen = self.of_kinds(&[Kind::Event, Kind::Call]).into_iter();
        let place = |(id, slot): (Id, Arc<Slot>)| {
            let place = slot.subscription.place(now)?;
            locked(&self.0.shares).may_run(slot.owner, now).then_some((place, id))
        };
        happen.filter_map(place).collect()
    }

    /// Shows something to one subscription, if it still exists; `show` returns whether it added an entry.
    pub fn pass_to(&self, id: Id, at_ns: u64, now: Duration, show: impl FnOnce(&Subscription) -> bool) {
        if let Ok(slot) = self.slot(id) {
            self.run(&slot, at_ns, now, show);
        }
    }

    /// Makes a sample for each subscription of the kind and lane that is due.
    #[allow(clippy::cast_possible_truncation)] // Microseconds of a second.
    fn sample_all(
        &self,
        (kind, lane): (Kind, Option<Lane>),
        interval: Duration,
        at_ns: u64,
        now: Duration,
        sample: impl Fn(&Subscription) -> bool,
    ) {
        let mut due = self.of_kinds(&[kind]);
        due.retain(|(_, slot)| {
            let is_of_lane = lane.is_none_or(|lane| lane == Lane::of(&slot.subscription.wanted()));
            is_of_lane && slot.subscription.is_due(now)
        });
        if due.len() > 1 {
            let mut shares = locked(&self.0.shares);
            due.sort_by_cached_key(|(_, slot)| {
                // Within one owner, the subscription with the most CPU time left goes first.
                let left = slot.subscription.cpu_left(now);
                (shares.recent(slot.owner, now), std::cmp::Reverse((left * 1e6) as i64))
            });
        }
        let (started, most) = (thread_time(), round(interval));
        for (nth, (_, slot)) in due.iter().enumerate() {
            let is_late = nth > 0 && thread_time().saturating_sub(started) >= most;
            let mut shares = locked(&self.0.shares);
            // The sensor's own subscriptions are limited by the configuration alone.
            let is_own = matches!(slot.owner, Owner::Own(_));
            if !is_own && (is_late || !shares.may_run(slot.owner, now)) {
                shares.throttle(slot.owner, now);
                drop(shares);
                slot.subscription.throttle(at_ns);
                slot.arrived.notify_waiters();
                continue;
            }
            drop(shares);
            self.run(slot, at_ns, now, &sample);
        }
    }

    /// Evaluates a subscription, and charges the CPU time to it and its owner.
    fn run(&self, slot: &Slot, at_ns: u64, now: Duration, evaluate: impl FnOnce(&Subscription) -> bool) {
        let was_live = slot.subscription.is_live();
        let started = thread_time();
        let has_more = evaluate(&slot.subscription);
        let took = thread_time().saturating_sub(started);
        slot.subscription.charge(took, at_ns, now);
        locked(&self.0.shares).spend(slot.owner, took, now);
        let is_stopped = !slot.subscription.is_live();
        if has_more || is_stopped {
            slot.arrived.notify_waiters();
        }
        if was_live && is_stopped {
            self.0.demand();
        }
    }
}
