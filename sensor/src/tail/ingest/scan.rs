//! Scan of the disk: which paths there are, and which of them reads a file that has several names.
//!
//! Not here: what one path finds on the disk (`track::rotation`).

use super::Ingest;
use crate::journal::frame::Identity;
use crate::tail::core::Now;
use crate::tail::memory::Memory;
use crate::tail::owners::Owners;
use crate::tail::track::{FirstSeen, Track, name_of, path_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

impl Ingest {
    /// Whether one of these paths is followed and new.
    pub(super) fn wants_scan(&self, paths: &BTreeSet<PathBuf>) -> bool {
        let is_new = |path: &PathBuf| !self.tracks.contains_key(path);
        paths.iter().any(|path| is_new(path) && self.core.paths().spec_of(path).is_some())
    }

    /// Look which files there are, and at each of them.
    pub(super) fn scan(&mut self, now: &Now) {
        self.next_scan = now.monotonic + self.core.config().rescan;
        let scan = self.core.paths().scan();
        (self.directories, self.is_cut) = (scan.directories, scan.is_cut);
        let mut present = BTreeSet::new();
        if !self.has_scanned {
            self.resume(now);
        }
        for (path, spec) in scan.files {
            self.track(&path, spec);
            present.insert(path);
        }
        let appeared = if self.has_scanned { FirstSeen::Later } else { FirstSeen::AtStart };
        let all: Vec<_> = self.tracks.keys().cloned().collect();
        let search_paths = match self.tracks.values().any(Track::lacks_file) {
            true => present.iter().cloned().collect(),
            false => Vec::new(),
        };
        self.core.set_search_paths(search_paths);
        self.tracks.values_mut().for_each(Track::reset_other_names);
        self.reconcile(&all, now, appeared);
        self.has_scanned = true;
        self.tracks.retain(|path, track| {
            let keep = present.contains(path) || track.has_sources();
            if !keep {
                self.status.remove_file(path);
            }
            keep
        });
    }

    /// Compare these tracks with the disk, and start the files that their paths name now, unless another path
    /// reads them. All tracks are compared before any starts: a file that one has closed another may start.
    pub(super) fn reconcile(&mut self, paths: &[PathBuf], now: &Now, appeared: FirstSeen) {
        let mut new = Vec::new();
        for path in paths {
            let Some(track) = self.tracks.get_mut(path) else { continue };
            new.extend(track.reconcile(&mut self.core, now).map(|found| (path, found)));
        }
        if new.is_empty() {
            return;
        }
        // A file is followed by its own name where a link to it is followed as well.
        new.sort_by_key(|(path, _)| path.is_symlink());
        let mut owners = Owners::of(&self.tracks);
        for (path, found) in new {
            if let Some(owner) = owners.other(&found, path) {
                self.defer(path, owner, &found);
            } else if let Some(track) = self.tracks.get_mut(path) {
                track.start_found(&mut self.core, now, &found, appeared, &owners);
                owners.add(track);
            }
        }
    }

    /// The file that a path names is read through another one.
    fn defer(&mut self, path: &Path, owner: &Path, found: &Identity) {
        if let Some(track) = self.tracks.get_mut(owner) {
            track.note_other_name(found);
        }
        if let Some(track) = self.tracks.get_mut(path) {
            track.defer_to(owner);
        }
        // A change at the one path is a change of the file.
        self.busy.insert(owner.to_owned());
    }

    /// After a start: a track for every path that the journal knows and the configuration still names.
    fn resume(&mut self, now: &Now) {
        let checkpoints: Vec<_> = self.core.journal().state().generations.values().cloned().collect();
        for checkpoint in checkpoints {
            let path = path_of(&checkpoint.birth.path);
            if let Some(spec) = self.core.paths().spec_of(&path) {
                self.track(&path, spec);
                let track = self.tracks.get_mut(&path).expect("it was just made");
                track.resume(&self.core, &checkpoint, now);
            }
        }
    }

    /// Make a track for a path, unless there is one, with what its filter remembered.
    fn track(&mut self, path: &Path, spec: usize) {
        if self.tracks.contains_key(path) {
            return;
        }
        let mut track = Track::new(path.to_owned(), spec);
        match self.unused.remove_entry(&name_of(path)) {
            Some((_, Memory::Engine(filter, engine))) => track.set_filter(filter, engine),
            // There is no such filter now: it may come back.
            Some((name, changes @ Memory::Changes(..))) => {
                self.unused.insert(name, changes);
            }
            None => {}
        }
        self.tracks.insert(path.to_owned(), track);
    }
}
