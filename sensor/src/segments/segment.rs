//! Segment as readers see it: an open file, its published length, and a sparse index.
//!
//! The writer appends while readers read; a reader never reads beyond the published length. The index of a
//! segment from an earlier run is built at the first read.

use super::disk::{Disk, Stored};
use super::packed::Codec;
use super::packed::directory::Directory;
use super::packed::file;
use super::window::Window;
use super::{Error, chain};
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, PoisonError};

/// Events between two entries of the index, at least: little is read before the requested position, and 32
/// MiB of events have about 1,600 entries.
const INDEX_STEP: u64 = 128;

/// Name of the segment whose first event has this number.
#[must_use]
pub fn name(first: u64) -> String {
    format!("events-{first:020}.log")
}

/// Numbers of the first events of the segments with these names, in ascending order; other files are skipped.
#[must_use]
pub fn firsts(names: &[String]) -> Vec<u64> {
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
    firsts.sort_unstable();
    firsts
}

fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("events-")?.strip_suffix(".log")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// Writes the head of a new segment. When the head is durable, the file gets its name and replaces any file
/// of that name.
///
/// # Errors
/// If the disk refuses.
pub fn create(
    disk: &dyn Disk,
    first: u64,
    write_head: impl FnOnce(&dyn Stored) -> Result<(), Error>,
) -> Result<Arc<dyn Stored>, Error> {
    let (new, last) = (format!("{}.new", name(first)), name(first));
    let write = || {
        let what = || Error::disk(format!("begin {last}"));
        let file = disk.create(&new).map_err(what())?;
        write_head(&*file)?;
        let named = file.sync().and_then(|()| disk.rename(&new, &last)).and_then(|()| disk.sync_names());
        named.map_err(what())?;
        Ok(file)
    };
    write().inspect_err(|_| {
        // A leftover does no harm: recovery removes it.
        let _nothing_there = disk.remove(&new);
    })
}

/// Opens a segment, compressed or not.
///
/// # Errors
/// Any I/O error.
pub fn open(
    disk: &Arc<dyn Disk>,
    first: u64,
    codec: Option<&'static dyn Codec>,
) -> std::io::Result<Arc<dyn Stored>> {
    match codec {
        Some(codec) => file::open(disk, &name(first), codec),
        None => disk.open(&name(first)),
    }
}

/// Deletes segments; a missing file is no error.
///
/// # Errors
/// If the disk refuses; some segments may be deleted by then.
pub fn delete(disk: &dyn Disk, firsts: &[u64]) -> Result<(), Error> {
    for first in firsts {
        match disk.remove(&name(*first)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::disk(format!("remove {}", name(*first)))(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// What readers of a segment need besides the positions of its events; collected from its other frames.
pub trait Legend: Clone + Default {
    type Body: DeserializeOwned;
    /// The codec of compressed segments; `None` where this log has none.
    const CODEC: Option<&'static dyn Codec>;

    /// Collects from a frame of the segment.
    fn note(&mut self, body: &Self::Body);
}

pub struct Segment<L> {
    /// Number of the first event.
    pub first: u64,
    file: Arc<dyn Stored>,
    table: Mutex<Option<Table<L>>>,
}

/// Published length, legend and index of a segment.
#[derive(Clone, Debug, Default)]
pub struct Table<L> {
    /// Published bytes.
    pub len: u64,
    legend: Arc<L>,
    index: Arc<Vec<(u64, u64)>>,
}

impl<L: Legend> Table<L> {
    /// A table without indexed events.
    #[must_use]
    pub fn new(len: u64, legend: L) -> Table<L> {
        Table { len, legend: Arc::new(legend), index: Arc::default() }
    }

    /// The table of a compressed segment; `None` where its directory was lost.
    fn of(directory: &Directory) -> Option<Table<L>> {
        let (packed, len) = directory.legend.as_ref()?;
        let frames = zstd::bulk::decompress(packed, usize::try_from(*len).ok()?).ok()?;
        let mut table = Table::new(directory.len_bytes(), L::default());
        let mut rest = frames.as_slice();
        while let Some(len) = wire::codec::frame_len(rest) {
            let frame = rest.get(..len)?;
            table.legend_mut().note(&chain::body(frame)?);
            rest = &rest[len..];
        }
        for entry in &directory.entries {
            Arc::make_mut(&mut table.index).push((entry.extent.first, entry.extent.at));
        }
        Some(table)
    }

    #[must_use]
    pub fn legend(&self) -> &Arc<L> {
        &self.legend
    }

    /// Access to the legend for changes.
    pub fn legend_mut(&mut self) -> &mut L {
        Arc::make_mut(&mut self.legend)
    }

    /// Adds a batch at this position to the index, unless it is too near to the last entry.
    pub fn add_batch(&mut self, first: u64, at: u64) {
        if self.index.last().is_none_or(|(indexed, _)| first >= indexed + INDEX_STEP) {
            Arc::make_mut(&mut self.index).push((first, at));
        }
    }

    /// Returns the position where the search for an event starts: at or before the batch that holds it.
    #[must_use]
    pub fn place(&self, number: u64) -> u64 {
        let after = self.index.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).map_or(0, |at| self.index[at].1)
    }
}

impl<L: Legend> Segment<L> {
    /// Creates a segment with this table; `None`: the first read scans the file.
    #[must_use]
    pub fn new(first: u64, file: Arc<dyn Stored>, table: Option<Table<L>>) -> Segment<L> {
        Segment { first, file, table: Mutex::new(table) }
    }

    /// Opens a segment; the first read scans the file.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn open(disk: &Arc<dyn Disk>, first: u64) -> std::io::Result<Segment<L>> {
        Ok(Segment::new(first, open(disk, first, L::CODEC)?, None))
    }

    #[must_use]
    pub fn file(&self) -> &Arc<dyn Stored> {
        &self.file
    }

    /// The length of its frames, in bytes.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn size(&self) -> Result<u64, Error> {
        self.file.size().map_err(Error::disk(format!("measure {}", name(self.first))))
    }

    /// The length of its file on the disk, in bytes.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn stored_len(&self) -> Result<u64, Error> {
        match self.file.packed() {
            Some(packed) => packed.stored_len().map_err(Error::disk(format!("measure {}", name(self.first)))),
            None => self.size(),
        }
    }

    /// Changes the published table.
    pub fn publish(&self, change: impl FnOnce(&mut Table<L>)) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        change(table.get_or_insert_default());
    }

    /// Returns the current table; scans the file if that has not been done.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn table(&self) -> Result<Table<L>, Error> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = &*table {
            return Ok(table.clone());
        }
        let scanned = self.scan()?;
        *table = Some(scanned.clone());
        Ok(scanned)
    }

    fn scan(&self) -> Result<Table<L>, Error> {
        if let Some(packed) = self.file.packed() {
            let directory = packed.directory().map_err(Error::disk(format!("read {}", name(self.first))))?;
            if let Some(table) = Table::of(&directory) {
                return Ok(table);
            }
        }
        let mut table = Table::new(self.size()?, L::default());
        let mut window = Window::new(Arc::clone(&self.file), 0, table.len);
        while let Some((at, frame)) = window.frame()? {
            match chain::batch_first(frame) {
                Ok(Some(first)) => table.add_batch(first, at),
                Ok(None) => {
                    if let Some(body) = chain::body(frame) {
                        table.legend_mut().note(&body);
                    }
                }
                // The reader counts what is missed with a damaged frame.
                Err(_) => {}
            }
        }
        Ok(table)
    }
}

/// The legend of a log whose frames are all events.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(super) struct NoLegend;

#[cfg(test)]
impl Legend for NoLegend {
    type Body = ();
    const CODEC: Option<&'static dyn Codec> = None;

    fn note(&mut self, (): &()) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_numbers_and_come_back() {
        assert!(name(9) < name(10) && name(u64::MAX).len() == "events-.log".len() + 20);
        let names = |firsts: &[u64]| firsts.iter().map(|first| name(*first)).collect::<Vec<_>>();
        assert_eq!(firsts(&names(&[u64::MAX, 7, 0])), [0, 7, u64::MAX]);
        for other in ["lock", "events-7.log", "events-00000000000000000007.log.new"] {
            assert_eq!(first_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_index_leads_to_or_before_the_batch() {
        let mut table = Table::<NoLegend>::default();
        for (first, at) in [(0, 100), (10, 200), (2000, 300), (4000, 400)] {
            table.add_batch(first, at);
        }
        let places: Vec<u64> = [0, 10, 1999, 2000, 3999, 9000].iter().map(|s| table.place(*s)).collect();
        assert_eq!(places, [100, 100, 100, 300, 300, 400]);
    }
}
