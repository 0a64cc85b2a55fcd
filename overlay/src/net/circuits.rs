//! Circuits: connections to other daemons through a proxy, and the circuits that this daemon carries if it is
//! one.
//!
//! ```text
//! inside ── dials and stays ──▶ proxy ◀── dials ── any client
//!    └──────── TLS or Noise, and Yamux from end to end, as bytes through the proxy ─────┘
//! ```
//! Registrations and circuits use libp2p's relay protocol (circuit relay v2, `docs/decisions/0016-proxy.md`);
//! its default limits are meant for introductions only (128 KiB, two minutes), so all of them are set here.
//! Rules: a registration that ended is requested again while the proxy is connected; a connection that
//! carries a circuit or a registration is not idle.
//! Not here: admission (`identity`): the proxy checks the certificate of every peer that connects, and the
//! two ends of a circuit check each other's.

use super::conversion::{peer_id, peer_key};
use super::event_loop::EventLoop;
use super::redial::Target;
use crate::clock;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol as Part;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId, relay};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;
use wire::id::PeerKey;
use wire::join::Directory;
use wire::time::Moment;

/// Most daemons registered with one proxy: a representative and two standbys of some hundred domains, and
/// hosts that can only dial out.
pub(super) const REGISTERED_MAX: usize = 1024;

/// Most circuits through one proxy.
pub(super) const CIRCUITS_MAX: usize = 1024;

/// Most circuits of one daemon, and most connections by which one daemon is registered.
pub(super) const CIRCUITS_EACH_MAX: usize = 64;

/// Lifetime of a circuit; it is made again after it. A week, so that reports are rarely interrupted.
const CIRCUIT_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// Most bytes of one circuit: more than a week at 1 GB/s.
const CIRCUIT_LEN_MAX_BYTES: u64 = 1 << 50;

/// Lifetime of a registration; it is renewed before it ends.
const REGISTRATION_LIFE: Duration = Duration::from_secs(3600);

/// Rate limit of registrations and circuits for each daemon: a burst, and the time until one more.
const ASKED_AT_ONCE: NonZeroU32 = NonZeroU32::new(60).expect("not zero");
const ASKED_EACH: Duration = Duration::from_secs(2);

/// The same for each address, since a whole site behind one address registers at once after a restart of the
/// proxy: a burst of as many as a proxy holds, then ten per second. New keys cost an attacker nothing,
/// addresses do.
const ASKED_AT_ONCE_OF_ADDRESS: NonZeroU32 = NonZeroU32::new(1024).expect("not zero");
const ASKED_EACH_OF_ADDRESS: Duration = Duration::from_millis(100);

/// Retry interval of a registration that ended.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Limits of a proxy. No default of libp2p is used.
pub(super) fn limits() -> relay::Config {
    let none = relay::Config {
        max_reservations: REGISTERED_MAX,
        max_reservations_per_peer: CIRCUITS_EACH_MAX,
        reservation_duration: REGISTRATION_LIFE,
        reservation_rate_limiters: Vec::new(),
        max_circuits: CIRCUITS_MAX,
        max_circuits_per_peer: CIRCUITS_EACH_MAX,
        max_circuit_duration: CIRCUIT_LIFE,
        max_circuit_bytes: CIRCUIT_LEN_MAX_BYTES,
        circuit_src_rate_limiters: Vec::new(),
    };
    none.reservation_rate_per_peer(ASKED_AT_ONCE, ASKED_EACH)
        .circuit_src_per_peer(ASKED_AT_ONCE, ASKED_EACH)
        .reservation_rate_per_ip(ASKED_AT_ONCE_OF_ADDRESS, ASKED_EACH_OF_ADDRESS)
        .circuit_src_per_ip(ASKED_AT_ONCE_OF_ADDRESS, ASKED_EACH_OF_ADDRESS)
}

/// The address of a daemon that is registered with `proxy` at `at`.
pub(super) fn through(at: Multiaddr, proxy: PeerId) -> Multiaddr {
    at.with(Part::P2p(proxy)).with(Part::P2pCircuit)
}

/// Whether an address leads through a proxy.
pub(super) fn is_circuit(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Part::P2pCircuit)
}

/// The proxy in an address.
fn proxy_of(address: &Multiaddr) -> Option<PeerKey> {
    let parts: Vec<Part<'_>> = address.iter().collect();
    let at = parts.iter().position(|part| *part == Part::P2pCircuit)?;
    match parts.get(at.checked_sub(1)?) {
        Some(Part::P2p(proxy)) => peer_key(proxy),
        _ => None,
    }
}

/// A registration that this daemon requested.
#[derive(Debug)]
struct Registration {
    listener: ListenerId,
    proxy: PeerKey,
    stands: bool,
}

/// Circuits and registrations of this daemon, and those that it carries as a proxy.
#[derive(Debug, Default)]
pub(super) struct Circuits {
    via: Vec<Directory>,
    /// At most one with each proxy.
    registrations: Vec<Registration>,
    /// When a registration with each proxy was last requested.
    asked: BTreeMap<PeerKey, Moment>,
    /// Connections of this daemon through a proxy.
    through: BTreeMap<ConnectionId, PeerKey>,
    /// On a proxy: number of circuits and registrations that it carries for each daemon.
    carried: BTreeMap<PeerKey, usize>,
    /// On a proxy: number of connections by which each daemon is registered.
    registered: BTreeMap<PeerKey, usize>,
    open: u64,
}

impl Circuits {
    pub(super) fn new(via: Vec<Directory>) -> Circuits {
        Circuits { via, ..Circuits::default() }
    }

    /// Whether `peer` is a proxy that this daemon registers with.
    pub(super) fn is_via(&self, peer: PeerKey) -> bool {
        self.via.iter().any(|proxy| proxy.key == peer)
    }

    /// Whether the connection to `peer` carries a circuit or a registration, so that it is not idle.
    pub(super) fn carries(&self, peer: PeerKey) -> bool {
        self.through.values().any(|proxy| *proxy == peer) || self.serves(peer)
    }

    pub(super) fn handle_established(&mut self, connection: ConnectionId, point: &ConnectedPoint) {
        let address = match point {
            ConnectedPoint::Dialer { address, .. } => address,
            ConnectedPoint::Listener { local_addr, .. } => local_addr,
        };
        if let Some(proxy) = proxy_of(address) {
            self.through.insert(connection, proxy);
        }
    }

    /// A connection with `peer` ended, and `left` remain. libp2p does not report which of them carry a
    /// registration; all that remain are assumed to.
    pub(super) fn handle_closed(&mut self, connection: ConnectionId, peer: PeerKey, left: u32) {
        self.through.remove(&connection);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        self.set_registered(peer, |standing| standing.min(left));
    }

    /// Connections of this daemon through a proxy, each with the proxy.
    pub(super) fn through(&self) -> Vec<(ConnectionId, PeerKey)> {
        self.through.iter().map(|(connection, proxy)| (*connection, *proxy)).collect()
    }

    /// The proxy of one such connection.
    pub(super) fn proxy(&self, connection: ConnectionId) -> Option<PeerKey> {
        self.through.get(&connection).copied()
    }

    /// On a proxy: whether `peer` is registered with it, or has a circuit through it.
    pub(super) fn serves(&self, peer: PeerKey) -> bool {
        self.registered.contains_key(&peer) || self.carried.contains_key(&peer)
    }

    /// Number of daemons registered with this one.
    pub(super) fn registered_len(&self) -> u64 {
        self.registered.len() as u64
    }

    fn set_registered(&mut self, peer: PeerKey, by: impl FnOnce(usize) -> usize) {
        match by(self.registered.get(&peer).copied().unwrap_or(0)) {
            0 => self.registered.remove(&peer),
            standing => self.registered.insert(peer, standing),
        };
    }

    fn change(&mut self, peer: &PeerId, by: isize) {
        let Some(peer) = peer_key(peer) else { return };
        let count = self.carried.entry(peer).or_insert(0);
        *count = count.saturating_add_signed(by);
        if *count == 0 {
            self.carried.remove(&peer);
        }
    }
}

impl EventLoop {
    /// Hold connections to the proxies that this daemon registers with.
    pub(super) fn dial_proxies(&mut self) {
        for proxy in self.circuits.via.clone() {
            self.keep(Target::Peer(proxy.key), proxy.addresses);
        }
    }

    /// Request every registration that is missing.
    pub(super) fn register(&mut self, now: Moment) {
        if self.config.is_visitor {
            return;
        }
        let wanted: Vec<PeerKey> = self.circuits.via.iter().map(|proxy| proxy.key).collect();
        for proxy in wanted {
            let is_asked = self.circuits.registrations.iter().any(|asked| asked.proxy == proxy);
            let is_soon =
                self.circuits.asked.get(&proxy).is_some_and(|asked| now.since(*asked) < AGAIN_AFTER);
            let place = self.connected.get(&proxy).and_then(|connected| connected.place.clone());
            let (Some(place), Some(id)) = (place, peer_id(proxy)) else { continue };
            if is_asked || is_soon || !self.acceptor.connected_peers.is_ready(proxy) {
                continue;
            }
            self.circuits.asked.insert(proxy, now);
            match self.swarm.listen_on(through(place, id)) {
                Ok(listener) => {
                    self.circuits.registrations.push(Registration { listener, proxy, stands: false });
                }
                Err(error) => tracing::warn!(%proxy, %error, "cannot register with a proxy"),
            }
        }
    }

    /// A registration was accepted, or this daemon listens at a new address of its own.
    pub(super) fn handle_new_address(&mut self, address: &Multiaddr) {
        if let Some(proxy) = proxy_of(address) {
            // This event comes once for each address of the proxy.
            let mut asked = self.circuits.registrations.iter_mut();
            let Some(registration) = asked.find(|one| one.proxy == proxy && !one.stands) else { return };
            registration.stands = true;
            tracing::info!(%proxy, "registered with a proxy");
            self.count_registrations();
        } else if self.config.is_proxy {
            // The address goes into the answer to registrations; libp2p accepts none without an address.
            self.swarm.add_external_address(address.clone());
        }
    }

    pub(super) fn handle_listener_closed(&mut self, listener: ListenerId) {
        let Some(at) = self.circuits.registrations.iter().position(|one| one.listener == listener) else {
            return;
        };
        let Registration { proxy, stands, .. } = self.circuits.registrations.swap_remove(at);
        if stands {
            tracing::info!(%proxy, "the registration with a proxy ended");
        }
        self.circuits.asked.insert(proxy, clock::now());
        self.count_registrations();
    }

    fn count_registrations(&self) {
        let standing = self.circuits.registrations.iter().filter(|registration| registration.stands);
        self.acceptor.figures.registrations.set(standing.count() as u64);
    }

    /// The circuits or registrations of this proxy changed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what did not start shows what failed")]
    pub(super) fn handle_circuit(&mut self, event: &relay::Event) {
        match event {
            relay::Event::ReservationReqAccepted { src_peer_id, renewed: false } => {
                if let Some(peer) = peer_key(src_peer_id) {
                    self.circuits.set_registered(peer, |standing| standing + 1);
                }
            }
            // libp2p sends `ReservationClosed` for every connection that ends, registered or not:
            // `handle_closed` counts instead.
            relay::Event::ReservationTimedOut { src_peer_id } => {
                if let Some(peer) = peer_key(src_peer_id) {
                    self.circuits.set_registered(peer, |standing| standing.saturating_sub(1));
                }
            }
            relay::Event::CircuitReqAccepted { src_peer_id, dst_peer_id } => {
                self.circuits.change(src_peer_id, 1);
                self.circuits.change(dst_peer_id, 1);
                self.circuits.open += 1;
                self.acceptor.figures.circuits_total.add();
            }
            relay::Event::CircuitClosed { src_peer_id, dst_peer_id, .. } => {
                self.circuits.change(src_peer_id, -1);
                self.circuits.change(dst_peer_id, -1);
                self.circuits.open = self.circuits.open.saturating_sub(1);
            }
            relay::Event::ReservationReqDenied { .. } | relay::Event::CircuitReqDenied { .. } => {
                self.acceptor.figures.circuits_refused_total.add();
            }
            _ => {}
        }
        self.acceptor.figures.registered.set(self.circuits.registered_len());
        self.acceptor.figures.circuits.set(self.circuits.open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::net::conversion::multiaddr;

    #[test]
    fn the_proxy_of_an_address_is_found() {
        let key = PeerKey([1; 32]);
        let at = multiaddr("10.0.0.1:7318".parse().expect("an address"));
        assert_eq!((proxy_of(&at), is_circuit(&at)), (None, false));
        let Some(id) = peer_id(key) else { panic!("no point of the curve") };
        let circuit = through(at, id);
        assert_eq!((proxy_of(&circuit), is_circuit(&circuit)), (Some(key), true));
        assert_eq!(proxy_of(&Multiaddr::empty().with(Part::P2pCircuit)), None);
    }

    #[test]
    fn no_limit_of_introductions_is_left() {
        let limits = limits();
        assert!(
            limits.max_circuit_bytes > 1 << 40 && limits.max_circuit_duration >= Duration::from_secs(86_400)
        );
        assert!(u32::try_from(limits.max_circuit_duration.as_secs()).is_ok(), "it travels in 32 bits");
    }

    #[test]
    fn new_keys_from_one_address_ask_no_faster() {
        let mut limits = limits();
        let at = multiaddr("10.0.0.1:7318".parse().expect("an address"));
        let elsewhere = multiaddr("10.0.0.2:7318".parse().expect("an address"));
        let now = now_of_libp2p();
        for limiters in [&mut limits.reservation_rate_limiters, &mut limits.circuit_src_rate_limiters] {
            let mut ask = |from: &Multiaddr| {
                let stranger = PeerId::random();
                limiters.iter_mut().all(|limiter| limiter.try_next(stranger, from, now))
            };
            assert_eq!((0..5_000).filter(|_| ask(&at)).count(), REGISTERED_MAX, "a site may come at once");
            assert!(ask(&elsewhere));
        }
    }

    /// The current time for the rate limiters of libp2p.
    #[allow(clippy::disallowed_methods)] // They take no other clock's moments.
    fn now_of_libp2p() -> std::time::Instant {
        std::time::Instant::now()
    }

    #[test]
    fn a_newer_registration_stands_when_an_older_connection_ends() {
        let (peer, mut circuits) = (PeerKey([1; 32]), Circuits::default());
        let end = |circuits: &mut Circuits, left| {
            circuits.handle_closed(ConnectionId::new_unchecked(1), peer, left);
            (circuits.carries(peer), circuits.registered_len())
        };
        circuits.set_registered(peer, |standing| standing + 1);
        circuits.set_registered(peer, |standing| standing + 1);
        assert_eq!(end(&mut circuits, 1), (true, 1));
        assert_eq!(end(&mut circuits, 0), (false, 0));
        // A connection that was dialled beside it carried no registration.
        circuits.set_registered(peer, |standing| standing + 1);
        assert_eq!(end(&mut circuits, 1), (true, 1));
        circuits.set_registered(peer, |standing| standing.saturating_sub(1));
        assert_eq!(end(&mut circuits, 1), (false, 0));
    }
}
