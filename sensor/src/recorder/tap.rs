//! Fills the ring on the sampling thread, and lets others read it.
//!
//! Shell. Rule: the sampling thread writes a sweep's differences to memory and nothing else; who reads the ring holds it up
//! for as long as a copy of one segment takes.
//! Not here: what is held (`ring`), files (`desk`).

use super::ring::{Kept, Limits, Reach, Ring};
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::beat::locked;
use crate::sample::schedule::Rate;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The ring, for whoever reads it; to be cloned freely.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Ring>>);

impl Shared {
    /// An empty one.
    #[must_use]
    pub fn new(limits: Limits) -> Shared {
        Shared(Arc::new(Mutex::new(Ring::new(limits))))
    }

    /// As [`Ring::window`].
    #[must_use]
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Vec<Kept> {
        locked(&self.0).window(from_ns, to_ns)
    }

    /// As [`Ring::sealed`].
    #[must_use]
    pub fn sealed(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<Kept>, u64) {
        locked(&self.0).sealed(first, from_ns, to_ns)
    }

    /// The same with the segment under way, which ends by it: what comes goes into another.
    #[must_use]
    pub fn freeze(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<Kept>, u64) {
        let mut ring = locked(&self.0);
        ring.seal();
        ring.sealed(first, from_ns, to_ns)
    }

    /// As [`Ring::swept_ns`].
    #[must_use]
    pub fn swept_ns(&self) -> u64 {
        locked(&self.0).swept_ns()
    }

    /// How far it reaches and what it takes.
    #[must_use]
    pub fn reach(&self) -> Reach {
        locked(&self.0).reach()
    }
}

/// What fills it.
pub struct Filler {
    ring: Shared,
    period_ns: u64,
    due_ns: u64,
    /// The number of the next life to be taken; none before the first sweep.
    lives_next: Option<u64>,
    /// The number that the next event gets.
    events_next: watch::Receiver<u64>,
}

impl Filler {
    /// Takes sweeps at this rate, if they are made so often.
    #[must_use]
    pub fn new(ring: Shared, rate: Rate, events_next: watch::Receiver<u64>) -> Filler {
        let period_ns = u64::try_from(rate.period().as_nanos()).unwrap_or(u64::MAX);
        Filler { ring, period_ns, due_ns: 0, lives_next: None, events_next }
    }

    /// Whether a sweep is taken that began then. Others may have more made than the ring takes; one that comes a little
    /// early is the one that was waited for.
    fn takes(&mut self, begin_ns: u64) -> bool {
        if begin_ns + self.period_ns / 4 < self.due_ns {
            return false;
        }
        let next_ns = self.due_ns + self.period_ns;
        let is_behind = next_ns + self.period_ns / 2 < begin_ns;
        self.due_ns = if is_behind { begin_ns + self.period_ns } else { next_ns };
        true
    }
}

impl Tap for Filler {
    fn swept(&mut self, view: &View, _: Duration) {
        if !self.takes(view.table.sweep().begin_ns) {
            return;
        }
        let next = view.lives.next();
        let (ended, _) = view.lives.since(self.lives_next.replace(next).unwrap_or(next));
        let events_next = || *self.events_next.borrow();
        locked(&self.ring.0).take(&view.table, ended, events_next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;

    /// The moments held of sweeps at these, in milliseconds.
    fn held(hz: f64, sweeps_ms: impl Iterator<Item = u64>) -> u64 {
        let ring = Shared::new(Limits { reach_ns: u64::MAX, bytes_max: 1 << 20 });
        let (_events, events_next) = watch::channel(7);
        let mut filler = Filler::new(ring.clone(), Rate::of_processes(hz).expect("allowed"), events_next);
        let mut view = View::default();
        for (number, at_ms) in (1..).zip(sweeps_ms) {
            view.table.begin(number, at_ms * 1_000_000, Coverage::All);
            view.table.end(1);
            filler.swept(&view, Duration::ZERO);
        }
        ring.reach().sweeps
    }

    #[test]
    fn it_takes_its_own_rate_of_whatever_is_swept() {
        assert_eq!(held(10.0, (1000..2000).step_by(100)), 10, "its own");
        assert!((10..=11).contains(&held(10.0, 1000..2000)), "a hundred times as many");
        assert_eq!(held(10.0, (1000..9000).step_by(1000)), 8, "fewer");
        let early = (10..20).flat_map(|tenth| [tenth * 100 - tenth % 3, tenth * 100 + 50]);
        assert_eq!(held(10.0, early), 10, "not on the millisecond");
    }
}
