//! The sensors that are watched, what is known of each, and which one is selected.
//!
//! Pure. Rule: no sensor is queried while the tab is not seen. Not here: rows of the table (`sensor_rows`),
//! queries (`live::sensors`).

use super::source::Source;
use crate::feed::Sensors;
use crate::flock::sweep::HostName;
use crate::sensors::health::Health;
use crate::sensors::{ADDRESSES_MAX, At, HOSTS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use wire::time::Time;

/// The tab is hidden this long after it was last drawn, in seconds.
const HIDDEN_AFTER_SECS: f64 = 3.0;

/// A change of the sensors that are watched.
#[derive(Clone, Debug)]
pub enum SensorsChange {
    Select(Option<At>),
    /// Watch a sensor by its address, and select it.
    Add(SocketAddr),
    Drop(SocketAddr),
    /// The hosts whose rows are drawn.
    ShowRows(Vec<HostName>),
}

/// Last answer of a sensor.
#[derive(Clone, Debug, Default)]
pub struct SensorAnswer {
    pub health: Option<(Arc<Health>, Time)>,
    pub error: Option<String>,
}

/// State of the sensors.
#[derive(Clone, Default)]
pub struct SensorsState {
    known: BTreeMap<At, SensorAnswer>,
    terms: BTreeMap<String, u64>,
    /// The channels of this viewer's flock, by their hosts.
    channels: BTreeMap<HostName, String>,
    seen_at: Option<Time>,
    requested: Sensors,
    /// The hosts whose rows were drawn last.
    rows_shown: Vec<HostName>,
    selected: Option<At>,
    /// The addresses that the user added.
    addresses: Vec<SocketAddr>,
}

impl SensorsState {
    pub(super) fn new(addresses: Vec<SocketAddr>) -> SensorsState {
        SensorsState { addresses, ..SensorsState::default() }
    }

    /// The addresses that the user added.
    #[must_use]
    pub fn added(&self) -> &[SocketAddr] {
        &self.addresses
    }

    #[must_use]
    pub fn selected(&self) -> Option<&At> {
        self.selected.as_ref()
    }

    #[must_use]
    pub fn known(&self, at: &At) -> Option<&SensorAnswer> {
        self.known.get(at)
    }

    #[must_use]
    pub fn health(&self, at: &At) -> Option<&Health> {
        self.known.get(at)?.health.as_ref().map(|(health, _)| health.as_ref())
    }

    /// The term of a domain's representative.
    #[must_use]
    pub fn term(&self, domain: &str) -> Option<u64> {
        self.terms.get(domain).copied()
    }

    /// The channels of this viewer's flock, by their hosts.
    #[must_use]
    pub fn channels(&self) -> &BTreeMap<HostName, String> {
        &self.channels
    }

    /// The addresses that are watched: that of the queried daemon, and those that were added.
    #[must_use]
    pub fn addresses(&self, source: &Source) -> Vec<SocketAddr> {
        let own = match source {
            Source::Daemon(address) => address.parse().ok(),
            Source::Log(_) | Source::File(_) => None,
        };
        let added = self.addresses.iter().copied().filter(|address| Some(*address) != own);
        own.into_iter().chain(added.take(ADDRESSES_MAX)).collect()
    }

    /// Whether a sensor may be added by this address.
    #[must_use]
    pub fn has_room_for(&self, address: &SocketAddr) -> bool {
        self.addresses.len() < ADDRESSES_MAX || self.addresses.contains(address)
    }

    pub(super) fn apply(&mut self, change: SensorsChange) {
        match change {
            SensorsChange::Select(at) => self.selected = at,
            SensorsChange::Add(address) => {
                if self.has_room_for(&address) && !self.addresses.contains(&address) {
                    self.addresses.push(address);
                }
                self.selected = Some(At::Address(address));
            }
            SensorsChange::Drop(address) => {
                self.addresses.retain(|known| *known != address);
                self.known.remove(&At::Address(address));
                self.selected = None;
            }
            SensorsChange::ShowRows(hosts) => self.rows_shown = hosts,
        }
    }

    /// The answer of a sensor, or why it could not be queried.
    pub(super) fn take(&mut self, now: Time, at: At, health: Result<Arc<Health>, String>) {
        let known = self.known.entry(at).or_default();
        match health {
            Ok(health) => *known = SensorAnswer { health: Some((health, now)), error: None },
            Err(error) => known.error = Some(error),
        }
    }

    pub(super) fn set_term(&mut self, domain: String, term: Option<u64>) {
        match term {
            Some(term) => self.terms.insert(domain, term),
            None => self.terms.remove(&domain),
        };
    }

    /// The flock has this channel at a host.
    pub(super) fn set_channel(&mut self, host: HostName, subscription: String) {
        self.channels.insert(host, subscription);
    }

    /// A channel of the flock ended; whether it was the one that is known.
    pub(super) fn end_channel(&mut self, host: &HostName, subscription: &str) -> bool {
        let is_it = self.channels.get(host).is_some_and(|known| known == subscription);
        is_it && self.channels.remove(host).is_some()
    }

    pub(super) fn mark_seen(&mut self, now: Time) {
        self.seen_at = Some(now);
    }

    fn is_seen(&self, now: Time) -> bool {
        self.seen_at.is_some_and(|at| now.since(at).as_secs_f64() < HIDDEN_AFTER_SECS)
    }

    /// The sensors to query, where they differ from those that were requested last.
    pub(super) fn request(&self, source: &Source, now: Time) -> Option<Sensors> {
        let sensors = if self.is_seen(now) { self.shown(source) } else { Sensors::default() };
        (sensors != self.requested).then_some(sensors)
    }

    /// A request was sent.
    pub(super) fn requested(&mut self, sensors: Sensors, now: Time) {
        let is_seen = self.is_seen(now);
        self.known.retain(|at, _| sensors.sensors.contains(at) || !is_seen);
        self.requested = sensors;
    }

    /// The sensors with addresses, the selected one, and those whose rows are drawn.
    fn shown(&self, source: &Source) -> Sensors {
        let mut sensors: Vec<At> = self.addresses(source).into_iter().map(At::Address).collect();
        let hosts = self.rows_shown.iter().take(HOSTS_MAX - 1).cloned().map(At::Host);
        for at in self.selected.clone().into_iter().chain(hosts) {
            if !sensors.contains(&at) {
                sensors.push(at);
            }
        }
        let names: BTreeSet<&str> = self.rows_shown.iter().map(|host| &*host.domain).collect();
        let domains = names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Sensors { sensors, domains }
    }
}
