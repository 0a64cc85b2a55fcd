//! The reading end of the store: the domain's events from a place on, while more are stored.
//!
//! Only durable events are seen. Readers take no lock that the writer holds while it writes.
//! Not here: cursors that outlive a representative (`representative::cursor`).

use super::begun::Begun;
use super::frame::{Batch, Body};
use crate::segments::list::Segments;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use tokio::sync::watch;
use wire::event::{Event, Id};
use wire::report::StoreKey;
use wire::time::Time;

/// What writer and readers share.
pub(super) struct Shared {
    pub(super) segments: Segments<Begun>,
    pub(super) key: StoreKey,
}

/// Reads the store from any thread.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// An event and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its number in the store.
    pub at: u64,
    /// Its number in its sensor's journal.
    pub number: u64,
    /// When it was stored, by the representative's clock.
    pub stored: Time,
    /// The event; its call is the domain's.
    pub event: Event,
}

/// What one reading gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events that were wanted, in order.
    pub events: Vec<Stored>,
    /// Where to read on.
    pub next: u64,
    /// Events between the given place and the first one looked at that are kept no more.
    pub missed: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    /// Which store.
    #[must_use]
    pub fn key(&self) -> StoreKey {
        self.shared.key
    }

    /// The number the next event gets; it changes whenever events are durable.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.shared.segments.next()
    }

    /// The number of the oldest event that is kept.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.shared.segments.oldest()
    }

    /// How far each sensor's events were stored where the oldest kept event stands: those before are gone.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn oldest_of(&self) -> Result<Arc<Begun>, Error> {
        let segments = self.shared.segments.all();
        segments.first().map_or(Ok(Arc::default()), |segment| Ok(Arc::clone(segment.table()?.legend())))
    }

    /// Up to `limit` events that `keep` accepts, from `from` on.
    ///
    /// # Errors
    /// If the disk cannot be read. Damaged frames are no error: their events count as missed.
    pub fn read(&self, from: u64, limit: usize, keep: impl FnMut(&Stored) -> bool) -> Result<Page, Error> {
        self.read_some(from, limit, usize::MAX, keep)
    }

    /// As [`Reader::read`], ended after a look at `look_at_most` events or few more: where few are wanted a reading
    /// can be long.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_some(
        &self,
        from: u64,
        limit: usize,
        look_at_most: usize,
        mut keep: impl FnMut(&Stored) -> bool,
    ) -> Result<Page, Error> {
        let span = self.shared.segments.span(from, u64::MAX);
        let mut page = Page { events: Vec::new(), next: span.from, missed: span.missed };
        let look_until = page.next.saturating_add(look_at_most as u64);
        for (segment, end) in span.segments {
            if page.events.len() == limit || page.next >= look_until {
                break;
            }
            let table = segment.table()?;
            let mut window = Window::new(Arc::clone(segment.file()), table.place(page.next), table.len);
            while page.events.len() < limit && page.next < end.min(look_until) {
                let Some(batch) = next_batch(&mut window, page.next)? else {
                    // The rest of this segment is damaged.
                    page.missed += end - page.next;
                    page.next = end;
                    break;
                };
                page.missed += batch.at.saturating_sub(page.next);
                page.next = page.next.max(batch.at);
                take(batch, &mut page, limit, &mut keep);
            }
        }
        Ok(page)
    }
}

/// The next batch with an event at or after this place.
fn next_batch(window: &mut Window, from: u64) -> Result<Option<Batch>, Error> {
    while let Some((_, frame)) = window.frame()? {
        match chain::batch_first(frame) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(_) => return Ok(None),
        }
        let Some(Body::Batch(batch)) = chain::body(frame) else { return Ok(None) };
        if batch.at + batch.len() > from {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

fn take(batch: Batch, page: &mut Page, limit: usize, keep: &mut impl FnMut(&Stored) -> bool) {
    let Batch { at, sensor, first, stored, runs, .. } = batch;
    let records = runs.into_iter().flat_map(|run| {
        let (generation, seen, source) = (run.generation, run.seen, run.source);
        run.records.into_iter().map(move |record| {
            let id = Id { sensor, generation, offset: record.offset, number: record.number };
            Event { id, seen, call: record.call, content: record.content, source: source.clone() }
        })
    });
    for (nth, event) in (0u64..).zip(records) {
        if at + nth < page.next {
            continue;
        }
        if page.events.len() == limit {
            return;
        }
        page.next += 1;
        let event = Stored { at: at + nth, number: first + nth, stored, event };
        if keep(&event) {
            page.events.push(event);
        }
    }
}
