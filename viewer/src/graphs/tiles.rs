//! The stored past of graphs, in tiles: the lines of a metric of a host over a fixed number of steps, in one of
//! several resolutions.
//!
//! Pure. Rule: what is looked at is requested coarse first, then in the resolution of the view; until that is
//! there the nearest other resolution is drawn. Tiles that were looked at longest ago are forgotten first, those that
//! are looked at never. Not here: requests to daemons (`live::history`), the present (`series`).

use super::metric::Metric;
use crate::flock::sweep::HostName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Time between two values in each resolution, the finest first, in milliseconds.
const STEPS_MS: [i64; 10] =
    [100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 3 * 86_400_000, 7 * 86_400_000];
/// Steps of a tile.
pub const TILE_STEPS: i64 = 600;
/// How much coarser the first tiles are, in resolutions.
const FIRST_COARSER: usize = 2;
/// Values of all tiles together, at most, unless more are looked at: 32 bytes each.
const POINTS_MAX: usize = 1_000_000;
/// Marks of a host, at most: a sensor that is started again and again has hundreds.
const MARKS_MAX: usize = 1000;
/// A host that failed is asked again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Coarsest resolution that the samples of a host answer, and its minutes: for more there are hours.
const SAMPLES: Level = Level(2);
const MINUTES: Level = Level(4);
const HOUR: Duration = Duration::from_secs(3600);
/// A tile of the present is requested again after a step, and within these bounds; with more hosts later.
const RENEWED_AFTER: std::ops::RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(300);
/// When all samples of a time are stored, and when its minutes were copied to the representative.
const STORED_AFTER: Duration = Duration::from_secs(20);
const COPIED_AFTER: Duration = Duration::from_secs(120);
/// Least time between renewals for each host that is looked at.
const RENEWED_A_HOST: Duration = Duration::from_millis(500);

/// A resolution: time between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(usize);

impl Level {
    /// The finest resolution in which a range has at most this many values.
    #[must_use]
    pub fn of_range((from, to): (Time, Time), points: i64) -> Level {
        let millis = to.micros().saturating_sub(from.micros()) / 1_000;
        let fits = |step: &i64| millis / step <= points.max(1);
        Level(STEPS_MS.iter().position(fits).unwrap_or(STEPS_MS.len() - 1))
    }

    /// Time between two values.
    #[must_use]
    pub fn step(self) -> Duration {
        Duration::from_millis(STEPS_MS[self.0].unsigned_abs())
    }

    /// Length of a tile, in microseconds.
    fn tile_micros(self) -> i64 {
        STEPS_MS[self.0] * 1_000 * TILE_STEPS
    }

    /// The tile that has a time.
    fn tile_at(self, time: Time) -> i64 {
        time.micros().div_euclid(self.tile_micros())
    }

    /// The other resolutions, in the order in which they stand in for this one: coarser ones, then finer.
    fn others(self) -> impl Iterator<Item = Level> {
        (self.0 + 1..STEPS_MS.len()).chain((0..self.0).rev()).map(Level)
    }
}

/// Values of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Start of the step.
    pub time: Time,
    pub mean: f64,
    pub least: f64,
    pub greatest: f64,
}

/// Lines by name, each the oldest value first.
pub type Lines = BTreeMap<String, Vec<Point>>;

/// The values of a line, from one tile after another.
#[derive(Clone, Debug, Default)]
pub struct Pieces<'a>(Vec<&'a [Point]>);

impl<'a> Pieces<'a> {
    /// Of these tiles, in order.
    #[must_use]
    pub fn of(pieces: Vec<&'a [Point]>) -> Pieces<'a> {
        Pieces(pieces)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Point> {
        self.0.iter().copied().flatten()
    }

    /// The last value up to a time.
    #[must_use]
    pub fn at(&self, time: Time) -> Option<&'a Point> {
        let of_piece = |piece: &'a [Point]| {
            let until = piece.partition_point(|point| point.time <= time);
            piece.get(until.checked_sub(1)?)
        };
        self.0.iter().rev().find_map(|piece| of_piece(piece))
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }
}

/// A tile of some metrics of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TileRequest {
    pub level: Level,
    /// Its number since 1970.
    number: i64,
    pub host: HostName,
    pub metrics: Vec<Metric>,
}

impl TileRequest {
    /// Its first moment, and the first one after it.
    #[must_use]
    pub fn range(&self) -> (Time, Time) {
        let start = |number: i64| Time::from_micros(number.saturating_mul(self.level.tile_micros()));
        (start(self.number), start(self.number.saturating_add(1)))
    }
}

/// How far back a host has stored values of each kind; `None` where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    pub samples: Option<Time>,
    pub minutes: Option<Time>,
    pub hours: Option<Time>,
}

impl Ages {
    /// Whether values that reach back to this time are all that there are from `from` on: a host that was installed an hour
    /// ago has no coarser ones of before.
    fn has(&self, oldest: Option<Time>, from: Time) -> bool {
        let is_first = |oldest: Time| self.hours.is_none_or(|hours| oldest < hours.plus(HOUR));
        oldest.is_some_and(|oldest| oldest <= from || is_first(oldest))
    }
}

/// What happened to a host, that its samples alone do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    SensorStarted,
    ClockSetBack,
}

/// A mark on the axis of time of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostMark {
    pub time: Time,
    pub happened: Happened,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub hosts: &'a [HostName],
    pub metrics: &'a [Metric],
    pub range: (Time, Time),
    /// Resolution, where the hosts have it.
    pub level: Level,
}

type Key = (HostName, Metric, Level, i64);

/// A look at all views of a frame.
#[derive(Clone, Copy, Debug)]
struct Look {
    now: Time,
    /// Number of hosts.
    hosts: usize,
}

/// What is missing of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// All of it, of some metric.
    All,
    /// What happened since it was received.
    Newest,
}

#[derive(Clone, Debug)]
struct Tile {
    lines: Arc<Lines>,
    received_at: Time,
    /// When it was looked at last, in [`Tiles::looks`].
    used: u64,
}

/// The tiles that were received.
#[derive(Clone, Debug, Default)]
pub struct Tiles {
    tiles: BTreeMap<Key, Tile>,
    /// Errors of hosts, and when each came.
    errors: BTreeMap<HostName, (Time, String)>,
    ages: BTreeMap<HostName, Ages>,
    marks: BTreeMap<HostName, BTreeSet<HostMark>>,
    points: usize,
    /// Number of looks so far.
    looks: u64,
}

impl Tiles {
    /// Take an answer.
    pub fn take(
        &mut self,
        request: &TileRequest,
        answer: Result<BTreeMap<Metric, Lines>, String>,
        now: Time,
    ) {
        let metrics = match answer {
            Ok(metrics) => metrics,
            Err(error) => {
                self.errors.insert(request.host.clone(), (now, error));
                return;
            }
        };
        self.errors.remove(&request.host);
        for (metric, lines) in metrics {
            self.points += count(&lines);
            let key = (request.host.clone(), metric, request.level, request.number);
            let tile = Tile { lines: Arc::new(lines), received_at: now, used: self.looks };
            if let Some(before) = self.tiles.insert(key, tile) {
                self.points -= count(&before.lines);
            }
        }
        self.forget_unused();
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// Why a host could not be queried.
    #[must_use]
    pub fn error_of(&self, host: &HostName) -> Option<&str> {
        self.errors.get(host).map(|(_, error)| error.as_str())
    }

    /// Forget the errors, as the present is looked at.
    pub fn forget_errors(&mut self) {
        self.errors.clear();
    }

    /// A host has stored fine values so far back.
    pub fn set_ages(&mut self, host: &HostName, ages: Ages) {
        self.ages.insert(host.clone(), ages);
    }

    /// Add marks of a host; the oldest are forgotten beyond a limit.
    pub fn add_marks(&mut self, host: &HostName, marks: Vec<HostMark>) {
        if !marks.is_empty() {
            let of_host = self.marks.entry(host.clone()).or_default();
            of_host.extend(marks);
            while of_host.len() > MARKS_MAX {
                of_host.pop_first();
            }
        }
    }

    /// The marks of a host in a range.
    pub fn marks(&self, host: &HostName, (from, to): (Time, Time)) -> impl Iterator<Item = HostMark> {
        let of_host = self.marks.get(host).into_iter().flatten().copied();
        of_host.filter(move |mark| mark.time >= from && mark.time <= to)
    }

    /// The resolution in which a host has all of a range: where its fine values are gone, the next coarser one.
    #[must_use]
    pub fn level_of(&self, host: &HostName, (from, _): (Time, Time), level: Level) -> Level {
        let Some(ages) = self.ages.get(host) else { return level };
        let has = |oldest: Option<Time>| ages.has(oldest, from);
        match level {
            level if level > MINUTES => level,
            level if level <= SAMPLES && has(ages.samples) => level,
            level if has(ages.minutes) => level.max(Level(SAMPLES.0 + 1)),
            _ => Level(MINUTES.0 + 1),
        }
    }

    /// What of a view is to be requested, the most useful first: what is missing coarse, then in full, then what
    /// may have changed.
    pub fn missing(&mut self, view: &View<'_>, now: Time) -> Vec<TileRequest> {
        self.missing_of(std::slice::from_ref(view), now)
    }

    /// The same of several views that are looked at together.
    pub fn missing_of(&mut self, views: &[View<'_>], now: Time) -> Vec<TileRequest> {
        self.looks += 1;
        let look = Look { now, hosts: views.iter().map(|view| view.hosts.len()).sum() };
        let (mut coarse, mut missing, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for (view, host) in views.iter().flat_map(|view| view.hosts.iter().map(move |host| (view, host))) {
            let until = view.range.1.min(now);
            if self.errors.get(host).is_some_and(|(at, _)| now.since(*at) < AGAIN_AFTER) {
                continue;
            }
            let view = View { level: self.level_of(host, view.range, view.level), ..*view };
            let first = Level((view.level.0 + FIRST_COARSER).min(STEPS_MS.len() - 1));
            for (level, is_first) in [(first, true), (view.level, false)] {
                if is_first && level == view.level {
                    continue;
                }
                for number in (level.tile_at(view.range.0)..=level.tile_at(until)).rev() {
                    match self.request(&view, host, (level, number), is_first, look) {
                        None => {}
                        Some((request, _)) if is_first => coarse.push(request),
                        Some((request, Lack::All)) => missing.push(request),
                        Some((request, Lack::Newest)) => changed.push(request),
                    }
                }
            }
        }
        // The newest first, of all hosts.
        missing.sort_by_key(|request| std::cmp::Reverse(request.range().0));
        coarse.into_iter().chain(missing).chain(changed).collect()
    }

    /// The request for a tile of a host, if it is due; with `is_first` only where nothing else can be drawn.
    fn request(
        &mut self,
        view: &View<'_>,
        host: &HostName,
        (level, number): (Level, i64),
        is_first: bool,
        look: Look,
    ) -> Option<(TileRequest, Lack)> {
        let mut lack = Lack::Newest;
        let mut request = TileRequest { level, number, host: host.clone(), metrics: Vec::new() };
        let seen_until = request.range().1.min(view.range.1);
        for metric in view.metrics {
            let looks = self.looks;
            let key = (host.clone(), metric.clone(), level, number);
            let is_there = match self.tiles.get_mut(&key) {
                Some(tile) => {
                    tile.used = looks;
                    is_first || !is_due(tile, level, seen_until, look)
                }
                None => {
                    lack = Lack::All;
                    is_first && self.covers(host, metric, view)
                }
            };
            if !is_there {
                request.metrics.push(metric.clone());
            }
        }
        (!request.metrics.is_empty()).then_some((request, lack))
    }

    /// Whether something of a view can be drawn in its own resolution or in one beside it.
    fn covers(&self, host: &HostName, metric: &Metric, view: &View<'_>) -> bool {
        std::iter::once(view.level).chain(view.level.others()).any(|level| {
            let numbers = level.tile_at(view.range.0)..=level.tile_at(view.range.1);
            let key = |number: i64| (host.clone(), metric.clone(), level, number);
            self.tiles.range(key(*numbers.start())..=key(*numbers.end())).next().is_some()
        })
    }

    /// The lines of a metric of a host over a range, in this resolution as far as it is there, else in the
    /// nearest that is; and the longest time between two values.
    #[must_use]
    pub fn lines(
        &self,
        host: &HostName,
        metric: &Metric,
        range: (Time, Time),
        level: Level,
    ) -> (BTreeMap<&str, Pieces<'_>>, Duration) {
        let level = self.level_of(host, range, level);
        let mut lines = BTreeMap::<&str, Pieces<'_>>::new();
        let mut longest = level.step();
        let tile = level.tile_micros();
        for number in level.tile_at(range.0)..=level.tile_at(range.1) {
            let start = Time::from_micros(number.saturating_mul(tile)).max(range.0.minus(level.step()));
            let end = Time::from_micros(number.saturating_add(1).saturating_mul(tile));
            let end = end.min(range.1.plus(level.step()));
            let found = self.nearest(host, metric, (start, end), level);
            let Some((found, step)) = found else { continue };
            longest = longest.max(step);
            for tile in found {
                for (name, points) in tile.iter() {
                    let first = points.partition_point(|point| point.time < start);
                    let last = points.partition_point(|point| point.time < end).max(first);
                    if first < last {
                        lines.entry(name.as_str()).or_default().0.push(&points[first..last]);
                    }
                }
            }
        }
        (lines, longest)
    }

    /// The tiles over a range in the given resolution, else in the nearest other; and its step.
    fn nearest(
        &self,
        host: &HostName,
        metric: &Metric,
        (from, to): (Time, Time),
        level: Level,
    ) -> Option<(Vec<&Lines>, Duration)> {
        std::iter::once(level).chain(level.others()).find_map(|level| {
            let key = |time: Time| (host.clone(), metric.clone(), level, level.tile_at(time));
            let to = Time::from_micros(to.micros().saturating_sub(1)).max(from);
            let found = self.tiles.range(key(from)..=key(to));
            let found: Vec<&Lines> = found.map(|(_, tile)| tile.lines.as_ref()).collect();
            (!found.is_empty()).then(|| (found, level.step()))
        })
    }

    /// Forget the tiles that were looked at longest ago, beyond the limit.
    fn forget_unused(&mut self) {
        if self.points <= POINTS_MAX {
            return;
        }
        // A frame looks once or twice: at the earlier time that is compared too.
        let unused = self.tiles.iter().filter(|(_, tile)| tile.used + 1 < self.looks);
        let mut by_use: Vec<(u64, Key)> = unused.map(|(key, tile)| (tile.used, key.clone())).collect();
        by_use.sort_unstable();
        for (_, key) in by_use {
            if self.points <= POINTS_MAX / 4 * 3 {
                return;
            }
            if let Some(tile) = self.tiles.remove(&key) {
                self.points -= count(&tile.lines);
            }
        }
    }
}

/// Whether a tile that is looked at until `end` was received before that was over, long enough ago.
fn is_due(tile: &Tile, level: Level, end: Time, Look { now, hosts }: Look) -> bool {
    let complete_after = if level > SAMPLES { COPIED_AFTER } else { STORED_AFTER };
    let was_over = tile.received_at.minus(level.step().max(complete_after)) >= end;
    let after = level.step().clamp(*RENEWED_AFTER.start(), *RENEWED_AFTER.end());
    let after = after.max(RENEWED_A_HOST * u32::try_from(hosts).unwrap_or(u32::MAX));
    !was_over && now.since(tile.received_at) >= after
}

fn count(lines: &Lines) -> usize {
    lines.values().map(Vec::len).sum::<usize>() + 1
}

#[cfg(test)]
mod tests;
