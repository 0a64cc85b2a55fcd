//! Tap that fills the ring on the sampling thread, and the shared handle for its readers.
//!
//! Shell. Rule: the sampling thread only writes the differences of a sweep to memory; a reader of the ring
//! blocks it for as long as copying one segment takes.
//! Not here: what is stored (`ring`), files (`worker`).

use super::ring::{Limits, Ring, RingCoverage, StoredSegment};
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::schedule::Rate;
use crate::sample::ticker::locked;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The ring for its readers; cheap to clone.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Ring>>);

impl Shared {
    #[must_use]
    pub fn new(limits: Limits) -> Shared {
        Shared(Arc::new(Mutex::new(Ring::new(limits))))
    }

    /// As [`Ring::window`].
    #[must_use]
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Vec<StoredSegment> {
        locked(&self.0).window(from_ns, to_ns)
    }

    /// As [`Ring::sealed`].
    #[must_use]
    pub fn sealed(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<StoredSegment>, u64) {
        locked(&self.0).sealed(first, from_ns, to_ns)
    }

    /// Seals the segment under way first, so that it is included and new sweeps go into another one.
    #[must_use]
    pub fn freeze(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<StoredSegment>, u64) {
        let mut ring = locked(&self.0);
        ring.seal();
        ring.sealed(first, from_ns, to_ns)
    }

    /// As [`Ring::swept_ns`].
    #[must_use]
    pub fn swept_ns(&self) -> u64 {
        locked(&self.0).swept_ns()
    }

    /// As [`Ring::reach`].
    #[must_use]
    pub fn reach(&self) -> RingCoverage {
        locked(&self.0).reach()
    }
}

/// Tap that fills the ring.
pub struct RingTap {
    ring: Shared,
    period_ns: u64,
    due_ns: u64,
    /// Number of the next life to take; `None` before the first sweep.
    lives_next: Option<u64>,
    /// Number that the next event gets.
    events_next: watch::Receiver<u64>,
}

impl RingTap {
    /// Creates a tap that takes sweeps at this rate, or all of them if there are fewer.
    #[must_use]
    pub fn new(ring: Shared, rate: Rate, events_next: watch::Receiver<u64>) -> RingTap {
        let period_ns = u64::try_from(rate.period().as_nanos()).unwrap_or(u64::MAX);
        RingTap { ring, period_ns, due_ns: 0, lives_next: None, events_next }
    }

    /// Whether the sweep that started then is taken. There may be more sweeps than the ring takes, because of
    /// other requests; one that comes a little early is taken as the one that is due.
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

impl Tap for RingTap {
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

    /// Number of sweeps in the ring, after sweeps at these moments in milliseconds.
    fn held(hz: f64, sweeps_ms: impl Iterator<Item = u64>) -> u64 {
        let ring = Shared::new(Limits { reach_ns: u64::MAX, bytes_max: 1 << 20 });
        let (_events, events_next) = watch::channel(7);
        let mut tap = RingTap::new(ring.clone(), Rate::of_processes(hz).expect("allowed"), events_next);
        let mut view = View::default();
        for (number, at_ms) in (1..).zip(sweeps_ms) {
            view.table.begin(number, at_ms * 1_000_000, Coverage::All);
            view.table.end(1);
            tap.swept(&view, Duration::ZERO);
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
