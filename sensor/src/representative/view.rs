//! What `domain.*` answers: hosts, summary, metrics and calls as plain values; events are read by a
//! [`Feed`].
//!
//! Pure. Not here: the forms in which programs get them (`crate::query`).

use super::cursor::Feed;
use super::domain::Domain;
use super::hosts::{Role, Standing, Unreported};
use super::overview::{METRICS_OF_HOST_MAX, Overall, Overview};
use super::summary;
use crate::sample::history::{Completeness, Series};
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::sync::Arc;
use std::time::Duration;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::HostState;
use wire::sample::{Metric, Number, Semantics};
use wire::time::{Moment, Time};

/// One row of the table of hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    /// Its name.
    pub host: HostName,
    /// How it is.
    pub standing: Standing,
    /// What its sensor does for the domain.
    pub role: Role,
    /// Its sensor's key.
    pub sensor: SensorKey,
    /// Its daemon's key.
    pub peer: PeerKey,
    /// Version of the program.
    pub program: CompactString,
    /// When its sensor was started, by its clock.
    pub started: Time,
    /// How long ago something came of it.
    pub age: Duration,
    /// By how much its clock was ahead when it came, in microseconds.
    pub clock_ahead_micros: i64,
    /// What it last told of itself.
    pub state: HostState,
    /// The first of its events that is not stored here.
    pub events_next: u64,
    /// Its events that it has and are not stored here.
    pub events_behind: u64,
    /// Its events that are lost.
    pub events_lost: u64,
    /// Its events that were set aside for the host they claim.
    pub events_refused: u64,
    /// Samples that came.
    pub samples: u64,
    /// Samples that it took and did not send.
    pub samples_thinned: u64,
    /// Calls running on it.
    pub calls_running: u64,
}

/// The domain in a few figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Hosts by how they are: alive, silent, left.
    pub hosts: [u64; 3],
    /// Metrics of hosts as a whole, over those alive.
    pub metrics: Vec<Overall>,
    /// Values that were left out of them as no figures.
    pub absurd: u64,
    /// Calls by state and outcome, user and host.
    pub calls: summary::Calls,
    /// Events stored since the store began.
    pub events: u64,
    /// Events lost before they came here, of all members.
    pub events_lost: u64,
}

/// One newest sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// Whose.
    pub host: HostName,
    /// Of what.
    pub metric: Arc<Metric>,
    /// The value.
    pub value: Number,
    /// When, by the host's clock.
    pub time: Time,
}

/// The series of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSeries {
    /// Whose.
    pub host: HostName,
    /// By metric.
    pub series: Vec<Series>,
}

impl Domain {
    /// The table of hosts, by name.
    #[must_use]
    pub fn hosts(&self, now: Moment) -> Vec<HostRow> {
        let running = summary::calls(self.joiner.calls()).hosts;
        let members = &self.store.ledger().members;
        let row = |(name, host): (&HostName, &super::hosts::Host)| {
            let member = members.get(&host.sensor);
            let next = member.map_or(0, |member| member.next);
            HostRow {
                host: name.clone(),
                standing: host.standing(now),
                role: host.role,
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
                calls_running: running.get(name.as_str()).copied().unwrap_or(0),
            }
        };
        self.hosts.iter().map(row).collect()
    }

    /// Hosts that have not reported to this representative: they went before it came, or are about to report; by name.
    #[must_use]
    pub fn unreported(&self) -> &[Unreported] {
        self.hosts.unreported()
    }

    /// The domain in a few figures.
    #[must_use]
    pub fn summary(&self, now: Moment) -> Summary {
        let mut hosts = [0; 3];
        let column = |standing: Standing| match standing {
            Standing::Alive => 0,
            Standing::Silent => 1,
            Standing::Left => 2,
        };
        self.hosts.unreported().iter().for_each(|host| hosts[column(host.standing)] += 1);
        let mut overview = Overview::default();
        for (name, host) in self.hosts.iter() {
            let standing = host.standing(now);
            hosts[column(standing)] += 1;
            if standing != Standing::Alive {
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

    /// The series of the wanted hosts and metrics from `since` on, at most `points_max` points in all.
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

    /// The newest samples of the wanted hosts and metrics, at most so many.
    pub fn newest(
        &self,
        wanted_host: impl Fn(&HostName) -> bool,
        wanted: impl Fn(&Metric) -> bool,
        most: usize,
    ) -> Vec<Newest> {
        let hosts = self.hosts.iter().filter(|(name, _)| wanted_host(name));
        let all = hosts.flat_map(|(name, host)| {
            let rows =
                host.latest().into_iter().flat_map(|(shape, decoder)| shape.iter().zip(decoder.values()));
            rows.map(move |(metric, value)| (name, metric, value, host.swept))
        });
        let newest = |(host, metric, value, time): (&HostName, &Arc<Metric>, Number, Time)| Newest {
            host: host.clone(),
            metric: Arc::clone(metric),
            value,
            time,
        };
        all.filter(|(_, metric, ..)| wanted(metric)).take(most).map(newest).collect()
    }

    /// The domain's calls.
    #[must_use]
    pub fn calls(&self) -> &Joiner {
        &self.joiner
    }

    /// The domain's events.
    #[must_use]
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// Hosts that are known.
    #[must_use]
    pub fn hosts_len(&self) -> usize {
        self.hosts.len()
    }

    /// Forget what has been gone for long; once a minute is enough.
    pub fn tidy(&mut self, now: Moment) {
        self.hosts.forget(now);
    }
}

/// What a host tells of itself, as metrics.
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
