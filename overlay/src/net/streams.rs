//! Libp2p behaviour for streams of [`Protocol`]: opens them on request, and accepts inbound ones.
//!
//! Rule: a stream is never lost silently. If one cannot be opened, the caller gets the error; an inbound one
//! reaches the event loop, or is reset there and counted.
//! Not here: the messages on a stream, and whether the peer may open it (`event_loop`, `accept`).

use super::circuits::is_circuit;
use super::outbound::all_transports;
use super::protocol::Protocol;
use super::stream::Raw;
use crate::clock;
use futures::future;
use libp2p::PeerId;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, NegotiationError, ReadyUpgrade, UpgradeInfo};
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::handler::{ConnectionEvent, ConnectionHandlerEvent, FullyNegotiatedInbound};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, Stream,
    StreamProtocol, StreamUpgradeError, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent,
    ToSwarm,
};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wire::time::Moment;

/// Timeout for the negotiation of a stream's protocol.
const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a stream could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no connection.
    #[error("there is no connection to it")]
    NotConnected,
    /// The peer does not speak the protocol.
    #[error("it does not speak {0}; is it of another version?")]
    Unsupported(Protocol),
    /// The negotiation timed out or the connection broke.
    #[error("the stream could not be opened: {0}")]
    Failed(String),
}

/// Sends the opened stream, or the error, to the caller.
pub(super) type Opened = oneshot::Sender<Result<Raw, OpenError>>;

/// Request for a stream.
#[derive(Debug)]
pub(super) struct OpenRequest {
    protocol: Protocol,
    opened: Opened,
}

/// Inbound stream.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) peer: PeerId,
    pub(super) protocol: Protocol,
    pub(super) stream: Raw,
    pub(super) connection: ConnectionId,
}

/// A spare circuit is closed when it and a direct connection beside it are this old: streams that were
/// started on it are counted by then.
const BESIDE: Duration = Duration::from_secs(5);

/// Connection on which streams can be opened.
#[derive(Debug)]
struct OpenConnection {
    connection: ConnectionId,
    is_circuit: bool,
    since: Moment,
    /// Also held by its handler and by each of its streams; its count shows whether a stream is open.
    used: Weak<()>,
}

/// Behaviour of the streams: one per swarm.
#[derive(Debug)]
pub(super) struct Streams {
    spoken: &'static [Protocol],
    /// Connections of each peer, oldest first.
    connections: BTreeMap<PeerId, Vec<OpenConnection>>,
    /// Connections that are not established yet, with the `used` of their handlers.
    made: BTreeMap<ConnectionId, Weak<()>>,
    actions: VecDeque<ToSwarm<Inbound, OpenRequest>>,
}

impl Streams {
    /// Of a daemon that accepts the protocols of `spoken`.
    pub(super) fn new(spoken: &'static [Protocol]) -> Streams {
        Streams { spoken, connections: BTreeMap::new(), made: BTreeMap::new(), actions: VecDeque::new() }
    }

    /// Open a stream on the newest direct connection to `peer`, a hello on the newest connection of all: a
    /// restarted peer is reached there, while its older connections may be dead. The result is sent to
    /// `opened`.
    pub(super) fn open(&mut self, peer: PeerId, protocol: Protocol, opened: Opened) {
        let open_connections = self.open_connections(&peer);
        let direct =
            open_connections.iter().rev().find(|open| !open.is_circuit && protocol != Protocol::Hello);
        let Some(connection) = direct.or(open_connections.last()).map(|open| open.connection) else {
            // The caller may have gone: then the error is not needed.
            let _ = opened.send(Err(OpenError::NotConnected));
            return;
        };
        self.open_on(peer, connection, protocol, opened);
    }

    /// Open a stream on `connection`.
    pub(super) fn open_on(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        protocol: Protocol,
        opened: Opened,
    ) {
        self.actions.push_back(ToSwarm::NotifyHandler {
            peer_id: peer,
            handler: NotifyHandler::One(connection),
            event: OpenRequest { protocol, opened },
        });
    }

    /// The connections to `peer`, oldest first.
    #[must_use]
    pub(super) fn connections(&self, peer: &PeerId) -> Vec<ConnectionId> {
        self.open_connections(peer).iter().map(|open| open.connection).collect()
    }

    /// Whether a connection to `peer` does not pass through a proxy.
    #[must_use]
    pub(super) fn has_direct(&self, peer: &PeerId) -> bool {
        self.open_connections(peer).iter().any(|open| !open.is_circuit)
    }

    /// Circuits without an open stream that have a direct connection beside them.
    #[must_use]
    pub(super) fn spare_circuits(&self, now: Moment) -> Vec<ConnectionId> {
        let stands = |open: &&OpenConnection| now.since(open.since) >= BESIDE;
        // The handler holds one reference.
        let is_spare = |open: &&OpenConnection| open.is_circuit && open.used.strong_count() <= 1;
        let of_peer = |open_connections: &Vec<OpenConnection>| {
            let is_direct = open_connections.iter().filter(stands).any(|open| !open.is_circuit);
            let spare = open_connections.iter().filter(stands).filter(is_spare);
            spare.filter(|_| is_direct).map(|open| open.connection).collect::<Vec<_>>()
        };
        self.connections.values().flat_map(of_peer).collect()
    }

    fn open_connections(&self, peer: &PeerId) -> &[OpenConnection] {
        self.connections.get(peer).map_or(&[], Vec::as_slice)
    }

    fn handler(&mut self, connection: ConnectionId) -> Handler {
        let handler = Handler::new(self.spoken);
        // Drop entries whose connection another behaviour refused: their handler was dropped.
        self.made.retain(|_, used| used.strong_count() > 0);
        self.made.insert(connection, Arc::downgrade(&handler.used));
        handler
    }
}

impl NetworkBehaviour for Streams {
    type ConnectionHandler = Handler;
    type ToSwarm = Inbound;

    /// A proxy that libp2p dials for a circuit is dialled by every transport. Other dials list all their
    /// addresses, and need nothing added.
    fn handle_pending_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: Option<PeerId>,
        addresses: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        Ok(addresses.iter().filter(|at| !is_circuit(at)).flat_map(|at| all_transports(at).skip(1)).collect())
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler(connection))
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler(connection))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most events of the swarm do not matter here")]
    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(new) => {
                self.connections.entry(new.peer_id).or_default().push(OpenConnection {
                    connection: new.connection_id,
                    is_circuit: new.endpoint.is_relayed(),
                    since: clock::now(),
                    used: self.made.remove(&new.connection_id).unwrap_or_default(),
                });
            }
            FromSwarm::ConnectionClosed(closed) => {
                if let Some(all) = self.connections.get_mut(&closed.peer_id) {
                    all.retain(|open| open.connection != closed.connection_id);
                    if all.is_empty() {
                        self.connections.remove(&closed.peer_id);
                    }
                }
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        (protocol, stream): THandlerOutEvent<Self>,
    ) {
        let inbound = Inbound { peer, protocol, stream, connection };
        self.actions.push_back(ToSwarm::GenerateEvent(inbound));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        // The swarm polls again after every call above, and only those calls add an action.
        self.actions.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// Streams of one connection. It keeps the connection alive until this side or the peer closes it.
#[derive(Debug)]
pub(super) struct Handler {
    spoken: &'static [Protocol],
    requests: VecDeque<OpenRequest>,
    accepted: VecDeque<(Protocol, Raw)>,
    over: CancellationToken,
    used: Arc<()>,
}

impl Handler {
    fn new(spoken: &'static [Protocol]) -> Handler {
        let (requests, accepted) = (VecDeque::new(), VecDeque::new());
        Handler { spoken, requests, accepted, over: CancellationToken::new(), used: Arc::default() }
    }

    fn raw(&self, stream: Stream) -> Raw {
        Raw { stream, over: self.over.clone(), used: Arc::clone(&self.used) }
    }
}

impl Drop for Handler {
    /// The handler is dropped with its connection.
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl ConnectionHandler for Handler {
    type FromBehaviour = OpenRequest;
    type ToBehaviour = (Protocol, Raw);
    type InboundProtocol = AnyProtocol;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = OpenRequest;

    fn listen_protocol(&self) -> SubstreamProtocol<AnyProtocol> {
        SubstreamProtocol::new(AnyProtocol(self.spoken), ()).with_timeout(NEGOTIATION_TIMEOUT)
    }

    fn connection_keep_alive(&self) -> bool {
        true
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<ReadyUpgrade<StreamProtocol>, OpenRequest, (Protocol, Raw)>> {
        if let Some(accepted) = self.accepted.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(accepted));
        }
        if let Some(request) = self.requests.pop_front() {
            let upgrade = ReadyUpgrade::new(StreamProtocol::new(request.protocol.name()));
            let protocol = SubstreamProtocol::new(upgrade, request).with_timeout(NEGOTIATION_TIMEOUT);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, request: OpenRequest) {
        self.requests.push_back(request);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "changes of addresses and protocols do not matter here"
    )]
    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, AnyProtocol, ReadyUpgrade<StreamProtocol>, (), OpenRequest>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound {
                protocol: (protocol, stream),
                ..
            }) => {
                let raw = self.raw(stream);
                self.accepted.push_back((protocol, raw));
            }
            ConnectionEvent::FullyNegotiatedOutbound(done) => {
                let _ = done.info.opened.send(Ok(self.raw(done.protocol)));
            }
            ConnectionEvent::DialUpgradeError(failed) => {
                let protocol = failed.info.protocol;
                let _ = failed.info.opened.send(Err(open_error(protocol, &failed.error)));
            }
            _ => {}
        }
    }
}

fn open_error(protocol: Protocol, error: &StreamUpgradeError<Infallible>) -> OpenError {
    match error {
        StreamUpgradeError::NegotiationFailed => OpenError::Unsupported(protocol),
        StreamUpgradeError::Timeout => OpenError::Failed("no answer in time".to_owned()),
        StreamUpgradeError::Io(error) => {
            tracing::debug!(%protocol, %error, "a connection broke while a stream was opened");
            OpenError::Failed("the connection broke".to_owned())
        }
        StreamUpgradeError::Apply(never) => match *never {},
    }
}

/// Whether the error means that the peer does not speak the protocol. The question is sent together with the
/// proposal, so the rejection only arrives when the answer is read.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NegotiationError>());
    matches!(inner, Some(NegotiationError::Failed))
}

/// Upgrade that accepts each [`Protocol`] of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyProtocol(&'static [Protocol]);

impl UpgradeInfo for AnyProtocol {
    type Info = StreamProtocol;
    type InfoIter = std::iter::Map<std::slice::Iter<'static, Protocol>, fn(&Protocol) -> StreamProtocol>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.iter().map(|protocol| StreamProtocol::new(protocol.name()))
    }
}

impl InboundUpgrade<Stream> for AnyProtocol {
    type Output = (Protocol, Stream);
    type Error = Infallible;
    type Future = future::Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, name: StreamProtocol) -> Self::Future {
        let protocol = Protocol::by_name(name.as_ref()).expect("only names of `protocol_info` are agreed on");
        future::ready(Ok((protocol, stream)))
    }
}
