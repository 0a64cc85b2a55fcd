//! Following logs: from files that grow, rotate, shrink and vanish to events in the journal.
//!
//! One thread owns everything ([`ingest`]); the decisions are pure ([`follow`], [`lines`], [`meter`],
//! [`notice`], [`standing`]) and the looking at the disk is apart from them ([`probe`], [`path_set`], [`watch`]).
//! Invariant: every line of every file is given to its filter exactly once, in the order of the file,
//! whatever happens to the file or to this process; where that is impossible a gap says so.
//! Not here: which filter is for which file (`sensor::filters`), answering queries (`sensor::query`).

use crate::journal;
use crate::segments;
use compact_str::CompactString;
use std::path::PathBuf;
use std::time::Duration;

pub mod path_set;
pub mod probe;

pub mod follow;
pub mod lines;
pub mod meter;
pub mod notice;
pub mod standing;

pub mod compression;

mod core;
pub mod interpret;
mod memory;
mod owners;
mod release;
mod search;
mod settle;
mod source;
mod track;

pub mod board;
pub mod ingest;

pub mod handle;
pub mod watch;

/// First bytes of a file by which a filter may be chosen.
pub const FIRST_LEN_MAX_BYTES: usize = 4096;

/// Files followed at once: each costs a descriptor and, when it speaks, a buffer.
pub const FILES_MAX: usize = 1024;

/// Files with one glob, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Path or glob (`*`, `?`, `[…]`, `**` for folders at any depth).
    pub glob: String,
    /// The name of the filter; `None`: chosen by file name and first lines.
    pub filter: Option<String>,
    /// Label of the cluster whose logs these are, empty if there is one only.
    pub cluster: String,
    /// The host whose logs these are; `None`: this one.
    pub host: Option<String>,
    /// Where to begin with a file that has no checkpoint.
    pub start: Start,
    /// Folders beneath which a symbolic link may lead; none: the folder before the first wildcard.
    pub roots: Vec<PathBuf>,
}

impl Spec {
    /// This path or glob, everything else as usual.
    #[must_use]
    pub fn new(glob: impl Into<String>) -> Spec {
        Spec {
            glob: glob.into(),
            filter: None,
            cluster: String::new(),
            host: None,
            start: Start::Checkpoint,
            roots: Vec::new(),
        }
    }
}

/// Where to begin with a file that was there, without a checkpoint, when the sensor started. One with a
/// checkpoint goes on from it; one that appears later is read from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At its first line.
    Beginning,
    /// At its end: only what is written from now on.
    End,
    /// As [`Config::first_start`] says.
    Checkpoint,
}

/// Where to begin with the files found at the very first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStart {
    /// At their first lines.
    Beginning,
    /// At their ends.
    End,
}

/// How logs are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which files.
    pub files: Vec<Spec>,
    /// This host's name.
    pub host: CompactString,
    /// What [`Start::Checkpoint`] means without a checkpoint.
    pub first_start: FirstStart,
    /// Longest time until a change is noticed that no one told of.
    pub rescan: Duration,
    /// A last line without its end is told as incomplete after so long, and a record that waits for more
    /// lines is closed.
    pub incomplete_after: Duration,
    /// Longest time until what was read is durable; it is sooner where somebody waits for it
    /// ([`crate::segments::pace`]).
    pub sync_every: Duration,
    /// Unread bytes in deleted files that are kept open; beyond it the oldest is given up with a gap.
    pub held_bytes: u64,
    /// A filter slower than this is stopped, in bytes each second.
    pub bytes_per_sec_min: u64,
    /// What the journal may use.
    pub journal: journal::Config,
    /// Which means of recognition are in use: all.
    pub means: follow::Means,
}

impl Config {
    /// Follow these files, everything else as usual.
    #[must_use]
    pub fn new(host: impl Into<CompactString>, files: Vec<Spec>) -> Config {
        Config {
            files,
            host: host.into(),
            first_start: FirstStart::Beginning,
            rescan: Duration::from_secs(2),
            incomplete_after: Duration::from_secs(5),
            sync_every: Duration::from_millis(200),
            held_bytes: 4 << 30,
            bytes_per_sec_min: meter::BYTES_PER_SEC_MIN,
            journal: journal::Config::default(),
            means: follow::Means::default(),
        }
    }
}

/// Why following logs could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state directory is not to be had.
    #[error(transparent)]
    Lock(#[from] journal::lock::Error),
    /// The journal could not be opened.
    #[error(transparent)]
    Journal(#[from] segments::Error),
    /// A glob cannot be read.
    #[error("cannot read the glob {glob:?}: {why}")]
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused something that is needed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}
