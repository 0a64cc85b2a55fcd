//! The event journal: checkpoint, outbox and event store of the sensor in one append-only log.
//!
//! What was read and how far it was read stand in the same frame, so they become durable together: a
//! frame that did not survive is read again from the log it came from, one that did is never read twice.
//!
//! ```text
//! STATE/journal/journal-<sequence of its first event, 20 digits>.log
//!     head … head end      everything known when the segment began
//!     born | batch | acknowledged …
//! ```
//!
//! Invariant: a segment is whole on disk before the next one exists, so at most the end of the last
//! segment can be missing or torn. Every frame carries the checksum of the frame before it, so bytes left
//! over from an older end of the file are never taken for new ones.
//!
//! Not here: reading logs ([`crate::tail`]), joining events into calls (`log_filters::join`).

mod decoded;
pub mod disk;
pub mod fold;
pub mod frame;
pub mod lock;
pub mod reader;
pub mod recovery;
pub mod segment;
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

/// Why the journal could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused.
    #[error("cannot {what}: {source}; check the space and the permissions of the state directory")]
    Disk {
        /// What was tried, with the path.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A frame is too large or cannot be written.
    #[error("cannot write a journal frame: {0}")]
    Frame(#[from] wire::codec::Error),
    /// Another process holds the state directory.
    #[error("the state directory {directory} is held by {holder}; stop it or choose another with --state")]
    Held {
        /// Which directory.
        directory: String,
        /// Who holds it: process id, since when, command.
        holder: String,
    },
    /// The journal was written by another version of the program.
    #[error(
        "journal segment {name} was written by another version ({found}); this program reads {expected}; use the program that wrote it, or move the file away to begin anew",
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
    pub(crate) fn disk(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Disk { what, source }
    }
}
