//! The stored past of graphs, in tiles: the lines of a metric of a host over a fixed number of steps, in one of
//! several resolutions.
//!
//! Pure. Rule: what is looked at is requested coarse first, then in the resolution of the view; until that is
//! there the nearest other resolution is drawn. Tiles that were looked at longest ago are forgotten first, those that
//! are looked at never. Not here: requests to daemons (`live::history`), the present (`series`).

use super::metric::Metric;
use crate::flock::sweep::HostName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Time between two values in each resolution, the finest first, in milliseconds.
const STEPS_MS: [i64; 8] = [100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000];
/// Steps of a tile.
pub const TILE_STEPS: i64 = 600;
/// How much coarser the first tiles are, in resolutions.
const FIRST_COARSER: usize = 2;
/// Values of all tiles together, at most, unless more are looked at: 32 bytes each.
const POINTS_MAX: usize = 1_000_000;
/// A host that failed is asked again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// A tile of the present is requested again after a step, and within these bounds.
const RENEWED_AFTER: std::ops::RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(300);

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

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub hosts: &'a [HostName],
    pub metrics: &'a [Metric],
    pub range: (Time, Time),
    pub level: Level,
}

type Key = (HostName, Metric, Level, i64);

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

    /// What of a view is to be requested, the most useful first.
    pub fn missing(&mut self, view: &View<'_>, now: Time) -> Vec<TileRequest> {
        self.looks += 1;
        let coarse = Level((view.level.0 + FIRST_COARSER).min(STEPS_MS.len() - 1));
        let mut requests = Vec::new();
        for (level, is_first) in [(coarse, true), (view.level, false)] {
            if is_first && level == view.level {
                continue;
            }
            let until = view.range.1.min(now);
            for number in (level.tile_at(view.range.0)..=level.tile_at(until)).rev() {
                requests.extend(
                    view.hosts
                        .iter()
                        .filter_map(|host| self.request(view, host, (level, number), is_first, now)),
                );
            }
        }
        requests
    }

    /// The request for a tile of a host, if it is due; with `is_first` only where nothing else can be drawn.
    fn request(
        &mut self,
        view: &View<'_>,
        host: &HostName,
        (level, number): (Level, i64),
        is_first: bool,
        now: Time,
    ) -> Option<TileRequest> {
        if self.errors.get(host).is_some_and(|(at, _)| now.since(*at) < AGAIN_AFTER) {
            return None;
        }
        let mut request = TileRequest { level, number, host: host.clone(), metrics: Vec::new() };
        let seen_until = request.range().1.min(view.range.1);
        for metric in view.metrics {
            let looks = self.looks;
            let key = (host.clone(), metric.clone(), level, number);
            let is_there = match self.tiles.get_mut(&key) {
                Some(tile) => {
                    tile.used = looks;
                    is_first || !is_due(tile, level, seen_until, now)
                }
                None => is_first && self.covers(host, metric, view),
            };
            if !is_there {
                request.metrics.push(metric.clone());
            }
        }
        (!request.metrics.is_empty()).then_some(request)
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
    ) -> (Lines, Duration) {
        let mut lines = Lines::new();
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
                    lines.entry(name.clone()).or_default().extend_from_slice(&points[first..last]);
                }
            }
        }
        lines.retain(|_, points| !points.is_empty());
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
fn is_due(tile: &Tile, level: Level, end: Time, now: Time) -> bool {
    // Minutes are copied some seconds after they are over.
    let was_over = tile.received_at.minus(level.step().max(Duration::from_secs(120))) >= end;
    let after = level.step().clamp(*RENEWED_AFTER.start(), *RENEWED_AFTER.end());
    !was_over && now.since(tile.received_at) >= after
}

fn count(lines: &Lines) -> usize {
    lines.values().map(Vec::len).sum::<usize>() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_SECS: i64 = 1_800_003_000;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn hosts() -> [HostName; 1] {
        [HostName::new("demo", "wn01")]
    }

    /// Answer a request with one value a step, the number of its resolution.
    fn answer(tiles: &mut Tiles, request: &TileRequest, now: Time) {
        let (from, to) = request.range();
        let step = request.level.step();
        let values = std::iter::successors(Some(from), |time| Some(time.plus(step)));
        #[allow(clippy::cast_precision_loss)]
        let value = request.level.0 as f64;
        let point = |time: Time| Point { time, mean: value, least: value, greatest: value };
        let points: Vec<Point> = values.take_while(|time| *time < to.min(now)).map(point).collect();
        let metrics = request
            .metrics
            .iter()
            .map(|metric| (metric.clone(), Lines::from([(metric.word().to_owned(), points.clone())])));
        tiles.take(request, Ok(metrics.collect()), now);
    }

    fn view<'a>(hosts: &'a [HostName], range: (Time, Time)) -> View<'a> {
        View { hosts, metrics: &[Metric::Load], range, level: Level::of_range(range, 1_200) }
    }

    fn drawn(tiles: &Tiles, view: &View<'_>) -> Vec<Point> {
        let (mut lines, _) = tiles.lines(&view.hosts[0], &Metric::Load, view.range, view.level);
        lines.remove("load").unwrap_or_default()
    }

    #[test]
    fn a_view_is_requested_coarse_first_and_once() {
        let (hosts, now) = (hosts(), at(NOW_SECS));
        let mut tiles = Tiles::default();
        let view = view(&hosts, (at(NOW_SECS - 30 * 86_400), at(NOW_SECS - 86_400)));
        assert_eq!(view.level.step(), Duration::from_secs(3_600));
        let requests = tiles.missing(&view, now);
        assert!(
            requests[0].level > view.level && requests.last().is_some_and(|last| last.level == view.level)
        );
        answer(&mut tiles, &requests[0], now);
        let coarse = drawn(&tiles, &view);
        assert!(!coarse.is_empty() && coarse.len() < 60, "the coarse ones first: {}", coarse.len());
        let fine = tiles.missing(&view, now);
        assert!(fine.iter().all(|request| request.level == view.level), "coarse ones once: {fine:?}");
        for request in &fine {
            answer(&mut tiles, request, now);
        }
        assert!(
            (29 * 24..=29 * 24 + 2).contains(&drawn(&tiles, &view).len()),
            "{}",
            drawn(&tiles, &view).len()
        );
        assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(86_400))), [], "the past is asked once");
    }

    #[test]
    fn what_is_zoomed_into_is_drawn_at_once_and_then_finer() {
        let (hosts, now) = (hosts(), at(NOW_SECS));
        let mut tiles = Tiles::default();
        let wide = view(&hosts, (at(NOW_SECS - 5 * 366 * 86_400), now));
        for request in tiles.missing(&wide, now) {
            answer(&mut tiles, &request, now);
        }
        for secs in [86_400 * 200, 86_400 * 3, 7_200, 60, 5] {
            let narrow = view(&hosts, (at(NOW_SECS - 90_000 - secs), at(NOW_SECS - 90_000)));
            let before = tiles.nearest(&hosts[0], &Metric::Load, narrow.range, narrow.level);
            assert!(before.is_some(), "something coarser is there at {secs} s");
            for request in tiles.missing(&narrow, now) {
                answer(&mut tiles, &request, now);
            }
            let (lines, longest) = tiles.lines(&hosts[0], &Metric::Load, narrow.range, narrow.level);
            assert_eq!(longest, narrow.level.step(), "{secs} s");
            assert!(lines["load"].len() <= 1_300, "{secs} s: {}", lines["load"].len());
        }
    }

    #[test]
    fn the_present_is_requested_again_and_a_host_that_failed_later() {
        let (hosts, now) = (hosts(), at(NOW_SECS));
        let mut tiles = Tiles::default();
        let view = view(&hosts, (at(NOW_SECS - 7_200), now));
        for request in tiles.missing(&view, now) {
            answer(&mut tiles, &request, now);
        }
        assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(2))), []);
        let later = tiles.missing(&view, now.plus(Duration::from_secs(20)));
        assert_eq!(later.len(), 1, "the newest alone: {later:?}");
        tiles.take(&later[0], Err("no answer".to_owned()), now.plus(Duration::from_secs(21)));
        assert_eq!(tiles.error_of(&hosts[0]), Some("no answer"));
        assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(25))), []);
        assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(40))).len(), 1);
    }

    #[test]
    fn what_was_not_looked_at_for_long_is_forgotten() {
        let (hosts, now) = (hosts(), at(NOW_SECS));
        let mut tiles = Tiles::default();
        let mut last = None;
        for back in 0..2_500_i64 {
            let end = NOW_SECS - 86_400 - back * 600;
            let view = view(&hosts, (at(end - 600), at(end)));
            for request in tiles.missing(&view, now) {
                answer(&mut tiles, &request, now);
            }
            last = Some(view.range);
        }
        assert!(tiles.points <= POINTS_MAX, "{}", tiles.points);
        let sum: usize = tiles.tiles.values().map(|tile| count(&tile.lines)).sum();
        assert_eq!(tiles.points, sum);
        let view = view(&hosts, last.unwrap());
        assert_eq!(tiles.missing(&view, now), [], "the last is there");
    }

    #[test]
    fn what_is_looked_at_is_never_forgotten() {
        let hosts: Vec<HostName> = (0..80).map(|host| HostName::new("demo", &format!("wn{host}"))).collect();
        let metrics: Vec<Metric> = (0..8).map(|metric| Metric::Named(format!("m{metric}"))).collect();
        let (now, mut tiles) = (at(NOW_SECS), Tiles::default());
        let range = (at(NOW_SECS - 1_190 * 3_600), at(NOW_SECS - 3_600));
        let view = View { hosts: &hosts, metrics: &metrics, range, level: Level::of_range(range, 1_200) };
        for _ in 0..3 {
            for request in tiles.missing(&view, now) {
                answer(&mut tiles, &request, now);
            }
        }
        assert!(tiles.points > POINTS_MAX, "{}", tiles.points);
        assert_eq!(tiles.missing(&view, now), []);
    }

    proptest! {
        #[test]
        fn any_view_is_bounded_and_in_order(from in 0_i64..2_000_000_000, secs in 0_i64..400_000_000) {
            let (hosts, now) = (hosts(), at(NOW_SECS));
            let mut tiles = Tiles::default();
            let view = view(&hosts, (at(from), at(from + secs)));
            let requests = tiles.missing(&view, now);
            prop_assert!(requests.len() <= 16, "{}", requests.len());
            for request in &requests {
                prop_assert!(request.range().0 <= now, "nothing of the future");
                answer(&mut tiles, request, now);
            }
            let points = drawn(&tiles, &view);
            prop_assert!(points.windows(2).all(|pair| pair[0].time < pair[1].time), "in order, none twice");
            prop_assert!(points.len() <= 6_000, "{}", points.len());
        }
    }
}
