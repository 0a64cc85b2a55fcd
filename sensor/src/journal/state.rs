//! State of a journal: the sum of all its frames.
//!
//! Pure. Invariant: applying the frames of a segment in order to the state of its head gives the state at its
//! end. The writer and the recovery use the same functions, so they cannot differ.
//! Not here: what filters remember and the open calls; [`super::fold::Replay`] receives those.

use super::frame::{Batch, Birth, Checkpoint, FileHead, FileRecord, Head, PathBytes, Print, Status};
use std::collections::BTreeMap;
use wire::at_end::AtEnd;
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::report::Mark;
use wire::version::{JOURNAL, Trailing};

/// The state at one position of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Everything that does not belong to one file.
    pub head: Head,
    /// The record of each path.
    pub files: BTreeMap<PathBytes, FileRecord>,
    /// Checkpoints of all generations that are not [`Status::Over`].
    pub generations: BTreeMap<Generation, Checkpoint>,
}

/// Why a frame cannot follow the frames before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A batch of a generation that was never started.
    #[error("batch of generation {0}, which has not started")]
    UnknownGeneration(Generation),
    /// A batch whose first event is not the next one.
    #[error("batch begins with event {found}, expected {expected}")]
    Sequence {
        /// The number in the frame.
        found: u64,
        /// The number that follows from the earlier frames.
        expected: u64,
    },
    /// A generation starts with a number that is not the next one.
    #[error("generation {found} begins, expected {expected}")]
    Generation {
        /// The number in the frame.
        found: u32,
        /// The number that follows from the earlier frames.
        expected: u32,
    },
}

impl State {
    /// The state of an empty journal.
    #[must_use]
    pub fn new(sensor: SensorKey) -> State {
        let version = Trailing(JOURNAL.written);
        let marks = AtEnd::default();
        State::from_head(Head {
            sensor,
            next_generation: 1,
            next: 0,
            acknowledged: None,
            lost: 0,
            version,
            marks,
        })
    }

    /// The state at the start of a head; [`State::add_file`] and [`State::add_generation`] add its parts.
    #[must_use]
    pub fn from_head(head: Head) -> State {
        // The next segment is written in the version of this program, whatever the version of this segment.
        let head = Head { version: Trailing(JOURNAL.written), ..head };
        State { head, files: BTreeMap::new(), generations: BTreeMap::new() }
    }

    /// Adds a part of a head: a path.
    pub fn add_file(&mut self, file: FileHead) {
        self.files.insert(file.path, file.record);
    }

    /// Adds a part of a head: a generation.
    pub fn add_generation(&mut self, checkpoint: Checkpoint) {
        self.generations.insert(checkpoint.birth.generation, checkpoint);
    }

    /// Starts a generation.
    ///
    /// # Errors
    /// If its number is not the next one; the state is then unchanged.
    pub fn apply_birth(&mut self, birth: Birth) -> Result<(), Error> {
        let expected = self.head.next_generation;
        if birth.generation.0 != expected {
            return Err(Error::Generation { found: birth.generation.0, expected });
        }
        self.head.next_generation += 1;
        self.files.entry(birth.path.clone()).or_default().note(&birth.identity);
        self.add_generation(Checkpoint {
            offset: birth.offset,
            counted_to: birth.offset,
            before: birth.before,
            prefix: Print::default(),
            incomplete: None,
            status: Status::Live,
            beyond: Vec::new(),
            birth,
        });
        Ok(())
    }

    /// Applies the events and the progress of a batch.
    ///
    /// # Errors
    /// If the generation is unknown or the events are not the next ones; the state is then unchanged.
    pub fn apply_batch(&mut self, batch: &Batch) -> Result<(), Error> {
        let expected = self.head.next;
        if batch.first != expected {
            return Err(Error::Sequence { found: batch.first, expected });
        }
        let Some(checkpoint) = self.generations.get_mut(&batch.generation) else {
            return Err(Error::UnknownGeneration(batch.generation));
        };
        self.head.next += batch.records.len() as u64;
        checkpoint.offset = batch.offset;
        checkpoint.counted_to = batch.counted_to;
        checkpoint.before = batch.before;
        checkpoint.prefix = batch.prefix.unwrap_or(checkpoint.prefix);
        checkpoint.incomplete = batch.incomplete;
        checkpoint.status = batch.status;
        checkpoint.beyond.retain(|(offset, _)| *offset >= batch.offset);
        let places = batch.records.iter().map(|record| (record.found.offset, record.found.number));
        checkpoint.beyond.extend(places.filter(|(offset, _)| *offset >= batch.offset));
        if let Some(file) = self.files.get_mut(&checkpoint.birth.path) {
            file.totals.add(&batch.counts);
            if let Some(copy) = &batch.copy {
                file.note(copy);
            }
        }
        if batch.status == Status::Over {
            self.generations.remove(&batch.generation);
        }
        Ok(())
    }

    /// Records that the receiver has everything before `next`; an older acknowledgement changes nothing.
    pub fn acknowledge(&mut self, next: u64) {
        let next = next.min(self.head.next);
        self.head.acknowledged = Some(self.head.acknowledged.map_or(next, |before| before.max(next)));
    }

    /// Records that the store of a receiver has everything before the mark. Returns `false` if that was
    /// known.
    pub fn remember(&mut self, mark: Mark) -> bool {
        let mark = Mark { next: mark.next.min(self.head.next), ..mark };
        self.head.marks.0.get_or_insert_default().add(mark)
    }

    /// The id of an event of this journal.
    #[must_use]
    pub fn id(&self, generation: Generation, offset: u64, number: u16) -> Id {
        Id { sensor: self.head.sensor, generation, offset, number }
    }
}
