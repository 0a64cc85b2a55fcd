//! One segment as readers see it: an open file, how much of it is published, and a sparse index.
//!
//! The index of a segment that this run did not write is made when it is first read.

use super::Error;
use super::frame::{BATCH_TAG, Body};
use crate::journal::disk::Stored;
use crate::journal::segment::Window;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use wire::id::SensorKey;

/// Events between two entries of the index, at least.
const INDEX_STEP: u64 = 1024;

/// The name of the segment whose first event has this number.
#[must_use]
pub fn name(first: u64) -> String {
    format!("events-{first:020}.log")
}

/// The number in a segment's name; `None` for any other file.
#[must_use]
pub fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("events-")?.strip_suffix(".log")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// A segment.
pub struct Segment {
    /// Number of its first event.
    pub first: u64,
    file: Arc<dyn Stored>,
    table: Mutex<Option<Table>>,
}

/// What is known of a segment's content.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Published bytes.
    pub len: u64,
    /// How far each sensor's events were stored when it began.
    pub members: Arc<BTreeMap<SensorKey, u64>>,
    index: Arc<Vec<(u64, u64)>>,
}

impl Table {
    /// A segment that holds nothing but its head.
    #[must_use]
    pub fn new(len: u64, members: BTreeMap<SensorKey, u64>) -> Table {
        Table { len, members: Arc::new(members), index: Arc::default() }
    }

    /// A batch stands at this place.
    pub fn add_batch(&mut self, first: u64, at: u64) {
        if self.index.last().is_none_or(|(indexed, _)| first >= indexed + INDEX_STEP) {
            Arc::make_mut(&mut self.index).push((first, at));
        }
    }

    /// Where to begin looking for an event: at or before the batch that holds it.
    #[must_use]
    pub fn place(&self, number: u64) -> u64 {
        let after = self.index.partition_point(|(first, _)| *first <= number);
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
        let mut table = Table::new(len, BTreeMap::new());
        let (mut members, mut is_head) = (BTreeMap::new(), true);
        let mut window = Window::new(Arc::clone(&self.file), 0, len);
        while let Some((at, frame)) = window.frame()? {
            // A damaged frame ends what can be read of this segment; the reader counts what is missed.
            let Ok(Some(((_, tag, first), _))) = wire::codec::decode::<(u32, u8, u64)>(frame) else {
                // Frames without a number after their tag are short.
                is_head = false;
                continue;
            };
            if tag == BATCH_TAG {
                is_head = false;
                table.add_batch(first, at);
            } else if is_head
                && let Ok(Some(((_, Body::Member(member)), _))) = wire::codec::decode::<(u32, Body)>(frame)
            {
                members.insert(member.sensor, member.next);
            }
        }
        table.members = Arc::new(members);
        Ok(table)
    }
}
