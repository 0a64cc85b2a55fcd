//! One generation of one file while it is read: the descriptor, the place, and what stood before it.
//!
//! Rule: every reading begins with the last bytes of the reading before, in one call to the system; if
//! they are not what was read then, nothing of what follows is used.
//! Not here: which file it is for which path ([`super::track`]).

use super::follow::{self, BEFORE_LEN_MAX_BYTES, Content, Known, Means, PREFIX_LEN_MAX_BYTES};
use super::lines::Splitter;
use super::notice::Reason;
use super::probe::{self, Stat};
use crate::journal::frame::{Checkpoint, Identity, Print, Status};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use wire::id::Generation;

/// Bytes read at once: large enough that calls to the system cost nothing, small enough to stay in the
/// processor's cache while it is cut and filtered.
pub(super) const CHUNK_LEN_BYTES: usize = 256 << 10;

/// What a look at a file gave: the buffer holds the bytes before the place of reading up to `old`, then
/// the new ones up to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) content: Content,
    pub(super) old: usize,
    pub(super) end: usize,
}

/// A buffer for [`Source::look`].
pub(super) fn buffer() -> Vec<u8> {
    vec![0; BEFORE_LEN_MAX_BYTES + CHUNK_LEN_BYTES]
}

/// One generation.
pub(super) struct Source {
    pub(super) generation: Generation,
    /// `None`: to be found again.
    pub(super) file: Option<File>,
    pub(super) identity: Identity,
    pub(super) directory: u64,
    pub(super) status: Status,
    pub(super) lines: Splitter,
    /// Where a new start would go on, as the journal knows.
    pub(super) resume: u64,
    pub(super) counted_to: u64,
    pub(super) before: Print,
    pub(super) prefix: Print,
    /// The last line told as incomplete.
    pub(super) incomplete: Option<u64>,
    /// Events beyond `resume` that the journal holds already.
    pub(super) beyond: BTreeSet<(u64, u16)>,
    /// It is read from a copy; the gap to be told when that is read.
    pub(super) ending: Option<Reason>,
    pub(super) size: u64,
    /// The longest it was seen to be, in bytes: what is not read of that when it ends is lost.
    pub(super) seen_len: u64,
    pub(super) links: u32,
    /// Another path that is followed names it.
    pub(super) is_named_elsewhere: bool,
    /// When it last grew, by the monotonic clock.
    pub(super) grown_at: Duration,
    /// The bytes before the place of reading.
    tail: Vec<u8>,
}

impl Source {
    /// Go on from a checkpoint; the file is given by [`Source::attach`].
    pub(super) fn new(checkpoint: &Checkpoint, means: Means, now: Duration) -> Source {
        let birth = &checkpoint.birth;
        let within_line = birth.within_line && checkpoint.offset == birth.offset;
        let lines = Splitter::new(checkpoint.offset, checkpoint.counted_to, within_line);
        Source {
            generation: birth.generation,
            file: None,
            identity: birth.identity,
            directory: birth.directory,
            status: checkpoint.status,
            lines: if means.holes { lines } else { lines.taking_holes_for_lines() },
            resume: checkpoint.offset,
            counted_to: checkpoint.counted_to,
            before: checkpoint.before,
            prefix: checkpoint.prefix,
            incomplete: checkpoint.incomplete,
            beyond: checkpoint.beyond.iter().copied().collect(),
            ending: None,
            size: checkpoint.offset,
            seen_len: checkpoint.offset,
            links: 1,
            is_named_elsewhere: false,
            grown_at: now,
            tail: Vec::new(),
        }
    }

    /// Read on from this file, in which everything that was read stands.
    pub(super) fn attach(&mut self, file: File, stat: &Stat) -> io::Result<()> {
        self.tail = probe::read_before(&file, self.lines.position(), BEFORE_LEN_MAX_BYTES)?;
        self.file = Some(file);
        (self.identity, self.size, self.links) = (stat.identity, stat.size, stat.links);
        self.seen_len = self.seen_len.max(stat.size);
        Ok(())
    }

    /// What is remembered of the file, as of the last journalled place.
    pub(super) fn known(&self) -> Known {
        Known { identity: self.identity, offset: self.resume, prefix: self.prefix, before: self.before }
    }

    /// What is remembered of the file, as of the place of reading.
    pub(super) fn known_here(&self) -> Known {
        let before = Print::of(&self.tail);
        Known { offset: self.lines.position(), before, ..self.known() }
    }

    /// Whether everything there is was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.file.is_some() && self.lines.position() >= self.size
    }

    /// Bytes that were seen and never will be read, if it ends here.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.seen_len.saturating_sub(self.lines.position())
    }

    /// Bytes not read yet.
    pub(super) fn lag_bytes(&self) -> u64 {
        self.size.saturating_sub(self.lines.position())
    }

    /// Whether the file has no name any more, as of now.
    pub(super) fn is_deleted(&self) -> bool {
        let stat = self.file.as_ref().map(probe::stat_open);
        stat.is_some_and(|stat| stat.is_ok_and(|stat| stat.links == 0))
    }

    /// See how long the file is now. What the system refuses to tell stays as it was.
    pub(super) fn measure(&mut self, now: Duration) {
        if let Some(Ok(stat)) = self.file.as_ref().map(probe::stat_open) {
            if stat.size > self.size {
                self.grown_at = now;
            }
            (self.size, self.links) = (stat.size, stat.links);
            if stat.size > self.seen_len && self.is_what_was_read().unwrap_or(false) {
                self.seen_len = stat.size;
            }
        }
    }

    fn is_what_was_read(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        Ok(probe::read_before(file, self.lines.position(), self.tail.len())? == self.tail
            && self.prefix_fits()?)
    }

    /// Look for more.
    pub(super) fn look(&mut self, buffer: &mut [u8], means: Means, now: Duration) -> io::Result<Look> {
        let nothing = |content| Ok(Look { content, old: 0, end: 0 });
        let Some(file) = &self.file else { return nothing(Content::Same) };
        let stat = probe::stat_open(file)?;
        let position = self.lines.position();
        if stat.size > self.size {
            self.grown_at = now;
        }
        (self.size, self.links) = (stat.size, stat.links);
        if stat.size < position {
            return nothing(Content::Shrunk);
        }
        if stat.size == position && !means.content {
            return nothing(Content::Same);
        }
        let old = self.tail.len();
        let end = read_some(file, buffer, position - old as u64)?;
        if end < old {
            // It shrank between the look and the reading.
            return nothing(Content::Shrunk);
        }
        // Lines may be alike at their ends; the beginning of the file has to be the same, too.
        let fits = buffer[..old] == self.tail[..] && self.prefix_fits()?;
        let content = follow::content(position, position + (end - old) as u64, Some(fits), means);
        if matches!(content, Content::Same | Content::More) {
            self.seen_len = self.seen_len.max(stat.size);
        }
        Ok(Look { content, old, end })
    }

    /// The chunk was cut into lines: remember its end.
    pub(super) fn keep_tail(&mut self, buffer: &[u8]) {
        self.tail.clear();
        self.tail.extend_from_slice(&buffer[buffer.len().saturating_sub(BEFORE_LEN_MAX_BYTES)..]);
    }

    /// The print of what stands before `offset`; `buffer` ends at the place of reading, or is empty.
    pub(super) fn print_before(&self, offset: u64, buffer: &[u8]) -> Print {
        if offset == self.resume {
            return self.before;
        }
        let len = BEFORE_LEN_MAX_BYTES.min(usize::try_from(offset).unwrap_or(usize::MAX));
        // Nothing is held of what is not read yet.
        let back = self.lines.position().checked_sub(offset).and_then(|back| usize::try_from(back).ok());
        for held in [&self.tail[..], buffer] {
            let end = back.and_then(|back| held.len().checked_sub(back));
            if let Some(bytes) = end.and_then(|end| Some(&held[end.checked_sub(len)?..end])) {
                return Print::of(bytes);
            }
        }
        // Only reached when a record of several chunks ends. Without these bytes the print is empty, and
        // the beginning of the file alone tells its content.
        let read = self.file.as_ref().and_then(|file| probe::read_before(file, offset, len).ok());
        Print::of(&read.unwrap_or_default())
    }

    fn prefix_fits(&self) -> io::Result<bool> {
        let mut bytes = [0; PREFIX_LEN_MAX_BYTES];
        let bytes = &mut bytes[..usize::from(self.prefix.len).min(PREFIX_LEN_MAX_BYTES)];
        let Some(file) = &self.file else { return Ok(true) };
        let got = read_some(file, bytes, 0)?;
        Ok(self.prefix.fits(&bytes[..got]))
    }

    /// The print of the beginning of the file, if more of it is known than before.
    pub(super) fn longer_prefix(&self) -> Option<Print> {
        let known = usize::from(self.prefix.len);
        let read = usize::try_from(self.lines.position()).unwrap_or(usize::MAX).min(PREFIX_LEN_MAX_BYTES);
        if known >= read {
            return None;
        }
        let bytes = probe::read(self.file.as_ref()?, 0, read).ok()?;
        (bytes.len() > known && self.prefix.fits(&bytes[..known])).then(|| Print::of(&bytes))
    }
}

/// Fill the buffer as far as the file goes.
fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
