//! One generation of a file while it is read: its descriptor, its reading position, and the content before
//! that.
//!
//! Rule: every read starts with the last bytes of the previous read, in one system call; if they have
//! changed, nothing after them is used ([`content`]).
//! Not here: which file belongs to which path (`track`).

mod content;

use super::follow::{BEFORE_LEN_MAX_BYTES, Fingerprint, RecognitionMeans, same_file};
use super::lines::{Line, Splitter};
use super::notice::Reason;
use super::probe::{self, Stat};
use crate::journal::frame::{Checkpoint, Identity, Print, Status};
pub(super) use content::{CHUNK_LEN_BYTES, buffer};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::time::Duration;
use wire::id::Generation;

/// One generation of a file.
///
/// Invariants, asserted in debug builds after each change:
/// * `journalled.offset ≤ lines.start() ≤ lines.position()`: a restart reads every line again that was not
///   complete, and nothing is skipped.
/// * `journalled.offset` never decreases, and no event of `journalled.beyond` is before it.
/// * `tail` holds the bytes just before `lines.position()`, and no more than there are.
pub(super) struct Source {
    generation: Generation,
    identity: Identity,
    /// Device of the directory in which the file was found.
    directory: u64,
    /// `None` after a start, until the file is found again.
    file: Option<File>,
    /// What has become of its name; the journal has it with the next batch.
    status: Status,
    lines: Splitter,
    journalled: Journalled,
    /// Offset of the last line reported as incomplete.
    incomplete: Option<u64>,
    size: Size,
    /// Set while a copy is read in place of the file: the gap to report at its end.
    gap_at_end: Option<Reason>,
    /// Whether another followed path names it.
    is_named_elsewhere: bool,
    /// The bytes before the reading position.
    tail: Vec<u8>,
}

/// What the journal knows of a generation: where a restart continues.
struct Journalled {
    offset: u64,
    /// Lines before this were counted.
    counted_to: u64,
    /// The bytes before `offset`.
    before: Print,
    prefix: Print,
    /// Events at or after `offset` that are in the journal already.
    beyond: BTreeSet<(u64, u16)>,
}

/// Size of a file as last measured.
struct Size {
    len_bytes: u64,
    /// The longest that this generation was, in bytes: what is not read of that when it ends is lost.
    seen_bytes: u64,
    links: u32,
    /// When it last grew, by the monotonic clock.
    grown_at: Duration,
}

impl Size {
    fn update(&mut self, stat: &Stat, now: Duration) {
        if stat.size > self.len_bytes {
            self.grown_at = now;
        }
        (self.len_bytes, self.links) = (stat.size, stat.links);
    }

    /// This generation has so many bytes; a file that was written over does not count.
    fn confirm(&mut self, len_bytes: u64) {
        self.seen_bytes = self.seen_bytes.max(len_bytes);
    }
}

/// Reading position that a batch journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) generation: Generation,
    pub(super) status: Status,
    /// Where a restart continues, in bytes.
    pub(super) offset: u64,
    pub(super) counted_to: u64,
    pub(super) before: Print,
    /// Set if more of the beginning of the file is known than before.
    pub(super) prefix: Option<Print>,
    pub(super) incomplete: Option<u64>,
    /// The copy that is read in place of the file.
    pub(super) copy: Option<Identity>,
}

impl Source {
    /// The generation of a checkpoint; [`Source::attach`] adds the file.
    pub(super) fn new(checkpoint: &Checkpoint, means: RecognitionMeans, now: Duration) -> Source {
        let birth = &checkpoint.birth;
        let within_line = birth.within_line && checkpoint.offset == birth.offset;
        let lines = Splitter::new(checkpoint.offset, checkpoint.counted_to, within_line);
        Source {
            generation: birth.generation,
            identity: birth.identity,
            directory: birth.directory,
            file: None,
            status: checkpoint.status,
            lines: if means.holes { lines } else { lines.taking_holes_for_lines() },
            journalled: Journalled {
                offset: checkpoint.offset,
                counted_to: checkpoint.counted_to,
                before: checkpoint.before,
                prefix: checkpoint.prefix,
                beyond: checkpoint.beyond.iter().copied().collect(),
            },
            incomplete: checkpoint.incomplete,
            size: Size {
                len_bytes: checkpoint.offset,
                seen_bytes: checkpoint.offset,
                links: 1,
                grown_at: now,
            },
            gap_at_end: None,
            is_named_elsewhere: false,
            tail: Vec::new(),
        }
    }

    /// Continue in this file, which holds everything that was read.
    pub(super) fn attach(&mut self, file: File, stat: &Stat) -> io::Result<()> {
        self.tail = probe::read_before(&file, self.lines.position(), BEFORE_LEN_MAX_BYTES)?;
        self.file = Some(file);
        self.identity = stat.identity;
        (self.size.len_bytes, self.size.links) = (stat.size, stat.links);
        self.size.confirm(stat.size);
        self.check();
        Ok(())
    }

    /// Continue in this copy of the file; with a gap at its end if the file was cut after the copy. After an
    /// error, nothing has changed.
    pub(super) fn attach_copy(
        &mut self,
        copy: File,
        stat: &Stat,
        gap_at_end: Option<Reason>,
    ) -> io::Result<()> {
        self.attach(copy, stat)?;
        self.gap_at_end = gap_at_end;
        Ok(())
    }

    /// The path names another file now, or none.
    pub(super) fn rotated(&mut self) {
        self.status = Status::Rotated;
    }

    /// The path names this file again.
    pub(super) fn renamed_back(&mut self) {
        self.status = Status::Live;
    }

    pub(super) fn set_named_elsewhere(&mut self, is_named_elsewhere: bool) {
        self.is_named_elsewhere = is_named_elsewhere;
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn directory(&self) -> u64 {
        self.directory
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Another descriptor of the file.
    pub(super) fn clone_file(&self) -> Option<File> {
        self.file.as_ref().and_then(|file| file.try_clone().ok())
    }

    /// Whether it is this file, and not a copy of it.
    pub(super) fn is_file(&self, identity: &Identity) -> bool {
        self.gap_at_end.is_none() && same_file(&self.identity, identity)
    }

    /// The gap to report when the copy, which is read in place of the file, ends.
    pub(super) fn gap_at_end(&self) -> Option<Reason> {
        self.gap_at_end
    }

    pub(super) fn is_named_elsewhere(&self) -> bool {
        self.is_named_elsewhere
    }

    /// Offset of the next byte to read.
    pub(super) fn position(&self) -> u64 {
        self.lines.position()
    }

    /// Length of the file as last measured, in bytes.
    pub(super) fn len_bytes(&self) -> u64 {
        self.size.len_bytes
    }

    /// When it last grew, by the monotonic clock.
    pub(super) fn grown_at(&self) -> Duration {
        self.size.grown_at
    }

    /// Whether it had no name any more when it was last measured.
    pub(super) fn has_no_name(&self) -> bool {
        self.size.links == 0
    }

    /// Whether the file has no name any more, as of now.
    pub(super) fn is_deleted(&self) -> bool {
        let stat = self.file.as_ref().map(probe::stat_open);
        stat.is_some_and(|stat| stat.is_ok_and(|stat| stat.links == 0))
    }

    /// Whether the file was read to its end.
    pub(super) fn is_at_end(&self) -> bool {
        self.file.is_some() && self.lines.position() >= self.size.len_bytes
    }

    /// Whether there is more to read.
    pub(super) fn has_unread(&self) -> bool {
        self.file.is_some() && !self.is_at_end()
    }

    /// Bytes that were seen and are lost if it ends here.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.size.seen_bytes.saturating_sub(self.lines.position())
    }

    /// Bytes not read yet.
    pub(super) fn lag_bytes(&self) -> u64 {
        self.size.len_bytes.saturating_sub(self.lines.position())
    }

    /// Fingerprint of the file at the journalled position.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let Journalled { offset, before, prefix, .. } = self.journalled;
        Fingerprint { identity: self.identity, offset, prefix, before }
    }

    /// Fingerprint of the file at the reading position.
    pub(super) fn fingerprint_here(&self) -> Fingerprint {
        let before = Print::of(&self.tail);
        Fingerprint { offset: self.lines.position(), before, ..self.fingerprint() }
    }

    /// Split a chunk into lines, without its first `old` bytes. `take` gets each line, and whether it is
    /// counted for the first time. Returns how many NUL bytes were skipped.
    pub(super) fn split(&mut self, chunk: &[u8], old: usize, mut take: impl FnMut(Line<'_>, bool)) -> u64 {
        let counted_to = self.journalled.counted_to;
        self.lines.push(&chunk[old..], |line| take(line, line.offset >= counted_to));
        self.tail.clear();
        self.tail.extend_from_slice(&chunk[chunk.len().saturating_sub(BEFORE_LEN_MAX_BYTES)..]);
        self.check();
        self.lines.take_nul_bytes()
    }

    /// Offset and length of the last line if it has no end and was not reported yet.
    pub(super) fn incomplete_line(&self) -> Option<(u64, u64)> {
        let (start, len) = (self.lines.start(), self.lines.incomplete_len_bytes());
        (len > 0 && self.incomplete != Some(start)).then_some((start, len))
    }

    /// As [`Source::incomplete_line`]; the line is reported then, so each comes once.
    pub(super) fn take_incomplete_line(&mut self) -> Option<(u64, u64)> {
        let line = self.incomplete_line()?;
        self.incomplete = Some(line.0);
        Some(line)
    }

    /// Where a restart would continue: at the record that waits for more lines, if any, or at the last line
    /// without an end.
    pub(super) fn resume_offset(&self, record: Option<u64>) -> u64 {
        record.map_or(self.lines.start(), |record| record.min(self.lines.start()))
    }

    /// Whether the journal already has this event.
    pub(super) fn has_journalled(&self, offset: u64, number: u16) -> bool {
        self.journalled.beyond.contains(&(offset, number))
    }

    /// Whether the journal does not know yet that a restart continues at `offset`, or of this status.
    pub(super) fn is_news(&self, offset: u64, status: Status) -> bool {
        let settled = matches!(status, Status::Finished | Status::Over) && status != self.status;
        offset != self.journalled.offset || self.lines.start() > self.journalled.counted_to || settled
    }

    /// What to journal so that a restart continues at `offset`. `chunk` ends at the reading position, or is
    /// empty.
    pub(super) fn progress(&self, offset: u64, status: Status, chunk: &[u8]) -> Progress {
        Progress {
            generation: self.generation,
            status,
            offset,
            counted_to: self.lines.start().max(self.journalled.counted_to),
            before: self.print_before(offset, chunk),
            prefix: self.longer_prefix(),
            incomplete: self.incomplete,
            copy: self.gap_at_end.map(|_| self.identity),
        }
    }

    /// The journal has this progress.
    pub(super) fn committed(&mut self, progress: &Progress) {
        debug_assert_eq!(progress.generation, self.generation, "a batch of another generation");
        debug_assert!(progress.offset >= self.journalled.offset, "the journalled offset decreased");
        let journalled = &mut self.journalled;
        self.status = progress.status;
        (journalled.offset, journalled.counted_to) = (progress.offset, progress.counted_to);
        journalled.before = progress.before;
        journalled.prefix = progress.prefix.unwrap_or(journalled.prefix);
        journalled.beyond.retain(|(offset, _)| *offset >= progress.offset);
        self.check();
    }

    fn check(&self) {
        let (start, position) = (self.lines.start(), self.lines.position());
        debug_assert!(self.journalled.offset <= start, "a restart would skip what was not journalled");
        debug_assert!(start <= position, "a line starts beyond what was read");
        debug_assert!(self.tail.len() as u64 <= position, "more bytes before the position than there are");
    }
}

#[cfg(test)]
mod tests;
