//! `domain.hosts`, `domain.summary` and `domain.calls`: the domain as its representative knows it.
//!
//! Rule: only the representative answers, from what members reported; of a domain of one host that is itself.
//! Not here: `domain.events` ([`super::domain_events`]), `domain.metrics` ([`super::domain_metrics`]).

use super::{calls, declared, shape};
use crate::representative::hosts::{Role, Standing, Unreported};
use crate::representative::office::{Absent, Handle};
use crate::representative::overview::Overall;
use crate::representative::summary;
use crate::representative::view::{HostRow, Summary};
use log_filters::join::Joiner;
use rpc::fault::Fault;
use rpc::method::Method;
use rpc::value::{Name, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::watch;
use wire::id::{DomainName, HostName};
use wire::time::Time;

/// Entries of each top list.
const TOP: usize = 10;

/// What the methods answer from.
#[derive(Clone)]
pub struct Domain {
    /// The domain.
    pub domain: DomainName,
    /// This sensor's host: the representative's, where it answers.
    pub host: HostName,
    /// Where it answers, once that is known.
    pub address: Arc<OnceLock<String>>,
    /// What members reported.
    pub office: Handle,
    /// Of a sensor that is its whole domain: what its logs told is not reported, but known.
    pub own: Option<OwnLogs>,
}

/// What a sensor's own logs told.
#[derive(Clone)]
pub struct OwnLogs {
    /// Its calls.
    pub calls: Arc<Mutex<Joiner>>,
    /// The number that its next event gets.
    pub next: watch::Receiver<u64>,
}

impl OwnLogs {
    fn events(&self) -> u64 {
        *self.next.borrow()
    }

    fn summary(&self) -> summary::Calls {
        summary::calls(self.calls.lock().unwrap_or_else(PoisonError::into_inner).calls())
    }
}

/// A fault that says where to ask.
pub(super) fn absent(absent: Absent) -> Fault {
    Fault::unavailable(absent.to_string())
}

/// The answer, with the hosts that are away and told this representative nothing: what they told the one before may be missing.
/// Who represents the domain no more has answered all the same.
pub(super) async fn with_unheard(office: &Handle, answer: Value) -> Value {
    let unheard = unheard(office).await;
    let Value::Struct(mut members) = answer else { return answer };
    if !unheard.is_empty() {
        members.push(("unheard".into(), Value::array(unheard)));
    }
    Value::Struct(members)
}

/// These hosts.
pub(super) async fn unheard(office: &Handle) -> Vec<String> {
    let asked = office.ask(|domain, _| {
        let away = domain.unreported().iter().filter(|gone| gone.standing == Standing::Silent);
        away.map(|gone| gone.host.to_string()).collect()
    });
    asked.await.unwrap_or_default()
}

impl Domain {
    /// The methods.
    #[must_use]
    pub fn methods(self) -> Vec<Method> {
        let (of_hosts, of_summary, of_calls) = (self.clone(), self.clone(), self.office.clone());
        let calls = match &self.own {
            Some(own) => calls::answering(declared::domain_calls(), &own.calls),
            None => declared::domain_calls().handler(move |params| {
                let office = of_calls.clone();
                async move {
                    let wanted = params.clone();
                    let asked = office.ask(move |domain, _| calls::found(domain.calls(), &wanted)).await;
                    Ok(with_unheard(&office, calls::shown(asked.map_err(absent)??, &params)?).await)
                }
            }),
        };
        vec![
            declared::domain_hosts().handler(move |_| {
                let own = of_hosts.clone();
                async move { own.hosts().await }
            }),
            declared::domain_summary().handler(move |_| {
                let own = of_summary.clone();
                async move { own.summary().await }
            }),
            calls,
        ]
    }

    async fn hosts(&self) -> Result<Value, Fault> {
        let asked = self.office.ask(|domain, now| {
            let shown = |host: &Unreported| unreported_row(host, now.wall);
            (domain.hosts(now.moment), domain.unreported().iter().map(shown).collect::<Vec<_>>())
        });
        let (mut rows, gone) = asked.await.map_err(absent)?;
        if let (Some(own), Some(row)) = (&self.own, rows.iter_mut().find(|row| row.host == self.host)) {
            (row.events_next, row.events_behind) = (own.events(), 0);
            row.calls_running = own.summary().hosts.get(row.host.as_str()).copied().unwrap_or(0);
        }
        Ok(Value::object([
            ("domain", Value::Text(self.domain.to_string())),
            ("hosts", Value::Array(rows.iter().map(|row| self.row(row)).chain(gone).collect())),
        ]))
    }

    fn row(&self, row: &HostRow) -> Value {
        let is_own = row.host == self.host;
        // It may not have heard yet that it represents the domain; that it answers says so.
        let role = if is_own { Role::Representative } else { row.role };
        let mut members: Vec<(Name, Value)> = vec![
            ("host".into(), Value::Text(row.host.to_string())),
            ("state".into(), state(row.standing)),
            ("role".into(), Value::Text(role.as_str().into())),
            ("sensor".into(), Value::Text(row.sensor.to_string())),
            ("version".into(), Value::Text(row.program.to_string())),
            ("started".into(), shape::time(row.started)),
            ("age".into(), Value::Double(row.age.as_secs_f64())),
        ];
        if let Some(address) = self.address.get().filter(|_| is_own) {
            members.push(("address".into(), Value::Text(address.clone())));
        }
        show_state(&mut members, row);
        members.extend([
            ("events".into(), Value::UInt(row.events_next)),
            ("events_behind".into(), Value::UInt(row.events_behind)),
            ("events_lost".into(), Value::UInt(row.events_lost)),
            ("events_refused".into(), Value::UInt(row.events_refused)),
            ("samples".into(), Value::UInt(row.samples)),
            ("samples_thinned".into(), Value::UInt(row.samples_thinned)),
            ("calls_running".into(), Value::UInt(row.calls_running)),
            ("health".into(), Value::array(row.state.health.iter().map(|one| Value::Text(one.to_string())))),
        ]);
        Value::Struct(members)
    }

    async fn summary(&self) -> Result<Value, Fault> {
        let asked = self.office.ask(|domain, now| domain.summary(now.moment));
        let Summary { hosts, metrics, mut calls, mut events, events_lost, .. } =
            asked.await.map_err(absent)?;
        if let Some(own) = &self.own {
            (calls, events) = (own.summary(), own.events());
        }
        let answer = Value::object([
            ("domain", Value::Text(self.domain.to_string())),
            ("representative", Value::Text(self.host.to_string())),
            ("hosts", Value::UInt(hosts.iter().sum())),
            ("hosts_live", Value::UInt(hosts[0])),
            ("partial", Value::Bool(self.office.is_partial())),
            ("metrics", Value::Array(metrics.iter().map(metric_value).collect())),
            ("calls", calls_value(&calls)),
            ("events", Value::UInt(events)),
            ("events_lost", Value::UInt(events_lost)),
            (
                "top",
                Value::object([
                    ("users", top_value("user", &calls.users)),
                    ("hosts", top_value("host", &calls.hosts)),
                ]),
            ),
        ]);
        Ok(with_unheard(&self.office, answer).await)
    }
}

fn state(standing: Standing) -> Value {
    let word = match standing {
        Standing::Alive => "live",
        Standing::Silent => "last_seen",
        Standing::Left => "left",
    };
    Value::Text(word.into())
}

/// A host that has not reported to this representative: all that the election knows of it.
fn unreported_row(host: &Unreported, now: Time) -> Value {
    Value::object([
        ("host", Value::Text(host.host.to_string())),
        ("state", state(host.standing)),
        ("role", Value::Text(host.role.as_str().into())),
        ("age", Value::Double(now.since(host.heard).as_secs_f64())),
    ])
}

fn show_state(members: &mut Vec<(Name, Value)>, row: &HostRow) {
    let state = &row.state;
    let mut put = |name: &'static str, value: Option<Value>| {
        members.extend(value.map(|value| (Name::Borrowed(name), value)));
    };
    // Before its first word of itself nothing is known.
    let is_told = state.time != Time::default();
    let load = |at: usize| state.load.map(|load| Value::Double(load[at]));
    put("load1", load(0));
    put("load5", load(1));
    put("load15", load(2));
    put("cpus", (state.cpus > 0).then_some(Value::UInt(state.cpus)));
    put("cpu_used", state.cpu_used.map(Value::Double));
    put("memory_total", state.memory_total.map(Value::UInt));
    put("memory_used", state.memory_used.map(Value::UInt));
    put("uptime", state.uptime.map(Value::Double));
    put("lag", is_told.then_some(Value::UInt(state.lag_bytes)));
    put("seen", is_told.then(|| shape::time(state.time)));
}

fn metric_value(metric: &Overall) -> Value {
    let top = metric.top.iter().map(|(host, value)| {
        Value::object([("host", Value::Text(host.to_string())), ("value", Value::Double(*value))])
    });
    let mut members = vec![
        ("name", Value::Text(metric.name.to_string())),
        ("unit", Value::Text(metric.unit.to_string())),
        ("additive", Value::Bool(metric.sum.is_some())),
        ("mean", Value::Double(metric.mean)),
        ("min", Value::Double(metric.min)),
        ("max", Value::Double(metric.max)),
        ("count", Value::UInt(metric.count)),
        ("top", Value::Array(top.collect())),
    ];
    members.extend(metric.sum.map(|sum| ("sum", Value::Double(sum))));
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
