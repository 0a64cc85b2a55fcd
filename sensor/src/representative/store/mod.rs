//! The representative's store of its domain's events: bounded, append-only, and durable before events are
//! acknowledged.
//!
//! ```text
//! STATE/domain/events-<number of its first event, 20 digits>.log
//!     head member … calls … head end      everything known when the segment began
//!     batch | member | forgotten …
//! ```
//!
//! Like the journal ([`crate::journal`]), but with the events of many sensors, their numbers there, and how
//! far each sensor's events are stored ([`ledger`]). An event and this position are in the same frame, so
//! they become durable together: after a crash the members are requested to send the rest.
//! Invariant: events that readers see and that members were acknowledged are durable; nothing else is
//! promised.
//! Not here: how segments survive a crash ([`crate::segments`]), joining and permissions (`super::domain`).

pub mod fold;
pub mod frame;
pub mod ledger;
pub mod reader;
pub mod segment_start;
pub mod writer;

/// Limits of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Length after which a segment is followed by a new one, in bytes.
    pub segment_len_bytes: u64,
    /// Most bytes of all segments together; beyond it the oldest are deleted.
    pub budget_bytes: u64,
}

/// Default of [`Config::segment_len_bytes`]: recovery joins the events of one segment within a second.
pub const SEGMENT_LEN_BYTES: u64 = 32 << 20;

/// Default of [`Config::budget_bytes`]: about two million events, some hours of a busy domain.
pub const BUDGET_BYTES: u64 = 512 << 20;

impl Default for Config {
    fn default() -> Config {
        Config { segment_len_bytes: SEGMENT_LEN_BYTES, budget_bytes: BUDGET_BYTES }
    }
}
