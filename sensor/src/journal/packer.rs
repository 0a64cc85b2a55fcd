//! Packer: compresses the closed segments of a journal, one at a time, the oldest first.
//!
//! Shell. It works beside the writer and the readers: the writer waits for nothing but a rename, and a reader
//! that has the replaced file open reads on in it. Rule: nothing is compressed before the live segment has
//! the version of compressed journals, so that an older program refuses the journal.
//! Not here: the thread that calls it ([`super::packing`]), the format (`segments::packed`).

use super::columns::Columns;
use super::reader::Shared;
use super::sources::Sources;
use crate::segments::Error;
use crate::segments::disk::Disk;
use crate::segments::packed::pack::{self, Written, unfinished};
use crate::segments::segment::{Segment, name};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::version::JOURNAL;

/// Compresses closed segments.
pub struct Packer {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    /// First events of the segments that stay as they are.
    unfit: BTreeSet<u64>,
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A segment was dealt with; there may be more.
    Done,
    /// There is no segment to compress.
    Idle,
}

impl Packer {
    pub(super) fn new(disk: Arc<dyn Disk>, shared: Arc<Shared>) -> Packer {
        Packer { disk, shared, unfit: BTreeSet::new() }
    }

    /// Compresses the oldest closed segment that is not compressed, while `goes_on`.
    ///
    /// # Errors
    /// If the disk refuses: the segment is as it was, and the next call tries again.
    pub fn step(&mut self, goes_on: &dyn Fn() -> bool) -> Result<Step, Error> {
        let Some(segment) = self.next()? else { return Ok(Step::Idle) };
        let first = segment.first;
        match pack::pack(&*self.disk, first, Arc::clone(segment.file()), &Columns, goes_on)? {
            Written::Whole => self.replace(&segment)?,
            Written::Unfit => {
                self.unfit.insert(first);
            }
            Written::Interrupted => {}
        }
        Ok(Step::Done)
    }

    fn next(&mut self) -> Result<Option<Arc<Segment<Sources>>>, Error> {
        let mut closed = self.shared.segments.all();
        let Some(live) = closed.pop() else { return Ok(None) };
        if live.table()?.legend().version() != JOURNAL.written {
            return Ok(None);
        }
        self.unfit.retain(|unfit| closed.iter().any(|segment| segment.first == *unfit));
        let is_next = |segment: &Arc<Segment<Sources>>| {
            segment.file().packed().is_none() && !self.unfit.contains(&segment.first)
        };
        Ok(closed.into_iter().find(is_next))
    }

    /// Gives the compressed segment the name, and readers the file, of the segment.
    fn replace(&self, segment: &Segment<Sources>) -> Result<(), Error> {
        let (new, last) = (unfinished(segment.first), name(segment.first));
        let replaced = self.shared.segments.replace(segment.first, || {
            self.disk.rename(&new, &last).map_err(Error::disk(format!("rename {new}")))?;
            let packed = Segment::open(&self.disk, segment.first);
            Ok(Arc::new(packed.map_err(Error::disk(format!("open {last}")))?))
        });
        if !matches!(replaced, Ok(true)) {
            // Deleted meanwhile, or the disk refused. A leftover does no harm: recovery removes it.
            let _nothing_there = self.disk.remove(&new);
        }
        replaced?;
        self.disk.sync_names().map_err(Error::disk(format!("rename {new}")))
    }
}
