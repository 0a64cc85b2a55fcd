//! Recognition of files: whether a log is still the same file, and whether it still holds what was read.
//!
//! Pure: the caller passes what is on disk. Rule: a file is identified by device, inode and time of birth,
//! and by its content before the reading position; a name proves nothing, and neither does an inode alone,
//! because both are used again.
//! Not here: looking at the disk ([`super::probe`]), acting on a decision (`track`).

use crate::journal::frame::{Identity, Print};

/// Longest stretch before the reading position that is compared, in bytes.
pub const BEFORE_LEN_MAX_BYTES: usize = 256;

/// Longest stretch at the beginning of a file that is compared, in bytes.
pub const PREFIX_LEN_MAX_BYTES: usize = 1024;

/// Bytes that must have been read to identify a file by its content alone: two logs may start with the same
/// short banner.
const DISTINCTIVE_LEN_BYTES: u64 = 64;

/// The means of recognition that are in use: all, except in tests that show why each is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecognitionMeans {
    /// Compare the content before the reading position.
    pub content: bool,
    /// Keep the descriptor of a file that was renamed or deleted.
    pub descriptor: bool,
    /// Look for a rotated file among its siblings.
    pub siblings: bool,
    /// Leave out events that the journal has already when lines are read again.
    pub known_events: bool,
    /// Skip NUL bytes where a line should start.
    pub holes: bool,
}

impl Default for RecognitionMeans {
    fn default() -> RecognitionMeans {
        RecognitionMeans { content: true, descriptor: true, siblings: true, known_events: true, holes: true }
    }
}

/// Fingerprint of a file at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub identity: Identity,
    /// The position, in bytes: how far the file was read.
    pub offset: u64,
    /// The beginning of the file.
    pub prefix: Print,
    /// The bytes before `offset`.
    pub before: Print,
}

/// A file that may be the one of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub identity: Identity,
    /// Its length, in bytes.
    pub size: u64,
    /// Whether it has the content of both prints.
    pub content_fits: bool,
    /// Whether its name is one that rotation gives.
    pub is_named_so: bool,
}

/// Relation of a candidate to the file of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// It is that file, with all that was read.
    Itself,
    /// It is that inode, but shorter than what was read of it.
    Shrunk,
    /// It is that inode, but with other content before the position.
    Regrown,
    /// Another inode with the same content up to the position.
    Copy,
    /// Another file.
    Stranger,
}

/// Compare a candidate with a fingerprint.
#[must_use]
pub fn recognise(known: &Fingerprint, candidate: &Candidate, means: RecognitionMeans) -> Recognition {
    let fits = candidate.size >= known.offset && (candidate.content_fits || !means.content);
    if same_file(&known.identity, &candidate.identity) {
        return if fits {
            Recognition::Itself
        } else if candidate.size < known.offset {
            Recognition::Shrunk
        } else {
            Recognition::Regrown
        };
    }
    let compared = u64::from(known.prefix.len.max(known.before.len));
    let least = if candidate.is_named_so { 1 } else { DISTINCTIVE_LEN_BYTES };
    let distinctive = known.offset >= least && compared >= least;
    if means.content && fits && distinctive { Recognition::Copy } else { Recognition::Stranger }
}

/// Whether two identities are the same inode and the same use of it. Where a file system reports no time of
/// birth, the inode has to suffice; the content is compared in any case.
#[must_use]
pub fn same_file(one: &Identity, other: &Identity) -> bool {
    let same_birth = match (one.born, other.born) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    };
    one.device == other.device && one.inode == other.inode && same_birth
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtPath {
    /// A plain file.
    File {
        identity: Identity,
        /// Its length, in bytes.
        size: u64,
    },
    /// Nothing, and its directory is there to say so.
    Nothing,
    /// Something that is not read as a log, or is not allowed to be: why.
    Refused(String),
    /// The system does not show it: why.
    Unknown(String),
}

/// What became of the file that a path named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The path names it still.
    Stays,
    /// The path names another file: it was rotated away by renaming, or replaced.
    Replaced,
    /// The path names nothing, or nothing that is a log.
    Gone,
    /// Not known now.
    Unknown,
}

/// What became of the file that a path named, by what is there now.
#[must_use]
pub fn fate(known: &Identity, at: &AtPath) -> Fate {
    match at {
        AtPath::File { identity, .. } if same_file(known, identity) => Fate::Stays,
        AtPath::File { .. } => Fate::Replaced,
        AtPath::Nothing | AtPath::Refused(_) => Fate::Gone,
        AtPath::Unknown(_) => Fate::Unknown,
    }
}

/// Content of an open file compared with what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing new.
    Same,
    /// More to read.
    More,
    /// Less than was read: it was truncated.
    Shrunk,
    /// Other content than was read, and not shorter: it was truncated and has grown again.
    Regrown,
}

/// Compare an open file with what was read: how far it was read, how long it is, and whether what was read
/// last is still there (`None`: not compared).
#[must_use]
pub fn content(read_to: u64, size: u64, tail_fits: Option<bool>, means: RecognitionMeans) -> Content {
    if size < read_to {
        Content::Shrunk
    } else if tail_fits == Some(false) && means.content {
        Content::Regrown
    } else if size > read_to {
        Content::More
    } else {
        Content::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Identity = Identity { device: 1, inode: 10, born: Some(100) };
    const REUSED: Identity = Identity { device: 1, inode: 10, born: Some(200) };
    const OTHER: Identity = Identity { device: 1, inode: 11, born: Some(100) };

    fn check(offset: u64, identity: Identity, size: u64, content_fits: bool, expected: Recognition) {
        let print = |len: u64| Print { len: u16::try_from(len).unwrap(), hash: 1 };
        let known =
            Fingerprint { identity: FILE, offset, prefix: print(offset), before: print(offset.min(256)) };
        let candidate = Candidate { identity, size, content_fits, is_named_so: false };
        assert_eq!(recognise(&known, &candidate, RecognitionMeans::default()), expected);
    }

    #[test]
    fn a_file_is_recognised_by_inode_and_content_together() {
        check(100, FILE, 100, true, Recognition::Itself);
        check(100, FILE, 99, false, Recognition::Shrunk);
        check(100, FILE, 5000, false, Recognition::Regrown);
        check(100, OTHER, 100, true, Recognition::Copy);
        check(100, OTHER, 5000, false, Recognition::Stranger);
    }

    #[test]
    fn an_inode_used_again_is_another_file() {
        check(100, REUSED, 5000, false, Recognition::Stranger);
    }

    #[test]
    fn content_says_nothing_when_little_was_read() {
        check(10, OTHER, 100, true, Recognition::Stranger);
        let print = Print { len: 10, hash: 1 };
        let known = Fingerprint { identity: FILE, offset: 10, prefix: print, before: print };
        let candidate = Candidate { identity: OTHER, size: 100, content_fits: true, is_named_so: true };
        assert_eq!(
            recognise(&known, &candidate, RecognitionMeans::default()),
            Recognition::Copy,
            "but for its name"
        );
        check(0, FILE, 100, true, Recognition::Itself);
    }

    #[test]
    fn without_the_content_regrowth_goes_unnoticed() {
        let blind = RecognitionMeans { content: false, ..RecognitionMeans::default() };
        let known =
            Fingerprint { identity: FILE, offset: 100, prefix: Print::default(), before: Print::default() };
        let candidate = Candidate { identity: FILE, size: 200, content_fits: false, is_named_so: false };
        assert_eq!(recognise(&known, &candidate, RecognitionMeans::default()), Recognition::Regrown);
        assert_eq!(recognise(&known, &candidate, blind), Recognition::Itself);
        assert_eq!(content(100, 200, Some(false), RecognitionMeans::default()), Content::Regrown);
        assert_eq!(content(100, 200, Some(false), blind), Content::More);
    }

    #[test]
    fn the_fate_of_a_path() {
        let file = |identity| AtPath::File { identity, size: 1 };
        assert_eq!(fate(&FILE, &file(FILE)), Fate::Stays);
        assert_eq!(fate(&FILE, &file(Identity { born: None, ..FILE })), Fate::Stays);
        assert_eq!(fate(&FILE, &file(OTHER)), Fate::Replaced);
        assert_eq!(fate(&FILE, &AtPath::Nothing), Fate::Gone);
        assert_eq!(fate(&FILE, &AtPath::Refused("a directory".into())), Fate::Gone);
        assert_eq!(fate(&FILE, &AtPath::Unknown("not mounted".into())), Fate::Unknown);
    }

    #[test]
    fn content_of_an_open_file() {
        let all = RecognitionMeans::default();
        assert_eq!(content(100, 99, None, all), Content::Shrunk);
        assert_eq!(content(100, 100, Some(true), all), Content::Same);
        assert_eq!(content(100, 100, Some(false), all), Content::Regrown);
        assert_eq!(content(100, 101, Some(true), all), Content::More);
    }
}
