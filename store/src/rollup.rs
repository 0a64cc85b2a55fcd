//! Rollup: rows of a finer tier, merged into buckets of a coarser one.
//!
//! Pure. A row of buckets is closed when the first row of another span arrives, and is packed then. Spans need
//! not ascend: after the clock was set back, a span can have a second row, and readers merge the two. Closed
//! rows may also come from another host, for which these are copied.

use crate::block::{HostNo, Rows, SeriesNo};
use crate::bucket::Bucket;
use crate::bucket_row::{Unpack, pack};
use crate::tier;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// The buckets of all series in one span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BucketRow {
    /// Start of the span.
    pub(crate) start: Time,
    pub(crate) buckets: BTreeMap<SeriesNo, Bucket>,
}

/// A row to which nothing is added any more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClosedRow {
    /// Start of the span.
    pub(crate) start: Time,
    /// Rows of the finer tier in this span and before it; of copied rows, the rows of their origin.
    pub(crate) finer_end: u64,
    /// Packed buckets.
    pub(crate) packed: Arc<[u8]>,
}

/// Buckets of a host in one tier: the open row, and closed rows that are not sealed into a block.
#[derive(Debug)]
pub(crate) struct Rollup {
    host: HostNo,
    period: Duration,
    /// Number of the first closed row.
    first_row: u64,
    closed: Vec<ClosedRow>,
    open: Option<BucketRow>,
    /// End and start of the newest row that was closed.
    newest: Option<(u64, Time)>,
    /// Latest start of any row that was closed: not that of the newest after the clock was set back.
    latest: Option<Time>,
}

impl Rollup {
    pub(crate) fn new(host: HostNo, period: Duration, first_row: u64) -> Rollup {
        Rollup { host, period, first_row, closed: Vec::new(), open: None, newest: None, latest: None }
    }

    /// Adds a row of the finer tier, with its number. Returns the row that this closed, if any, and its number.
    pub(crate) fn push<'a>(
        &mut self,
        time: Time,
        finer_row: u64,
        buckets: impl Iterator<Item = (SeriesNo, &'a Bucket)>,
    ) -> Option<(u64, BucketRow)> {
        let start = tier::floor(time, self.period);
        let mut closed = None;
        if self.open.as_ref().is_none_or(|open| open.start != start) {
            let next = BucketRow { start, buckets: BTreeMap::new() };
            if let Some(full) = self.open.replace(next) {
                let packed = pack(full.buckets.iter().map(|(series, bucket)| (*series, bucket)));
                let row = ClosedRow { start: full.start, finer_end: finer_row, packed: packed.into() };
                closed = Some((self.next_row(), full));
                self.append(row);
            }
        }
        let open = &mut self.open.as_mut().expect("opened above").buckets;
        for (series, bucket) in buckets {
            open.entry(series).and_modify(|open| open.merge(bucket)).or_insert(*bucket);
        }
        closed
    }

    /// Adds a row that is closed already.
    pub(crate) fn append(&mut self, row: ClosedRow) {
        self.newest = Some((row.finer_end, row.start));
        self.latest = self.latest.max(Some(row.start));
        self.closed.push(row);
    }

    /// The newest closed row, which may be sealed: rows of the finer tier up to it, and its start.
    pub(crate) fn newest(&self) -> Option<(u64, Time)> {
        self.newest
    }

    /// Whether a copied row is one of those that were added. After its host was installed again, numbers are lower
    /// and times later.
    pub(crate) fn has(&self, finer_end: u64, start: Time) -> bool {
        self.newest.is_some_and(|(end, _)| finer_end <= end) && Some(start) <= self.latest
    }

    /// Sets the newest row, and the latest, of those that are sealed.
    pub(crate) fn set_newest(&mut self, newest: Option<(u64, Time)>, latest: Option<Time>) {
        (self.newest, self.latest) = (newest, latest);
    }

    /// Number of the next closed row.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_row + self.closed.len() as u64
    }

    /// Closed rows that are not sealed.
    pub(crate) fn closed(&self) -> &[ClosedRow] {
        &self.closed
    }

    /// The row that is open.
    pub(crate) fn open(&self) -> Option<&BucketRow> {
        self.open.as_ref()
    }

    /// Earliest start of a row that is not sealed.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.closed.iter().map(|row| row.start).chain(self.open.as_ref().map(|open| open.start)).min()
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
            for (series, bucket) in closed.buckets() {
                let column = columns.entry(series).or_default();
                column.resize(row, None);
                column.push(Some(bucket));
            }
        }
        for column in columns.values_mut() {
            column.resize(self.closed.len(), None);
        }
        Rows {
            host: self.host,
            first_row: self.first_row,
            finer_rows: self.closed.last().expect("at least one").finer_end,
            marks: Vec::new(),
            times: self.closed.iter().map(|row| row.start).collect(),
            columns: columns.into_iter().collect(),
        }
    }
}

impl ClosedRow {
    /// Its buckets, in the order of their series.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (SeriesNo, Bucket)> {
        Unpack::new(&self.packed).map(|bucket| bucket.expect("packed or checked before it was added"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Exact;

    fn push(rollup: &mut Rollup, secs: i64, row: u64, value: u64) -> Option<u64> {
        let bucket = Bucket::of(Exact::Whole(value));
        let closed = rollup.push(Time::from_micros(secs * 1_000_000), row, std::iter::once((1, &bucket)));
        closed.map(|(number, _)| number)
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
        assert_eq!(rollup.earliest(), Some(Time::from_micros(0)));
        rollup.drop_before(8);
        assert_eq!((rollup.closed().len(), rollup.next_row()), (1, 9));
        rollup.drop_before(9);
        assert_eq!((rollup.closed().len(), rollup.next_row()), (0, 9));
        assert_eq!(rollup.open().map(|open| open.start), Some(Time::from_micros(0)));
    }
}
