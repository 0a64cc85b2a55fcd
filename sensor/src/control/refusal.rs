//! Reason why a command was not executed: what was expected and found, and what to do.
//!
//! Pure. The operator, the trail and the event have the same text.

use std::time::Duration;
use wire::process::ProcessKey;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The configuration lists no user.
    #[error(
        "this sensor takes no orders: it may control no user's processes; its administrator can list users under \
         [sensor.control] of its configuration: users = [\"mrossi\"]"
    )]
    Off,
    /// The signature, the time or a repetition makes it invalid.
    #[error("{0}")]
    Disbelieved(String),
    /// The rate limit is exceeded.
    #[error("too many orders at once; give it again in {} s", wait.as_secs() + 1)]
    TooMany {
        /// Time until one more is accepted.
        wait: Duration,
    },
    /// There is no such process.
    #[error("there is no process {} on this host now; it has ended", key.pid)]
    Gone {
        /// Process that was requested.
        key: ProcessKey,
    },
    /// Another process has its pid.
    #[error(
        "number {} belongs to another process now, {name}; the requested one (started {} s after boot) has ended",
        key.pid, key.start_ns / 1_000_000_000
    )]
    Recycled {
        /// Process that was requested.
        key: ProcessKey,
        /// Name of the process that has the pid now.
        name: String,
    },
    #[error("process {pid}, {name}, has ended already and waits for its parent to take note")]
    Ended {
        /// Pid of the zombie.
        pid: u32,
        name: String,
    },
    /// It may never be controlled.
    #[error("process {pid}, {name}, is {what}, which visperf never controls")]
    Untouchable {
        pid: u32,
        name: String,
        /// What the process is.
        what: &'static str,
    },
    /// The configuration does not list its user.
    #[error(
        "process {pid}, {name}, belongs to user {uid}, whose processes may not be controlled here; listed under \
         [sensor.control] are: {listed}"
    )]
    User {
        pid: u32,
        name: String,
        uid: u32,
        /// Users that are listed.
        listed: String,
    },
    #[error("{what} process {pid}: {why}")]
    System {
        /// Action that failed.
        what: &'static str,
        pid: u32,
        /// Error of the system, and what to do.
        why: String,
    },
    /// It cannot be recorded in the trail.
    #[error(
        "the order cannot be written down ({0}), so it was not obeyed; make room in the sensor's state folder"
    )]
    NoTrail(String),
}
