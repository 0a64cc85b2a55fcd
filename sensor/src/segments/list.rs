//! List of the segments of a log, shared by its writer and its readers.
//!
//! Rule: readers take no lock that the writer holds while it writes. A published event is in one of the
//! segments that are listed after it was published, so readers load the number first and the list second
//! ([`Segments::span`]).
//! Not here: the content of a segment ([`super::segment`]).

use super::Error;
use super::segment::{Legend, Segment};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The segments of a log, the oldest first.
pub struct Segments<L> {
    all: Mutex<VecDeque<Arc<Segment<L>>>>,
    /// Held while a segment is replaced or removed from the list, so that no deleted one gets its name again.
    names: Mutex<()>,
    next: watch::Sender<u64>,
}

/// Segments that hold the events from some number on.
pub struct Span<L> {
    /// The first existing event.
    pub from: u64,
    /// Events before it that were requested and are no longer stored.
    pub missed: u64,
    /// The segments, each with the number after the last event to read there.
    pub segments: Vec<(Arc<Segment<L>>, u64)>,
}

impl<L: Legend> Segments<L> {
    /// Creates the list, the live segment last; the next event gets the number `next`.
    #[must_use]
    pub fn new(older: Vec<Arc<Segment<L>>>, live: Arc<Segment<L>>, next: u64) -> Segments<L> {
        let segments = Segments {
            all: Mutex::new(older.into()),
            names: Mutex::default(),
            next: watch::Sender::new(next),
        };
        segments.replace_live(live, 0);
        segments
    }

    /// The number of the next event; changes whenever events are published.
    #[must_use]
    pub fn next(&self) -> watch::Receiver<u64> {
        self.next.subscribe()
    }

    /// Publishes the events before this number.
    pub fn publish(&self, next: u64) {
        self.next.send_if_modified(|known| std::mem::replace(known, next) != next);
    }

    /// Adds a new live segment and removes the oldest `deleted` ones. If the old live segment has no events,
    /// the new one replaces it.
    pub fn replace_live(&self, live: Arc<Segment<L>>, deleted: usize) {
        let _names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.back().is_some_and(|last| last.first == live.first) {
            all.pop_back();
        }
        all.push_back(live);
        all.drain(..deleted);
    }

    /// Replaces a closed segment by the same one in another file, which `rename` gives its name. Returns
    /// `false` and does nothing if the segment was removed from the list.
    ///
    /// # Errors
    /// If `rename` fails; the segment is as it was then.
    pub fn replace(
        &self,
        first: u64,
        rename: impl FnOnce() -> Result<Arc<Segment<L>>, Error>,
    ) -> Result<bool, Error> {
        let _names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = || self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if !lock().iter().any(|segment| segment.first == first) {
            return Ok(false);
        }
        let replacement = rename()?;
        if let Some(segment) = lock().iter_mut().find(|segment| segment.first == first) {
            *segment = replacement;
        }
        Ok(true)
    }

    #[must_use]
    pub fn all(&self) -> Vec<Arc<Segment<L>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The number of the oldest stored event.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.front().map_or(0, |segment| segment.first)
    }

    /// Returns the oldest segments to delete, so that the others and `more_bytes` more stay within the
    /// budget. Never the live one.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn beyond_budget(&self, budget_bytes: u64, more_bytes: u64) -> Result<Vec<u64>, Error> {
        let all = self.all();
        let lens = all.iter().map(|segment| segment.stored_len()).collect::<Result<Vec<_>, _>>()?;
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

    /// Returns the segments that hold the published events from `from` on and before `end`. A number beyond
    /// the end, left over from before a power loss, is moved back to that of the next event.
    #[must_use]
    pub fn span(&self, from: u64, end: u64) -> Span<L> {
        let newest = end.min(*self.next.borrow());
        let all = self.all();
        let wanted = from.min(newest);
        let from = all.first().map_or(newest, |oldest| oldest.first).max(wanted);
        let ends = all.iter().skip(1).map(|after| after.first.min(newest)).chain([newest]);
        let parts = all.iter().cloned().zip(ends);
        let segments = parts.filter(|(segment, end)| *end > segment.first.max(from)).collect();
        Span { from, missed: from - wanted, segments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::disk::Directory;
    use crate::segments::segment::{NoLegend, Table, create};

    /// Segments of 100 bytes each, with these first events.
    fn segments(firsts: &[u64], next: u64) -> (tempfile::TempDir, Segments<NoLegend>) {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Directory::new(directory.path().to_owned()).expect("a directory");
        let mut all: Vec<_> = firsts
            .iter()
            .map(|first| {
                let head = |file: &dyn crate::segments::disk::Stored| {
                    file.write_at(&[7; 100], 0).map_err(Error::disk("write"))
                };
                let file = create(&disk, *first, head).expect("room");
                Arc::new(Segment::new(*first, file, Some(Table::new(100, NoLegend))))
            })
            .collect();
        let live = all.pop().expect("one at least");
        (directory, Segments::new(all, live, next))
    }

    #[test]
    fn the_oldest_are_beyond_the_budget_and_the_live_one_never() {
        let (_directory, segments) = segments(&[0, 10, 20], 30);
        let check = |budget, more, expected: &[u64]| {
            assert_eq!(segments.beyond_budget(budget, more).expect("measured"), expected, "{budget} {more}");
        };
        check(300, 0, &[]);
        check(300, 1, &[0]);
        check(299, 0, &[0]);
        check(299, 1, &[0]);
        check(199, 0, &[0, 10]);
        check(0, 1000, &[0, 10]);
    }

    #[test]
    fn a_span_is_what_is_kept_and_published() {
        let (_directory, segments) = segments(&[5, 10, 20], 30);
        let check = |from, end, expected: (u64, u64, &[(u64, u64)])| {
            let span = segments.span(from, end);
            let parts: Vec<_> = span.segments.iter().map(|(segment, end)| (segment.first, *end)).collect();
            assert_eq!((span.from, span.missed, &*parts), expected, "from {from} before {end}");
        };
        check(0, u64::MAX, (5, 5, &[(5, 10), (10, 20), (20, 30)]));
        check(12, u64::MAX, (12, 0, &[(10, 20), (20, 30)]));
        check(12, 15, (12, 0, &[(10, 15)]));
        check(30, u64::MAX, (30, 0, &[]));
        check(99, u64::MAX, (30, 0, &[]));
    }
}
