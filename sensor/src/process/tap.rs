//! Taps: receivers of every sweep on the sampling thread itself, such as channels and recorders.
//!
//! Rule: each tap bounds its time by its own constants, because the next sweep waits for it, and so do
//! readers of the table. The time of all taps is in the sampler's status.
//! Not here: the taps.

use super::source::View;
use std::time::Duration;

/// Receives every sweep that succeeded, and the ends of processes between them.
pub trait Tap: Send {
    /// Called after a sweep, with its result; the number and time of the sweep are in `view.table.sweep()`.
    /// `now` is when the sweep started, on the monotonic clock (time since boot without suspension).
    fn swept(&mut self, view: &View, now: Duration);

    /// Called between two sweeps, some ten times a second where these are rarer, once the kernel's records were read: `view.lives`
    /// has the processes that have ended since, the rest is that of the last sweep.
    fn drained(&mut self, _view: &View) {}
}
