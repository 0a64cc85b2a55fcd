//! Log tailer: from files that grow, rotate, shrink and vanish to events in the journal.
//!
//! One thread owns everything: [`handle`] starts it, and it drives [`ingest`] in turns. There, a `track`
//! reads each path, and a `source` each generation of its file (the file before a rotation, the one after
//! it). The decisions are pure ([`follow`], [`lines`], [`meter`], [`notice`], [`path_status`]); separate
//! files look at the disk ([`probe`], [`path_set`], [`watch`]).
//! Invariant: the filter gets every line of every file exactly once, in the order of the file, whatever
//! happens to the file or to this process; where that is impossible, a gap is reported.
//! Not here: which filter reads which file (`sensor::filters`), answers to queries (`sensor::query`).

use crate::journal;
use crate::segments;
use compact_str::CompactString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub mod path_set;
pub mod probe;

pub mod follow;
pub mod lines;
pub mod meter;
pub mod notice;
pub mod path_status;

pub mod compression;

mod core;
mod draft;
pub mod interpret;
mod memory;
mod owners;
mod search;
mod source;
mod track;

pub mod ingest;
pub mod status;

pub mod handle;
pub mod watch;

/// First bytes of a file that may select a filter.
pub const FIRST_LEN_MAX_BYTES: usize = 4096;

/// Files followed at once: each costs a descriptor, and a buffer while a line is incomplete.
pub const FILES_MAX: usize = 1024;

/// The files of one glob, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Path or glob (`*`, `?`, `[…]`, `**` for folders at any depth).
    pub glob: String,
    /// The name of the filter; `None`: selected by file name and first lines.
    pub filter: Option<String>,
    /// Label of the cluster whose logs these are; empty if there is only one.
    pub cluster: String,
    /// The host whose logs these are; `None`: this one.
    pub host: Option<String>,
    /// Where to start in a file that has no checkpoint.
    pub start: Start,
    /// Folders below which symbolic links may lead; empty: the folder before the first wildcard.
    pub roots: Vec<PathBuf>,
}

impl Spec {
    /// This path or glob, with defaults for everything else.
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

    /// A log `STEM.log` that the sensor writes itself in this folder. It is a glob, so a missing one is not reported.
    #[must_use]
    pub fn of_own_log(folder: &Path, stem: &str, filter: &str) -> Spec {
        let glob = format!("{}/{stem}*.log", globset::escape(&folder.display().to_string()));
        Spec { filter: Some(filter.to_owned()), start: Start::Beginning, ..Spec::new(glob) }
    }
}

/// Where to start in a file that existed, without a checkpoint, when the sensor started. A file with a
/// checkpoint is continued from it; one that appears later is read from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At its first line.
    Beginning,
    /// At its end: only what is written from now on.
    End,
    /// As [`Config::first_start`] says.
    Checkpoint,
}

/// Where to start in the files found at the very first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStart {
    /// At their first lines.
    Beginning,
    /// At their ends.
    End,
}

/// Configuration of the tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub files: Vec<Spec>,
    /// This host's name.
    pub host: CompactString,
    /// What [`Start::Checkpoint`] means without a checkpoint.
    pub first_start: FirstStart,
    /// Longest time until a change is noticed that the kernel did not report.
    pub rescan: Duration,
    /// After so long a last line without its end is reported as incomplete, and a record that waits for more
    /// lines is closed.
    pub incomplete_after: Duration,
    /// Longest time until what was read is durable; it is sooner if a reader waits for it
    /// ([`crate::segments::sync_limiter`]).
    pub sync_every: Duration,
    /// Unread bytes in deleted files that are held open; beyond it the oldest is closed with a gap.
    pub held_bytes: u64,
    /// A filter slower than this is put in quarantine, in bytes each second.
    pub bytes_per_sec_min: u64,
    /// Limits of the journal.
    pub journal: journal::Config,
    /// The means of recognition in use [default: all].
    pub means: follow::RecognitionMeans,
}

impl Config {
    /// Follow these files, with defaults for everything else.
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
            means: follow::RecognitionMeans::default(),
        }
    }
}

/// Why the tail could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state directory cannot be used.
    #[error(transparent)]
    Lock(#[from] journal::lock::Error),
    /// The journal could not be opened.
    #[error(transparent)]
    Journal(#[from] segments::Error),
    /// A glob cannot be read.
    #[error("cannot read the glob {glob:?}: {why}")]
    Glob { glob: String, why: String },
    /// The system refused something that is needed.
    #[error("cannot {what}: {source}")]
    System { what: String, source: std::io::Error },
}
