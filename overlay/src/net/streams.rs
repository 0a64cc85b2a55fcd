//! Streams under the names of [`Protocol`]: opened on request, accepted within bounds.
//!
//! Rule: a stream is never lost silently. One that cannot be opened is told to who asked; one that comes
//! in reaches the event loop or is reset, and counted there.
//! Not here: what is said on a stream, and whether the peer may open it (`event_loop`, `accept`).

use super::circuits::is_circuit;
use super::protocol::Protocol;
use super::stream::Raw;
use super::way_out::all_rungs;
use futures::future;
use libp2p::PeerId;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, ReadyUpgrade, UpgradeInfo};
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::handler::{ConnectionEvent, ConnectionHandlerEvent, FullyNegotiatedInbound};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, Stream,
    StreamProtocol, StreamUpgradeError, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent,
    ToSwarm,
};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long the peer may take to agree on a protocol.
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
    /// It took too long or the connection broke.
    #[error("the stream could not be opened: {0}")]
    Failed(String),
}

/// Who waits for a stream.
pub(super) type Opened = oneshot::Sender<Result<Raw, OpenError>>;

/// A wish for a stream.
#[derive(Debug)]
pub(super) struct Wish {
    protocol: Protocol,
    opened: Opened,
}

/// A stream that a peer opened.
#[derive(Debug)]
pub(super) struct Inbound {
    /// Who.
    pub(super) peer: PeerId,
    /// For what.
    pub(super) protocol: Protocol,
    /// The stream.
    pub(super) stream: Raw,
}

/// The behaviour: one per swarm.
#[derive(Debug, Default)]
pub(super) struct Streams {
    connections: BTreeMap<PeerId, Vec<ConnectionId>>,
    actions: VecDeque<ToSwarm<Inbound, Wish>>,
}

impl Streams {
    /// Open a stream on the newest connection to `peer`; `opened` is told the result.
    pub(super) fn open(&mut self, peer: PeerId, protocol: Protocol, opened: Opened) {
        let newest = self.connections.get(&peer).and_then(|all| all.last());
        let Some(connection) = newest else {
            // Who asked may have gone: then nobody misses the answer.
            let _ = opened.send(Err(OpenError::NotConnected));
            return;
        };
        self.actions.push_back(ToSwarm::NotifyHandler {
            peer_id: peer,
            handler: NotifyHandler::One(*connection),
            event: Wish { protocol, opened },
        });
    }

    /// The connections to `peer`, oldest first.
    #[must_use]
    pub(super) fn connections(&self, peer: &PeerId) -> &[ConnectionId] {
        self.connections.get(peer).map_or(&[], Vec::as_slice)
    }
}

impl NetworkBehaviour for Streams {
    type ConnectionHandler = Handler;
    type ToSwarm = Inbound;

    /// A proxy that is dialled for a circuit is so by every rung. Other dials name their addresses and ask for no more.
    fn handle_pending_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: Option<PeerId>,
        addresses: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        Ok(addresses.iter().filter(|at| !is_circuit(at)).flat_map(|at| all_rungs(at).skip(1)).collect())
    }

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the swarm tells much that does not matter here")]
    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(new) => {
                self.connections.entry(new.peer_id).or_default().push(new.connection_id);
            }
            FromSwarm::ConnectionClosed(closed) => {
                if let Some(all) = self.connections.get_mut(&closed.peer_id) {
                    all.retain(|connection| *connection != closed.connection_id);
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
        _: ConnectionId,
        (protocol, stream): THandlerOutEvent<Self>,
    ) {
        self.actions.push_back(ToSwarm::GenerateEvent(Inbound { peer, protocol, stream }));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        // The swarm polls again after every call above, which are the only ones that add an action.
        self.actions.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The streams of one connection. It stays open until somebody closes it.
#[derive(Debug, Default)]
pub(super) struct Handler {
    wishes: VecDeque<Wish>,
    accepted: VecDeque<(Protocol, Raw)>,
    over: CancellationToken,
}

impl Handler {
    fn raw(&self, stream: Stream) -> Raw {
        Raw { stream, over: self.over.clone() }
    }
}

impl Drop for Handler {
    /// It lives as long as its connection.
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Wish;
    type ToBehaviour = (Protocol, Raw);
    type InboundProtocol = AnyProtocol;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Wish;

    fn listen_protocol(&self) -> SubstreamProtocol<AnyProtocol> {
        SubstreamProtocol::new(AnyProtocol, ()).with_timeout(NEGOTIATION_TIMEOUT)
    }

    fn connection_keep_alive(&self) -> bool {
        true
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<ReadyUpgrade<StreamProtocol>, Wish, (Protocol, Raw)>> {
        if let Some(accepted) = self.accepted.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(accepted));
        }
        if let Some(wish) = self.wishes.pop_front() {
            let upgrade = ReadyUpgrade::new(StreamProtocol::new(wish.protocol.name()));
            let protocol = SubstreamProtocol::new(upgrade, wish).with_timeout(NEGOTIATION_TIMEOUT);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, wish: Wish) {
        self.wishes.push_back(wish);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "changes of addresses and protocols do not matter here"
    )]
    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, AnyProtocol, ReadyUpgrade<StreamProtocol>, (), Wish>,
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

/// Accepts every [`Protocol`].
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyProtocol;

impl UpgradeInfo for AnyProtocol {
    type Info = StreamProtocol;
    type InfoIter = std::array::IntoIter<StreamProtocol, 6>;

    fn protocol_info(&self) -> Self::InfoIter {
        Protocol::ALL.map(|protocol| StreamProtocol::new(protocol.name())).into_iter()
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
