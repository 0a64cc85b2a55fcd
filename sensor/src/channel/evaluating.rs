//! What flows, shown to the subscriptions that it is due to.
//!
//! Shell: the clock of what each costs. Rules: nothing that a client needs is locked while one is evaluated; those whose owners have used
//! least go first; a round of evaluations takes half the time between two sweeps, or 2 ms, and what it left out, or what is beyond the
//! budget of all, is counted as missed by those it was due to. Events and calls are never left out: they wait in the journal.
//! Not here: where it comes from (`process`, `handover`, `pump`, `query::channels::relays`).

use super::budget::round;
use super::hub::{Hub, Id, Shared, Slot, thread_time};
use super::of_happenings::Happened;
use super::of_host::Sweep;
use super::owner::Owner;
use super::subscription::Subscription;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::beat::locked;
use std::sync::Arc;
use std::time::Duration;
use wire::channel::{Kind, Wanted};

/// Sweeps over the host are taken for as frequent as this.
const HOST_INTERVAL: Duration = Duration::from_millis(50);

/// Evaluates the subscriptions to processes, on the thread that shows it a sweep.
pub(super) struct Evaluating {
    hub: Hub,
    /// One lane, or both.
    lane: Option<Lane>,
    swept_at: Duration,
}

/// Subscriptions that are evaluated one after the other. A script may run for milliseconds, and holds up no subscription without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Those without a script.
    Plain,
    /// Those with one.
    Scripted,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Lane; 2] = [Lane::Plain, Lane::Scripted];

    /// That of a subscription that wants this.
    pub(super) fn of(wanted: &Wanted) -> Lane {
        if wanted.script.is_some() { Lane::Scripted } else { Lane::Plain }
    }
}

impl Evaluating {
    pub(super) fn new(shared: Arc<Shared>, lane: Option<Lane>) -> Evaluating {
        Evaluating { hub: Hub(shared), lane, swept_at: Duration::ZERO }
    }
}

impl Tap for Evaluating {
    fn swept(&mut self, view: &View, now: Duration) {
        let interval = now.saturating_sub(std::mem::replace(&mut self.swept_at, now));
        let at_ns = view.table.sweep().begin_ns;
        let lane = self.lane;
        self.hub.sample_all((Kind::Process, lane), interval, at_ns, now, |one| one.sample(view, now));
    }
}

impl Hub {
    /// Whether somebody wants this kind.
    #[must_use]
    pub fn wants(&self, kind: Kind) -> bool {
        !self.of_kinds(&[kind]).is_empty()
    }

    /// A sweep over the host, which began at `now`.
    pub fn swept_host(&self, sweep: &Sweep<'_>, now: Duration) {
        self.sample_all((Kind::Host, None), HOST_INTERVAL, sweep.at_ns, now, |one| {
            one.sample_host(sweep, now)
        });
    }

    /// Something happened, and is shown to all.
    pub fn happened(&self, happened: &Happened<'_>, at_ns: u64, now: Duration) {
        let kind = match happened {
            Happened::Event(_) => Kind::Event,
            Happened::Call(_) => Kind::Call,
        };
        for (_, slot) in self.of_kinds(&[kind]) {
            self.run(&slot, at_ns, now, |one| one.hear(happened, at_ns, now));
        }
    }

    /// Time went on, whether something happened or not.
    pub fn look(&self, at_ns: u64, now: Duration) {
        for (_, slot) in self.of_kinds(&[Kind::Event, Kind::Call]) {
            self.run(&slot, at_ns, now, |one| one.is_due(now) && one.look(at_ns, now));
        }
    }

    /// Those that want what happens and whose owners have something left of the budget, with the numbers in the journal of the next
    /// events that they have room for.
    #[must_use]
    pub fn places(&self, now: Duration) -> Vec<(u64, Id)> {
        let happen = self.of_kinds(&[Kind::Event, Kind::Call]).into_iter();
        let place = |(id, slot): (Id, Arc<Slot>)| {
            let place = slot.subscription.place(now)?;
            locked(&self.0.shares).may(slot.owner, now).then_some((place, id))
        };
        happen.filter_map(place).collect()
    }

    /// Show something to one of them, if it is still there; `show` says whether something was added to what waits.
    pub fn show(&self, id: Id, at_ns: u64, now: Duration, show: impl FnOnce(&Subscription) -> bool) {
        if let Ok(slot) = self.slot(id) {
            self.run(&slot, at_ns, now, show);
        }
    }

    /// Make a sample for each subscription of the kind and lane that it is due to.
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
                // Of one owner, the one that has most left of its own.
                let left = slot.subscription.cpu_left(now);
                (shares.recent(slot.owner, now), std::cmp::Reverse((left * 1e6) as i64))
            });
        }
        let (begun, most) = (thread_time(), round(interval));
        for (nth, (_, slot)) in due.iter().enumerate() {
            let is_late = nth > 0 && thread_time().saturating_sub(begun) >= most;
            let mut shares = locked(&self.0.shares);
            // What the sensor wants for itself has the limits of the configuration alone.
            let is_own = matches!(slot.owner, Owner::Own(_));
            if !is_own && (is_late || !shares.may(slot.owner, now)) {
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

    /// Evaluate one, and charge it and its owner with what that took.
    fn run(&self, slot: &Slot, at_ns: u64, now: Duration, evaluate: impl FnOnce(&Subscription) -> bool) {
        let was_live = slot.subscription.is_live();
        let begun = thread_time();
        let has_more = evaluate(&slot.subscription);
        let took = thread_time().saturating_sub(begun);
        slot.subscription.charge(took, at_ns, now);
        locked(&self.0.shares).spend(slot.owner, took, now);
        let is_stopped = !slot.subscription.is_live();
        if has_more || is_stopped {
            slot.arrived.notify_waiters();
        }
        if was_live && is_stopped {
            self.0.wish();
        }
    }
}
