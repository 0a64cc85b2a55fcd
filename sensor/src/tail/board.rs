//! What is known of each file, for queries while the tail works.
//!
//! A lock is held only to copy a line in or out.

use super::standing::Standing;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// One file, as `sensor.files` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Its path.
    pub path: PathBuf,
    /// The filter that reads it, or will where its name tells; empty if none was found.
    pub filter: CompactString,
    /// The generation the path names now; 0 if none is read.
    pub generation: u32,
    /// How far that is read, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub size: u64,
    /// Bytes not read yet, rotated files included.
    pub lag_bytes: u64,
    /// Rotated or deleted files still open.
    pub rotated_open: usize,
    /// Lines given to the filter.
    pub lines: u64,
    /// Events, notices included.
    pub events: u64,
    /// Lines no rule took.
    pub rejects: u64,
    /// Gaps.
    pub gaps: u64,
    /// Bytes known to be lost in them.
    pub gap_bytes: u64,
    /// Gaps of which nobody knows how much was lost.
    pub gaps_unknown: u64,
    /// Last lines told as incomplete.
    pub incomplete: u64,
    /// Lines longer than the cap.
    pub oversize: u64,
    /// NUL bytes skipped.
    pub nul_bytes: u64,
    /// The path through which this very file is read already, if it has two names that are meant.
    pub same_as: Option<PathBuf>,
    /// How it stands.
    pub standing: Standing,
    /// The operator named this very path, or its name tells which filter reads it.
    pub is_meant: bool,
}

impl FileState {
    /// Whether what is told of it is something wrong with the sensor.
    #[must_use]
    pub fn is_ill(&self) -> bool {
        self.standing.is_ill(self.is_meant)
    }
}

/// What is known of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What is wrong with the tail as a whole, in sentences: the state directory, the watches.
    pub health: Vec<String>,
    /// Events deleted before the receiver had them.
    pub lost: u64,
    /// The receiver has everything before this sequence number.
    pub acknowledged: Option<u64>,
}

/// Where the tail writes what is known, and queries read it.
#[derive(Debug, Default)]
pub struct Board {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, FileState>,
    state: State,
}

impl Board {
    /// Every file, by path.
    #[must_use]
    pub fn files(&self) -> Vec<FileState> {
        self.lock().files.values().cloned().collect()
    }

    /// What is known as a whole.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().state.clone()
    }

    pub(super) fn set_file(&self, file: FileState) {
        self.lock().files.insert(file.path.clone(), file);
    }

    pub(super) fn remove_file(&self, path: &Path) {
        self.lock().files.remove(path);
    }

    pub(super) fn set_state(&self, state: State) {
        self.lock().state = state;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
