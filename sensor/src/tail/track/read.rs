//! Reading the generations of a path: chunks to the filter, what it finds to the journal.
//!
//! Rule: an older generation is read to its end before a younger one. A generation ends with a batch that
//! says so; if there is a gap, it is in the same batch.
//! Not here: what the path names now ([`super::rotation`]).

use super::{End, Track};
use crate::journal::frame::Status;
use crate::tail::compression;
use crate::tail::core::{Core, Now};
use crate::tail::follow::{BEFORE_LEN_MAX_BYTES, Content};
use crate::tail::notice::{Gap, Reason};
use crate::tail::path_status::PathStatus;
use crate::tail::search::Siblings;
use crate::tail::source::Source;
use std::time::Duration;

/// Chunks read of one file before the others have their turn.
const CHUNKS_PER_TURN: usize = 4;

/// What follows from reading a chunk.
enum Step {
    /// The source may have more.
    More,
    /// It has no more for now.
    Pause,
    /// It ended, and the next source has its index.
    Ended,
}

impl Track {
    /// Read what there is. Returns whether there is more.
    pub(in crate::tail) fn read(&mut self, core: &mut Core, buffer: &mut [u8], now: &Now) -> bool {
        if self.filter.is_none() {
            return false;
        }
        for at in 0..self.sources.len() {
            for _ in 0..CHUNKS_PER_TURN {
                if core.is_held() || self.is_quarantined(core) {
                    return false;
                }
                match self.read_chunk(core, buffer, at, now) {
                    Step::More => {}
                    Step::Pause => break,
                    Step::Ended => return true,
                }
            }
            if self.sources[at].has_unread() && self.status.is_read() {
                return true;
            }
        }
        false
    }

    /// Measure the files without reading them.
    pub(in crate::tail) fn measure(&mut self, now: &Now) {
        for source in &mut self.sources {
            source.measure(now.monotonic);
        }
    }

    fn is_quarantined(&mut self, core: &Core) -> bool {
        let Some(filter) = &self.filter else { return false };
        let Some(speed) = core.too_slow(filter.name()) else {
            self.stopped = None;
            return false;
        };
        self.stopped = Some(PathStatus::Trouble(format!(
            "the filter {} is in quarantine: it reads {speed} bytes/s, at least {} are needed; the log is not read, and tried again after a while",
            filter.name(),
            core.config().bytes_per_sec_min
        )));
        true
    }

    fn read_chunk(&mut self, core: &mut Core, buffer: &mut [u8], at: usize, now: &Now) -> Step {
        let Some(filter) = &self.filter else { return Step::Pause };
        let buffer = &mut buffer[..BEFORE_LEN_MAX_BYTES + filter.chunk_len()];
        let source = &mut self.sources[at];
        let chunk = match source.read_chunk(buffer, core.config().means, now.monotonic) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.status = PathStatus::unreadable(&error);
                return Step::Pause;
            }
        };
        match chunk.content {
            Content::Same => Step::Pause,
            // It was empty when it was found and may have become anything.
            Content::More
                if source.position() == 0
                    && compression::refusal(&buffer[chunk.old..chunk.end]).is_some() =>
            {
                self.end(core, at, now, End::Whole);
                Step::Ended
            }
            Content::More => {
                self.feed(core, at, now, &buffer[..chunk.end], chunk.old);
                Step::More
            }
            Content::Shrunk => self.lost(core, at, now, Reason::Truncated),
            Content::Regrown => self.lost(core, at, now, Reason::Regrown),
        }
    }

    /// Give a chunk to the filter and journal what it finds. The first `old` bytes were given before.
    fn feed(&mut self, core: &mut Core, at: usize, now: &Now, chunk: &[u8], old: usize) {
        self.switch(core, at, now);
        let Some(filter) = &mut self.filter else { return };
        let source = &mut self.sources[at];
        let started = core.work_time();
        let draft = &mut core.draft;
        let nul_bytes = source.split(chunk, old, |line, is_new| {
            draft.line(&line, is_new, now.wall);
            filter.line(line.bytes, line.offset, now.wall, draft.events());
        });
        draft.nul_bytes(nul_bytes);
        let work = core.work_time().saturating_sub(started);
        filter.worked(work);
        if let Some(speed) = core.meter(filter.name(), (chunk.len() - old) as u64, work) {
            core.draft.quarantine(source.position(), now.wall, filter.name(), speed);
        }
        let status = source.status();
        self.write(core, at, now, status, chunk);
    }

    /// The filter continues in another generation: the record of the previous one that waits is complete.
    fn switch(&mut self, core: &mut Core, at: usize, now: &Now) {
        let Some(filter) = &mut self.filter else { return };
        let before = self.sources.iter().position(|source| Some(source.generation()) == filter.fed());
        if let Some(before) = before.filter(|before| *before != at) {
            let source = &self.sources[before];
            let status = source.status();
            filter.idle(source.generation(), now.wall, core.draft.events());
            self.write(core, before, now, status, &[]);
        }
        if let Some(filter) = &mut self.filter {
            filter.set_fed(self.sources[at].generation());
        }
    }

    /// Journal what was found and how far the source was read, if either is new.
    pub(super) fn write(&mut self, core: &mut Core, at: usize, now: &Now, status: Status, chunk: &[u8]) {
        let source = &mut self.sources[at];
        let record = self.filter.as_ref().and_then(|filter| filter.waiting_record(source.generation()));
        let offset = source.resume_offset(record);
        if core.config().means.known_events {
            core.draft.leave_out(|offset, number| source.has_journalled(offset, number));
        }
        if !core.draft.has_events() && !source.is_news(offset, status) {
            return;
        }
        let progress = source.progress(offset, status, chunk);
        if let Some(filter) = &mut self.filter {
            core.draft.rejects(filter.take_rejects());
            filter.take_changes(core.draft.changes());
        }
        core.append(&progress, now.wall);
        source.committed(&progress);
    }

    /// The file no longer holds what was read last. A copy of it, if there is one, is read to its end; what
    /// was written between the copy and the truncation is unknown.
    fn lost(&mut self, core: &mut Core, at: usize, now: &Now, reason: Reason) -> Step {
        let source = &self.sources[at];
        let is_copy = source.gap_at_end().is_some();
        // The file that the path names starts over by itself; one that it names no more is started over here.
        let is_left = !is_copy && source.status() != Status::Live;
        let cut = if is_left { source.clone_file() } else { None };
        let has_copy = !is_copy && core.config().means.siblings && self.read_on_in_copy(core, at, reason);
        if !has_copy {
            self.end(core, at, now, End::Gap(reason));
        }
        if let Some(cut) = cut {
            self.start_over(core, now, cut, at + usize::from(has_copy));
        }
        if has_copy { Step::More } else { Step::Ended }
    }

    fn read_on_in_copy(&mut self, core: &Core, at: usize, reason: Reason) -> bool {
        let Ok(siblings) = Siblings::of(&self.path) else { return false };
        let taken: Vec<_> = self.sources.iter().map(|source| *source.identity()).collect();
        let source = &mut self.sources[at];
        let roots = core.paths().roots(self.spec);
        let fingerprint = source.fingerprint_here();
        let Some((file, stat)) = siblings.copy(&self.path, &fingerprint, &taken, roots, core.config().means)
        else {
            return false;
        };
        if source.attach_copy(file, &stat, Some(reason)).is_err() {
            return false;
        }
        source.rotated();
        self.needs_reconcile = true;
        true
    }

    /// A generation will not be read any more.
    pub(super) fn end(&mut self, core: &mut Core, at: usize, now: &Now, end: End) {
        self.close_record(core, at, now);
        let source = &self.sources[at];
        if let End::Gap(reason) = end {
            let gap = Gap { reason, lost_bytes: source.lost_bytes() };
            core.draft.gap(&gap, source.position(), now.wall);
            let (path, why, bytes) = (self.path.display(), reason.as_str(), gap.lost_bytes);
            if bytes > 0 {
                tracing::error!(%path, why, bytes, "{gap}");
            } else {
                tracing::warn!(%path, why, "{gap}");
            }
        }
        self.write(core, at, now, Status::Over, &[]);
        if self.sources[at].has_no_name() {
            // The file is gone with the descriptor: what was read of it must be durable before.
            core.sync(now);
        }
        self.sources.remove(at);
        self.needs_reconcile = true;
    }

    /// Close the record that waits for more lines, and report a last line without an end as incomplete.
    fn close_record(&mut self, core: &mut Core, at: usize, now: &Now) {
        let source = &mut self.sources[at];
        if let Some(filter) = &mut self.filter {
            filter.idle(source.generation(), now.wall, core.draft.events());
        }
        if let Some(line) = source.take_incomplete_line() {
            core.draft.incomplete(line, now.wall);
        }
    }

    /// Close what has waited long enough for more: records of several lines, last lines without an end.
    pub(in crate::tail) fn close_idle(&mut self, core: &mut Core, now: &Now) {
        for at in 0..self.sources.len() {
            let source = &self.sources[at];
            let idle = now.monotonic.saturating_sub(source.grown_at());
            let is_due = idle >= core.config().incomplete_after;
            if !core.is_held() && is_due && source.is_at_end() && self.is_waiting(source) {
                let status = source.status();
                self.close_record(core, at, now);
                self.write(core, at, now, status, &[]);
            }
        }
    }

    /// When [`Track::close_idle`] has something to do, by the monotonic clock.
    pub(in crate::tail) fn close_idle_at(&self, core: &Core) -> Option<Duration> {
        let waiting = self.sources.iter().filter(|source| source.is_at_end() && self.is_waiting(source));
        waiting.map(|source| source.grown_at() + core.config().incomplete_after).min()
    }

    /// Whether a record or the last line of a source waits for more and was not reported yet.
    fn is_waiting(&self, source: &Source) -> bool {
        let record = self.filter.as_ref().and_then(|filter| filter.waiting_record(source.generation()));
        record.is_some() || source.incomplete_line().is_some()
    }
}
