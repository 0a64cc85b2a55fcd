//! Journal writer: appends frames, makes them durable, starts new segments, deletes old ones.
//!
//! Rule: bytes that could not be written stay pending and are retried ([`Journal::flush`]); until then the
//! caller must not read more. A partial write is truncated, so the file ends with a whole frame whenever
//! nothing is pending. After a failed sync the unsynced bytes are written again: the kernel may have dropped
//! them.
//! Not here: when to sync or to start a new segment (`tail::ingest` decides).

use super::fold::{Fold, Replay};
use super::frame::{Batch, Birth, BodyRef, FileHead};
use super::packer::Packer;
use super::reader::{Reader, Shared};
use super::sources::Sources;
use super::state::State;
use super::{Config, REPLAYED_MAX_BYTES};
use crate::segments::deferred_file::{self, DeferredFile};
use crate::segments::disk::{Disk, Stored};
use crate::segments::list::Segments;
use crate::segments::recovery::{self, Live};
use crate::segments::segment::{self, Segment, Table, name};
use crate::segments::{Error, chain};
use log_filters::found::Change;
use std::sync::Arc;
use wire::at_end::AtEnd;
use wire::id::SensorKey;
use wire::report::Mark;
use wire::version::JOURNAL;

/// Changes in one frame of a head: well below the limit on the length of a frame.
const CHANGES_PER_FRAME: usize = 1024;

/// Bytes of open calls in one frame of a head.
const CALLS_PER_FRAME_BYTES: usize = 512 << 10;

/// The journal, owned by the one thread that writes it.
pub struct Journal {
    disk: Arc<dyn Disk>,
    config: Config,
    state: State,
    live: Arc<Segment<Sources>>,
    /// Bytes of the live segment that are written, bytes of its head, and bytes that are durable.
    len: u64,
    head_len: u64,
    synced: u64,
    sync_failed: bool,
    chain: u32,
    pending: Vec<u8>,
    entries: Vec<Entry>,
    shared: Arc<Shared>,
}

/// What a pending frame adds to the index once it is written.
enum Entry {
    Events { first: u64, at: u64 },
    Born(Birth),
}

/// What the head of a new segment holds besides the state.
pub trait Memories {
    /// The open calls, in the form that [`Replay::calls`] takes.
    fn calls(&self) -> Vec<u8>;
    /// What the filters remember: path, filter, changes.
    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)>;
}

impl Journal {
    /// Opens the journal on this disk, or creates one. Also returns notes for the operator.
    ///
    /// # Errors
    /// If the disk refuses, or another version of the program wrote the journal.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        fresh_key: SensorKey,
        replay: &mut impl Replay,
    ) -> Result<(Journal, Vec<String>), Error> {
        let recovered = recovery::recover::<Fold, Sources, _>(&disk, replay)?;
        let live = match recovered.live {
            Some(live) => live,
            None => begin_first(&disk, State::new(fresh_key))?,
        };
        // A process that was killed before it could sync may have written what is in the file. A head that
        // waits for disk space is not in it.
        let synced = live.segment.file().sync().map_err(Error::disk("sync the journal"));
        let is_late = synced.as_ref().is_err_and(deferred_file::is_for_now);
        synced.or_else(|error| if is_late { Ok(()) } else { Err(error) })?;
        let segments = Segments::new(recovered.older, live.segment.clone(), live.state.head.next);
        let shared = Shared::new(segments, live.state.head.sensor);
        let journal = Journal {
            disk,
            config,
            state: live.state,
            live: live.segment,
            len: live.len,
            head_len: live.head_len,
            synced: if is_late { 0 } else { live.len },
            sync_failed: false,
            chain: live.chain,
            pending: Vec::new(),
            entries: Vec::new(),
            shared: Arc::new(shared),
        };
        Ok((journal, recovered.notes))
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns a new reader.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(self.shared.clone())
    }

    /// Returns what compresses the closed segments of this journal; only one may be used.
    #[must_use]
    pub fn packer(&self) -> Packer {
        Packer::new(Arc::clone(&self.disk), Arc::clone(&self.shared))
    }

    /// Whether bytes are pending: the caller must not read more until [`Journal::flush`] succeeds.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether written bytes are not yet durable.
    #[must_use]
    pub fn is_unsynced(&self) -> bool {
        self.synced < self.len
    }

    /// Whether an event is not yet durable and a reader waits for it ([`Reader::await_durable`]).
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.shared.is_awaited()
    }

    /// Starts a generation; its number must be the next one of the state.
    ///
    /// # Errors
    /// [`Error::Disk`] if the frame is pending; [`Error::Frame`] if it cannot be encoded: nothing changed
    /// then.
    ///
    /// # Panics
    /// If the number is not the next one.
    pub fn born(&mut self, birth: &Birth) -> Result<(), Error> {
        assert_eq!(birth.generation.0, self.state.head.next_generation, "generations are numbered in order");
        self.encode(BodyRef::Born(birth))?;
        self.state.apply_birth(birth.clone()).expect("its number is the next");
        self.entries.push(Entry::Born(birth.clone()));
        self.flush()
    }

    /// Appends events and progress of a generation, and numbers the events.
    ///
    /// # Errors
    /// [`Error::Disk`] if the frame is pending; [`Error::Frame`] if it cannot be encoded: nothing changed
    /// then.
    ///
    /// # Panics
    /// If the generation has not started.
    pub fn append(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.first = self.state.head.next;
        let at = self.len + self.pending.len() as u64;
        self.encode(BodyRef::Batch(batch))?;
        self.state.apply_batch(batch).expect("the generation of a batch has started");
        self.entries.push(Entry::Events { first: batch.first, at });
        self.flush()
    }

    /// Records that the receiver's store has everything before `mark.next`.
    ///
    /// # Errors
    /// [`Error::Disk`] if the frame is pending; [`Error::Frame`] if it cannot be encoded.
    pub fn acknowledge(&mut self, mark: Mark) -> Result<(), Error> {
        let Mark { store, at, next } = mark;
        self.state.acknowledge(next);
        if !self.state.remember(mark) {
            return Ok(());
        }
        self.encode(BodyRef::Acknowledged { next, stored: AtEnd(Some((store, at))) })?;
        self.flush()
    }

    /// Writes and publishes the pending frames.
    ///
    /// # Errors
    /// If the disk refuses; the frames then stay pending, and the file ends with the last whole frame.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.live.file().write_at(&self.pending, self.len) {
            let what = format!("write {}", name(self.live.first));
            // If the truncation fails too, the next attempt writes at the same offset.
            let cut = self.live.file().truncate(self.len);
            return Err(Error::Disk { what, source: cut.err().unwrap_or(source) });
        }
        self.len += self.pending.len() as u64;
        self.pending.clear();
        let len = self.len;
        let entries = self.entries.drain(..);
        self.live.publish(|table| {
            for entry in entries {
                match entry {
                    Entry::Events { first, at } => table.add_batch(first, at),
                    Entry::Born(birth) => table.legend_mut().add(&birth),
                }
            }
            table.len = len;
        });
        self.shared.segments.publish(self.state.head.next);
        Ok(())
    }

    /// Makes everything written durable before it returns.
    ///
    /// # Errors
    /// If the disk refuses; the caller must retry.
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

    /// Writes the unsynced bytes again: after a failed sync the kernel marks them as clean.
    fn rewrite(&mut self) -> std::io::Result<()> {
        let len = usize::try_from(self.len - self.synced).expect("a segment fits in memory");
        let mut bytes = vec![0; len];
        if self.live.file().read_at(&mut bytes, self.synced)? < len {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
        }
        self.live.file().write_at(&bytes, self.synced)
    }

    /// Whether the live segment is long enough to start a new one.
    #[must_use]
    pub fn wants_new_segment(&self) -> bool {
        self.pending.is_empty() && self.len > self.config.segment_len_bytes.max(2 * self.head_len)
    }

    /// Whether a restart would replay so much that a new segment is worth the cost of its head.
    #[must_use]
    pub fn is_long_to_replay(&self) -> bool {
        self.pending.is_empty() && self.len - self.head_len > self.head_len.max(REPLAYED_MAX_BYTES)
    }

    /// Starts a new segment, and deletes the oldest segments beyond the budget.
    ///
    /// # Errors
    /// If the disk refuses; unless only the deletion failed, the live segment then stays in use.
    pub fn begin_segment(&mut self, memories: &impl Memories) -> Result<(), Error> {
        self.sync()?;
        let doomed = self.shared.segments.beyond_budget(self.config.budget_bytes, self.head_len)?;
        let mut state = self.state.clone();
        state.head.lost += doomed.iter().map(|first| self.unacknowledged(*first)).sum::<u64>();
        let opened = begin(&*self.disk, state, memories)?;
        self.shared.segments.replace_live(opened.segment.clone(), doomed.len());
        (self.state, self.live, self.chain) = (opened.state, opened.segment, opened.chain);
        (self.len, self.synced, self.head_len) = (opened.len, opened.len, opened.len);
        segment::delete(&*self.disk, &doomed)
    }

    /// The number of events of a segment that the receiver does not have; 0 without a receiver.
    fn unacknowledged(&self, first: u64) -> u64 {
        let Some(acknowledged) = self.state.head.acknowledged else { return 0 };
        let segments = self.shared.segments.all();
        let after = segments.iter().find(|other| other.first > first);
        let next = after.map_or(self.state.head.next, |after| after.first);
        next.saturating_sub(first.max(acknowledged))
    }

    fn encode(&mut self, body: BodyRef<'_>) -> Result<(), Error> {
        self.chain = chain::encode(self.chain, body, &mut self.pending)?;
        Ok(())
    }
}

/// Starts the first segment of a journal: on the disk or, while that is full, in memory.
fn begin_first(disk: &Arc<dyn Disk>, state: State) -> Result<Live<State, Sources>, Error> {
    match begin(&**disk, state.clone(), &NoMemories) {
        Err(error) if deferred_file::is_for_now(&error) => {}
        result => return result,
    }
    let first = state.head.next;
    let file = Arc::new(DeferredFile::new(Arc::clone(disk), first));
    let mut head = Head { file: &*file, at: 0, out: Vec::new(), chain: 0 };
    head.write(&state, &NoMemories)?;
    head.flush()?;
    let (len, chain) = (head.at, head.chain);
    file.end_head();
    let segment =
        Arc::new(Segment::new(first, file, Some(Table::new(len, Sources::of_version(JOURNAL.written)))));
    Ok(Live { state, segment, len, head_len: len, chain })
}

fn begin(disk: &dyn Disk, state: State, memories: &impl Memories) -> Result<Live<State, Sources>, Error> {
    let first = state.head.next;
    let (mut len, mut chain) = (0, 0);
    let file = segment::create(disk, first, |file| {
        let mut head = Head { file, at: 0, out: Vec::new(), chain: 0 };
        head.write(&state, memories)?;
        head.flush()?;
        (len, chain) = (head.at, head.chain);
        Ok(())
    })?;
    let mut sources = Sources::of_version(JOURNAL.written);
    state.generations.values().for_each(|checkpoint| sources.add(&checkpoint.birth));
    let segment = Arc::new(Segment::new(first, file, Some(Table::new(len, sources))));
    Ok(Live { state, segment, len, head_len: len, chain })
}

/// Writes the frames of a head part by part: the open calls of a busy sensor are many.
struct Head<'a> {
    file: &'a dyn Stored,
    at: u64,
    out: Vec<u8>,
    chain: u32,
}

impl Head<'_> {
    fn write(&mut self, state: &State, memories: &impl Memories) -> Result<(), Error> {
        self.push(BodyRef::Head(&state.head))?;
        for (path, record) in &state.files {
            self.push(BodyRef::File(&FileHead { path: path.clone(), record: record.clone() }))?;
        }
        for (path, filter, changes) in memories.memories() {
            for some in changes.chunks(CHANGES_PER_FRAME) {
                self.push(BodyRef::Memory(&path, &filter, some))?;
            }
        }
        for checkpoint in state.generations.values() {
            self.push(BodyRef::Generation(checkpoint))?;
        }
        for part in memories.calls().chunks(CALLS_PER_FRAME_BYTES) {
            self.push(BodyRef::Calls(part))?;
        }
        self.push(BodyRef::HeadEnd)
    }

    fn push(&mut self, body: BodyRef<'_>) -> Result<(), Error> {
        self.chain = chain::encode(self.chain, body, &mut self.out)?;
        if self.out.len() >= CALLS_PER_FRAME_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write_at(&self.out, self.at).map_err(Error::disk("write the head of a segment"))?;
        self.at += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }
}

/// Empty memories of a new journal.
struct NoMemories;

impl Memories for NoMemories {
    fn calls(&self) -> Vec<u8> {
        Vec::new()
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        Vec::new()
    }
}
