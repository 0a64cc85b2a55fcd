//! Directory of a compressed segment: its blocks, with their summaries.
//!
//! Pure. This is a format on disk. Not here: reading and writing files (`file`, `pack`).

use super::summary::Summary;
use serde::{Deserialize, Serialize};

/// Start of the file: no length of a frame, so older programs take the file for a damaged segment.
pub const MAGIC: [u8; 8] = *b"VPACKED1";

/// Length of the end of the file, in bytes: the position of the directory, u64 LE, and [`MAGIC`].
pub const END_LEN_BYTES: usize = 16;

/// How the frames of a block are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// By the codec of the log.
    Own,
    /// The bytes of the frames, compressed.
    General,
}

/// Position of a block in the frames of the segment; stored with the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Offset and length of its frames in the segment, in bytes.
    pub at: u64,
    pub len: u32,
    /// Number of its first event, or of the next one if it has none; then the number of its events.
    pub first: u64,
    pub events: u32,
    pub form: Form,
}

/// A block as it is stored: the body of a frame of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block<B> {
    pub extent: Extent,
    pub data: B,
}

/// Entry of a block in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub extent: Extent,
    /// Offset and length of its frame in the file, in bytes.
    pub place: u64,
    pub stored: u32,
    /// `None` where the directory was lost: anything may be in the block.
    pub summary: Option<Summary>,
}

/// The blocks of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// The blocks, in order.
    pub entries: Vec<Entry>,
    /// The frames that readers need besides events, compressed, and their length, in bytes; `None` where the
    /// directory was lost.
    pub legend: Option<(Vec<u8>, u32)>,
}

impl Directory {
    /// Length of the frames of the segment.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.entries.last().map_or(0, |last| last.extent.at + u64::from(last.extent.len))
    }

    /// The block that holds this offset of the segment, and its number.
    #[must_use]
    pub fn block_at(&self, at: u64) -> Option<&Entry> {
        let after = self.entries.partition_point(|entry| entry.extent.at <= at);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (at < entry.extent.at + u64::from(entry.extent.len)).then_some(entry)
    }

    /// The index of the block that holds this event.
    #[must_use]
    pub fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.partition_point(|entry| entry.extent.first <= number).checked_sub(1)
    }

    /// Whether the blocks follow each other without overlap; gaps are blocks that were lost.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.entries.windows(2).all(|pair| {
            let (one, next) = (pair[0].extent, pair[1].extent);
            one.at + u64::from(one.len) <= next.at && one.first + u64::from(one.events) <= next.first
        })
    }
}
