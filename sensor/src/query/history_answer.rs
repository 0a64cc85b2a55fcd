//! What was found of the past as the series of an answer: the requested value of each step, units, the top.
//!
//! Pure. Not here: what is read (`history`), how values are summarized (`store`).

use super::exported_minutes;
use std::time::Duration;
use store::exact::Exact;
use store::mark::Mark;
use store::plan::Part;
use store::query::{Answer, Point, Subject, quantile};
use store::tier::Tier;
use wire::api::UnixTime;
use wire::api::history::{
    Aggregate, History, HistoryMark, HistoryParams, HistorySeries, MarkKind, StepSummary, TierAge, TierPart,
    unit_of_rate,
};
use wire::api::metrics::{Metric as MetricAnswer, Sample, Semantics as SemanticsAnswer, Value};
use wire::id::HostName;
use wire::sample::{Number, Semantics};
use wire::time::Time;

/// The answer with the requested summary of each step.
pub(super) fn summarized(found: Answer<Point>, aggregate: Aggregate) -> History {
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

pub(super) fn shown<P>(found: Answer<P>, series: impl Fn(Subject, Vec<P>) -> HistorySeries) -> History {
    History {
        series: found.series.into_iter().map(|(subject, points)| series(subject, points)).collect(),
        tiers: tiers(&found.parts, &found.elsewhere),
        damaged: found.damaged,
        marks: marks(&found.marks),
        ..History::default()
    }
}

pub(super) fn series_of(
    subject: Subject,
    aggregate: Option<Aggregate>,
    samples: Vec<Sample>,
) -> HistorySeries {
    let MetricAnswer { name, labels, unit, semantics, .. } = MetricAnswer::of(&subject.metric);
    let is_of_rates = |aggregate| {
        aggregate == Aggregate::Rate || semantics == SemanticsAnswer::Counter && share(aggregate).is_some()
    };
    let unit = match aggregate {
        Some(Aggregate::Count) => "".into(),
        Some(aggregate) if is_of_rates(aggregate) => unit_of_rate(&unit),
        Some(_) | None => unit,
    };
    let host = subject.host.map(|host| host.as_str().into());
    HistorySeries { name, labels, unit, semantics, host, aggregate, samples, summaries: Vec::new() }
}

/// Share of the values that a percentile is above.
pub(super) fn share(aggregate: Aggregate) -> Option<f64> {
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
pub(super) fn chosen(mut found: History, params: &HistoryParams) -> History {
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
    let mark = |(host, mark): &(HostName, Mark)| {
        let (kind, time, from) = match *mark {
            Mark::Started(time) => (MarkKind::Started, time, None),
            Mark::ClockSetBack { from, to } => (MarkKind::ClockSetBack, to, Some(UnixTime(from))),
        };
        HistoryMark { time: UnixTime(time), kind, from, host: Some(host.to_string()) }
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

pub(super) fn ages(oldest: [Option<Time>; 3]) -> impl Iterator<Item = TierAge> {
    let ages = Tier::ALL.into_iter().zip(oldest);
    let age = |(tier, time): (Tier, Option<Time>)| {
        time.map(|time| TierAge { tier: tier.name().to_owned(), time: UnixTime(time) })
    };
    ages.filter_map(age)
}
