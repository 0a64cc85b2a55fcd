//! What all tracks of the tail share: the journal and the batch in the making, filters, joining, clocks.
//!
//! Rule: an error of the journal is noted here, once, and shown; whoever reads asks the journal whether it
//! holds something back before reading on.
//! Not here: the tracks ([`super::track`]), the order of work ([`super::ingest`]).

use super::Config;
use super::interpret::{Filters, Join};
use super::meter::Meter;
use super::path_set::PathSet;
use super::track;
use crate::journal::frame::{Batch, Birth, Record};
use crate::journal::writer::Journal;
use crate::segments;
use crate::segments::pace::Pace;
use compact_str::CompactString;
use log_filters::found::Found;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::event::Id;
use wire::id::Generation;
use wire::time::Time;

/// How long to wait before the disk is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The clocks, given from outside.
pub trait Clock: Send {
    /// The time of day; it may jump.
    fn wall(&self) -> Time;
    /// Time since some beginning; it never goes back.
    fn monotonic(&self) -> Duration;
    /// Time this thread has worked.
    fn work(&self) -> Duration;
}

/// The time of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The time of day.
    pub wall: Time,
    /// Time since some beginning.
    pub monotonic: Duration,
}

/// What all tracks share.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) paths: PathSet,
    /// The paths of the last scan, while a file has to be found again: it may be at any of them.
    pub(super) elsewhere: Vec<PathBuf>,
    pub(super) filters: Box<dyn Filters>,
    pub(super) clock: Box<dyn Clock>,
    pub(super) journal: Journal,
    pub(super) buffer: Vec<u8>,
    pub(super) found: Vec<Found>,
    pub(super) batch: Batch,
    pub(super) join: Box<dyn Join>,
    pub(super) meters: BTreeMap<CompactString, Meter>,
    /// Why the journal holds back, and when to try again.
    pub(super) trouble: Option<(String, Duration)>,
    pub(super) unsynced_since: Option<Duration>,
    pub(super) pace: Pace,
    pub(super) sync_now: bool,
}

impl Core {
    /// Join what was found and journal the batch.
    pub(super) fn append(&mut self) {
        let (sensor, generation) = (self.journal.state().head.sensor, self.batch.generation);
        for found in self.found.drain(..) {
            let id = Id { sensor, generation, offset: found.offset, number: found.number };
            let call = self.join.join(&found, id);
            self.batch.records.push(Record { found, call });
        }
        self.batch.counts.events = self.batch.records.len() as u64;
        let mut batch = std::mem::replace(&mut self.batch, Batch::empty(Generation(0)));
        self.append_parts(&mut batch);
        self.batch = batch;
    }

    /// A batch too long for a frame goes in parts: the first ones bring events, the last the progress.
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

    pub(super) fn reset_batch(&mut self) {
        track::reset(&mut self.batch);
    }

    pub(super) fn born(&mut self, birth: &Birth) {
        let written = self.journal.born(birth);
        self.note(written);
        // Unless it is durable, a file rotated away within a moment would be forgotten with the power.
        self.sync_now = true;
    }

    /// The folders beneath which a path must lie: those of its own spec, or else of this one.
    pub(super) fn roots_of(&self, path: &Path, spec: usize) -> Vec<PathBuf> {
        self.paths.roots(self.paths.spec_of(path).unwrap_or(spec)).to_vec()
    }

    /// The host whose logs a spec names.
    pub(super) fn host(&self, spec: usize) -> CompactString {
        self.config.files[spec].host.as_ref().map_or_else(|| self.config.host.clone(), Into::into)
    }

    /// Count a filter's work; its speed if it goes into quarantine.
    pub(super) fn meter(&mut self, filter: &CompactString, bytes: u64, work: Duration) -> Option<u64> {
        let (least, now) = (self.config.bytes_per_sec_min, self.clock.monotonic());
        self.meters.entry(filter.clone()).or_default().add(bytes, work, least, now)
    }

    /// The speed of a filter that is in quarantine, in bytes each second.
    pub(super) fn too_slow(&self, filter: &str) -> Option<u64> {
        let meter = self.meters.get(filter)?;
        meter.too_slow(self.clock.monotonic())
    }

    /// When what is not durable must be: soon where somebody waits for an event and there is nothing else to do.
    pub(super) fn sync_at(&self, is_busy: bool) -> Option<Duration> {
        let at_last = self.unsynced_since? + self.config.sync_every;
        // A disk in trouble is not tried any sooner.
        let is_awaited = !is_busy && self.trouble.is_none() && self.journal.is_awaited();
        Some(if is_awaited { self.pace.due().min(at_last) } else { at_last })
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

    pub(super) fn note(&mut self, done: Result<(), segments::Error>) {
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
