//! Logs of numbered events in segments: shared by the journal and the domain's store.
//!
//! ```text
//! DIRECTORY/events-<number of its first event, 20 digits>.log
//!     head … head end      the state when the segment was started
//!     batch | …
//! ```
//!
//! Invariant: a segment gets its name only when its head is durable, and is whole on disk before the next one
//! is started; so only the end of the last segment can be missing or torn. Every frame carries the checksum
//! of the frame before it, so bytes left over from an older end of the file are never read as new frames.
//! A closed segment may be compressed; it has the same name, and reads as the same frames ([`packed`]).
//! Not here: what frames say besides the numbers of events, when a segment ends, when events are durable.

pub mod chain;
pub mod deferred_file;
pub mod disk;
pub mod list;
pub mod packed;
pub mod recovery;
pub mod segment;
pub mod sync_limiter;
pub mod unreadable;
pub mod window;

/// Why a log could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused an operation.
    #[error("cannot {what}: {source}; check the space and the permissions of the state directory")]
    Disk {
        /// The failed operation, with the file name.
        what: String,
        source: std::io::Error,
    },
    /// A frame is too large or cannot be written.
    #[error("cannot write a frame: {0}")]
    Frame(#[from] wire::codec::Error),
    /// The log cannot be read; it is unchanged.
    #[error(transparent)]
    Unreadable(#[from] Box<unreadable::UnreadableLog>),
}

impl Error {
    /// Wraps the I/O error of the operation `what`.
    pub(crate) fn disk(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Disk { what, source }
    }
}
