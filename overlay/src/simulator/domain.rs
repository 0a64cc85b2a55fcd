//! A domain of simulated sensors that checks the invariants of election after every event.
//!
//! Pure. The invariants (R7):
//!
//! * the claim that a sensor accepted only grows while its process lives;
//! * no term is used by two sensors, nor by two incarnations of one;
//! * a term is used only once it is on the disk of its holder;
//! * a representative has accepted no claim but its own.
//!
//! Not here: the expectations of a scenario (`scenario`).

use super::host::{Core, Effect};
use super::world::World;
use crate::election::{Config, Input, Me, Node, Output, Persisted, Role, State};
use crate::membership::Profile;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Claim, Message, Term};
use wire::time::Moment;

/// A sensor's node, as a core of the simulator.
#[derive(Debug)]
pub struct Sensor {
    /// The state machine.
    pub node: Node,
    profiles: Arc<BTreeMap<PeerKey, Profile>>,
}

impl Core for Sensor {
    type Message = Message;
    type Disk = Persisted;

    fn connected(&mut self, peer: PeerKey, now: Moment) {
        let profile = self.profiles[&peer].clone();
        self.node.handle(Input::Connected(peer, profile), now);
    }

    fn disconnected(&mut self, peer: PeerKey, now: Moment) {
        self.node.handle(Input::Disconnected(peer), now);
    }

    fn message(&mut self, from: PeerKey, message: Message, now: Moment) {
        self.node.handle(Input::Received(from, message), now);
    }

    fn timeout(&mut self, now: Moment) {
        self.node.handle(Input::Timeout, now);
    }

    fn persisted(&mut self, disk: Persisted, now: Moment) {
        self.node.handle(Input::Persisted(disk), now);
    }

    fn poll_effect(&mut self) -> Option<Effect<Message, Persisted>> {
        loop {
            return Some(match self.node.poll_output()? {
                Output::Send(peer, message) => Effect::Send(peer, message),
                Output::Connect(peer, _) => Effect::Connect(peer),
                Output::Disconnect(peer) => Effect::Disconnect(peer),
                Output::DialSeeds => Effect::DialSeeds,
                Output::Persist(persisted) => Effect::Persist(persisted),
                // For the daemon only.
                Output::State(_) | Output::HandOver(_) => continue,
            });
        }
    }

    fn poll_timeout(&self) -> Option<Moment> {
        self.node.poll_timeout()
    }

    fn len_bytes(message: &Message) -> usize {
        let mut frame = Vec::new();
        wire::codec::encode(message, &mut frame).expect("control messages are short");
        frame.len()
    }
}

/// A promotion of a sensor to representative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// Virtual time.
    pub at: Duration,
    pub host: usize,
    pub term: Term,
}

#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    life: u64,
    accepted: Option<Claim>,
    /// The term it used after the last event.
    term: Option<Term>,
}

/// A domain of sensors whose invariants are checked.
pub struct Domain {
    /// The hosts, the clock and the network.
    pub world: World<Sensor>,
    seed: u64,
    observed: Vec<Observed>,
    /// The host that used a term, and in which incarnation.
    served: BTreeMap<Term, (usize, u64)>,
    promotions: Vec<Promotion>,
    violations: Vec<String>,
}

/// Most violations stored: the first ones show what went wrong.
const VIOLATIONS_MAX: usize = 20;

impl Domain {
    /// A domain of so many hosts, none of them started; all may represent it, and hosts 0 and 1 are the seeds
    /// of all.
    #[must_use]
    pub fn new(hosts: usize, seed: u64, adjust: impl FnOnce(&mut Config)) -> Domain {
        Domain::with_priorities(&vec![0; hosts], seed, adjust)
    }

    /// The same with a priority for each host.
    ///
    /// # Panics
    /// If there are more hosts than key numbers, 2^32.
    #[must_use]
    pub fn with_priorities(priorities: &[u8], seed: u64, adjust: impl FnOnce(&mut Config)) -> Domain {
        let hosts = priorities.len();
        let name = DomainName::try_from("simulated").expect("a name");
        let mut config = Config::new(name);
        config.has_seeds = hosts > 1;
        adjust(&mut config);
        let keys: Vec<_> = (0..hosts).map(|host| key(seed, host)).collect();
        let profile = |host: usize| Profile {
            host: HostName::try_from(format!("wn{host:04}.site.example").as_str()).expect("a name"),
            may_represent: true,
            priority: priorities[host],
        };
        let profiles: Arc<BTreeMap<_, _>> =
            Arc::new((0..hosts).map(|host| (keys[host], profile(host))).collect());
        let known = keys.clone();
        let mut world = World::new(&keys, seed, move |host, disk: Option<Persisted>, seed, now| {
            let profile = profiles[&known[host]].clone();
            let addresses = vec![format!("/dns/{}/tcp/7946", profile.host).into()];
            let me = Me { key: known[host], profile, addresses };
            let node = Node::new(config.clone(), me, disk.unwrap_or_default(), seed, now);
            Sensor { node, profiles: Arc::clone(&profiles) }
        });
        for host in 0..hosts {
            world.set_seeds(host, (0..hosts.min(2)).collect());
        }
        Domain {
            world,
            seed,
            observed: vec![Observed::default(); hosts],
            served: BTreeMap::new(),
            promotions: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Let `span` pass.
    pub fn run(&mut self, span: Duration) {
        let Domain { world, observed, served, promotions, violations, .. } = self;
        let until = world.now() + span;
        world.run_until(until, |world, host| {
            watch(world, host, &mut observed[host], served, promotions, violations);
        });
    }

    /// Start every host at once.
    pub fn start_all(&mut self) {
        for host in 0..self.world.len() {
            self.world.start(host);
        }
    }

    /// Let time pass until `done`, at most `most`. Returns how long it took; `None` if it was never done.
    pub fn run_until(&mut self, most: Duration, mut done: impl FnMut(&Domain) -> bool) -> Option<Duration> {
        let start = self.world.now();
        loop {
            if done(self) {
                return Some(self.world.now() - start);
            }
            if self.world.now() - start >= most {
                return None;
            }
            self.run(Duration::from_millis(20));
        }
    }

    /// The node of a host, while its process lives.
    #[must_use]
    pub fn node(&self, host: usize) -> Option<&Node> {
        self.world.core(host).map(|sensor| &sensor.node)
    }

    /// The state that a host reports, while its process lives.
    #[must_use]
    pub fn state(&self, host: usize) -> Option<State> {
        self.node(host).map(|node| node.state(self.world.clock(host)))
    }

    /// The hosts that would answer for the domain now.
    #[must_use]
    pub fn serving(&self) -> Vec<usize> {
        (0..self.world.len()).filter(|host| self.serves(*host)).collect()
    }

    /// Whether a host would answer for the domain now.
    #[must_use]
    pub fn serves(&self, host: usize) -> bool {
        self.world.is_running(host) && self.would_serve(host)
    }

    /// The same, even if its process is suspended: what it would answer if that were its next input.
    #[must_use]
    pub fn would_serve(&self, host: usize) -> bool {
        self.node(host).is_some_and(|node| node.may_serve(self.world.clock(host)))
    }

    /// The representative that every running host of `hosts` obeys, if there is only one and it serves.
    #[must_use]
    pub fn agreed(&self, hosts: &[usize]) -> Option<usize> {
        let mut running = hosts.iter().copied().filter(|host| self.world.is_running(*host));
        let first = self.state(running.next()?)?.representative?;
        let agree = hosts
            .iter()
            .filter(|host| self.world.is_running(**host))
            .all(|host| self.state(*host).is_some_and(|state| state.representative == Some(first)));
        let holder = self.world.number(&first)?;
        let only = hosts.iter().all(|host| *host == holder || !self.serves(*host));
        (agree && only && self.serves(holder)).then_some(holder)
    }

    /// The one representative of the whole domain.
    #[must_use]
    pub fn agreed_by_all(&self) -> Option<usize> {
        self.agreed(&(0..self.world.len()).collect::<Vec<_>>())
    }

    /// The hosts that are standbys, by number.
    #[must_use]
    pub fn standbys(&self) -> Vec<usize> {
        let of = |host: &usize| self.state(*host).is_some_and(|state| state.role == Role::Standby);
        (0..self.world.len()).filter(of).collect()
    }

    /// Every promotion so far, in order.
    #[must_use]
    pub fn promotions(&self) -> &[Promotion] {
        &self.promotions
    }

    /// Promotions since the virtual time `since`.
    #[must_use]
    pub fn promotions_since(&self, since: Duration) -> usize {
        self.promotions.iter().filter(|promotion| promotion.at >= since).count()
    }

    /// The first violations of the invariants, in order.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// A line for each host, to print when a test fails.
    #[must_use]
    pub fn picture(&self) -> String {
        let mut lines = vec![format!("seed {} at {:?}", self.seed, self.world.now())];
        for host in 0..self.world.len() {
            let Some(state) = self.state(host) else {
                lines.push(format!("  {host}: down"));
                continue;
            };
            let representative = state.representative.and_then(|key| self.world.number(&key));
            let figures = self.node(host).expect("it has a state").figures(self.world.clock(host));
            lines.push(format!(
                "  {host}: {} of {representative:?}, term {} ({}), covers {}, partial {}, serves {}, links {}, stretch {}, lost {}",
                state.role.as_str(),
                state.term,
                state.term.round(),
                state.coverage.len(),
                state.partial,
                self.serves(host),
                figures.links,
                figures.stretch_percent,
                figures.loss_permille,
            ));
        }
        lines.join("\n")
    }

    /// Check that no invariant was violated.
    ///
    /// # Panics
    /// If one was.
    pub fn assert_by_the_rules(&self) {
        assert!(self.violations.is_empty(), "{}\n{}", self.violations.join("\n"), self.picture());
    }
}

fn key(seed: u64, host: usize) -> PeerKey {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&u32::try_from(host).expect("few hosts").to_be_bytes());
    bytes[8..16].copy_from_slice(&seed.to_be_bytes());
    PeerKey(bytes)
}

fn watch(
    world: &World<Sensor>,
    host: usize,
    observed: &mut Observed,
    served: &mut BTreeMap<Term, (usize, u64)>,
    promotions: &mut Vec<Promotion>,
    violations: &mut Vec<String>,
) {
    let Some(sensor) = world.core(host) else { return };
    let (at, life) = (world.now(), world.life(host));
    let mut complain = |what: String| {
        if violations.len() < VIOLATIONS_MAX {
            violations.push(format!("{at:?}: host {host} (life {life}): {what}"));
        }
    };
    if observed.life != life {
        *observed = Observed { life, ..Observed::default() };
    }
    let accepted = sensor.node.accepted();
    if accepted < observed.accepted {
        complain(format!("obeys {accepted:?} after {:?}", observed.accepted));
    }
    observed.accepted = accepted;
    let state = sensor.node.state(world.clock(host));
    let reigns = (state.role == Role::Representative).then_some(state.term);
    if let Some(term) = reigns {
        if observed.term.is_none() {
            promotions.push(Promotion { at, host, term });
        }
        if observed.term != Some(term) {
            let before = served.insert(term, (host, life));
            if before.is_some_and(|before| before != (host, life)) {
                complain(format!("uses term {term}, which {before:?} used"));
            }
            if world.disk(host).is_none_or(|disk| disk.term < term) {
                complain(format!("uses term {term}, its disk holds {:?}", world.disk(host)));
            }
        }
        if accepted.is_none_or(|claim| claim.holder != world.key(host)) {
            complain(format!("reigns under {term} and obeys {accepted:?}"));
        }
    }
    observed.term = reigns;
}
