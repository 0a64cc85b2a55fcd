//! `sensor.metrics`: metrics of the host, the newest values or the stored samples.
//!
//! Rule: an answer has a bounded number of points, the newest. Not here: sampling (`sample`).

use super::past::{between, reader};
use crate::history::{handle as history, writing::calendar};
use crate::sample::glob::Glob;
use crate::sample::sampler::Handle;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use store::reader::Selection;
use wire::api::UnixTime;
use wire::api::metrics::{
    self as api, Labels, MetricsParams, Sample, SensorMetrics, SensorMetricsParams, Value,
};
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Most points of one answer, over all metrics: about 8 MB of XML.
pub(super) const POINTS_MAX: usize = 100_000;

/// Most answers from the history computed at the same time.
const AT_ONCE_MAX: usize = 4;

/// Time that is answered unless `since` says more.
const SPAN_DEFAULT: Duration = Duration::from_secs(300);

/// Time that fits into an answer, however many metrics there are.
const SPAN_MIN: Duration = Duration::from_millis(10);

/// `sensor.metrics`.
#[must_use]
pub fn method(sampler: &Handle, history: Option<history::Handle>) -> Method {
    let own = sampler.clone();
    let pool = BlockingPool::new("reading the history", AT_ONCE_MAX);
    typed::method(move |_, SensorMetricsParams(params)| {
        let (own, history, pool) = (own.clone(), history.clone(), pool.clone());
        async move {
            if !params.is_of_history() {
                let metrics = newest(&own, &params)?;
                return Ok(answer(&own, metrics));
            }
            let history = opened(history)?;
            let metrics = pool.run(move || stored(&history, &params)).await?;
            Ok(answer(&own, metrics))
        }
    })
}

/// Requested metrics and times.
pub(super) struct MetricQuery {
    name: Option<Glob>,
    labels: Labels,
    pub(super) limit: usize,
    pub(super) since: Time,
    until: Time,
}

impl MetricQuery {
    pub(super) fn new(params: &MetricsParams) -> Result<MetricQuery, Fault> {
        let name = params.name.as_deref().map(Glob::new).transpose();
        Ok(MetricQuery {
            name: name.map_err(|error| Fault::invalid_params(format!("name: {error}")))?,
            labels: params.labels.clone(),
            limit: usize::try_from(params.limit).unwrap_or(usize::MAX),
            since: params.since.map_or(Time::from_micros(i64::MIN), |since| since.0),
            until: params.until.map_or(Time::from_micros(i64::MAX), |until| until.0),
        })
    }

    pub(super) fn fits(&self, metric: &Metric) -> bool {
        self.name.as_ref().is_none_or(|name| name.matches(&metric.name)) && self.labels.fit(metric)
    }

    /// Returns a metric with those of its points that are not after the requested time.
    pub(super) fn with_history(&self, metric: &Metric, points: &[(Time, Number)]) -> api::Metric {
        let points = points.iter().filter(|(time, _)| *time <= self.until);
        let samples =
            points.map(|(time, value)| Sample { time: UnixTime(*time), value: Value(*value) }).collect();
        api::Metric { samples: Some(samples), ..api::Metric::of(metric) }
    }
}

/// Returns a metric with its newest value.
pub(super) fn with_newest(metric: &Metric, value: Number, time: Time) -> api::Metric {
    api::Metric { value: Some(Value(value)), time: Some(UnixTime(time)), ..api::Metric::of(metric) }
}

fn answer(sampler: &Handle, metrics: Vec<api::Metric>) -> SensorMetrics {
    let latest = sampler.latest();
    SensorMetrics {
        metrics,
        time: UnixTime(latest.map(|latest| latest.time()).unwrap_or_default()),
        interval_secs: sampler.rate().period().as_secs_f64(),
        slipped: sampler.counts().slipped_total,
    }
}

fn newest(sampler: &Handle, params: &MetricsParams) -> Result<Vec<api::Metric>, Fault> {
    let wanted = MetricQuery::new(params)?;
    let latest = sampler
        .latest()
        .ok_or_else(|| Fault::unavailable("no sweep has been made yet; ask again in a second"))?;
    let rows = latest.rows().filter(|(metric, _)| wanted.fits(metric)).take(wanted.limit);
    Ok(rows.map(|(metric, value)| with_newest(metric, value, latest.time())).collect())
}

/// The stored samples. Without `since` those of the last minutes; of more than fit into an answer, the newest.
fn stored(history: &history::Handle, params: &MetricsParams) -> Result<Vec<api::Metric>, Fault> {
    let wanted = MetricQuery::new(params)?;
    let reader = reader(history)?;
    let (since, until) = between((params.since, params.until), SPAN_DEFAULT, calendar())?;
    let mut span = until.since(since);
    loop {
        let selection = Selection {
            host: &|_| true,
            metric: &|metric| wanted.fits(metric),
            since: until.minus(span),
            until: until.plus(Duration::from_micros(1)),
        };
        match reader.values(&selection, POINTS_MAX) {
            Ok(found) => {
                let series = found.series.iter().take(wanted.limit);
                return Ok(series.map(|(of, points)| wanted.with_history(&of.metric, points)).collect());
            }
            Err(_) if span > SPAN_MIN => span /= 2,
            Err(error) => return Err(Fault::invalid_params(error.to_string())),
        }
    }
}

/// The history, if it is on.
pub(super) fn opened(history: Option<history::Handle>) -> Result<history::Handle, Fault> {
    history.ok_or_else(|| {
        Fault::unavailable(
            "the history is turned off in the configuration of this sensor ([sensor.history] on)",
        )
    })
}
