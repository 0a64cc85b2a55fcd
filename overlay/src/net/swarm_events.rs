//! Handling of swarm events: connections, greetings, idle and silent connections.
//!
//! Rule: the daemon receives one `Ready` for a peer, when both sides have admitted each other, and one
//! `Gone`, when its last connection ended.
//! Not here: the loop itself (`event_loop`), dialling (`dialling`).

use super::circuits;
use super::connected_peers::Change;
use super::conversion::{peer_id, peer_key, socket_addr};
use super::event_loop::{BehaviourEvent, Connected, Event, EventLoop, Greeted};
use super::frames::{self, Reader};
use super::handle::VERDICT_LEN_MAX_BYTES;
use super::hello::{Hello, VERSION, Verdict};
use super::outbound;
use super::protocol::Protocol;
use super::redial::Target;
use super::stream::Stream;
use crate::clock;
use libp2p::core::ConnectedPoint;
use libp2p::swarm::{ConnectionId, SwarmEvent};
use libp2p::{PeerId, ping};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::Instrument as _;
use tunnel::ladder::TransportKind;
use wire::at_end::AtEnd;
use wire::id::{HostName, PeerKey};
use wire::time::Moment;

/// Timeout for a connected peer to show a certificate: a join is over by then.
const STRANGER_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle timeout of a connection that is not held on purpose: the next question can still use it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// At this percentage of taken places, idle connections are closed sooner.
const CROWDED_PERCENT: u64 = 75;

/// Timeout for the answer to a hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Handle an event of the swarm.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events of the swarm do not matter here")]
pub(super) fn handle(this: &mut EventLoop, event: SwarmEvent<BehaviourEvent>) {
    match event {
        SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
            this.handle_established(peer_id, connection_id, &endpoint);
        }
        SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, .. } => {
            this.handle_closed(peer_id, connection_id, num_established);
        }
        SwarmEvent::OutgoingConnectionError { connection_id, error, .. } => {
            this.handle_dial_error(connection_id, &error);
        }
        SwarmEvent::IncomingConnectionError { error, .. } => {
            this.acceptor.figures.connections_refused_total.add();
            tracing::debug!(%error, "an inbound connection failed");
        }
        SwarmEvent::NewListenAddr { address, .. } => {
            this.handle_new_address(&address);
            if let Some(address) = socket_addr(&address).filter(|_| !circuits::is_circuit(&address)) {
                this.listening.send_modify(|all| all.push(address));
            }
        }
        SwarmEvent::ListenerClosed { listener_id, .. } => this.handle_listener_closed(listener_id),
        SwarmEvent::Behaviour(BehaviourEvent::Proxy(event)) => this.handle_circuit(&event),
        SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "a listener of the overlay failed"),
        SwarmEvent::Behaviour(BehaviourEvent::Ping(event)) => this.handle_ping(&event),
        SwarmEvent::Behaviour(BehaviourEvent::Streams(inbound)) if inbound.protocol == Protocol::Punch => {
            this.serve_punch(inbound);
        }
        SwarmEvent::Behaviour(BehaviourEvent::Streams(inbound)) => {
            let Some(peer) = peer_key(&inbound.peer) else { return };
            let (acceptor, address) = (Arc::clone(&this.acceptor), this.address(peer));
            let serving =
                async move { acceptor.serve((peer, address), inbound.protocol, inbound.stream).await };
            // The peer's address, in every log line about its admission.
            let from = match (inbound.protocol.is_open_to_strangers(), address) {
                (true, Some(address)) => tracing::error_span!("from", %address),
                _ => tracing::Span::none(),
            };
            this.tasks.spawn(serving.instrument(from));
        }
        _ => {}
    }
}

impl EventLoop {
    fn handle_established(&mut self, id: PeerId, connection: ConnectionId, point: &ConnectedPoint) {
        self.acceptor.figures.connected_total.add();
        self.count_connections();
        let Some(peer) = peer_key(&id) else {
            self.swarm.close_connection(connection);
            return;
        };
        let now = clock::now();
        self.acceptor.connected_peers.arrive(peer);
        self.keepalive.handle_heard(connection, now);
        // A circuit's address is the proxy's, and this peer cannot be reached there.
        let address = socket_addr(point.get_remote_address()).filter(|_| !point.is_relayed());
        self.circuits.handle_established(connection, point);
        let transport = self.handle_punched(connection, peer, point, self.transport(point));
        tracing::debug!(%peer, transport = transport.name(), "connected");
        self.transports.handle_established(connection, peer, transport);
        self.acceptor.figures.set_transports(&self.transports);
        let place = (!point.is_relayed()).then(|| point.get_remote_address().iter().take(2).collect());
        // A further connection does not restart the timeout for the certificate.
        let since = self.connected.get(&peer).map_or(now, |before| before.since);
        self.connected.insert(
            peer,
            Connected { since, greeted: now, greeted_ahead: clock::calendar_ahead_micros(), address, place },
        );
        if let Some(target @ Target::Seed(_)) = self.dialling.handle_established(connection) {
            self.redial.handle_connected(&target, now);
            self.seeds.insert(peer, target);
        }
        self.redial.handle_connected(&Target::Peer(peer), now);
        self.greet(peer, id);
    }

    /// The transport of a connection.
    fn transport(&self, point: &ConnectedPoint) -> TransportKind {
        match point {
            _ if point.is_relayed() => TransportKind::Circuit,
            ConnectedPoint::Dialer { address, .. } => self.routes.handle_connected(address),
            ConnectedPoint::Listener { send_back_addr, .. } => outbound::transport_of(send_back_addr),
        }
    }

    /// Show `peer` this daemon's certificate, if it is connected.
    pub(super) fn greet_peer(&mut self, peer: PeerKey) {
        if let (Some(id), Some(connected)) = (peer_id(peer), self.connected.get_mut(&peer)) {
            connected.greeted = clock::now();
            connected.greeted_ahead = clock::calendar_ahead_micros();
            self.greet(peer, id);
        }
    }

    /// Send this daemon's hello on a new stream.
    fn greet(&mut self, peer: PeerKey, id: PeerId) {
        let proof = self.acceptor.admission.proof();
        if proof.is_empty() {
            // No certificate yet: this daemon is about to join.
            return;
        }
        let hello = Hello {
            version: VERSION,
            start: self.start,
            program: self.config.program.clone(),
            proof,
            time: AtEnd(Some(clock::calendar())),
        };
        let (opened, opening) = oneshot::channel();
        self.swarm.behaviour_mut().streams.open(id, Protocol::Hello, opened);
        let welcomes = self.welcomes.clone();
        let permit = self.acceptor.connected_peers.permit_outbound(peer);
        self.tasks.spawn(async move {
            let Ok(Ok(stream)) = opening.await else { return };
            let stream = Stream::new(stream, permit);
            let said = tokio::time::timeout(HELLO_TIMEOUT, say_hello(stream, &hello)).await;
            let greeted = match said {
                Ok(Ok(Some(Verdict::Welcome))) => Ok(()),
                Ok(Ok(Some(Verdict::Refused(reason)))) => Err(reason),
                // The connection ends, or has just been replaced: another hello follows.
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            };
            // The event loop reads until it ends.
            let _ = welcomes.send((peer, greeted)).await;
        });
    }

    pub(super) fn handle_welcome(&mut self, peer: PeerKey, greeted: Greeted) {
        match greeted {
            Ok(()) if self.connected.contains_key(&peer) => {
                let change = self.acceptor.connected_peers.admitted_by(peer);
                self.handle_change(peer, &change);
            }
            Ok(()) => {}
            Err(reason) => {
                self.acceptor.figures.hellos_lost_total.add();
                self.log_refusal(peer, &reason);
                self.pending_events.push_back(Event::Unwelcome { peer, reason });
                self.handle_refusal(peer);
                self.close(peer);
            }
        }
    }

    /// One side refused the other: delay the next dial of the peer, and of the seed that led to it.
    fn handle_refusal(&mut self, peer: PeerKey) {
        let now = clock::now();
        let seed = self.seeds.get(&peer).cloned();
        for target in std::iter::once(Target::Peer(peer)).chain(seed) {
            self.redial.handle_refused(&target, now);
        }
    }

    /// Remote address of a peer; `None` if it is connected through a proxy.
    fn address(&self, peer: PeerKey) -> Option<SocketAddr> {
        self.connected.get(&peer).and_then(|connected| connected.address)
    }

    /// Log a refusal of this daemon. A refused peer is dialled for ever, so the number of lines is limited.
    fn log_refusal(&mut self, peer: PeerKey, reason: &str) {
        if let Some(left_out) = self.refusals.take(peer, reason, clock::now()) {
            let address = self.address(peer).map(tracing::field::display);
            tracing::warn!(target: "audit", %peer, address, reason, left_out, "this daemon was refused");
        }
    }

    pub(super) fn handle_change(&mut self, peer: PeerKey, change: &Change) {
        if change.is_refused {
            self.handle_refusal(peer);
            return;
        }
        if !self.connected.contains_key(&peer) {
            self.acceptor.connected_peers.leave(peer);
            return;
        }
        if change.is_restarted {
            self.handle_restarted(peer);
        }
        if change.is_ready
            && let Some(principal) = self.acceptor.connected_peers.principal(peer)
        {
            let address = self.connected.get(&peer).and_then(|connected| connected.address);
            let seed = self.seeds.get(&peer).cloned();
            for target in std::iter::once(Target::Peer(peer)).chain(seed) {
                self.redial.handle_welcomed(&target);
            }
            self.pending_events.push_back(Event::Ready { principal, address });
        }
        self.acceptor.figures.guests.set(self.acceptor.connected_peers.ready_len() as u64);
    }

    /// The peer runs in a new process: its older connections are dead.
    fn handle_restarted(&mut self, peer: PeerKey) {
        let Some(id) = peer_id(peer) else { return };
        self.pending_events.push_back(Event::Gone(peer));
        let connections = self.swarm.behaviour().streams.connections(&id);
        for old in connections.iter().rev().skip(1) {
            self.swarm.close_connection(*old);
        }
        self.greet(peer, id);
    }

    fn handle_closed(&mut self, id: PeerId, connection: ConnectionId, left: u32) {
        self.acceptor.figures.disconnected_total.add();
        self.count_connections();
        self.keepalive.handle_closed(connection);
        self.transports.handle_closed(connection);
        self.acceptor.figures.set_transports(&self.transports);
        let Some(peer) = peer_key(&id) else { return };
        self.circuits.handle_closed(connection, peer, left);
        self.punch.handle_closed(connection, peer);
        self.acceptor.figures.registered.set(self.circuits.registered_len());
        if left > 0 {
            return;
        }
        let now = clock::now();
        self.connected.remove(&peer);
        self.redial.handle_failed(&Target::Peer(peer), now);
        if let Some(seed) = self.seeds.remove(&peer) {
            self.redial.handle_failed(&seed, now);
        }
        if self.acceptor.connected_peers.leave(peer) {
            self.pending_events.push_back(Event::Gone(peer));
        }
        self.acceptor.figures.guests.set(self.acceptor.connected_peers.ready_len() as u64);
    }

    fn count_connections(&self) {
        let info = self.swarm.network_info();
        self.acceptor.figures.connections.set(u64::from(info.connection_counters().num_established()));
    }

    /// A failed ping is ignored: the lack of answers shows the same.
    fn handle_ping(&mut self, event: &ping::Event) {
        if event.result.is_ok() {
            self.keepalive.handle_heard(event.connection, clock::now());
        }
    }

    fn close_silent(&mut self, now: Moment) {
        for connection in self.keepalive.take_silent(now) {
            self.acceptor.figures.silent_total.add();
            let peer = self.transports.peer(connection).map(tracing::field::display);
            tracing::info!(peer, "a silent connection is closed");
            self.swarm.close_connection(connection);
        }
    }

    /// Run the periodic checks, and close connections that are silent or idle, whose peer showed no
    /// certificate in time, or whose certificate no longer holds.
    pub(super) fn sweep(&mut self) {
        let now = clock::now();
        self.close_silent(now);
        self.pool.sweep(now);
        self.look_at_calendar(now);
        self.greet_again(now);
        self.register(now);
        self.punch(now);
        self.look_at_places();
        let mut unwanted = Vec::new();
        for (peer, connected) in &self.connected {
            match self.acceptor.connected_peers.principal(*peer) {
                None if now.since(connected.since) >= STRANGER_TIMEOUT => unwanted.push((*peer, None)),
                None => {}
                Some(principal) => match self.acceptor.admission.review(&principal) {
                    Err(reason) => unwanted.push((*peer, Some(reason))),
                    Ok(()) if self.is_idle(*peer) => unwanted.push((*peer, None)),
                    Ok(()) => {}
                },
            }
        }
        self.close_all(unwanted);
    }

    fn is_idle(&self, peer: PeerKey) -> bool {
        let idle = if self.is_crowded { self.config.crowded_idle } else { IDLE_TIMEOUT };
        !self.redial.wants(&Target::Peer(peer))
            && !self.seeds.contains_key(&peer)
            && !self.circuits.carries(peer)
            && self.acceptor.connected_peers.is_idle(peer, idle)
    }

    fn look_at_places(&mut self) {
        let (places, most) = (self.connected.len() as u64, u64::from(self.config.connections_max));
        let is_crowded = places * 100 >= most * CROWDED_PERCENT;
        if is_crowded && !self.is_crowded {
            tracing::warn!(
                connections = places,
                most,
                "most places for connections are taken; who is idle is closed sooner"
            );
        } else if self.is_crowded && !is_crowded {
            tracing::info!(connections = places, most, "below the connection limit again");
        }
        self.is_crowded = is_crowded;
    }

    fn close_all(&mut self, unwanted: Vec<(PeerKey, Option<String>)>) {
        for (peer, reason) in unwanted {
            if let Some(reason) = reason {
                let principal = self.acceptor.connected_peers.principal(peer);
                let host = principal.as_ref().and_then(|known| known.host.as_ref()).map(HostName::as_str);
                let address = self.address(peer).map(tracing::field::display);
                tracing::warn!(target: "audit", %peer, host, address, reason, "a daemon is no longer admitted");
            }
            self.close(peer);
        }
    }
}

async fn say_hello(mut stream: Stream, hello: &Hello) -> Result<Option<Verdict>, frames::Error> {
    frames::write(&mut stream, hello, Protocol::Hello.question_len_max_bytes()).await?;
    Reader::new(stream, VERDICT_LEN_MAX_BYTES).next().await
}
