//! Frame iterator over the file of a segment, with a read buffer.
//!
//! Rule: frames are delimited by their length alone; the caller checks their content.
//! Not here: the content of frames.

use super::Error;
use super::disk::Stored;
use std::sync::Arc;
use wire::codec::{BODY_LEN_MAX_BYTES, HEADER_LEN_BYTES};

/// Size of the read buffer, in bytes.
const WINDOW_LEN_BYTES: usize = 256 << 10;

/// Iterates over the frames of a file, with a buffer of `WINDOW_LEN_BYTES`, or of one frame if that is
/// longer.
pub struct Window {
    file: Arc<dyn Stored>,
    /// Offset of `bytes[0]` in the file, in bytes.
    at: u64,
    end: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Window {
    /// Creates an iterator from `at` to `end`, in bytes.
    #[must_use]
    pub fn new(file: Arc<dyn Stored>, at: u64, end: u64) -> Window {
        Window { file, at, end, bytes: Vec::new(), used: 0 }
    }

    /// Returns the next frame by its length, unchecked, and its offset; `None` if no whole frame is left.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn frame(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        self.fill(HEADER_LEN_BYTES)?;
        let Some(header) = self.bytes.get(self.used..self.used + 4) else { return Ok(None) };
        let len = u32::from_le_bytes(header.try_into().expect("four bytes")) as usize;
        if len == 0 || len > BODY_LEN_MAX_BYTES {
            return Ok(None);
        }
        let whole = HEADER_LEN_BYTES + len;
        self.fill(whole)?;
        let from = self.used;
        if self.bytes.len() < from + whole {
            return Ok(None);
        }
        self.used += whole;
        Ok(Some((self.at + from as u64, &self.bytes[from..from + whole])))
    }

    /// Whether a damaged frame is followed by others: in a compressed segment the lengths of frames are right.
    #[must_use]
    pub fn goes_on_after_damage(&self) -> bool {
        self.file.packed().is_some()
    }

    /// Continues at this offset, in bytes.
    pub fn seek(&mut self, at: u64) {
        let within = at.checked_sub(self.at).and_then(|used| usize::try_from(used).ok());
        match within.filter(|used| *used <= self.bytes.len()) {
            Some(used) => self.used = used,
            None => {
                self.bytes.clear();
                (self.at, self.used) = (at, 0);
            }
        }
    }

    /// Makes at least `len` unread bytes available, if the file has them.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        if self.bytes.len() - self.used >= len {
            return Ok(());
        }
        self.bytes.drain(..self.used);
        self.at += self.used as u64;
        self.used = 0;
        let have = self.bytes.len();
        let from = self.at + have as u64;
        if let Some(packed) = self.file.packed() {
            return if have == 0 { self.fill_block(packed.block(from)) } else { Ok(()) };
        }
        let room = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX);
        let want = len.max(WINDOW_LEN_BYTES).saturating_sub(have).min(room);
        self.bytes.resize(have + want, 0);
        let got = self.file.read_at(&mut self.bytes[have..], from);
        let got = got.map_err(Error::disk("read a segment"))?;
        self.bytes.truncate(have + got);
        Ok(())
    }

    /// Takes a block of a compressed segment as the buffer: it has whole frames, so nothing else is in it.
    fn fill_block(&mut self, block: std::io::Result<Option<(u64, Vec<u8>)>>) -> Result<(), Error> {
        let from = self.at;
        if let Some((start, frames)) = block.map_err(Error::disk("read a segment"))? {
            (self.at, self.used) = (start, usize::try_from(from - start).unwrap_or(usize::MAX));
            self.bytes = frames;
        }
        Ok(())
    }
}
