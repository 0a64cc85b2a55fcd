//! `sensor.metrics`: the host's figures, the newest or the last minutes.
//!
//! Rule: an answer holds a bounded number of points, the newest. Not here: sampling (`sample`).

use super::declared;
use super::shape;
use crate::sample::glob::Glob;
use crate::sample::sampler::Handle;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::Value;
use wire::sample::Metric;
use wire::time::Time;

/// Most points of one answer, all metrics together: about 8 MB of XML.
pub(super) const POINTS_MAX: usize = 100_000;

/// `sensor.metrics`.
#[must_use]
pub fn method(sampler: &Handle) -> Method {
    let own = sampler.clone();
    declared::sensor_metrics().handler_now(move |params| answer(&own, params))
}

pub(super) fn declaration(name: &'static str, summary: &'static str) -> Declaration {
    Declaration::new(name, summary)
        .reading()
        .details("Names and units are node_exporter's. Counters that the kernel counts in whole numbers are whole.")
        .parameter(Parameter::new("name", Type::Text, "only metrics of this name, or of this glob (node_cpu_*)"))
        .parameter(Parameter::new("labels", Type::Struct, "only metrics with these labels"))
        .parameter(Parameter::new("history", Type::Flag, "all stored sweeps instead of the newest; since and until imply it").default(false))
        .parameter(Parameter::new("since", Type::Time, "of the history, sweeps at this time or later"))
        .parameter(Parameter::new("until", Type::Time, "of the history, sweeps at this time or earlier"))
        .parameter(
            Parameter::new("limit", Type::Whole { min: 1, max: 100_000 }, "at most so many metrics").default(10_000),
        )
}

/// Whether sweeps of a time are requested, and not the newest alone: bounds on the time imply the history.
pub(super) fn is_of_history(params: &Params) -> Result<bool, Fault> {
    let is_bounded = params.time("since")?.is_some() || params.time("until")?.is_some();
    Ok(is_bounded || params.flag("history")? == Some(true))
}

pub(super) struct Wanted {
    name: Option<Glob>,
    labels: Vec<(String, String)>,
}

impl Wanted {
    pub(super) fn new(params: &Params) -> Result<Wanted, Fault> {
        let name = params.text("name")?.map(Glob::new).transpose();
        let name = name.map_err(|error| Fault::invalid_params(format!("name: {error}")))?;
        let mut labels = Vec::new();
        if let Some(Value::Struct(members)) = params.value("labels") {
            for (label, value) in members {
                let text = value.as_text().ok_or_else(|| {
                    Fault::invalid_params(format!(
                        "labels: expected a text for {label}, found {}",
                        value.shown()
                    ))
                })?;
                labels.push((label.to_string(), text.to_owned()));
            }
        }
        Ok(Wanted { name, labels })
    }

    pub(super) fn fits(&self, metric: &Metric) -> bool {
        let labelled = |(name, value): &(String, String)| {
            metric.labels.iter().any(|(n, v)| n == name.as_str() && v == value.as_str())
        };
        self.name.as_ref().is_none_or(|name| name.means(&metric.name)) && self.labels.iter().all(labelled)
    }
}

fn answer(sampler: &Handle, params: &Params) -> Result<Value, Fault> {
    let wanted = Wanted::new(params)?;
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let latest = sampler
        .latest()
        .ok_or_else(|| Fault::unavailable("no sweep has been made yet; ask again in a second"))?;
    let metrics: Vec<Value> = if is_of_history(params)? {
        let since = params.time("since")?.unwrap_or(Time::from_micros(i64::MIN));
        let until = params.time("until")?.unwrap_or(Time::from_micros(i64::MAX));
        let (series, _) = sampler.history(|metric| wanted.fits(metric), since, POINTS_MAX);
        let shown = series.iter().take(limit).map(|series| {
            let mut members = shape::metric(&series.metric);
            let samples = series.points.iter().filter(|(time, _)| *time <= until).map(|(time, value)| {
                Value::object([("time", shape::time(*time)), ("value", shape::number(*value))])
            });
            members.push(("samples".into(), Value::Array(samples.collect())));
            Value::Struct(members)
        });
        shown.collect()
    } else {
        let rows = latest.rows().filter(|(metric, _)| wanted.fits(metric)).take(limit);
        let shown = rows.map(|(metric, value)| {
            let mut members = shape::metric(metric);
            members.push(("value".into(), shape::number(value)));
            members.push(("time".into(), shape::time(latest.time())));
            Value::Struct(members)
        });
        shown.collect()
    };
    Ok(Value::object([
        ("metrics", Value::Array(metrics)),
        ("time", shape::time(latest.time())),
        ("interval", Value::Double(sampler.rate().period().as_secs_f64())),
        ("slipped", Value::UInt(sampler.counts().slipped_total)),
    ]))
}
