//! The segments that exist, as the writer and the readers of a log share them.
//!
//! Rule: readers take no lock that the writer holds while it writes. What is published stands in the
//! segments that are listed after it was published, so readers ask in that order ([`Segments::span`]).
//! Not here: what is in a segment ([`super::segment`]).

use super::Error;
use super::segment::{Legend, Segment};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The segments of a log, the oldest first.
pub struct Segments<L> {
    all: Mutex<VecDeque<Arc<Segment<L>>>>,
    next: watch::Sender<u64>,
}

/// What holds the events from some number on.
pub struct Span<L> {
    /// The first event that there is.
    pub from: u64,
    /// Events before it that were wanted and are kept no more.
    pub missed: u64,
    /// The segments, each with the number after the last event to be read there.
    pub segments: Vec<(Arc<Segment<L>>, u64)>,
}

impl<L: Legend> Segments<L> {
    /// These, the live one last; the next event gets the number `next`.
    #[must_use]
    pub fn new(older: Vec<Arc<Segment<L>>>, live: Arc<Segment<L>>, next: u64) -> Segments<L> {
        let segments = Segments { all: Mutex::new(older.into()), next: watch::Sender::new(next) };
        segments.replace_live(live, 0);
        segments
    }

    /// The number the next event gets; it changes whenever events are published.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.next.subscribe()
    }

    /// Events before this number are published.
    pub fn publish(&self, next: u64) {
        self.next.send_if_modified(|known| std::mem::replace(known, next) != next);
    }

    /// A new live segment; the oldest `deleted` are no more. Where the old one has no events the new one takes
    /// its place.
    pub fn replace_live(&self, live: Arc<Segment<L>>, deleted: usize) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.back().is_some_and(|last| last.first == live.first) {
            all.pop_back();
        }
        all.push_back(live);
        all.drain(..deleted);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Segment<L>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The number of the oldest event that is kept.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.front().map_or(0, |segment| segment.first)
    }

    /// The oldest, so many that the others and so many more bytes stay within the budget. Never the live one.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn beyond_budget(&self, budget_bytes: u64, more_bytes: u64) -> Result<Vec<u64>, Error> {
        let all = self.all();
        let lens = all.iter().map(|segment| segment.size()).collect::<Result<Vec<_>, _>>()?;
        let mut total = lens.iter().sum::<u64>() + more_bytes;
        let mut doomed = Vec::new();
        for (segment, len) in all.iter().zip(lens).take(all.len().saturating_sub(1)) {
            if total <= budget_bytes {
                break;
            }
            total -= len;
            doomed.push(segment.first);
        }
        Ok(doomed)
    }

    /// What holds the published events from `from` on and before `end`. A number from a future that a loss of
    /// power undid is brought back to the next event's.
    #[must_use]
    pub fn span(&self, from: u64, end: u64) -> Span<L> {
        let newest = end.min(*self.next.borrow());
        let all = self.all();
        let wanted = from.min(newest);
        let from = all.first().map_or(newest, |oldest| oldest.first).max(wanted);
        let ends = all.iter().skip(1).map(|after| after.first.min(newest)).chain([newest]);
        let segments = all.iter().cloned().zip(ends).filter(|(_, end)| *end > from).collect();
        Span { from, missed: from - wanted, segments }
    }
}
