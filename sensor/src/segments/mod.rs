//! Logs of numbered events in segments: what the journal and the domain's store have in common.
//!
//! ```text
//! DIRECTORY/events-<number of its first event, 20 digits>.log
//!     head … head end      everything known when the segment began
//!     batch | …
//! ```
//!
//! Invariant: a segment has its name only when its head is durable, and is whole on disk before the next one
//! begins; so at most the end of the last one can be missing or torn. Every frame carries the checksum of the
//! frame before it, so bytes left over from an older end of the file are never taken for new ones.
//! Not here: what frames say beside the numbers of events, when a segment ends, when events are durable.

pub mod chain;
pub mod disk;
pub mod late;
pub mod list;
pub mod pace;
pub mod recovery;
pub mod segment;
pub mod unreadable;
pub mod window;

/// Why a log could not be opened, written or read.
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
    #[error("cannot write a frame: {0}")]
    Frame(#[from] wire::codec::Error),
    /// What is there cannot be read, and is as it was.
    #[error(transparent)]
    Unreadable(#[from] Box<unreadable::Unreadable>),
}

impl Error {
    /// Wrap what the system said about `what`.
    pub(crate) fn disk(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Disk { what, source }
    }
}
