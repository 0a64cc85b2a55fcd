//! What is known of each file, for queries while the tail works.
//!
//! A lock is held only to copy a line in or out.

use super::standing::Standing;
use crate::sample::beat::running;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a turn of the thread that reads may take: one reads so much of each file and no more.
const TURN_TIME_MAX: Duration = Duration::from_secs(15);

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
    /// Gaps of which no one knows how much was lost.
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
    /// Since when the thread that reads has been at work without a pause.
    turn_since: Option<Duration>,
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
        let inner = self.lock();
        let mut state = inner.state.clone();
        let held_up = inner
            .turn_since
            .map(|since| running().saturating_sub(since))
            .filter(|time| *time > TURN_TIME_MAX);
        state.health.extend(held_up.map(|time| {
            let secs = time.as_secs();
            format!("no log is read since {secs} s: a file system with logs, or that of the state folder, does not answer")
        }));
        state
    }

    /// The thread that reads begins a turn, or has ended one.
    pub(super) fn set_at_work(&self, is_at_work: bool) {
        self.lock().turn_since = is_at_work.then(running);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_held_up_is_shown_until_its_turn_ends() {
        let board = Board::default();
        board.set_at_work(true);
        assert_eq!(board.state().health, Vec::<String>::new());
        board.lock().turn_since = running().checked_sub(TURN_TIME_MAX + Duration::from_secs(5));
        assert!(board.state().health[0].starts_with("no log is read since 20 s"), "{:?}", board.state());
        board.set_at_work(false);
        assert_eq!(board.state().health, Vec::<String>::new());
    }
}
