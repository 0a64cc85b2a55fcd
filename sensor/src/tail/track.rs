//! One path and its generations: the live one, and those that were rotated away before.
//!
//! Its parts: the [`filter`] at work, [`read`]ing, [`rotation`]s, new generations ([`generation`]), and the
//! [`release`] of old ones.
//! Not here: when to look at a path ([`super::ingest`]).

mod filter;
mod generation;
mod read;
mod release;
mod rotation;

use super::core::{Core, Now};
use super::interpret::Interpret;
use super::notice::Reason;
use super::path_status::{Departure, PathStatus};
use super::source::Source;
use super::status::FileStatus;
use crate::journal::frame::{Checkpoint, Identity, PathBytes, Status};
use compact_str::CompactString;
use filter::ActiveFilter;
pub(super) use generation::FirstSeen;
use log_filters::found::Change;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wire::time::Time;

/// One path.
pub(super) struct Track {
    path: PathBuf,
    name: PathBytes,
    /// Index of its [`super::Spec`].
    spec: usize,
    filter: Option<ActiveFilter>,
    /// Its generations, the oldest first.
    sources: VecDeque<Source>,
    /// As of the last look at the disk.
    status: PathStatus,
    /// Set while the filter cannot read: it is in quarantine, or does not exist any more.
    stopped: Option<PathStatus>,
    /// When the path was first seen to name no file.
    gone_since: Option<Time>,
    /// The other path through which the file is read.
    same_as: Option<PathBuf>,
    /// A source ended: the file that the path names now may have to be started.
    needs_reconcile: bool,
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Everything was read.
    Whole,
    /// Something is missing, or may be: why.
    Gap(Reason),
}

impl Track {
    pub(super) fn new(path: PathBuf, spec: usize) -> Track {
        Track {
            name: name_of(&path),
            path,
            spec,
            filter: None,
            sources: VecDeque::new(),
            status: PathStatus::Following,
            stopped: None,
            gone_since: None,
            same_as: None,
            needs_reconcile: false,
        }
    }

    /// The filter reads it, with what an earlier run remembered.
    pub(super) fn set_filter(&mut self, name: CompactString, engine: Box<dyn Interpret>) {
        self.filter = Some(ActiveFilter::new(name, engine));
    }

    pub(super) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// After a start: continue with a generation that the journal knows. Its file is found by
    /// [`Track::reconcile`].
    pub(super) fn resume(&mut self, core: &Core, checkpoint: &Checkpoint, now: &Now) {
        if self.filter.is_none() {
            let filter = &checkpoint.birth.filter;
            match core.interpreter(filter, &self.path, self.spec) {
                Some(engine) => self.set_filter(filter.clone(), engine),
                None => {
                    let why = format!("there is no filter {filter} any more; the log is not read");
                    self.stopped = Some(PathStatus::Trouble(why));
                }
            }
        }
        self.sources.push_back(Source::new(checkpoint, core.config().means, now.monotonic));
    }

    /// The file that the path names is read through this other path.
    pub(super) fn defer_to(&mut self, owner: &Path) {
        self.same_as = Some(owner.to_owned());
    }

    /// Before a scan: no file of it is known to have another followed name.
    pub(super) fn reset_other_names(&mut self) {
        for source in &mut self.sources {
            source.set_named_elsewhere(false);
        }
    }

    /// Another followed path names this file.
    pub(super) fn note_other_name(&mut self, file: &Identity) {
        for source in &mut self.sources {
            if super::follow::same_file(source.identity(), file) {
                source.set_named_elsewhere(true);
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The files it reads.
    pub(super) fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.sources.iter().map(Source::identity)
    }

    pub(super) fn has_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Whether the file of a source has to be found again.
    pub(super) fn lacks_file(&self) -> bool {
        self.sources.iter().any(|source| !source.is_open())
    }

    pub(super) fn needs_reconcile(&self) -> bool {
        self.needs_reconcile
    }

    /// Whether its youngest file has something to read, and it can be read now.
    pub(super) fn is_readable(&self, core: &Core) -> bool {
        let is_fast = |filter: &ActiveFilter| core.too_slow(filter.name()).is_none();
        self.sources.back().is_some_and(Source::has_unread)
            && self.filter.as_ref().is_some_and(is_fast)
            && self.status.is_read()
            && !core.is_held()
    }

    /// What its filter remembers, with the path and the name of the filter.
    pub(super) fn memory(&self) -> Option<(PathBytes, String, Vec<Change>)> {
        let filter = self.filter.as_ref()?;
        Some((self.name.clone(), filter.name().to_string(), filter.snapshot()))
    }

    /// Its status for queries.
    pub(super) fn file_status(&self, core: &Core) -> FileStatus {
        let totals = core.journal().state().files.get(&self.name).map(|file| file.totals).unwrap_or_default();
        let live = self.sources.back().filter(|source| source.status() == Status::Live);
        let status = self.stopped.as_ref().unwrap_or(&self.status).clone();
        let spec = &core.config().files[self.spec];
        let filter = match (&self.filter, &status) {
            (Some(filter), _) => Some(filter.name().clone()),
            // Its name may show already which filter will read it.
            (None, PathStatus::Awaited | PathStatus::Gone { .. } | PathStatus::Unreadable(_)) => {
                core.choose_filter(self.spec, &self.path, &[])
            }
            (None, _) => None,
        };
        FileStatus {
            path: self.path.clone(),
            is_expected: filter.is_some() || spec.filter.is_some() || is_named(&spec.glob, &self.path),
            status,
            filter: filter.unwrap_or_default(),
            generation: live.map_or(0, |live| live.generation().0),
            offset: live.map_or(0, Source::position),
            size: live.map_or(0, Source::len_bytes),
            lag_bytes: self.sources.iter().map(Source::lag_bytes).sum(),
            rotated_open: self.sources.iter().filter(|source| source.status() != Status::Live).count(),
            lines: totals.lines,
            events: totals.events,
            rejects: totals.rejects,
            gaps: totals.gaps,
            gap_bytes: totals.gap_bytes,
            gaps_unknown: totals.gaps_unknown,
            incomplete: totals.incomplete,
            oversize: totals.oversize,
            nul_bytes: totals.nul_bytes,
            same_as: self.same_as.clone(),
        }
    }

    /// The path names no file now: its status, which depends on whether there ever was one.
    fn absent(&mut self, core: &Core, now: &Now) -> PathStatus {
        let was_known = core.journal().state().files.contains_key(&self.name);
        let departure = match self.sources.back() {
            None if self.gone_since.is_none() && !was_known => return PathStatus::Awaited,
            None if self.gone_since.is_none() => {
                return PathStatus::Gone { since: None, departure: Departure::Unseen };
            }
            None => Departure::Deleted,
            Some(source) if !source.is_open() => Departure::Unseen,
            Some(source) if source.is_deleted() => Departure::Deleted,
            Some(_) => Departure::Moved,
        };
        PathStatus::Gone { since: Some(*self.gone_since.get_or_insert(now.wall)), departure }
    }
}

/// Whether the operator named this very path, and not a glob that it matches.
fn is_named(glob: &str, path: &Path) -> bool {
    std::path::absolute(glob).is_ok_and(|given| given == path)
}

/// The name of a path in the journal.
pub(super) fn name_of(path: &Path) -> PathBytes {
    path.as_os_str().as_bytes().to_vec()
}

/// The path of a name in the journal.
pub(super) fn path_of(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}
