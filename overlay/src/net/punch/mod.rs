//! Hole punching: direct connections through address translators and firewalls. Two daemons with a circuit
//! between them dial each other at the same moment, each from the port at which it listens, so that the
//! translator or firewall on each side takes the other's packets for answers.
//!
//! ```text
//! circuit up, both admitted ─▶ `exchange` over it ─▶ both dial ─ connected ─▶ new streams are direct;
//!          ▲                                             │                the unused circuit is closed
//!          └─ three times in five minutes, then less ────┴─ failed (`tries`): the circuit stays; counted
//! ```
//! Rules: a daemon dials only peers with which admission is mutual, at an address that the proxy confirms and
//! that is no further inside than the proxy itself (`realm`). The daemon with the lesser key is the
//! initiator, and takes the listener's part of the connection. The initiator dials once more after
//! [`PLAIN_AFTER`], as an ordinary dialler, which succeeds if the other can be dialled directly. A daemon
//! that listens nowhere, or whose site has an HTTP proxy for outbound connections, takes no part.
//! Not here: on which connection a stream is opened (`streams`), whether the daemon is reachable without hole
//! punching (dialling shows it).

mod exchange;
mod observed_addresses;
mod realm;
mod tries;

use super::conversion::{multiaddr, peer_id, peer_key, socket_addr};
use super::event_loop::EventLoop;
use super::protocol::Protocol;
use super::stream::Stream;
use super::streams::{Inbound, OpenError, Opened};
use crate::clock;
use exchange::Error;
use libp2p::core::ConnectedPoint;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use observed_addresses::ObservedAddresses;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tries::{EXCHANGE_MAX, Part, Tries, UNDER_WAY_MAX};
use tunnel::ladder::TransportKind;
use wire::id::PeerKey;
use wire::time::Moment;

/// By then the packets of both sides, retransmitted once, should have met.
const PLAIN_AFTER: Duration = Duration::from_secs(3);

/// Role and port of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dial {
    /// From the port that this daemon listens at, while the peer does the same.
    Together(Part),
    /// From any port, like an ordinary dial.
    Plain,
}

/// Result of an exchange.
#[derive(Debug)]
pub(super) struct Agreed {
    peer: PeerKey,
    proxy: PeerKey,
    dial: Dial,
    /// The addresses at which to dial the peer now.
    at: Result<Vec<SocketAddr>, Error>,
}

/// State of hole punching in the event loop.
#[derive(Debug)]
pub(super) struct Punch {
    tries: Tries,
    /// On a proxy: the source addresses of daemons.
    observed: Arc<ObservedAddresses>,
    agree: mpsc::Sender<Agreed>,
    pub(super) agreed: mpsc::Receiver<Agreed>,
}

impl Default for Punch {
    fn default() -> Punch {
        let (agree, agreed) = mpsc::channel(UNDER_WAY_MAX);
        Punch { tries: Tries::default(), observed: Arc::default(), agree, agreed }
    }
}

impl Punch {
    pub(super) fn handle_closed(&self, connection: ConnectionId, peer: PeerKey) {
        self.observed.handle_closed(connection, peer);
    }
}

struct Opening {
    opened: oneshot::Receiver<Result<super::stream::Raw, OpenError>>,
    permit: super::connected_peers::StreamPermit,
}

impl Opening {
    async fn stream(self) -> Result<Stream, Error> {
        let raw = self.opened.await.map_err(|_| Error::Ended)??;
        Ok(Stream::new(raw, self.permit))
    }
}

impl EventLoop {
    /// Try to reach the other ends of circuits directly, and close circuits that are no longer used.
    pub(super) fn punch(&mut self, now: Moment) {
        for _ in 0..self.punch.tries.take_failed(now) {
            self.acceptor.figures.punches_failed_total.add();
        }
        for (connection, proxy) in self.circuits.through() {
            self.begin_punch(connection, proxy, now);
        }
        for connection in self.swarm.behaviour().streams.spare_circuits(now) {
            self.swarm.close_connection(connection);
        }
    }

    fn begin_punch(&mut self, connection: ConnectionId, proxy: PeerKey, now: Moment) {
        let Some(peer) = self.transports.peer(connection) else { return };
        let is_first = peer_key(self.swarm.local_peer_id()).is_some_and(|me| me < peer);
        let is_welcome = self.welcomes_punch(peer) && self.acceptor.connected_peers.is_ready(proxy);
        let is_direct = peer_id(peer).is_none_or(|id| self.swarm.behaviour().streams.has_direct(&id));
        if !is_first || is_direct || !is_welcome {
            return;
        }
        let Some(port) = self.begin_try(peer, proxy, Part::Begins, now) else { return };
        let with = self.open_punch(peer, Some(connection));
        let asked = self.open_punch(proxy, None);
        self.agree(peer, proxy, Part::Begins, async move {
            let (mut with, mut asked) = (with.stream().await?, asked.stream().await?);
            let (at, wait) = exchange::begin(peer, &mut with, &mut asked, port).await?;
            tokio::time::sleep(wait).await;
            Ok(at)
        });
    }

    /// Whether admission with `peer` is mutual, and `peer` is no visitor.
    fn welcomes_punch(&self, peer: PeerKey) -> bool {
        self.acceptor.connected_peers.is_ready(peer) && self.acceptor.principal(peer, Protocol::Punch).is_ok()
    }

    /// A peer opened a stream of this protocol, on a circuit or on its connection to this proxy.
    pub(super) fn serve_punch(&mut self, inbound: Inbound) {
        let Some(peer) = peer_key(&inbound.peer) else { return };
        let permit = self.acceptor.connected_peers.permit_inbound(peer);
        let (true, Ok(permit)) = (self.welcomes_punch(peer), permit) else {
            self.acceptor.figures.streams_refused_total.add();
            return;
        };
        let mut with = Stream::new(inbound.stream, permit);
        if let Some(proxy) = self.circuits.proxy(inbound.connection) {
            self.answer_punch(peer, proxy, with);
        } else if self.config.is_proxy && self.circuits.serves(peer) {
            let observed = Arc::clone(&self.punch.observed);
            self.tasks.spawn(async move {
                let attesting = exchange::attest(peer, &mut with, &observed);
                if let Ok(Err(error)) = tokio::time::timeout(EXCHANGE_MAX, attesting).await {
                    tracing::debug!(%peer, %error, "a stream failed");
                }
            });
        } else {
            self.acceptor.figures.streams_refused_total.add();
        }
    }

    fn answer_punch(&mut self, peer: PeerKey, proxy: PeerKey, mut with: Stream) {
        let Some(port) = self.begin_try(peer, proxy, Part::Answers, clock::now()) else { return };
        let asked = self.open_punch(proxy, None);
        self.agree(peer, proxy, Part::Answers, async move {
            let mut asked = asked.stream().await?;
            exchange::answer(peer, &mut with, &mut asked, port).await
        });
    }

    /// Start a try, if it is allowed; returns this daemon's own port.
    fn begin_try(&mut self, peer: PeerKey, proxy: PeerKey, part: Part, now: Moment) -> Option<u16> {
        let port = self.port_towards(proxy)?;
        self.punch.tries.begin(peer, part, now).then_some(port)
    }

    /// The port from which this daemon dials peers of the network in which `proxy` sees it.
    fn port_towards(&self, proxy: PeerKey) -> Option<u16> {
        if self.config.http_proxy.is_some() {
            return None;
        }
        let proxy = self.connected.get(&proxy)?.address?.ip();
        let kind = |ip: std::net::IpAddr| (ip.is_ipv4(), ip.is_loopback());
        self.listening.borrow().iter().find(|at| kind(at.ip()) == kind(proxy)).map(SocketAddr::port)
    }

    /// Open a stream of this protocol to `peer`, on that connection or else on the preferred one.
    fn open_punch(&mut self, peer: PeerKey, on: Option<ConnectionId>) -> Opening {
        let (opened, opening): (Opened, _) = oneshot::channel();
        let streams = &mut self.swarm.behaviour_mut().streams;
        match (peer_id(peer), on) {
            (Some(id), Some(connection)) => streams.open_on(id, connection, Protocol::Punch, opened),
            (Some(id), None) => streams.open(id, Protocol::Punch, opened),
            (None, _) => drop(opened),
        }
        Opening { opened: opening, permit: self.acceptor.connected_peers.permit_outbound(peer) }
    }

    fn agree(
        &mut self,
        peer: PeerKey,
        proxy: PeerKey,
        part: Part,
        exchange: impl Future<Output = Result<Vec<SocketAddr>, Error>> + Send + 'static,
    ) {
        let agree = self.punch.agree.clone();
        self.tasks.spawn(async move {
            let at = tokio::time::timeout(EXCHANGE_MAX, exchange).await.unwrap_or(Err(Error::Slow));
            let again = at.as_ref().ok().filter(|_| part == Part::Begins).cloned();
            // The event loop reads until it ends.
            let _ = agree.send(Agreed { peer, proxy, dial: Dial::Together(part), at }).await;
            if let Some(at) = again {
                tokio::time::sleep(PLAIN_AFTER).await;
                let _ = agree.send(Agreed { peer, proxy, dial: Dial::Plain, at: Ok(at) }).await;
            }
        });
    }

    pub(super) fn handle_agreed(&mut self, agreed: Agreed) {
        let (peer, now) = (agreed.peer, clock::now());
        if let Err(reason) = self.dial_agreed(agreed, now) {
            tracing::debug!(%peer, reason, "no direct connection beside a circuit");
            self.punch.tries.handle_failed(peer, now);
        }
    }

    fn dial_agreed(&mut self, agreed: Agreed, now: Moment) -> Result<(), String> {
        let Agreed { peer, proxy, dial, at } = agreed;
        let at = at.map_err(|error| error.to_string())?;
        let id = peer_id(peer).ok_or("its key is none")?;
        if self.swarm.behaviour().streams.has_direct(&id) {
            return Ok(());
        }
        let proxy = self.connected.get(&proxy).and_then(|proxy| proxy.address).ok_or("its proxy is gone")?;
        if !at.iter().all(|at| realm::may_dial(*at, proxy.ip())) {
            return Err(format!("{at:?} is further inside than the proxy"));
        }
        if let Dial::Together(part) = dial
            && !self.punch.tries.handle_agreed(peer, part, now)
        {
            return Err("it was not agreed in time".to_owned());
        }
        let at = at.into_iter().map(multiaddr).collect();
        let options = DialOpts::peer_id(id).condition(PeerCondition::Always).addresses(at);
        let options = match dial {
            // Both sides dial, so one has to take the other role in the handshake.
            Dial::Together(Part::Begins) => options.override_role().build(),
            Dial::Together(Part::Answers) => options.build(),
            Dial::Plain => options.allocate_new_port().build(),
        };
        self.swarm.dial(options).map_err(|error| error.to_string())
    }

    /// A connection with `peer` is established by `transport`; returns the transport under which to count it.
    pub(super) fn handle_punched(
        &mut self,
        connection: ConnectionId,
        peer: PeerKey,
        point: &ConnectedPoint,
        transport: TransportKind,
    ) -> TransportKind {
        if transport != TransportKind::Direct {
            return transport;
        }
        if let ConnectedPoint::Listener { send_back_addr, .. } = point
            && self.config.is_proxy
            && let Some(from) = socket_addr(send_back_addr)
        {
            self.punch.observed.handle_established(connection, peer, from);
        }
        if !self.punch.tries.handle_stands(peer) {
            return transport;
        }
        self.acceptor.figures.punched_total.add();
        TransportKind::Punched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::Authenticator;
    use crate::identity::admission::Gate;
    use crate::identity::key::Key;
    use crate::identity::revocation_lists::RevocationLists;
    use crate::identity::trust::Trust;
    use crate::net::event_loop::{Config, Connected};
    use std::collections::{BTreeMap, BTreeSet};

    #[tokio::test]
    async fn who_was_agreed_with_is_dialled_no_further_inside_than_the_proxy() {
        let [me, peer, proxy] = [1, 2, 3].map(|number| Key::from_seed([number; 32]));
        let gate =
            Gate::new(Trust::of_directory(BTreeMap::new()), RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, None));
        let (mut event_loop, _handle, _events) =
            EventLoop::open(Config::new(Vec::new()), &me, gate, 1).expect("opens");
        let (peer, proxy) = (peer.peer(), proxy.peer());
        let now = clock::now();
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let address = Some(at("198.51.100.1:7318"));
        event_loop
            .connected
            .insert(proxy, Connected { since: now, greeted: now, greeted_ahead: 0, address, place: None });
        let mut dial = |at: &[SocketAddr]| {
            event_loop.dial_agreed(Agreed { peer, proxy, dial: Dial::Plain, at: Ok(at.to_vec()) }, now)
        };
        let there = at("203.0.113.7:7318");
        assert_eq!(dial(&[there]), Ok(()));
        for inside in ["10.0.0.5:22", "127.0.0.1:22", "203.0.113.7:0"] {
            let refused = dial(&[there, at(inside)]);
            assert!(refused.is_err_and(|why| why.contains("further inside than the proxy")), "{inside}");
        }
    }
}
