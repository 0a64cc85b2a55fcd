//! Comparing a path with the disk: rotations noticed, and the files of its generations found again.
//!
//! The same for a sensor that runs and for one that was stopped meanwhile, except that after a start no
//! source has its file, and has to find it first.
//! Not here: starting new generations ([`super::generation`]), reading ([`super::read`]).

use super::{End, Track};
use crate::journal::frame::{Identity, Status};
use crate::tail::core::{Core, Now};
use crate::tail::follow::{self, AtPath, Candidate, Fate, Recognition, same_file};
use crate::tail::notice::Reason;
use crate::tail::path_status::PathStatus;
use crate::tail::probe;
use crate::tail::search::Siblings;
use std::fs::File;

/// Result of searching the file of a source.
enum Search {
    Found,
    Undecided,
    /// The source ended, and the next one has its index.
    Ended,
}

/// What was found instead of the file of a source.
struct MissingFile {
    reason: Reason,
    /// The file under another name, if it was cut: what it holds now is another generation.
    cut: Option<File>,
}

impl Track {
    /// Compare the path with the disk and follow what happened. Returns the file that the path names, if no
    /// source of it is that: [`Track::start_found`] starts it, unless another path reads it.
    pub(in crate::tail) fn reconcile(&mut self, core: &mut Core, now: &Now) -> Option<Identity> {
        self.same_as = None;
        self.status = PathStatus::Following;
        self.needs_reconcile = false;
        let directory = self.sources.back().map(|source| source.directory());
        let at = probe::at_path(&self.path, directory);
        self.find_files(core, now, &at);
        match &at {
            AtPath::Refused(_) | AtPath::Unknown(_) => self.note_obstacle(&at),
            AtPath::Nothing if self.status == PathStatus::Following => self.status = self.absent(core, now),
            AtPath::Nothing => {}
            AtPath::File { .. } => self.gone_since = None,
        }
        self.note_rotations(core, &at);
        let AtPath::File { identity, .. } = at else { return None };
        let is_known = self.sources.iter().any(|source| source.is_file(&identity));
        (!is_known).then_some(identity)
    }

    /// The path may name another file than before, or none.
    fn note_rotations(&mut self, core: &Core, at: &AtPath) {
        for index in (0..self.sources.len()).rev() {
            let source = &mut self.sources[index];
            match follow::fate(source.identity(), at) {
                Fate::Stays if source.gap_at_end().is_none() && source.status() != Status::Live => {
                    source.renamed_back();
                }
                Fate::Replaced | Fate::Gone if source.status() == Status::Live => {
                    tracing::info!(path = %self.path.display(), generation = %source.generation(), "the log was rotated");
                    source.rotated();
                    if !core.config().means.descriptor {
                        self.sources.remove(index);
                    }
                }
                Fate::Stays | Fate::Replaced | Fate::Gone | Fate::Unknown => {}
            }
        }
    }

    /// After a start: find the file of each source again.
    fn find_files(&mut self, core: &mut Core, now: &Now, at: &AtPath) {
        if matches!(at, AtPath::Unknown(_)) || !self.lacks_file() {
            return;
        }
        let siblings = match Siblings::of(&self.path) {
            Ok(siblings) => siblings.and(core.search_paths()),
            Err(error) => {
                self.status = PathStatus::Unreadable(format!("cannot look at its directory: {error}"));
                return;
            }
        };
        let mut index = 0;
        while index < self.sources.len() {
            if self.sources[index].is_open() {
                index += 1;
                continue;
            }
            match self.find_file(core, now, &siblings, index) {
                Search::Found | Search::Undecided => index += 1,
                Search::Ended => {}
            }
        }
    }

    fn find_file(&mut self, core: &mut Core, now: &Now, siblings: &Siblings, index: usize) -> Search {
        let mut lost = match self.find_itself(core, siblings, index) {
            Ok(lost) => lost,
            Err(search) => return search,
        };
        if let Some(search) = self.find_copy(core, now, siblings, index, &mut lost) {
            return search;
        }
        let end = match (lost.reason, self.sources[index].status()) {
            (Reason::Missing, Status::Finished) => End::Whole,
            (reason, _) => End::Gap(reason),
        };
        self.end(core, index, now, end);
        if let Some(cut) = lost.cut {
            self.start_over(core, now, cut, index);
        }
        Search::Ended
    }

    /// Search the very file of a source. `Ok`: it is lost; `Err`: the search is over.
    fn find_itself(&mut self, core: &Core, siblings: &Siblings, index: usize) -> Result<MissingFile, Search> {
        let missing = MissingFile { reason: Reason::Missing, cut: None };
        let known = self.sources[index].fingerprint();
        let itself =
            siblings.same(&known.identity).filter(|path| core.config().means.siblings || *path == self.path);
        let Some(path) = itself else { return Ok(missing) };
        let roots = core.roots_of(path, self.spec);
        let (file, stat) = probe::open(path, &roots).map_err(|at| {
            self.note_obstacle(&at);
            Search::Undecided
        })?;
        if !same_file(&known.identity, &stat.identity) {
            // It was renamed just now, and will be found under its other name.
            return Err(Search::Undecided);
        }
        let content_fits = probe::content_fits(&file, &known).map_err(|_| Search::Undecided)?;
        let candidate =
            Candidate { identity: stat.identity, size: stat.size, content_fits, is_named_so: false };
        let reason = match follow::recognise(&known, &candidate, core.config().means) {
            Recognition::Itself => {
                let attached = self.sources[index].attach(file, &stat);
                return Err(self.settle(attached));
            }
            Recognition::Shrunk => Reason::Truncated,
            Recognition::Regrown => Reason::Regrown,
            Recognition::Copy | Recognition::Stranger => return Ok(missing),
        };
        let cut = (path != self.path).then_some(file);
        Ok(MissingFile { reason, cut })
    }

    /// Continue in a copy of the lost file of a source, if there is one.
    fn find_copy(
        &mut self,
        core: &mut Core,
        now: &Now,
        siblings: &Siblings,
        index: usize,
        lost: &mut MissingFile,
    ) -> Option<Search> {
        if !core.config().means.siblings {
            return None;
        }
        let known = self.sources[index].fingerprint();
        let others = self.sources.iter().enumerate().filter(|(other, _)| *other != index);
        let taken: Vec<_> = others.map(|(_, source)| *source.identity()).collect();
        let roots = core.paths().roots(self.spec);
        let (file, stat) = siblings.copy(&self.path, &known, &taken, roots, core.config().means)?;
        // A file that was moved is whole; one that was cut may have lost what was written after the copy.
        let gap = (lost.reason != Reason::Missing).then_some(lost.reason);
        let attached = self.sources[index].attach_copy(file, &stat, gap);
        if attached.is_ok()
            && let Some(cut) = lost.cut.take()
        {
            self.start_over(core, now, cut, index + 1);
        }
        Some(self.settle(attached))
    }

    /// Show what keeps the path from being read.
    pub(super) fn note_obstacle(&mut self, at: &AtPath) {
        match at {
            AtPath::Refused(why) => self.status = PathStatus::NoLog(why.clone()),
            AtPath::Unknown(why) => self.status = PathStatus::Unreadable(why.clone()),
            AtPath::File { .. } | AtPath::Nothing => {}
        }
    }

    fn settle(&mut self, attached: std::io::Result<()>) -> Search {
        match attached {
            Ok(()) => Search::Found,
            Err(error) => {
                self.status = PathStatus::unreadable(&error);
                Search::Undecided
            }
        }
    }
}
