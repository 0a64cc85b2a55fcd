//! The task that owns the swarm: commands and inbound streams in, events out.
//!
//! Rule: it never waits for the daemon. Peers that come and go are kept in a queue as long as there are
//! peers; questions and streams that find the daemon's queue full are refused to the peer.
//! Not here: what is done on a swarm event (`swarm_events`), serving a stream (`accept`).

use super::Error;
use super::accept::{Answerer, Door};
use super::circuits::Circuits;
use super::dialling::Dialling;
use super::figures::Figures;
use super::guests::{Change, Guests};
use super::half_open::HalfOpen;
use super::handle::{Answer, Command, Handle};
use super::hello::Admission;
use super::protocol::Protocol;
use super::punch::Punch;
use super::question_pool::QuestionPool;
use super::redial::{Redial, Target};
use super::rungs::Rungs;
use super::security::{Offer, Security};
use super::silence::Silence;
use super::stream::Stream;
use super::streams::Streams;
use super::undialled::Undialled;
use super::way_out::{ARRIVALS_MAX, HttpProxy, WayOut, Ways};
use crate::clock;
use crate::identity::admission::Principal;
use crate::identity::key::Key;
use crate::identity::repeats::Repeats;
use futures::StreamExt as _;
use libp2p::connection_limits;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{ConnectionId, NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, ping, relay};
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

/// Commands that may wait.
const COMMANDS_MAX: usize = 256;

/// Questions, streams and peers that may wait for the daemon.
const EVENTS_MAX: usize = 1024;

/// How long connections may take to close at the end.
const CLOSING_MAX: Duration = Duration::from_millis(500);

/// How often what has become too old is looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Most connections of a daemon at a time: a domain of 500 members, seven directories, other domains' questions.
pub const CONNECTIONS_MAX: u32 = 1024;

/// Most connections of a directory at a time, wherever it may have more: some 700 MiB of them.
pub const DIRECTORY_CONNECTIONS_MAX: u32 = 16_384;

/// Descriptors of a directory that are not for connections with daemons: clients of its query interface, files.
const BESIDE: u64 = 4096;

/// How long a connection that no one wants held is kept while most places are taken: longer than a representative and
/// its standbys are silent, so that those who hold their connection keep it and others make place.
const CROWDED_IDLE: Duration = Duration::from_secs(20);

/// Connections beyond the most, so that whoever comes then can be told why it has to go.
pub(super) const SPARE: u32 = 64;

/// Most connections with one peer: both sides dialled at once, directly and through proxies, and those of its process
/// before, which no one has found dead yet.
pub const CONNECTIONS_OF_PEER_MAX: u32 = 8;

/// Most connections of a directory that may have so many descriptors open: a representative and two standbys of each
/// domain hold one each, and sensors visit.
#[must_use]
pub fn directory_connections(descriptors: u64) -> u32 {
    let most = descriptors.saturating_sub(BESIDE).max(descriptors / 2);
    u32::try_from(most).unwrap_or(u32::MAX).min(DIRECTORY_CONNECTIONS_MAX)
}

/// How the overlay of a daemon behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; nothing is listened on if empty.
    pub listen: Vec<SocketAddr>,
    /// Most connections at a time.
    pub connections_max: u32,
    /// How long a connection that no one wants held is kept while most places are taken.
    pub crowded_idle: Duration,
    /// Program and version, told to peers.
    pub program: String,
    /// Proxies with which a registration is kept: they are dialled, and others reach this daemon through them.
    pub via: Vec<Directory>,
    /// Whether it visits: the proxies of `via` are dialled, and no registration is kept there.
    pub is_visitor: bool,
    /// Whether it joins a domain: why an address was not reached is an event, as it is for a visitor.
    pub is_joining: bool,
    /// Whether others are reached through this daemon.
    pub is_proxy: bool,
    /// The site's own HTTP proxy, where connections out lead through one.
    pub http_proxy: Option<HttpProxy>,
    /// By which protocols connections are encrypted.
    pub offer: Offer,
    /// What is spoken on streams.
    pub spoken: &'static [Protocol],
}

impl Config {
    /// The usual one, listening at `listen`.
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

/// A question of a peer. Dropping it tells the peer that it is not answered.
#[derive(Debug)]
pub struct Question {
    /// Who asks.
    pub peer: PeerKey,
    /// Who that is; `None` only for a protocol open to strangers.
    pub principal: Option<Arc<Principal>>,
    /// From where it is connected; none through a proxy.
    pub address: Option<SocketAddr>,
    /// By which protocol.
    pub protocol: Protocol,
    /// The question.
    pub body: Vec<u8>,
    /// Takes the answer.
    pub reply: oneshot::Sender<Answer>,
    /// From where it comes, for the log of whoever answers.
    pub from: tracing::Span,
}

/// What the overlay tells the daemon.
#[derive(Debug)]
pub enum Event {
    /// Both sides have welcomed each other: questions and streams are possible.
    Ready {
        /// Who.
        principal: Arc<Principal>,
        /// From where it is connected.
        address: Option<SocketAddr>,
    },
    /// Its last connection ended.
    Gone(PeerKey),
    /// It does not welcome this daemon.
    Unwelcome {
        /// Who.
        peer: PeerKey,
        /// Why, in its words.
        reason: String,
    },
    /// To a visitor, or to a daemon that joins: what it dialled was not reached, and why.
    Undialled(Target, Undialled),
    /// A question.
    Question(Question),
    /// A lasting stream, already welcomed.
    Stream {
        /// Who opened it.
        peer: PeerKey,
        /// Who that is.
        principal: Arc<Principal>,
        /// For what.
        protocol: Protocol,
        /// The stream.
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

/// What a greeting task found out.
pub(super) type Greeted = Result<(), String>;

/// A connected peer.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) since: Moment,
    /// When it was shown this daemon's certificate last.
    pub(super) greeted: Moment,
    /// How far the calendar was ahead of the clock that never goes back then.
    pub(super) greeted_ahead: i64,
    pub(super) address: Option<SocketAddr>,
    /// The same as it was dialled, by name perhaps; none of a circuit.
    pub(super) place: Option<Multiaddr>,
}

/// The task. See the rule at the head of this file.
pub struct EventLoop {
    pub(super) swarm: Swarm<Behaviour>,
    pub(super) config: Config,
    pub(super) start: u64,
    pub(super) door: Arc<Door>,
    pub(super) redial: Redial,
    pub(super) connected: BTreeMap<PeerKey, Connected>,
    /// Attempts under way.
    pub(super) dialling: Dialling,
    /// Which seed led to which peer.
    pub(super) seeds: BTreeMap<PeerKey, Target>,
    pub(super) silence: Silence<ConnectionId>,
    pub(super) circuits: Circuits,
    /// Direct connections beside them.
    pub(super) punch: Punch,
    pub(super) ways: Arc<Ways>,
    /// How each connection is made.
    pub(super) rungs: Arc<Rungs>,
    /// Streams that wait for questions.
    pub(super) pool: Arc<QuestionPool>,
    /// Most places are taken, so that no one keeps one idly.
    pub(super) is_crowded: bool,
    /// Who refused this daemon, and what was logged of that.
    pub(super) refusals: Repeats,
    /// How far the calendar is ahead of the clock that never goes back, to see when it is set.
    pub(super) calendar_ahead: i64,
    /// Peers that came and went, not yet told.
    pub(super) untold: VecDeque<Event>,
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
    /// Listen, and be ready to [`EventLoop::run`]. Call it within a tokio runtime.
    ///
    /// # Errors
    /// If the key is of no use or an address cannot be listened on.
    pub fn open(
        config: Config,
        key: &Key,
        admission: Arc<dyn Admission>,
        start: u64,
    ) -> Result<(EventLoop, Handle, mpsc::Receiver<Event>), Error> {
        let me = key.peer();
        let connections_max = config.connections_max;
        let ways = Ways::new(config.http_proxy.clone());
        let (arrivals, arrivals_rx) = mpsc::channel(ARRIVALS_MAX);
        let half_open = HalfOpen::default();
        let way_out = WayOut::new(Arc::clone(&ways), arrivals_rx, half_open.clone());
        let figures = Arc::new(Figures::default());
        let security = Security::new(&key.for_transport(), config.offer, Arc::clone(&figures))?;
        let swarm = super::swarm::build(&config, key, security, (way_out, half_open))?;
        let (commands, commands_rx) = mpsc::channel(COMMANDS_MAX);
        let (events, events_rx) = mpsc::channel(EVENTS_MAX);
        let (greeted, greeted_rx) = mpsc::channel(COMMANDS_MAX);
        let (welcomes, welcomes_rx) = mpsc::channel(COMMANDS_MAX);
        let (listening, listening_rx) = watch::channel(Vec::new());
        let guests = Arc::new(Guests::default());
        let rungs = Arc::new(Rungs::default());
        let pool = Arc::new(QuestionPool::default());
        let handle = Handle {
            me,
            rungs: Arc::clone(&rungs),
            commands,
            guests: Arc::clone(&guests),
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
            ways,
            rungs,
            pool,
            config,
            start,
            door: Arc::new(Door {
                admission,
                guests,
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
            silence: Silence::new(SWEEP_INTERVAL, clock::now()),
            refusals: Repeats::default(),
            calendar_ahead: crate::clock::calendar_ahead_micros(),
            untold: VecDeque::new(),
            tasks: JoinSet::new(),
            welcomes,
            listening,
            inbox,
        };
        event_loop.dial_proxies();
        Ok((event_loop, handle, events_rx))
    }

    /// Have questions of the query interface answered by `answerer`, and not as events. The first one stays.
    pub fn answer_queries(&self, answerer: Arc<dyn Answerer>) {
        let _ = self.door.answerer.set(answerer);
    }

    /// Run until `shutdown`; connections are closed then.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        let events = self.door.events.clone();
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
                room = events.reserve(), if !self.untold.is_empty() => {
                    if let (Ok(room), Some(event)) = (room, self.untold.pop_front()) {
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

    /// Close every connection; what was written before is sent first.
    async fn part(&mut self) {
        let peers: Vec<PeerKey> = self.connected.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.close(peer));
        let closing = async {
            while !self.connected.is_empty() {
                let event = self.swarm.select_next_some().await;
                self.handle_swarm(event);
            }
        };
        // A peer that takes nothing any more is not waited for.
        let _ = tokio::time::timeout(CLOSING_MAX, closing).await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Keep(target, endpoints) => self.keep(target, endpoints),
            // The way to the registrations stays, whoever else used it.
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
            // An error says that there was no connection.
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

/// The key in a peer id; `None` if it is of another kind.
pub(super) fn peer_key(id: &PeerId) -> Option<PeerKey> {
    PeerKey::from_peer_id(&id.to_bytes())
}

/// The peer id of a key; `None` if it is no point of the curve.
pub(super) fn peer_id(key: PeerKey) -> Option<PeerId> {
    let key = libp2p::identity::ed25519::PublicKey::try_from_bytes(&key.0).ok()?;
    Some(libp2p::identity::PublicKey::from(key).to_peer_id())
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
