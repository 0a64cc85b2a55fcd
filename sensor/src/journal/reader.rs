//! The reading end of the journal: events from a cursor on, while the writer appends.
//!
//! A cursor is the sequence number of the next event to be read; it outlives restarts. Readers take no
//! lock that the writer holds while it writes.
//! Not here: what may be asked for (`sensor::query`).

use super::Error;
use super::frame::{Body, Record};
use super::segment::{Segment, Table, Window};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use wire::event::{Event, Id, Source};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// What writer and readers share.
pub(super) struct Shared {
    segments: Mutex<VecDeque<Arc<Segment>>>,
    sensor: SensorKey,
    durable: AtomicU64,
    next: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(segments: VecDeque<Arc<Segment>>, sensor: SensorKey, next: u64) -> Shared {
        let (sender, _) = watch::channel(next);
        Shared { segments: Mutex::new(segments), sensor, durable: AtomicU64::new(next), next: sender }
    }

    pub(super) fn publish(&self, next: u64) {
        self.next.send_if_modified(|known| std::mem::replace(known, next) != next);
    }

    pub(super) fn publish_durable(&self, next: u64) {
        self.durable.store(next, Ordering::Release);
    }

    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// A new live segment; the oldest `deleted` are no more. One without events takes the old one's place.
    pub(super) fn replace_live(&self, live: Arc<Segment>, deleted: usize) {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if segments.back().is_some_and(|last| last.first == live.first) {
            segments.pop_back();
        }
        segments.push_back(live);
        segments.drain(..deleted);
    }
}

/// Reads the journal from any thread.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// What one reading gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events that were wanted, in order.
    pub events: Vec<Event>,
    /// Where to read on.
    pub cursor: u64,
    /// Events between the given cursor and the first one looked at that are kept no more.
    pub missed: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    /// The sequence number that the next event will get; it changes whenever events are added.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.shared.next.subscribe()
    }

    /// Events before this sequence number survive a loss of power.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// The sequence number of the oldest event that is kept.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.shared.segments().first().map_or(0, |segment| segment.first)
    }

    /// Up to `limit` events that `keep` accepts, from `cursor` on. A cursor from a future that a loss of
    /// power undid is brought back to the next event.
    ///
    /// # Errors
    /// If the disk cannot be read. Damaged frames are no error: their events count as missed.
    pub fn read(
        &self,
        cursor: u64,
        limit: usize,
        mut keep: impl FnMut(&Event) -> bool,
    ) -> Result<Page, Error> {
        let segments = self.shared.segments();
        let newest = *self.shared.next.borrow();
        let cursor = cursor.min(newest);
        let oldest = segments.first().map_or(newest, |segment| segment.first);
        let mut page = Page { events: Vec::new(), cursor, missed: oldest.saturating_sub(cursor) };
        page.cursor += page.missed;
        for (at, segment) in segments.iter().enumerate() {
            let end = segments.get(at + 1).map_or(newest, |after| after.first);
            if end <= page.cursor {
                continue;
            }
            let mut reading = Reading::new(segment, segment.table()?, page.cursor);
            while page.events.len() < limit && page.cursor < end {
                let Some(batch) = reading.next(page.cursor)? else {
                    // The rest of this segment is damaged.
                    page.missed += end - page.cursor;
                    page.cursor = end;
                    break;
                };
                page.missed += batch.first.saturating_sub(page.cursor);
                page.cursor = page.cursor.max(batch.first);
                let skip = usize::try_from(page.cursor - batch.first).unwrap_or(usize::MAX);
                for record in batch.records.into_iter().skip(skip) {
                    if page.events.len() == limit || page.cursor == end {
                        break;
                    }
                    page.cursor += 1;
                    let event =
                        event(self.shared.sensor, batch.generation, batch.seen, &batch.source, record);
                    if keep(&event) {
                        page.events.push(event);
                    }
                }
            }
        }
        Ok(page)
    }
}

/// Goes through the batches of a segment.
struct Reading {
    window: Window,
    sources: Arc<BTreeMap<Generation, Arc<Source>>>,
}

struct Events {
    generation: Generation,
    first: u64,
    seen: Time,
    source: Arc<Source>,
    records: Vec<Record>,
}

impl Reading {
    fn new(segment: &Segment, table: Table, cursor: u64) -> Reading {
        let window = Window::new(segment.file().clone(), table.place(cursor), table.len);
        Reading { window, sources: table.sources }
    }

    /// The next batch that holds an event at or after the cursor.
    fn next(&mut self, cursor: u64) -> Result<Option<Events>, Error> {
        while let Some((_, frame)) = self.window.frame()? {
            let Ok(Some(((_, tag), _))) = wire::codec::decode::<(u32, u8)>(frame) else { return Ok(None) };
            if tag != super::frame::BATCH_TAG {
                continue;
            }
            let Ok(Some(((_, Body::Batch(batch)), _))) = wire::codec::decode::<(u32, Body)>(frame) else {
                return Ok(None);
            };
            if batch.first + batch.records.len() as u64 <= cursor {
                continue;
            }
            let Some(source) = self.sources.get(&batch.generation) else { return Ok(None) };
            return Ok(Some(Events {
                generation: batch.generation,
                first: batch.first,
                seen: batch.seen,
                source: source.clone(),
                records: batch.records,
            }));
        }
        Ok(None)
    }
}

fn event(sensor: SensorKey, generation: Generation, seen: Time, source: &Source, record: Record) -> Event {
    Event {
        id: Id { sensor, generation, offset: record.found.offset, number: record.found.number },
        seen,
        call: record.call,
        content: record.found.content,
        source: source.clone(),
    }
}
