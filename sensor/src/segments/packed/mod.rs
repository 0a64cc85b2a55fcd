//! Compressed segments: the frames of a closed segment in blocks, with an index of their events.
//!
//! ```text
//! MAGIC | block | block … | directory | position of the directory | MAGIC
//! ```
//!
//! Blocks and the directory are frames of [`wire::codec`]. Rule: a compressed segment gives back the frames
//! of the segment byte for byte, at the same offsets ([`file::PackedFile`]), so readers, indexes and recovery
//! need not know which form a segment has. It has the name of the segment, which it replaces at once
//! ([`pack::pack`]). A damaged block reads as one damaged frame of its length; a damaged directory is made
//! again from the blocks.
//! Not here: the encoding of blocks (each log has its own [`Codec`]), when a segment is compressed.

pub mod directory;
pub mod file;
pub mod pack;
pub mod summary;

use summary::Collector;

/// Codec of the frames of a log.
pub trait Codec: Send + Sync {
    /// Encodes consecutive frames; `None` if this codec cannot give them back byte for byte.
    fn pack(&self, frames: &[u8]) -> Option<Vec<u8>>;

    /// Decodes what [`Codec::pack`] encoded; `None` if it is damaged.
    fn unpack(&self, packed: &[u8]) -> Option<Vec<u8>>;

    /// Adds the events of a whole frame to the summary of its block. Returns what the frame is; `None` if it
    /// is damaged.
    fn note(&self, frame: &[u8], events: &mut Collector) -> Option<Noted>;
}

/// What a frame is to readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Events.
    Batch {
        /// Number of the first one.
        first: u64,
        /// How many.
        events: u64,
    },
    /// Part of the legend of the segment.
    Legend,
    /// Nothing that readers of events need.
    Other,
}
