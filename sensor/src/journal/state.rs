//! What a journal says when all its frames are taken together.
//!
//! Pure. Invariant: applying the frames of a segment in order to the state of its head gives the state at
//! its end; the writer and the recovery use the same functions, so they cannot differ.
//! Not here: what filters remember and the open calls; those are handed on ([`super::fold::Replay`]).

use super::frame::{Batch, Birth, Checkpoint, FileHead, FileRecord, Head, PathBytes, Print, Status};
use std::collections::BTreeMap;
use wire::at_end::AtEnd;
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::report::Mark;
use wire::version::{JOURNAL, Trailing};

/// Everything known at one place of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What does not belong to one file.
    pub head: Head,
    /// What is kept of each path.
    pub files: BTreeMap<PathBytes, FileRecord>,
    /// Every generation that is not over.
    pub generations: BTreeMap<Generation, Checkpoint>,
}

/// Why a frame does not follow from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A batch of a generation that never began.
    #[error("batch of generation {0}, which has not begun")]
    UnknownGeneration(Generation),
    /// A batch whose first event is not the next one.
    #[error("batch begins with event {found}, expected {expected}")]
    Sequence {
        /// As written.
        found: u64,
        /// By the frames before.
        expected: u64,
    },
    /// A generation begins that is not the next one.
    #[error("generation {found} begins, expected {expected}")]
    Generation {
        /// As written.
        found: u32,
        /// By the frames before.
        expected: u32,
    },
}

impl State {
    /// A journal in which nothing has happened.
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

    /// The state a head begins with; its parts are added by [`State::add_file`] and
    /// [`State::add_generation`].
    #[must_use]
    pub fn from_head(head: Head) -> State {
        // The next segment is written in this program's version, whatever this one has.
        let head = Head { version: Trailing(JOURNAL.written), ..head };
        State { head, files: BTreeMap::new(), generations: BTreeMap::new() }
    }

    /// Part of a head: a path.
    pub fn add_file(&mut self, file: FileHead) {
        self.files.insert(file.path, file.record);
    }

    /// Part of a head: a generation.
    pub fn add_generation(&mut self, checkpoint: Checkpoint) {
        self.generations.insert(checkpoint.birth.generation, checkpoint);
    }

    /// A generation begins.
    ///
    /// # Errors
    /// If its number is not the next one; the state is then as before.
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

    /// Events and progress.
    ///
    /// # Errors
    /// If the generation is unknown or the events are not the next ones; the state is then as before.
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

    /// The receiver has everything before `next`; an older acknowledgement changes nothing.
    pub fn acknowledge(&mut self, next: u64) {
        let next = next.min(self.head.next);
        self.head.acknowledged = Some(self.head.acknowledged.map_or(next, |before| before.max(next)));
    }

    /// A receiver's store had all before the mark. Returns `false` if that was known.
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
