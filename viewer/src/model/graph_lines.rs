//! The lines of the graphs: of the last hour from what the viewer received, of older times from tiles.
//!
//! Pure. Rule: a plot is drawn from one of the two, so that all its lines have the same resolution. Not here: tiles
//! (`graphs::tiles`), series (`series`), painting (`app::graphs`).

use super::Model;
use crate::flock::sweep::HostName;
use crate::graphs::metric::{Metric, Shows};
use crate::graphs::tiles::{Ages, Level, Lines, Pieces, Point, TileRequest, View};
use crate::series::{FRESH, HostSeries};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// What the viewer itself receives and stores.
const RECEIVED: Duration = Duration::from_secs(3_600);
/// Values of a line, at most, with few and with many hosts.
const POINTS: i64 = 1_200;
const POINTS_OF_MANY: i64 = 400;
/// From this number of hosts on there are many.
const MANY: usize = 9;
/// A gap is longer than this many steps.
const GAP_STEPS: f64 = 1.6;

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLine {
    pub name: String,
    /// Seconds after the start of the plot, and values.
    pub points: Vec<[f64; 2]>,
    /// The same seconds, and the least and the greatest value of each step; empty if points are samples.
    pub bounds: Vec<[f64; 3]>,
    /// Longest distance of two points that are joined, in seconds.
    pub joined_secs: f64,
    /// Whether it is of the earlier time that is compared.
    pub is_earlier: bool,
}

/// What of the stored past is drawn.
#[derive(Clone, Copy)]
struct Part {
    range: (Time, Time),
    level: Level,
    /// Most values of a line.
    columns: usize,
}

/// Values of a line of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredLine {
    pub host: HostName,
    pub name: String,
    /// The start and the value of each step.
    pub values: Vec<(Time, f64)>,
}

impl Model {
    /// Start and end of the graphs.
    #[must_use]
    pub fn graph_range(&self) -> (Time, Time) {
        self.graphs.choice().span.range(self.time())
    }

    /// Whether the values of a host are read from what is stored.
    fn is_stored(&self, host: &HostName) -> bool {
        let is_old = self.now().since(self.graph_range().0) > RECEIVED;
        let has_none = || self.graphs.series_of(host).is_none_or(BTreeMap::is_empty);
        is_old || (self.graphs.has_error(host) && has_none())
    }

    /// Time between two values of what is drawn of the past, of the host where it is longest; `None` if nothing is.
    #[must_use]
    pub fn stored_step(&self) -> Option<Duration> {
        let range = self.graph_range();
        let stored = self.graphs.hosts().iter().filter(|host| self.is_stored(host));
        stored.map(|host| self.graphs.tiles().level_of(host, range, self.level(range)).step()).max()
    }

    fn level(&self, range: (Time, Time)) -> Level {
        let points = if self.graphs.hosts().len() < MANY { POINTS } else { POINTS_OF_MANY };
        Level::of_range(range, points)
    }

    /// The same range earlier, if it is compared.
    fn earlier_range(&self) -> Option<(Time, Time)> {
        let (from, to) = self.graph_range();
        let before = self.graphs.choice().compared()?;
        Some((from.minus(before), to.minus(before)))
    }

    /// The lines of a metric of a host, for a plot of this many columns.
    #[must_use]
    pub fn graph_lines(
        &self,
        host: &HostName,
        metric: &Metric,
        shows: Shows,
        columns: usize,
    ) -> Vec<GraphLine> {
        let range = self.graph_range();
        let mut lines = match self.is_stored(host) {
            true => self.stored_lines(host, metric, shows, self.part(range, columns)),
            false => self.received_lines(host, metric, shows, columns),
        };
        if let Some(range) = self.earlier_range() {
            let earlier = self.stored_lines(host, metric, shows, self.part(range, columns));
            lines.extend(earlier.into_iter().map(|line| GraphLine { is_earlier: true, ..line }));
        }
        lines
    }

    fn received_lines(
        &self,
        host: &HostName,
        metric: &Metric,
        shows: Shows,
        columns: usize,
    ) -> Vec<GraphLine> {
        let (from, to) = self.graph_range();
        let known = self.graphs.series_of(host).map(|series| metric.lines(series, shows));
        let line = |(name, series): (&str, &crate::series::Series)| GraphLine {
            name: name.to_owned(),
            points: series.reduced(from, to, columns),
            bounds: Vec::new(),
            joined_secs: FRESH.as_secs_f64(),
            is_earlier: false,
        };
        known.unwrap_or_default().into_iter().map(line).collect()
    }

    /// A range in the resolution of the plots.
    fn part(&self, range: (Time, Time), columns: usize) -> Part {
        // Where there are many plots a value has two points of the screen.
        let columns = if self.graphs.hosts().len() < MANY { columns } else { columns / 2 };
        Part { range, level: self.level(range), columns }
    }

    fn stored_lines(
        &self,
        host: &HostName,
        metric: &Metric,
        shows: Shows,
        Part { range, level, columns }: Part,
    ) -> Vec<GraphLine> {
        let (lines, step) = self.graphs.tiles().lines(host, metric, range, level);
        let secs = |time: Time| seconds(range.0, time);
        let line = |(name, pieces): (&str, &Pieces<'_>)| {
            let (points, column) = reduced(pieces, range, columns.max(1));
            GraphLine {
                name: name.to_owned(),
                points: points.iter().map(|point| [secs(point.time), point.mean]).collect(),
                bounds: points.iter().map(|point| [secs(point.time), point.least, point.greatest]).collect(),
                joined_secs: (step.as_secs_f64() * GAP_STEPS + column).max(FRESH.as_secs_f64()),
                is_earlier: false,
            }
        };
        metric.lines(&lines, shows).into_iter().map(line).collect()
    }

    /// The values of a metric of a host at a time within the graphs, by line.
    #[must_use]
    pub fn graph_values(
        &self,
        host: &HostName,
        metric: &Metric,
        shows: Shows,
        at: Time,
    ) -> Vec<(String, Option<f64>)> {
        if !self.is_stored(host) {
            let known = self.graphs.series_of(host).map(|series| metric.lines(series, shows));
            let value = |(name, series): (&str, &crate::series::Series)| {
                (name.to_owned(), series.fresh(at).map(|(_, value)| value))
            };
            return known.unwrap_or_default().into_iter().map(value).collect();
        }
        let level = self.level(self.graph_range());
        let level = self.graphs.tiles().level_of(host, self.graph_range(), level);
        // As far back as a line that ends there may be joined.
        let range = (at.minus(FRESH.max(level.step() * 2)), at);
        let lines = self.stored_lines(host, metric, shows, Part { range, level, columns: usize::MAX });
        let at = seconds(range.0, at);
        let value = |line: GraphLine| {
            let end = line.points.partition_point(|point| point[0] <= at);
            let last = end.checked_sub(1).map(|last| line.points[last]);
            let value = last.filter(|point| at - point[0] <= line.joined_secs).map(|point| point[1]);
            (line.name, value)
        };
        lines.into_iter().map(value).collect()
    }

    /// What is drawn of the past.
    #[must_use]
    pub fn stored_values(&self) -> Vec<StoredLine> {
        let (from, to) = self.graph_range();
        let metrics = self.graphs.choice().metrics();
        let mut found = Vec::new();
        for host in self.graphs.hosts().iter().filter(|host| self.is_stored(host)) {
            for metric in &metrics {
                let (lines, _) = self.graphs.tiles().lines(host, metric, (from, to), self.level((from, to)));
                let within = |point: &&Point| point.time >= from && point.time < to;
                found.extend(lines.into_iter().map(|(name, pieces)| {
                    let points = pieces.iter().filter(within);
                    let values = points.map(|point| (point.time, point.mean)).collect();
                    StoredLine { host: host.clone(), name: name.to_owned(), values }
                }));
            }
        }
        found
    }

    /// The figures of the hosts that are not drawn from what is stored.
    pub fn received_figures(&self) -> impl Iterator<Item = (&HostName, &Arc<HostSeries>)> {
        self.graphs.figures().filter(|(host, _)| !self.is_stored(host))
    }

    /// The tiles to request, if others than those that were requested last.
    pub fn tiles_request(&mut self) -> Option<Vec<TileRequest>> {
        let now = self.now();
        if !self.source().is_daemon() || !self.graphs.is_seen(now) {
            return None;
        }
        let range = self.graph_range();
        let stored: Vec<HostName> =
            self.graphs.hosts().iter().filter(|host| self.is_stored(host)).cloned().collect();
        if stored.is_empty() && self.earlier_range().is_none() {
            self.graphs.tiles_mut().forget_errors();
        }
        let metrics = self.graphs.choice().metrics();
        let view = View { hosts: &stored, metrics: &metrics, range, level: self.level(range) };
        let mut requests = self.graphs.tiles_mut().missing(&view, now);
        if let Some(range) = self.earlier_range() {
            let hosts = self.graphs.hosts().to_vec();
            let view = View { hosts: &hosts, range, level: self.level(range), ..view };
            requests.extend(self.graphs.tiles_mut().missing(&view, now));
        }
        self.graphs.are_new(&requests).then_some(requests)
    }

    pub fn tiles_requested(&mut self, tiles: Vec<TileRequest>) {
        self.graphs.tiles_requested(tiles);
    }

    /// Take the answer of a request for a tile.
    pub(super) fn take_tile(
        &mut self,
        at: Time,
        tile: &TileRequest,
        lines: Result<BTreeMap<Metric, Lines>, String>,
        (oldest, ages): (Option<Time>, Option<Ages>),
    ) {
        self.graphs.tile_answered(tile);
        if let Some(ages) = ages {
            self.graphs.tiles_mut().set_ages(&tile.host, ages);
        }
        self.graphs.tiles_mut().take(tile, lines, at);
        if let Some(oldest) = oldest {
            self.clock.reach_back(oldest);
        }
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
