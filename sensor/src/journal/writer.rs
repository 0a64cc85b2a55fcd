//! The writing end of the journal: append, make durable, begin new segments, delete old ones.
//!
//! Rule: what could not be written is kept and tried again ([`Journal::flush`]); until then the caller
//! must read no more. A write that failed half way is cut back, so the file ends with a whole frame
//! whenever nothing is pending. A failed sync is answered by writing the unsynced bytes again: the kernel
//! may have dropped them.
//! Not here: when to sync or to begin a new segment (`tail::ingest` decides).

use super::disk::{Disk, Stored};
use super::fold::{Replay, source_of};
use super::frame::{self, Batch, Birth, BodyRef, FileHead};
use super::reader::{Reader, Shared};
use super::segment::{Segment, Table, name};
use super::state::State;
use super::{Config, Error, recovery};
use log_filters::found::Change;
use std::sync::Arc;
use wire::event::Source;
use wire::id::{Generation, SensorKey};

/// Changes in one frame of a head: well below the longest frame.
const CHANGES_PER_FRAME: usize = 1024;

/// Bytes of open calls in one frame of a head.
const CALLS_PER_FRAME_BYTES: usize = 4 << 20;

/// The journal, for the one thread that writes it.
pub struct Journal {
    disk: Arc<dyn Disk>,
    config: Config,
    state: State,
    live: Arc<Segment>,
    /// Bytes of the live segment that are written, those of its head, and those that are durable.
    len: u64,
    head_len: u64,
    synced: u64,
    sync_failed: bool,
    chain: u32,
    pending: Vec<u8>,
    entries: Vec<Entry>,
    shared: Arc<Shared>,
}

/// What a pending frame will add to the index once it is written.
enum Entry {
    Events { first: u64, at: u64 },
    Source(Generation, Source),
}

/// What a new segment's head tells beside the state.
pub trait Memories {
    /// The open calls, as [`Replay::calls`] takes them.
    fn calls(&self) -> Vec<u8>;
    /// What the filters remember: path, filter, changes.
    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)>;
}

impl Journal {
    /// Open the journal on this disk, or begin one. Returns what a person should be told, too.
    ///
    /// # Errors
    /// If the disk refuses, or the journal was written by another version of the program.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        fresh_key: SensorKey,
        replay: &mut impl Replay,
    ) -> Result<(Journal, Vec<String>), Error> {
        let recovered = recovery::recover(&*disk, replay)?;
        let live = match recovered.live {
            Some(live) => live,
            None => {
                let state = State::new(fresh_key);
                let mut out = Vec::new();
                let chain = head(&state, &Nothing, &mut out)?;
                let segment = write_segment(&*disk, &state, &out)?;
                recovery::Live { state, segment, len: out.len() as u64, chain }
            }
        };
        // What is there may have been written by a process that was killed before it could sync.
        live.segment.file().sync().map_err(Error::disk("sync the journal"))?;
        let mut segments: std::collections::VecDeque<_> = recovered.older.into();
        segments.push_back(live.segment.clone());
        let shared = Shared::new(segments, live.state.head.sensor, live.state.head.next);
        let journal = Journal {
            disk,
            config,
            state: live.state,
            live: live.segment,
            len: live.len,
            head_len: 0,
            synced: live.len,
            sync_failed: false,
            chain: live.chain,
            pending: Vec::new(),
            entries: Vec::new(),
            shared: Arc::new(shared),
        };
        Ok((journal, recovered.notes))
    }

    /// Everything known now.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// A reading end.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(self.shared.clone())
    }

    /// Whether something waits to be written: read no more until [`Journal::flush`] succeeds.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether something written is not yet durable.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        self.synced < self.len
    }

    /// A generation begins; its number must be the state's next.
    ///
    /// # Errors
    /// [`Error::Disk`] if it waits to be written; [`Error::Frame`] if it cannot be, and nothing changed.
    ///
    /// # Panics
    /// If the number is another one.
    pub fn born(&mut self, birth: &Birth) -> Result<(), Error> {
        assert_eq!(birth.generation.0, self.state.head.next_generation, "generations are numbered in order");
        self.encode(BodyRef::Born(birth))?;
        self.state.apply_birth(birth.clone()).expect("its number is the next");
        self.entries.push(Entry::Source(birth.generation, source_of(birth)));
        self.flush()
    }

    /// Events and progress of a generation. Numbers its events.
    ///
    /// # Errors
    /// [`Error::Disk`] if it waits to be written; [`Error::Frame`] if it cannot be, and nothing changed.
    ///
    /// # Panics
    /// If the generation has not begun.
    pub fn append(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.first = self.state.head.next;
        let at = self.len + self.pending.len() as u64;
        self.encode(BodyRef::Batch(batch))?;
        self.state.apply_batch(batch).expect("a batch is of a generation that has begun");
        self.entries.push(Entry::Events { first: batch.first, at });
        self.flush()
    }

    /// The receiver has everything before `next`.
    ///
    /// # Errors
    /// [`Error::Disk`] if it waits to be written.
    pub fn acknowledge(&mut self, next: u64) -> Result<(), Error> {
        let before = self.state.head.acknowledged;
        self.state.acknowledge(next);
        if self.state.head.acknowledged == before {
            return Ok(());
        }
        self.encode(BodyRef::Acknowledged { next })?;
        self.flush()
    }

    /// Write what waits, and publish it.
    ///
    /// # Errors
    /// If the disk refuses; it then waits still, and the file ends with the last whole frame.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.live.file().write_at(&self.pending, self.len) {
            let what = format!("write {}", name(self.live.first));
            // If the cut fails too, the next attempt writes over the same place.
            let cut = self.live.file().truncate(self.len);
            return Err(Error::Disk { what, source: cut.err().unwrap_or(source) });
        }
        self.len += self.pending.len() as u64;
        self.pending.clear();
        let (len, next) = (self.len, self.state.head.next);
        let entries = self.entries.drain(..);
        self.live.publish(|table| {
            for entry in entries {
                match entry {
                    Entry::Events { first, at } => table.add_batch(first, at),
                    Entry::Source(generation, source) => table.add_source(generation, source),
                }
            }
            (table.len, table.next) = (len, next);
        });
        self.shared.publish(next);
        Ok(())
    }

    /// Return when everything written is durable.
    ///
    /// # Errors
    /// If the disk refuses; call it again.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.flush()?;
        if self.synced == self.len {
            return Ok(());
        }
        let again = if self.sync_failed { self.rewrite() } else { Ok(()) };
        if let Err(source) = again.and_then(|()| self.live.file().sync()) {
            self.sync_failed = true;
            return Err(Error::Disk { what: format!("sync {}", name(self.live.first)), source });
        }
        self.sync_failed = false;
        self.synced = self.len;
        self.shared.publish_durable(self.state.head.next);
        Ok(())
    }

    /// Write the unsynced bytes again: after a failed sync the kernel takes them for clean.
    fn rewrite(&mut self) -> std::io::Result<()> {
        let len = usize::try_from(self.len - self.synced).expect("a segment fits in memory");
        let mut bytes = vec![0; len];
        if self.live.file().read_at(&mut bytes, self.synced)? < len {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
        }
        self.live.file().write_at(&bytes, self.synced)
    }

    /// Whether the live segment is long enough for a new one to begin.
    #[must_use]
    pub fn wants_new_segment(&self) -> bool {
        self.pending.is_empty() && self.len > self.config.segment_len_bytes.max(2 * self.head_len)
    }

    /// Begin a new segment, and delete the oldest beyond the budget.
    ///
    /// # Errors
    /// If the disk refuses; the live segment then goes on.
    pub fn begin_segment(&mut self, memories: &impl Memories) -> Result<(), Error> {
        self.sync()?;
        let mut state = self.state.clone();
        let mut out = Vec::new();
        let chain = head(&state, memories, &mut out)?;
        let doomed = self.beyond_budget(out.len() as u64)?;
        let lost: u64 = doomed.iter().map(|segment| self.unacknowledged(segment)).sum();
        if lost > 0 {
            state.head.lost += lost;
            out.clear();
            head(&state, memories, &mut out)?;
        }
        let chain = if lost > 0 { frame_chain(&out) } else { chain };
        let segment = write_segment(&*self.disk, &state, &out)?;
        self.shared.replace_live(segment.clone(), doomed.len());
        self.state = state;
        self.live = segment;
        (self.len, self.synced, self.head_len) = (out.len() as u64, out.len() as u64, out.len() as u64);
        self.chain = chain;
        for old in doomed {
            if let Err(source) = self.disk.remove(&name(old.first)) {
                return Err(Error::Disk { what: format!("remove {}", name(old.first)), source });
            }
        }
        Ok(())
    }

    /// The oldest segments, so many that the others and a new head stay within the budget.
    fn beyond_budget(&self, head_len: u64) -> Result<Vec<Arc<Segment>>, Error> {
        let segments = self.shared.segments();
        let mut lens = Vec::with_capacity(segments.len());
        for segment in &segments {
            let len =
                segment.file().size().map_err(Error::disk(format!("measure {}", name(segment.first))))?;
            lens.push(len);
        }
        let mut total: u64 = lens.iter().sum::<u64>() + head_len;
        let mut doomed = Vec::new();
        for (segment, len) in segments.into_iter().zip(lens) {
            if total <= self.config.budget_bytes || segment.first == self.live.first {
                break;
            }
            total -= len;
            doomed.push(segment);
        }
        Ok(doomed)
    }

    /// Events of a segment that the receiver, if there is one, does not have.
    fn unacknowledged(&self, segment: &Segment) -> u64 {
        let Some(acknowledged) = self.state.head.acknowledged else { return 0 };
        let segments = self.shared.segments();
        let after = segments.iter().find(|other| other.first > segment.first);
        let next = after.map_or(self.state.head.next, |after| after.first);
        next.saturating_sub(segment.first.max(acknowledged))
    }

    fn encode(&mut self, body: BodyRef<'_>) -> Result<(), Error> {
        self.chain = frame::encode(self.chain, body, &mut self.pending)?;
        Ok(())
    }
}

/// The checksum of the last frame of a head: the frames are walked by their lengths.
fn frame_chain(frames: &[u8]) -> u32 {
    let (mut at, mut chain) = (0, 0);
    while at < frames.len() {
        chain = frame::checksum(&frames[at..]);
        let len = u32::from_le_bytes(frames[at..at + 4].try_into().expect("a whole frame"));
        at += wire::codec::HEADER_LEN_BYTES + len as usize;
    }
    chain
}

/// Append the frames of a head to `out`; the checksum of the last.
fn head(state: &State, memories: &impl Memories, out: &mut Vec<u8>) -> Result<u32, Error> {
    let mut chain = frame::encode(0, BodyRef::Head(&state.head), out)?;
    for (path, record) in &state.files {
        let file = FileHead { path: path.clone(), record: record.clone() };
        chain = frame::encode(chain, BodyRef::File(&file), out)?;
    }
    for (path, filter, changes) in memories.memories() {
        for some in changes.chunks(CHANGES_PER_FRAME) {
            chain = frame::encode(chain, BodyRef::Memory(&path, &filter, some), out)?;
        }
    }
    for checkpoint in state.generations.values() {
        chain = frame::encode(chain, BodyRef::Generation(checkpoint), out)?;
    }
    for part in memories.calls().chunks(CALLS_PER_FRAME_BYTES) {
        chain = frame::encode(chain, BodyRef::Calls(part), out)?;
    }
    Ok(frame::encode(chain, BodyRef::HeadEnd, out)?)
}

/// Write a new segment; it gets its name only when its head is durable.
fn write_segment(disk: &dyn Disk, state: &State, head: &[u8]) -> Result<Arc<Segment>, Error> {
    let first = state.head.next;
    let (new, last) = (format!("{}.new", name(first)), name(first));
    let write = || -> std::io::Result<Arc<dyn Stored>> {
        let file = disk.create(&new)?;
        file.write_at(head, 0)?;
        file.sync()?;
        disk.rename(&new, &last)?;
        disk.sync_names()?;
        Ok(file)
    };
    let file = write().map_err(|source| {
        // Whatever was made is in the way of nothing: recovery removes it.
        let _nothing_there = disk.remove(&new);
        Error::Disk { what: format!("begin journal segment {last}"), source }
    })?;
    let mut table = Table::new(head.len() as u64, first);
    for (generation, checkpoint) in &state.generations {
        table.add_source(*generation, source_of(&checkpoint.birth));
    }
    Ok(Arc::new(Segment::new(first, file, Some(table))))
}

/// Nothing is remembered in a new journal.
struct Nothing;

impl Memories for Nothing {
    fn calls(&self) -> Vec<u8> {
        Vec::new()
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        Vec::new()
    }
}
