//! The tail as one object driven in turns: look, read, journal, make durable.
//!
//! It owns everything and is driven from outside: by a thread that waits for changes ([`super::handle`])
//! or by a test that controls the clock. It never waits and never sleeps.
//! Rule: nothing is read while the journal holds something back because the disk refuses it.

mod scan;

pub use super::core::{Clock, Now};

use super::core::Core;
use super::interpret::{Filters, Join};
use super::memory::{Memory, Recovery};
use super::path_set::PathSet;
use super::source;
use super::status::{StatusTable, TailStatus};
use super::track::{FirstSeen, Track};
use super::watch::Wake;
use super::{Config, Error};
use crate::journal::frame::PathBytes;
use crate::journal::lock::Lock;
use crate::journal::packer::Packer;
use crate::journal::reader::Reader;
use crate::journal::writer::Journal;
use crate::segments::disk::{Directory, Disk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::id::SensorKey;
use wire::report::Mark;
use wire::report::marks::MarkList;

/// The tail.
pub struct Ingest {
    core: Core,
    /// For the chunks that are read, one at a time.
    buffer: Vec<u8>,
    tracks: BTreeMap<PathBuf, Track>,
    /// What filters remember of paths that are not followed now, or whose filter does not exist now.
    unused: BTreeMap<PathBytes, Memory>,
    /// Paths with more to read.
    busy: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    next_scan: Duration,
    has_scanned: bool,
    /// Whether the last scan reached a limit.
    is_cut: bool,
    /// What the journal reported when it was opened.
    notes: Vec<String>,
    watch_trouble: Option<String>,
    /// To be journalled with the next turn.
    acknowledged: Option<Mark>,
    status: Arc<StatusTable>,
    _lock: Option<Lock>,
}

/// What the tail works with, passed in.
pub struct Parts {
    pub filters: Box<dyn Filters>,
    /// Joins events into calls.
    pub join: Box<dyn Join>,
    pub clock: Box<dyn Clock>,
    /// The key of this sensor if it has none yet.
    pub fresh_key: SensorKey,
}

impl Ingest {
    /// Open the state directory and continue where the last run stopped.
    ///
    /// # Errors
    /// If another process holds the directory or the system refuses it, if the journal has another
    /// version, or if a glob cannot be read.
    pub fn open(config: Config, state: &Path, parts: Parts) -> Result<Ingest, Error> {
        let system = |source| Error::System { what: format!("make {}", state.display()), source };
        Directory::new(state.to_owned()).map_err(system)?;
        let lock = Lock::take(state, parts.clock.wall())?;
        let disk = Directory::new(state.join("journal")).map_err(system)?;
        let mut ingest = Ingest::on_disk(config, Arc::new(disk), parts)?;
        ingest._lock = Some(lock);
        Ok(ingest)
    }

    /// As [`Ingest::open`], with the journal on the given disk and without a lock.
    ///
    /// # Errors
    /// If the disk refuses, if the journal has another version, or if a glob cannot be read.
    pub fn on_disk(config: Config, disk: Arc<dyn Disk>, parts: Parts) -> Result<Ingest, Error> {
        let paths = PathSet::new(&config.files)?;
        let Parts { filters, mut join, clock, fresh_key } = parts;
        let mut recovery = Recovery::new(&config, &paths, &*filters, &mut *join);
        let (journal, notes) = Journal::open(disk, config.journal, fresh_key, &mut recovery)?;
        let unused = recovery.into_memories();
        for note in &notes {
            tracing::warn!("{note}");
        }
        let ingest = Ingest {
            core: Core::new(config, paths, filters, join, clock, journal),
            buffer: source::buffer(),
            tracks: BTreeMap::new(),
            unused,
            busy: BTreeSet::new(),
            directories: BTreeSet::new(),
            next_scan: Duration::ZERO,
            has_scanned: false,
            is_cut: false,
            notes,
            watch_trouble: None,
            acknowledged: None,
            status: Arc::default(),
            _lock: None,
        };
        ingest.show();
        Ok(ingest)
    }

    /// The status of the files and of the tail, kept up to date by every turn.
    #[must_use]
    pub fn status(&self) -> Arc<StatusTable> {
        self.status.clone()
    }

    /// A reader of the journal.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.core.journal().reader()
    }

    /// Returns what compresses the closed segments of the journal; only one may be used.
    #[must_use]
    pub fn packer(&self) -> Packer {
        self.core.journal().packer()
    }

    /// This sensor's key.
    #[must_use]
    pub fn sensor(&self) -> SensorKey {
        self.core.journal().state().head.sensor
    }

    /// Folders in which changes matter, as of the last scan.
    #[must_use]
    pub fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// What is wrong with the notification of changes, if anything.
    pub fn set_watch_trouble(&mut self, trouble: Option<&str>) {
        if self.watch_trouble.as_deref() != trouble {
            self.watch_trouble = trouble.map(ToOwned::to_owned);
            self.show();
        }
    }

    /// What receivers' stores had.
    #[must_use]
    pub fn marks(&self) -> MarkList {
        self.core.journal().state().head.marks.0.clone().unwrap_or_default()
    }

    /// The receiver's store has everything before `mark.next`; journalled with the next turn.
    pub fn acknowledge(&mut self, mark: Mark) {
        self.acknowledged = Some(mark);
    }

    /// Do what there is to do. Returns how long nothing needs to be done unless something changes.
    pub fn turn(&mut self, wake: &Wake) -> Duration {
        let now = self.core.now();
        let had_trouble = self.core.trouble().is_some();
        let can_write = self.core.retry(&now);
        if had_trouble {
            self.show();
        }
        if let Some(mark) = self.acknowledged.take() {
            self.core.acknowledge(mark);
        }
        let all = wake.all || now.monotonic >= self.next_scan || self.wants_scan(&wake.paths);
        if all {
            self.scan(&now);
        }
        if can_write {
            self.read(&now, wake, all);
            self.core.sync_if_due(&now, !self.busy.is_empty());
            if self.core.wants_new_segment() {
                self.core.start_segment(&self.tracks, &self.unused);
            }
        } else {
            self.hold(&now);
        }
        self.show();
        self.wait(&now)
    }

    /// Read everything there is and make it durable: the end of an orderly run.
    pub fn drain(&mut self) {
        // Bounded: a log that is written faster than it is read must not delay the end for ever. The next
        // start continues.
        const TIME_MAX: Duration = Duration::from_secs(2);
        let until = self.core.now().monotonic + TIME_MAX;
        loop {
            self.turn(&Wake::default());
            let is_done = self.busy.is_empty() || self.core.is_held();
            if is_done || self.core.now().monotonic >= until {
                break;
            }
        }
        let now = self.core.now();
        self.core.sync(&now);
        if self.core.journal().is_long_to_replay() {
            self.core.start_segment(&self.tracks, &self.unused);
        }
        self.show();
    }

    fn read(&mut self, now: &Now, wake: &Wake, all: bool) {
        let is_changed = |path: &&PathBuf| wake.paths.iter().any(|changed| concerns(changed, path));
        let changed: Vec<_> = self.tracks.keys().filter(is_changed).cloned().collect();
        if !all {
            self.reconcile(&changed, now, FirstSeen::Later);
        }
        let busy = std::mem::take(&mut self.busy);
        let mut unsettled = Vec::new();
        for (path, track) in &mut self.tracks {
            let due = track.close_idle_at(&self.core).is_some_and(|at| at <= now.monotonic);
            if !(all || due || changed.contains(path) || busy.contains(path)) {
                continue;
            }
            if track.read(&mut self.core, &mut self.buffer, now) {
                self.busy.insert(path.clone());
            }
            track.close_idle(&mut self.core, now);
            track.release(&mut self.core, now);
            if track.needs_reconcile() {
                unsettled.push(path.clone());
            }
            self.status.set_file(track.file_status(&self.core));
        }
        self.reconcile(&unsettled, now, FirstSeen::Later);
        for path in unsettled {
            let Some(track) = self.tracks.get(&path) else { continue };
            self.status.set_file(track.file_status(&self.core));
            if track.is_readable(&self.core) {
                self.busy.insert(path);
            }
        }
    }

    /// While the disk refuses the journal, files are still followed, so that none is deleted unseen; the
    /// little that has to be journalled for that waits with the rest.
    fn hold(&mut self, now: &Now) {
        for track in self.tracks.values_mut() {
            track.measure(now);
            track.release(&mut self.core, now);
            self.status.set_file(track.file_status(&self.core));
        }
    }

    fn show(&self) {
        let head = &self.core.journal().state().head;
        let mut health = self.notes.clone();
        health.extend(self.core.trouble().map(|trouble| format!("{trouble}; nothing is read until then")));
        health.extend(self.watch_trouble.clone());
        if self.is_cut {
            health.push("more files match than are followed; narrow the globs".into());
        }
        self.status.set_tail(TailStatus { health, lost: head.lost, acknowledged: head.acknowledged });
    }

    fn wait(&self, now: &Now) -> Duration {
        if let Some(retry_at) = self.core.retry_at() {
            return self.next_scan.min(retry_at).saturating_sub(now.monotonic);
        }
        if !self.busy.is_empty() {
            return Duration::ZERO;
        }
        let idle = self.tracks.values().filter_map(|track| track.close_idle_at(&self.core));
        let next = idle.chain(self.core.sync_at(false)).chain([self.next_scan]).min().unwrap_or_default();
        next.saturating_sub(now.monotonic)
    }
}

/// Whether a change at one path may concern the log at another: it is the same path, or what the log was
/// renamed to.
fn concerns(changed: &Path, log: &Path) -> bool {
    let name =
        |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
    changed == log || (changed.parent() == log.parent() && name(changed).starts_with(&name(log)))
}
