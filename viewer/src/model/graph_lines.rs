//! The lines of the graphs: of the last hour from the samples that the viewer received, and of what these do not cover, as of
//! all older times, from tiles of the stored past.
//!
//! Pure. Rule: tiles are requested where received samples are missing, and nowhere else. Not here: tiles (`graphs::tiles`),
//! which samples are missing (`graphs::coverage`), one line (`joined_line`), painting (`app::graphs`).

use super::Model;
use super::joined_line::{DrawnLine, Extent, GraphLine, JoinedLine, Sources};
use crate::flock::sweep::HostName;
use crate::graphs::metric::{Metric, Shows};
use crate::graphs::tiles::{Ages, Level, Lines, Pieces, TileRequest, View};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Time;

/// What the viewer itself receives and stores.
const RECEIVED: Duration = Duration::from_secs(3_600);
/// Values of a line, at most, with few and with many hosts.
const POINTS: i64 = 1_200;
const POINTS_OF_MANY: i64 = 400;
/// From this number of hosts on there are many.
const MANY: usize = 9;

/// What of a host is read from the store beside its received samples.
struct MissingPart {
    hosts: [HostName; 1],
    metrics: Vec<Metric>,
    range: (Time, Time),
}

impl MissingPart {
    fn view(&self, level: Level) -> View<'_> {
        View { hosts: &self.hosts, metrics: &self.metrics, range: self.range, level }
    }
}

impl Model {
    /// Start and end of the graphs.
    #[must_use]
    pub fn graph_range(&self) -> (Time, Time) {
        self.graphs.choice().span.range(self.time())
    }

    /// Whether all values of a host are read from the store.
    fn is_stored(&self, host: &HostName) -> bool {
        let is_old = self.now().since(self.graph_range().0) > RECEIVED;
        let has_none = || self.graphs.series_of(host).is_none_or(BTreeMap::is_empty);
        is_old || (self.graphs.has_error(host) && has_none())
    }

    /// Time between two values of what is drawn of the stored past, of the host where it is longest; `None` if nothing is.
    #[must_use]
    pub fn stored_step(&self) -> Option<Duration> {
        let level = self.level(self.graph_range());
        let stored = self.graphs.hosts().iter().filter_map(|host| match self.is_stored(host) {
            true => Some((host, self.graph_range())),
            false => self.missing_part_of(host).map(|part| (host, part.range)),
        });
        stored.map(|(host, range)| self.graphs.tiles().level_of(host, range, level).step()).max()
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

    /// The part of the graphs that is read from the store for a metric of a host, beside its received samples: there are
    /// none of it, as its sensor had none in memory any more. Nothing is before the first answer.
    fn missing_part(&self, host: &HostName, metric: &Metric) -> Option<(Time, Time)> {
        let (from, to) = self.graph_range();
        let range = (from, to.min(self.now()));
        self.graphs.coverage(host)?.missing(metric, range, self.graphs.has_error(host))
    }

    /// The same of all metrics.
    fn missing_part_of(&self, host: &HostName) -> Option<MissingPart> {
        let mut part: Option<MissingPart> = None;
        for metric in self.graphs.choice().metrics() {
            let Some((from, to)) = self.missing_part(host, &metric) else { continue };
            let all = part.get_or_insert_with(|| MissingPart {
                hosts: [host.clone()],
                metrics: Vec::new(),
                range: (from, to),
            });
            all.range = (all.range.0.min(from), all.range.1.max(to));
            all.metrics.push(metric);
        }
        part
    }

    /// What a metric of a host is drawn from.
    fn sources(&self, host: &HostName, metric: &Metric) -> Sources<'_> {
        match self.is_stored(host) {
            true => Sources { received: None, stored: Some(self.graph_range()) },
            false => Sources {
                received: self.graphs.series_of(host).zip(self.graphs.coverage(host)),
                stored: self.missing_part(host, metric),
            },
        }
    }

    /// The stored lines among the sources, and the longest time between two of their values.
    fn stored_lines(
        &self,
        host: &HostName,
        metric: &Metric,
        sources: Sources<'_>,
    ) -> (BTreeMap<&str, Pieces<'_>>, Option<Duration>) {
        let Some(range) = sources.stored else { return (BTreeMap::new(), None) };
        let (lines, step) = self.graphs.tiles().lines(host, metric, range, self.level(self.graph_range()));
        (lines, Some(step))
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
        let of = |sources: Sources<'_>, range: (Time, Time)| -> Vec<GraphLine> {
            let (stored, step) = self.stored_lines(host, metric, sources);
            let received = sources.received.map(|(series, _)| metric.lines(series, shows));
            let lines = JoinedLine::join(received.into_iter().flatten(), stored);
            // Where there are many plots a stored value has two points of the screen.
            let of_stored = if self.graphs.hosts().len() < MANY { columns } else { columns / 2 };
            let extent = Extent { metric, range, columns: (columns, of_stored), step };
            let lines = metric.lines(&lines, shows).into_iter();
            lines.map(|(name, line)| line.graph_line(name, sources, extent)).collect()
        };
        let mut lines = of(self.sources(host, metric), self.graph_range());
        if let Some(range) = self.earlier_range() {
            let earlier = of(Sources { received: None, stored: Some(range) }, range);
            lines.extend(earlier.into_iter().map(|line| GraphLine { is_earlier: true, ..line }));
        }
        lines
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
        let sources = self.sources(host, metric);
        let (stored, step) = self.stored_lines(host, metric, sources);
        let received = sources.received.map(|(series, _)| metric.lines(series, shows));
        let lines = JoinedLine::join(received.into_iter().flatten(), stored);
        let lines = metric.lines(&lines, shows).into_iter();
        lines.map(|(name, line)| (name.to_owned(), line.value_at(at, step))).collect()
    }

    /// The values of all lines that are drawn, those of the sums of their parts too.
    #[must_use]
    pub fn drawn_values(&self) -> Vec<DrawnLine> {
        let range = self.graph_range();
        let mut found = Vec::new();
        for host in self.graphs.hosts() {
            for metric in &self.graphs.choice().metrics() {
                let sources = self.sources(host, metric);
                let (stored, _) = self.stored_lines(host, metric, sources);
                let received = sources.received.into_iter().flat_map(|(series, _)| series);
                let received = received.filter(|(name, _)| metric.has(name));
                let lines = JoinedLine::join(received.map(|(name, line)| (name.as_str(), line)), stored);
                found.extend(lines.into_iter().map(|(name, line)| DrawnLine {
                    host: host.clone(),
                    name: name.to_owned(),
                    values: line.values(sources, metric, range),
                }));
            }
        }
        found
    }

    /// The tiles to request, if others than those that were requested last.
    pub fn tiles_request(&mut self) -> Option<Vec<TileRequest>> {
        let now = self.now();
        if !self.source().is_daemon() || !self.graphs.is_seen(now) {
            return None;
        }
        let range = self.graph_range();
        let (stored, received): (Vec<HostName>, Vec<HostName>) =
            self.graphs.hosts().iter().cloned().partition(|host| self.is_stored(host));
        let parts: Vec<MissingPart> = received.iter().filter_map(|host| self.missing_part_of(host)).collect();
        if stored.is_empty() && parts.is_empty() && self.earlier_range().is_none() {
            self.graphs.tiles_mut().forget_errors();
        }
        let metrics = self.graphs.choice().metrics();
        let view = View { hosts: &stored, metrics: &metrics, range, level: self.level(range) };
        let of_parts = parts.iter().map(|part| part.view(view.level));
        let views: Vec<View<'_>> = std::iter::once(view).chain(of_parts).collect();
        let mut requests = self.graphs.tiles_mut().missing_of(&views, now);
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

#[cfg(test)]
mod tests;
