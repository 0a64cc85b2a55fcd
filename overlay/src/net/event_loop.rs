//! Event loop that owns the swarm: commands and inbound streams in, events out.
//!
//! Rule: the loop never waits for the daemon. Arrivals and departures of peers wait in a queue of their own;
//! questions and streams that find the daemon's queue full are refused to the peer.
//! Not here: the handling of swarm events (`swarm_events`), serving a stream (`accept`).

use super::Error;
use super::accept::{Answerer, StreamAcceptor};
use super::circuits::Circuits;
use super::connected_peers::{Change, ConnectedPeers};
use super::connection_transports::ConnectionTransports;
use super::conversion::peer_id;
use super::dial_error::DialErrorKind;
use super::dialling::Dialling;
use super::figures::Figures;
use super::half_open::HalfOpen;
use super::handle::{Answer, Command, Handle};
use super::hello::Admission;
use super::keepalive::Keepalive;
use super::outbound::{ARRIVALS_MAX, HttpProxy, OutboundRoutes, OutboundTransport};
use super::protocol::Protocol;
use super::punch::Punch;
use super::question_pool::QuestionPool;
use super::redial::{Redial, Target};
use super::security::{Offer, Security};
use super::stream::Stream;
use super::streams::Streams;
use crate::clock;
use crate::identity::admission::Principal;
use crate::identity::key::Key;
use crate::identity::repeats::Repeats;
use futures::StreamExt as _;
use libp2p::connection_limits;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{ConnectionId, NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, Swarm, ping, relay};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::id::PeerKey;
use wire::join::Directory;
use wire::time::Moment;

/// Most commands that may wait in the queue.
const COMMANDS_MAX: usize = 256;

/// Most questions, streams and peer events that may wait for the daemon.
const EVENTS_MAX: usize = 1024;

/// Timeout for closing the connections at shutdown.
const CLOSING_MAX: Duration = Duration::from_millis(500);

/// Interval of the check for expired connections, streams and registrations.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Most connections of a daemon: a domain of 500 members, seven directories, other domains' questions.
pub const CONNECTIONS_MAX: u32 = 1024;

/// Most connections of a directory, whatever its limit on descriptors: they take some 700 MiB.
pub const DIRECTORY_CONNECTIONS_MAX: u32 = 16_384;

/// Descriptors of a directory that are reserved for other uses: clients of its query interface, files.
const BESIDE: u64 = 4096;

/// Idle timeout while most places are taken, for connections that are not held on purpose. It is longer than
/// a representative and its standbys are silent, so their connections stay and idle ones make room.
const CROWDED_IDLE: Duration = Duration::from_secs(20);

/// Connections allowed beyond the maximum, so that a peer that comes then can receive the reason of its
/// refusal.
pub(super) const SPARE: u32 = 64;

/// Most connections with one peer: both sides dialled at once, directly and through proxies, and those of the
/// peer's previous process that have not timed out yet.
pub const CONNECTIONS_OF_PEER_MAX: u32 = 8;

/// Most connections of a directory that may have `descriptors` open: a representative and two standbys of
/// each domain hold one each, and sensors connect for a while.
#[must_use]
pub fn directory_connections(descriptors: u64) -> u32 {
    let most = descriptors.saturating_sub(BESIDE).max(descriptors / 2);
    u32::try_from(most).unwrap_or(u32::MAX).min(DIRECTORY_CONNECTIONS_MAX)
}

/// Configuration of a daemon's overlay.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to listen at; if empty, the daemon does not listen.
    pub listen: Vec<SocketAddr>,
    pub connections_max: u32,
    /// Idle timeout while most places are taken, for connections that are not held on purpose.
    pub crowded_idle: Duration,
    /// Program and version, sent to peers.
    pub program: String,
    /// Proxies to register with: they are dialled, and other daemons reach this one through them.
    pub via: Vec<Directory>,
    /// Whether this daemon is a visitor: it dials the proxies of `via`, and does not register there.
    pub is_visitor: bool,
    /// Whether this daemon is joining a domain: like a visitor, it receives [`Event::DialFailed`].
    pub is_joining: bool,
    /// Whether this daemon is a proxy: it carries circuits for others.
    pub is_proxy: bool,
    /// The site's own HTTP proxy, where outbound connections have to use one.
    pub http_proxy: Option<HttpProxy>,
    /// Encryption protocols and their order.
    pub offer: Offer,
    /// Stream protocols that are accepted.
    pub spoken: &'static [Protocol],
}

impl Config {
    /// The default configuration, listening at `listen`.
    #[must_use]
    pub fn new(listen: Vec<SocketAddr>) -> Config {
        let program = concat!("visperf ", env!("CARGO_PKG_VERSION")).to_owned();
        Config {
            listen,
            connections_max: CONNECTIONS_MAX,
            crowded_idle: CROWDED_IDLE,
            program,
            via: Vec::new(),
            is_visitor: false,
            is_joining: false,
            is_proxy: false,
            http_proxy: None,
            offer: Offer::default(),
            spoken: &Protocol::ALL,
        }
    }
}

/// Question of a peer. If it is dropped without a reply, the peer receives a refusal, and for
/// [`Protocol::Query`] the end of the stream.
#[derive(Debug)]
pub struct Question {
    /// The peer that asks.
    pub peer: PeerKey,
    /// Its principal; `None` only for a protocol open to strangers.
    pub principal: Option<Arc<Principal>>,
    /// Remote address of its connection; `None` through a proxy.
    pub address: Option<SocketAddr>,
    pub protocol: Protocol,
    pub body: Vec<u8>,
    /// Sends the answer.
    pub reply: oneshot::Sender<Answer>,
    /// Tracing span with the peer's address, for the log of the part that answers.
    pub from: tracing::Span,
}

/// Events that the overlay sends to the daemon.
#[derive(Debug)]
pub enum Event {
    /// Both sides have admitted each other: questions and streams are possible.
    Ready {
        principal: Arc<Principal>,
        /// Remote address of its connection.
        address: Option<SocketAddr>,
    },
    /// The peer's last connection ended.
    Gone(PeerKey),
    /// The peer refused this daemon.
    Unwelcome {
        peer: PeerKey,
        /// The reason that the peer sent.
        reason: String,
    },
    /// A dial failed, with its reason; only sent to a visitor and to a daemon that joins.
    DialFailed(Target, DialErrorKind),
    Question(Question),
    /// A lasting stream that this daemon has already accepted.
    Stream {
        /// The peer that opened it.
        peer: PeerKey,
        principal: Arc<Principal>,
        protocol: Protocol,
        stream: Stream,
    },
}

#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p::swarm::derive_prelude")]
pub(super) struct Behaviour {
    pub(super) limits: connection_limits::Behaviour,
    pub(super) ping: ping::Behaviour,
    pub(super) streams: Streams,
    pub(super) through: relay::client::Behaviour,
    pub(super) proxy: Toggle<relay::Behaviour>,
}

/// Result of a greeting: the peer admitted this daemon, or its reason for refusing.
pub(super) type Greeted = Result<(), String>;

/// A connected peer.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) since: Moment,
    /// When this daemon's certificate was sent to it last.
    pub(super) greeted: Moment,
    /// Lead of the wall clock over the monotonic clock at that time, in microseconds.
    pub(super) greeted_ahead: i64,
    pub(super) address: Option<SocketAddr>,
    /// The address that was dialled, perhaps with a host name; `None` for a circuit.
    pub(super) place: Option<Multiaddr>,
}

/// The event loop. See the rule at the head of this file.
pub struct EventLoop {
    pub(super) swarm: Swarm<Behaviour>,
    pub(super) config: Config,
    pub(super) start: u64,
    pub(super) acceptor: Arc<StreamAcceptor>,
    pub(super) redial: Redial,
    pub(super) connected: BTreeMap<PeerKey, Connected>,
    pub(super) dialling: Dialling,
    /// The seed through which each peer was found.
    pub(super) seeds: BTreeMap<PeerKey, Target>,
    pub(super) keepalive: Keepalive<ConnectionId>,
    pub(super) circuits: Circuits,
    /// Hole punching: direct connections beside the circuits.
    pub(super) punch: Punch,
    pub(super) routes: Arc<OutboundRoutes>,
    /// Transport of each connection.
    pub(super) transports: Arc<ConnectionTransports>,
    /// Idle streams that are reused for questions.
    pub(super) pool: Arc<QuestionPool>,
    /// Whether most places are taken, so that idle connections are closed sooner.
    pub(super) is_crowded: bool,
    /// Refusals of this daemon by peers, to limit how often each is logged.
    pub(super) refusals: Repeats,
    /// Lead of the wall clock over the monotonic clock, in microseconds, to detect that the wall clock was
    /// set.
    pub(super) calendar_ahead: i64,
    /// Arrivals and departures of peers that the daemon has not received yet.
    pub(super) pending_events: VecDeque<Event>,
    pub(super) tasks: JoinSet<()>,
    pub(super) welcomes: mpsc::Sender<(PeerKey, Greeted)>,
    pub(super) listening: watch::Sender<Vec<SocketAddr>>,
    inbox: Inbox,
}

struct Inbox {
    commands: mpsc::Receiver<Command>,
    greeted: mpsc::Receiver<(PeerKey, Change)>,
    welcomes: mpsc::Receiver<(PeerKey, Greeted)>,
}

impl EventLoop {
    /// Open the listeners, and be ready to [`EventLoop::run`]. Call it within a tokio runtime.
    ///
    /// # Errors
    /// If the key cannot be used or an address cannot be listened on.
    pub fn open(
        config: Config,
        key: &Key,
        admission: Arc<dyn Admission>,
        start: u64,
    ) -> Result<(EventLoop, Handle, mpsc::Receiver<Event>), Error> {
        let me = key.peer();
        let connections_max = config.connections_max;
        let routes = OutboundRoutes::new(config.http_proxy.clone());
        let (arrivals, arrivals_rx) = mpsc::channel(ARRIVALS_MAX);
        let half_open = HalfOpen::default();
        let outbound = OutboundTransport::new(Arc::clone(&routes), arrivals_rx, half_open.clone());
        let figures = Arc::new(Figures::default());
        let security = Security::new(&key.for_transport(), config.offer, Arc::clone(&figures))?;
        let swarm = super::swarm::build(&config, key, security, (outbound, half_open))?;
        let (commands, commands_rx) = mpsc::channel(COMMANDS_MAX);
        let (events, events_rx) = mpsc::channel(EVENTS_MAX);
        let (greeted, greeted_rx) = mpsc::channel(COMMANDS_MAX);
        let (welcomes, welcomes_rx) = mpsc::channel(COMMANDS_MAX);
        let (listening, listening_rx) = watch::channel(Vec::new());
        let connected_peers = Arc::new(ConnectedPeers::default());
        let transports = Arc::new(ConnectionTransports::default());
        let pool = Arc::new(QuestionPool::default());
        let handle = Handle {
            me,
            transports: Arc::clone(&transports),
            commands,
            connected_peers: Arc::clone(&connected_peers),
            figures: Arc::clone(&figures),
            listening: listening_rx,
            arrivals,
            pool: Arc::clone(&pool),
        };
        let inbox = Inbox { commands: commands_rx, greeted: greeted_rx, welcomes: welcomes_rx };
        let mut event_loop = EventLoop {
            swarm,
            circuits: Circuits::new(config.via.clone()),
            punch: Punch::default(),
            routes,
            transports,
            pool,
            config,
            start,
            acceptor: Arc::new(StreamAcceptor {
                admission,
                connected_peers,
                figures,
                events,
                greeted,
                refused: Mutex::default(),
                connections_max,
                answerer: OnceLock::new(),
            }),
            is_crowded: false,
            redial: Redial::new(start),
            connected: BTreeMap::new(),
            dialling: Dialling::default(),
            seeds: BTreeMap::new(),
            keepalive: Keepalive::new(SWEEP_INTERVAL, clock::now()),
            refusals: Repeats::default(),
            calendar_ahead: crate::clock::calendar_ahead_micros(),
            pending_events: VecDeque::new(),
            tasks: JoinSet::new(),
            welcomes,
            listening,
            inbox,
        };
        event_loop.dial_proxies();
        Ok((event_loop, handle, events_rx))
    }

    /// Let `answerer` answer questions of the query interface; they are then no events. The first one that is
    /// set stays.
    pub fn answer_queries(&self, answerer: Arc<dyn Answerer>) {
        let _ = self.acceptor.answerer.set(answerer);
    }

    /// Run until `shutdown`, then close the connections.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        let events = self.acceptor.events.clone();
        loop {
            let due = self.dial_due();
            tokio::select! {
                () = shutdown.cancelled() => break,
                event = self.swarm.select_next_some() => self.handle_swarm(event),
                Some(command) = self.inbox.commands.recv() => self.obey(command),
                Some((peer, change)) = self.inbox.greeted.recv() => self.handle_change(peer, &change),
                Some((peer, greeted)) = self.inbox.welcomes.recv() => self.handle_welcome(peer, greeted),
                Some(step) = self.dialling.steps.recv() => self.handle_step(step),
                Some(agreed) = self.punch.agreed.recv() => self.handle_agreed(agreed),
                Some(_) = self.tasks.join_next() => {}
                room = events.reserve(), if !self.pending_events.is_empty() => {
                    if let (Ok(room), Some(event)) = (room, self.pending_events.pop_front()) {
                        room.send(event);
                    }
                }
                () = sleep_until(due) => {}
                _ = sweep.tick() => self.sweep(),
            }
        }
        self.tasks.shutdown().await;
        self.part().await;
    }

    /// Close every connection; data written before is sent first.
    async fn part(&mut self) {
        let peers: Vec<PeerKey> = self.connected.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.close(peer));
        let closing = async {
            while !self.connected.is_empty() {
                let event = self.swarm.select_next_some().await;
                self.handle_swarm(event);
            }
        };
        // A peer that no longer reads is waited for until the timeout only.
        let _ = tokio::time::timeout(CLOSING_MAX, closing).await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Keep(target, endpoints) => self.keep(target, endpoints),
            // The connection to a proxy of `via` stays, although another part held it too.
            Command::Forget(Target::Peer(peer)) if self.circuits.is_via(peer) => {}
            Command::Forget(target) => self.redial.forget(&target),
            Command::Close(peer) => self.close(peer),
            Command::Greet(peer) => self.greet_peer(peer),
            Command::Open(peer, protocol, opened) => match peer_id(peer) {
                Some(id) => self.swarm.behaviour_mut().streams.open(id, protocol, opened),
                None => drop(opened),
            },
        }
    }

    pub(super) fn keep(&mut self, target: Target, endpoints: Vec<Address>) {
        let connected = matches!(&target, Target::Peer(peer) if self.connected.contains_key(peer));
        if let Err(full) = self.redial.keep(target, endpoints, connected, clock::now()) {
            tracing::warn!(%full, "a daemon is not dialled");
        }
    }

    pub(super) fn close(&mut self, peer: PeerKey) {
        if let Some(id) = peer_id(peer) {
            // An error means that there was no connection.
            let _ = self.swarm.disconnect_peer_id(id);
        }
    }

    fn handle_swarm(&mut self, event: SwarmEvent<BehaviourEvent>) {
        super::swarm_events::handle(self, event);
    }
}

async fn sleep_until(due: Option<Moment>) {
    match due {
        Some(due) => tokio::time::sleep(due.since(clock::now())).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_connections_by_its_descriptors() {
        for (descriptors, expected) in [
            (1024, 512),
            (8192, 4096),
            (16_384, 12_288),
            (20_000, 15_904),
            (1 << 20, DIRECTORY_CONNECTIONS_MAX),
            (u64::MAX, DIRECTORY_CONNECTIONS_MAX),
        ] {
            assert_eq!(directory_connections(descriptors), expected, "{descriptors}");
        }
    }
}
