//! When a rotated file is let go: its descriptor, and what it holds of the disk.
//!
//! Rule: never by a timer; by what was read, by number and by bytes. What is given up unread is a gap.
//! Not here: reading ([`super::track`]), noticing a rotation ([`super::settle`]).

use super::core::{Core, Now};
use super::notice::Reason;
use super::source::Source;
use super::track::{End, Track};
use crate::journal::frame::Status;

/// Rotated files of one path that stay open although they were read to their end: their writer may not
/// have noticed the rotation yet. What it writes into one that so many have followed is not heard.
const FINISHED_MAX: usize = 16;

/// Bytes of deleted files of one path that stay open although they were read to their end: the disk they
/// occupy is not free before they are closed.
const FINISHED_DELETED_MAX_BYTES: u64 = 64 << 20;

impl Track {
    /// Let go of rotated files: those read to their end after a successor began, within bounds, and those
    /// that hold too many unread bytes of a deleted file.
    pub(super) fn release(&mut self, core: &mut Core, now: &Now) {
        for at in (0..self.sources.len()).rev() {
            let successor = self.sources.iter().skip(at + 1).any(|younger| younger.size > 0);
            let source = &self.sources[at];
            if core.journal.is_held() || !source.is_at_end() {
                continue;
            }
            if let Some(reason) = source.ending {
                self.end(core, at, now, End::Gap(reason));
            } else if source.status == Status::Rotated && successor {
                self.write(core, at, now, Status::Finished, &[]);
            }
        }
        while !core.journal.is_held()
            && let Some(at) = self.too_many_finished()
        {
            self.end(core, at, now, End::Whole);
        }
        while let Some(at) = self.too_much_held(core.config.held_bytes) {
            self.end(core, at, now, End::Gap(Reason::Budget));
        }
    }

    fn too_many_finished(&self) -> Option<usize> {
        // One that has another name which is meant would be started again under that.
        let finished = |source: &&Source| {
            source.status == Status::Finished && source.is_at_end() && !source.is_named_elsewhere
        };
        let deleted = self.sources.iter().filter(finished).filter(|source| source.links == 0);
        let deleted_bytes: u64 = deleted.map(|source| source.size).sum();
        let oldest = self.sources.iter().position(|source| {
            finished(&source) && (source.links == 0 || deleted_bytes <= FINISHED_DELETED_MAX_BYTES)
        });
        let many = self.sources.iter().filter(finished).count() > FINISHED_MAX;
        oldest.filter(|_| many || deleted_bytes > FINISHED_DELETED_MAX_BYTES)
    }

    fn too_much_held(&self, held_bytes: u64) -> Option<usize> {
        let deleted = |source: &&Source| source.file.is_some() && source.links == 0 && source.lag_bytes() > 0;
        let total: u64 = self.sources.iter().filter(deleted).map(Source::lag_bytes).sum();
        if total <= held_bytes { None } else { self.sources.iter().position(|source| deleted(&source)) }
    }
}
