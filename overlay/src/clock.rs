//! Clock of the overlay: time since the host booted, including suspension.
//!
//! Rule: the only place of this crate that reads a clock; pure cores receive its moments as values.

use std::time::Duration;
use wire::time::{Moment, Time};

/// The time since the boot of the host.
#[must_use]
pub fn now() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Moment(Duration::new(secs, nanos))
}

/// Identifier of the boot that [`now`] counts from; none if the system does not provide it.
#[must_use]
pub fn boot() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// How far the calendar is ahead of [`now`], in microseconds: if the value changes, the calendar was set.
#[must_use]
pub fn calendar_ahead_micros() -> i64 {
    calendar().micros().saturating_sub(i64::try_from(now().0.as_micros()).unwrap_or(i64::MAX))
}

/// Calendar time, for certificates and for display; never for measuring durations.
#[must_use]
#[allow(clippy::disallowed_methods)] // The only place that reads it.
pub fn calendar() -> Time {
    Time::from(std::time::SystemTime::now())
}
