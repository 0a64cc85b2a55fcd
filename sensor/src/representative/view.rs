//! Results of `domain.*` queries as plain values: hosts, summary, metrics and calls. Events are read through
//! a [`Feed`].
//!
//! Pure. Not here: the encoding of results for clients (`crate::query`).

use super::cursor::Feed;
use super::domain::Domain;
use super::hosts::{Liveness, Role, Unreported};
use super::overview::{Aggregate, METRICS_OF_HOST_MAX, Overview};
use super::summary;
use crate::sample::series::{Completeness, Series};
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::sync::Arc;
use std::time::Duration;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::HostState;
use wire::sample::{Metric, Number, Semantics};
use wire::time::{Moment, Time};

/// Row of the table of hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    pub host: HostName,
    /// Whether it is alive, silent or has left.
    pub liveness: Liveness,
    pub role: Role,
    pub is_archive: bool,
    pub sensor: SensorKey,
    /// Key of its daemon.
    pub peer: PeerKey,
    pub program: CompactString,
    /// When its sensor started, by the host's clock.
    pub started: Time,
    /// Time since its last report.
    pub age: Duration,
    /// By how much the host's clock was ahead of the representative's at its last hello, in microseconds.
    pub clock_ahead_micros: i64,
    /// State that it reported last.
    pub state: HostState,
    /// Number of the first of its events that is not stored here.
    pub events_next: u64,
    /// Number of its events that are in its journal and not stored here yet.
    pub events_behind: u64,
    /// Number of its events that were lost.
    pub events_lost: u64,
    /// Number of its events that were refused because it may not report for the host that they name.
    pub events_refused: u64,
    /// Number of samples received.
    pub samples: u64,
    /// Number of samples that its sensor took and did not send.
    pub samples_thinned: u64,
    /// Start of its last minute that is copied for the past of the domain.
    pub copied_until: Option<Time>,
    /// Number of calls running on it.
    pub calls_running: u64,
}

/// Summary of the domain in a few numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of hosts that are alive, silent and left, in this order.
    pub hosts: [u64; 3],
    /// Metrics of the hosts as a whole, over the hosts that are alive.
    pub metrics: Vec<Aggregate>,
    /// Number of values left out of `metrics` because they are not plausible numbers.
    pub absurd: u64,
    /// Number of calls by state and outcome, by user and by host.
    pub calls: summary::CallCounts,
    /// Number of events stored since the store was created.
    pub events: u64,
    /// Number of events of all members that were lost before they were stored here.
    pub events_lost: u64,
}

/// Newest sample of one metric of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct NewestValue {
    pub host: HostName,
    pub metric: Arc<Metric>,
    pub value: Number,
    /// When it was taken, by the host's clock.
    pub time: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HostSeries {
    pub host: HostName,
    /// One for each metric.
    pub series: Vec<Series>,
}

impl Domain {
    /// Returns the table of hosts, sorted by name.
    #[must_use]
    pub fn hosts(&self, now: Moment) -> Vec<HostRow> {
        let running = summary::calls(self.joiner.calls()).hosts;
        let members = &self.store.ledger().members;
        let row = |(name, host): (&HostName, &super::hosts::Host)| {
            let member = members.get(&host.sensor);
            let next = member.map_or(0, |member| member.next);
            HostRow {
                host: name.clone(),
                liveness: host.liveness(now),
                role: host.role,
                is_archive: host.is_archive,
                sensor: host.sensor,
                peer: host.peer,
                program: host.program.clone(),
                started: host.started,
                age: now.since(host.heard),
                clock_ahead_micros: host.clock_ahead_micros,
                state: host.state.clone(),
                events_next: next,
                events_behind: host.state.events_next.saturating_sub(next),
                events_lost: member.map_or(0, |member| member.lost),
                events_refused: member.map_or(0, |member| member.refused),
                samples: host.samples,
                samples_thinned: host.thinned,
                copied_until: self.copied_until(name),
                calls_running: running.get(name.as_str()).copied().unwrap_or(0),
            }
        };
        self.hosts.iter().map(row).collect()
    }

    /// Returns the hosts that have not reported to this representative, sorted by name: hosts that went
    /// before it took over, and hosts that are about to report.
    #[must_use]
    pub fn unreported(&self) -> &[Unreported] {
        self.hosts.unreported()
    }

    /// Returns the summary of the domain.
    #[must_use]
    pub fn summary(&self, now: Moment) -> Summary {
        let mut hosts = [0; 3];
        let column = |liveness: Liveness| match liveness {
            Liveness::Alive => 0,
            Liveness::Silent => 1,
            Liveness::Left => 2,
        };
        self.hosts.unreported().iter().for_each(|host| hosts[column(host.liveness)] += 1);
        let mut overview = Overview::default();
        for (name, host) in self.hosts.iter() {
            let liveness = host.liveness(now);
            hosts[column(liveness)] += 1;
            if liveness != Liveness::Alive {
                continue;
            }
            add_state(&mut overview, name, &host.state);
            let Some((shape, decoder)) = host.latest() else { continue };
            let plain = shape.iter().zip(decoder.values()).filter(|(metric, _)| metric.labels.is_empty());
            for (metric, value) in plain.take(METRICS_OF_HOST_MAX) {
                overview.add(name, metric, value.as_f64());
            }
        }
        let lost = |sum: u64, member: &super::store::frame::Member| sum.saturating_add(member.lost);
        Summary {
            hosts,
            absurd: overview.absurd(),
            metrics: overview.finish(),
            calls: summary::calls(self.joiner.calls()),
            events: *self.feed.reader().next().borrow(),
            events_lost: self.store.ledger().members.values().fold(0, lost),
        }
    }

    /// Returns the series of the matching hosts and metrics since `since`, at most `points_max` points in
    /// all.
    pub fn metrics(
        &self,
        wanted_host: impl Fn(&HostName) -> bool,
        wanted: impl Fn(&Metric) -> bool,
        since: Time,
        points_max: usize,
    ) -> (Vec<HostSeries>, Completeness) {
        let (mut all, mut left, mut completeness) = (Vec::new(), points_max, Completeness::Whole);
        for (name, host) in self.hosts.iter().filter(|(name, _)| wanted_host(name)) {
            let (series, is_whole) = host.recent().series(&wanted, since, left);
            left -= series.iter().map(|series| series.points.len()).sum::<usize>().min(left);
            if is_whole == Completeness::Cut {
                completeness = Completeness::Cut;
            }
            if !series.is_empty() {
                all.push(HostSeries { host: name.clone(), series });
            }
        }
        (all, completeness)
    }

    /// Returns the newest samples of the matching hosts and metrics, at most `most`.
    pub fn newest(
        &self,
        wanted_host: impl Fn(&HostName) -> bool,
        wanted: impl Fn(&Metric) -> bool,
        most: usize,
    ) -> Vec<NewestValue> {
        let hosts = self.hosts.iter().filter(|(name, _)| wanted_host(name));
        let all = hosts.flat_map(|(name, host)| {
            let rows =
                host.latest().into_iter().flat_map(|(shape, decoder)| shape.iter().zip(decoder.values()));
            rows.map(move |(metric, value)| (name, metric, value, host.swept))
        });
        let newest = |(host, metric, value, time): (&HostName, &Arc<Metric>, Number, Time)| NewestValue {
            host: host.clone(),
            metric: Arc::clone(metric),
            value,
            time,
        };
        all.filter(|(_, metric, ..)| wanted(metric)).take(most).map(newest).collect()
    }

    /// Returns the domain's calls.
    #[must_use]
    pub fn calls(&self) -> &Joiner {
        &self.joiner
    }

    /// Returns the domain's events.
    #[must_use]
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// Returns the number of known hosts.
    #[must_use]
    pub fn hosts_len(&self) -> usize {
        self.hosts.len()
    }

    /// Forgets hosts that have been gone for a long time. Calling it once a minute is enough.
    pub fn tidy(&mut self, now: Moment) {
        self.hosts.forget(now);
    }
}

/// Adds the state that a host reports, as metrics.
#[expect(clippy::cast_precision_loss, reason = "shown, not counted with")]
fn add_state(overview: &mut Overview, host: &HostName, state: &HostState) {
    let mut add = |name: &str, unit: &str, value: Option<f64>| {
        if let Some(value) = value {
            let metric = Metric {
                name: name.into(),
                labels: Vec::new(),
                unit: unit.into(),
                semantics: Semantics::Gauge,
            };
            overview.add(host, &metric, value);
        }
    };
    add("cpu_used", "ratio", state.cpu_used);
    add("cpus", "", (state.cpus > 0).then_some(state.cpus as f64));
    add("memory_used", "bytes", state.memory_used.map(|bytes| bytes as f64));
    add("memory_total", "bytes", state.memory_total.map(|bytes| bytes as f64));
    add("lag", "bytes", Some(state.lag_bytes as f64));
}

impl Domain {
    pub(super) fn is_under_way(&self, sensor: SensorKey) -> bool {
        self.under_way.iter().any(|(under_way, _)| *under_way == sensor)
    }
}
