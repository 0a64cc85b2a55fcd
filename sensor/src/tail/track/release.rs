//! Release of rotated files: when their descriptors are closed, and the disk space they hold is freed.
//!
//! Rule: never by a timer, but by what was read, by number and by bytes. What is closed unread is a gap.
//! Not here: reading ([`super::read`]), noticing a rotation ([`super::rotation`]).

use super::{End, Track};
use crate::journal::frame::Status;
use crate::tail::core::{Core, Now};
use crate::tail::notice::Reason;
use crate::tail::source::Source;

/// Rotated files of one path that stay open although they were read to their end: their writer may not
/// have noticed the rotation yet. What it writes into a file with so many successors is not read.
const FINISHED_MAX: usize = 16;

/// Bytes of deleted files of one path that stay open although they were read to their end: the disk space
/// they occupy is not free before they are closed.
const FINISHED_DELETED_MAX_BYTES: u64 = 64 << 20;

impl Track {
    /// Close rotated files: those read to their end after a successor started, beyond the limits, and those
    /// of deleted files that hold too many unread bytes.
    pub(in crate::tail) fn release(&mut self, core: &mut Core, now: &Now) {
        for at in (0..self.sources.len()).rev() {
            let successor = self.sources.iter().skip(at + 1).any(|younger| younger.len_bytes() > 0);
            let source = &self.sources[at];
            if core.is_held() || !source.is_at_end() {
                continue;
            }
            if let Some(reason) = source.gap_at_end() {
                self.end(core, at, now, End::Gap(reason));
            } else if source.status() == Status::Rotated && successor {
                self.write(core, at, now, Status::Finished, &[]);
            }
        }
        while !core.is_held()
            && let Some(at) = self.finished_beyond_limits()
        {
            self.end(core, at, now, End::Whole);
        }
        while let Some(at) = self.unread_beyond(core.config().held_bytes) {
            self.end(core, at, now, End::Gap(Reason::Budget));
        }
    }

    fn finished_beyond_limits(&self) -> Option<usize> {
        // One that another followed path names would be started again under that.
        let finished = |source: &&Source| {
            source.status() == Status::Finished && source.is_at_end() && !source.is_named_elsewhere()
        };
        let deleted = self.sources.iter().filter(finished).filter(|source| source.has_no_name());
        let deleted_bytes: u64 = deleted.map(Source::len_bytes).sum();
        let oldest = self.sources.iter().position(|source| {
            finished(&source) && (source.has_no_name() || deleted_bytes <= FINISHED_DELETED_MAX_BYTES)
        });
        let many = self.sources.iter().filter(finished).count() > FINISHED_MAX;
        oldest.filter(|_| many || deleted_bytes > FINISHED_DELETED_MAX_BYTES)
    }

    /// The oldest deleted file with unread bytes, if all of them have more than so many.
    fn unread_beyond(&self, held_bytes: u64) -> Option<usize> {
        let deleted = |source: &&Source| source.is_open() && source.has_no_name() && source.lag_bytes() > 0;
        let total: u64 = self.sources.iter().filter(deleted).map(Source::lag_bytes).sum();
        if total <= held_bytes { None } else { self.sources.iter().position(|source| deleted(&source)) }
    }
}
