//! Clock of the viewer: the only place that reads the time.
//!
//! Rule: decision logic receives the time as a parameter; threads and the window read it here. Not here: the
//! timeline.

use std::time::Instant;
use wire::time::Time;

/// The current time.
#[must_use]
#[allow(clippy::disallowed_methods)] // The viewer's clock.
pub(crate) fn now() -> Time {
    Time::from(std::time::SystemTime::now())
}

/// A monotonic clock.
#[must_use]
#[allow(clippy::disallowed_methods)] // The viewer's clock.
pub(crate) fn instant() -> Instant {
    Instant::now()
}
