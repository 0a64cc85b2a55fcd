//! What sees every sweep on the sampling thread itself: channels, recorders.
//!
//! Rule: a tap is bounded in time by its own constants, since the next sweep waits for it, and whoever looks at the table
//! too. How long all of them took is told in the sampler's status.
//! Not here: the taps.

use super::source::View;
use std::time::Duration;

/// Sees every sweep that succeeded.
pub trait Tap: Send {
    /// A sweep has ended, and `view` is as it left it; the sweep's own number and time are in `view.table.sweep()`. `now`
    /// is when the sweep began, as time since boot without suspension (the clock that waiting uses).
    fn swept(&mut self, view: &View, now: Duration);
}
