//! Writer of the store: accepted events are buffered and written to disk in batches.
//!
//! [`Store::append`] only buffers. [`Store::take_commit`] returns the buffer as one [`Commit`], which the
//! shell runs where it may block, while more is accepted. [`Store::settle`] publishes it. So one sync serves
//! everything that was accepted during the sync before it, and nothing waits for a timer.
//! Rule: one commit runs at a time. A commit that failed is run again, as a whole, and nothing of it is
//! published before it succeeds.

use super::Config;
use super::fold::{Fold, Replay};
use super::frame::{Batch, BodyRef, Member};
use super::ledger::Ledger;
use super::reader::{Reader, Shared};
use super::segment_start::SegmentStart;
use crate::segments::disk::{Disk, Stored};
use crate::segments::list::Segments;
use crate::segments::recovery::{self, Live};
use crate::segments::segment::{self, Segment, Table};
use crate::segments::{Error, chain};
use std::sync::Arc;
use wire::id::SensorKey;
use wire::report::StoreKey;

/// Bytes of calls in one frame of a head.
const CALLS_PER_FRAME_BYTES: usize = 512 << 10;

/// Most bytes buffered before no more should be read from members: a second of a fast disk.
pub const PENDING_LEN_MAX_BYTES: usize = 16 << 20;

/// The store, owned by the one thread that writes it.
pub struct Store {
    disk: Arc<dyn Disk>,
    config: Config,
    ledger: Ledger,
    live: Arc<Segment<SegmentStart>>,
    /// Length in bytes of the live segment, including what is buffered and what is being written; then of its
    /// head.
    len: u64,
    head_len: u64,
    chain: u32,
    pending: Vec<u8>,
    entries: Vec<(u64, u64)>,
    is_under_way: bool,
    shared: Arc<Shared>,
}

/// Bytes to write to disk.
pub struct Commit {
    file: Arc<dyn Stored>,
    at: u64,
    bytes: Vec<u8>,
    entries: Vec<(u64, u64)>,
    next: u64,
    begin: Option<NewSegment>,
}

/// A new segment.
struct NewSegment {
    disk: Arc<dyn Disk>,
    first: u64,
    head: Vec<u8>,
    table: Table<SegmentStart>,
    doomed: Vec<u64>,
    done: Option<Arc<dyn Stored>>,
}

impl Store {
    /// Opens the store on this disk, or creates one. Also returns notes to log for the operator.
    ///
    /// # Errors
    /// If the disk refuses, or another version of the program wrote the store.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        fresh_key: StoreKey,
        replay: &mut dyn Replay,
    ) -> Result<(Store, Vec<String>), Error> {
        let mut recovered = recovery::recover::<Fold, SegmentStart, _>(&disk, replay)?;
        let mut live = match recovered.live {
            Some(live) => live,
            None => begin(&*disk, Ledger::new(fresh_key), &[])?,
        };
        // A process that was killed before it could sync may have written what is there.
        live.segment.file().sync().map_err(Error::disk("sync the domain's events"))?;
        if recovered.is_shorter {
            // Numbers will be assigned again: cursors and watermarks of the old ones must not be applied to
            // new ones.
            live.state.key = fresh_key;
            if live.state.next > live.segment.first {
                recovered.older.push(live.segment);
            }
            live = begin(&*disk, live.state, &replay.snapshot())?;
        }
        let segments = Segments::new(recovered.older, Arc::clone(&live.segment), live.state.next);
        let store = Store {
            disk,
            config,
            shared: Arc::new(Shared { segments, key: live.state.key }),
            ledger: live.state,
            live: live.segment,
            len: live.len,
            head_len: live.head_len,
            chain: live.chain,
            pending: Vec::new(),
            entries: Vec::new(),
            is_under_way: false,
        };
        Ok((store, recovered.notes))
    }

    /// Returns the ledger after everything accepted, durable or not yet.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// See [`Ledger::lane`].
    pub fn lane(&mut self, sensor: SensorKey, generation: wire::id::Generation) -> wire::id::Generation {
        self.ledger.lane(sensor, generation)
    }

    /// Returns a reader of the store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// Returns whether everything accepted is durable.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.is_under_way && self.pending.is_empty()
    }

    /// Returns whether something accepted waits for a commit.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns whether there is room for more: if not, read no more from members until a commit has
    /// succeeded.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending.len() < PENDING_LEN_MAX_BYTES
    }

    /// Sets the record of a sensor.
    ///
    /// # Errors
    /// If the record is too long for a frame; nothing changed then.
    pub fn set_member(&mut self, member: Member) -> Result<(), Error> {
        self.encode(BodyRef::Member(&member))?;
        self.ledger.apply_member(member);
        Ok(())
    }

    /// Removes the record of a sensor: if the sensor comes again it is a new one.
    ///
    /// # Errors
    /// If the frame cannot be written; nothing changed then.
    pub fn forget_member(&mut self, sensor: SensorKey) -> Result<(), Error> {
        self.encode(BodyRef::Forgotten(sensor))?;
        self.ledger.members.remove(&sensor);
        Ok(())
    }

    /// Accepts a batch and sets its number in the store.
    ///
    /// # Errors
    /// If the batch is too long for a frame; nothing changed then.
    ///
    /// # Panics
    /// If the batch does not follow what the ledger records of its sensor.
    pub fn append(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.at = self.ledger.next;
        let at = self.len;
        self.encode(BodyRef::Batch(batch))?;
        self.ledger.apply_batch(batch).expect("the caller asked the ledger");
        self.entries.push((batch.at, at));
        Ok(())
    }

    fn encode(&mut self, body: BodyRef<'_>) -> Result<(), Error> {
        let before = self.pending.len();
        self.chain = chain::encode(self.chain, body, &mut self.pending)?;
        self.len += (self.pending.len() - before) as u64;
        Ok(())
    }

    /// Takes what waits for the disk as a commit, unless a commit is running or nothing waits. `calls`
    /// returns the open calls; it is called if a new segment starts with this commit.
    ///
    /// # Errors
    /// If the head of a new segment cannot be encoded; what waited still waits then.
    pub fn take_commit(&mut self, calls: impl FnOnce() -> Vec<u8>) -> Result<Option<Commit>, Error> {
        if self.is_under_way || self.pending.is_empty() {
            return Ok(None);
        }
        let mut commit = Commit {
            file: Arc::clone(self.live.file()),
            at: self.len - self.pending.len() as u64,
            bytes: Vec::new(),
            entries: Vec::new(),
            next: self.ledger.next,
            begin: None,
        };
        if self.len > self.config.segment_len_bytes.max(2 * self.head_len)
            && self.ledger.next > self.live.first
        {
            let (head, chain) = head(&self.ledger, &calls())?;
            let more = (self.pending.len() + head.len()) as u64;
            let doomed = self.shared.segments.beyond_budget(self.config.budget_bytes, more)?;
            let table = Table::new(head.len() as u64, SegmentStart::at(&self.ledger));
            (self.len, self.head_len, self.chain) = (table.len, table.len, chain);
            let (disk, first) = (Arc::clone(&self.disk), self.ledger.next);
            commit.begin = Some(NewSegment { disk, first, head, table, doomed, done: None });
        }
        commit.bytes = std::mem::take(&mut self.pending);
        commit.entries = std::mem::take(&mut self.entries);
        self.is_under_way = true;
        Ok(Some(commit))
    }

    /// Publishes a commit that has succeeded.
    ///
    /// # Panics
    /// If the commit has not been run with success.
    pub fn settle(&mut self, commit: Commit) {
        self.is_under_way = false;
        let len = commit.at + commit.bytes.len() as u64;
        self.live.publish(|table| {
            for (first, at) in &commit.entries {
                table.add_batch(*first, *at);
            }
            table.len = len;
        });
        if let Some(begin) = commit.begin {
            let file = begin.done.expect("a commit is settled when it has succeeded");
            self.live = Arc::new(Segment::new(begin.first, file, Some(begin.table)));
            self.shared.segments.replace_live(Arc::clone(&self.live), begin.doomed.len());
        }
        self.shared.segments.publish(commit.next);
    }
}

impl Commit {
    /// Writes the commit and returns when it is durable. May block.
    ///
    /// # Errors
    /// If the disk refuses: run the commit again later.
    pub fn run(&mut self) -> Result<(), Error> {
        let write = self.file.write_at(&self.bytes, self.at).and_then(|()| self.file.sync());
        write.map_err(Error::disk("write the domain's events"))?;
        let Some(begin) = &mut self.begin else { return Ok(()) };
        if begin.done.is_none() {
            begin.done = Some(write_segment(&*begin.disk, begin.first, &begin.head)?);
        }
        segment::delete(&*begin.disk, &begin.doomed)
    }

    /// Returns the length of the buffered frames, without the head of a new segment.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn head(ledger: &Ledger, calls: &[u8]) -> Result<(Vec<u8>, u32), Error> {
    let mut out = Vec::new();
    let mut chain = chain::encode(0, BodyRef::Head(&ledger.head()), &mut out)?;
    for member in ledger.members.values() {
        chain = chain::encode(chain, BodyRef::Member(member), &mut out)?;
    }
    for part in calls.chunks(CALLS_PER_FRAME_BYTES) {
        chain = chain::encode(chain, BodyRef::Calls(part), &mut out)?;
    }
    chain = chain::encode(chain, BodyRef::HeadEnd, &mut out)?;
    Ok((out, chain))
}

fn write_segment(disk: &dyn Disk, first: u64, head: &[u8]) -> Result<Arc<dyn Stored>, Error> {
    segment::create(disk, first, |file| {
        file.write_at(head, 0).map_err(Error::disk("write the head of a segment"))
    })
}

fn begin(disk: &dyn Disk, ledger: Ledger, calls: &[u8]) -> Result<Live<Ledger, SegmentStart>, Error> {
    let (bytes, chain) = head(&ledger, calls)?;
    let file = write_segment(disk, ledger.next, &bytes)?;
    let len = bytes.len() as u64;
    let segment = Arc::new(Segment::new(ledger.next, file, Some(Table::new(len, SegmentStart::at(&ledger)))));
    Ok(Live { state: ledger, segment, len, head_len: len, chain })
}
