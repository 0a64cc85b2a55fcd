//! `sensor.metrics`: metrics of the host, the newest or those of the last minutes.
//!
//! Rule: an answer has a bounded number of points, the newest. Not here: sampling (`sample`).

use crate::sample::glob::Glob;
use crate::sample::sampler::Handle;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::UnixTime;
use wire::api::metrics::{
    self as api, Labels, MetricsParams, Sample, SensorMetrics, SensorMetricsParams, Value,
};
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Most points of one answer, over all metrics: about 8 MB of XML.
pub(super) const POINTS_MAX: usize = 100_000;

/// `sensor.metrics`.
#[must_use]
pub fn method(sampler: &Handle) -> Method {
    let own = sampler.clone();
    typed::method(move |_, SensorMetricsParams(params)| std::future::ready(answer(&own, &params)))
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

fn answer(sampler: &Handle, params: &MetricsParams) -> Result<SensorMetrics, Fault> {
    let wanted = MetricQuery::new(params)?;
    let latest = sampler
        .latest()
        .ok_or_else(|| Fault::unavailable("no sweep has been made yet; ask again in a second"))?;
    let metrics = if params.is_of_history() {
        let (series, _) = sampler.history(|metric| wanted.fits(metric), wanted.since, POINTS_MAX);
        let series = series.iter().take(wanted.limit);
        series.map(|series| wanted.with_history(&series.metric, &series.points)).collect()
    } else {
        let rows = latest.rows().filter(|(metric, _)| wanted.fits(metric)).take(wanted.limit);
        rows.map(|(metric, value)| with_newest(metric, value, latest.time())).collect()
    };
    Ok(SensorMetrics {
        metrics,
        time: UnixTime(latest.time()),
        interval_secs: sampler.rate().period().as_secs_f64(),
        slipped: sampler.counts().slipped_total,
    })
}
