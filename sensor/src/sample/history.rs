//! History: the last minutes of all metrics, compressed.
//!
//! Pure. Sweeps with the same metrics are compressed together: each value is stored as the difference to the
//! previous sweep, in as few bytes as it needs (one for most). Real numbers are stored as millionths where
//! that is exact, which holds for everything that kernels count in ticks or microseconds, and uncompressed
//! elsewhere.
//! Bounds: [`SWEEPS_KEPT`] and [`LEN_MAX_BYTES`]; the oldest sweeps are dropped first.

use super::table::{Metrics, Table};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Minimum of stored sweeps, memory permitting: five minutes at the default rate.
pub const SWEEPS_KEPT: usize = 300;

/// Limit on compressed values, in bytes: a quarter of what an idle sensor may use in all.
pub const LEN_MAX_BYTES: usize = 8 << 20;

/// Sweeps compressed together: a query decompresses whole chunks, and a chunk starts with full values.
const CHUNK_SWEEPS: usize = 32;

/// Values of a metric over time, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub metric: Arc<Metric>,
    /// Time and value of each point.
    pub points: Vec<(Time, Number)>,
}

/// The compressed sweeps.
#[derive(Debug, Default)]
pub struct History {
    closed: VecDeque<Arc<Chunk>>,
    open: Option<Chunk>,
    /// Bytes in `closed`.
    len_bytes: usize,
    sweeps: usize,
    dropped_total: u64,
}

/// Snapshot of the history, readable without its lock.
#[derive(Clone, Debug)]
pub struct View(Vec<Arc<Chunk>>);

#[derive(Clone, Debug)]
struct Chunk {
    metrics: Metrics,
    times: Vec<Time>,
    packed: Vec<u8>,
    last: Vec<Last>,
}

/// The previous value, from which the next difference is computed.
#[derive(Clone, Copy, Debug, Default)]
struct Last(u64);

impl History {
    /// Adds a sweep, later than all before; drops the oldest ones beyond the bounds.
    pub fn push(&mut self, table: &Table) {
        let fits =
            |chunk: &Chunk| chunk.times.len() < CHUNK_SWEEPS && Arc::ptr_eq(&chunk.metrics, table.metrics());
        if !self.open.as_ref().is_some_and(fits)
            && let Some(full) = self.open.replace(Chunk::new(table.metrics()))
        {
            self.len_bytes += full.len_bytes();
            self.closed.push_back(Arc::new(full));
        }
        self.open.as_mut().expect("opened above").push(table);
        self.sweeps += 1;
        self.make_place();
    }

    /// Takes a snapshot. Cheap: only the newest chunk is copied.
    #[must_use]
    pub fn view(&self) -> View {
        View(self.closed.iter().cloned().chain(self.open.clone().map(Arc::new)).collect())
    }

    /// Number of stored sweeps.
    #[must_use]
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }

    /// Approximate memory use, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes + self.open.as_ref().map_or(0, Chunk::len_bytes)
    }

    /// Number of sweeps dropped for age or space, since the start.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped_total
    }

    fn make_place(&mut self) {
        while let Some(oldest) = self.closed.front() {
            let spare = self.sweeps - oldest.times.len() >= SWEEPS_KEPT;
            if !spare && self.len_bytes() <= LEN_MAX_BYTES {
                return;
            }
            let oldest = self.closed.pop_front().expect("just seen");
            self.len_bytes -= oldest.len_bytes();
            self.sweeps -= oldest.times.len();
            self.dropped_total += oldest.times.len() as u64;
        }
    }
}

impl View {
    /// Returns the series of the matching metrics from `since` on, reading the newest chunk first. A chunk
    /// that would exceed `points_max` points and all older ones are left out; the flag reports it.
    pub fn series(
        &self,
        wanted: impl Fn(&Metric) -> bool,
        since: Time,
        points_max: usize,
    ) -> (Vec<Series>, Completeness) {
        let mut found = SeriesSet::default();
        let mut points = 0;
        for chunk in self.0.iter().rev() {
            let Some(newest) = chunk.times.last() else { continue };
            if *newest < since {
                break;
            }
            let columns: Vec<usize> =
                (0..chunk.metrics.len()).filter(|&at| wanted(&chunk.metrics[at])).collect();
            let sweeps = chunk.times.iter().filter(|&&time| time >= since).count();
            if points + columns.len() * sweeps > points_max {
                return (found.oldest_first(), Completeness::Cut);
            }
            points += columns.len() * sweeps;
            chunk.unpack(&columns, since, &mut found);
        }
        (found.oldest_first(), Completeness::Whole)
    }
}

/// Whether a result has all requested points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All stored points.
    Whole,
    /// Older points are missing.
    Cut,
}

/// The series found so far, and the index of each metric's series.
#[derive(Default)]
pub(crate) struct SeriesSet {
    series: Vec<Series>,
    places: HashMap<Arc<Metric>, usize>,
}

impl SeriesSet {
    /// Returns the index of the series of this metric, and adds the series if it is new. A metric that
    /// disappeared and came back is the same metric: it is compared by name and labels, not by pointer.
    pub(crate) fn place(&mut self, metric: &Arc<Metric>) -> usize {
        if let Some(&place) = self.places.get(metric) {
            return place;
        }
        let place = self.series.len();
        self.series.push(Series { metric: Arc::clone(metric), points: Vec::new() });
        self.places.insert(Arc::clone(metric), place);
        place
    }

    /// Adds a value to the series at this index.
    pub(crate) fn push(&mut self, place: usize, time: Time, value: Number) {
        self.series[place].points.push((time, value));
    }

    pub(crate) fn oldest_first(mut self) -> Vec<Series> {
        for series in &mut self.series {
            series.points.sort_by_key(|(time, _)| *time);
        }
        self.series
    }
}

impl Chunk {
    fn new(metrics: &Metrics) -> Chunk {
        let last = vec![Last::default(); metrics.len()];
        Chunk { metrics: Arc::clone(metrics), times: Vec::new(), packed: Vec::new(), last }
    }

    fn len_bytes(&self) -> usize {
        self.packed.len() + size_of_val(&*self.last) + size_of_val(&*self.times)
    }

    fn push(&mut self, table: &Table) {
        self.times.push(table.time());
        for (last, value) in self.last.iter_mut().zip(table.values()) {
            last.pack(*value, &mut self.packed);
        }
    }

    fn unpack(&self, columns: &[usize], since: Time, found: &mut SeriesSet) {
        let places: Vec<usize> = columns.iter().map(|&at| found.place(&self.metrics[at])).collect();
        let mut last = vec![Last::default(); self.metrics.len()];
        let mut rest = self.packed.as_slice();
        for &time in &self.times {
            let mut wanted = columns.iter().zip(&places).peekable();
            for (at, last) in last.iter_mut().enumerate() {
                let value = last.unpack(&mut rest);
                if let Some((_, place)) = wanted.next_if(|(column, _)| **column == at)
                    && time >= since
                {
                    found.push(*place, time, value);
                }
            }
        }
    }
}

// The two low bits of each compressed number are its tag; the rest is the difference to the previous value.
const WHOLE: u8 = 0;
const MILLIONTHS: u8 = 1;
const AS_IS: u8 = 2;

impl Last {
    fn pack(&mut self, value: Number, out: &mut Vec<u8>) {
        let (tag, raw) = match value {
            Number::Whole(whole) => (WHOLE, whole),
            Number::Real(real) => match millionths(real) {
                Some(millionths) => (MILLIONTHS, millionths.cast_unsigned()),
                None => {
                    out.push(AS_IS);
                    out.extend_from_slice(&real.to_le_bytes());
                    return;
                }
            },
        };
        let difference = raw.wrapping_sub(self.0).cast_signed();
        let folded = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        let mut more = (u128::from(folded) << 2) | u128::from(tag);
        while more >= 0x80 {
            out.push((more & 0x7f) as u8 | 0x80);
            more >>= 7;
        }
        out.push(more as u8);
        self.0 = raw;
    }

    fn unpack(&mut self, rest: &mut &[u8]) -> Number {
        let mut packed = 0u128;
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().expect("as many values as were packed");
            *rest = after;
            packed |= u128::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let tag = (packed & 3) as u8;
        if tag == AS_IS {
            let (bytes, after) = rest.split_first_chunk().expect("eight bytes follow the tag");
            *rest = after;
            return Number::Real(f64::from_le_bytes(*bytes));
        }
        let folded = (packed >> 2) as u64;
        let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
        self.0 = self.0.wrapping_add(difference);
        match tag {
            WHOLE => Number::Whole(self.0),
            #[allow(clippy::cast_precision_loss)] // It came from a double by the inverse operation.
            _ => Number::Real(self.0.cast_signed() as f64 / 1e6),
        }
    }
}

/// Converts a real number to millionths, if that is exact.
fn millionths(real: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let scaled = (real * 1e6).round();
    #[allow(clippy::cast_possible_truncation)] // Below 2^53.
    let whole = (scaled.abs() < EXACT).then_some(scaled as i64)?;
    #[allow(clippy::cast_precision_loss)] // Below 2^53.
    ((whole as f64 / 1e6).to_bits() == real.to_bits()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::super::table::{Rows, metric};
    use super::*;
    use proptest::prelude::*;
    use wire::sample::Semantics;

    fn named(name: &str) -> Arc<Metric> {
        metric(name, "", Semantics::Gauge, &[])
    }

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn everything(history: &History) -> Vec<Series> {
        history.view().series(|_| true, at(0), usize::MAX).0
    }

    #[test]
    fn the_oldest_sweeps_go_first() {
        let (a, b) = (named("a"), named("b"));
        let (mut rows, mut history) = (Rows::default(), History::default());
        for second in 0..1000 {
            rows.push_whole(&a, second);
            rows.push_real(&b, 0.01 * second as f64);
            history.push(&rows.finish(at(second as i64)));
        }
        assert!(
            (SWEEPS_KEPT..SWEEPS_KEPT + CHUNK_SWEEPS).contains(&history.sweeps()),
            "{}",
            history.sweeps()
        );
        assert_eq!(history.sweeps() as u64 + history.dropped_total(), 1000);
        let series = everything(&history);
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].points.last(), Some(&(at(999), Number::Whole(999))));
        assert_eq!(series[0].points.len(), history.sweeps());
        assert!(series[0].points.is_sorted_by_key(|(time, _)| *time));
        let (recent, whole) = history.view().series(|m| m.name == "b", at(990), 10);
        assert_eq!((recent.len(), recent[0].points.len(), whole), (1, 10, Completeness::Whole));
        let (cut, whole) = history.view().series(|_| true, at(0), 100);
        assert_eq!(whole, Completeness::Cut);
        assert!(cut.iter().map(|series| series.points.len()).sum::<usize>() <= 100);
        assert_eq!(cut[0].points.last(), Some(&(at(999), Number::Whole(999))), "the newest are kept");
    }

    #[test]
    fn a_metric_that_goes_and_comes_back_is_one_series() {
        let (a, b) = (named("a"), named("b"));
        let (mut rows, mut history) = (Rows::default(), History::default());
        for second in 0..3 {
            rows.push_whole(&a, 5);
            if second != 1 {
                rows.push_whole(&named("b"), 7);
            }
            history.push(&rows.finish(at(second)));
        }
        let series = everything(&history);
        let b = series.iter().find(|series| series.metric == b).expect("held");
        assert_eq!(b.points, [(at(0), Number::Whole(7)), (at(2), Number::Whole(7))]);
        assert_eq!(series.len(), 2);
    }

    #[test]
    fn quiet_values_take_a_byte() {
        let metrics: Vec<_> = (0..1000).map(|n| named(&format!("m{n}"))).collect();
        let (mut rows, mut history) = (Rows::default(), History::default());
        for second in 0..300 {
            for (n, metric) in metrics.iter().enumerate() {
                rows.push_real(metric, 1234.56 + n as f64);
            }
            history.push(&rows.finish(at(second)));
        }
        let bytes = history.len_bytes();
        assert!(bytes < 500_000, "{bytes} bytes for 300,000 values");
    }

    #[test]
    fn the_bytes_are_bounded() {
        let metrics: Vec<_> = (0..10_000).map(|n| named(&format!("m{n}"))).collect();
        let (mut rows, mut history) = (Rows::default(), History::default());
        for second in 0..200u64 {
            for metric in &metrics {
                rows.push_whole(metric, (second << 40) | (second * 7919 % 1000));
            }
            history.push(&rows.finish(at(second as i64)));
            assert!(history.len_bytes() <= LEN_MAX_BYTES + CHUNK_SWEEPS * 10_000 * 10);
        }
        assert!(history.sweeps() < 200 && history.sweeps() > CHUNK_SWEEPS, "{}", history.sweeps());
    }

    fn number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<u64>().prop_map(Number::Whole),
            (0..1000u64).prop_map(Number::Whole),
            any::<f64>().prop_map(Number::Real),
            any::<i32>().prop_map(|ticks| Number::Real(f64::from(ticks) / 100.0)),
            Just(Number::Real(-0.0)),
        ]
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(values in proptest::collection::vec((number(), number()), 1..100)) {
            let (a, b) = (named("a"), named("b"));
            let (mut rows, mut history) = (Rows::default(), History::default());
            for (second, (x, y)) in values.iter().enumerate() {
                rows.push(&a, *x);
                rows.push(&b, *y);
                history.push(&rows.finish(at(second as i64)));
            }
            let series = everything(&history);
            for (second, (x, y)) in values.iter().enumerate() {
                // Compared as text, so that a NaN equals itself and -0 is not 0.
                prop_assert_eq!(format!("{:?}", series[0].points[second]), format!("{:?}", (at(second as i64), x)));
                prop_assert_eq!(format!("{:?}", series[1].points[second]), format!("{:?}", (at(second as i64), y)));
            }
        }
    }
}
