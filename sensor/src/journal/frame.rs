//! Frames of a journal: their types on disk.
//!
//! Pure. This is a format on disk: the order of variants and fields is part of it, and
//! [`crate::segments::chain`] requires [`Batch`] as the first variant. Not here: what frames mean together
//! ([`super::state`]).

use compact_str::CompactString;
use log_filters::found::{Change, Found};
use serde::{Deserialize, Serialize};
use wire::at_end::AtEnd;
use wire::id::{Generation, SensorKey};
use wire::report::StoreKey;
use wire::report::marks::MarkList;
use wire::time::Time;
use wire::version::Trailing;

/// A path in the bytes of the operating system; not always UTF-8.
pub type PathBytes = Vec<u8>;

/// Fingerprint of a stretch of a file, by length and hash: detects whether the stretch changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    /// Length of the stretch, in bytes.
    pub len: u16,
    /// XXH3 of the stretch.
    pub hash: u64,
}

impl Print {
    /// Computes the fingerprint of these bytes.
    ///
    /// # Panics
    /// If there are more than 65,535 bytes: fingerprints cover at most 1,024.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Print {
        let len = u16::try_from(bytes.len()).expect("prints are of short stretches");
        Print { len, hash: xxhash_rust::xxh3::xxh3_64(bytes) }
    }

    /// Whether these bytes have this fingerprint.
    #[must_use]
    pub fn fits(&self, bytes: &[u8]) -> bool {
        let same_len = usize::from(self.len) == bytes.len();
        same_len && (bytes.is_empty() || self.hash == xxhash_rust::xxh3::xxh3_64(bytes))
    }
}

/// Identity of a file on its file system. Inode numbers are reused after a deletion: see [`Print`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// Creation time of the inode, in nanoseconds since 1970; `None` where the file system does not report
    /// it.
    pub born: Option<i128>,
}

/// Progress of reading one generation of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// The path still names the file.
    Live,
    /// The file was renamed or deleted; there may be more to read.
    Rotated,
    /// The file was renamed or deleted, and read to its end after its successor had started.
    Finished,
    /// The file will not be read any more.
    Over,
}

/// What a batch adds to the totals of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines passed to the filter.
    pub lines: u64,
    /// Lines that no rule matched.
    pub rejects: u64,
    /// Events, notices included.
    pub events: u64,
    /// Reported gaps.
    pub gaps: u64,
    /// Bytes known to be lost in the gaps.
    pub gap_bytes: u64,
    /// Gaps whose length is unknown.
    pub gaps_unknown: u64,
    /// Last lines reported as incomplete.
    pub incomplete: u64,
    /// Lines longer than the limit.
    pub oversize: u64,
    /// NUL bytes skipped at the expected start of a line.
    pub nul_bytes: u64,
}

impl Counts {
    /// Adds other counts to these.
    pub fn add(&mut self, more: &Counts) {
        self.lines += more.lines;
        self.rejects += more.rejects;
        self.events += more.events;
        self.gaps += more.gaps;
        self.gap_bytes += more.gap_bytes;
        self.gaps_unknown += more.gaps_unknown;
        self.incomplete += more.incomplete;
        self.oversize += more.oversize;
        self.nul_bytes += more.nul_bytes;
    }
}

/// One event, with the call it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub found: Found,
    /// The call of the event; empty if none.
    pub call: CompactString,
}

/// Start of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Number of the generation.
    pub generation: Generation,
    /// The path where the file was found.
    pub path: PathBytes,
    /// The filter that reads the file.
    pub filter: CompactString,
    /// The host that wrote the log.
    pub host: CompactString,
    pub identity: Identity,
    /// Device of the directory of the file: distinguishes an unmounted file system from an empty one.
    pub directory: u64,
    /// Offset where reading starts, in bytes.
    pub offset: u64,
    /// Fingerprint of the bytes before `offset`.
    pub before: Print,
    /// Whether the rest of the line at `offset` is skipped.
    pub within_line: bool,
}

/// Events of one stretch of one generation, and the progress after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Sequence number of the first record.
    pub first: u64,
    pub generation: Generation,
    /// Time of reading.
    pub seen: Time,
    /// Offset where reading continues after this batch, in bytes.
    pub offset: u64,
    /// Lines that start before this offset are counted and, if need be, have caused a notice; in bytes.
    pub counted_to: u64,
    /// Fingerprint of the bytes before `offset`.
    pub before: Print,
    /// Fingerprint of the start of the file, if more of it is known than before.
    pub prefix: Option<Print>,
    /// Offset of the last line reported as incomplete.
    pub incomplete: Option<u64>,
    /// A copy that was read in place of this file.
    pub copy: Option<Identity>,
    pub status: Status,
    /// Additions to the totals.
    pub counts: Counts,
    pub records: Vec<Record>,
    /// What the filter remembers and forgets.
    pub changes: Vec<Change>,
}

impl Batch {
    /// A batch without events or progress.
    #[must_use]
    pub fn empty(generation: Generation) -> Batch {
        Batch {
            generation,
            first: 0,
            seen: Time::default(),
            offset: 0,
            counted_to: 0,
            before: Print::default(),
            prefix: None,
            incomplete: None,
            copy: None,
            status: Status::Live,
            counts: Counts::default(),
            records: Vec::new(),
            changes: Vec::new(),
        }
    }
}

/// Start of a segment: what does not belong to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The sensor that writes the journal.
    pub sensor: SensorKey,
    /// The number of the next generation.
    pub next_generation: u32,
    /// The sequence number of the next event.
    pub next: u64,
    /// The receiver has everything before this sequence number; `None` if there never was a receiver.
    pub acknowledged: Option<u64>,
    /// Events deleted before the receiver had them.
    pub lost: u64,
    /// The version of the segment's frames ([`wire::version::JOURNAL`]). The fields before it never change:
    /// version 1 was also written without this field and those after it.
    pub version: Trailing,
    /// What the store of each receiver had, and when.
    pub marks: AtEnd<MarkList>,
}

/// Entry of a head for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHead {
    pub path: PathBytes,
    pub record: FileRecord,
}

/// Record of a path, stored whether or not a generation of it is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub totals: Counts,
    /// Creation time of the youngest of the files read at this path, in nanoseconds since 1970.
    pub youngest: Option<i128>,
    /// Device and inode of every file read that was created at that time: file system clocks are coarse.
    pub youngest_files: Vec<(u64, u64)>,
}

/// Limit on the files remembered per tick of the file system clock: more do not occur in practice.
const YOUNGEST_FILES_MAX: usize = 64;

impl FileRecord {
    /// Records that this file is read, or was read as part of another.
    pub fn note(&mut self, identity: &Identity) {
        if identity.born.is_none() || identity.born < self.youngest {
            return;
        }
        if identity.born > self.youngest {
            self.youngest = identity.born;
            self.youngest_files.clear();
        }
        let file = (identity.device, identity.inode);
        if !self.youngest_files.contains(&file) && self.youngest_files.len() < YOUNGEST_FILES_MAX {
            self.youngest_files.push(file);
        }
    }

    /// Whether a file is younger than all files read at this path.
    #[must_use]
    pub fn is_news(&self, identity: &Identity) -> bool {
        let file = (identity.device, identity.inode);
        identity.born > self.youngest
            || (identity.born == self.youngest && !self.youngest_files.contains(&file))
    }
}

/// Checkpoint of one generation: its read progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub birth: Birth,
    /// Offset where reading continues, in bytes.
    pub offset: u64,
    /// Lines that start before this offset are counted, in bytes.
    pub counted_to: u64,
    /// Fingerprint of the bytes before `offset`.
    pub before: Print,
    /// Fingerprint of the start of the file.
    pub prefix: Print,
    /// Offset of the last line reported as incomplete.
    pub incomplete: Option<u64>,
    pub status: Status,
    /// Events at or after `offset` that are already in the journal, by offset and number: reading the lines
    /// again must not add them again.
    pub beyond: Vec<(u64, u16)>,
}

/// Body of a frame as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Events and progress.
    Batch(Batch),
    /// Start of a segment.
    Head(Head),
    /// Part of the head: a path.
    File(FileHead),
    /// Part of the head: a part of what the filter of a path remembers.
    Memory(PathBytes, CompactString, Vec<Change>),
    /// Part of the head: a generation.
    Generation(Checkpoint),
    /// Part of the head: a part of the open calls, in the encoding of their owner.
    Calls(Vec<u8>),
    /// End of the head.
    HeadEnd,
    /// Start of a generation.
    Born(Birth),
    /// The receiver has everything before `next`.
    Acknowledged {
        /// The first sequence number that it does not have.
        next: u64,
        /// The store that has them, and the position in that store before which they are; `None` from a
        /// version that does not write it.
        stored: AtEnd<(StoreKey, u64)>,
    },
}

/// Body of a frame as it is written: encodes to the same bytes as [`Body`] without owning the data.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum BodyRef<'a> {
    /// See [`Body::Batch`].
    Batch(&'a Batch),
    /// See [`Body::Head`].
    Head(&'a Head),
    /// See [`Body::File`].
    File(&'a FileHead),
    /// See [`Body::Memory`].
    Memory(&'a [u8], &'a str, &'a [Change]),
    /// See [`Body::Generation`].
    Generation(&'a Checkpoint),
    /// See [`Body::Calls`].
    Calls(&'a [u8]),
    /// See [`Body::HeadEnd`].
    HeadEnd,
    /// See [`Body::Born`].
    Born(&'a Birth),
    /// See [`Body::Acknowledged`].
    Acknowledged {
        /// The first sequence number that the receiver does not have.
        next: u64,
        /// The store that has them, and the position in that store before which they are.
        stored: AtEnd<(StoreKey, u64)>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::chain;

    #[test]
    fn what_is_written_by_reference_is_read_as_owned_and_its_number_found() {
        let batch = Batch { first: 9, ..Batch::empty(Generation(3)) };
        let mut out = Vec::new();
        let sum = chain::encode(77, BodyRef::Batch(&batch), &mut out).expect("short");
        let decoded: Option<((u32, Body), usize)> = wire::codec::decode(&out).expect("whole");
        assert_eq!(decoded, Some(((77, Body::Batch(batch)), out.len())));
        assert_eq!(sum, chain::checksum(&out));
        assert_eq!(chain::batch_first(&out), Ok(Some(9)));
    }
}
