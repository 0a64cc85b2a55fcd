//! One segment as readers see it: an open file, how much of it is published, and a sparse index.
//!
//! The writer adds to it while readers read; a reader never looks past what is published.
//! The index of a segment that this run did not write is made when it is first read.

use super::Error;
use super::disk::Stored;
use super::fold::source_of;
use super::frame::{BATCH_TAG, Body};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use wire::codec::{BODY_LEN_MAX_BYTES, HEADER_LEN_BYTES};
use wire::event::Source;
use wire::id::Generation;

/// Events between two entries of the index, at least: what is read before the wanted place is little, and
/// 32 MiB of events have some 1,600 entries.
const INDEX_STEP: u64 = 128;

/// Bytes read at once when frames are looked through.
const WINDOW_LEN_BYTES: usize = 256 << 10;

/// The name of the segment whose first event has this sequence number.
#[must_use]
pub fn name(first: u64) -> String {
    format!("journal-{first:020}.log")
}

/// The sequence number in a segment's name; `None` for any other file.
#[must_use]
pub fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("journal-")?.strip_suffix(".log")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// A segment.
pub struct Segment {
    /// Sequence number of its first event.
    pub first: u64,
    file: Arc<dyn Stored>,
    table: Mutex<Option<Table>>,
}

/// What is known of a segment's content.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Published bytes.
    pub len: u64,
    /// Published events end before this sequence number.
    pub next: u64,
    /// Generations by which its events are attributed.
    pub sources: Arc<BTreeMap<Generation, Arc<Source>>>,
    index: Arc<Vec<(u64, u64)>>,
}

impl Table {
    /// Nothing is indexed yet.
    #[must_use]
    pub fn new(len: u64, next: u64) -> Table {
        Table { len, next, ..Table::default() }
    }

    /// A batch stands at this place.
    pub fn add_batch(&mut self, first: u64, at: u64) {
        if self.index.last().is_none_or(|(indexed, _)| first >= indexed + INDEX_STEP) {
            Arc::make_mut(&mut self.index).push((first, at));
        }
    }

    /// Events of this generation are attributed so.
    pub fn add_source(&mut self, generation: Generation, source: Source) {
        Arc::make_mut(&mut self.sources).insert(generation, Arc::new(source));
    }

    /// Where to begin looking for an event: at or before the batch that holds it.
    #[must_use]
    pub fn place(&self, sequence: u64) -> u64 {
        let after = self.index.partition_point(|(first, _)| *first <= sequence);
        after.checked_sub(1).map_or(0, |at| self.index[at].1)
    }
}

impl Segment {
    /// A segment of which this is known; `None`: to be looked through when first read.
    #[must_use]
    pub fn new(first: u64, file: Arc<dyn Stored>, table: Option<Table>) -> Segment {
        Segment { first, file, table: Mutex::new(table) }
    }

    /// Its file.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn Stored> {
        &self.file
    }

    /// Change what is published.
    pub fn publish(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        change(table.get_or_insert_default());
    }

    /// What is known now; looks the file through if that has not been done.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn table(&self) -> Result<Table, Error> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = &*table {
            return Ok(table.clone());
        }
        let scanned = self.scan()?;
        *table = Some(scanned.clone());
        Ok(scanned)
    }

    fn scan(&self) -> Result<Table, Error> {
        let len = self.file.size().map_err(Error::disk(format!("measure {}", name(self.first))))?;
        let mut table = Table::new(len, self.first);
        let mut window = Window::new(self.file.clone(), 0, len);
        while let Some((at, frame)) = window.frame()? {
            // A damaged frame ends what can be read of this segment; the reader counts what is missed.
            let Ok(Some(((_, tag), _))) = wire::codec::decode::<(u32, u8)>(frame) else { break };
            if tag == BATCH_TAG {
                let Ok(Some(((_, _, _, first), _))) =
                    wire::codec::decode::<(u32, u8, Generation, u64)>(frame)
                else {
                    break;
                };
                table.add_batch(first, at);
            } else if let Ok(Some(((_, body), _))) = wire::codec::decode::<(u32, Body)>(frame) {
                match body {
                    Body::Generation(checkpoint) => {
                        table.add_source(checkpoint.birth.generation, source_of(&checkpoint.birth));
                    }
                    Body::Born(birth) => table.add_source(birth.generation, source_of(&birth)),
                    Body::Head(_)
                    | Body::File(_)
                    | Body::Memory(..)
                    | Body::Calls(_)
                    | Body::HeadEnd
                    | Body::Batch(_)
                    | Body::Acknowledged { .. } => {}
                }
            }
        }
        table.next = u64::MAX;
        Ok(table)
    }
}

/// Goes through the frames of a file without holding more of it than a frame.
pub struct Window {
    file: Arc<dyn Stored>,
    /// Place of `bytes[0]`, in bytes.
    at: u64,
    end: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Window {
    /// From `at` to `end`, in bytes.
    #[must_use]
    pub fn new(file: Arc<dyn Stored>, at: u64, end: u64) -> Window {
        Window { file, at, end, bytes: Vec::new(), used: 0 }
    }

    /// The next frame by its length, unchecked, and its place; `None` if no whole frame is left.
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

    /// Go on at this place, in bytes.
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

    /// Make at least `len` unread bytes available, if the file has them.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        if self.bytes.len() - self.used >= len {
            return Ok(());
        }
        self.bytes.drain(..self.used);
        self.at += self.used as u64;
        self.used = 0;
        let have = self.bytes.len();
        let from = self.at + have as u64;
        let room = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX);
        let want = len.max(WINDOW_LEN_BYTES).saturating_sub(have).min(room);
        self.bytes.resize(have + want, 0);
        let got = self.file.read_at(&mut self.bytes[have..], from);
        let got = got.map_err(Error::disk("read a journal segment"))?;
        self.bytes.truncate(have + got);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_sequences_and_come_back() {
        assert!(name(9) < name(10) && name(u64::MAX).len() == "journal-.log".len() + 20);
        for first in [0, 7, u64::MAX] {
            assert_eq!(first_of(&name(first)), Some(first));
        }
        for other in ["lock", "journal-7.log", "journal-00000000000000000007.log.new"] {
            assert_eq!(first_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_index_leads_to_or_before_the_batch() {
        let mut table = Table::default();
        for (first, at) in [(0, 100), (10, 200), (2000, 300), (4000, 400)] {
            table.add_batch(first, at);
        }
        let places: Vec<u64> = [0, 10, 1999, 2000, 3999, 9000].iter().map(|s| table.place(*s)).collect();
        assert_eq!(places, [100, 100, 100, 300, 300, 400]);
    }
}
