//! The tail as one object that is turned: look, read, journal, make durable.
//!
//! It owns everything and is driven from outside: by a thread that waits for changes ([`super::handle`])
//! or by a test that decides what time it is. It never waits and never sleeps.
//! Rule: while the journal holds something back because the disk refuses, nothing is read.

use super::board::{self, Board};
use super::core::Core;
pub use super::core::{Clock, Now};
use super::follow::same_file;
use super::interpret::{Filters, Join};
use super::memory::{Keeper, Kept, Remembered};
use super::owners::Owners;
use super::path_set::PathSet;
use super::settle::{Appeared, path_of};
use super::source::{self, Source};
use super::standing::Standing;
use super::track::Track;
use super::watch::Wake;
use super::{Config, Error};
use crate::journal::frame::{Batch, Identity};
use crate::journal::lock::Lock;
use crate::journal::reader::Reader;
use crate::journal::writer::Journal;
use crate::segments::disk::{Directory, Disk};
use crate::segments::pace::Pace;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::id::{Generation, SensorKey};
use wire::report::Mark;
use wire::report::marks::MarkList;

/// The tail.
pub struct Ingest {
    core: Core,
    tracks: BTreeMap<PathBuf, Track>,
    /// What earlier runs remembered for paths that are not followed now.
    kept: BTreeMap<Vec<u8>, Kept>,
    busy: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    next_scan: Duration,
    has_scanned: bool,
    is_cut: bool,
    notes: Vec<String>,
    watch_trouble: Option<String>,
    acknowledged: Option<Mark>,
    board: Arc<Board>,
    _lock: Option<Lock>,
}

/// What the tail works with, given from outside.
pub struct Parts {
    /// The filters.
    pub filters: Box<dyn Filters>,
    /// What joins events into calls.
    pub join: Box<dyn Join>,
    /// The clocks.
    pub clock: Box<dyn Clock>,
    /// The key of this sensor if it has none yet.
    pub fresh_key: SensorKey,
}

impl Ingest {
    /// Open the state directory and go on where the last run stopped.
    ///
    /// # Errors
    /// If the directory is held by another process or the system refuses it, if the journal is of another
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

    /// As [`Ingest::open`], with the journal on a disk given from outside and without a lock.
    ///
    /// # Errors
    /// If the disk refuses, if the journal is of another version, or if a glob cannot be read.
    pub fn on_disk(config: Config, disk: Arc<dyn Disk>, parts: Parts) -> Result<Ingest, Error> {
        let paths = PathSet::new(&config.files)?;
        let Parts { filters, mut join, clock, fresh_key } = parts;
        let mut keeper = Keeper {
            filters: &*filters,
            paths: &paths,
            config: &config,
            join: &mut *join,
            kept: BTreeMap::new(),
        };
        let (journal, notes) = Journal::open(disk, config.journal, fresh_key, &mut keeper)?;
        let kept = keeper.kept;
        for note in &notes {
            tracing::warn!("{note}");
        }
        let core = Core {
            config,
            paths,
            elsewhere: Vec::new(),
            filters,
            clock,
            journal,
            join,
            buffer: source::buffer(),
            found: Vec::new(),
            batch: Batch::empty(Generation(0)),
            meters: BTreeMap::new(),
            trouble: None,
            unsynced_since: None,
            pace: Pace::default(),
            sync_now: false,
        };
        let ingest = Ingest {
            core,
            tracks: BTreeMap::new(),
            kept,
            busy: BTreeSet::new(),
            directories: BTreeSet::new(),
            next_scan: Duration::ZERO,
            has_scanned: false,
            is_cut: false,
            notes,
            watch_trouble: None,
            acknowledged: None,
            board: Arc::default(),
            _lock: None,
        };
        ingest.show();
        Ok(ingest)
    }

    /// Where the state of files is shown.
    #[must_use]
    pub fn board(&self) -> Arc<Board> {
        self.board.clone()
    }

    /// Reads the journal.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.core.journal.reader()
    }

    /// This sensor's key.
    #[must_use]
    pub fn sensor(&self) -> SensorKey {
        self.core.journal.state().head.sensor
    }

    /// Folders in which changes matter, as of the last scan.
    #[must_use]
    pub fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// What is wrong with being told of changes, if anything.
    pub fn set_watch_trouble(&mut self, trouble: Option<&str>) {
        if self.watch_trouble.as_deref() != trouble {
            self.watch_trouble = trouble.map(ToOwned::to_owned);
            self.show();
        }
    }

    /// What receivers' stores had.
    #[must_use]
    pub fn marks(&self) -> MarkList {
        self.core.journal.state().head.marks.0.clone().unwrap_or_default()
    }

    /// The receiver's store has everything before `mark.next`; journalled with the next turn.
    pub fn acknowledge(&mut self, mark: Mark) {
        self.acknowledged = Some(mark);
    }

    /// Do what there is to do. Returns how long nothing needs to be done unless something changes.
    pub fn turn(&mut self, wake: &Wake) -> Duration {
        let now = Now { wall: self.core.clock.wall(), monotonic: self.core.clock.monotonic() };
        let can_write = self.can_write(&now);
        if let Some(mark) = self.acknowledged.take() {
            let written = self.core.journal.acknowledge(mark);
            self.core.note(written);
        }
        let all = wake.all || now.monotonic >= self.next_scan || self.wants_scan(&wake.paths);
        if all {
            self.scan(&now);
        }
        if can_write {
            self.read(&now, wake, all);
            self.keep_journal(&now);
        } else {
            self.hold(&now);
        }
        self.show();
        self.wait(&now)
    }

    /// Read everything there is and make it durable: the end of an orderly run.
    pub fn drain(&mut self) {
        // Bounded: a log that is written faster than it is read must not keep the process alive. The next start goes on.
        const TIME_MAX: Duration = Duration::from_secs(2);
        let until = self.core.clock.monotonic() + TIME_MAX;
        loop {
            self.turn(&Wake::default());
            let is_done = self.busy.is_empty() || self.core.journal.is_held();
            if is_done || self.core.clock.monotonic() >= until {
                break;
            }
        }
        let now = Now { wall: self.core.clock.wall(), monotonic: self.core.clock.monotonic() };
        self.core.sync(&now);
        if self.core.journal.is_long_to_replay() {
            self.begin_segment();
        }
        self.show();
    }

    fn can_write(&mut self, now: &Now) -> bool {
        let Some((_, retry_at)) = &self.core.trouble else { return true };
        if now.monotonic < *retry_at {
            return !self.core.journal.is_held();
        }
        let flushed = self.core.journal.flush();
        self.core.note(flushed);
        self.show();
        !self.core.journal.is_held()
    }

    fn wants_scan(&self, paths: &BTreeSet<PathBuf>) -> bool {
        paths.iter().any(|path| !self.tracks.contains_key(path) && self.core.paths.spec_of(path).is_some())
    }

    /// Look which files there are, and at each of them.
    fn scan(&mut self, now: &Now) {
        self.next_scan = now.monotonic + self.core.config.rescan;
        let scan = self.core.paths.scan();
        (self.directories, self.is_cut) = (scan.directories, scan.is_cut);
        let mut present = BTreeSet::new();
        if !self.has_scanned {
            self.resume(now);
        }
        for (path, spec) in scan.files {
            if !self.tracks.contains_key(&path) {
                let track = self.new_track(path.clone(), spec);
                self.tracks.insert(path.clone(), track);
            }
            present.insert(path);
        }
        let appeared = if self.has_scanned { Appeared::Later } else { Appeared::AtStart };
        let all: Vec<_> = self.tracks.keys().cloned().collect();
        let lacks_file = |track: &Track| track.sources.iter().any(|source| source.file.is_none());
        self.core.elsewhere = match self.tracks.values().any(lacks_file) {
            true => present.iter().cloned().collect(),
            false => Vec::new(),
        };
        for source in self.tracks.values_mut().flat_map(|track| &mut track.sources) {
            source.is_named_elsewhere = false;
        }
        self.settle(&all, now, appeared);
        self.has_scanned = true;
        self.tracks.retain(|path, track| {
            let keep = present.contains(path) || !track.sources.is_empty();
            if !keep {
                self.board.remove_file(path);
            }
            keep
        });
    }

    /// Bring these tracks in line with the disk, and begin what their paths name again, unless it is read
    /// through another path. All are looked at before any begins: what one has let go another may take up.
    fn settle(&mut self, paths: &[PathBuf], now: &Now, appeared: Appeared) {
        let mut wanting = Vec::new();
        for path in paths {
            let Some(track) = self.tracks.get_mut(path) else { continue };
            wanting.extend(track.settle(&mut self.core, now).map(|found| (path, found)));
        }
        if wanting.is_empty() {
            return;
        }
        // A file is known by its own name, where a link to it is meant as well.
        wanting.sort_by_key(|(path, _)| path.is_symlink());
        let mut owners = Owners::of(&self.tracks);
        for (path, found) in wanting {
            if let Some(owner) = owners.other(&found, path) {
                self.stand_aside(path, owner, &found);
            } else if let Some(track) = self.tracks.get_mut(path) {
                track.begin_found(&mut self.core, now, &found, appeared, &owners);
                owners.add(track);
            }
        }
    }

    fn stand_aside(&mut self, path: &Path, owner: &Path, found: &Identity) {
        let read = self.tracks.get_mut(owner).into_iter().flat_map(|track| &mut track.sources);
        for source in read.filter(|source| same_file(&source.identity, found)) {
            source.is_named_elsewhere = true;
        }
        if let Some(track) = self.tracks.get_mut(path) {
            track.same_as = Some(owner.to_owned());
        }
        // Whoever told of the one name meant the file.
        self.busy.insert(owner.to_owned());
    }

    /// After a start: a track for every path the journal knows and the configuration still names.
    fn resume(&mut self, now: &Now) {
        let checkpoints: Vec<_> = self.core.journal.state().generations.values().cloned().collect();
        for checkpoint in checkpoints {
            let path = path_of(&checkpoint.birth.path);
            let Some(spec) = self.core.paths.spec_of(&path) else { continue };
            if !self.tracks.contains_key(&path) {
                let track = self.new_track(path.clone(), spec);
                self.tracks.insert(path.clone(), track);
            }
            let track = self.tracks.get_mut(&path).expect("it was just made");
            if track.engine.is_none() {
                let cluster = &self.core.config.files[spec].cluster;
                let filter = &checkpoint.birth.filter;
                match self.core.filters.interpreter(filter, &path, cluster) {
                    Some(engine) => track.set_engine(filter.clone(), engine),
                    None => {
                        let why = format!("there is no filter {filter} any more; the log is not read");
                        track.stopped = Some(Standing::Trouble(why));
                    }
                }
            }
            track.sources.push_back(Source::new(&checkpoint, self.core.config.means, now.monotonic));
        }
    }

    fn new_track(&mut self, path: PathBuf, spec: usize) -> Track {
        let mut track = Track::new(path, spec);
        if let Some(Kept::Engine(filter, engine)) = self.kept.remove(&track.name) {
            track.set_engine(filter, engine);
        }
        track
    }

    fn read(&mut self, now: &Now, wake: &Wake, all: bool) {
        let told = |path: &&PathBuf| wake.paths.iter().any(|changed| concerns(changed, path));
        let told: Vec<_> = self.tracks.keys().filter(told).cloned().collect();
        if !all {
            self.settle(&told, now, Appeared::Later);
        }
        let busy = std::mem::take(&mut self.busy);
        let mut unsettled = Vec::new();
        for (path, track) in &mut self.tracks {
            let due = track.quiet_at(self.core.config.incomplete_after).is_some_and(|at| at <= now.monotonic);
            if !(all || due || told.contains(path) || busy.contains(path)) {
                continue;
            }
            if track.read(&mut self.core, now) {
                self.busy.insert(path.clone());
            }
            track.quiet(&mut self.core, now);
            track.release(&mut self.core, now);
            if track.is_unsettled {
                unsettled.push(path.clone());
            }
            self.board.set_file(track.state(&self.core));
        }
        self.settle(&unsettled, now, Appeared::Later);
        for path in unsettled {
            let Some(track) = self.tracks.get(&path) else { continue };
            self.board.set_file(track.state(&self.core));
            let is_new = |source: &Source| source.file.is_some() && !source.is_at_end();
            if track.sources.back().is_some_and(is_new) && track.is_readable(&self.core) {
                self.busy.insert(path);
            }
        }
    }

    /// While the journal refuses, files are still followed, so that none is deleted unseen; what little has
    /// to be journalled for that waits with the rest.
    fn hold(&mut self, now: &Now) {
        for track in self.tracks.values_mut() {
            track.look(now);
            track.release(&mut self.core, now);
            self.board.set_file(track.state(&self.core));
        }
    }

    fn keep_journal(&mut self, now: &Now) {
        if self.core.journal.is_unsynced() && !self.core.journal.is_held() {
            self.core.unsynced_since.get_or_insert(now.monotonic);
            let is_due = self.sync_at().is_some_and(|at| at <= now.monotonic);
            if is_due || std::mem::take(&mut self.core.sync_now) {
                self.core.sync(now);
            }
        }
        if self.core.trouble.is_none() && self.core.journal.wants_new_segment() {
            self.begin_segment();
            self.core.unsynced_since = None;
        }
    }

    fn sync_at(&self) -> Option<Duration> {
        self.core.sync_at(!self.busy.is_empty())
    }

    fn begin_segment(&mut self) {
        let memories = Remembered { join: &*self.core.join, tracks: &self.tracks, kept: &self.kept };
        let begun = self.core.journal.begin_segment(&memories);
        self.core.note(begun);
    }

    fn show(&self) {
        let head = &self.core.journal.state().head;
        let mut health = self.notes.clone();
        health.extend(
            self.core.trouble.iter().map(|(trouble, _)| format!("{trouble}; nothing is read until then")),
        );
        health.extend(self.watch_trouble.clone());
        if self.is_cut {
            health.push("more files match than are followed; narrow the globs".into());
        }
        self.board.set_state(board::State { health, lost: head.lost, acknowledged: head.acknowledged });
    }

    fn wait(&self, now: &Now) -> Duration {
        if let (true, Some((_, retry_at))) = (self.core.journal.is_held(), &self.core.trouble) {
            return self.next_scan.min(*retry_at).saturating_sub(now.monotonic);
        }
        if !self.busy.is_empty() {
            return Duration::ZERO;
        }
        let quiet =
            self.tracks.values().filter_map(|track| track.quiet_at(self.core.config.incomplete_after));
        let next = quiet.chain(self.sync_at()).chain([self.next_scan]).min().unwrap_or_default();
        next.saturating_sub(now.monotonic)
    }
}

/// Whether a change at one path may concern the log at another: itself, or what it was renamed to.
fn concerns(changed: &Path, log: &Path) -> bool {
    let name =
        |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
    changed == log || (changed.parent() == log.parent() && name(changed).starts_with(&name(log)))
}
