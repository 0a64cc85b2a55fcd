//! Status of each followed file and of the tail as a whole, for queries while the tail works.
//!
//! The tail writes it and queries read it; the lock is only held while an entry is copied.

use super::path_status::PathStatus;
use crate::sample::ticker::running;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a turn of the thread that reads may take: it reads a bounded part of each file in one turn.
const TURN_TIME_MAX: Duration = Duration::from_secs(15);

/// Status of one file, as `sensor.files` returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStatus {
    pub path: PathBuf,
    /// The filter that reads it, or will if its name selects one; empty if none was found.
    pub filter: CompactString,
    /// The generation that the path names now; 0 if none is read.
    pub generation: u32,
    /// How far that is read, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub size: u64,
    /// Bytes not read yet, rotated files included.
    pub lag_bytes: u64,
    /// Rotated or deleted files that are still open.
    pub rotated_open: usize,
    /// Lines given to the filter.
    pub lines: u64,
    /// Events, notices included.
    pub events: u64,
    /// Lines that no rule took.
    pub rejects: u64,
    pub gaps: u64,
    /// Bytes known to be lost in gaps.
    pub gap_bytes: u64,
    /// Gaps with an unknown number of lost bytes.
    pub gaps_unknown: u64,
    /// Last lines reported as incomplete.
    pub incomplete: u64,
    /// Lines longer than the limit.
    pub oversize: u64,
    /// NUL bytes skipped.
    pub nul_bytes: u64,
    /// The path through which this file is read, if it has two followed names.
    pub same_as: Option<PathBuf>,
    pub status: PathStatus,
    /// Whether the operator named this very path, or its name selects a filter.
    pub is_expected: bool,
}

impl FileStatus {
    /// Whether its status means that something is wrong with the sensor.
    #[must_use]
    pub fn is_unhealthy(&self) -> bool {
        self.status.is_unhealthy(self.is_expected)
    }
}

/// Status of the tail as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TailStatus {
    /// What is wrong with the tail as a whole, in sentences: the state directory, the watches.
    pub health: Vec<String>,
    /// Events deleted before the receiver had them.
    pub lost: u64,
    /// The receiver has everything before this sequence number.
    pub acknowledged: Option<u64>,
}

/// Status of all files and of the tail, shared by the tail and the queries.
#[derive(Debug, Default)]
pub struct StatusTable {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, FileStatus>,
    tail: TailStatus,
    /// When the present turn of the thread that reads started; `None` between two turns.
    turn_since: Option<Duration>,
}

impl StatusTable {
    /// Every file, by path.
    #[must_use]
    pub fn files(&self) -> Vec<FileStatus> {
        self.lock().files.values().cloned().collect()
    }

    /// The tail as a whole.
    #[must_use]
    pub fn tail(&self) -> TailStatus {
        let inner = self.lock();
        let mut tail = inner.tail.clone();
        let held_up = inner
            .turn_since
            .map(|since| running().saturating_sub(since))
            .filter(|time| *time > TURN_TIME_MAX);
        tail.health.extend(held_up.map(|time| {
            let secs = time.as_secs();
            format!("no log is read since {secs} s: a file system with logs, or that of the state folder, does not answer")
        }));
        tail
    }

    /// The thread that reads starts a turn, or has ended one.
    pub(super) fn set_at_work(&self, is_at_work: bool) {
        self.lock().turn_since = is_at_work.then(running);
    }

    pub(super) fn set_file(&self, file: FileStatus) {
        self.lock().files.insert(file.path.clone(), file);
    }

    pub(super) fn remove_file(&self, path: &Path) {
        self.lock().files.remove(path);
    }

    pub(super) fn set_tail(&self, tail: TailStatus) {
        self.lock().tail = tail;
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
        let table = StatusTable::default();
        table.set_at_work(true);
        assert_eq!(table.tail().health, Vec::<String>::new());
        table.lock().turn_since = running().checked_sub(TURN_TIME_MAX + Duration::from_secs(5));
        assert!(table.tail().health[0].starts_with("no log is read since 20 s"), "{:?}", table.tail());
        table.set_at_work(false);
        assert_eq!(table.tail().health, Vec::<String>::new());
    }
}
