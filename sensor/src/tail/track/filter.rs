//! The filter of a path at work: its interpreter, and what the journal has of it.
//!
//! Rule: the filter continues from one generation to the next, so a record that waits for more lines belongs
//! to the generation whose lines it got last.

use crate::tail::interpret::Interpret;
use crate::tail::source::CHUNK_LEN_BYTES;
use compact_str::CompactString;
use log_filters::found::{Change, Found};
use std::time::Duration;
use wire::id::Generation;
use wire::time::Time;

/// First chunk given to a filter that has not been measured: one thread reads all logs, and a hostile filter
/// must be detected before it delays the others for long.
const CHUNK_LEN_FIRST_BYTES: usize = 16 << 10;

/// A filter that takes longer for a chunk gets half as much the next time.
const CHUNK_WORK: Duration = Duration::from_millis(20);

/// The filter of a path.
pub(super) struct ActiveFilter {
    name: CompactString,
    engine: Box<dyn Interpret>,
    /// The generation that it read last.
    fed: Option<Generation>,
    rejects_journalled: u64,
    /// How much it gets at a time, in bytes.
    chunk_len: usize,
}

impl ActiveFilter {
    /// A filter with what an earlier run remembered.
    pub(super) fn new(name: CompactString, engine: Box<dyn Interpret>) -> ActiveFilter {
        let rejects_journalled = engine.rejects();
        ActiveFilter { name, engine, fed: None, rejects_journalled, chunk_len: CHUNK_LEN_FIRST_BYTES }
    }

    pub(super) fn name(&self) -> &CompactString {
        &self.name
    }

    pub(super) fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    /// The generation that it read last.
    pub(super) fn fed(&self) -> Option<Generation> {
        self.fed
    }

    pub(super) fn set_fed(&mut self, generation: Generation) {
        self.fed = Some(generation);
    }

    pub(super) fn line(&mut self, line: &[u8], offset: u64, seen: Time, events: &mut Vec<Found>) {
        self.engine.line(line, offset, seen, events);
    }

    /// A generation has no more lines for now: close its record that waits for more.
    pub(super) fn idle(&mut self, generation: Generation, seen: Time, events: &mut Vec<Found>) {
        if self.fed == Some(generation) {
            self.engine.idle(seen, events);
        }
    }

    /// Where the record of a generation that waits for more lines starts, in bytes.
    pub(super) fn waiting_record(&self, generation: Generation) -> Option<u64> {
        if self.fed == Some(generation) { self.engine.resume_offset() } else { None }
    }

    /// It took so long for a chunk: the next one is longer, or shorter.
    pub(super) fn worked(&mut self, work: Duration) {
        let next = if work > CHUNK_WORK { self.chunk_len / 2 } else { self.chunk_len * 2 };
        self.chunk_len = next.clamp(CHUNK_LEN_FIRST_BYTES, CHUNK_LEN_BYTES);
    }

    /// Lines that no rule took since the last call.
    pub(super) fn take_rejects(&mut self) -> u64 {
        let rejects = self.engine.rejects();
        rejects.saturating_sub(std::mem::replace(&mut self.rejects_journalled, rejects))
    }

    pub(super) fn take_changes(&mut self, changes: &mut Vec<Change>) {
        self.engine.take_changes(changes);
    }

    /// Everything that it remembers.
    pub(super) fn snapshot(&self) -> Vec<Change> {
        self.engine.snapshot()
    }
}
