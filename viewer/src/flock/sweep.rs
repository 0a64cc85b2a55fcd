//! What a host's sensor tells of its processes at one sweep, as the flock takes it.
//!
//! Pure. Not here: how it is told (`live::sweeps`), what becomes of it (`flock`).

use super::measure::Usage;
use std::sync::Arc;
use wire::time::Time;

/// A host, by its names in the grid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    /// Its domain; empty for that of the daemon which is asked.
    pub domain: Arc<str>,
    /// Its name.
    pub host: Arc<str>,
}

impl HostName {
    /// Of two texts.
    #[must_use]
    pub fn new(domain: &str, host: &str) -> HostName {
        HostName { domain: domain.into(), host: host.into() }
    }
}

/// A sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Of which host.
    pub host: HostName,
    /// When it began, by the host's clock.
    pub time: Time,
    /// Whether it names all processes, or only those that used something since the one before.
    pub is_whole: bool,
    /// Those it names.
    pub processes: Vec<Reported>,
    /// Numbers of those that ended since the one before.
    pub gone: Vec<u32>,
    /// Processes that passed and had no room in it.
    pub left_out: u64,
}

/// A process as a sweep names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// Its number.
    pub pid: u32,
    /// When it began, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// The number of its parent.
    pub parent: u32,
    /// The number of its user.
    pub uid: u32,
    /// Its name, as the sensor tells it.
    pub name: String,
    /// Its threads.
    pub threads: u32,
    /// What it has used.
    pub usage: Usage,
}
