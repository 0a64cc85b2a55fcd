//! `domain.hosts`, `domain.summary` and `domain.calls`: the domain as its representative knows it.
//!
//! Rule: only the representative answers, from members' reports. In a domain of one host that is the host
//! itself.
//! Not here: `domain.events` ([`super::domain_events`]), `domain.metrics` ([`super::domain_metrics`]).

use super::calls::{self, KnownCalls};
use super::job_index;
use super::jobs::KnownJobs;
use crate::findings::config::Thresholds;
use crate::representative::hosts::{Liveness, Role, Unreported};
use crate::representative::overview::Aggregate;
use crate::representative::service::{Handle, NotServing};
use crate::representative::summary;
use crate::representative::view::{HostRow, Summary};
use crate::sample::ticker::locked;
use log_filters::join::Joiner;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::watch;
use wire::api::UnixTime;
use wire::api::domain::{
    self as api, CallCounts, Host, HostCalls, HostRole, HostState, HostValue, Hosts, HostsParams,
    MetricSummary, SummaryParams, Top, UserCalls,
};
use wire::event::Outcome;
use wire::id::{DomainName, HostName};
use wire::time::Time;

/// Number of entries in each top list.
const TOP: usize = 10;

/// Data that the methods read.
#[derive(Clone)]
pub struct Domain {
    pub domain: DomainName,
    /// Host of this sensor: the representative's host where it answers.
    pub host: HostName,
    /// Address at which this sensor answers, once it is known.
    pub address: Arc<OnceLock<String>>,
    /// Service with members' reports.
    pub service: Handle,
    /// Set for a sensor that is the only one of its domain: it does not report its own events, and reads them
    /// here.
    pub own: Option<OwnLogs>,
    /// Calls of the domain.
    pub calls: KnownCalls,
    /// Thresholds of findings about jobs.
    pub thresholds: Thresholds,
}

/// Events and calls of a sensor's own logs.
#[derive(Clone)]
pub struct OwnLogs {
    pub calls: Arc<Mutex<Joiner>>,
    /// Number that its next event gets.
    pub next: watch::Receiver<u64>,
}

impl OwnLogs {
    fn events(&self) -> u64 {
        *self.next.borrow()
    }

    fn summary(&self) -> summary::CallCounts {
        summary::calls(locked(&self.calls).calls())
    }
}

/// Converts the error to a fault.
pub(super) fn absent(absent: NotServing) -> Fault {
    Fault::unavailable(absent.to_string())
}

/// Returns the hosts that are silent and have not reported to this representative: events that they reported
/// to the previous one may be missing. Returns an empty list if this sensor no longer represents the domain.
pub(super) async fn silent_hosts(service: &Handle) -> Vec<String> {
    let asked = service.ask(|domain, _| {
        let away = domain.unreported().iter().filter(|gone| gone.liveness == Liveness::Silent);
        away.map(|gone| gone.host.to_string()).collect()
    });
    asked.await.unwrap_or_default()
}

impl Domain {
    /// Creates the methods.
    #[must_use]
    pub fn methods(self) -> Vec<Method> {
        let (of_hosts, of_summary) = (self.clone(), self.clone());
        vec![
            typed::method(move |_, HostsParams {}| {
                let own = of_hosts.clone();
                async move { own.hosts().await }
            }),
            typed::method(move |_, SummaryParams {}| {
                let own = of_summary.clone();
                async move { own.summary().await }
            }),
            calls::method_of_domain(&self.calls),
            self.jobs().search_method(),
            self.jobs().get_method(),
            self.jobs().report_method(),
            self.jobs().import_method(),
            job_index::method(self.calls.clone()),
        ]
    }

    fn jobs(&self) -> KnownJobs {
        KnownJobs { calls: self.calls.clone(), domain: self.domain.clone(), thresholds: self.thresholds }
    }

    async fn hosts(&self) -> Result<Hosts, Fault> {
        let asked = self.service.ask(|domain, now| {
            let shown = |host: &Unreported| unreported_row(host, domain.copied_until(&host.host), now.wall);
            (domain.hosts(now.moment), domain.unreported().iter().map(shown).collect::<Vec<_>>())
        });
        let (mut rows, gone) = asked.await.map_err(absent)?;
        if let (Some(own), Some(row)) = (&self.own, rows.iter_mut().find(|row| row.host == self.host)) {
            (row.events_next, row.events_behind) = (own.events(), 0);
            row.calls_running = own.summary().hosts.get(row.host.as_str()).copied().unwrap_or(0);
        }
        let hosts = rows.iter().map(|row| self.row(row)).chain(gone).collect();
        Ok(Hosts { domain: self.domain.to_string(), hosts })
    }

    fn row(&self, row: &HostRow) -> Host {
        let is_own = row.host == self.host;
        let state = &row.state;
        // Nothing is known before its first report of its state.
        let is_known = state.time != Time::default();
        Host {
            host: row.host.to_string(),
            state: host_state(row.liveness),
            // The election may not have set its role yet; answering here means that it is the representative.
            role: if is_own { HostRole::Representative } else { host_role(row.role) },
            sensor: Some(row.sensor.to_string()),
            version: Some(row.program.to_string()),
            started: Some(row.started.into()),
            age_secs: row.age.as_secs_f64(),
            address: self.address.get().filter(|_| is_own).cloned(),
            load1: state.load.map(|load| load[0]),
            load5: state.load.map(|load| load[1]),
            load15: state.load.map(|load| load[2]),
            cpus: Some(state.cpus).filter(|cpus| *cpus > 0),
            cpu_used: state.cpu_used,
            memory_total_bytes: state.memory_total,
            memory_used_bytes: state.memory_used,
            uptime_secs: state.uptime,
            lag_bytes: is_known.then_some(state.lag_bytes),
            seen: is_known.then(|| state.time.into()),
            events: Some(row.events_next),
            events_behind: Some(row.events_behind),
            events_lost: Some(row.events_lost),
            events_refused: Some(row.events_refused),
            samples: Some(row.samples),
            samples_thinned: Some(row.samples_thinned),
            copied_until: row.copied_until.map(UnixTime),
            calls_running: Some(row.calls_running),
            archive: Some(row.is_archive),
            health: Some(state.health.iter().map(ToString::to_string).collect()),
        }
    }

    async fn summary(&self) -> Result<api::Summary, Fault> {
        let asked = self.service.ask(|domain, now| domain.summary(now.moment));
        let Summary { hosts, metrics, mut calls, mut events, events_lost, .. } =
            asked.await.map_err(absent)?;
        if let Some(own) = &self.own {
            (calls, events) = (own.summary(), own.events());
        }
        let users = summary::top(&calls.users, TOP).into_iter();
        let busiest = summary::top(&calls.hosts, TOP).into_iter();
        Ok(api::Summary {
            domain: self.domain.to_string(),
            representative: self.host.to_string(),
            hosts: hosts.iter().sum(),
            hosts_live: hosts[0],
            partial: self.service.is_partial(),
            metrics: metrics.into_iter().map(metric_summary).collect(),
            calls: call_counts(&calls),
            events,
            events_lost,
            top: Top {
                users: users.map(|(user, calls)| UserCalls { user: user.to_string(), calls }).collect(),
                hosts: busiest.map(|(host, calls)| HostCalls { host: host.to_string(), calls }).collect(),
            },
            unheard: silent_hosts(&self.service).await,
        })
    }
}

fn host_state(liveness: Liveness) -> HostState {
    match liveness {
        Liveness::Alive => HostState::Live,
        Liveness::Silent => HostState::LastSeen,
        Liveness::Left => HostState::Left,
    }
}

fn host_role(role: Role) -> HostRole {
    match role {
        Role::Representative => HostRole::Representative,
        Role::Standby => HostRole::Standby,
        Role::Member => HostRole::Member,
    }
}

/// Row of a host that has not reported to this representative: only what the election knows of it.
fn unreported_row(host: &Unreported, copied_until: Option<Time>, now: Time) -> Host {
    Host {
        copied_until: copied_until.map(UnixTime),
        host: host.host.to_string(),
        state: host_state(host.liveness),
        role: host_role(host.role),
        age_secs: now.since(host.heard).as_secs_f64(),
        ..Host::default()
    }
}

fn metric_summary(metric: Aggregate) -> MetricSummary {
    let top = metric.top.into_iter().map(|(host, value)| HostValue { host: host.to_string(), value });
    MetricSummary {
        name: metric.name.to_string(),
        unit: metric.unit.to_string(),
        additive: metric.sum.is_some(),
        mean: metric.mean,
        min: metric.min,
        max: metric.max,
        count: metric.count,
        top: top.collect(),
        sum: metric.sum,
    }
}

fn call_counts(calls: &summary::CallCounts) -> CallCounts {
    let ended = |outcome| calls.outcomes.get(&outcome).copied().unwrap_or(0);
    CallCounts {
        waiting: calls.waiting,
        running: calls.running,
        ended: calls.ended,
        ok: ended(Outcome::Ok),
        failed: ended(Outcome::Failed),
        cancelled: ended(Outcome::Cancelled),
        timeout: ended(Outcome::Timeout),
        node_fail: ended(Outcome::NodeFail),
        finished: ended(Outcome::Finished),
    }
}
