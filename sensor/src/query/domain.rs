//! `domain.hosts` and `domain.summary`: the domain as its representative knows it.
//!
//! A domain of one host has itself as representative.

use super::shape;
use crate::representative::summary;
use crate::sample::figures::Figures;
use crate::sample::sampler::Handle;
use log_filters::join::Joiner;
use rpc::method::{Declaration, Method};
use rpc::value::{Name, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wire::id::{DomainName, HostName, SensorKey};
use wire::sample::Semantics;

/// Entries of each top list.
const TOP: usize = 10;

/// What the methods answer from.
pub struct Domain {
    /// The domain.
    pub domain: DomainName,
    /// The representative's host.
    pub host: HostName,
    /// Its key.
    pub sensor: SensorKey,
    /// Where it answers, once that is known.
    pub address: Arc<OnceLock<String>>,
    /// Its figures.
    pub sampler: Handle,
    /// Its calls.
    pub joiner: Arc<Mutex<Joiner>>,
    /// How many events it holds or held.
    pub events: Box<dyn Fn() -> u64 + Send + Sync>,
    /// What is wrong with it, in sentences.
    pub health: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl Domain {
    /// The methods.
    #[must_use]
    pub fn methods(self) -> Vec<Method> {
        let own = Arc::new(self);
        let same = Arc::clone(&own);
        vec![
            Declaration::new("domain.hosts", "the hosts of the domain, with state and load")
                .reading()
                .located()
                .returns("struct", "domain, hosts")
                .handler_now(move |_| Ok(own.hosts())),
            Declaration::new("domain.summary", "the domain in a few figures")
                .reading()
                .details("metrics: those of a host as a whole, over all hosts; sum is there where additive says that the values of hosts may be added (not moments, ages or shares). top: who has most calls waiting or running, and where most run.")
                .located()
                .returns("struct", "domain, representative, hosts, hosts_live, metrics, calls, events, top")
                .handler_now(move |_| Ok(same.summary())),
        ]
    }

    fn hosts(&self) -> Value {
        let running = {
            let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
            joiner.calls().filter(|call| call.state == wire::call::State::Running).count()
        };
        let mut members: Vec<(Name, Value)> = vec![
            ("host".into(), Value::Text(self.host.to_string())),
            ("state".into(), Value::Text("live".into())),
            ("role".into(), Value::Text("representative".into())),
            ("sensor".into(), Value::Text(self.sensor.to_string())),
        ];
        if let Some(address) = self.address.get() {
            members.push(("address".into(), Value::Text(address.clone())));
        }
        if let Some(figures) = self.sampler.figures() {
            show_figures(&mut members, &figures);
        }
        members.push(("events".into(), Value::UInt((self.events)())));
        members.push(("calls_running".into(), Value::UInt(running as u64)));
        members.push(("health".into(), Value::array((self.health)().into_iter().map(Value::Text))));
        Value::object([
            ("domain", Value::Text(self.domain.to_string())),
            ("hosts", Value::Array(vec![Value::Struct(members)])),
        ])
    }

    fn summary(&self) -> Value {
        let calls = {
            let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
            summary::calls(joiner.calls())
        };
        let latest = self.sampler.latest();
        let plain =
            latest.iter().flat_map(|table| table.rows()).filter(|(metric, _)| metric.labels.is_empty());
        let own = plain.map(|(metric, value)| summary::Value {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            semantics: metric.semantics,
            value: value.as_f64(),
        });
        let used = self.sampler.figures().and_then(|figures| figures.cpu_used);
        let used = used.map(|value| summary::Value {
            name: "cpu_used".into(),
            unit: "ratio".into(),
            semantics: Semantics::Gauge,
            value,
        });
        let metrics = summary::metrics(own.chain(used));
        Value::object([
            ("domain", Value::Text(self.domain.to_string())),
            ("representative", Value::Text(self.host.to_string())),
            ("hosts", Value::UInt(1)),
            ("hosts_live", Value::UInt(1)),
            ("metrics", Value::Array(metrics.iter().map(metric_value).collect())),
            ("calls", calls_value(&calls)),
            ("events", Value::UInt((self.events)())),
            (
                "top",
                Value::object([
                    ("users", top_value("user", &calls.users)),
                    ("hosts", top_value("host", &calls.hosts)),
                ]),
            ),
        ])
    }
}

fn show_figures(members: &mut Vec<(Name, Value)>, figures: &Figures) {
    let mut put = |name: &'static str, value: Option<Value>| {
        members.extend(value.map(|value| (Name::Borrowed(name), value)));
    };
    let load = |at: usize| figures.load.map(|load| Value::Double(load[at]));
    put("load1", load(0));
    put("load5", load(1));
    put("load15", load(2));
    put("cpus", Some(Value::UInt(figures.cpus)));
    put("cpu_used", figures.cpu_used.map(Value::Double));
    put("memory_total", figures.memory_total.map(Value::UInt));
    put("memory_used", figures.memory_used.map(Value::UInt));
    put("uptime", figures.uptime.map(Value::Double));
    put("seen", Some(shape::time(figures.time)));
}

fn metric_value(metric: &summary::Metric) -> Value {
    let mut members = vec![
        ("name", Value::Text(metric.name.to_string())),
        ("unit", Value::Text(metric.unit.to_string())),
        ("additive", Value::Bool(metric.is_additive)),
        ("mean", Value::Double(metric.mean())),
        ("min", Value::Double(metric.min)),
        ("max", Value::Double(metric.max)),
        ("count", Value::UInt(metric.count)),
    ];
    members.extend(metric.sum().map(|sum| ("sum", Value::Double(sum))));
    Value::object(members)
}

fn calls_value(calls: &summary::Calls) -> Value {
    let mut members = vec![
        ("waiting", Value::UInt(calls.waiting)),
        ("running", Value::UInt(calls.running)),
        ("ended", Value::UInt(calls.ended)),
    ];
    for outcome in wire::event::Outcome::ALL {
        members.push((outcome.as_str(), Value::UInt(calls.outcomes.get(outcome).copied().unwrap_or(0))));
    }
    Value::object(members)
}

fn top_value(what: &'static str, counts: &BTreeMap<compact_str::CompactString, u64>) -> Value {
    let one = |(name, calls): (compact_str::CompactString, u64)| {
        Value::object([(what, Value::Text(name.to_string())), ("calls", Value::UInt(calls))])
    };
    Value::Array(summary::top(counts, TOP).into_iter().map(one).collect())
}
