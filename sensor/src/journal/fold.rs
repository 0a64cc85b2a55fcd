//! From the bytes of a segment to the state at its end.
//!
//! Pure: it is given bytes and says how far they are good. Used at recovery on what a crash left and by
//! the fuzz target on anything at all.
//! Rule: a frame counts only if it is whole, undamaged, follows the frame before it by checksum, and says
//! something that can follow; the first that does not is where the journal ends.

use super::frame::{Body, Record, checksum};
use super::state::{self, State};
use log_filters::found::Change;
use wire::event::{Id, Source};
use wire::id::Generation;

/// Takes what a journal holds beside its [`State`].
pub trait Replay {
    /// The open calls as they stood at the head; empty in a new journal.
    fn calls(&mut self, snapshot: &[u8]);
    /// Some of what the filter of this path remembers, in order.
    fn memory(&mut self, path: &[u8], filter: &str, changes: Vec<Change>);
    /// An event that came after the head.
    fn record(&mut self, id: Id, record: &Record);
}

/// Why the bytes are not the journal's next frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Not a frame.
    #[error(transparent)]
    Frame(#[from] wire::codec::Error),
    /// A whole frame that was written after another one than stands before it.
    #[error("frame does not follow the one before it")]
    Chain,
    /// A whole frame out of place: a segment begins with its head.
    #[error("frame is out of place: the head of a segment comes first, once and whole")]
    Order,
    /// A frame that contradicts those before it.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// What a frame added, for the index of its segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// A generation by which events are attributed.
    Source(Generation, Source),
    /// Events: the sequence number of the first, and how many.
    Events(u64, u64),
    /// Something else.
    Other,
}

/// The fold of one segment.
#[derive(Debug, Default)]
pub struct Fold {
    state: Option<State>,
    complete: bool,
    chain: u32,
    calls: Vec<u8>,
    memory: Vec<(Vec<u8>, String, Vec<Change>)>,
}

impl Fold {
    /// Take the frame at the start of `bytes`: how long it is and what it added, or `None` if more bytes
    /// are needed.
    ///
    /// # Errors
    /// If it is not the journal's next frame; the fold is then as before.
    pub fn step(&mut self, bytes: &[u8], replay: &mut impl Replay) -> Result<Option<(usize, Added)>, Damage> {
        let Some(((previous, body), len)) = wire::codec::decode::<(u32, Body)>(bytes)? else {
            return Ok(None);
        };
        if previous != self.chain {
            return Err(Damage::Chain);
        }
        let added = if self.complete { self.follow(body, replay)? } else { self.build(body, replay)? };
        self.chain = checksum(bytes);
        Ok(Some((len, added)))
    }

    /// Whether the head is complete.
    #[must_use]
    pub fn is_past_head(&self) -> bool {
        self.complete
    }

    /// The state at the end of what was taken, and the checksum of the last frame; `None` before the head
    /// is complete.
    #[must_use]
    pub fn finish(self) -> Option<(State, u32)> {
        if self.complete { self.state.map(|state| (state, self.chain)) } else { None }
    }

    fn build(&mut self, body: Body, replay: &mut impl Replay) -> Result<Added, Damage> {
        let Some(state) = &mut self.state else {
            let Body::Head(head) = body else { return Err(Damage::Order) };
            self.state = Some(State::from_head(head));
            return Ok(Added::Other);
        };
        match body {
            Body::File(file) => state.add_file(file),
            Body::Memory(path, filter, changes) => self.memory.push((path, filter.into(), changes)),
            Body::Generation(checkpoint) => {
                let source = source_of(&checkpoint.birth);
                let generation = checkpoint.birth.generation;
                state.add_generation(checkpoint);
                return Ok(Added::Source(generation, source));
            }
            Body::Calls(part) => self.calls.extend_from_slice(&part),
            Body::HeadEnd => {
                replay.calls(&std::mem::take(&mut self.calls));
                for (path, filter, changes) in self.memory.drain(..) {
                    replay.memory(&path, &filter, changes);
                }
                self.complete = true;
            }
            Body::Head(_) | Body::Born(_) | Body::Batch(_) | Body::Acknowledged { .. } => {
                return Err(Damage::Order);
            }
        }
        Ok(Added::Other)
    }

    fn follow(&mut self, body: Body, replay: &mut impl Replay) -> Result<Added, Damage> {
        let state = self.state.as_mut().expect("a complete head has a state");
        match body {
            Body::Born(birth) => {
                let source = source_of(&birth);
                let generation = birth.generation;
                state.apply_birth(birth)?;
                Ok(Added::Source(generation, source))
            }
            Body::Batch(mut batch) => {
                let birth = state.generations.get(&batch.generation).map(|checkpoint| &checkpoint.birth);
                let of = birth.map(|birth| (birth.path.clone(), birth.filter.clone()));
                state.apply_batch(&batch)?;
                let (path, filter) = of.expect("a batch is applied only to a known generation");
                if !batch.changes.is_empty() {
                    replay.memory(&path, &filter, std::mem::take(&mut batch.changes));
                }
                for record in &batch.records {
                    let id = state.id(batch.generation, record.found.offset, record.found.number);
                    replay.record(id, record);
                }
                Ok(Added::Events(batch.first, batch.records.len() as u64))
            }
            Body::Acknowledged { next } => {
                state.acknowledge(next);
                Ok(Added::Other)
            }
            Body::Head(_)
            | Body::File(_)
            | Body::Memory(..)
            | Body::Generation(_)
            | Body::Calls(_)
            | Body::HeadEnd => Err(Damage::Order),
        }
    }
}

/// How events of this generation are attributed. Paths that are not text are shown with replacement
/// characters.
#[must_use]
pub fn source_of(birth: &super::frame::Birth) -> Source {
    Source {
        host: birth.host.clone(),
        file: String::from_utf8_lossy(&birth.path).into(),
        filter: birth.filter.clone(),
    }
}
