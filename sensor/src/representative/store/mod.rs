//! The representative's store of its domain's events: bounded, append-only, durable before it is told.
//!
//! ```text
//! STATE/domain/events-<number of its first event, 20 digits>.log
//!     head member … calls … head end      everything known when the segment began
//!     batch | member | forgotten …
//! ```
//!
//! Like the journal ([`crate::journal`]), but of events of many sensors with their numbers there, and how far
//! each sensor's are stored ([`ledger`]). The two stand in the same frame, so they are durable together: after
//! a crash the members are asked for the rest.
//! Invariant: what readers see and what members were told is stored is durable; nothing else is promised.
//! Not here: how segments outlast a crash ([`crate::segments`]), joining, who may say what (`super::domain`).

pub mod begun;
pub mod fold;
pub mod frame;
pub mod ledger;
pub mod reader;
pub mod writer;

/// What a store may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// A segment longer than this is followed by a new one, in bytes.
    pub segment_len_bytes: u64,
    /// All segments together, in bytes; the oldest are deleted beyond it.
    pub budget_bytes: u64,
}

/// Default of [`Config::segment_len_bytes`]: recovery joins what one segment holds, within a second.
pub const SEGMENT_LEN_BYTES: u64 = 32 << 20;

/// Default of [`Config::budget_bytes`]: about two million events, some hours of a busy domain.
pub const BUDGET_BYTES: u64 = 512 << 20;

impl Default for Config {
    fn default() -> Config {
        Config { segment_len_bytes: SEGMENT_LEN_BYTES, budget_bytes: BUDGET_BYTES }
    }
}
