//! The clock of the viewer's shells: the only place that asks what time it is.
//!
//! Rule: what decides is given the time; threads and the window ask here. Not here: the timeline.

use std::time::Instant;
use wire::time::Time;

/// Now.
#[must_use]
#[allow(clippy::disallowed_methods)] // The shells' clock.
pub(crate) fn now() -> Time {
    Time::from(std::time::SystemTime::now())
}

/// Now, on a clock that never goes back.
#[must_use]
#[allow(clippy::disallowed_methods)] // The shells' clock.
pub(crate) fn instant() -> Instant {
    Instant::now()
}
