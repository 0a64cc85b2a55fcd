//! Draft of the next batch: what was found in a generation since its last batch, and the counts that go
//! with it.
//!
//! Pure. Rule: a notice and its count are added together.
//! Not here: joining events into calls and writing the batch ([`super::core`]).

use super::lines::Line;
use super::notice::{self, Gap};
use super::source::Progress;
use crate::journal::frame::{Batch, Record};
use log_filters::found::{Change, Found};
use wire::id::Generation;
use wire::time::Time;

/// Events, notices and counts that are not in a batch yet.
pub(super) struct Draft {
    found: Vec<Found>,
    batch: Batch,
}

impl Draft {
    pub(super) fn new() -> Draft {
        Draft { found: Vec::new(), batch: Batch::empty(Generation(0)) }
    }

    /// The events, for an interpreter to append to.
    pub(super) fn events(&mut self) -> &mut Vec<Found> {
        &mut self.found
    }

    /// What the filter remembers and forgets, for an interpreter to append to.
    pub(super) fn changes(&mut self) -> &mut Vec<Change> {
        &mut self.batch.changes
    }

    pub(super) fn has_events(&self) -> bool {
        !self.found.is_empty()
    }

    /// Leave out events that the journal has already.
    pub(super) fn leave_out(&mut self, has_journalled: impl Fn(u64, u16) -> bool) {
        self.found.retain(|found| !has_journalled(found.offset, found.number));
    }

    /// A line is read; it is counted unless it was before.
    pub(super) fn line(&mut self, line: &Line<'_>, is_new: bool, seen: Time) {
        let counts = &mut self.batch.counts;
        if let Some(cut) = line.cut {
            counts.oversize += u64::from(is_new);
            self.found.push(notice::oversize(line.offset, seen, cut));
        }
        counts.lines += u64::from(is_new);
    }

    pub(super) fn nul_bytes(&mut self, skipped: u64) {
        self.batch.counts.nul_bytes += skipped;
    }

    /// Lines that no rule took since the last batch.
    pub(super) fn rejects(&mut self, rejects: u64) {
        self.batch.counts.rejects = rejects;
    }

    pub(super) fn incomplete(&mut self, (offset, len_bytes): (u64, u64), seen: Time) {
        self.batch.counts.incomplete += 1;
        self.found.push(notice::incomplete(offset, seen, len_bytes));
    }

    pub(super) fn gap(&mut self, gap: &Gap, offset: u64, seen: Time) {
        let counts = &mut self.batch.counts;
        counts.gaps += 1;
        counts.gap_bytes += gap.lost_bytes;
        counts.gaps_unknown += u64::from(gap.may_be_more());
        self.found.push(gap.notice(offset, seen));
    }

    pub(super) fn quarantine(&mut self, offset: u64, seen: Time, filter: &str, bytes_per_sec: u64) {
        self.found.push(notice::quarantine(offset, seen, filter, bytes_per_sec));
    }

    /// The batch of all this, up to this progress; the draft is empty then.
    pub(super) fn finish(
        &mut self,
        progress: &Progress,
        seen: Time,
        record: impl FnMut(Found) -> Record,
    ) -> Batch {
        let mut batch = std::mem::replace(&mut self.batch, Batch::empty(progress.generation));
        batch.generation = progress.generation;
        batch.seen = seen;
        batch.status = progress.status;
        batch.offset = progress.offset;
        batch.counted_to = progress.counted_to;
        batch.before = progress.before;
        batch.prefix = progress.prefix;
        batch.incomplete = progress.incomplete;
        batch.copy = progress.copy;
        batch.records.extend(self.found.drain(..).map(record));
        batch.counts.events = batch.records.len() as u64;
        batch
    }

    /// A batch was written: its lists are used again.
    pub(super) fn recycle(&mut self, batch: Batch) {
        let Batch { mut records, mut changes, .. } = batch;
        records.clear();
        changes.clear();
        self.batch = Batch { records, changes, ..Batch::empty(Generation(0)) };
    }
}
