//! Taps: receivers of every sweep on the sampling thread itself, such as channels and recorders.
//!
//! Rule: each tap bounds its time by its own constants, because the next sweep waits for it, and so do
//! readers of the table. The time of all taps is in the sampler's status.
//! Not here: the taps.

use super::source::View;
use std::time::Duration;

/// Receives every sweep that succeeded.
pub trait Tap: Send {
    /// Called after a sweep, with its result; the number and time of the sweep are in `view.table.sweep()`.
    /// `now` is when the sweep started, on the monotonic clock (time since boot without suspension).
    fn swept(&mut self, view: &View, now: Duration);
}
