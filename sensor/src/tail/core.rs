//! What all tracks share: the configuration, the filters, the journal, and the draft of the next batch.
//!
//! Rule: an error of the journal is noted here, once, and shown; before a track reads on, it asks whether the
//! journal holds something back.
//! Not here: the tracks (`track`), the order of work ([`super::ingest`]).

use super::Config;
use super::draft::Draft;
use super::interpret::{Filters, Interpret, Join};
use super::memory::{Memory, SegmentMemories};
use super::meter::Meter;
use super::path_set::PathSet;
use super::source::Progress;
use super::track::Track;
use crate::journal::frame::{Batch, Birth, PathBytes, Record};
use crate::journal::writer::Journal;
use crate::segments;
use crate::segments::sync_limiter::SyncLimiter;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::event::Id;
use wire::report::Mark;
use wire::time::Time;

/// How long to wait before the disk is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The clocks, passed in.
pub trait Clock: Send {
    /// The time of day; it may jump.
    fn wall(&self) -> Time;
    /// Time since an arbitrary start; it never goes back.
    fn monotonic(&self) -> Duration;
    /// Processor time that this thread has used.
    fn work(&self) -> Duration;
}

/// The time of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The time of day.
    pub wall: Time,
    /// Time since an arbitrary start.
    pub monotonic: Duration,
}

/// What all tracks share.
pub(super) struct Core {
    config: Config,
    paths: PathSet,
    filters: Box<dyn Filters>,
    join: Box<dyn Join>,
    clock: Box<dyn Clock>,
    journal: Journal,
    pub(super) draft: Draft,
    /// The paths of the last scan while a file has to be found again, which may be at any of them.
    search_paths: Vec<PathBuf>,
    meters: BTreeMap<CompactString, Meter>,
    /// Why the journal could not be written or synced, and when to retry.
    trouble: Option<(String, Duration)>,
    unsynced_since: Option<Duration>,
    pace: SyncLimiter,
    sync_now: bool,
}

impl Core {
    pub(super) fn new(
        config: Config,
        paths: PathSet,
        filters: Box<dyn Filters>,
        join: Box<dyn Join>,
        clock: Box<dyn Clock>,
        journal: Journal,
    ) -> Core {
        Core {
            config,
            paths,
            filters,
            join,
            clock,
            journal,
            draft: Draft::new(),
            search_paths: Vec::new(),
            meters: BTreeMap::new(),
            trouble: None,
            unsynced_since: None,
            pace: SyncLimiter::default(),
            sync_now: false,
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn paths(&self) -> &PathSet {
        &self.paths
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Paths at which a file that is missed may be found.
    pub(super) fn search_paths(&self) -> &[PathBuf] {
        &self.search_paths
    }

    pub(super) fn set_search_paths(&mut self, paths: Vec<PathBuf>) {
        self.search_paths = paths;
    }

    pub(super) fn now(&self) -> Now {
        Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() }
    }

    pub(super) fn work_time(&self) -> Duration {
        self.clock.work()
    }

    /// The name of the filter for a file of a spec, by its path and first bytes.
    pub(super) fn choose_filter(&self, spec: usize, path: &Path, first: &[u8]) -> Option<CompactString> {
        self.filters.choose(self.config.files[spec].filter.as_deref(), path, first)
    }

    pub(super) fn interpreter(&self, filter: &str, path: &Path, spec: usize) -> Option<Box<dyn Interpret>> {
        self.filters.interpreter(filter, path, &self.config.files[spec].cluster)
    }

    /// Whether nothing may be read because the journal could not be written.
    pub(super) fn is_held(&self) -> bool {
        self.journal.is_held()
    }

    /// Journal the draft as a batch of this progress, with the calls its events belong to.
    pub(super) fn append(&mut self, progress: &Progress, seen: Time) {
        let (sensor, generation) = (self.journal.state().head.sensor, progress.generation);
        let join = &mut self.join;
        let mut batch = self.draft.finish(progress, seen, |found| {
            let id = Id { sensor, generation, offset: found.offset, number: found.number };
            let call = join.join(&found, id);
            Record { found, call }
        });
        self.append_parts(&mut batch);
        self.draft.recycle(batch);
    }

    /// A batch too long for a frame is split: the first parts have events, the last one the progress.
    fn append_parts(&mut self, batch: &mut Batch) {
        match self.journal.append(batch) {
            Ok(()) => {}
            Err(segments::Error::Frame(error)) if batch.records.len() > 1 => {
                tracing::debug!(%error, "a batch goes in two parts");
                let rest = batch.records.split_off(batch.records.len() / 2);
                let events = batch.counts.events;
                let known = &self.journal.state().generations[&batch.generation];
                let mut first = Batch {
                    seen: batch.seen,
                    offset: known.offset,
                    counted_to: known.counted_to,
                    before: known.before,
                    incomplete: known.incomplete,
                    records: std::mem::replace(&mut batch.records, rest),
                    ..Batch::empty(batch.generation)
                };
                first.counts.events = first.records.len() as u64;
                batch.counts.events = events - first.counts.events;
                self.append_parts(&mut first);
                self.append_parts(batch);
            }
            Err(segments::Error::Frame(error)) => {
                tracing::error!(%error, "one event is too large for the journal; only its kind and time are kept");
                for record in &mut batch.records {
                    let content = &mut record.found.content;
                    *content = wire::event::Content::new(content.kind, content.time);
                    record.found.keys = None;
                }
                batch.changes.clear();
                let written = self.journal.append(batch);
                self.note(written);
            }
            Err(error) => self.note(Err(error)),
        }
    }

    /// Journal a new generation.
    pub(super) fn born(&mut self, birth: &Birth) {
        let written = self.journal.born(birth);
        self.note(written);
        // Unless it is durable, a file that is rotated away soon would be forgotten when the power fails.
        self.sync_now = true;
    }

    /// Roots below which a path must lie: those of its own spec, or else of this one.
    pub(super) fn roots_of(&self, path: &Path, spec: usize) -> Vec<PathBuf> {
        self.paths.roots(self.paths.spec_of(path).unwrap_or(spec)).to_vec()
    }

    /// The host whose logs a spec names.
    pub(super) fn host(&self, spec: usize) -> CompactString {
        self.config.files[spec].host.as_ref().map_or_else(|| self.config.host.clone(), Into::into)
    }

    /// Count a filter's work; its speed if it is put in quarantine now.
    pub(super) fn meter(&mut self, filter: &CompactString, bytes: u64, work: Duration) -> Option<u64> {
        let (least, now) = (self.config.bytes_per_sec_min, self.clock.monotonic());
        self.meters.entry(filter.clone()).or_default().add(bytes, work, least, now)
    }

    /// The speed of a filter that is in quarantine, in bytes each second.
    pub(super) fn too_slow(&self, filter: &str) -> Option<u64> {
        let meter = self.meters.get(filter)?;
        meter.too_slow(self.clock.monotonic())
    }

    /// What receivers' stores have, to be journalled.
    pub(super) fn acknowledge(&mut self, mark: Mark) {
        let written = self.journal.acknowledge(mark);
        self.note(written);
    }

    /// Why the journal could not be written or synced, if so.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|(why, _)| why.as_str())
    }

    /// When to retry writing what the journal holds back, by the monotonic clock.
    pub(super) fn retry_at(&self) -> Option<Duration> {
        self.trouble.as_ref().filter(|_| self.is_held()).map(|(_, retry_at)| *retry_at)
    }

    /// Retry what the journal holds back, if it is time to. Returns whether it holds nothing back.
    pub(super) fn retry(&mut self, now: &Now) -> bool {
        if self.trouble.as_ref().is_some_and(|(_, retry_at)| now.monotonic >= *retry_at) {
            let flushed = self.journal.flush();
            self.note(flushed);
        }
        self.trouble.is_none() || !self.is_held()
    }

    /// When what is not durable must be: soon where a reader waits for an event and there is nothing else
    /// to do.
    pub(super) fn sync_at(&self, is_busy: bool) -> Option<Duration> {
        let at_last = self.unsynced_since? + self.config.sync_every;
        // A disk in trouble is not tried any sooner.
        let is_awaited = !is_busy && self.trouble.is_none() && self.journal.is_awaited();
        Some(if is_awaited { self.pace.due().min(at_last) } else { at_last })
    }

    /// Make what was written durable, if it is time to.
    pub(super) fn sync_if_due(&mut self, now: &Now, is_busy: bool) {
        if !self.journal.is_unsynced() || self.is_held() {
            return;
        }
        self.unsynced_since.get_or_insert(now.monotonic);
        let is_due = self.sync_at(is_busy).is_some_and(|at| at <= now.monotonic);
        if is_due || std::mem::take(&mut self.sync_now) {
            self.sync(now);
        }
    }

    /// Make what was written durable.
    pub(super) fn sync(&mut self, now: &Now) {
        self.unsynced_since = None;
        self.pace.note(now.monotonic);
        let synced = self.journal.sync();
        if synced.is_err() {
            self.unsynced_since = Some(now.monotonic);
        }
        self.note(synced);
    }

    /// Whether the live segment is so long that a new one should start.
    pub(super) fn wants_new_segment(&self) -> bool {
        self.trouble.is_none() && self.journal.wants_new_segment()
    }

    /// Start a new segment of the journal with what the filters of all paths remember.
    pub(super) fn start_segment(
        &mut self,
        tracks: &BTreeMap<PathBuf, Track>,
        unused: &BTreeMap<PathBytes, Memory>,
    ) {
        let memories = SegmentMemories::new(&*self.join, tracks, unused);
        let started = self.journal.begin_segment(&memories);
        self.note(started);
        self.unsynced_since = None;
    }

    fn note(&mut self, done: Result<(), segments::Error>) {
        match done {
            Ok(()) if !self.journal.is_held() => self.trouble = None,
            Ok(()) => {}
            Err(error) => {
                let at = self.clock.monotonic() + RETRY_AFTER;
                if self.trouble.is_none() {
                    tracing::error!(%error, "nothing is read until the journal can be written again");
                }
                self.trouble = Some((error.to_string(), at));
            }
        }
    }
}
