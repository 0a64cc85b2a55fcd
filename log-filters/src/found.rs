//! What the engine finds in a log, and what it must remember between lines.
//!
//! Pure. Both are kept on disk by the sensor, so a change here is a change of format.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::event::Content;
use wire::time::Time;

/// One event found in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where its record begins in the file, in bytes.
    pub offset: u64,
    /// Which of the events of that record, from 0; from 32,768 for those that a later line told of it.
    pub number: u16,
    /// The event proper.
    pub content: Content,
    /// How it is joined with others; `None` for events of no call (a host that went down).
    pub keys: Option<Keys>,
}

/// The names by which an event's call is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The product and cluster within which the names hold, such as `slurm` or `slurm/alpha`.
    pub scope: CompactString,
    /// Names of this call, the best first; never empty.
    pub names: Vec<CompactString>,
    /// The call this one is a part of (an array's task), if any.
    pub parent: Option<CompactString>,
    /// Whether a name means one call for ever, or any of several that may be open at once.
    pub naming: Naming,
    /// How much the record is to be believed where logs differ: accounting records outrank messages.
    pub authority: Authority,
}

/// What a call's name is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Naming {
    /// A job number: one call.
    Unique,
    /// A problem's nickname: the oldest open call that has not had an event of this kind.
    Shared,
    /// An array's task: one call, and the call that is its parent is no more than its parts.
    Part,
}

/// How much a record is to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Authority {
    /// A daemon's log on one host.
    Message,
    /// The scheduler's own log.
    Scheduler,
    /// The accounting, history or completion record.
    Accounting,
}

/// A change of what the engine remembers between lines. Applying all changes in order to a new engine
/// gives an engine that goes on as the old one would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Remember values under a key, beside those it has.
    Remember {
        /// Under which key.
        key: CompactString,
        /// What.
        values: Vec<(CompactString, CompactString)>,
        /// Where the record that gave it begins, in bytes.
        offset: u64,
        /// That record's time.
        time: Option<Time>,
    },
    /// Forget a key.
    Forget {
        /// Which key.
        key: CompactString,
    },
    /// The last time read from the log: lines without one take it.
    Stamp {
        /// That time.
        time: Time,
    },
}
