//! `sensor.history`: values that the host's metrics had in the past.
//!
//! Rule: an answer has a bounded number of values, and names what it was read from. It is computed on a pool
//! of threads of its own, as it reads the disk. Not here: the storage and the choice of tiers (`store`).

use super::exported_minutes::{self, ExportedMinutes};
use super::history_cursor::Cursor;
use super::metrics::{POINTS_MAX, opened};
use super::past::{between, reader};
use crate::history::exported::Exported;
use crate::history::handle::Handle;
use crate::history::writing::calendar;
use crate::sample::glob::Glob;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use store::exact::Exact;
use store::mark::Mark;
use store::merge::{Elsewhere, Merge};
use store::page::Page;
use store::plan::Part;
use store::query::{Answer, By, Point, Subject, TooLarge, quantile};
use store::reader::{Reader, Selection};
use store::tier::Tier;
use wire::api::history::{
    Aggregate, GroupBy, History, HistoryMark, HistoryParams, HistorySeries, MarkKind, StepSummary, TierAge,
    TierPart, unit_of_rate,
};
use wire::api::metrics::{Metric as MetricAnswer, Sample, Semantics as SemanticsAnswer, Value};
use wire::api::{Span, UnixTime};
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;

/// Values that are read for one answer, at most: those of percentiles are all in memory.
const VALUES_READ_MAX: usize = 2_000_000;

/// How many times as many values an answer from exported days may have: it is of all hosts, for one caller.
const FILES_TIMES: usize = 10;

/// Steps on a page, at most: some megabytes of summaries.
const PAGE_POINTS_MAX: usize = 40_000;

/// Values of a series by default, at most.
const STEPS_DEFAULT: u32 = 300;

/// Span of time by default.
const SPAN_DEFAULT: Duration = Duration::from_secs(3600);

/// Longest step.
const STEP_MAX: Duration = Duration::from_secs(3650 * 86_400);

/// Steps of round lengths, in seconds, that are chosen by default.
const STEPS: [u64; 17] =
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800, 2_592_000];

/// Whose past is answered, and from what besides the store.
pub(super) struct Whose<'a> {
    /// Hosts in the store.
    pub(super) is_wanted: &'a dyn Fn(&HostName) -> bool,
    /// Host in exported days; all of them, if `None`.
    pub(super) host: Option<HostName>,
    pub(super) exported: &'a Exported,
}

/// `sensor.history` of this host; a fault if the history is off.
#[must_use]
pub fn method(history: Option<Handle>, host: HostName, exported: Exported) -> Method {
    let pool = BlockingPool::new("reading the history", AT_ONCE_MAX);
    typed::method(move |_, params: HistoryParams| {
        let (history, pool) = (history.clone(), pool.clone());
        let (host, exported) = (host.clone(), exported.clone());
        async move {
            let history = opened(history)?;
            pool.run(move || {
                let whose = Whose { is_wanted: &|_| true, host: Some(host), exported: &exported };
                answer(reader(&history)?, &params, whose, calendar())
            })
            .await
        }
    })
}

/// Answers for these hosts.
pub(super) fn answer(
    history: &Reader,
    params: &HistoryParams,
    Whose { is_wanted, host, exported }: Whose<'_>,
    now: Time,
) -> Result<History, Fault> {
    let name = params.name.as_deref().map(Glob::new).transpose();
    let name = name.map_err(|error| Fault::invalid_params(format!("name: {error}")))?;
    let (since, until) = between((params.since, params.until), SPAN_DEFAULT, now)?;
    check(params)?;
    let fits = |metric: &Metric| {
        name.as_ref().is_none_or(|name| name.matches(&metric.name)) && params.labels.fit(metric)
    };
    let selection = Selection { host: is_wanted, metric: &fits, since, until };
    let mut exported = ExportedMinutes::new(exported, host);
    let step = params.step.map_or_else(|| step_for(until.since(since)), |Span(step)| step);
    let found = match (&params.cursor, step) {
        (Some(cursor), step) => page(history, &selection, params, step, cursor)?,
        (None, Duration::ZERO) => samples(history, &selection)?,
        (None, step) => steps(history, &selection, params, step, &mut exported)?,
    };
    if params.cursor.is_none() {
        check_found(&found, params)?;
    }
    let stored = history.oldest(is_wanted);
    let oldest = exported.age().into_iter().chain(ages(stored)).collect();
    let is_beyond = stored.into_iter().flatten().min().is_none_or(|oldest| since < oldest);
    let exported_problem = exported.problem(is_beyond);
    Ok(History { oldest, step_secs: step.as_secs_f64(), exported_problem, ..chosen(found, params) })
}

/// Checks what the types of the parameters allow and makes no sense.
fn check(params: &HistoryParams) -> Result<(), Fault> {
    let refused = |text: &'static str| Err(Fault::invalid_params(text));
    match params.step {
        Some(Span(step)) if step > STEP_MAX => return refused("step: expected at most 3650 days"),
        Some(Span(Duration::ZERO)) if params.aggregate != Aggregate::Auto || params.by != GroupBy::Series => {
            return refused(
                "step: 0 answers samples as they were stored; expected a step to summarize them by",
            );
        }
        _ => {}
    }
    if params.by != GroupBy::Series && params.aggregate == Aggregate::Last {
        return refused(
            "aggregate: merged series have no last value; expected avg, min, max, sum, count, rate …",
        );
    }
    Ok(())
}

/// Names a label or an aggregate that no series of the answer has.
fn check_found(found: &History, params: &HistoryParams) -> Result<(), Fault> {
    if found.series.is_empty() {
        return Ok(());
    }
    if let Some(label) =
        params.label.as_ref().filter(|_| found.series.iter().all(|one| one.labels.0.is_empty()))
    {
        return Err(Fault::invalid_params(format!("label: no metric of the answer has a label {label:?}")));
    }
    let is_of_counters = matches!(params.aggregate, Aggregate::Rate | Aggregate::Increase);
    let is_counter = |one: &HistorySeries| one.semantics == SemanticsAnswer::Counter;
    if is_of_counters && !found.series.iter().any(is_counter) {
        let name = &found.series[0].name;
        return Err(Fault::invalid_params(format!("aggregate: only counters increase, and {name} is none")));
    }
    Ok(())
}

/// The shortest round step that yields at most [`STEPS_DEFAULT`] values.
fn step_for(span: Duration) -> Duration {
    let secs = STEPS.into_iter().find(|secs| Duration::from_secs(*secs) * STEPS_DEFAULT >= span);
    Duration::from_secs(secs.unwrap_or(STEPS[STEPS.len() - 1]))
}

fn too_large(error: TooLarge) -> Fault {
    Fault::invalid_params(error.to_string())
}

fn samples(history: &Reader, selection: &Selection) -> Result<History, Fault> {
    let found = history.values(selection, POINTS_MAX).map_err(too_large)?;
    Ok(shown(found, |subject, points| {
        let sample = |(time, value): &(Time, Number)| Sample { time: UnixTime(*time), value: Value(*value) };
        series_of(subject, None, points.iter().map(sample).collect())
    }))
}

fn steps(
    history: &Reader,
    selection: &Selection,
    params: &HistoryParams,
    step: Duration,
    exported: &mut ExportedMinutes<'_>,
) -> Result<History, Fault> {
    let spans = exported.spans.clone();
    let mut read = |times: (Time, Time), merge: &mut Merge| exported.read(times, params, merge);
    let elsewhere = Elsewhere { spans: &spans, read: &mut read };
    let found = history.steps_with(selection, step, &by(params)?, values_of(params), elsewhere);
    exported.check()?;
    Ok(summarized(found.map_err(too_large)?, params.aggregate))
}

/// Whether the values of steps are needed, and how many are read at most.
fn values_of(params: &HistoryParams) -> (bool, usize) {
    match share(params.aggregate) {
        Some(_) => (true, VALUES_READ_MAX),
        None => (false, POINTS_MAX),
    }
}

/// Which series are merged.
fn by(params: &HistoryParams) -> Result<By, Fault> {
    match (params.by, &params.label) {
        (GroupBy::Series, None) => Ok(By::Series),
        (GroupBy::Host, None) => Ok(By::Host),
        (GroupBy::Label, Some(label)) => Ok(By::Label(label.clone())),
        (GroupBy::Label, None) => {
            Err(Fault::invalid_params("label: expected the label by which series are merged, found none"))
        }
        (GroupBy::Domain, None) => Ok(By::Name),
        (GroupBy::Series | GroupBy::Host | GroupBy::Domain, Some(_)) => {
            Err(Fault::invalid_params("label: expected only if `by` is `label`"))
        }
    }
}

/// Answers as `sensor.history` of each host does, from buckets that are stored elsewhere: `read` gets the start and end of
/// the steps that are needed, and adds their buckets.
///
/// # Errors
/// As `sensor.history`, and if the step is not of whole minutes.
pub fn of_buckets(
    params: &HistoryParams,
    (since, until): (Time, Time),
    read: impl FnOnce((Time, Time), &mut Merge),
) -> Result<History, Fault> {
    let minute = Duration::from_secs(60);
    let step = params.step.map_or_else(|| step_for(until.since(since)).max(minute), |Span(step)| step);
    check(params)?;
    let mut by = by(params)?;
    if let By::Label(label) = by {
        // A host answers for itself.
        by = By::HostLabel(label);
    }
    if step.is_zero() || !step.as_micros().is_multiple_of(minute.as_micros()) {
        return Err(Fault::invalid_params(
            "step: only minutes and hours are exported; expected whole minutes, such as 1m or 1h",
        ));
    }
    let (with_values, max) = values_of(params);
    let mut merge = Merge::new(step, with_values, max * FILES_TIMES);
    read(merge.span(since, until), &mut merge);
    let series = merge.finish(&by).map_err(too_large)?;
    let (parts, elsewhere, marks) = (Vec::new(), Vec::new(), Vec::new());
    let answer = Answer { series, parts, elsewhere, damaged: 0, marks };
    let found = summarized(answer, params.aggregate);
    check_found(&found, params)?;
    Ok(History { step_secs: step.as_secs_f64(), ..chosen(found, params) })
}

/// A page of the series of [`steps`], after those of the cursor.
fn page(
    history: &Reader,
    selection: &Selection,
    params: &HistoryParams,
    step: Duration,
    cursor: &str,
) -> Result<History, Fault> {
    if step.is_zero()
        || params.by != GroupBy::Series
        || params.top.is_some()
        || share(params.aggregate).is_some()
    {
        return Err(Fault::invalid_params(
            "cursor: pages are of series as they are, in steps; expected no `by`, no `top`, no percentile and a \
             step above 0",
        ));
    }
    let after = match cursor {
        "" => None,
        cursor => {
            let cursor: Cursor =
                cursor.parse().map_err(|error| Fault::invalid_params(format!("cursor: {error}")))?;
            Some(cursor.0)
        }
    };
    let Page { answer, next } = history.page(selection, step, PAGE_POINTS_MAX, after).map_err(too_large)?;
    let next = next.map(|next| Cursor(next).to_string());
    Ok(History { next, ..summarized(answer, params.aggregate) })
}

/// The answer with the requested summary of each step.
fn summarized(found: Answer<Point>, aggregate: Aggregate) -> History {
    shown(found, |subject, points| {
        let aggregate = resolved(aggregate, subject.metric.semantics);
        if aggregate == Aggregate::Summary {
            let summaries = points.iter().map(summary).collect();
            return HistorySeries { summaries, ..series_of(subject, Some(aggregate), Vec::new()) };
        }
        let sample = |point: &Point| {
            let value = value(point, aggregate)?;
            Some(Sample { time: UnixTime(point.time), value: Value(value) })
        };
        series_of(subject, Some(aggregate), points.iter().filter_map(sample).collect())
    })
}

fn summary(point: &Point) -> StepSummary {
    let bucket = &point.bucket;
    let number = |exact: Exact| Value(exact.into());
    StepSummary {
        time: UnixTime(point.time),
        count: bucket.count,
        min: number(bucket.min),
        max: number(bucket.max),
        sum: number(bucket.sum),
        last: number(bucket.last),
        increase: bucket.increase.map(number),
        increase_secs: bucket.increase.map(|_| Duration::from_millis(bucket.increase_millis).as_secs_f64()),
        rate: point.rate,
    }
}

fn shown<P>(found: Answer<P>, series: impl Fn(Subject, Vec<P>) -> HistorySeries) -> History {
    History {
        series: found.series.into_iter().map(|(subject, points)| series(subject, points)).collect(),
        tiers: tiers(&found.parts, &found.elsewhere),
        damaged: found.damaged,
        marks: marks(&found.marks),
        ..History::default()
    }
}

fn series_of(subject: Subject, aggregate: Option<Aggregate>, samples: Vec<Sample>) -> HistorySeries {
    let MetricAnswer { name, labels, unit, semantics, .. } = MetricAnswer::of(&subject.metric);
    let unit = match aggregate {
        Some(Aggregate::Rate) => unit_of_rate(&unit),
        Some(Aggregate::Count) => "".into(),
        _ => unit,
    };
    let host = subject.host.map(|host| host.as_str().into());
    HistorySeries { name, labels, unit, semantics, host, aggregate, samples, summaries: Vec::new() }
}

/// Share of the values that a percentile is above.
fn share(aggregate: Aggregate) -> Option<f64> {
    match aggregate {
        Aggregate::P50 => Some(0.5),
        Aggregate::P95 => Some(0.95),
        Aggregate::P99 => Some(0.99),
        Aggregate::Auto
        | Aggregate::Avg
        | Aggregate::Min
        | Aggregate::Max
        | Aggregate::Sum
        | Aggregate::Count
        | Aggregate::Last
        | Aggregate::Rate
        | Aggregate::Increase
        | Aggregate::Summary => None,
    }
}

fn resolved(aggregate: Aggregate, semantics: Semantics) -> Aggregate {
    match (aggregate, semantics) {
        (Aggregate::Auto, Semantics::Counter) => Aggregate::Rate,
        (Aggregate::Auto, Semantics::Gauge) => Aggregate::Avg,
        (Aggregate::Auto, Semantics::State) => Aggregate::Last,
        (aggregate, _) => aggregate,
    }
}

/// Value of a step; `None` if the metric has no such value: only counters increase. A whole summary is valued by its
/// mean.
fn value(point: &Point, aggregate: Aggregate) -> Option<Number> {
    let bucket = &point.bucket;
    Some(match aggregate {
        Aggregate::Auto | Aggregate::Avg | Aggregate::Summary => Number::Real(bucket.mean()),
        Aggregate::Min => bucket.min.into(),
        Aggregate::Max => bucket.max.into(),
        Aggregate::Sum => bucket.sum.into(),
        Aggregate::Count => Number::Whole(bucket.count),
        Aggregate::Last => bucket.last.into(),
        Aggregate::Rate => Number::Real(point.rate?),
        Aggregate::Increase => bucket.increase?.into(),
        Aggregate::P50 | Aggregate::P95 | Aggregate::P99 => {
            Number::Real(quantile(&point.values, share(aggregate)?)?)
        }
    })
}

/// The series that the answer shows, of all that were found.
fn chosen(mut found: History, params: &HistoryParams) -> History {
    found.series.retain(|series| !series.samples.is_empty() || !series.summaries.is_empty());
    found.total = found.series.len() as u64;
    let count = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
    if let Some(top) = params.top {
        found.series.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        found.series.truncate(count(top));
    }
    if params.cursor.is_none() {
        found.series.truncate(count(params.limit.0));
    }
    found
}

#[allow(clippy::cast_precision_loss)]
fn mean(series: &HistorySeries) -> f64 {
    let is_counter = series.semantics == SemanticsAnswer::Counter;
    let of_step = |step: &StepSummary| match is_counter {
        true => step.rate,
        false => Some(step.sum.as_f64() / step.count.max(1) as f64),
    };
    let values = series.samples.iter().map(|sample| sample.value.as_f64());
    let values = values.chain(series.summaries.iter().filter_map(of_step));
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

fn marks(found: &[(HostName, Mark)]) -> Vec<HistoryMark> {
    let mark = |(_, mark): &(HostName, Mark)| match *mark {
        Mark::Started(time) => HistoryMark { time: UnixTime(time), kind: MarkKind::Started, from: None },
        Mark::ClockSetBack { from, to } => {
            HistoryMark { time: UnixTime(to), kind: MarkKind::ClockSetBack, from: Some(UnixTime(from)) }
        }
    };
    found.iter().map(mark).collect()
}

fn tiers(parts: &[Part], exported: &[(Time, Time)]) -> Vec<TierPart> {
    let part = |name: &str, since: Time, until: Time| TierPart {
        tier: name.to_owned(),
        since: UnixTime(since),
        until: UnixTime(until),
    };
    let stored = parts.iter().map(|stored| part(stored.tier.name(), stored.since, stored.until));
    let exported = exported.iter().map(|(since, until)| part(exported_minutes::NAME, *since, *until));
    let mut tiers: Vec<TierPart> = stored.chain(exported).collect();
    tiers.sort_by_key(|part| part.since.0);
    tiers
}

fn ages(oldest: [Option<Time>; 3]) -> impl Iterator<Item = TierAge> {
    let ages = Tier::ALL.into_iter().zip(oldest);
    let age = |(tier, time): (Tier, Option<Time>)| {
        time.map(|time| TierAge { tier: tier.name().to_owned(), time: UnixTime(time) })
    };
    ages.filter_map(age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use store::bucket::Bucket;

    #[test]
    fn the_default_step_yields_a_few_hundred_values() {
        let check = |span: u64, step: u64| {
            assert_eq!(step_for(Duration::from_secs(span)), Duration::from_secs(step), "{span}");
        };
        check(60, 1);
        check(3600, 30);
        check(86_400, 300);
        check(7 * 86_400, 3600);
        check(5 * 365 * 86_400, 604_800);
        check(u64::from(u32::MAX), 2_592_000);
    }

    /// One step of a counter of this name, with this value and increase.
    fn add(merge: &mut Merge, name: &str, value: u64, increase: u64) {
        let host = HostName::try_from("wn01").expect("a name");
        let (unit, labels, semantics) = ("seconds".into(), Vec::new(), Semantics::Counter);
        let metric = Arc::new(Metric { name: name.into(), labels, unit, semantics });
        let exact = |value| Exact::from(Number::Whole(value));
        let (increase, increase_millis) = (Some(exact(increase)), 60_000);
        let bucket = Bucket { increase, increase_millis, ..Bucket::of(exact(value)) };
        merge.add(&host, &metric, Time::default(), &bucket);
    }

    #[test]
    fn the_top_counters_are_those_of_the_highest_rates_in_summaries_too() {
        for aggregate in [Aggregate::Auto, Aggregate::Summary] {
            let step = Some(Span(Duration::from_secs(60)));
            let params = HistoryParams { aggregate, step, top: Some(1), ..HistoryParams::default() };
            let between = (Time::default(), Time::from_micros(60_000_000));
            let found = of_buckets(&params, between, |_, merge| {
                add(merge, "old_and_idle", 1_000_000, 6);
                add(merge, "new_and_busy", 600, 600);
            });
            let series = found.expect("it is small").series;
            assert_eq!((series.len(), series[0].name.as_str()), (1, "new_and_busy"), "{aggregate:?}");
            let rate = series[0].summaries.first().and_then(|step| step.rate);
            assert_eq!(rate, (aggregate == Aggregate::Summary).then_some(10.0));
        }
    }
}
