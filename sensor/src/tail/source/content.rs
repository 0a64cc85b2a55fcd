//! Content of a source's file: its size, the next chunk, and the prints by which it is recognised.
//!
//! Not here: the decision what has become of the file ([`follow`]).

use super::Source;
use crate::journal::frame::Print;
use crate::tail::follow::{self, BEFORE_LEN_MAX_BYTES, Content, PREFIX_LEN_MAX_BYTES, RecognitionMeans};
use crate::tail::probe;
use std::io;
use std::time::Duration;

/// Bytes read at once: large enough that system calls cost nothing, small enough to stay in the
/// processor's cache while they are split and filtered.
pub(in crate::tail) const CHUNK_LEN_BYTES: usize = 256 << 10;

/// Result of a read: the buffer holds the bytes before the reading position up to `old`, then the new ones
/// up to `end`.
#[derive(Clone, Copy, Debug)]
pub(in crate::tail) struct Chunk {
    pub(in crate::tail) content: Content,
    pub(in crate::tail) old: usize,
    pub(in crate::tail) end: usize,
}

/// A buffer for [`Source::read_chunk`].
pub(in crate::tail) fn buffer() -> Vec<u8> {
    vec![0; BEFORE_LEN_MAX_BYTES + CHUNK_LEN_BYTES]
}

impl Source {
    /// Measure the file without reading it. If that fails, the next read reports why.
    pub(in crate::tail) fn measure(&mut self, now: Duration) {
        let Some(Ok(stat)) = self.file.as_ref().map(probe::stat_open) else { return };
        self.size.update(&stat, now);
        if stat.size > self.size.seen_bytes && self.is_unchanged().unwrap_or(false) {
            self.size.confirm(stat.size);
        }
    }

    fn is_unchanged(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        Ok(probe::read_before(file, self.lines.position(), self.tail.len())? == self.tail
            && self.prefix_fits()?)
    }

    /// Read the next bytes of the file; [`Source::split`] takes them.
    pub(in crate::tail) fn read_chunk(
        &mut self,
        buffer: &mut [u8],
        means: RecognitionMeans,
        now: Duration,
    ) -> io::Result<Chunk> {
        let empty = |content| Ok(Chunk { content, old: 0, end: 0 });
        let Some(file) = &self.file else { return empty(Content::Same) };
        let stat = probe::stat_open(file)?;
        let position = self.lines.position();
        self.size.update(&stat, now);
        if stat.size < position {
            return empty(Content::Shrunk);
        }
        if stat.size == position && !means.content {
            return empty(Content::Same);
        }
        let old = self.tail.len();
        let end = probe::read_into(file, buffer, position - old as u64)?;
        if end < old {
            // It shrank between the measurement and the read.
            return empty(Content::Shrunk);
        }
        // The ends of lines may be alike; so the beginning of the file must be the same, too.
        let fits = buffer[..old] == self.tail[..] && self.prefix_fits()?;
        let content = follow::content(position, position + (end - old) as u64, Some(fits), means);
        if matches!(content, Content::Same | Content::More) {
            self.size.confirm(stat.size);
        }
        Ok(Chunk { content, old, end })
    }

    /// The print of the bytes before `offset`.
    pub(super) fn print_before(&self, offset: u64, chunk: &[u8]) -> Print {
        if offset == self.journalled.offset {
            return self.journalled.before;
        }
        let len = BEFORE_LEN_MAX_BYTES.min(usize::try_from(offset).unwrap_or(usize::MAX));
        // What is not read yet is in neither buffer.
        let back = self.lines.position().checked_sub(offset).and_then(|back| usize::try_from(back).ok());
        for held in [&self.tail[..], chunk] {
            let end = back.and_then(|back| held.len().checked_sub(back));
            if let Some(bytes) = end.and_then(|end| Some(&held[end.checked_sub(len)?..end])) {
                return Print::of(bytes);
            }
        }
        // Only reached when a record of several chunks ends. If the read fails the print is empty, and only
        // the beginning of the file identifies its content.
        let read = self.file.as_ref().and_then(|file| probe::read_before(file, offset, len).ok());
        Print::of(&read.unwrap_or_default())
    }

    fn prefix_fits(&self) -> io::Result<bool> {
        let prefix = self.journalled.prefix;
        let mut bytes = [0; PREFIX_LEN_MAX_BYTES];
        let bytes = &mut bytes[..usize::from(prefix.len).min(PREFIX_LEN_MAX_BYTES)];
        let Some(file) = &self.file else { return Ok(true) };
        let got = probe::read_into(file, bytes, 0)?;
        Ok(prefix.fits(&bytes[..got]))
    }

    /// The print of the beginning of the file, if more of it was read than the journal knows.
    pub(super) fn longer_prefix(&self) -> Option<Print> {
        let prefix = self.journalled.prefix;
        let known = usize::from(prefix.len);
        let read = usize::try_from(self.lines.position()).unwrap_or(usize::MAX).min(PREFIX_LEN_MAX_BYTES);
        if known >= read {
            return None;
        }
        let bytes = probe::read(self.file.as_ref()?, 0, read).ok()?;
        (bytes.len() > known && prefix.fits(&bytes[..known])).then(|| Print::of(&bytes))
    }
}
