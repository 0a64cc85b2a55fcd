//! What the engine finds in a log, and what it must remember between lines.
//!
//! Pure. Both are kept on disk by the sensor, so a change here is a change of format.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::Keys;
use wire::event::Content;
use wire::time::Time;

/// One event found in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where its record begins in the file, in bytes.
    pub offset: u64,
    /// Which of the events of that record, from 0; from 32,768 for those that a later line reported of it.
    pub number: u16,
    /// The event proper.
    pub content: Content,
    /// How it is joined with others; `None` for events of no call (a host that went down).
    pub keys: Option<Keys>,
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
    /// Remember values under a key for the other logs of the product.
    RememberAcross {
        /// Under which key.
        key: CompactString,
        /// What.
        values: Vec<(CompactString, CompactString)>,
        /// The time of the record that gave it.
        time: Option<Time>,
    },
    /// Forget what this log remembers under a key for the others.
    ForgetAcross {
        /// Which key.
        key: CompactString,
    },
    /// The line that names the columns of the lines after it.
    Header {
        /// That line.
        line: Vec<u8>,
    },
}
