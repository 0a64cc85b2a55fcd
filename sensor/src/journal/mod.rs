//! The event journal: checkpoint, outbox and event store of the sensor in one append-only log.
//!
//! Events and the read offset after them are in the same frame, so they become durable together. A frame that
//! did not survive a crash is read again from its log; a frame that survived is never read twice.
//!
//! ```text
//! STATE/journal/events-<sequence of its first event, 20 digits>.log
//!     head … head end      the state when the segment was started
//!     batch | born | acknowledged …
//! ```
//!
//! Closed segments are compressed in the background ([`packer`], [`crate::segments::packed`]), by columns
//! ([`columns`]), and keep their names and the numbers of their events.
//!
//! Not here: how segments survive a crash ([`crate::segments`]), reading logs ([`crate::tail`]), joining
//! events into calls (`log_filters::join`).

mod batch_cache;
pub mod columns;
pub mod fold;
pub mod frame;
pub mod lock;
pub mod packer;
pub mod packing;
pub mod reader;
mod reading;
pub mod sources;
pub mod state;
pub mod writer;

/// Limits of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Length, in bytes, above which a segment is closed and a new one started.
    pub segment_len_bytes: u64,
    /// Total length of all segments, in bytes; beyond it the oldest are deleted.
    pub budget_bytes: u64,
}

/// Default of [`Config::segment_len_bytes`]: after a crash one segment is replayed, which takes two thirds of
/// a second. On a busy sensor the head has up to 5 MB, which shorter segments would have more often.
pub const SEGMENT_LEN_BYTES: u64 = 32 << 20;

/// Length to replay, in bytes, above which an orderly stop starts a new segment: less is replayed quickly.
pub const REPLAYED_MAX_BYTES: u64 = 2 << 20;

/// Default of [`Config::budget_bytes`], on the disk: about two million events as they are written, and about
/// ten million compressed.
pub const BUDGET_BYTES: u64 = 256 << 20;

impl Default for Config {
    fn default() -> Config {
        Config { segment_len_bytes: SEGMENT_LEN_BYTES, budget_bytes: BUDGET_BYTES }
    }
}
