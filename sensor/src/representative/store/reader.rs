//! Reader of the store: the domain's events from a number on, while more are stored.
//!
//! Readers see only durable events. They take no lock that the writer holds while it writes.
//! Not here: cursors that outlive a representative (`representative::cursor`).

use super::frame::{Batch, Body};
use super::segment_start::SegmentStart;
use crate::segments::list::Segments;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use tokio::sync::watch;
use wire::event::{Event, Id};
use wire::report::StoreKey;
use wire::time::Time;

/// State that the writer and the readers share.
pub(super) struct Shared {
    pub(super) segments: Segments<SegmentStart>,
    pub(super) key: StoreKey,
}

/// Reads the store from any thread.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// A stored event with its numbers.
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

/// Result of one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events that matched, in order.
    pub events: Vec<Stored>,
    /// Number to continue reading from.
    pub next: u64,
    /// Number of events between the requested number and the first event read that are no longer stored.
    pub missed: u64,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    #[must_use]
    pub fn key(&self) -> StoreKey {
        self.shared.key
    }

    /// Returns the number that the next event gets; it changes whenever events become durable.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.shared.segments.next()
    }

    /// Returns the number of the oldest stored event.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.shared.segments.oldest()
    }

    /// Returns how far each sensor's events were stored at the oldest stored event: those before are gone.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn oldest_of(&self) -> Result<Arc<SegmentStart>, Error> {
        let segments = self.shared.segments.all();
        segments.first().map_or(Ok(Arc::default()), |segment| Ok(Arc::clone(segment.table()?.legend())))
    }

    /// Reads up to `limit` events that `keep` accepts, starting at `from`.
    ///
    /// # Errors
    /// If the disk cannot be read. Damaged frames are no error: their events count as missed.
    pub fn read(&self, from: u64, limit: usize, keep: impl FnMut(&Stored) -> bool) -> Result<Page, Error> {
        self.read_some(from, limit, usize::MAX, keep)
    }

    /// As [`Reader::read`], but ends after examining `look_at_most` events or a few more: where few events
    /// match, a read can take long.
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

/// Returns the next batch with an event at or after this number.
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
