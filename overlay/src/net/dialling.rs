//! Dialling of the targets that [`super::redial`] reports as due: resolve names, dial direct addresses, and a
//! moment later circuits.
//!
//! ```text
//! due ─▶ resolve ─▶ direct addresses, all at once ─ one answers ─▶ connected
//!                        │ none within HEAD_START, or all failed
//!                        └──▶ circuits too ─ one answers ─▶ connected; a later direct connection takes over
//! ```
//! Rules: a direct connection is preferred, however near the proxy is; an attempt fails when all its dials
//! have failed.
//! Not here: when to dial (`redial`), on which connection a stream is opened (`streams`), hole punching
//! (`punch`).

use super::circuits;
use super::conversion::{multiaddr, peer_id};
use super::dial_error::{self, DialErrorKind};
use super::event_loop::{Event, EventLoop};
use super::outbound;
use super::redial::{Dial, Target};
use crate::clock;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol as Part;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, DialError};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::sync::mpsc;
use wire::address::Address;
use wire::time::Moment;

/// Time for which only direct addresses are dialled: a near, reachable peer has answered by then.
const HEAD_START: Duration = Duration::from_millis(250);

/// Timeout for resolving a name.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// Most addresses of one target that are dialled in one attempt.
const ADDRESSES_MAX: usize = 16;

/// Most of these addresses that lead through proxies.
const CIRCUITS_MAX: usize = 4;

/// Most steps of attempts that may wait for the event loop.
const STEPS_MAX: usize = 256;

/// The next step of an attempt.
#[derive(Debug)]
pub(super) enum Step {
    /// The target's names resolve to these addresses.
    Resolved(Target, Vec<Multiaddr>),
    /// The head start of direct addresses is over.
    Started(Target),
}

/// Dial attempts in progress.
#[derive(Debug)]
pub(super) struct Dialling {
    dials: BTreeMap<ConnectionId, Target>,
    /// Circuits to dial after the head start.
    circuits: BTreeMap<Target, Vec<Multiaddr>>,
    step: mpsc::Sender<Step>,
    pub(super) steps: mpsc::Receiver<Step>,
}

impl Default for Dialling {
    fn default() -> Dialling {
        let (step, steps) = mpsc::channel(STEPS_MAX);
        Dialling { dials: BTreeMap::new(), circuits: BTreeMap::new(), step, steps }
    }
}

impl Dialling {
    /// The target that was dialled by `connection`, which is now established; its circuits are no longer
    /// needed.
    pub(super) fn handle_established(&mut self, connection: ConnectionId) -> Option<Target> {
        let target = self.dials.remove(&connection)?;
        self.circuits.remove(&target);
        Some(target)
    }
}

impl EventLoop {
    /// Start every attempt that is due; returns when the next one is.
    pub(super) fn dial_due(&mut self) -> Option<Moment> {
        while let Some(Dial { target, endpoints }) = self.redial.poll_dial(clock::now()) {
            let step = self.dialling.step.clone();
            // A site with its own HTTP proxy may be unable to resolve names outside.
            let by_name = self.config.http_proxy.is_some();
            self.tasks.spawn(async move {
                let addresses = look_up(&endpoints, by_name).await;
                // The event loop reads until it ends.
                let _ = step.send(Step::Resolved(target, addresses)).await;
            });
        }
        self.redial.poll_timeout()
    }

    /// Continue an attempt.
    pub(super) fn handle_step(&mut self, step: Step) {
        match step {
            Step::Resolved(target, addresses) => self.dial(target, addresses),
            Step::Started(target) => self.dial_circuits(&target),
        }
    }

    /// Dial `addresses`, to which the names of `target` resolve now.
    pub(super) fn dial(&mut self, target: Target, addresses: Vec<Multiaddr>) {
        let is_proxy = matches!(&target, Target::Peer(peer) if self.circuits.is_via(*peer));
        if is_proxy {
            // A firewall on the path may let only web traffic through.
            let transports =
                addresses.iter().flat_map(outbound::all_transports).take(ADDRESSES_MAX).collect();
            return self.dial_at(target, transports, PeerCondition::DisconnectedAndNotDialing);
        }
        let (circuits, direct): (Vec<_>, Vec<_>) = addresses.into_iter().partition(circuits::is_circuit);
        let first = match (direct.is_empty(), circuits.is_empty()) {
            (true, _) => circuits,
            (false, true) => direct,
            (false, false) => {
                self.dialling.circuits.insert(target.clone(), circuits);
                let (step, started) = (self.dialling.step.clone(), Step::Started(target.clone()));
                self.tasks.spawn(async move {
                    tokio::time::sleep(HEAD_START).await;
                    let _ = step.send(started).await;
                });
                direct
            }
        };
        self.dial_at(target, first, PeerCondition::DisconnectedAndNotDialing);
    }

    /// Dial the circuits of an attempt, if they are still needed.
    fn dial_circuits(&mut self, target: &Target) {
        let Some(circuits) = self.dialling.circuits.remove(target) else { return };
        if self.redial.wants(target) && !self.is_connected(target) {
            self.dial_at(target.clone(), circuits, PeerCondition::Disconnected);
        }
    }

    fn is_connected(&self, target: &Target) -> bool {
        matches!(target, Target::Peer(peer) if self.connected.contains_key(peer))
    }

    fn dial_at(&mut self, target: Target, addresses: Vec<Multiaddr>, condition: PeerCondition) {
        let options = match (&target, addresses.first()) {
            (_, None) => None,
            (Target::Peer(peer), Some(_)) => peer_id(*peer)
                .map(|id| DialOpts::peer_id(id).condition(condition).addresses(addresses).build()),
            // One address per attempt: a name with several is resolved again, which gives them in another
            // order.
            (Target::Seed(_), Some(address)) => {
                Some(DialOpts::unknown_peer_id().address(address.clone()).build())
            }
        };
        let Some(options) = options else {
            self.acceptor.figures.dials_failed_total.add();
            return self.handle_failed_attempt(&target, Some(DialErrorKind::Nowhere));
        };
        let connection = options.connection_id();
        self.dialling.dials.insert(connection, target);
        if let Err(error) = self.swarm.dial(options) {
            self.handle_dial_error(connection, &error);
        }
    }

    pub(super) fn handle_dial_error(&mut self, connection: ConnectionId, error: &DialError) {
        let Some(target) = self.dialling.dials.remove(&connection) else { return };
        if matches!(error, DialError::LocalPeerId { .. }) {
            // A list of seeds may contain this daemon's own address.
            self.redial.forget(&target);
            return;
        }
        self.acceptor.figures.dials_failed_total.add();
        tracing::debug!(?target, %error, "a daemon cannot be reached");
        self.dial_circuits(&target);
        // Another dial of the same attempt may still succeed, or already has.
        let is_under_way = self.dialling.dials.values().any(|other| *other == target);
        if is_under_way || self.is_connected(&target) {
            return;
        }
        self.handle_failed_attempt(&target, dial_error::of(error));
    }

    /// Report a failed attempt to a visitor or a daemon that joins, and schedule the next one.
    fn handle_failed_attempt(&mut self, target: &Target, why: Option<DialErrorKind>) {
        let is_reported = self.config.is_visitor || self.config.is_joining;
        if let (true, Some(why)) = (is_reported, why) {
            self.pending_events.push_back(Event::DialFailed(target.clone(), why));
        }
        self.redial.handle_failed(target, clock::now());
    }
}

/// The addresses of the endpoints, in their order, those through proxies last; with `by_name`, names are not
/// resolved here.
async fn look_up(endpoints: &[Address], by_name: bool) -> Vec<Multiaddr> {
    let (direct, through): (Vec<_>, Vec<_>) = endpoints.iter().partition(|at| at.via().is_none());
    let mut found = Vec::new();
    for endpoint in direct {
        found.extend(places(endpoint, by_name).await);
    }
    let mut circuits = Vec::new();
    for endpoint in through {
        let Some(proxy) = endpoint.via().and_then(peer_id) else { continue };
        circuits.extend(places(endpoint, by_name).await.into_iter().map(|at| circuits::through(at, proxy)));
    }
    circuits.truncate(CIRCUITS_MAX);
    found.truncate(ADDRESSES_MAX - circuits.len());
    found.extend(circuits);
    found
}

async fn places(endpoint: &Address, by_name: bool) -> Vec<Multiaddr> {
    match endpoint.host().parse::<IpAddr>() {
        Ok(ip) => vec![multiaddr(SocketAddr::new(ip, endpoint.port()))],
        Err(_) if by_name => {
            let name = Part::Dns(endpoint.host().to_owned().into());
            vec![Multiaddr::empty().with(name).with(Part::Tcp(endpoint.port()))]
        }
        Err(_) => look_up_all(&[endpoint]).await.into_iter().map(multiaddr).collect(),
    }
}

async fn look_up_all(endpoints: &[&Address]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for endpoint in endpoints {
        let looking = tokio::net::lookup_host((endpoint.host(), endpoint.port()));
        match tokio::time::timeout(LOOK_UP_TIMEOUT, looking).await {
            Ok(Ok(addresses)) => found.extend(addresses),
            Ok(Err(error)) => tracing::debug!(%endpoint, %error, "a name cannot be looked up"),
            Err(_) => tracing::debug!(%endpoint, "a name could not be looked up in time"),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::Authenticator;
    use crate::identity::admission::Gate;
    use crate::identity::key::Key;
    use crate::identity::revocation_lists::RevocationLists;
    use crate::identity::trust::Trust;
    use crate::net::event_loop::Config;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use wire::id::PeerKey;

    const DIRECT: &str = "203.0.113.7:7318";

    fn open(config: Config) -> EventLoop {
        let key = Key::from_seed([1; 32]);
        let gate =
            Gate::new(Trust::of_directory(BTreeMap::new()), RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, None));
        EventLoop::open(config, &key, gate, 1).expect("opens").0
    }

    /// An event loop that starts an attempt at a daemon with a direct address and one through a proxy.
    async fn attempt() -> (EventLoop, Target) {
        let [peer, proxy] = [2, 3].map(|number| Key::from_seed([number; 32]).peer());
        let mut event_loop = open(Config::new(Vec::new()));
        let at: Address = DIRECT.parse().expect("an address");
        let through = at.through(proxy).expect("an address");
        let target = Target::Peer(peer);
        event_loop.keep(target.clone(), vec![through.clone(), at.clone()]);
        assert!(event_loop.redial.poll_dial(clock::now()).is_some(), "due at once");
        let addresses = look_up(&[through, at], false).await;
        event_loop.dial(target.clone(), addresses);
        (event_loop, target)
    }

    fn dials(event_loop: &EventLoop) -> Vec<ConnectionId> {
        event_loop.dialling.dials.keys().copied().collect()
    }

    fn has_failed(event_loop: &EventLoop) -> bool {
        event_loop.redial.poll_timeout().is_some()
    }

    fn key_of(target: &Target) -> PeerKey {
        let Target::Peer(peer) = target else { panic!("{target:?}") };
        *peer
    }

    #[tokio::test]
    async fn circuits_are_dialled_after_the_head_start_and_an_attempt_fails_with_its_last_dial() {
        let (mut event_loop, target) = attempt().await;
        let first = dials(&event_loop);
        assert_eq!((first.len(), event_loop.dialling.circuits.len()), (1, 1));
        event_loop.handle_step(Step::Started(target.clone()));
        event_loop.handle_step(Step::Started(target));
        let both = dials(&event_loop);
        assert_eq!((both.len(), event_loop.dialling.circuits.len()), (2, 0));
        event_loop.handle_dial_error(first[0], &DialError::Aborted);
        assert!(!has_failed(&event_loop), "the circuit may stand yet");
        let circuit = dials(&event_loop)[0];
        event_loop.handle_dial_error(circuit, &DialError::Aborted);
        assert!(has_failed(&event_loop));
    }

    #[tokio::test]
    async fn no_circuit_is_dialled_where_a_direct_address_answers() {
        let (mut event_loop, target) = attempt().await;
        let direct = dials(&event_loop)[0];
        assert_eq!(event_loop.dialling.handle_established(direct), Some(target.clone()));
        event_loop.handle_step(Step::Started(target));
        assert!(dials(&event_loop).is_empty() && event_loop.dialling.circuits.is_empty());
    }

    #[tokio::test]
    async fn circuits_are_dialled_at_once_where_direct_addresses_fail() {
        let (mut event_loop, _) = attempt().await;
        let first = dials(&event_loop);
        event_loop.handle_dial_error(first[0], &DialError::Aborted);
        assert!(!has_failed(&event_loop) && dials(&event_loop).len() == 1);
        assert_ne!(dials(&event_loop), first);
    }

    #[tokio::test]
    async fn a_visitor_and_a_daemon_that_joins_learn_that_a_name_has_no_address() {
        let check = |config: Config, is_reported: bool| {
            let (mut event_loop, target) = (open(config), Target::Peer(PeerKey([2; 32])));
            event_loop.keep(target.clone(), Vec::new());
            assert!(event_loop.redial.poll_dial(clock::now()).is_some(), "due at once");
            event_loop.handle_step(Step::Resolved(target.clone(), Vec::new()));
            let reported = event_loop
                .pending_events
                .iter()
                .any(|event| matches!(event, Event::DialFailed(of, DialErrorKind::Nowhere) if *of == target));
            assert_eq!((reported, has_failed(&event_loop)), (is_reported, true));
        };
        check(Config::new(Vec::new()), false);
        check(Config { is_visitor: true, ..Config::new(Vec::new()) }, true);
        check(Config { is_joining: true, ..Config::new(Vec::new()) }, true);
    }

    #[tokio::test]
    async fn no_circuit_is_dialled_to_who_is_connected_or_no_longer_wanted() {
        let (mut event_loop, target) = attempt().await;
        event_loop.redial.forget(&target);
        event_loop.handle_step(Step::Started(target.clone()));
        assert_eq!(dials(&event_loop).len(), 1, "it is not wanted");
        let (mut event_loop, target) = attempt().await;
        let now = clock::now();
        let here = crate::net::event_loop::Connected {
            since: now,
            greeted: now,
            greeted_ahead: 0,
            address: None,
            place: None,
        };
        event_loop.connected.insert(key_of(&target), here);
        let direct = dials(&event_loop)[0];
        event_loop.handle_dial_error(direct, &DialError::Aborted);
        assert!(dials(&event_loop).is_empty() && !has_failed(&event_loop));
    }
}
