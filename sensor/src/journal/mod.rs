//! The event journal: checkpoint, outbox and event store of the sensor in one append-only log.
//!
//! What was read and how far it was read stand in the same frame, so they become durable together: a
//! frame that did not survive is read again from the log it came from, one that did is never read twice.
//!
//! ```text
//! STATE/journal/events-<sequence of its first event, 20 digits>.log
//!     head … head end      everything known when the segment began
//!     batch | born | acknowledged …
//! ```
//!
//! Not here: how segments outlast a crash ([`crate::segments`]), reading logs ([`crate::tail`]), joining events into calls (`log_filters::join`).

mod decoded;
pub mod fold;
pub mod frame;
pub mod lock;
pub mod reader;
pub mod sources;
pub mod state;
pub mod writer;

/// What a journal may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// A segment longer than this is followed by a new one, in bytes.
    pub segment_len_bytes: u64,
    /// All segments together, in bytes; the oldest are deleted beyond it.
    pub budget_bytes: u64,
}

/// Default of [`Config::segment_len_bytes`]: after a crash one segment is replayed, which takes a good third
/// of a second; a shorter one would be filled by its head on a busy sensor.
pub const SEGMENT_LEN_BYTES: u64 = 16 << 20;

/// An orderly end begins a new segment where more than this would have to be replayed, in bytes: less is read
/// in a moment.
pub const REPLAYED_MAX_BYTES: u64 = 2 << 20;

/// Default of [`Config::budget_bytes`]: about two million events.
pub const BUDGET_BYTES: u64 = 256 << 20;

impl Default for Config {
    fn default() -> Config {
        Config { segment_len_bytes: SEGMENT_LEN_BYTES, budget_bytes: BUDGET_BYTES }
    }
}
