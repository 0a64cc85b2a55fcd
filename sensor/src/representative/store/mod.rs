//! The representative's store of its domain's events: bounded, append-only, durable before it is told.
//!
//! ```text
//! STATE/domain/events-<number of its first event, 20 digits>.log
//!     head member … calls … head end      everything known when the segment began
//!     member | batch …
//! ```
//!
//! Of the journal's design ([`crate::journal`]) and for the same reasons, but for what it keeps: events of
//! many sensors with their numbers there, and how far each sensor's are stored ([`ledger`]). The two stand
//! in the same frame, so they are durable together: after a crash the members are asked for the rest.
//! Invariant: what readers see and what members were told is stored is durable; nothing else is promised.
//! Not here: joining, who may say what (`super::domain`).

pub mod frame;
pub mod ledger;
pub mod reader;
mod recovery;
pub mod segment;
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

/// Why the store could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused.
    #[error("cannot {what}: {source}; check the space and the permissions of the state directory")]
    Disk {
        /// What was tried, with the name.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A frame is too large or cannot be written.
    #[error("cannot write a frame of the domain's events: {0}")]
    Frame(#[from] wire::codec::Error),
    /// Reading frames failed.
    #[error(transparent)]
    Read(#[from] crate::journal::Error),
    /// Written by another version of the program.
    #[error(
        "{name} was written by another version ({found}); this program reads {expected}; use the program that wrote it, or move the file away to begin anew",
        expected = wire::version::FRAME
    )]
    Version {
        /// The segment's name.
        name: String,
        /// The version found.
        found: u8,
    },
}

impl Error {
    /// Wrap what the system said about `what`.
    fn disk(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Disk { what, source }
    }
}
