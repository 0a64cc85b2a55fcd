//! Bringing a track in line with what stands on disk: rotations noticed, files found again, new ones started.
//!
//! The same for a sensor that runs and one that was stopped meanwhile: only that after a start every
//! source lacks its file and has to find it first.
//! Not here: reading ([`super::track`]).

use super::compression;
use super::core::{Core, Now};
use super::follow::{self, AtPath, Candidate, Fate, Recognition, same_file};
use super::notice::Reason;
use super::owners::Owners;
use super::probe::{self, Stat};
use super::search::Siblings;
use super::source::Source;
use super::standing::Standing;
use super::track::{End, Track};
use super::{FIRST_LEN_MAX_BYTES, FirstStart, Start};
use crate::journal::frame::{Birth, Identity, Print, Status};
use std::fs::File;
use std::path::{Path, PathBuf};
use wire::id::Generation;

/// Whether a file was there when the sensor started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appeared {
    /// It was.
    AtStart,
    /// It came later.
    Later,
}

/// What became of the search for a source's file.
enum Search {
    Found,
    Undecided,
    Ended,
}

impl Track {
    /// Look at the disk and follow what happened. Returns the file that the path names, if it is not read
    /// through this path: it is started by [`Track::begin_found`] unless it is read through another.
    pub(super) fn settle(&mut self, core: &mut Core, now: &Now) -> Option<Identity> {
        self.same_as = None;
        self.standing = Standing::Following;
        self.is_unsettled = false;
        let directory = self.sources.back().map(|source| source.directory);
        let at = probe::at_path(&self.path, directory);
        self.find_files(core, now, &at);
        match &at {
            AtPath::Refused(_) | AtPath::Hindered(_) => self.undecided(&at),
            AtPath::Nothing if self.standing == Standing::Following => self.standing = self.absent(core, now),
            AtPath::Nothing => {}
            AtPath::File { .. } => self.gone_since = None,
        }
        self.note_rotation(core, &at);
        let AtPath::File { identity, .. } = at else { return None };
        let is_known = |source: &Source| source.ending.is_none() && same_file(&source.identity, &identity);
        (!self.sources.iter().any(is_known)).then_some(identity)
    }

    /// Begin with the file that the path names.
    pub(super) fn begin_found(
        &mut self,
        core: &mut Core,
        now: &Now,
        found: &Identity,
        appeared: Appeared,
        owners: &Owners,
    ) {
        self.begin_those_between(core, now, found, owners);
        self.begin(core, now, &self.path.clone(), appeared, Status::Live, found);
    }

    /// The path names another file than before, or none.
    fn note_rotation(&mut self, core: &Core, at: &AtPath) {
        for index in (0..self.sources.len()).rev() {
            let source = &mut self.sources[index];
            match follow::fate(&source.identity, at) {
                Fate::Stays if source.ending.is_none() && source.status != Status::Live => {
                    source.status = Status::Live;
                }
                Fate::Replaced | Fate::Gone if source.status == Status::Live => {
                    tracing::info!(path = %self.path.display(), generation = %source.generation, "the log was rotated");
                    source.status = Status::Rotated;
                    if !core.config.means.descriptor {
                        self.sources.remove(index);
                    }
                }
                Fate::Stays | Fate::Replaced | Fate::Gone | Fate::Unknown => {}
            }
        }
    }

    /// After a start: find the file of each source again.
    fn find_files(&mut self, core: &mut Core, now: &Now, at: &AtPath) {
        let missing = |source: &Source| source.file.is_none();
        if matches!(at, AtPath::Hindered(_)) || !self.sources.iter().any(missing) {
            return;
        }
        let siblings = match Siblings::of(&self.path) {
            Ok(siblings) => siblings.and(&core.elsewhere),
            Err(error) => {
                self.standing = Standing::Unreadable(format!("cannot look at its directory: {error}"));
                return;
            }
        };
        let mut index = 0;
        while index < self.sources.len() {
            if self.sources[index].file.is_some() {
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
        let known = self.sources[index].known();
        let (mut reason, mut cut) = (Reason::Missing, None);
        let itself =
            siblings.same(&known.identity).filter(|path| core.config.means.siblings || *path == self.path);
        if let Some(path) = itself {
            let roots = core.roots_of(path, self.spec);
            let (file, stat) = match probe::open(path, &roots) {
                Ok(opened) => opened,
                Err(at) => {
                    self.undecided(&at);
                    return Search::Undecided;
                }
            };
            if !same_file(&known.identity, &stat.identity) {
                // It was renamed just now, and will be found under its other name.
                return Search::Undecided;
            }
            let Ok(content_fits) = probe::content_fits(&file, &known) else { return Search::Undecided };
            let candidate =
                Candidate { identity: stat.identity, size: stat.size, content_fits, is_named_so: false };
            match follow::recognise(&known, &candidate, core.config.means) {
                Recognition::Itself => return self.attach(index, file, &stat),
                Recognition::Shrunk => reason = Reason::Truncated,
                Recognition::Regrown => reason = Reason::Regrown,
                Recognition::Copy | Recognition::Stranger => {}
            }
            cut = (reason != Reason::Missing && path != self.path).then_some(file);
        }
        if core.config.means.siblings {
            let others = self.sources.iter().enumerate().filter(|(other, _)| *other != index);
            let taken: Vec<_> = others.map(|(_, source)| source.identity).collect();
            let roots = core.paths.roots(self.spec);
            if let Some((file, stat)) = siblings.copy(&self.path, &known, &taken, roots, core.config.means) {
                // A file that is only elsewhere now is whole; one that was cut lost what came after the copy.
                self.sources[index].ending = (reason != Reason::Missing).then_some(reason);
                let found = self.attach(index, file, &stat);
                if let Some(cut) = cut {
                    self.begin_again(core, now, cut, index + 1);
                }
                return found;
            }
        }
        let end = match (reason, self.sources[index].status) {
            (Reason::Missing, Status::Finished) => End::Whole,
            (reason, _) => End::Gap(reason),
        };
        self.end(core, index, now, end);
        if let Some(cut) = cut {
            self.begin_again(core, now, cut, index);
        }
        Search::Ended
    }

    /// What keeps it from being read.
    fn undecided(&mut self, at: &AtPath) {
        match at {
            AtPath::Refused(why) => self.standing = Standing::NoLog(why.clone()),
            AtPath::Hindered(why) => self.standing = Standing::Unreadable(why.clone()),
            AtPath::File { .. } | AtPath::Nothing => {}
        }
    }

    fn attach(&mut self, index: usize, file: File, stat: &Stat) -> Search {
        match self.sources[index].attach(file, stat) {
            Ok(()) => Search::Found,
            Err(error) => {
                self.standing = Standing::unreadable(&error);
                Search::Undecided
            }
        }
    }

    /// What was written and rotated away between two looks is read first.
    fn begin_those_between(&mut self, core: &mut Core, now: &Now, at: &Identity, owners: &Owners) {
        let Some(record) = core.journal.state().files.get(&self.name).cloned() else { return };
        let Ok(siblings) = Siblings::of(&self.path) else { return };
        if record.youngest.is_none() || !core.config.means.siblings {
            return;
        }
        for (path, identity) in siblings.between(&self.path, &record, at.born) {
            if owners.other(&identity, &self.path).is_none() && !self.holds(core, &path) {
                tracing::info!(path = %path.display(), "a log was written and rotated away unseen");
                self.begin(core, now, &path, Appeared::Later, Status::Rotated, &identity);
            }
        }
    }

    /// Whether a file, or a copy of it, is among the sources.
    fn holds(&self, core: &Core, path: &Path) -> bool {
        let Ok((file, stat)) = probe::open(path, core.paths.roots(self.spec)) else { return true };
        self.sources.iter().any(|source| {
            let known = source.known();
            let begins_alike = known.prefix.len > 0
                && probe::read(&file, 0, known.prefix.len.into())
                    .is_ok_and(|bytes| known.prefix.fits(&bytes));
            same_file(&source.identity, &stat.identity) || begins_alike
        })
    }

    /// Begin a new generation with the file at a path, if it is still the one that was found there.
    fn begin(
        &mut self,
        core: &mut Core,
        now: &Now,
        path: &Path,
        appeared: Appeared,
        status: Status,
        found: &Identity,
    ) {
        let (file, stat) = match probe::open(path, core.paths.roots(self.spec)) {
            Ok(opened) => opened,
            Err(at) => {
                self.undecided(&at);
                return;
            }
        };
        if !same_file(found, &stat.identity) {
            // It was exchanged since; whose the new one is has to be asked first.
            self.is_unsettled = true;
            return;
        }
        if let Err(standing) = self.choose(core, &file) {
            self.standing = standing;
            return;
        }
        let offset = match self.start(core, appeared) {
            FirstStart::Beginning => 0,
            FirstStart::End => stat.size,
        };
        self.add(core, now, file, &stat, offset, status, self.sources.len());
    }

    /// A file that the path does not name any more was cut: what it holds now is another generation.
    pub(super) fn begin_again(&mut self, core: &mut Core, now: &Now, file: File, index: usize) {
        if let Ok(stat) = probe::stat_open(&file) {
            self.add(core, now, file, &stat, 0, Status::Rotated, index);
        }
    }

    /// Journal a new generation and read it as the `index`th of the path.
    #[allow(clippy::too_many_arguments)] // What a generation is made of.
    fn add(
        &mut self,
        core: &mut Core,
        now: &Now,
        file: File,
        stat: &Stat,
        offset: u64,
        status: Status,
        index: usize,
    ) {
        let last = match probe::read_before(&file, offset, follow::BEFORE_LEN_MAX_BYTES) {
            Ok(last) => last,
            Err(error) => {
                self.standing = Standing::unreadable(&error);
                return;
            }
        };
        let parent = probe::stat(self.path.parent().unwrap_or(Path::new("/")));
        let birth = Birth {
            generation: Generation(core.journal.state().head.next_generation),
            path: self.name.clone(),
            filter: self.filter.clone().unwrap_or_default(),
            host: core.host(self.spec),
            identity: stat.identity,
            directory: parent.map_or(stat.identity.device, |parent| parent.identity.device),
            offset,
            before: Print::of(&last),
            within_line: last.last().is_some_and(|byte| *byte != b'\n'),
        };
        core.born(&birth);
        let checkpoint = &core.journal.state().generations[&birth.generation];
        let mut source = Source::new(checkpoint, core.config.means, now.monotonic);
        source.status = status;
        if let Err(error) = source.attach(file, stat) {
            self.standing = Standing::unreadable(&error);
        }
        tracing::info!(path = %self.path.display(), generation = %birth.generation, offset, "a log is followed");
        self.sources.insert(index, source);
    }

    fn start(&self, core: &Core, appeared: Appeared) -> FirstStart {
        let was_known = core.journal.state().files.contains_key(&self.name);
        match core.config.files[self.spec].start {
            _ if was_known || appeared == Appeared::Later => FirstStart::Beginning,
            Start::Beginning => FirstStart::Beginning,
            Start::End => FirstStart::End,
            Start::Checkpoint => core.config.first_start,
        }
    }

    /// Refuse what is no text; choose the filter by what the file is, if that is not settled yet.
    fn choose(&mut self, core: &mut Core, file: &File) -> Result<(), Standing> {
        let first =
            probe::read(file, 0, FIRST_LEN_MAX_BYTES).map_err(|error| Standing::unreadable(&error))?;
        if let Some(why) = compression::refusal(&first) {
            return Err(Standing::NoLog(why));
        }
        if self.engine.is_some() {
            return Ok(());
        }
        let spec = &core.config.files[self.spec];
        let Some(filter) = core.filters.choose(spec.filter.as_deref(), &self.path, &first) else {
            return Err(Standing::NoFilter(match &spec.filter {
                Some(name) => format!("there is no filter {name}"),
                None => super::track::UNKNOWN.into(),
            }));
        };
        let Some(engine) = core.filters.interpreter(&filter, &self.path, &spec.cluster) else {
            return Err(Standing::NoFilter(format!("there is no filter {filter}")));
        };
        self.set_engine(filter, engine);
        Ok(())
    }
}

/// The path a track's name spells.
pub(super) fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(name))
}
