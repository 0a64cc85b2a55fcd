//! Output of the engine: events found, and changes of the values it remembers between lines.
//!
//! Pure. The sensor stores both on disk, so a change here is a change of format.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::Keys;
use wire::event::Content;
use wire::time::Time;

/// One event found in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Offset of its record in the file, in bytes.
    pub offset: u64,
    /// Number of the event within the record, from 0; from 32,768 for events that a later line reported about
    /// it.
    pub number: u16,
    /// Content of the event.
    pub content: Content,
    /// Keys that join it with other events; `None` for events of no call (a host that went down).
    pub keys: Option<Keys>,
}

/// Change of the values that the engine remembers between lines. Applying all changes in order to a new
/// engine gives an engine that continues as the old one would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Store values under a key, in addition to those it has.
    Remember {
        /// Key of the values.
        key: CompactString,
        /// Names and values.
        values: Vec<(CompactString, CompactString)>,
        /// Offset of the record that gave them, in bytes.
        offset: u64,
        /// Time of that record.
        time: Option<Time>,
    },
    /// Drop a key and its values.
    Forget {
        /// Key to drop.
        key: CompactString,
    },
    /// The last time stamp read from the log: lines without one use it.
    Stamp {
        /// Resolved time.
        time: Time,
    },
    /// Store values under a key for the other logs of the product.
    RememberAcross {
        /// Key of the values.
        key: CompactString,
        /// Names and values.
        values: Vec<(CompactString, CompactString)>,
        /// Time of the record that gave them.
        time: Option<Time>,
    },
    /// Drop the values that this log shares under a key.
    ForgetAcross {
        /// Key to drop.
        key: CompactString,
    },
    /// Header line with the names of the columns of the lines after it.
    Header {
        /// Text of the header line.
        line: Vec<u8>,
    },
}
