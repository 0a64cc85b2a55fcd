//! The reading end of the journal: events from a cursor on, while the writer appends.
//!
//! A cursor is the sequence number of the next event to be read; it outlives restarts. Readers take no
//! lock that the writer holds while it writes.
//! Not here: what may be asked for (`sensor::query`).

use super::decoded::{Cache, Decoded};
use super::frame::{Body, Record};
use super::sources::Sources;
use crate::segments::list::Segments;
use crate::segments::segment::Segment;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;
use wire::event::{Event, Id, Source};
use wire::id::{Generation, SensorKey};
use wire::report::StoreKey;
use wire::time::Time;

/// What writer and readers share.
pub(super) struct Shared {
    pub(super) segments: Segments<Sources>,
    sensor: SensorKey,
    durable: watch::Sender<u64>,
    /// Whether somebody has had everything durable and waits for more.
    is_awaited: AtomicBool,
    decoded: Cache,
}

impl Shared {
    pub(super) fn new(segments: Segments<Sources>, sensor: SensorKey) -> Shared {
        let durable = watch::Sender::new(*segments.next().borrow());
        Shared { segments, sensor, durable, is_awaited: AtomicBool::new(false), decoded: Cache::default() }
    }

    /// Whether a published event is not durable yet, and somebody waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        // The order of these two, and of those of `Reader::await_durable`: one of both sides sees the other.
        let next = *self.segments.next().borrow();
        self.is_awaited.load(Ordering::SeqCst) && *self.durable.borrow() < next
    }

    pub(super) fn publish_durable(&self, next: u64) {
        self.durable.send_if_modified(|known| std::mem::replace(known, next) != next);
    }
}

/// Reads the journal from any thread.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// What one reading gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T = Event> {
    /// The events that were wanted, in order.
    pub events: Vec<T>,
    /// Where to read on.
    pub cursor: u64,
    /// Events between the given cursor and the first one looked at that are kept no more.
    pub missed: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    /// What tells this journal from others, also from an earlier one in the same place: the sensor's key.
    #[must_use]
    pub fn key(&self) -> StoreKey {
        StoreKey(self.shared.sensor.0)
    }

    /// The sequence number that the next event will get; it changes whenever events are added.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.shared.segments.next()
    }

    /// Events before this sequence number survive a loss of power.
    #[must_use]
    pub fn durable(&self) -> u64 {
        *self.shared.durable.borrow()
    }

    /// As [`Reader::durable`], to wait for changes.
    #[must_use]
    pub fn durables(&self) -> watch::Receiver<u64> {
        self.shared.durable.subscribe()
    }

    /// Say whether somebody has had everything durable and waits for more: the writer then makes events durable
    /// sooner. Returns whether one waits now that the writer may not know to be waited for.
    #[must_use]
    pub fn await_durable(&self, waits: bool) -> bool {
        let waited = self.shared.is_awaited.swap(waits, Ordering::SeqCst);
        waits && !waited && self.shared.is_awaited()
    }

    /// The sequence number of the oldest event that is kept.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.shared.segments.oldest()
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
        self.read_some(cursor, limit, usize::MAX, |event| keep(event).then(|| event.clone()))
    }

    /// What `take` makes of each event that it wants, from `cursor` on and before `end`.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_before<T>(
        &self,
        cursor: u64,
        end: u64,
        take: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Page<T>, Error> {
        self.read_within(cursor, end, usize::MAX, usize::MAX, unnumbered(take))
    }

    /// As [`Reader::read`], but with what `take` makes of each event that it wants, and ended after a look at
    /// `look_at_most` events or few more: where few events are wanted a reading can be long.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_some<T>(
        &self,
        cursor: u64,
        limit: usize,
        look_at_most: usize,
        take: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Page<T>, Error> {
        self.read_within(cursor, u64::MAX, limit, look_at_most, unnumbered(take))
    }

    /// At most `limit` events from `cursor` on, each with its number.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_numbered(&self, cursor: u64, limit: usize) -> Result<Page<(u64, Event)>, Error> {
        let take = |number, event: &Event| Some((number, event.clone()));
        self.read_within(cursor, u64::MAX, limit, usize::MAX, take)
    }

    fn read_within<T>(
        &self,
        cursor: u64,
        end: u64,
        limit: usize,
        look_at_most: usize,
        mut take: impl FnMut(u64, &Event) -> Option<T>,
    ) -> Result<Page<T>, Error> {
        let span = self.shared.segments.span(cursor, end);
        let mut page = Page { events: Vec::new(), cursor: span.from, missed: span.missed };
        let mut looked_at = 0;
        for (segment, end) in span.segments {
            if page.events.len() == limit || looked_at >= look_at_most {
                break;
            }
            let mut reading = Reading::new(&self.shared, &segment, page.cursor)?;
            while page.events.len() < limit && looked_at < look_at_most && page.cursor < end {
                let Some(batch) = reading.next(page.cursor)? else {
                    // The rest of this segment is damaged.
                    page.missed += end - page.cursor;
                    page.cursor = end;
                    break;
                };
                page.missed += batch.first.saturating_sub(page.cursor);
                page.cursor = page.cursor.max(batch.first);
                let skip = usize::try_from(page.cursor - batch.first).unwrap_or(usize::MAX);
                for event in batch.events.iter().skip(skip) {
                    if page.events.len() == limit || page.cursor == end {
                        break;
                    }
                    page.events.extend(take(page.cursor, event));
                    page.cursor += 1;
                    looked_at += 1;
                }
            }
        }
        Ok(page)
    }
}

fn unnumbered<T>(mut take: impl FnMut(&Event) -> Option<T>) -> impl FnMut(u64, &Event) -> Option<T> {
    move |_, event| take(event)
}

/// Goes through the batches of a segment.
struct Reading<'a> {
    shared: &'a Shared,
    segment: &'a Segment<Sources>,
    window: Window,
    /// Where the next frame begins, in bytes.
    at: u64,
    sources: Arc<Sources>,
}

impl<'a> Reading<'a> {
    fn new(shared: &'a Shared, segment: &'a Segment<Sources>, cursor: u64) -> Result<Reading<'a>, Error> {
        let table = segment.table()?;
        let at = table.place(cursor);
        let window = Window::new(segment.file().clone(), at, table.len);
        Ok(Reading { shared, segment, window, at, sources: Arc::clone(table.legend()) })
    }

    /// The next batch that holds an event at or after the cursor.
    fn next(&mut self, cursor: u64) -> Result<Option<Arc<Decoded>>, Error> {
        loop {
            let place = (self.segment.first, self.at);
            let batch = match self.shared.decoded.get(place) {
                Some(batch) => batch,
                None => {
                    let Some(batch) = self.decode()? else { return Ok(None) };
                    let batch = Arc::new(batch);
                    self.shared.decoded.put(place, &batch);
                    batch
                }
            };
            self.at = batch.end;
            if batch.next() > cursor {
                return Ok(Some(batch));
            }
        }
    }

    /// The frame at the place of reading; without events if it is no batch. `None` if there is none, or
    /// none that can be read.
    fn decode(&mut self) -> Result<Option<Decoded>, Error> {
        self.window.seek(self.at);
        let Some((at, frame)) = self.window.frame()? else { return Ok(None) };
        let end = at + frame.len() as u64;
        match chain::batch_first(frame) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Some(Decoded { first: 0, events: Vec::new(), end })),
            Err(_) => return Ok(None),
        }
        let Some(Body::Batch(batch)) = chain::body(frame) else { return Ok(None) };
        let Some(source) = self.sources.get(batch.generation) else {
            // Progress without events needs no source.
            return Ok(batch.records.is_empty().then(|| Decoded { first: 0, events: Vec::new(), end }));
        };
        let event = |record| event(self.shared.sensor, batch.generation, batch.seen, source, record);
        let events = batch.records.into_iter().map(event).collect();
        Ok(Some(Decoded { first: batch.first, events, end }))
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
