//! Ring buffer of one host's samples of the last minutes, stored encoded as they were received.
//!
//! Pure. Sweeps are stored in chunks; each chunk starts with a whole sweep. The newest `CHUNKS_WHOLE`
//! chunks are stored as received; older ones are reduced to one sweep of [`REDUCED_TO`]. The oldest chunks
//! are dropped first, by number and by bytes.
//! Rule: only sweeps that were decoded without error are added.

use super::receiver::ColumnMetrics;
use crate::sample::series::{Completeness, Series, SeriesSet};
use std::collections::VecDeque;
use wire::report::sweep::{Decoder, Encoder, Form};
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Newest chunks stored as received: four minutes at one sweep a second.
const CHUNKS_WHOLE: usize = 2;
/// Of an older chunk, one sweep of this many is retained.
pub const REDUCED_TO: usize = 10;
/// Most chunks, including the newest, which is being filled: half an hour at the usual rate.
const CHUNKS_MAX: usize = 16;
/// The newest chunk grows by its length divided by this: doubling would leave half of it empty for each
/// host.
const GROWTH_PART: usize = 8;
/// Least growth of the newest chunk.
const GROWTH_MIN_BYTES: usize = 512;

#[derive(Debug, Default)]
pub struct Recent {
    chunks: VecDeque<Chunk>,
    len_bytes: usize,
}

#[derive(Debug)]
struct Chunk {
    shape: ColumnMetrics,
    packed: Vec<u8>,
    /// Where each sweep ends in `packed`.
    ends: Vec<u32>,
    newest: Time,
    is_reduced: bool,
}

impl Recent {
    /// Adds a sweep that was just decoded; retains at most `len_max_bytes`.
    pub fn push(
        &mut self,
        shape: &ColumnMetrics,
        time: Time,
        form: Form,
        packed: &[u8],
        len_max_bytes: usize,
    ) {
        if form == Form::Whole || self.chunks.is_empty() {
            if form != Form::Whole {
                // The chunk it belongs to was dropped for its bytes.
                return;
            }
            if let Some(last) = self.chunks.back_mut() {
                last.packed.shrink_to_fit();
                last.ends.shrink_to_fit();
            }
            self.reduce();
            self.chunks.push_back(Chunk {
                shape: ColumnMetrics::clone(shape),
                packed: Vec::new(),
                ends: Vec::new(),
                newest: time,
                is_reduced: false,
            });
        }
        let last = self.chunks.back_mut().expect("pushed above");
        last.reserve(packed.len());
        last.packed.extend_from_slice(packed);
        last.ends.push(u32::try_from(last.packed.len()).expect("a chunk is short"));
        last.newest = time;
        self.len_bytes += packed.len() + size_of::<u32>();
        while self.chunks.len() > CHUNKS_MAX {
            self.drop_oldest();
        }
        self.shrink_to(len_max_bytes);
    }

    /// Drops the oldest chunks until at most `len_max_bytes` are left.
    pub fn shrink_to(&mut self, len_max_bytes: usize) {
        while self.len_bytes > len_max_bytes && !self.chunks.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.chunks.pop_front() {
            self.len_bytes -= oldest.len_bytes();
        }
    }

    /// Reduces the newest chunk that is no longer stored whole.
    fn reduce(&mut self) {
        let Some(at) = self.chunks.len().checked_sub(CHUNKS_WHOLE) else { return };
        let Some(chunk) = self.chunks.get_mut(at).filter(|chunk| !chunk.is_reduced) else { return };
        self.len_bytes -= chunk.len_bytes();
        chunk.reduce();
        self.len_bytes += chunk.len_bytes();
    }

    /// Returns the approximate number of bytes stored.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Returns the series of the matching metrics since `since`, newest first until `points_max` points are
    /// found.
    pub fn series(
        &self,
        wanted: impl Fn(&Metric) -> bool,
        since: Time,
        points_max: usize,
    ) -> (Vec<Series>, Completeness) {
        let mut found = SeriesSet::default();
        let mut points = 0;
        for chunk in self.chunks.iter().rev() {
            if chunk.newest < since {
                continue;
            }
            let columns: Vec<usize> = (0..chunk.shape.len()).filter(|&at| wanted(&chunk.shape[at])).collect();
            if points + columns.len() * chunk.ends.len() > points_max {
                return (found.oldest_first(), Completeness::Cut);
            }
            points += columns.len() * chunk.ends.len();
            let places: Vec<usize> = columns.iter().map(|&at| found.place(&chunk.shape[at])).collect();
            chunk.unpack(|time, decoder| {
                if time < since {
                    return;
                }
                for (&at, &place) in columns.iter().zip(&places) {
                    found.push(place, time, decoder.value(at).unwrap_or(Number::Whole(0)));
                }
            });
        }
        (found.oldest_first(), Completeness::Whole)
    }
}

impl Chunk {
    /// Reserves room for a sweep of this length.
    fn reserve(&mut self, sweep_len_bytes: usize) {
        if self.packed.capacity() - self.packed.len() < sweep_len_bytes {
            let growth = (self.packed.len() / GROWTH_PART).max(GROWTH_MIN_BYTES).max(sweep_len_bytes);
            self.packed.reserve_exact(growth);
        }
    }

    fn len_bytes(&self) -> usize {
        self.packed.len() + self.ends.len() * size_of::<u32>()
    }

    fn unpack(&self, mut each: impl FnMut(Time, &Decoder)) {
        let mut decoder = Decoder::default();
        let mut from = 0;
        for &end in &self.ends {
            let packed = &self.packed[from..end as usize];
            let Ok((time, _)) = decoder.decode(packed, self.shape.len()) else { return };
            each(time, &decoder);
            from = end as usize;
        }
    }

    fn reduce(&mut self) {
        let (mut packed, mut ends, mut nth) = (Vec::new(), Vec::new(), 0);
        let mut encoder = Encoder::default();
        let mut values = Vec::with_capacity(self.shape.len());
        self.unpack(|time, decoder| {
            if nth % REDUCED_TO == 0 {
                values.clear();
                values.extend(decoder.values());
                encoder.encode(time, &values, &mut packed);
                ends.push(u32::try_from(packed.len()).expect("shorter than what it was made of"));
            }
            nth += 1;
        });
        packed.shrink_to_fit();
        (self.packed, self.ends, self.is_reduced) = (packed, ends, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wire::sample::Semantics;

    fn shape(columns: usize) -> ColumnMetrics {
        let metric = |at| Metric {
            name: format!("m{at}").into(),
            labels: Vec::new(),
            unit: "".into(),
            semantics: Semantics::Gauge,
        };
        (0..columns).map(|at| Arc::new(metric(at))).collect()
    }

    fn filled(sweeps: u64, columns: u64, len_max_bytes: usize) -> Recent {
        let (shape, mut encoder, mut decoder) =
            (shape(columns as usize), Encoder::default(), Decoder::default());
        let mut recent = Recent::default();
        for second in 0..sweeps {
            let values: Vec<_> = (0..columns).map(|at| Number::Whole(second * at * 7919 % 1000)).collect();
            let mut packed = Vec::new();
            encoder.encode(Time::from_micros(second as i64 * 1_000_000), &values, &mut packed);
            let (time, form) = decoder.decode(&packed, columns as usize).expect("encoded");
            recent.push(&shape, time, form, &packed, len_max_bytes);
        }
        recent
    }

    #[test]
    fn the_newest_are_whole_and_older_ones_reduced_and_all_are_right() {
        let recent = filled(1000, 5, 1 << 20);
        let (series, completeness) = recent.series(|metric| metric.name == "m3", Time::default(), 100_000);
        assert_eq!((series.len(), completeness), (1, Completeness::Whole));
        for (time, value) in &series[0].points {
            let second = u64::try_from(time.micros() / 1_000_000).expect("after 1970");
            assert_eq!(*value, Number::Whole(second * 3 * 7919 % 1000), "{second}");
        }
        let seconds: Vec<i64> = series[0].points.iter().map(|(time, _)| time.micros() / 1_000_000).collect();
        assert_eq!((seconds[0], seconds[1], seconds.last()), (0, 10, Some(&999)));
        assert!(seconds.ends_with(&[996, 997, 998, 999]));
        let (recent_only, _) = recent.series(|_| true, Time::from_micros(990_000_000), 100_000);
        assert_eq!(recent_only[1].points.len(), 10);
        assert_eq!(recent.series(|_| true, Time::default(), 700).1, Completeness::Cut);
    }

    #[test]
    fn the_newest_chunk_has_little_room_to_spare() {
        for sweeps in [10, 50, 100] {
            let recent = filled(sweeps, 500, 1 << 20);
            let newest = &recent.chunks.back().expect("filled").packed;
            let spare = newest.capacity() - newest.len();
            assert!(spare <= newest.len() / GROWTH_PART + 8 * 500, "{spare} bytes beside {}", newest.len());
        }
    }

    #[test]
    fn the_bytes_are_bounded() {
        let recent = filled(3000, 500, 100_000);
        assert!(recent.len_bytes() <= 100_000, "{}", recent.len_bytes());
        assert!(!recent.series(|_| true, Time::default(), usize::MAX).0.is_empty());
    }
}
