//! Time series, and its reduction to the width of a graph.
//!
//! Pure. Rule: of the samples that share a column of the graph the minimum and the maximum are drawn, in
//! their order, so that no spike is lost at any width. Values that are not finite are refused and counted.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::time::Time;

/// Maximum number of samples of a series: an hour at one a second, or a minute at 64.
pub const SAMPLES_MAX: usize = 4_096;

/// How long a sample counts as current, and the largest gap that a line bridges: with the maximum number of
/// hosts each is queried every four seconds.
pub const FRESH: Duration = Duration::from_secs(15);
/// Newest distances of samples that are compared to find the usual one.
const INTERVALS: usize = 32;

/// Series of one host by metric.
pub type HostSeries = BTreeMap<String, Series>;

/// Samples by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    samples: VecDeque<(Time, f64)>,
    refused: u64,
}

impl Series {
    /// Append a sample; one that is not later than the last is ignored, so that a repeated sample is stored
    /// once.
    pub fn push(&mut self, time: Time, value: f64) {
        if !value.is_finite() {
            self.refused += 1;
            return;
        }
        if self.samples.back().is_some_and(|&(last, _)| time <= last) {
            return;
        }
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((time, value));
    }

    /// Merge samples, sorted by time: earlier ones than the first are added in front, as far as there is
    /// space.
    pub fn take(&mut self, samples: impl DoubleEndedIterator<Item = (Time, f64)> + Clone) {
        if let Some(&(first, _)) = self.samples.front() {
            for (time, value) in samples.clone().rev().filter(|(time, _)| *time < first) {
                let is_before = self.samples.front().is_some_and(|&(first, _)| time < first);
                if self.samples.len() < SAMPLES_MAX && is_before && value.is_finite() {
                    self.samples.push_front((time, value));
                }
            }
        }
        samples.for_each(|(time, value)| self.push(time, value));
    }

    /// Number of values that were not finite.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// All samples, the oldest first.
    pub fn samples(&self) -> impl Iterator<Item = (Time, f64)> {
        self.samples.iter().copied()
    }

    /// The newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<(Time, f64)> {
        self.samples.back().copied()
    }

    /// The usual time between two of the newest samples: the median; zero if there are fewer than two.
    #[must_use]
    pub fn usual_interval(&self) -> Duration {
        let newest = self.samples.range(self.samples.len().saturating_sub(INTERVALS + 1)..);
        let times: Vec<Time> = newest.map(|&(time, _)| time).collect();
        let mut intervals: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        intervals.sort_unstable();
        intervals.get(intervals.len() / 2).copied().unwrap_or_default()
    }

    /// The last sample up to a time.
    #[must_use]
    pub fn at(&self, time: Time) -> Option<(Time, f64)> {
        let until = self.samples.partition_point(|&(at, _)| at <= time);
        self.samples.get(until.checked_sub(1)?).copied()
    }

    /// The last sample up to a time, unless it was older than [`FRESH`] then.
    #[must_use]
    pub fn fresh(&self, time: Time) -> Option<(Time, f64)> {
        self.at(time).filter(|(at, _)| time.since(*at) <= FRESH)
    }

    /// The minimum and the maximum from `from` to `to`, if there is a sample.
    #[must_use]
    pub fn extremes(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        let begin = self.samples.partition_point(|&(at, _)| at < from);
        let end = self.samples.partition_point(|&(at, _)| at <= to).max(begin);
        let figures = self.samples.range(begin..end).map(|&(_, value)| (value, value));
        figures.reduce(|(least, greatest), (value, _)| (least.min(value), greatest.max(value)))
    }

    /// A copy with all times shifted.
    #[must_use]
    pub fn moved(&self, micros: i64) -> Series {
        let later = |time: Time| Time::from_micros(time.micros().saturating_add(micros));
        let samples = self.samples.iter().map(|&(time, value)| (later(time), value)).collect();
        Series { samples, refused: self.refused }
    }

    /// Points for a graph from `from` to `to` in at most `columns` columns: seconds after `from`, and value.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn reduced(&self, from: Time, to: Time, columns: usize) -> Vec<[f64; 2]> {
        let begin = self.samples.partition_point(|&(at, _)| at < from).saturating_sub(1);
        let end = (self.samples.partition_point(|&(at, _)| at <= to) + 1).min(self.samples.len());
        let width = (to.micros().saturating_sub(from.micros())).max(1) as f64;
        let mut points: Vec<[f64; 2]> = Vec::new();
        let mut column: Option<Column> = None;
        for &(time, value) in self.samples.range(begin..end) {
            let offset = time.micros().saturating_sub(from.micros()) as f64;
            let at = (offset / width * columns.max(1) as f64).floor() as i64;
            let sample = [offset / 1e6, value];
            match &mut column {
                Some(column) if column.at == at => column.take(sample),
                _ => {
                    column.iter().for_each(|column| column.append_to(&mut points));
                    column = Some(Column { at, least: sample, greatest: sample });
                }
            }
        }
        column.iter().for_each(|column| column.append_to(&mut points));
        points
    }
}

/// The minimum and the maximum of one column.
struct Column {
    at: i64,
    least: [f64; 2],
    greatest: [f64; 2],
}

impl Column {
    fn take(&mut self, sample: [f64; 2]) {
        if sample[1] < self.least[1] {
            self.least = sample;
        }
        if sample[1] > self.greatest[1] {
            self.greatest = sample;
        }
    }

    fn append_to(&self, points: &mut Vec<[f64; 2]>) {
        let (one, other) = match self.least[0] <= self.greatest[0] {
            true => (self.least, self.greatest),
            false => (self.greatest, self.least),
        };
        points.push(one);
        if one != other {
            points.push(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(values: &[f64]) -> Series {
        let mut series = Series::default();
        for (at, &value) in (0..).zip(values) {
            series.push(Time::from_micros(at * 1_000_000), value);
        }
        series
    }

    proptest! {
        #[test]
        fn no_spike_is_lost(values in proptest::collection::vec(-1e6_f64..1e6, 1..500), columns in 1_usize..80) {
            let series = series(&values);
            let to = Time::from_micros(values.len() as i64 * 1_000_000);
            let points = series.reduced(Time::from_micros(0), to, columns);
            prop_assert!(points.len() <= 2 * (columns + 1));
            let extreme = |of: fn(f64, f64) -> f64, from: &mut dyn Iterator<Item = f64>| from.reduce(of).unwrap();
            for of in [f64::min as fn(f64, f64) -> f64, f64::max] {
                let shown = extreme(of, &mut points.iter().map(|point| point[1]));
                prop_assert_eq!(shown, extreme(of, &mut values.iter().copied()));
            }
            prop_assert_eq!(series.extremes(Time::from_micros(0), to), Some((
                extreme(f64::min, &mut values.iter().copied()), extreme(f64::max, &mut values.iter().copied()),
            )));
            prop_assert!(points.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "points go by time");
        }
    }

    #[test]
    fn the_past_is_put_before_what_is_there() {
        let mut series = Series::default();
        let at = |secs: i64| (Time::from_micros(secs * 1_000_000), secs as f64);
        series.take([at(10), at(11)].into_iter());
        series.take([at(1), at(2), at(10), at(11), at(12)].into_iter());
        let seconds: Vec<f64> = series.samples().map(|(_, value)| value).collect();
        assert_eq!(seconds, [1.0, 2.0, 10.0, 11.0, 12.0]);
        series.take((-8_000..0).map(at));
        assert_eq!((series.samples.len(), series.newest()), (SAMPLES_MAX, Some(at(12))));
        assert!(series.samples().is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn samples_are_bounded_sound_and_taken_once() {
        let mut series = series(&vec![1.0; SAMPLES_MAX + 10]);
        assert_eq!(series.samples.len(), SAMPLES_MAX);
        series.push(Time::from_micros(1), 9.0);
        series.push(Time::from_micros(i64::MAX), f64::NAN);
        assert_eq!((series.newest().unwrap().1, series.refused()), (1.0, 1));
        assert_eq!(series.at(Time::from_micros(0)), None);
        let (newest, _) = series.newest().unwrap();
        assert_eq!(series.fresh(newest.plus(FRESH)), series.newest());
        assert_eq!(series.fresh(newest.plus(FRESH + Duration::from_micros(1))), None);
        assert_eq!(series.extremes(newest.plus(FRESH), newest), None, "nothing between");
        assert_eq!(series.moved(-7).newest().unwrap().0, Time::from_micros(newest.micros() - 7));
        assert_eq!(series.usual_interval(), Duration::from_secs(1));
        assert_eq!(Series::default().usual_interval(), Duration::ZERO);
        let narrow = series.reduced(Time::from_micros(0), Time::from_micros(0), 0);
        assert!(narrow.len() <= 2, "no width at all: {narrow:?}");
    }
}
