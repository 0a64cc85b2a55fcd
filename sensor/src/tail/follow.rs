//! What became of a log: is it still the file it was, and is what was read still in it?
//!
//! Pure: it is told what stands on disk and decides. Rule: a file is known by device, inode and time of
//! birth, and by its content before the place of reading; a name proves nothing, and neither does an
//! inode alone, for both are used again.
//! Not here: looking at the disk ([`super::probe`]), acting on a decision (`track`).

use crate::journal::frame::{Identity, Print};

/// Longest stretch before the place of reading that is compared, in bytes.
pub const BEFORE_LEN_MAX_BYTES: usize = 256;

/// Longest stretch at the beginning of a file that is compared, in bytes.
pub const PREFIX_LEN_MAX_BYTES: usize = 1024;

/// Bytes that must have been read for content alone to tell a file: two logs may begin with the same
/// short banner.
const DISTINCTIVE_LEN_BYTES: u64 = 64;

/// Which of the means of recognition are in use. All, but in tests that show what each is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// Compare the content before the place of reading.
    pub content: bool,
    /// Keep the descriptor of a file that was renamed or deleted.
    pub descriptor: bool,
    /// Look for a rotated file among its siblings.
    pub siblings: bool,
    /// Leave out events that the journal holds already when lines are read again.
    pub known_events: bool,
    /// Skip NUL bytes where a line should begin.
    pub holes: bool,
}

impl Default for Means {
    fn default() -> Means {
        Means { content: true, descriptor: true, siblings: true, known_events: true, holes: true }
    }
}

/// What is remembered of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which file it was.
    pub identity: Identity,
    /// How far it was read, in bytes.
    pub offset: u64,
    /// Its beginning.
    pub prefix: Print,
    /// What stood before `offset`.
    pub before: Print,
}

/// A file that may be the remembered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which file it is.
    pub identity: Identity,
    /// How long it is, in bytes.
    pub size: u64,
    /// Whether both stretches of the remembered file stand in it.
    pub content_fits: bool,
    /// Whether its name is one that rotation gives.
    pub is_named_so: bool,
}

/// What a candidate is to the remembered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// It is that file, with all that was read.
    Itself,
    /// It is that inode, but shorter than what was read.
    Shrunk,
    /// It is that inode, but with other content where reading stopped.
    Regrown,
    /// Another inode with the same content as far as it was read.
    Copy,
    /// Something else.
    Stranger,
}

/// Tell what a candidate is.
#[must_use]
pub fn recognise(known: &Known, candidate: &Candidate, means: Means) -> Recognition {
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

/// Whether two identities are one inode in one life. Where a file system tells no time of birth, the
/// inode has to do; the content is compared in any case.
#[must_use]
pub fn same_file(one: &Identity, other: &Identity) -> bool {
    let same_birth = match (one.born, other.born) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    };
    one.device == other.device && one.inode == other.inode && same_birth
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtPath {
    /// A plain file.
    File {
        /// Which.
        identity: Identity,
        /// Its length, in bytes.
        size: u64,
    },
    /// Nothing, and its directory is there to say so.
    Nothing,
    /// Something that is not read as a log, or may not be: why.
    Refused(String),
    /// It cannot be told: why.
    Hindered(String),
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
    /// It cannot be told now.
    Unknown,
}

/// Tell what became of the file a path named, by what stands there now.
#[must_use]
pub fn fate(known: &Identity, at: &AtPath) -> Fate {
    match at {
        AtPath::File { identity, .. } if same_file(known, identity) => Fate::Stays,
        AtPath::File { .. } => Fate::Replaced,
        AtPath::Nothing | AtPath::Refused(_) => Fate::Gone,
        AtPath::Hindered(_) => Fate::Unknown,
    }
}

/// What an open file has to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing new.
    Same,
    /// More to read.
    More,
    /// Less than was read: it was truncated.
    Shrunk,
    /// Other content than was read, at no less length: it was truncated and has grown again.
    Regrown,
}

/// Tell what an open file has to offer: how far it was read, how long it is, and whether what was read
/// last still stands there (`None`: not looked at).
#[must_use]
pub fn content(read_to: u64, size: u64, tail_fits: Option<bool>, means: Means) -> Content {
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
        let known = Known { identity: FILE, offset, prefix: print(offset), before: print(offset.min(256)) };
        let candidate = Candidate { identity, size, content_fits, is_named_so: false };
        assert_eq!(recognise(&known, &candidate, Means::default()), expected);
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
    fn content_tells_nothing_when_little_was_read() {
        check(10, OTHER, 100, true, Recognition::Stranger);
        let print = Print { len: 10, hash: 1 };
        let known = Known { identity: FILE, offset: 10, prefix: print, before: print };
        let candidate = Candidate { identity: OTHER, size: 100, content_fits: true, is_named_so: true };
        assert_eq!(recognise(&known, &candidate, Means::default()), Recognition::Copy, "but for its name");
        check(0, FILE, 100, true, Recognition::Itself);
    }

    #[test]
    fn without_the_content_regrowth_goes_unnoticed() {
        let blind = Means { content: false, ..Means::default() };
        let known = Known { identity: FILE, offset: 100, prefix: Print::default(), before: Print::default() };
        let candidate = Candidate { identity: FILE, size: 200, content_fits: false, is_named_so: false };
        assert_eq!(recognise(&known, &candidate, Means::default()), Recognition::Regrown);
        assert_eq!(recognise(&known, &candidate, blind), Recognition::Itself);
        assert_eq!(content(100, 200, Some(false), Means::default()), Content::Regrown);
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
        assert_eq!(fate(&FILE, &AtPath::Hindered("not mounted".into())), Fate::Unknown);
    }

    #[test]
    fn content_of_an_open_file() {
        let all = Means::default();
        assert_eq!(content(100, 99, None, all), Content::Shrunk);
        assert_eq!(content(100, 100, Some(true), all), Content::Same);
        assert_eq!(content(100, 100, Some(false), all), Content::Regrown);
        assert_eq!(content(100, 101, Some(true), all), Content::More);
    }
}
