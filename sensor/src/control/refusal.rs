//! Why an order was not obeyed: what was expected and found, and what to do.
//!
//! Pure. The same words reach the operator, the trail and the event.

use std::time::Duration;
use wire::process::ProcessKey;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The configuration lists no one.
    #[error(
        "this sensor takes no orders: it may control nobody's processes; whoever keeps it can list users under \
         [sensor.control] of its configuration: users = [\"mrossi\"]"
    )]
    Off,
    /// Signatures, times, repeats.
    #[error("{0}")]
    Disbelieved(String),
    /// Too many.
    #[error("too many orders at once; give it again in {} s", wait.as_secs() + 1)]
    TooMany {
        /// Until one more is taken.
        wait: Duration,
    },
    /// No such process.
    #[error("there is no process {} on this host now; it has ended", key.pid)]
    Gone {
        /// Which was meant.
        key: ProcessKey,
    },
    /// Another process has its number.
    #[error(
        "number {} belongs to another process now, {name}; the one that was meant (begun {} s after boot) has ended",
        key.pid, key.start_ns / 1_000_000_000
    )]
    Recycled {
        /// Which was meant.
        key: ProcessKey,
        /// The one that is there.
        name: String,
    },
    /// It is a zombie.
    #[error("process {pid}, {name}, has ended already and waits for its parent to take note")]
    Ended {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// No one may.
    #[error("process {pid}, {name}, is {what}, which visperf never controls")]
    Untouchable {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// The configuration does not list its user.
    #[error(
        "process {pid}, {name}, belongs to user {uid}, whose processes may not be controlled here; listed under \
         [sensor.control] are: {listed}"
    )]
    User {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
        /// Its user.
        uid: u32,
        /// Those that are listed.
        listed: String,
    },
    /// The system refused.
    #[error("{what} process {pid}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// On which process.
        pid: u32,
        /// What the system said, and what to do.
        why: String,
    },
    /// It cannot be written down.
    #[error(
        "the order cannot be written down ({0}), so it was not obeyed; make room in the sensor's state folder"
    )]
    NoTrail(String),
}
