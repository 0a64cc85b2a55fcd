//! New generations of a path: the file that it names, files rotated away unseen, and files written over.
//!
//! Not here: what became of the files that are read already ([`super::rotation`]).

use super::Track;
use crate::journal::frame::{Birth, Identity, Print};
use crate::tail::compression;
use crate::tail::core::{Core, Now};
use crate::tail::follow::{self, same_file};
use crate::tail::owners::Owners;
use crate::tail::path_status::PathStatus;
use crate::tail::probe::{self, Stat};
use crate::tail::search::Siblings;
use crate::tail::source::Source;
use crate::tail::{FIRST_LEN_MAX_BYTES, FirstStart, Start};
use std::fs::File;
use std::path::Path;
use wire::id::Generation;

/// Reason in the status of a file that no filter reads.
const UNKNOWN: &str = "no filter knows this file by its name and first lines; it is not read";

/// When a file was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tail) enum FirstSeen {
    /// When the sensor started.
    AtStart,
    /// After that.
    Later,
}

/// A file with which a generation starts.
struct NewFile {
    file: File,
    stat: Stat,
    /// Where reading starts, in bytes.
    offset: u64,
    is_live: bool,
}

impl Track {
    /// Start to read the file that the path names, and before it those that were rotated away unseen.
    pub(in crate::tail) fn start_found(
        &mut self,
        core: &mut Core,
        now: &Now,
        found: &Identity,
        appeared: FirstSeen,
        owners: &Owners,
    ) {
        self.start_missed(core, now, found, owners);
        if let Some((file, stat)) = self.open(core, &self.path.clone(), found) {
            let offset = match self.first_start(core, appeared) {
                FirstStart::Beginning => 0,
                FirstStart::End => stat.size,
            };
            let new = NewFile { file, stat, offset, is_live: true };
            self.insert(core, now, new, self.sources.len());
        }
    }

    /// Start to read files that were written and rotated away between two looks.
    fn start_missed(&mut self, core: &mut Core, now: &Now, found: &Identity, owners: &Owners) {
        let Some(record) = core.journal().state().files.get(&self.name).cloned() else { return };
        let Ok(siblings) = Siblings::of(&self.path) else { return };
        if record.youngest.is_none() || !core.config().means.siblings {
            return;
        }
        for (path, identity) in siblings.between(&self.path, &record, found.born) {
            if owners.other(&identity, &self.path).is_some() || self.holds(core, &path) {
                continue;
            }
            tracing::info!(path = %path.display(), "a log was written and rotated away unseen");
            if let Some((file, stat)) = self.open(core, &path, &identity) {
                let new = NewFile { file, stat, offset: 0, is_live: false };
                self.insert(core, now, new, self.sources.len());
            }
        }
    }

    /// Whether a file, or a copy of it, is among the sources.
    fn holds(&self, core: &Core, path: &Path) -> bool {
        let Ok((file, stat)) = probe::open(path, core.paths().roots(self.spec)) else { return true };
        self.sources.iter().any(|source| {
            let prefix = source.fingerprint().prefix;
            let starts_alike = prefix.len > 0
                && probe::read(&file, 0, prefix.len.into()).is_ok_and(|bytes| prefix.fits(&bytes));
            same_file(source.identity(), &stat.identity) || starts_alike
        })
    }

    /// The file at a path, if it is still the one that was found there and a filter reads it.
    fn open(&mut self, core: &Core, path: &Path, found: &Identity) -> Option<(File, Stat)> {
        let (file, stat) = match probe::open(path, core.paths().roots(self.spec)) {
            Ok(opened) => opened,
            Err(at) => {
                self.note_obstacle(&at);
                return None;
            }
        };
        if !same_file(found, &stat.identity) {
            // It was replaced meanwhile; whether another path reads the new one has to be checked first.
            self.needs_reconcile = true;
            return None;
        }
        if let Err(status) = self.choose_filter(core, &file) {
            self.status = status;
            return None;
        }
        Some((file, stat))
    }

    /// A file that the path does not name any more was cut: what it holds now is another generation.
    pub(super) fn start_over(&mut self, core: &mut Core, now: &Now, file: File, index: usize) {
        if let Ok(stat) = probe::stat_open(&file) {
            self.insert(core, now, NewFile { file, stat, offset: 0, is_live: false }, index);
        }
    }

    /// Journal a new generation and read it as the `index`th of the path.
    fn insert(&mut self, core: &mut Core, now: &Now, new: NewFile, index: usize) {
        let NewFile { file, stat, offset, is_live } = new;
        let last = match probe::read_before(&file, offset, follow::BEFORE_LEN_MAX_BYTES) {
            Ok(last) => last,
            Err(error) => {
                self.status = PathStatus::unreadable(&error);
                return;
            }
        };
        let parent = probe::stat(self.path.parent().unwrap_or(Path::new("/")));
        let birth = Birth {
            generation: Generation(core.journal().state().head.next_generation),
            path: self.name.clone(),
            filter: self.filter.as_ref().map(|filter| filter.name().clone()).unwrap_or_default(),
            host: core.host(self.spec),
            identity: stat.identity,
            directory: parent.map_or(stat.identity.device, |parent| parent.identity.device),
            offset,
            before: Print::of(&last),
            within_line: last.last().is_some_and(|byte| *byte != b'\n'),
        };
        core.born(&birth);
        let checkpoint = &core.journal().state().generations[&birth.generation];
        let mut source = Source::new(checkpoint, core.config().means, now.monotonic);
        if !is_live {
            source.rotated();
        }
        if let Err(error) = source.attach(file, &stat) {
            self.status = PathStatus::unreadable(&error);
        }
        tracing::info!(path = %self.path.display(), generation = %birth.generation, offset, "a log is followed");
        self.sources.insert(index, source);
    }

    fn first_start(&self, core: &Core, appeared: FirstSeen) -> FirstStart {
        let was_known = core.journal().state().files.contains_key(&self.name);
        match core.config().files[self.spec].start {
            _ if was_known || appeared == FirstSeen::Later => FirstStart::Beginning,
            Start::Beginning => FirstStart::Beginning,
            Start::End => FirstStart::End,
            Start::Checkpoint => core.config().first_start,
        }
    }

    /// Refuse a compressed file; choose the filter by the file, unless the path has one.
    fn choose_filter(&mut self, core: &Core, file: &File) -> Result<(), PathStatus> {
        let first =
            probe::read(file, 0, FIRST_LEN_MAX_BYTES).map_err(|error| PathStatus::unreadable(&error))?;
        if let Some(why) = compression::refusal(&first) {
            return Err(PathStatus::NoLog(why));
        }
        if self.filter.is_some() {
            return Ok(());
        }
        let Some(filter) = core.choose_filter(self.spec, &self.path, &first) else {
            return Err(PathStatus::NoFilter(match &core.config().files[self.spec].filter {
                Some(name) => format!("there is no filter {name}"),
                None => UNKNOWN.into(),
            }));
        };
        let Some(engine) = core.interpreter(&filter, &self.path, self.spec) else {
            return Err(PathStatus::NoFilter(format!("there is no filter {filter}")));
        };
        self.set_filter(filter, engine);
        Ok(())
    }
}
