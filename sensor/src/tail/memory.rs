//! What filters remember and which calls are open, carried from one run and one segment to the next.
//!
//! The memory of a path that is not followed now is retained: the path may be configured again. So is that of
//! a filter that does not exist now, until another filter reads its path.

use super::Config;
use super::interpret::{Filters, Interpret, Join};
use super::path_set::PathSet;
use super::track::{Track, path_of};
use crate::journal::fold::Replay;
use crate::journal::frame::{PathBytes, Record};
use crate::journal::writer::Memories;
use compact_str::CompactString;
use log_filters::found::Change;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wire::event::Id;

/// What the filter of a path remembers: applied to an interpreter, if the filter still exists.
pub(super) enum Memory {
    Engine(CompactString, Box<dyn Interpret>),
    Changes(CompactString, Vec<Change>),
}

impl Memory {
    fn filter(&self) -> &str {
        let (Memory::Engine(filter, _) | Memory::Changes(filter, _)) = self;
        filter
    }
}

/// Recovers memories and calls from the journal at the start.
pub(super) struct Recovery<'a> {
    config: &'a Config,
    paths: &'a PathSet,
    filters: &'a dyn Filters,
    join: &'a mut dyn Join,
    memories: BTreeMap<PathBytes, Memory>,
}

impl<'a> Recovery<'a> {
    pub(super) fn new(
        config: &'a Config,
        paths: &'a PathSet,
        filters: &'a dyn Filters,
        join: &'a mut dyn Join,
    ) -> Recovery<'a> {
        Recovery { config, paths, filters, join, memories: BTreeMap::new() }
    }

    /// The memories, by path.
    pub(super) fn into_memories(self) -> BTreeMap<PathBytes, Memory> {
        self.memories
    }

    fn new_memory(&self, name: &[u8], filter: &str) -> Memory {
        let path = path_of(name);
        let spec = self.paths.spec_of(&path);
        let cluster = spec.map_or("", |spec| &self.config.files[spec].cluster);
        let engine = spec.and_then(|_| self.filters.interpreter(filter, &path, cluster));
        match engine {
            Some(engine) => Memory::Engine(filter.into(), engine),
            None => Memory::Changes(filter.into(), Vec::new()),
        }
    }
}

impl Replay for Recovery<'_> {
    fn calls(&mut self, snapshot: &[u8]) {
        self.join.restore(snapshot);
    }

    fn memory(&mut self, path: &[u8], filter: &str, changes: Vec<Change>) {
        // The memory of one filter means nothing to another, which has replaced it.
        if self.memories.get(path).is_none_or(|memory| memory.filter() != filter) {
            let memory = self.new_memory(path, filter);
            self.memories.insert(path.to_owned(), memory);
        }
        match self.memories.get_mut(path).expect("it was just made") {
            Memory::Engine(_, engine) => changes.into_iter().for_each(|change| engine.apply(change)),
            Memory::Changes(_, all) => all.extend(changes),
        }
    }

    fn record(&mut self, id: Id, record: &Record) {
        self.join.join(&record.found, id);
    }
}

/// Memories and calls for the head of a new segment.
pub(super) struct SegmentMemories<'a> {
    join: &'a dyn Join,
    tracks: &'a BTreeMap<PathBuf, Track>,
    /// Of paths that no filter reads now.
    unused: &'a BTreeMap<PathBytes, Memory>,
}

impl<'a> SegmentMemories<'a> {
    pub(super) fn new(
        join: &'a dyn Join,
        tracks: &'a BTreeMap<PathBuf, Track>,
        unused: &'a BTreeMap<PathBytes, Memory>,
    ) -> SegmentMemories<'a> {
        SegmentMemories { join, tracks, unused }
    }
}

impl Memories for SegmentMemories<'_> {
    fn calls(&self) -> Vec<u8> {
        self.join.snapshot()
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        let tracked = self.tracks.values().filter_map(Track::memory);
        let is_replaced = |name: &PathBytes| self.tracks.get(&path_of(name)).is_some_and(Track::has_filter);
        let unused = self.unused.iter().filter(|(name, _)| !is_replaced(name));
        let unused = unused.map(|(name, memory)| match memory {
            Memory::Engine(filter, engine) => (name.clone(), filter.to_string(), engine.snapshot()),
            Memory::Changes(filter, changes) => (name.clone(), filter.to_string(), changes.clone()),
        });
        tracked.chain(unused).collect()
    }
}
