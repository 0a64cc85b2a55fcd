//! One path and the generations that are read through it: the live one and those rotated away before.
//!
//! Rule: an older generation is read to its end before a younger one; the filter goes on from one to the
//! next. A generation ends by a batch that says so, with the gap, if there is one, in the same batch.
//! Not here: what stands on disk now ([`super::settle`]), when to look ([`super::ingest`]).

use super::board::FileState;
use super::core::{Core, Now};
use super::follow::{BEFORE_LEN_MAX_BYTES, Content};
use super::interpret::Interpret;
use super::notice::{self, Gap, Reason};
use super::source::{CHUNK_LEN_BYTES, Look, Source};
use super::standing::{Departure, Standing};
use crate::journal::frame::{Batch, PathBytes, Status};
use compact_str::CompactString;
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::id::Generation;
use wire::time::Time;

/// Chunks read of one file before the others have their turn.
const CHUNKS_PER_TURN: usize = 4;

/// First chunk given to a filter of which nothing is known: one thread reads all logs, and a hostile filter
/// must be found out before it holds up the others for long.
const CHUNK_LEN_FIRST_BYTES: usize = 16 << 10;

/// A filter that takes longer for a chunk gets half as much the next time.
const CHUNK_WORK: Duration = Duration::from_millis(20);

/// What is told of a file that no filter knows.
pub(super) const UNKNOWN: &str = "no filter knows this file by its name and first lines; it is not read";

/// One path.
pub(super) struct Track {
    pub(super) path: PathBuf,
    pub(super) name: PathBytes,
    pub(super) spec: usize,
    pub(super) filter: Option<CompactString>,
    pub(super) engine: Option<Box<dyn Interpret>>,
    /// The generation whose lines the filter was given last.
    fed: Option<Generation>,
    rejects_told: u64,
    /// How much the filter is given at a time, in bytes.
    chunk_len: usize,
    /// The oldest first.
    pub(super) sources: VecDeque<Source>,
    /// How the path stands, as of the last look.
    pub(super) standing: Standing,
    /// When it was seen to name no file any more.
    pub(super) gone_since: Option<Time>,
    /// The path names a file that is read through this other one.
    pub(super) same_as: Option<PathBuf>,
    /// A source ended: what the path names now may have to begin.
    pub(super) is_unsettled: bool,
    /// Set while a filter keeps it from being read: it is in quarantine, or no more.
    pub(super) stopped: Option<Standing>,
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Everything there was was read.
    Whole,
    /// Something is missing, or may be: why.
    Gap(Reason),
}

impl Track {
    pub(super) fn new(path: PathBuf, spec: usize) -> Track {
        Track {
            name: path.as_os_str().as_bytes().to_vec(),
            path,
            spec,
            filter: None,
            engine: None,
            fed: None,
            rejects_told: 0,
            chunk_len: CHUNK_LEN_FIRST_BYTES,
            sources: VecDeque::new(),
            standing: Standing::Following,
            gone_since: None,
            same_as: None,
            is_unsettled: false,
            stopped: None,
        }
    }

    /// Read what there is. Returns whether there is more.
    pub(super) fn read(&mut self, core: &mut Core, now: &Now) -> bool {
        if self.engine.is_none() {
            return false;
        }
        for at in 0..self.sources.len() {
            for _ in 0..CHUNKS_PER_TURN {
                if core.journal.is_held() || self.is_quarantined(core) {
                    return false;
                }
                match self.read_chunk(core, at, now) {
                    Chunk::More => {}
                    Chunk::End => break,
                    Chunk::Ended => return true,
                }
            }
            let source = &self.sources[at];
            if source.file.is_some() && !source.is_at_end() && self.standing.is_read() {
                return true;
            }
        }
        false
    }

    /// See how long the files are without reading them.
    pub(super) fn look(&mut self, now: &Now) {
        for source in &mut self.sources {
            source.measure(now.monotonic);
        }
    }

    /// Whether reading can bring it forward now.
    pub(super) fn is_readable(&self, core: &Core) -> bool {
        let is_slow = self.filter.as_ref().is_some_and(|filter| core.too_slow(filter).is_some());
        self.engine.is_some() && self.standing.is_read() && !is_slow && !core.journal.is_held()
    }

    fn is_quarantined(&mut self, core: &Core) -> bool {
        let Some(filter) = &self.filter else { return false };
        let Some(speed) = core.too_slow(filter) else {
            self.stopped = None;
            return false;
        };
        self.stopped = Some(Standing::Trouble(format!(
            "the filter {filter} is in quarantine: it reads {speed} bytes/s, at least {} are needed; the log is not read, and tried again after a while",
            core.config.bytes_per_sec_min
        )));
        true
    }

    fn read_chunk(&mut self, core: &mut Core, at: usize, now: &Now) -> Chunk {
        let mut buffer = std::mem::take(&mut core.buffer);
        let room = BEFORE_LEN_MAX_BYTES + self.chunk_len;
        let chunk = match self.sources[at].look(&mut buffer[..room], core.config.means, now.monotonic) {
            Ok(look) => match look.content {
                Content::Same => Chunk::End,
                // It was empty when it began and may have become anything.
                Content::More if self.sources[at].lines.position() == 0 && is_compressed(&buffer, &look) => {
                    self.end(core, at, now, End::Whole);
                    Chunk::Ended
                }
                Content::More => {
                    self.feed(core, at, now, &buffer[..look.end], look.old);
                    Chunk::More
                }
                Content::Shrunk => self.lost(core, at, now, Reason::Truncated),
                Content::Regrown => self.lost(core, at, now, Reason::Regrown),
            },
            Err(error) => {
                self.standing = Standing::unreadable(&error);
                Chunk::End
            }
        };
        core.buffer = buffer;
        chunk
    }

    /// Give a chunk to the filter and journal what it finds. The first `old` bytes were given before.
    fn feed(&mut self, core: &mut Core, at: usize, now: &Now, buffer: &[u8], old: usize) {
        self.switch(core, at, now);
        let Some(engine) = &mut self.engine else { return };
        let source = &mut self.sources[at];
        let started = core.clock.work();
        let (found, counts) = (&mut core.found, &mut core.batch.counts);
        source.lines.push(&buffer[old..], |line| {
            if let Some(cut) = line.cut {
                counts.oversize += u64::from(line.offset >= source.counted_to);
                found.push(notice::oversize(line.offset, now.wall, cut));
            }
            counts.lines += u64::from(line.offset >= source.counted_to);
            engine.line(line.bytes, line.offset, now.wall, found);
        });
        core.batch.counts.nul_bytes += source.lines.take_nul_bytes();
        source.keep_tail(buffer);
        let work = core.clock.work().saturating_sub(started);
        let wanted = if work > CHUNK_WORK { self.chunk_len / 2 } else { self.chunk_len * 2 };
        self.chunk_len = wanted.clamp(CHUNK_LEN_FIRST_BYTES, CHUNK_LEN_BYTES);
        let filter = self.filter.clone().unwrap_or_default();
        if let Some(speed) = core.meter(&filter, (buffer.len() - old) as u64, work) {
            let position = source.lines.position();
            core.found.push(notice::quarantine(position, now.wall, &filter, speed));
        }
        let status = self.sources[at].status;
        self.write(core, at, now, status, buffer);
    }

    /// The filter goes on to another generation: what it holds back of the one before is complete.
    fn switch(&mut self, core: &mut Core, at: usize, now: &Now) {
        let next = self.sources[at].generation;
        if self.fed == Some(next) {
            return;
        }
        let before = self.fed.and_then(|fed| self.sources.iter().position(|source| source.generation == fed));
        if let (Some(before), Some(engine)) = (before, &mut self.engine) {
            engine.idle(now.wall, &mut core.found);
            let status = self.sources[before].status;
            self.write(core, before, now, status, &[]);
        }
        self.fed = Some(next);
    }

    /// Journal what was found and how far the source was read, if either is new.
    pub(super) fn write(&mut self, core: &mut Core, at: usize, now: &Now, status: Status, buffer: &[u8]) {
        let source = &mut self.sources[at];
        let fed = self.fed == Some(source.generation);
        let engine = self.engine.as_mut();
        let waiting = engine.as_ref().filter(|_| fed).and_then(|engine| engine.resume_offset());
        let start = source.lines.start();
        let resume = waiting.map_or(start, |waiting| waiting.min(start));
        let batch = &mut core.batch;
        if core.config.means.known_events {
            let known = &source.beyond;
            core.found.retain(|found| !known.contains(&(found.offset, found.number)));
        }
        let rejects = engine.as_ref().map_or(0, |engine| engine.rejects());
        let settled = matches!(status, Status::Finished | Status::Over) && status != source.status;
        if core.found.is_empty() && resume == source.resume && start <= source.counted_to && !settled {
            return;
        }
        batch.generation = source.generation;
        (batch.seen, batch.status, batch.offset) = (now.wall, status, resume);
        batch.counted_to = start.max(source.counted_to);
        batch.before = source.print_before(resume, buffer);
        batch.prefix = source.longer_prefix();
        batch.incomplete = source.incomplete;
        batch.copy = source.ending.map(|_| source.identity);
        batch.counts.rejects = rejects.saturating_sub(self.rejects_told);
        self.rejects_told = rejects;
        if let Some(engine) = engine {
            engine.take_changes(&mut batch.changes);
        }
        core.append();
        let source = &mut self.sources[at];
        let batch = &core.batch;
        (source.status, source.resume, source.counted_to) = (status, resume, batch.counted_to);
        source.before = batch.before;
        source.prefix = batch.prefix.unwrap_or(source.prefix);
        source.beyond.retain(|(offset, _)| *offset >= resume);
        core.reset_batch();
    }

    /// What was read last no longer stands in the file. A copy of it, if there is one, is read to its end;
    /// what was written between the copying and the truncation no one knows.
    fn lost(&mut self, core: &mut Core, at: usize, now: &Now, reason: Reason) -> Chunk {
        let source = &self.sources[at];
        let is_copy = source.ending.is_some();
        // What the path names starts over by itself; what it names no more has to be started here.
        let is_left = !is_copy && source.status != Status::Live;
        let cut = source.file.as_ref().filter(|_| is_left).and_then(|file| file.try_clone().ok());
        let has_copy = !is_copy && core.config.means.siblings && self.read_on_in_copy(core, at, reason);
        if !has_copy {
            self.end(core, at, now, End::Gap(reason));
        }
        if let Some(cut) = cut {
            self.begin_again(core, now, cut, at + usize::from(has_copy));
        }
        if has_copy { Chunk::More } else { Chunk::Ended }
    }

    fn read_on_in_copy(&mut self, core: &Core, at: usize, reason: Reason) -> bool {
        let Ok(siblings) = super::search::Siblings::of(&self.path) else { return false };
        let taken: Vec<_> = self.sources.iter().map(|source| source.identity).collect();
        let source = &mut self.sources[at];
        let roots = core.paths.roots(self.spec);
        let Some((file, stat)) =
            siblings.copy(&self.path, &source.known_here(), &taken, roots, core.config.means)
        else {
            return false;
        };
        if source.attach(file, &stat).is_err() {
            return false;
        }
        (source.ending, source.status) = (Some(reason), Status::Rotated);
        self.is_unsettled = true;
        true
    }

    /// A generation will not be read any more.
    pub(super) fn end(&mut self, core: &mut Core, at: usize, now: &Now, end: End) {
        if self.fed == Some(self.sources[at].generation)
            && let Some(engine) = &mut self.engine
        {
            engine.idle(now.wall, &mut core.found);
        }
        self.tell_incomplete(core, at, now);
        let position = self.sources[at].lines.position();
        if let End::Gap(reason) = end {
            let gap = Gap { reason, lost_bytes: self.sources[at].lost_bytes() };
            core.found.push(gap.notice(position, now.wall));
            core.batch.counts.gaps += 1;
            core.batch.counts.gap_bytes += gap.lost_bytes;
            core.batch.counts.gaps_unknown += u64::from(gap.may_be_more());
            let (path, why, bytes) = (self.path.display(), reason.as_str(), gap.lost_bytes);
            if bytes > 0 {
                tracing::error!(%path, why, bytes, "{gap}");
            } else {
                tracing::warn!(%path, why, "{gap}");
            }
        }
        self.write(core, at, now, Status::Over, &[]);
        if self.sources[at].links == 0 {
            // The file is gone with the descriptor: what was read of it must be durable before.
            core.sync(now);
        }
        self.sources.remove(at);
        self.is_unsettled = true;
    }

    /// Tell the last line without its end as incomplete, once.
    fn tell_incomplete(&mut self, core: &mut Core, at: usize, now: &Now) {
        let source = &mut self.sources[at];
        let (start, len) = (source.lines.start(), source.lines.incomplete_len_bytes());
        if len > 0 && source.incomplete != Some(start) {
            source.incomplete = Some(start);
            core.batch.counts.incomplete += 1;
            core.found.push(notice::incomplete(start, now.wall, len));
        }
    }

    /// Close what has waited long enough for more: records of several lines, last lines without an end.
    pub(super) fn quiet(&mut self, core: &mut Core, now: &Now) {
        for at in 0..self.sources.len() {
            let source = &self.sources[at];
            let quiet = now.monotonic.saturating_sub(source.grown_at) >= core.config.incomplete_after;
            if core.journal.is_held() || !quiet || !source.is_at_end() || !self.is_waiting(at) {
                continue;
            }
            if self.fed == Some(self.sources[at].generation)
                && let Some(engine) = &mut self.engine
            {
                engine.idle(now.wall, &mut core.found);
            }
            self.tell_incomplete(core, at, now);
            let status = self.sources[at].status;
            self.write(core, at, now, status, &[]);
        }
    }

    /// Whether something of a source waits for more lines and was not told yet.
    fn is_waiting(&self, at: usize) -> bool {
        let source = &self.sources[at];
        let record = self.fed == Some(source.generation)
            && self.engine.as_ref().is_some_and(|engine| engine.resume_offset().is_some());
        let line = source.lines.incomplete_len_bytes() > 0 && source.incomplete != Some(source.lines.start());
        record || line
    }

    /// When [`Track::quiet`] has something to do, by the monotonic clock.
    pub(super) fn quiet_at(&self, incomplete_after: Duration) -> Option<Duration> {
        let waiting =
            (0..self.sources.len()).filter(|at| self.sources[*at].is_at_end() && self.is_waiting(*at));
        waiting.map(|at| self.sources[at].grown_at + incomplete_after).min()
    }

    /// The live generation.
    pub(super) fn live(&self) -> Option<&Source> {
        self.sources.back().filter(|source| source.status == Status::Live)
    }

    /// What queries are told.
    pub(super) fn state(&self, core: &Core) -> FileState {
        let totals = core.journal.state().files.get(&self.name).map(|file| file.totals).unwrap_or_default();
        let live = self.live();
        let standing = self.stopped.as_ref().unwrap_or(&self.standing).clone();
        let spec = &core.config.files[self.spec];
        let filter = match (&self.filter, &standing) {
            // Its name may tell already which filter will read it.
            (None, Standing::Awaited | Standing::Gone { .. } | Standing::Unreadable(_)) => {
                core.filters.choose(spec.filter.as_deref(), &self.path, &[])
            }
            (known, _) => known.clone(),
        };
        FileState {
            path: self.path.clone(),
            is_meant: filter.is_some() || spec.filter.is_some() || is_named(&spec.glob, &self.path),
            standing,
            filter: filter.unwrap_or_default(),
            generation: live.map_or(0, |live| live.generation.0),
            offset: live.map_or(0, |live| live.lines.position()),
            size: live.map_or(0, |live| live.size),
            lag_bytes: self.sources.iter().map(Source::lag_bytes).sum(),
            rotated_open: self.sources.iter().filter(|source| source.status != Status::Live).count(),
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

    /// The path names no file now: how it stands, if there ever was one.
    pub(super) fn absent(&mut self, core: &Core, now: &Now) -> Standing {
        let was_known = core.journal.state().files.contains_key(&self.name);
        let departure = match self.sources.back() {
            None if self.gone_since.is_none() && !was_known => return Standing::Awaited,
            None if self.gone_since.is_none() => {
                return Standing::Gone { since: None, departure: Departure::Unseen };
            }
            None => Departure::Deleted,
            Some(source) if source.file.is_none() => Departure::Unseen,
            Some(source) if source.is_deleted() => Departure::Deleted,
            Some(_) => Departure::Moved,
        };
        Standing::Gone { since: Some(*self.gone_since.get_or_insert(now.wall)), departure }
    }

    /// An interpreter was made for it, with what an earlier run remembered.
    pub(super) fn set_engine(&mut self, filter: CompactString, engine: Box<dyn Interpret>) {
        self.rejects_told = engine.rejects();
        (self.filter, self.engine) = (Some(filter), Some(engine));
    }
}

/// Whether the operator gave this very path, and no glob that it fits.
fn is_named(glob: &str, path: &Path) -> bool {
    std::path::absolute(glob).is_ok_and(|given| given == path)
}

/// What came of a look at a source.
enum Chunk {
    /// It may have more.
    More,
    /// It has no more for now.
    End,
    /// It is over, and its place is taken by the next.
    Ended,
}

fn is_compressed(buffer: &[u8], look: &Look) -> bool {
    super::compression::refusal(&buffer[look.old..look.end]).is_some()
}

/// A batch with its lists emptied but not given back.
pub(super) fn reset(batch: &mut Batch) {
    let (mut records, mut changes) = (std::mem::take(&mut batch.records), std::mem::take(&mut batch.changes));
    records.clear();
    changes.clear();
    *batch = Batch { records, changes, ..Batch::empty(Generation(0)) };
}
