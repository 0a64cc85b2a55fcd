//! What filters remember and which calls are open, carried from one run and one segment to the next.
//!
//! Paths that are not followed now keep what was remembered for them: they may be configured again.

use super::Config;
use super::interpret::{Filters, Interpret, Join};
use super::path_set::PathSet;
use super::settle::path_of;
use super::track::Track;
use crate::journal::fold::Replay;
use crate::journal::frame::Record;
use crate::journal::writer::Memories;
use compact_str::CompactString;
use log_filters::found::Change;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wire::event::Id;

/// What the filter of a path remembers.
pub(super) enum Kept {
    Engine(CompactString, Box<dyn Interpret>),
    Changes(CompactString, Vec<Change>),
}

/// Takes from the journal what the tail goes on with.
pub(super) struct Keeper<'a> {
    pub(super) filters: &'a dyn Filters,
    pub(super) paths: &'a PathSet,
    pub(super) config: &'a Config,
    pub(super) join: &'a mut dyn Join,
    pub(super) kept: BTreeMap<Vec<u8>, Kept>,
}

impl Keeper<'_> {
    fn begin(&self, name: &[u8], filter: &str) -> Kept {
        let path = path_of(name);
        let spec = self.paths.spec_of(&path);
        let cluster = spec.map_or("", |spec| &self.config.files[spec].cluster);
        let engine = spec.and_then(|_| self.filters.interpreter(filter, &path, cluster));
        match engine {
            Some(engine) => Kept::Engine(filter.into(), engine),
            None => Kept::Changes(filter.into(), Vec::new()),
        }
    }
}

impl Replay for Keeper<'_> {
    fn calls(&mut self, snapshot: &[u8]) {
        self.join.restore(snapshot);
    }

    fn memory(&mut self, path: &[u8], filter: &str, changes: Vec<Change>) {
        if !self.kept.contains_key(path) {
            let begun = self.begin(path, filter);
            self.kept.insert(path.to_owned(), begun);
        }
        match self.kept.get_mut(path).expect("it was just made") {
            Kept::Engine(_, engine) => changes.into_iter().for_each(|change| engine.apply(change)),
            Kept::Changes(_, all) => all.extend(changes),
        }
    }

    fn record(&mut self, id: Id, record: &Record) {
        self.join.join(&record.found, id);
    }
}

/// What a new segment's head tells of the filters and the calls.
pub(super) struct Remembered<'a> {
    pub(super) join: &'a dyn Join,
    pub(super) tracks: &'a BTreeMap<PathBuf, Track>,
    pub(super) kept: &'a BTreeMap<Vec<u8>, Kept>,
}

impl Memories for Remembered<'_> {
    fn calls(&self) -> Vec<u8> {
        self.join.snapshot()
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        let tracked = self.tracks.values().filter_map(|track| {
            let engine = track.engine.as_ref()?;
            Some((track.name.clone(), track.filter.clone()?.into(), engine.snapshot()))
        });
        let kept = self.kept.iter().map(|(name, kept)| match kept {
            Kept::Engine(filter, engine) => (name.clone(), filter.to_string(), engine.snapshot()),
            Kept::Changes(filter, changes) => (name.clone(), filter.to_string(), changes.clone()),
        });
        tracked.chain(kept).collect()
    }
}
