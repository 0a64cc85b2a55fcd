//! Metrics of the past: which tile of the graphs is requested next, the request, and its answer as lines.
//!
//! Pure but for the requests. Rule: the view is what counts: a new list of tiles replaces the previous one. A host answers from
//! its own history; for one that does not answer, its representative does. Not here: which tiles are needed
//! (`graphs::tiles`), lines as sums of metrics (`rates`).

use super::about;
use super::ask::Client;
use super::asking::Question;
use super::rates::{self, Counter, Sample};
use crate::feed::Update;
use crate::flock::sweep::HostName;
use crate::graphs::metric::{LINES_MAX, Metric};
use crate::graphs::tiles::{Ages, Happened, HostMark, Lines, Point, TILE_STEPS, TileRequest};
use client::Error;
use client::typed::About;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::api::history::{
    Aggregate, DomainHistoryParams, GroupBy, History, HistoryParams, HistorySeries, Limit, MarkKind,
    StepSummary,
};
use wire::api::metrics::Semantics;
use wire::api::{Span, UnixTime};
use wire::time::Time;

/// Requests in flight at a time.
const AT_ONCE: usize = 3;
/// Series of one built-in metric of a host: disks and network interfaces.
const SERIES_MAX: u64 = 200;

/// Tiles that are still to be requested.
#[derive(Debug, Default)]
pub(super) struct PastFigures {
    wanted: VecDeque<TileRequest>,
    out: Vec<TileRequest>,
}

/// What a host answered for a tile.
#[derive(Debug)]
pub(super) struct TileAnswer {
    lines: BTreeMap<Metric, Lines>,
    /// Time of the oldest value that is stored.
    oldest: Option<Time>,
    ages: Ages,
    marks: Vec<HostMark>,
}

impl PastFigures {
    /// Replace the tiles that are requested; those in flight are not requested twice.
    pub(super) fn set_request(&mut self, tiles: Vec<TileRequest>) {
        self.wanted = tiles.into_iter().filter(|tile| !self.out.contains(tile)).collect();
    }

    /// The question that is next, unless enough are in flight.
    pub(super) fn question(&mut self) -> Option<Question> {
        if !self.is_due() {
            return None;
        }
        let tile = self.wanted.pop_front()?;
        self.out.push(tile.clone());
        Some(Question::Tile(tile))
    }

    /// Whether there is a question that may be sent.
    pub(super) fn is_due(&self) -> bool {
        self.out.len() < AT_ONCE && !self.wanted.is_empty()
    }

    /// Number of questions in flight.
    pub(super) fn out(&self) -> usize {
        self.out.len()
    }

    /// The update for an answer.
    pub(super) fn take(&mut self, tile: TileRequest, answer: Result<TileAnswer, Error>) -> Update {
        self.out.retain(|out| *out != tile);
        let why = match answer {
            Ok(TileAnswer { lines, oldest, ages, marks }) => {
                return Update::Tile { tile, lines: Ok(lines), oldest, ages: Some(ages), marks };
            }
            Err(Error::Fault { message, .. }) => message,
            Err(
                error @ (Error::Unreachable(_)
                | Error::Mistake(_)
                | Error::Lost { .. }
                | Error::Late { .. }
                | Error::Answer { .. }),
            ) => error.to_string(),
        };
        Update::Tile { tile, lines: Err(why), oldest: None, ages: None, marks: Vec::new() }
    }
}

/// Request a tile. A metric that is refused has no line; if all are, that is an error.
///
/// # Errors
/// See [`Error`]: that of the host, if its representative has no copy either.
pub(super) fn ask(client: &mut Client, tile: &TileRequest) -> Result<TileAnswer, Error> {
    let (lines, marks) = (BTreeMap::new(), Vec::new());
    let mut answer = TileAnswer { lines, oldest: None, ages: Ages::default(), marks };
    let (mut is_silent, mut refused, mut has_any) = (false, None, false);
    for metric in &tile.metrics {
        let mut series = Vec::new();
        for name in metric.asked() {
            let found = match history(client, &tile.host, &params(metric, name, tile), &mut is_silent) {
                Ok(found) => found,
                Err(fault @ Error::Fault { .. }) => {
                    refused.get_or_insert(fault);
                    continue;
                }
                Err(error) => return Err(error),
            };
            has_any = true;
            answer.take_ages(&found);
            series.extend(found.series);
        }
        answer.lines.insert(metric.clone(), bounded(lines_of(metric, &series), tile));
    }
    match refused {
        Some(fault) if !has_any => Err(fault),
        Some(_) | None => Ok(answer),
    }
}

impl TileAnswer {
    fn take_ages(&mut self, found: &History) {
        let of = |tiers: &[&str]| {
            let ages = found.oldest.iter().filter(|age| tiers.contains(&age.tier.as_str()));
            ages.map(|age| age.time.0).min()
        };
        self.oldest = found.oldest.iter().map(|age| age.time.0).chain(self.oldest).min();
        self.ages =
            Ages { samples: of(&["raw"]), minutes: of(&["1m", "exported"]), hours: of(&["1h", "exported"]) };
        self.marks.extend(found.marks.iter().filter_map(|mark| {
            let happened = match mark.kind {
                MarkKind::Started => Happened::SensorStarted,
                MarkKind::ClockSetBack => Happened::ClockSetBack,
                MarkKind::Unknown => return None,
            };
            Some(HostMark { time: mark.time.0, happened })
        }));
    }
}

/// Request the time of the oldest value that a domain has stored.
///
/// # Errors
/// See [`Error`]; a daemon of an earlier version has no such method.
pub(super) fn oldest(client: &mut Client, domain: Option<String>) -> Result<Option<Time>, Error> {
    let now = crate::clock::now();
    let history = HistoryParams {
        name: Some("node_load1".to_owned()),
        since: Some(UnixTime(now.minus(Duration::from_secs(120)))),
        step: Some(Span(Duration::from_secs(60))),
        limit: Limit(1),
        ..HistoryParams::default()
    };
    let params = DomainHistoryParams { history, host: None };
    let answer = client.call(&params, &About { domain, host: None })?;
    Ok(answer.history.oldest.iter().map(|age| age.time.0).min())
}

/// The history of a host from itself; where it `is_silent`, from the copy of its domain.
fn history(
    client: &mut Client,
    host: &HostName,
    params: &HistoryParams,
    is_silent: &mut bool,
) -> Result<History, Error> {
    let copy = |client: &mut Client| {
        let params = DomainHistoryParams { history: params.clone(), host: Some(host.host.to_string()) };
        let of_domain = About { host: None, ..about(host) };
        client.call(&params, &of_domain).map(|answer| answer.history)
    };
    if *is_silent {
        return copy(client);
    }
    match client.call(params, &about(host)) {
        Err(error @ (Error::Fault { .. } | Error::Late { .. })) => {
            let found = copy(client).map_err(|_| error)?;
            *is_silent = true;
            Ok(found)
        }
        other => other,
    }
}

fn params(metric: &Metric, name: &str, tile: &TileRequest) -> HistoryParams {
    let (since, until) = tile.range();
    let params = HistoryParams {
        name: Some(name.to_owned()),
        since: Some(UnixTime(since)),
        until: Some(UnixTime(until)),
        step: Some(Span(tile.level.step())),
        ..HistoryParams::default()
    };
    match metric {
        // A host with many CPUs has thousands of series.
        Metric::Cpu => HistoryParams {
            aggregate: Aggregate::Rate,
            by: GroupBy::Label,
            label: Some("mode".to_owned()),
            limit: Limit(SERIES_MAX),
            ..params
        },
        Metric::Disk | Metric::Network | Metric::Memory | Metric::Load => {
            HistoryParams { aggregate: Aggregate::Summary, limit: Limit(SERIES_MAX), ..params }
        }
        Metric::Named(_) => {
            HistoryParams { aggregate: Aggregate::Summary, limit: Limit(LINES_MAX as u64), ..params }
        }
    }
}

/// The lines of a metric; of a counter its rates.
fn lines_of(metric: &Metric, series: &[HistorySeries]) -> Lines {
    let of = |value: fn(&StepSummary, Semantics) -> Option<f64>| {
        let counters: Vec<Counter> = series.iter().map(|series| counter(series, value)).collect();
        rates::points(std::slice::from_ref(metric), &counters)
    };
    let (mut least, mut greatest) = (
        of(|step, kind| extreme(step, kind, step.min.as_f64())),
        of(|step, kind| extreme(step, kind, step.max.as_f64())),
    );
    let mean = of(mean);
    let mut lines = Lines::new();
    for (name, samples) in mean {
        let beside = |of: &mut BTreeMap<String, Vec<Sample>>| of.remove(&name).unwrap_or_default();
        let (least, greatest) = (beside(&mut least), beside(&mut greatest));
        let points = samples.iter().zip(least).zip(greatest).map(|((mean, one), other)| Point {
            time: mean.time,
            mean: mean.value,
            // The least of what is used is where the most is available.
            least: one.value.min(other.value),
            greatest: one.value.max(other.value),
        });
        lines.insert(name, points.filter(|point| point.mean.is_finite()).collect());
    }
    lines
}

/// The lines with what belongs to a tile, in order, whatever was answered.
fn bounded(mut lines: Lines, tile: &TileRequest) -> Lines {
    let (from, to) = tile.range();
    for points in lines.values_mut() {
        points.retain(|point| from <= point.time && point.time < to);
        points.sort_by_key(|point| point.time);
        points.dedup_by_key(|point| point.time);
        points.truncate(usize::try_from(TILE_STEPS).unwrap_or(usize::MAX));
    }
    lines
}

/// A series with one value a step.
fn counter(series: &HistorySeries, value: fn(&StepSummary, Semantics) -> Option<f64>) -> Counter {
    let rates =
        series.samples.iter().map(|sample| Sample { time: sample.time.0, value: sample.value.as_f64() });
    let summaries = series
        .summaries
        .iter()
        .filter_map(|step| Some(Sample { time: step.time.0, value: value(step, series.semantics)? }));
    Counter {
        name: series.name.to_string(),
        labels: series.labels.0.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        // Values of steps are rates already.
        grows: false,
        samples: rates.chain(summaries).collect(),
    }
}

/// The rate of a counter, the last value of a state, the mean of others.
#[allow(clippy::cast_precision_loss)]
fn mean(step: &StepSummary, semantics: Semantics) -> Option<f64> {
    match semantics {
        Semantics::Counter => {
            let secs = step.increase_secs.filter(|secs| *secs > 0.0)?;
            Some(step.increase?.as_f64() / secs)
        }
        Semantics::State => (step.count > 0).then(|| step.last.as_f64()),
        Semantics::Gauge | Semantics::Unknown => {
            (step.count > 0).then(|| step.sum.as_f64() / step.count as f64)
        }
    }
}

fn extreme(step: &StepSummary, semantics: Semantics, value: f64) -> Option<f64> {
    // The extremes of a counter are not those of its rate.
    if semantics == Semantics::Counter { mean(step, semantics) } else { (step.count > 0).then_some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::tiles::{Level, Tiles, View};

    fn time(secs: f64) -> UnixTime {
        UnixTime(Time::from_secs_f64(secs))
    }

    fn step(at: f64, [min, max, sum, last]: [f64; 4], increase: Option<(f64, f64)>) -> StepSummary {
        let value = |value: f64| serde_json::from_value(serde_json::json!(value)).unwrap();
        StepSummary {
            time: time(at),
            count: 2,
            min: value(min),
            max: value(max),
            sum: value(sum),
            last: value(last),
            increase: increase.map(|(increase, _)| value(increase)),
            increase_secs: increase.map(|(_, secs)| secs),
            rate: increase.map(|(increase, secs)| increase / secs),
        }
    }

    fn series(
        name: &str,
        label: Option<(&str, &str)>,
        semantics: Semantics,
        steps: &[StepSummary],
    ) -> HistorySeries {
        let labels = label.map(|(name, value)| serde_json::json!({ name: value }));
        let labels = labels.map(|labels| serde_json::from_value(labels).unwrap()).unwrap_or_default();
        HistorySeries {
            name: name.into(),
            labels,
            semantics,
            summaries: steps.to_vec(),
            ..HistorySeries::default()
        }
    }

    #[test]
    fn summaries_become_lines_with_their_bounds() {
        let load = [step(0.0, [1.0, 5.0, 6.0, 5.0], None), step(60.0, [2.0, 2.0, 4.0, 2.0], None)];
        let lines = lines_of(&Metric::Load, &[series("node_load1", None, Semantics::Gauge, &load)]);
        let points = &lines["load of 1 minute"];
        let values: Vec<_> = points.iter().map(|point| (point.mean, point.least, point.greatest)).collect();
        assert_eq!(values, [(3.0, 1.0, 5.0), (2.0, 2.0, 2.0)]);

        let read = [step(0.0, [0.0, 9e9, 9e9, 9e9], Some((600.0, 60.0))), step(60.0, [1.0; 4], None)];
        let read = |device| {
            series("node_disk_read_bytes_total", Some(("device", device)), Semantics::Counter, &read)
        };
        let lines = lines_of(&Metric::Disk, &[read("sda"), read("sdb"), read("sda1")]);
        let values: Vec<_> = lines["read"].iter().map(|point| (point.mean, point.greatest)).collect();
        assert_eq!(
            values,
            [(20.0, 20.0)],
            "rates are added, those of parts of a disk are not, and no rate is none"
        );

        let memory = [
            series(
                "node_memory_MemTotal_bytes",
                None,
                Semantics::Gauge,
                &[step(0.0, [100.0, 100.0, 200.0, 100.0], None)],
            ),
            series(
                "node_memory_MemAvailable_bytes",
                None,
                Semantics::Gauge,
                &[step(0.0, [10.0, 30.0, 40.0, 30.0], None)],
            ),
        ];
        let used = lines_of(&Metric::Memory, &memory)["memory"][0];
        assert_eq!((used.least, used.mean, used.greatest), (70.0, 80.0, 90.0));

        let state = [series("up", None, Semantics::State, &[step(0.0, [0.0, 7.0, 7.0, 7.0], None)])];
        let up = lines_of(&Metric::Named("up".into()), &state)["up"][0];
        assert_eq!((up.mean, up.least), (7.0, 0.0), "the last value of a state");
    }

    #[test]
    fn an_answer_that_is_not_what_was_asked_stays_within_its_tile() {
        let now = Time::from_secs_f64(1_800_000_000.0);
        let hosts = [HostName::new("demo", "wn01")];
        let range = (now.minus(Duration::from_secs(7_200)), now);
        let view =
            View { hosts: &hosts, metrics: &[Metric::Load], range, level: Level::of_range(range, 1_200) };
        let tile = Tiles::default().missing(&view, now).remove(0);
        let (from, to) = tile.range();
        let point = |time: Time| Point { time, mean: 0.0, least: 0.0, greatest: 0.0 };
        let mut points: Vec<Point> =
            (0..9_000).rev().map(|at| point(from.plus(Duration::from_micros(at)))).collect();
        points.extend([point(to), point(Time::from_micros(i64::MIN)), point(from)]);
        let lines = bounded(Lines::from([("load".to_owned(), points)]), &tile);
        assert_eq!(lines["load"].len(), 600);
        assert!(
            lines["load"].is_sorted_by(|one, next| one.time < next.time) && lines["load"][0].time == from
        );
    }

    #[test]
    fn a_new_view_replaces_the_previous_one_and_little_is_in_flight() {
        let now = Time::from_secs_f64(1_800_000_000.0);
        let hosts: Vec<HostName> =
            (0..9).map(|number| HostName::new("demo", &format!("wn{number}"))).collect();
        let tiles = |hours: u64| {
            let range = (now.minus(Duration::from_secs(3_600 * hours)), now.minus(Duration::from_secs(600)));
            let view =
                View { hosts: &hosts, metrics: &[Metric::Load], range, level: Level::of_range(range, 400) };
            Tiles::default().missing(&view, now)
        };
        let mut past = PastFigures::default();
        past.set_request(tiles(30));
        let mut asked = Vec::new();
        while let Some(Question::Tile(tile)) = past.question() {
            asked.push(tile);
        }
        assert_eq!((asked.len(), past.out(), past.is_due()), (AT_ONCE, AT_ONCE, false));
        past.set_request(tiles(30));
        assert!(asked.iter().all(|tile| !past.wanted.contains(tile)), "those in flight are not asked twice");
        past.set_request(tiles(3_000));
        let failed = past.take(asked.remove(0), Err(Error::Fault { code: 1, message: "off".into() }));
        assert!(matches!(failed, Update::Tile { lines: Err(why), .. } if why == "off"));
        let Some(Question::Tile(next)) = past.question() else { panic!("there is room again") };
        assert!(next.level.step() > Duration::from_secs(3_600), "of the new view");
    }
}
