//! Fields of a metric of a host, for filters, conditions and scripts.
//!
//! Pure. Rule: names and units are those of `sensor.metrics`. Not here: finding a field by name (`fields`).

use super::{Number, Subject, Text};
use std::borrow::Cow;
use wire::channel::stream::Reading;
use wire::sample::{self, Metric, Semantics};

/// The metrics of a host.
#[derive(Debug)]
pub struct Metrics;

/// A metric as a filter sees it.
#[derive(Clone, Copy, Debug)]
pub struct MetricView<'a> {
    pub metric: &'a Metric,
    /// Its value at the sweep.
    pub value: sample::Number,
}

impl Subject for Metrics {
    const ONE: &'static str = "a metric";
    const HAS_PAST: bool = true;
    const HAS_FAMILY: bool = false;
    type Record = Reading;
    type View<'a> = MetricView<'a>;
    type Context = ();

    fn numbers() -> &'static [Number<Metrics>] {
        &NUMBERS
    }

    fn texts() -> &'static [Text<Metrics>] {
        &TEXTS
    }

    fn view(record: &Reading) -> MetricView<'_> {
        MetricView { metric: &record.metric, value: record.value }
    }
}

pub static NUMBERS: [Number<Metrics>; 1] = [Number {
    name: "value",
    unit: "",
    help: "how much, in the metric's own unit",
    get: |seen| Some(seen.value.as_f64()),
}];

pub static TEXTS: [Text<Metrics>; 4] = [
    Text {
        name: "name",
        help: "such as node_load1",
        words: &[],
        get: |seen| Some(seen.metric.name.as_str().into()),
    },
    Text {
        name: "labels",
        help: "what sets it apart from others of its name: cpu=0,mode=user",
        words: &[],
        get: |seen| Some(labels(seen.metric)),
    },
    Text {
        name: "unit",
        help: "seconds, bytes ...; empty for a plain count",
        words: &[],
        get: |seen| Some(seen.metric.unit.as_str().into()),
    },
    Text {
        name: "semantics",
        help: "how to read it: counter, gauge or state",
        words: &["counter", "gauge", "state"],
        get: |seen| Some(word(seen.metric.semantics).into()),
    },
];

fn word(semantics: Semantics) -> &'static str {
    semantics.as_str()
}

/// Labels joined with commas, sorted by name as in the metric.
fn labels(metric: &Metric) -> Cow<'_, str> {
    let pairs = metric.labels.iter().map(|(name, value)| format!("{name}={value}"));
    Cow::Owned(pairs.collect::<Vec<_>>().join(","))
}
