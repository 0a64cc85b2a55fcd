//! Journal reader: returns events from a cursor on while the writer appends.
//!
//! A cursor is the sequence number of the next event to read; it stays valid across restarts. Readers take no
//! lock that the writer holds while it writes.
//! Not here: which queries are allowed (`sensor::query`).

use super::batch_cache::BatchCache;
use super::reading::Reading;
use super::sources::Sources;
use crate::segments::Error;
use crate::segments::list::Segments;
use crate::segments::packed::summary::Summary;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;
use wire::event::{Event, Fields};
use wire::id::SensorKey;
use wire::report::StoreKey;
use wire::text_regex::TextRegex;

/// State shared by the writer and the readers.
pub(super) struct Shared {
    pub(super) segments: Segments<Sources>,
    pub(super) sensor: SensorKey,
    durable: watch::Sender<u64>,
    /// Whether a reader has all durable events and waits for more.
    is_awaited: AtomicBool,
    pub(super) batches: BatchCache,
}

impl Shared {
    pub(super) fn new(segments: Segments<Sources>, sensor: SensorKey) -> Shared {
        let durable = watch::Sender::new(*segments.next().borrow());
        Shared {
            segments,
            sensor,
            durable,
            is_awaited: AtomicBool::new(false),
            batches: BatchCache::default(),
        }
    }

    /// Whether a published event is not durable yet and a reader waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        // Do not reorder these loads, nor the steps of `Reader::await_durable`: at least one of the two sides
        // must see the other.
        let next = *self.segments.next().borrow();
        self.is_awaited.load(Ordering::SeqCst) && *self.durable.borrow() < next
    }

    pub(super) fn publish_durable(&self, next: u64) {
        self.durable.send_if_modified(|known| std::mem::replace(known, next) != next);
    }
}

/// Reader of the journal; usable from any thread.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
    choose: Option<Arc<dyn Choose>>,
}

/// Which events are requested. Rule: what refuses a block refuses every event of it.
pub trait Choose: Send + Sync {
    /// Whether a block with this summary may have a requested event.
    fn chooses(&self, summary: &Summary) -> bool;

    /// An expression that one of the texts of each requested event matches.
    fn regex(&self) -> Option<&TextRegex>;

    /// Whether an event is requested.
    fn fits(&self, event: &dyn Fields) -> bool;
}

/// Result of one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T = Event> {
    /// The accepted events, in order.
    pub events: Vec<T>,
    /// The cursor for the next read.
    pub cursor: u64,
    /// Events between the given cursor and the first examined event that are no longer stored.
    pub missed: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared, choose: None }
    }

    /// The identity of this journal: the sensor's key. An earlier journal in the same directory has another
    /// key.
    #[must_use]
    pub fn key(&self) -> StoreKey {
        StoreKey(self.shared.sensor.0)
    }

    /// The sequence number that the next event will get; changes whenever events are added.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.shared.segments.next()
    }

    /// Events before this sequence number survive a power loss.
    #[must_use]
    pub fn durable(&self) -> u64 {
        *self.shared.durable.borrow()
    }

    /// A receiver of the value of [`Reader::durable`], to wait for changes.
    #[must_use]
    pub fn durables(&self) -> watch::Receiver<u64> {
        self.shared.durable.subscribe()
    }

    /// Sets whether a reader has all durable events and waits for more: the writer then makes events durable
    /// sooner. Returns whether a reader waits now that the writer may not have noticed.
    #[must_use]
    pub fn await_durable(&self, waits: bool) -> bool {
        let waited = self.shared.is_awaited.swap(waits, Ordering::SeqCst);
        waits && !waited && self.shared.is_awaited()
    }

    /// The sequence number of the oldest stored event.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.shared.segments.oldest()
    }

    /// Returns up to `limit` events that `keep` accepts, from `cursor` on. A cursor beyond the end, left over
    /// from before a power loss, is moved back to the next event.
    ///
    /// # Errors
    /// If the disk cannot be read. A damaged frame is no error: its events count as missed.
    pub fn read(
        &self,
        cursor: u64,
        limit: usize,
        mut keep: impl FnMut(&Event) -> bool,
    ) -> Result<Page, Error> {
        self.read_some(cursor, limit, usize::MAX, |event| keep(event).then(|| event.clone()))
    }

    /// A reader of the events that are requested: of compressed segments only these are decoded.
    #[must_use]
    pub fn choosing(&self, choose: impl Choose + 'static) -> Reader {
        Reader { shared: Arc::clone(&self.shared), choose: Some(Arc::new(choose)) }
    }

    /// Returns the results of `take` for the events from `cursor` on and before `end` that it accepts.
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

    /// As [`Reader::read`], but returns the results of `take`, and stops after examining `look_at_most`
    /// events or a few more: where few events match, a read can be long.
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

    /// Returns at most `limit` events from `cursor` on, each with its number.
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
        let choose = self.choose.as_deref();
        let mut looked_at = 0;
        for (segment, end) in span.segments {
            if page.events.len() == limit || looked_at >= look_at_most {
                break;
            }
            let mut reading = Reading::new(&self.shared, &segment, page.cursor, choose)?;
            while page.events.len() < limit && looked_at < look_at_most && page.cursor < end {
                if let Some(next) = reading.skip(page.cursor) {
                    page.cursor = next.min(end);
                    continue;
                }
                let Some(batch) = reading.next(page.cursor)? else {
                    // The rest of this segment is damaged.
                    page.missed += end - page.cursor;
                    page.cursor = end;
                    break;
                };
                page.missed += batch.first.min(end).saturating_sub(page.cursor);
                let from = page.cursor.max(batch.first);
                page.cursor = batch.next.min(end);
                looked_at += usize::try_from(page.cursor.saturating_sub(from)).unwrap_or(usize::MAX);
                let start = batch.events.partition_point(|(number, _)| *number < from);
                for (number, event) in batch.events[start..].iter().take_while(|(number, _)| *number < end) {
                    if page.events.len() == limit {
                        page.cursor = *number;
                        break;
                    }
                    if !batch.is_whole || choose.is_none_or(|choose| choose.fits(event)) {
                        page.events.extend(take(*number, event));
                    }
                }
            }
        }
        Ok(page)
    }
}

fn unnumbered<T>(mut take: impl FnMut(&Event) -> Option<T>) -> impl FnMut(u64, &Event) -> Option<T> {
    move |_, event| take(event)
}
