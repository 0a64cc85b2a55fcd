//! The recording, repeated.
//!
//! Sweeps are made when they are requested, so that they take no memory.

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// A sweep.
pub(crate) struct Recorded {
    pub(crate) time: Time,
    pub(crate) metrics: Arc<[Arc<Metric>]>,
    pub(crate) values: Vec<Number>,
}

/// The sweeps of so many hours.
pub(crate) struct Recording {
    sweeps: Vec<Recorded>,
    span: Duration,
    gains: HashMap<Metric, (Number, Number)>,
    is_idle: bool,
    pub(crate) len: usize,
}

impl Recording {
    /// Reads a recording; with 0 hours all of it once. Of an idle host, every value is always the first one.
    pub(crate) fn read(path: &Path, hours: f64, is_idle: bool) -> Recording {
        let sweeps = read(path);
        let (first, last) = (&sweeps[0], &sweeps[sweeps.len() - 1]);
        let span = last.time.since(first.time) + Duration::from_secs(1);
        let gains = first
            .metrics
            .iter()
            .zip(&first.values)
            .filter_map(|(metric, from)| {
                let at = last.metrics.iter().position(|other| other == metric)?;
                let is_counter = metric.semantics == Semantics::Counter;
                is_counter.then(|| (Metric::clone(metric), (*from, last.values[at])))
            })
            .collect();
        let len = (hours * 3600.0 / span.as_secs_f64() * sweeps.len() as f64).ceil() as usize;
        let len = if len == 0 { sweeps.len() } else { len };
        Recording { span, gains, is_idle, len, sweeps }
    }

    /// The sweep of this number: counters go on from their last values when the recording starts again.
    pub(crate) fn sweep(&self, number: usize) -> Recorded {
        let time = u32::try_from(number / self.sweeps.len()).expect("a few");
        let sweep = &self.sweeps[number % self.sweeps.len()];
        let gained = |(metric, value): (&Arc<Metric>, &Number)| match (value, self.gains.get(&**metric)) {
            (Number::Whole(value), Some((Number::Whole(from), Number::Whole(to)))) => {
                Number::Whole(value + u64::from(time) * to.saturating_sub(*from))
            }
            (Number::Real(value), Some((from, to))) => {
                let gained = value + f64::from(time) * (to.as_f64() - from.as_f64());
                Number::Real((gained * 100.0).round() / 100.0)
            }
            (value, _) => *value,
        };
        let from = if self.is_idle { &self.sweeps[0] } else { sweep };
        let values = match self.is_idle {
            true => from.values.clone(),
            false => from.metrics.iter().zip(&from.values).map(gained).collect(),
        };
        Recorded { time: sweep.time.plus(self.span * time), metrics: Arc::clone(&from.metrics), values }
    }
}

fn read(path: &Path) -> Vec<Recorded> {
    let text = std::fs::read_to_string(path).expect("a recording");
    let mut metrics: HashMap<u64, Arc<Metric>> = HashMap::new();
    let mut shape: (Vec<u64>, Arc<[Arc<Metric>]>) = (Vec::new(), Arc::new([]));
    let mut sweeps = Vec::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(number) = line["define"].as_u64() {
            metrics.insert(number, Arc::new(metric(&line["metric"])));
            continue;
        }
        let row = line["v"].as_array().expect("values");
        let numbers: Vec<u64> = row.iter().map(|cell| cell[0].as_u64().expect("a number")).collect();
        if shape.0 != numbers {
            shape = (numbers.clone(), numbers.iter().map(|number| Arc::clone(&metrics[number])).collect());
        }
        let values = row.iter().map(|cell| match cell[1].as_u64() {
            Some(whole) => Number::Whole(whole),
            None => Number::Real(cell[1].as_f64().expect("a number")),
        });
        sweeps.push(Recorded {
            time: Time::from_secs_f64(line["t"].as_f64().expect("a time")),
            metrics: Arc::clone(&shape.1),
            values: values.collect(),
        });
    }
    sweeps
}

fn metric(parts: &Value) -> Metric {
    let labels = parts[1].as_object().expect("labels").iter();
    let labels = labels.map(|(name, value)| (name.into(), value.as_str().unwrap_or_default().into()));
    Metric {
        name: parts[0].as_str().expect("a name").into(),
        labels: labels.collect(),
        unit: parts[2].as_str().unwrap_or_default().into(),
        semantics: match parts[3].as_str() {
            Some("counter") => Semantics::Counter,
            Some("state") => Semantics::State,
            _ => Semantics::Gauge,
        },
    }
}
