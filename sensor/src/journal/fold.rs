//! Replay of a segment: the frames of a segment are folded into the state at its end.
//!
//! Pure. Recovery folds what a crash left; the fuzz target folds arbitrary bytes.
//! Not here: whether frames are whole and follow each other ([`crate::segments::recovery`]).

use super::frame::{Birth, Body, PathBytes, Record};
use super::state::State;
use crate::segments::recovery::{self, Damage};
use crate::segments::unreadable::{Content, Mark};
use compact_str::CompactString;
use log_filters::found::Change;
use std::collections::BTreeMap;
use wire::event::Id;
use wire::version::{Format, JOURNAL};

/// Receives what a journal holds besides its [`State`].
pub trait Replay {
    /// The open calls at the time of the head; empty in a new journal.
    fn calls(&mut self, snapshot: &[u8]);
    /// A part of what the filter of this path remembers, in order.
    fn memory(&mut self, path: &[u8], filter: &str, changes: Vec<Change>);
    /// An event after the head.
    fn record(&mut self, id: Id, record: &Record);
}

/// State of the replay of one segment.
#[derive(Debug, Default)]
pub struct Fold {
    state: Option<State>,
    is_whole: bool,
    calls: Vec<u8>,
    memory: Vec<(Vec<u8>, String, Vec<Change>)>,
    /// The filter that reads a path, with all its generations: that of the youngest one.
    filters: BTreeMap<PathBytes, CompactString>,
}

impl<R: Replay> recovery::Fold<R> for Fold {
    type Body = Body;
    type State = State;
    const CONTENT: Content = Content {
        what: "the journal",
        beside: "the sensor then reads its logs as at its first start, so events of lines that are still in them come again under \
                 other ids; its place in the domain, recordings and the audit trail stay",
    };
    const FORMAT: Format = JOURNAL;

    fn mark(body: &Body) -> Mark {
        match body {
            Body::Batch(batch) => {
                let next = batch.first + batch.records.len() as u64;
                Mark { written: Some(batch.seen), next: Some(next), received: None }
            }
            Body::Head(head) => Mark { written: None, next: Some(head.next), received: head.acknowledged },
            Body::Acknowledged { next, .. } => Mark { received: Some(*next), ..Mark::default() },
            Body::File(_)
            | Body::Memory(..)
            | Body::Generation(_)
            | Body::Calls(_)
            | Body::HeadEnd
            | Body::Born(_) => Mark::default(),
        }
    }

    fn step(&mut self, body: Body, replay: &mut R) -> Result<(), Damage> {
        if self.is_whole { self.follow(body, replay) } else { self.build(body, replay) }
    }

    fn is_past_head(&self) -> bool {
        self.is_whole
    }

    fn finish(self) -> Option<State> {
        let mut state = self.state.filter(|_| self.is_whole)?;
        // If the end of the log was lost, later events will get the numbers from there on again.
        if let Some(marks) = &mut state.head.marks.0 {
            marks.forget_beyond(state.head.next);
        }
        Some(state)
    }
}

impl Fold {
    fn build(&mut self, body: Body, replay: &mut impl Replay) -> Result<(), Damage> {
        let Some(state) = &mut self.state else {
            let Body::Head(head) = body else { return Err(Damage::Order) };
            if !JOURNAL.reads(head.version.0) {
                return Err(Damage::Version { found: head.version.0 });
            }
            self.state = Some(State::from_head(head));
            return Ok(());
        };
        match body {
            Body::File(file) => state.add_file(file),
            Body::Memory(path, filter, changes) => self.memory.push((path, filter.into(), changes)),
            Body::Generation(checkpoint) => {
                note_filter(&mut self.filters, &checkpoint.birth);
                state.add_generation(checkpoint);
            }
            Body::Calls(part) => self.calls.extend_from_slice(&part),
            Body::HeadEnd => {
                replay.calls(&std::mem::take(&mut self.calls));
                for (path, filter, changes) in self.memory.drain(..) {
                    replay.memory(&path, &filter, changes);
                    self.filters.insert(path, filter.into());
                }
                self.is_whole = true;
            }
            Body::Head(_) | Body::Born(_) | Body::Batch(_) | Body::Acknowledged { .. } => {
                return Err(Damage::Order);
            }
        }
        Ok(())
    }

    fn follow(&mut self, body: Body, replay: &mut impl Replay) -> Result<(), Damage> {
        let state = self.state.as_mut().expect("a complete head has a state");
        match body {
            Body::Born(birth) => {
                note_filter(&mut self.filters, &birth);
                state.apply_birth(birth).map_err(contradiction)?;
            }
            Body::Batch(mut batch) => {
                let known = state.generations.get(&batch.generation);
                let path = known.map(|checkpoint| checkpoint.birth.path.clone());
                state.apply_batch(&batch).map_err(contradiction)?;
                let path = path.expect("a batch is applied only to a known generation");
                if !batch.changes.is_empty() {
                    let filter = self.filters.get(&path).map_or("", CompactString::as_str);
                    replay.memory(&path, filter, std::mem::take(&mut batch.changes));
                }
                for record in &batch.records {
                    let id = state.id(batch.generation, record.found.offset, record.found.number);
                    replay.record(id, record);
                }
            }
            Body::Acknowledged { next, stored } => {
                state.acknowledge(next);
                if let Some((store, at)) = stored.0 {
                    state.remember(wire::report::Mark { store, at, next });
                }
            }
            Body::Head(_)
            | Body::File(_)
            | Body::Memory(..)
            | Body::Generation(_)
            | Body::Calls(_)
            | Body::HeadEnd => return Err(Damage::Order),
        }
        Ok(())
    }
}

fn note_filter(filters: &mut BTreeMap<PathBytes, CompactString>, birth: &Birth) {
    // A generation may start while its filter does not exist.
    if !birth.filter.is_empty() {
        filters.insert(birth.path.clone(), birth.filter.clone());
    }
}

fn contradiction(error: super::state::Error) -> Damage {
    Damage::Contradiction(error.to_string())
}
