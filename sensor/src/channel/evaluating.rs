//! What flows, shown to the subscriptions that it is due to.
//!
//! Shell: the lock, and the clock of what each costs. Rules: each is evaluated after the other, and none holds the others up longer
//! than its run may take; processes on the sampling thread, all else beside it, one subscription at a time, so that a sweep does
//! not wait for many.
//! Not here: where it comes from (`process`, `pump`, `query::channels::relays`).

use super::hub::{Hub, Id, Shared, drop_idle, thread_time};
use super::of_happenings::Happened;
use super::of_host::Sweep;
use super::subscription::Subscription;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::beat::{locked, running};
use std::sync::Arc;
use std::time::Duration;
use wire::channel::Kind;

/// Evaluates the subscriptions to processes on the sampling thread.
pub(super) struct Evaluating(pub(super) Arc<Shared>);

impl Tap for Evaluating {
    fn swept(&mut self, view: &View, now: Duration) {
        let mut slots = locked(&self.0.slots);
        if slots.is_empty() {
            return;
        }
        let at_ns = view.table.sweep().begin_ns;
        // By the clock of who takes; the sweep may be of another host.
        let mut is_changed = drop_idle(&mut slots, running());
        let mut begun = thread_time();
        for slot in slots.values_mut().filter(|slot| slot.subscription.wanted().kind == Kind::Process) {
            if !slot.subscription.is_due(now) {
                continue;
            }
            let has_more = slot.subscription.sample(view, now);
            let ended = thread_time();
            is_changed |= slot.subscription.charge(ended.saturating_sub(begun), at_ns, now);
            is_changed |= !slot.subscription.is_live();
            begun = ended;
            if has_more || !slot.subscription.is_live() {
                slot.arrived.notify_waiters();
            }
        }
        if is_changed {
            self.0.wish_for(&slots);
        }
    }
}

impl Hub {
    /// Whether somebody wants this kind.
    #[must_use]
    pub fn wants(&self, kind: Kind) -> bool {
        locked(&self.0.slots).values().any(|slot| slot.subscription.wanted().kind == kind)
    }

    /// A sweep over the host, which began at `now`.
    pub fn swept_host(&self, sweep: &Sweep<'_>, now: Duration) {
        self.each(&[Kind::Host], sweep.at_ns, now, |one| one.is_due(now) && one.sample_host(sweep, now));
    }

    /// Something happened, and is shown to all.
    pub fn happened(&self, happened: &Happened<'_>, at_ns: u64, now: Duration) {
        let kind = match happened {
            Happened::Event(_) => Kind::Event,
            Happened::Call(_) => Kind::Call,
        };
        self.each(&[kind], at_ns, now, |one| one.hear(happened, at_ns, now));
    }

    /// Time went on, whether something happened or not.
    pub fn look(&self, at_ns: u64, now: Duration) {
        self.each(&[Kind::Event, Kind::Call], at_ns, now, |one| one.is_due(now) && one.look(at_ns, now));
    }

    /// Those that want what happens, with the numbers in the journal of the next events that they have room for.
    #[must_use]
    pub fn places(&self, now: Duration) -> Vec<(u64, Id)> {
        let mut slots = locked(&self.0.slots);
        let happen = slots.iter_mut().filter(|(_, slot)| slot.subscription.wanted().kind.happens());
        happen.filter_map(|(id, slot)| Some((slot.subscription.place(now)?, *id))).collect()
    }

    /// Show something to one of them, if it is still there; `show` says whether something was added to what waits.
    pub fn show(&self, id: Id, at_ns: u64, now: Duration, show: impl FnOnce(&mut Subscription) -> bool) {
        let mut slots = locked(&self.0.slots);
        let Some(slot) = slots.get_mut(&id) else { return };
        let begun = thread_time();
        let has_more = show(&mut slot.subscription);
        let was_live = slot.subscription.is_live();
        slot.subscription.charge(thread_time().saturating_sub(begun), at_ns, now);
        let is_stopped = !slot.subscription.is_live();
        if has_more || is_stopped {
            slot.arrived.notify_waiters();
        }
        if was_live && is_stopped {
            self.0.wish_for(&slots);
        }
    }

    fn each(&self, kinds: &[Kind], at_ns: u64, now: Duration, show: impl Fn(&mut Subscription) -> bool) {
        let of_kinds: Vec<Id> = {
            let slots = locked(&self.0.slots);
            let fits = |kind: Kind| kinds.contains(&kind);
            slots
                .iter()
                .filter(|(_, slot)| fits(slot.subscription.wanted().kind))
                .map(|(id, _)| *id)
                .collect()
        };
        for id in of_kinds {
            self.show(id, at_ns, now, &show);
        }
    }
}
