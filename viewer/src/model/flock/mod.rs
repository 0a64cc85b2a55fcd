//! The flock: processes of the watched hosts, which of them are drawn and selected, and the channels they
//! come by.
//!
//! Pure. Rule: no host is swept while neither the flock nor its channels are seen. Invariant: selected
//! members are of hosts that are watched. Not here: where marks are (`crate::flock`), processes of a call
//! (`followed`), the past (`past`).

mod followed;
mod past;

pub use followed::ProcessId;
pub(super) use followed::{Following, shortly_before};

use super::grid::PlacedGrid;
use crate::feed::{Altered, Watch};
use crate::flock::chosen::Chosen;
use crate::flock::measure::{Capacity, Measure};
use crate::flock::names::NameId;
use crate::flock::sweep::{HostName, Sweep};
use crate::flock::{Flock, HOSTS_MAX, Member};
use crate::grid::place::{HostState, PlaceId};
use crate::live::flock::TAKE_EVERY;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::channel::RATE_MIN_HZ;
use wire::time::Time;

/// Hosts that are watched unless the user chooses: as many as one chart is easily read of.
pub const HOSTS_USUAL: usize = 16;
/// Sweeps a second that can be chosen; the second is the default.
pub const RATES_HZ: [f64; 4] = [1.0, 10.0, 30.0, 64.0];
/// A flock is hidden this long after it was last drawn, in seconds.
const HIDDEN_AFTER_SECS: f64 = 3.0;

/// A change of what the flock shows.
#[derive(Clone, Debug)]
pub enum FlockChange {
    ToggleMeasure(Measure),
    HideIdle(bool),
    /// Watch these hosts; the first live ones for `None`.
    Watch(Option<BTreeSet<HostName>>),
    SetRate(f64),
    SelectMembers(BTreeSet<Member>),
    /// Select none, and follow no call.
    ClearSelection,
    /// Show the processes of a call, or one of them.
    Follow(String, Option<ProcessId>),
    /// Show the processes of a job, which the grid may not have: by its hosts, at a time of its run.
    FollowJob {
        call: String,
        domain: String,
        hosts: Vec<String>,
        started: Option<Time>,
        ended: Option<Time>,
    },
}

/// What the hosts to sweep follow from: the grid, the rate while the flock is seen, and the chosen hosts.
type RequestKey = (Option<Time>, Option<u64>, Option<BTreeSet<HostName>>);

/// State of the flock.
#[derive(Clone)]
pub struct FlockState {
    flock: Flock,
    filter: Chosen,
    selected: BTreeSet<Member>,
    /// The hosts, where the user chose.
    chosen_hosts: Option<BTreeSet<HostName>>,
    followed: Option<followed::Followed>,
    rate_hz: f64,
    requested: Watch,
    /// What the last request follows from.
    requested_for: Option<RequestKey>,
    seen_at: Option<Time>,
    /// When its channels were last seen in the tab of sensors.
    channels_seen_at: Option<Time>,
    errors: BTreeMap<HostName, String>,
    past: past::Past,
    /// The channels that another client altered.
    altered: BTreeMap<HostName, Altered>,
    /// Counts changes of the filter and of the past, for lists that are cached.
    revision: u64,
}

impl Default for FlockState {
    fn default() -> FlockState {
        FlockState {
            flock: Flock::default(),
            filter: Chosen::default(),
            selected: BTreeSet::new(),
            chosen_hosts: None,
            followed: None,
            rate_hz: RATES_HZ[1],
            requested: Watch::default(),
            requested_for: None,
            seen_at: None,
            channels_seen_at: None,
            errors: BTreeMap::new(),
            past: past::Past::default(),
            altered: BTreeMap::new(),
            revision: 0,
        }
    }
}

impl FlockState {
    #[must_use]
    pub fn flock(&self) -> &Flock {
        &self.flock
    }

    /// Which marks are drawn.
    #[must_use]
    pub fn filter(&self) -> &Chosen {
        &self.filter
    }

    #[must_use]
    pub fn selected(&self) -> &BTreeSet<Member> {
        &self.selected
    }

    #[must_use]
    pub fn chosen_hosts(&self) -> Option<&BTreeSet<HostName>> {
        self.chosen_hosts.as_ref()
    }

    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        self.rate_hz
    }

    /// The hosts that sensors are asked to sweep.
    #[must_use]
    pub fn watched(&self) -> &[HostName] {
        &self.requested.hosts
    }

    /// Errors of hosts that cannot be swept.
    pub fn errors(&self) -> impl Iterator<Item = (&HostName, &String)> {
        self.errors.iter()
    }

    /// The channels of watched hosts that another client altered.
    pub fn altered(&self) -> impl Iterator<Item = (&HostName, &Altered)> {
        self.altered.iter().filter(|(host, _)| self.requested.hosts.contains(host))
    }

    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether a process is selected; whether it fits the search, where none is selected.
    #[must_use]
    pub fn includes(&self, member: Member, name: NameId, host: Option<&HostName>) -> bool {
        match self.selected.is_empty() {
            true => self.filter.fits(&self.flock, name, member.pid, host),
            false => self.selected.contains(&member),
        }
    }

    /// How long after a sweep its marks are drawn live: the next sweep must have arrived to draw the motion
    /// to it.
    #[must_use]
    pub fn delay(&self) -> Duration {
        let slowest_hz = self.altered().map(|(_, altered)| altered.rate_hz).fold(self.rate_hz, f64::min);
        Duration::from_secs_f64(1.0 / slowest_hz.max(RATE_MIN_HZ)) + 2 * TAKE_EVERY
    }

    #[must_use]
    pub(super) fn is_seen(&self, now: Time) -> bool {
        is_recent(self.seen_at, now)
    }

    pub(super) fn mark_seen(&mut self, now: Time) {
        self.seen_at = Some(now);
    }

    /// The tab of sensors shows the channels of the flock: they stay open.
    pub(super) fn mark_channels_seen(&mut self, now: Time) {
        if !self.requested.hosts.is_empty() {
            self.channels_seen_at = Some(now);
        }
    }

    pub(super) fn replace(&mut self, flock: Flock) {
        self.flock = flock;
    }

    pub(super) fn take_sweeps(&mut self, at: Time, sweeps: &[Sweep]) {
        sweeps.iter().for_each(|sweep| self.flock.take(sweep, at));
    }

    /// A host cannot be swept, or can again; that of a host that is not watched any more is no error.
    pub(super) fn set_error(&mut self, host: HostName, error: Option<String>) {
        match error {
            Some(error) if self.requested.hosts.contains(&host) => drop(self.errors.insert(host, error)),
            Some(_) => {}
            None => drop(self.errors.remove(&host)),
        }
    }

    pub(super) fn set_altered(&mut self, host: &HostName, altered: Option<Altered>) {
        match altered {
            Some(altered) => drop(self.altered.insert(host.clone(), altered)),
            None => drop(self.altered.remove(host)),
        }
    }

    pub(super) fn search(&mut self, text: &str) {
        self.filter.search(text);
        self.revision += 1;
    }

    pub(super) fn toggle_measure(&mut self, measure: Measure) {
        self.filter.measures[measure.at()] ^= true;
    }

    pub(super) fn hide_idle(&mut self, hides: bool) {
        self.filter.hides_idle = hides;
    }

    pub(super) fn set_rate(&mut self, rate_hz: f64) {
        self.rate_hz = rate_hz;
    }

    /// Another thread sends sweeps from now on: it knows no request yet.
    pub(super) fn forget_request(&mut self) {
        self.requested_for = None;
    }

    /// The hosts to sweep, where they differ from those that were requested last; `has_feed` is whether they
    /// can be requested at all.
    pub(super) fn request(
        &mut self,
        grid: &PlacedGrid,
        now: Time,
        is_live: bool,
        has_feed: bool,
    ) -> Option<Watch> {
        let key = self.request_key(grid, now);
        if self.requested_for.as_ref() == Some(&key) {
            return None;
        }
        let is_seen = key.1.is_some();
        let hosts = if is_seen { self.hosts_of(grid) } else { Vec::new() };
        for (name, capacity) in &hosts {
            self.flock.host(name, *capacity);
        }
        let names: Vec<HostName> = hosts.into_iter().map(|(name, _)| name).collect();
        if is_seen && is_live && self.flock.keep(&names) {
            self.selected.clear();
            self.revision += 1;
        }
        let watch = Watch { rate_hz: if names.is_empty() { 0.0 } else { self.rate_hz }, hosts: names };
        if has_feed && watch != self.requested {
            return Some(watch);
        }
        self.requested_for = Some(key);
        None
    }

    /// A request was sent.
    pub(super) fn requested(&mut self, watch: Watch, grid: &PlacedGrid, now: Time) {
        self.errors.retain(|host, _| watch.hosts.contains(host));
        self.past.restart(&watch.hosts);
        self.requested = watch;
        self.requested_for = Some(self.request_key(grid, now));
    }

    fn request_key(&self, grid: &PlacedGrid, now: Time) -> RequestKey {
        let is_seen = self.is_seen(now) || is_recent(self.channels_seen_at, now);
        (grid.received_at(), is_seen.then_some(self.rate_hz.to_bits()), self.chosen_hosts.clone())
    }

    /// The hosts to sweep with what they have: the chosen ones, else the first live ones.
    pub(super) fn hosts_of(&self, grid: &PlacedGrid) -> Vec<(HostName, Capacity)> {
        let capacity = |id: PlaceId| {
            let report = grid.grid().place(id).report.as_ref();
            Capacity::of(report.and_then(|report| report.cpus), report.and_then(|report| report.memory_bytes))
        };
        match &self.chosen_hosts {
            Some(chosen) => {
                let servers = grid.server_names().filter(|(_, name)| chosen.contains(name)).take(HOSTS_MAX);
                servers.map(|(id, name)| (name, capacity(id))).collect()
            }
            None => {
                let live = grid.servers().filter(|(_, place)| place.state == HostState::Live);
                live.take(HOSTS_USUAL).map(|(id, _)| (grid.host_name(id), capacity(id))).collect()
            }
        }
    }
}

fn is_recent(at: Option<Time>, now: Time) -> bool {
    at.is_some_and(|at| now.since(at).as_secs_f64() < HIDDEN_AFTER_SECS)
}
