//! Boot clock: time since boot, when the host was booted, and the id of that boot.
//!
//! Shell. A process's start is a time since boot; [`booted`] relates it to the calendar.

use std::time::Duration;
use wire::time::Time;

/// Nanoseconds since boot, suspension included: the clock of a process's start.
pub(crate) fn boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    secs * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Id of the current boot, from the kernel; empty if it has none.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When the host was booted, by the calendar as it is now.
#[allow(clippy::disallowed_methods)] // The shell that relates times since boot to the calendar.
pub(crate) fn booted() -> Time {
    Time::from(std::time::SystemTime::now()).minus(Duration::from_nanos(boot_ns()))
}
