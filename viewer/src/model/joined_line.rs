//! Line of a plot, joined of received samples and of what is stored of the times that they do not cover.
//!
//! Pure. Rule: where there are received samples they are drawn, and nothing that is stored of the same time. Not here: which
//! times those are (`graphs::coverage`), where both come from (`model::graph_lines`).

use crate::flock::sweep::HostName;
use crate::graphs::coverage::{Coverage, longest_interval};
use crate::graphs::metric::{Metric, Values};
use crate::graphs::tiles::{Pieces, Point};
use crate::series::{FRESH, HostSeries, Series};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Time;

/// A gap is longer than this many steps.
const GAP_STEPS: f64 = 1.6;

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLine {
    pub name: String,
    /// Seconds after the start of the plot, and values.
    pub points: Vec<[f64; 2]>,
    /// Of the points that are means of steps: the same seconds, and the least and the greatest value of each step.
    pub bounds: Vec<[f64; 3]>,
    /// Longest distance of two points that are joined, in seconds.
    pub joined_secs: f64,
    /// Whether it is of the earlier time that is compared.
    pub is_earlier: bool,
}

/// The values of a line that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnLine {
    pub host: HostName,
    pub name: String,
    /// The time and the value of each sample, and the start and the mean of each step.
    pub values: Vec<(Time, f64)>,
}

/// What a metric of a host is drawn from.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    /// Received samples, and what they cover.
    pub(super) received: Option<(&'a HostSeries, &'a Coverage)>,
    /// The part of the plot that is read from the store.
    pub(super) stored: Option<(Time, Time)>,
}

/// A line before it is drawn.
#[derive(Default)]
pub(super) struct JoinedLine<'a> {
    received: Option<&'a Series>,
    stored: Pieces<'a>,
}

impl Values for JoinedLine<'_> {
    fn has_values(&self) -> bool {
        self.received.is_some_and(Series::has_values) || self.stored.has_values()
    }
}

/// Where a line is drawn.
#[derive(Clone, Copy)]
pub(super) struct Extent<'a> {
    pub(super) metric: &'a Metric,
    pub(super) range: (Time, Time),
    /// Most values of a line, of received samples and of stored steps.
    pub(super) columns: (usize, usize),
    /// Longest time between two stored values.
    pub(super) step: Option<Duration>,
}

impl<'a> JoinedLine<'a> {
    /// Join the lines of a host by their names.
    pub(super) fn join(
        received: impl Iterator<Item = (&'a str, &'a Series)>,
        stored: BTreeMap<&'a str, Pieces<'a>>,
    ) -> BTreeMap<&'a str, JoinedLine<'a>> {
        let stored = stored.into_iter().map(|(name, stored)| (name, JoinedLine { received: None, stored }));
        let mut lines: BTreeMap<&str, JoinedLine<'_>> = stored.collect();
        received.for_each(|(name, series)| lines.entry(name).or_default().received = Some(series));
        lines
    }

    /// The line as it is drawn.
    pub(super) fn graph_line(&self, name: &str, sources: Sources<'_>, extent: Extent<'_>) -> GraphLine {
        let (from, to) = extent.range;
        let beside = self.stored_beside(sources, extent.metric);
        let (stored, column) = reduced(&Pieces::of(vec![&beside]), extent.range, extent.columns.1.max(1));
        let received = self.received.map(|series| series.reduced(from, to, extent.columns.0));
        let mut points = received.unwrap_or_default();
        points.extend(stored.iter().map(|point| [seconds(from, point.time), point.mean]));
        points.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let bounds = stored.iter().map(|point| [seconds(from, point.time), point.least, point.greatest]);
        let of_steps = extent.step.map_or(0.0, |step| step.as_secs_f64() * GAP_STEPS + column);
        GraphLine {
            name: name.to_owned(),
            points,
            bounds: bounds.collect(),
            joined_secs: of_steps
                .max(self.received.map_or(0.0, |series| longest_interval(series).as_secs_f64())),
            is_earlier: false,
        }
    }

    /// The value at a time: of the newest sample or step up to it, unless that is too old to be joined with it.
    pub(super) fn value_at(&self, at: Time, step: Option<Duration>) -> Option<f64> {
        let received = self.received.and_then(|series| series.fresh(at));
        let joined = step.unwrap_or_default().mul_f64(GAP_STEPS).max(FRESH);
        let stored = self.stored.at(at).map(|point| (point.time, point.mean));
        let stored = stored.filter(|(time, _)| at.since(*time) <= joined);
        let newest = received.into_iter().chain(stored).max_by_key(|(time, _)| *time);
        newest.map(|(_, value)| value)
    }

    /// The values within a range, the oldest first.
    pub(super) fn values(
        &self,
        sources: Sources<'_>,
        metric: &Metric,
        (from, to): (Time, Time),
    ) -> Vec<(Time, f64)> {
        let stored = self.stored_beside(sources, metric).into_iter().map(|point| (point.time, point.mean));
        let received = self.received.into_iter().flat_map(Series::samples);
        // A step that starts at the end has nothing within.
        let mut values: Vec<_> = stored.filter(|(time, _)| *time < to).chain(received).collect();
        values.retain(|(time, _)| (from..=to).contains(time));
        values.sort_by_key(|(time, _)| *time);
        values
    }

    /// The stored values that are not covered by received samples.
    fn stored_beside(&self, sources: Sources<'_>, metric: &Metric) -> Vec<Point> {
        let coverage = sources.received.map(|(_, coverage)| coverage);
        let is_beside = |point: &&Point| coverage.is_none_or(|coverage| !coverage.has(metric, point.time));
        self.stored.iter().filter(is_beside).copied().collect()
    }
}

/// The points, or where there are more than columns one for each: the mean of means, and the extremes of all; and the
/// width of the columns in seconds.
#[allow(clippy::cast_precision_loss)]
fn reduced(pieces: &Pieces<'_>, (from, to): (Time, Time), columns: usize) -> (Vec<Point>, f64) {
    if pieces.count() <= columns {
        return (pieces.iter().copied().collect(), 0.0);
    }
    let whole = to.micros().saturating_sub(from.micros()).max(1);
    let width = (whole / i64::try_from(columns).unwrap_or(i64::MAX)).max(1);
    let mut merged: Vec<Point> = Vec::with_capacity(columns + 3);
    let (mut end, mut count) = (i64::MIN, 1.0);
    for point in pieces.iter() {
        match merged.last_mut() {
            // The mean is a sum until the column is over.
            Some(column) if point.time.micros() < end => {
                column.mean += point.mean;
                column.least = column.least.min(point.least);
                column.greatest = column.greatest.max(point.greatest);
                count += 1.0;
            }
            before => {
                before.into_iter().for_each(|column| column.mean /= count);
                end = point.time.micros().div_euclid(width).saturating_add(1).saturating_mul(width);
                count = 1.0;
                merged.push(*point);
            }
        }
    }
    merged.last_mut().into_iter().for_each(|column| column.mean /= count);
    (merged, width as f64 / 1e6)
}

/// Seconds from one time to another, which may be earlier.
#[allow(clippy::cast_precision_loss)]
fn seconds(from: Time, to: Time) -> f64 {
    to.micros().saturating_sub(from.micros()) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_merged_by_column_and_no_extreme_is_lost() {
        let at = |secs: i64| Time::from_micros(secs * 1_000_000);
        let point =
            |secs: i64, mean: f64| Point { time: at(secs), mean, least: mean - 1.0, greatest: mean + 1.0 };
        let mut points: Vec<Point> = (0..1_000).map(|secs| point(secs, 2.0)).collect();
        points[777] = point(777, 102.0);
        let pieces = Pieces::of(vec![&points[..333], &points[333..]]);
        let (merged, column) = reduced(&pieces, (at(0), at(1_000)), 100);
        assert_eq!(column, 10.0);
        assert_eq!((merged.len(), merged[77].time), (100, at(770)));
        assert_eq!((merged[77].mean, merged[77].least, merged[77].greatest), (12.0, 1.0, 103.0));
        assert_eq!((merged[78].mean, merged[78].greatest), (2.0, 3.0));
        assert_eq!((merged[33].mean, merged[99].mean), (2.0, 2.0), "over the end of a tile; the last one");
        let (few, column) = reduced(&Pieces::of(vec![&points[..100]]), (at(0), at(1_000)), 100);
        assert_eq!((few.len(), column), (100, 0.0), "as they are where they have room");
        assert_eq!(reduced(&pieces, (at(0), at(1_000)), 7).0.len(), 7);
    }
}
