//! Methods about metrics: `sensor.metrics`, `domain.metrics`.
//!
//! Pure. Not here: metrics as sensors sample and report them ([`crate::sample`]).

use super::{Effect, Named, Renamed, Request, Subject, UnixTime};
use crate::sample::{self, Number};
use compact_str::CompactString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Metrics of an answer by default.
const LIMIT_DEFAULT: u64 = 10_000;

/// Filters for metrics, and the samples to return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MetricsParams {
    /// Only metrics of this name, or that match this glob (`node_cpu_*`).
    pub name: Option<String>,
    /// Only metrics with all of these labels.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
    /// Return samples as they were stored instead of the newest; `since` and `until` imply it. Of a host those of the
    /// last five minutes unless `since` is given, and the newest 100000 at most.
    pub history: bool,
    /// Only samples at this time or later.
    pub since: Option<UnixTime>,
    /// Only samples at this time or earlier.
    pub until: Option<UnixTime>,
    /// Maximum number of metrics.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u64,
}

impl MetricsParams {
    /// Whether the history is requested; bounds on the time imply it.
    #[must_use]
    pub fn is_of_history(&self) -> bool {
        self.history || self.since.is_some() || self.until.is_some()
    }
}

impl Default for MetricsParams {
    fn default() -> MetricsParams {
        MetricsParams {
            name: None,
            labels: Labels::default(),
            history: false,
            since: None,
            until: None,
            limit: LIMIT_DEFAULT,
        }
    }
}

/// List the metrics of this sensor's host.
///
/// Names and units are those of node_exporter. Counters that the kernel counts in integers are integers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SensorMetricsParams(pub MetricsParams);

impl Request for SensorMetricsParams {
    const METHOD: &'static str = "sensor.metrics";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = &[("interval_secs", "interval")];
    type Answer = SensorMetrics;
}

/// List the metrics of the domain's hosts.
///
/// Names and units are those of node_exporter. Counters that the kernel counts in integers are integers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainMetricsParams {
    /// Filters for metrics, and the samples to return.
    #[serde(flatten)]
    pub metrics: MetricsParams,
    /// Only metrics of this host.
    pub host: Option<String>,
}

impl Request for DomainMetricsParams {
    const METHOD: &'static str = "domain.metrics";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = DomainMetrics;
}

/// Metrics of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SensorMetrics {
    /// Matching metrics.
    pub metrics: Vec<Metric>,
    /// Time of the newest sweep.
    pub time: UnixTime,
    /// Time between two sweeps, in seconds.
    pub interval_secs: f64,
    /// Number of sweeps skipped since the sensor's start because an earlier one took too long.
    pub slipped: u64,
}

/// Metrics of a domain's hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainMetrics {
    /// Matching metrics.
    pub metrics: Vec<Metric>,
    /// Whether the answer is complete. False if more metrics match than `limit`, or if a history exceeds
    /// 100000 samples.
    pub complete: bool,
    /// Time of the newest sample. Absent for a history, and if no metric matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<UnixTime>,
}

/// Metric with its newest value, or with its samples if the history is requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metric {
    /// Name as in node_exporter, such as `node_cpu_seconds_total`.
    #[schemars(with = "String")]
    pub name: CompactString,
    /// Labels that distinguish metrics of the same name, such as `cpu` = `0`, `mode` = `user`.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
    /// Unit of the value: `seconds`, `bytes`, `ratio`, or empty for a plain count.
    #[schemars(with = "String")]
    pub unit: CompactString,
    /// Type of the metric.
    pub semantics: Semantics,
    /// Host of the metric. Present only in answers about a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub host: Option<CompactString>,
    /// Newest value. Absent for a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Time of the newest value. Absent for a history and in samples of a subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<UnixTime>,
    /// Samples, oldest first. Present only for a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<Sample>>,
}

impl Metric {
    /// Description of the metric, without values.
    #[must_use]
    pub fn of(metric: &sample::Metric) -> Metric {
        Metric {
            name: metric.name.clone(),
            labels: Named(metric.labels.clone()),
            unit: metric.unit.clone(),
            semantics: metric.semantics.into(),
            ..Metric::default()
        }
    }
}

/// Value at a point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MetricSample")]
pub struct Sample {
    /// Time of the sample.
    pub time: UnixTime,
    /// Value of the sample.
    pub value: Value,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// Counter: only increases, except after a restart; use its rate.
    Counter,
    /// Gauge: increases and decreases.
    #[default]
    Gauge,
    /// State: one of a few values, as a number.
    State,
    /// Type that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl From<sample::Semantics> for Semantics {
    fn from(semantics: sample::Semantics) -> Semantics {
        match semantics {
            sample::Semantics::Counter => Semantics::Counter,
            sample::Semantics::Gauge => Semantics::Gauge,
            sample::Semantics::State => Semantics::State,
        }
    }
}

/// Value of a metric. Whole numbers are written without a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value(pub Number);

impl Default for Value {
    fn default() -> Value {
        Value(Number::Whole(0))
    }
}

impl Value {
    /// The nearest double.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0.as_f64()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Number::Whole(whole) => serializer.serialize_u64(whole),
            Number::Real(real) => serializer.serialize_f64(real),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: Error>(self, whole: u64) -> Result<Value, E> {
                Ok(Value(Number::Whole(whole)))
            }

            fn visit_i64<E: Error>(self, whole: i64) -> Result<Value, E> {
                #[allow(clippy::cast_precision_loss)]
                let real = || Number::Real(whole as f64);
                Ok(Value(u64::try_from(whole).map_or_else(|_| real(), Number::Whole)))
            }

            fn visit_f64<E: Error>(self, real: f64) -> Result<Value, E> {
                Ok(Value(Number::Real(real)))
            }

            // Numbers that JSON cannot represent, and whole numbers where `big_integers` is `text`.
            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                let whole = text.parse().map(Number::Whole);
                let number = whole.or_else(|_| text.parse().map(Number::Real));
                number.map(Value).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Reading)
    }
}

impl JsonSchema for Value {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// Labels that distinguish metrics of the same name.
pub type Labels = Named<CompactString>;

impl Labels {
    /// Whether `metric` has all of these.
    #[must_use]
    pub fn fit(&self, metric: &sample::Metric) -> bool {
        self.0.iter().all(|wanted| metric.labels.contains(wanted))
    }
}

/// `name=value` of each, in order.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if nth == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(number: serde_json::Value) -> Option<Number> {
        serde_json::from_value::<Value>(number).ok().map(|value| value.0)
    }

    #[test]
    fn values_are_read_in_every_form_in_which_they_are_answered() {
        assert_eq!(value(json!(u64::MAX)), Some(Number::Whole(u64::MAX)));
        assert_eq!(value(json!("18446744073709551615")), Some(Number::Whole(u64::MAX)));
        assert_eq!(value(json!(0.5)), Some(Number::Real(0.5)));
        assert_eq!(value(json!(-3)), Some(Number::Real(-3.0)));
        assert!(matches!(value(json!("NaN")), Some(Number::Real(real)) if real.is_nan()));
        assert_eq!((value(json!("much")), value(json!(null))), (None, None));
    }

    #[test]
    fn a_metric_is_what_it_was_after_a_turn_through_json() {
        let of = sample::Metric {
            name: "node_disk_read_bytes_total".into(),
            labels: vec![("device".into(), "sda".into()), ("b".into(), "a\"".into())],
            unit: "bytes".into(),
            semantics: sample::Semantics::Counter,
        };
        let metric = Metric { value: Some(Value(Number::Whole(1 << 60))), ..Metric::of(&of) };
        let text = serde_json::to_string(&metric).expect("it is written");
        assert_eq!(serde_json::from_str::<Metric>(&text).expect("it is read"), metric);
        assert!(text.contains(r#""labels":{"device":"sda","b":"a\""},"unit":"bytes","semantics":"counter","value":1152921504606846976}"#));
        assert_eq!(metric.labels.to_string(), "device=sda b=a\"");
        assert!(Named(vec![("device".into(), "sda".into())]).fit(&of) && Labels::default().fit(&of));
        assert!(!Named(vec![("device".into(), "sdb".into())]).fit(&of));
    }

    #[test]
    fn a_host_is_named_beside_the_other_parameters() {
        let params: DomainMetricsParams =
            serde_json::from_value(json!({"host": "wn01", "labels": {"cpu": "0"}, "since": 5}))
                .expect("they fit");
        assert_eq!((params.host.as_deref(), params.metrics.limit), (Some("wn01"), LIMIT_DEFAULT));
        assert!(params.metrics.is_of_history() && !MetricsParams::default().is_of_history());
    }
}
