//! What the frames of a journal say.
//!
//! Pure. This is a format on disk: the order of variants and fields is part of it, and a batch comes first, as
//! [`crate::segments::chain`] says. Not here: what frames mean together ([`super::state`]).

use compact_str::CompactString;
use log_filters::found::{Change, Found};
use serde::{Deserialize, Serialize};
use wire::at_end::AtEnd;
use wire::id::{Generation, SensorKey};
use wire::report::StoreKey;
use wire::report::marks::MarkList;
use wire::time::Time;
use wire::version::Trailing;

/// A path as the system spells it; not always text.
pub type PathBytes = Vec<u8>;

/// A stretch of a file, by length and hash: what stands there now is the same, or it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    /// How long the stretch is, in bytes.
    pub len: u16,
    /// XXH3 of it.
    pub hash: u64,
}

impl Print {
    /// The print of these bytes.
    ///
    /// # Panics
    /// If there are more than 65,535 of them: prints are of at most 1,024.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Print {
        let len = u16::try_from(bytes.len()).expect("prints are of short stretches");
        Print { len, hash: xxhash_rust::xxh3::xxh3_64(bytes) }
    }

    /// Whether these bytes give this print.
    #[must_use]
    pub fn fits(&self, bytes: &[u8]) -> bool {
        let same_len = usize::from(self.len) == bytes.len();
        same_len && (bytes.is_empty() || self.hash == xxhash_rust::xxh3::xxh3_64(bytes))
    }
}

/// Which file it is, as the file system tells. Numbers are used again after a deletion: see [`Print`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// When the inode was made, in nanoseconds since 1970; `None` where the file system does not tell.
    pub born: Option<i128>,
}

/// Where the reading of one generation of a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// The path names it.
    Live,
    /// It was renamed or deleted; there may be more to read.
    Rotated,
    /// It was renamed or deleted, and read to its end after its successor had started.
    Finished,
    /// It will not be read any more.
    Over,
}

/// What a batch adds to a file's totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines given to the filter.
    pub lines: u64,
    /// Lines no rule took.
    pub rejects: u64,
    /// Events, notices included.
    pub events: u64,
    /// Gaps told.
    pub gaps: u64,
    /// Bytes known to be lost in them.
    pub gap_bytes: u64,
    /// Gaps of which no one knows how much was lost.
    pub gaps_unknown: u64,
    /// Last lines told as incomplete.
    pub incomplete: u64,
    /// Lines longer than the cap.
    pub oversize: u64,
    /// NUL bytes skipped where a line should begin.
    pub nul_bytes: u64,
}

impl Counts {
    /// Add these to it.
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

/// One event with its place among its call's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What was found.
    pub found: Found,
    /// The call it belongs to, empty if none.
    pub call: CompactString,
}

/// A generation begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Its number.
    pub generation: Generation,
    /// The path under which it was found.
    pub path: PathBytes,
    /// The filter that reads it.
    pub filter: CompactString,
    /// The host whose log it is.
    pub host: CompactString,
    /// Which file.
    pub identity: Identity,
    /// Device of the directory it was found in: a file system that is not mounted is not an empty one.
    pub directory: u64,
    /// Where reading begins, in bytes.
    pub offset: u64,
    /// Hash of the bytes before that.
    pub before: Print,
    /// Whether the rest of the line at that place is to be passed over.
    pub within_line: bool,
}

/// What one stretch of one generation gave, and how far it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Sequence number of the first record.
    pub first: u64,
    /// Which generation.
    pub generation: Generation,
    /// When it was read.
    pub seen: Time,
    /// Where reading goes on after this batch, in bytes.
    pub offset: u64,
    /// Lines that begin before this were counted, and noticed if need be, in bytes.
    pub counted_to: u64,
    /// Hash of the bytes before `offset`.
    pub before: Print,
    /// Hash of the beginning of the file, if more of it is known now.
    pub prefix: Option<Print>,
    /// The last line told as incomplete, by its offset.
    pub incomplete: Option<u64>,
    /// A copy that was read in its place.
    pub copy: Option<Identity>,
    /// Where its reading stands.
    pub status: Status,
    /// Additions to the totals.
    pub counts: Counts,
    /// The events.
    pub records: Vec<Record>,
    /// What the filter remembers and forgets.
    pub changes: Vec<Change>,
}

impl Batch {
    /// A batch that says nothing yet.
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

/// The beginning of a segment: what does not belong to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Whose journal.
    pub sensor: SensorKey,
    /// The number the next generation gets.
    pub next_generation: u32,
    /// The sequence number the next event gets.
    pub next: u64,
    /// The receiver has everything before this sequence number; `None` if there never was a receiver.
    pub acknowledged: Option<u64>,
    /// Events deleted before the receiver had them.
    pub lost: u64,
    /// The version of the segment's frames ([`wire::version::JOURNAL`]). What is before it stays as it is: version 1 is
    /// also written without it, and without what follows.
    pub version: Trailing,
    /// What each receiver's store had, and when.
    pub marks: AtEnd<MarkList>,
}

/// What a head says of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHead {
    /// The path.
    pub path: PathBytes,
    /// What is kept of it.
    pub record: FileRecord,
}

/// What is kept of a path whether or not a generation of it is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its totals.
    pub totals: Counts,
    /// When the youngest of its files was born, in nanoseconds since 1970.
    pub youngest: Option<i128>,
    /// Device and inode of every file that was read and born then: clocks of file systems are coarse.
    pub youngest_files: Vec<(u64, u64)>,
}

/// Files born in one tick of a file system's clock that are remembered: more do not happen.
const YOUNGEST_FILES_MAX: usize = 64;

impl FileRecord {
    /// This file is read, or was read as part of another.
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

    /// Whether a file is younger than all that were read.
    #[must_use]
    pub fn is_news(&self, identity: &Identity) -> bool {
        let file = (identity.device, identity.inode);
        identity.born > self.youngest
            || (identity.born == self.youngest && !self.youngest_files.contains(&file))
    }
}

/// Where one generation stands: the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How it began.
    pub birth: Birth,
    /// Where reading goes on, in bytes.
    pub offset: u64,
    /// Lines that begin before this are counted, in bytes.
    pub counted_to: u64,
    /// Hash of the bytes before `offset`.
    pub before: Print,
    /// Hash of the beginning of the file.
    pub prefix: Print,
    /// The last line told as incomplete, by its offset.
    pub incomplete: Option<u64>,
    /// Where its reading stands.
    pub status: Status,
    /// Events at or after `offset` that are in the journal already, by offset and number: reading the
    /// lines again must not give them again.
    pub beyond: Vec<(u64, u16)>,
}

/// The body of a frame as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Events and progress.
    Batch(Batch),
    /// A segment begins.
    Head(Head),
    /// Part of the head: a path.
    File(FileHead),
    /// Part of the head: some of what the filter of a path remembers.
    Memory(PathBytes, CompactString, Vec<Change>),
    /// Part of the head: a generation.
    Generation(Checkpoint),
    /// Part of the head: some of the open calls, as their owner wrote them.
    Calls(Vec<u8>),
    /// The head is complete.
    HeadEnd,
    /// A generation begins.
    Born(Birth),
    /// The receiver has everything before `next`.
    Acknowledged {
        /// The first sequence number it does not have.
        next: u64,
        /// In which store it has them, and before which place there; of a version that does not write it, none.
        stored: AtEnd<(StoreKey, u64)>,
    },
}

/// The body of a frame as it is written: the same bytes without owning them.
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
        /// The first sequence number the receiver does not have.
        next: u64,
        /// In which store it has them, and before which place there.
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
