//! Event queue on a virtual clock, and the operations of a test on the hosts.
//!
//! Pure and deterministic: events are ordered by time and then by when they were scheduled; all randomness
//! comes from one seed.
//! Not here: connections (`connections`), the cores, what is expected of them (`domain`, `scenario`).

use super::Network;
use super::carriage::Backlog;
use super::connections::PING_INTERVAL;
use super::host::{Core, Effect, Host, HostInput};
use crate::dice::Dice;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Most inputs that wait for a suspended host: a socket buffer.
pub(super) const INBOX_MAX: usize = 10_000;

#[derive(Debug)]
pub(super) enum Event<M, D> {
    Happens { host: usize, life: u64, what: HostInput<M, D> },
    Timer { host: usize, life: u64 },
    Established { dialler: usize, listener: usize, lives: (u64, u64), deadline: Duration },
    Resume { host: usize },
    Starve { host: usize },
    Retry { from: usize, to: usize },
    Ping,
}

/// Messages that a host sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes of the longest message sent.
    pub longest_bytes: u64,
    /// Messages received.
    pub got: u64,
    /// Bytes received.
    pub got_bytes: u64,
}

/// Creates a core, given the host's number, what its disk held, a seed, and the host's clock.
type Factory<C> = Box<dyn FnMut(usize, Option<<C as Core>::Disk>, u64, Moment) -> C>;

/// Hosts with cores, on one clock and one network.
pub struct World<C: Core> {
    /// The paths; tests change them.
    pub network: Network,
    /// Whether messages are counted and measured.
    pub measures: bool,
    pub(super) now: Duration,
    planned: u64,
    events: BTreeMap<(Duration, u64), Event<C::Message, C::Disk>>,
    pub(super) hosts: Vec<Host<C>>,
    numbers: BTreeMap<PeerKey, usize>,
    pub(super) connections: u64,
    /// Messages on paths that are cut.
    pub(super) held: BTreeMap<(usize, usize), Backlog<C>>,
    pub(super) traffic: Vec<Traffic>,
    pub(super) dice: Dice,
    factory: Factory<C>,
}

impl<C: Core> World<C> {
    /// A world of hosts with these keys; none is started.
    pub fn new(
        keys: &[PeerKey],
        seed: u64,
        factory: impl FnMut(usize, Option<C::Disk>, u64, Moment) -> C + 'static,
    ) -> World<C> {
        let mut dice = Dice::new(seed);
        let mut hosts: Vec<Host<C>> = keys.iter().map(|key| Host::new(*key)).collect();
        for host in &mut hosts {
            host.boot = dice.span(Duration::from_secs(10), Duration::from_secs(1_000_000));
        }
        let mut world = World {
            network: Network::default(),
            measures: false,
            now: Duration::ZERO,
            planned: 0,
            events: BTreeMap::new(),
            numbers: keys.iter().enumerate().map(|(number, key)| (*key, number)).collect(),
            connections: 0,
            held: BTreeMap::new(),
            traffic: vec![Traffic::default(); keys.len()],
            hosts,
            dice,
            factory: Box::new(factory),
        };
        world.plan(PING_INTERVAL, Event::Ping);
        world
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Number of hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there is no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The number of the host with this key.
    #[must_use]
    pub fn number(&self, key: &PeerKey) -> Option<usize> {
        self.numbers.get(key).copied()
    }

    /// The key of a host.
    #[must_use]
    pub fn key(&self, host: usize) -> PeerKey {
        self.hosts[host].key
    }

    /// The core of a host, while its process lives.
    #[must_use]
    pub fn core(&self, host: usize) -> Option<&C> {
        self.hosts[host].core.as_ref()
    }

    /// Call a core as its daemon would; its effects are carried out.
    pub fn with<R>(&mut self, host: usize, call: impl FnOnce(&mut C, Moment) -> R) -> Option<R> {
        let now = self.clock(host);
        let result = self.hosts[host].core.as_mut().map(|core| call(core, now));
        self.drain(host);
        result
    }

    /// The clock of a host.
    #[must_use]
    pub fn clock(&self, host: usize) -> Moment {
        self.hosts[host].clock(self.now)
    }

    /// Number of starts of its process, from 1.
    #[must_use]
    pub fn life(&self, host: usize) -> u64 {
        self.hosts[host].life
    }

    /// What is synced on its disk.
    #[must_use]
    pub fn disk(&self, host: usize) -> Option<&C::Disk> {
        self.hosts[host].disk.as_ref()
    }

    /// Whether its process lives and is not suspended.
    #[must_use]
    pub fn is_running(&self, host: usize) -> bool {
        self.hosts[host].core.is_some() && self.hosts[host].paused_until.is_none()
    }

    /// Messages a host sent and received since the start, counted while `measures` is set.
    #[must_use]
    pub fn traffic(&self, host: usize) -> Traffic {
        self.traffic[host]
    }

    /// Let its clock run fast by so many millionths.
    pub fn set_rate(&mut self, host: usize, ppm: i64) {
        self.hosts[host].rate_ppm = ppm;
    }

    /// Set the hosts that it dials as seeds.
    pub fn set_seeds(&mut self, host: usize, seeds: Vec<usize>) {
        self.hosts[host].seeds = seeds;
    }

    /// Set the minimum and maximum time its disk takes to sync.
    pub fn set_sync(&mut self, host: usize, low: Duration, high: Duration) {
        self.hosts[host].sync = (low, high);
    }

    /// Start its process, if it does not live.
    pub fn start(&mut self, host: usize) {
        if self.hosts[host].core.is_some() {
            return;
        }
        let (now, seed) = (self.clock(host), self.dice.draw());
        let disk = self.hosts[host].disk.clone();
        let core = (self.factory)(host, disk, seed, now);
        let at = &mut self.hosts[host];
        at.core = Some(core);
        at.life += 1;
        at.powered = true;
        at.timer = None;
        self.drain(host);
    }

    /// Kill its process: what was not synced is lost, the machine closes its connections.
    pub fn kill(&mut self, host: usize) {
        self.end(host);
        for (peer, side) in std::mem::take(&mut self.hosts[host].sides) {
            self.notify_closed(host, peer, side.id);
        }
    }

    /// Power the machine off: its connections are not closed.
    pub fn power_off(&mut self, host: usize) {
        self.end(host);
        self.hosts[host].powered = false;
        self.hosts[host].sides.clear();
    }

    /// Suspend its process for `span`.
    pub fn pause(&mut self, host: usize, span: Duration) {
        if self.is_running(host) {
            self.hosts[host].paused_until = Some(self.now + span);
            self.hosts[host].paused_since = self.now;
            self.plan(self.now + span, Event::Resume { host });
        }
    }

    /// Let its process run for about the first span and be suspended for about the second, repeatedly; `None`
    /// ends it.
    pub fn starve(&mut self, host: usize, pattern: Option<(Duration, Duration)>) {
        let before = std::mem::replace(&mut self.hosts[host].starved, pattern);
        if before.is_none() && pattern.is_some() {
            self.plan(self.now, Event::Starve { host });
        }
    }

    /// Handle every event up to `until`; `witness` is called after each event at a host.
    pub fn run_until(&mut self, until: Duration, mut witness: impl FnMut(&World<C>, usize)) {
        while let Some((&(at, number), _)) = self.events.first_key_value() {
            if at > until {
                break;
            }
            let event = self.events.remove(&(at, number)).expect("just seen");
            self.now = at;
            if let Some(host) = self.happen(event) {
                witness(self, host);
            }
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, event: Event<C::Message, C::Disk>) -> Option<usize> {
        match event {
            Event::Happens { host, life, what } => {
                if self.hosts[host].life != life || self.hosts[host].core.is_none() {
                    return None;
                }
                if self.hosts[host].paused_until.is_some() {
                    if self.hosts[host].inbox.len() < INBOX_MAX {
                        self.hosts[host].inbox.push_back(what);
                    }
                    return None;
                }
                self.take_in(host, what);
                Some(host)
            }
            Event::Timer { host, life } => {
                let at = &mut self.hosts[host];
                if at.life != life || at.timer != Some(self.now) {
                    return None;
                }
                at.timer = None;
                if at.paused_until.is_some() {
                    return None;
                }
                self.fire(host);
                Some(host)
            }
            Event::Established { dialler, listener, lives, deadline } => {
                self.establish(dialler, listener, lives, deadline)
            }
            Event::Resume { host } => self.resume(host),
            Event::Starve { host } => {
                let (run, stop) = self.hosts[host].starved?;
                let stop = self.dice.jittered(stop, 50);
                let run = self.dice.jittered(run, 50);
                self.pause(host, stop);
                self.plan(self.now + stop + run, Event::Starve { host });
                None
            }
            Event::Retry { from, to } => {
                self.retry(from, to);
                None
            }
            Event::Ping => {
                self.ping();
                self.plan(self.now + PING_INTERVAL, Event::Ping);
                None
            }
        }
    }

    fn take_in(&mut self, host: usize, what: HostInput<C::Message, C::Disk>) {
        let now = self.clock(host);
        match what {
            HostInput::Message { from, connection, message } => {
                if self.hosts[host].sides.get(&from).is_none_or(|side| side.id != connection) {
                    return;
                }
                if self.measures {
                    self.traffic[host].got += 1;
                    self.traffic[host].got_bytes += C::len_bytes(&message) as u64;
                }
                let from = self.hosts[from].key;
                self.core_mut(host).message(from, message, now);
            }
            HostInput::Closed { peer, connection } => {
                if self.hosts[host].sides.get(&peer).is_none_or(|side| side.id != connection) {
                    return;
                }
                self.hosts[host].sides.remove(&peer);
                let peer = self.hosts[peer].key;
                self.core_mut(host).disconnected(peer, now);
            }
            HostInput::DialFailed { peer } => {
                if self.hosts[host].sides.contains_key(&peer) {
                    return;
                }
                let peer = self.hosts[peer].key;
                self.core_mut(host).disconnected(peer, now);
            }
            HostInput::Written(disk) => {
                self.hosts[host].disk = Some(disk.clone());
                self.core_mut(host).persisted(disk, now);
            }
        }
        self.drain(host);
    }

    fn fire(&mut self, host: usize) {
        let now = self.clock(host);
        self.core_mut(host).timeout(now);
        self.drain(host);
    }

    fn resume(&mut self, host: usize) -> Option<usize> {
        let at = &mut self.hosts[host];
        if at.paused_until != Some(self.now) {
            return None;
        }
        at.paused_until = None;
        at.core.as_ref()?;
        let inbox = std::mem::take(&mut at.inbox);
        let due =
            at.core.as_ref().and_then(Core::poll_timeout).is_some_and(|moment| at.when(moment) <= self.now);
        let timers_first = self.dice.happens(500);
        if timers_first && due {
            self.fire(host);
        }
        for what in inbox {
            self.take_in(host, what);
        }
        if !timers_first && due {
            self.fire(host);
        }
        self.set_timer(host);
        Some(host)
    }

    /// Carry out the effects of a core.
    pub(super) fn drain(&mut self, host: usize) {
        while let Some(effect) = self.hosts[host].core.as_mut().and_then(Core::poll_effect) {
            match effect {
                Effect::Send(peer, message) => self.carry(host, &peer, message),
                Effect::Connect(peer) => {
                    if let Some(peer) = self.number(&peer) {
                        self.dial(host, peer);
                    }
                }
                Effect::Disconnect(peer) => {
                    let Some(peer) = self.number(&peer) else { continue };
                    if let Some(side) = self.hosts[host].sides.get(&peer).copied() {
                        let what = HostInput::Closed { peer, connection: side.id };
                        self.plan_at(host, self.now, what);
                        self.notify_closed(host, peer, side.id);
                    }
                }
                Effect::DialSeeds => {
                    let seeds =
                        if self.network.names_resolve { self.hosts[host].seeds.clone() } else { vec![] };
                    for seed in seeds {
                        self.dial(host, seed);
                    }
                }
                Effect::Persist(disk) => {
                    let (low, high) = self.hosts[host].sync;
                    let synced = self.now + self.dice.span(low, high);
                    // One thread writes, so a later write is not on disk before an earlier one.
                    let at = synced.max(self.hosts[host].last_write);
                    self.hosts[host].last_write = at;
                    self.plan_at(host, at, HostInput::Written(disk));
                }
            }
        }
        self.set_timer(host);
    }

    fn end(&mut self, host: usize) {
        let at = &mut self.hosts[host];
        at.core = None;
        at.timer = None;
        at.paused_until = None;
        at.inbox.clear();
    }

    fn set_timer(&mut self, host: usize) {
        let at = &self.hosts[host];
        let Some(due) = at.core.as_ref().and_then(Core::poll_timeout).map(|moment| at.when(moment)) else {
            return;
        };
        let due = due.max(self.now);
        if at.timer == Some(due) || at.paused_until.is_some() {
            return;
        }
        let life = at.life;
        self.hosts[host].timer = Some(due);
        self.plan(due, Event::Timer { host, life });
    }

    pub(super) fn core_mut(&mut self, host: usize) -> &mut C {
        self.hosts[host].core.as_mut().expect("only running hosts are called")
    }

    pub(super) fn plan_at(&mut self, host: usize, at: Duration, what: HostInput<C::Message, C::Disk>) {
        let life = self.hosts[host].life;
        self.plan(at, Event::Happens { host, life, what });
    }

    pub(super) fn plan(&mut self, at: Duration, event: Event<C::Message, C::Disk>) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }
}
