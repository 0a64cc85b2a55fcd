//! Sweep: one sample of all processes of a host.
//!
//! Pure. Not here: parsing (`live::sweeps`), processing (`flock`).

use super::measure::Usage;
use std::sync::Arc;
use wire::time::Time;

/// A host, by its names in the grid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    /// Its domain; empty for that of the queried daemon.
    pub domain: Arc<str>,
    pub host: Arc<str>,
}

impl HostName {
    #[must_use]
    pub fn new(domain: &str, host: &str) -> HostName {
        HostName { domain: domain.into(), host: host.into() }
    }
}

/// One sample of a host's processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub host: HostName,
    /// Start of the sweep, by the host's clock.
    pub time: Time,
    /// Whether it names all processes, or only those that used something since the previous one.
    pub is_whole: bool,
    pub processes: Vec<Reported>,
    /// PIDs of processes that ended since the previous one.
    pub gone: Vec<u32>,
    /// Processes that matched but did not fit in.
    pub left_out: u64,
}

/// A process in a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    pub pid: u32,
    /// Start time, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// PID of its parent.
    pub parent: u32,
    pub uid: u32,
    /// Its name, as the sensor reports it; not sanitized.
    pub name: String,
    /// Number of threads.
    pub threads: u32,
    pub usage: Usage,
}
