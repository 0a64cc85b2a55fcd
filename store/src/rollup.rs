//! Rollup: rows of a finer tier, merged into buckets of a coarser one.
//!
//! Pure. A row of buckets is closed when the first row of another span arrives. Spans need not ascend: after
//! the clock was set back, a span can have a second row, and readers merge the two.

use crate::block::{HostNo, Rows, SeriesNo};
use crate::bucket::Bucket;
use crate::tier;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Time;

/// The buckets of all series in one span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BucketRow {
    /// Start of the span.
    pub(crate) start: Time,
    /// Rows of the finer tier before this span.
    pub(crate) finer_rows: u64,
    pub(crate) buckets: BTreeMap<SeriesNo, Bucket>,
}

/// Buckets of a host in one tier: the open row, and closed rows that are not sealed into a block.
#[derive(Debug)]
pub(crate) struct Rollup {
    host: HostNo,
    period: Duration,
    /// Number of the first closed row.
    first_row: u64,
    closed: Vec<BucketRow>,
    open: Option<BucketRow>,
}

impl Rollup {
    pub(crate) fn new(host: HostNo, period: Duration, first_row: u64) -> Rollup {
        Rollup { host, period, first_row, closed: Vec::new(), open: None }
    }

    /// Adds a row of the finer tier, with its number. Returns the number of the row that this closed, if any.
    pub(crate) fn push<'a>(
        &mut self,
        time: Time,
        finer_row: u64,
        buckets: impl Iterator<Item = (SeriesNo, &'a Bucket)>,
    ) -> Option<u64> {
        let start = tier::floor(time, self.period);
        let mut closed = None;
        if self.open.as_ref().is_none_or(|open| open.start != start) {
            let next = BucketRow { start, finer_rows: finer_row, buckets: BTreeMap::new() };
            if let Some(full) = self.open.replace(next) {
                closed = Some(self.next_row());
                self.closed.push(full);
            }
        }
        let open = &mut self.open.as_mut().expect("opened above").buckets;
        for (series, bucket) in buckets {
            open.entry(series).and_modify(|open| open.merge(bucket)).or_insert(*bucket);
        }
        closed
    }

    /// Number of the next closed row.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_row + self.closed.len() as u64
    }

    /// Closed rows that are not sealed.
    pub(crate) fn closed(&self) -> &[BucketRow] {
        &self.closed
    }

    /// Rows of the finer tier that all closed rows summarize.
    pub(crate) fn finer_rows(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.finer_rows)
    }

    /// The row that is open.
    pub(crate) fn open(&self) -> Option<&BucketRow> {
        self.open.as_ref()
    }

    /// All rows that are not sealed, the open one last.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &BucketRow> {
        self.closed.iter().chain(&self.open)
    }

    /// Drops the closed rows before the one with this number: they are sealed.
    pub(crate) fn drop_before(&mut self, row: u64) {
        let count = usize::try_from(row.saturating_sub(self.first_row)).unwrap_or(usize::MAX);
        let count = count.min(self.closed.len());
        self.closed.drain(..count);
        self.first_row += count as u64;
    }

    /// Drops the oldest closed rows beyond `max`; returns how many.
    pub(crate) fn bound(&mut self, max: usize) -> u64 {
        let excess = self.closed.len().saturating_sub(max) as u64;
        self.drop_before(self.first_row + excess);
        excess
    }

    /// Number of the first row that is not sealed.
    pub(crate) fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Converts the closed rows, at least one, to columns.
    pub(crate) fn columns(&self) -> Rows<Bucket> {
        let mut columns: BTreeMap<SeriesNo, Vec<Option<Bucket>>> = BTreeMap::new();
        for (row, closed) in self.closed.iter().enumerate() {
            for (series, bucket) in &closed.buckets {
                let column = columns.entry(*series).or_default();
                column.resize(row, None);
                column.push(Some(*bucket));
            }
        }
        for column in columns.values_mut() {
            column.resize(self.closed.len(), None);
        }
        Rows {
            host: self.host,
            first_row: self.first_row,
            finer_rows: self.finer_rows().expect("a row is closed by opening the next"),
            marks: Vec::new(),
            times: self.closed.iter().map(|row| row.start).collect(),
            columns: columns.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Exact;

    fn push(rollup: &mut Rollup, secs: i64, row: u64, value: u64) -> Option<u64> {
        let bucket = Bucket::of(Exact::Whole(value));
        rollup.push(Time::from_micros(secs * 1_000_000), row, std::iter::once((1, &bucket)))
    }

    #[test]
    fn a_span_is_closed_by_the_next_one_even_if_that_is_earlier() {
        let mut rollup = Rollup::new(1, Duration::from_secs(60), 7);
        assert_eq!(push(&mut rollup, 10, 0, 1), None);
        assert_eq!(push(&mut rollup, 59, 1, 5), None);
        assert_eq!(push(&mut rollup, 60, 2, 9), Some(7));
        assert_eq!(push(&mut rollup, 30, 3, 2), Some(8), "the clock was set back");
        let rows = rollup.columns();
        assert_eq!((rows.first_row, rows.finer_rows), (7, 3));
        assert_eq!(rows.times.iter().map(|time| time.micros()).collect::<Vec<_>>(), [0, 60_000_000]);
        let first = rows.columns[0].1[0].expect("a value");
        assert_eq!((first.count, first.sum, first.last), (2, Exact::Whole(6), Exact::Whole(5)));
        rollup.drop_before(8);
        assert_eq!((rollup.closed().len(), rollup.next_row(), rollup.rows().count()), (1, 9, 2));
        rollup.drop_before(9);
        assert_eq!((rollup.closed().len(), rollup.next_row(), rollup.rows().count()), (0, 9, 1));
    }
}
