//! Peer with a key and no certificate that connects again and again and sends nothing.
//!
//! Rule: it is a bare swarm, so that it can do what no daemon does.
//! Not here: daemons (`daemons`).

use futures::StreamExt as _;
use libp2p::core::upgrade::Version;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, SwarmEvent, dummy};
use libp2p::{Multiaddr, PeerId, Swarm, Transport as _, identity, noise, tcp, yamux};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use wire::id::PeerKey;

pub(crate) struct Stranger {
    swarm: Swarm<dummy::Behaviour>,
    at: Multiaddr,
    peer: Option<PeerId>,
    open: VecDeque<ConnectionId>,
}

impl Stranger {
    /// A peer that will dial `address`.
    pub(crate) fn of(address: SocketAddr) -> Stranger {
        let key = identity::Keypair::generate_ed25519();
        let transport = tcp::tokio::Transport::new(tcp::Config::default())
            .upgrade(Version::V1Lazy)
            .authenticate(noise::Config::new(&key).expect("a key"))
            .multiplex(yamux::Config::default())
            .boxed();
        let config = libp2p::swarm::Config::with_tokio_executor()
            .with_idle_connection_timeout(Duration::from_secs(3600));
        let swarm = Swarm::new(transport, dummy::Behaviour, key.public().to_peer_id(), config);
        let at = format!("/ip4/{}/tcp/{}", address.ip(), address.port()).parse().expect("an address");
        Stranger { swarm, at, peer: None, open: VecDeque::new() }
    }

    fn dial(&mut self) {
        let options = match self.peer {
            None => DialOpts::unknown_peer_id().address(self.at.clone()).build(),
            Some(id) => {
                let condition = PeerCondition::Always;
                DialOpts::peer_id(id).condition(condition).addresses(vec![self.at.clone()]).build()
            }
        };
        self.swarm.dial(options).expect("can be dialled");
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most events of a swarm do not matter here")]
    async fn step(&mut self) {
        match self.swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, .. } => {
                self.peer = Some(peer_id);
                self.open.push_back(connection_id);
            }
            SwarmEvent::ConnectionClosed { connection_id, .. } => {
                self.open.retain(|open| *open != connection_id);
            }
            _ => {}
        }
    }

    /// Open `attempts` connections, and run until `is_so` holds and all events about them have arrived.
    pub(crate) async fn crowd(&mut self, attempts: usize, is_so: impl Fn() -> bool) {
        for _ in 0..attempts {
            self.dial();
        }
        let refusing = async {
            let mut look = tokio::time::interval(Duration::from_millis(10));
            while !is_so() {
                tokio::select! {
                    () = self.step() => {}
                    _ = look.tick() => {}
                }
            }
            // Events of connections that were open for a moment before they were refused.
            while tokio::time::timeout(Duration::from_millis(500), self.step()).await.is_ok() {}
        };
        tokio::time::timeout(Duration::from_secs(60), refusing).await.expect("they are refused in time");
    }

    pub(crate) fn key(&self) -> PeerKey {
        PeerKey::from_peer_id(&self.swarm.local_peer_id().to_bytes()).expect("a key of the usual kind")
    }

    /// Stay connected, and answer no protocol, while `asking` runs.
    pub(crate) async fn while_connected<T>(&mut self, asking: impl Future<Output = T>) -> T {
        self.dial();
        while self.open.is_empty() {
            self.step().await;
        }
        let mut asking = std::pin::pin!(asking);
        loop {
            tokio::select! {
                () = self.step() => {}
                outcome = &mut asking => return outcome,
            }
        }
    }

    /// Number of open connections.
    pub(crate) fn standing(&self) -> usize {
        self.open.len()
    }

    /// Open a connection each half second and close the oldest, so that one is always open; returns whether
    /// the other side closed all of them within `patience`.
    pub(crate) async fn is_shaken_off(&mut self, patience: Duration) -> bool {
        let holding = async {
            let mut again = tokio::time::interval(Duration::from_millis(500));
            let mut has_come = false;
            loop {
                tokio::select! {
                    () = self.step() => {
                        has_come |= !self.open.is_empty();
                        if has_come && self.open.is_empty() {
                            return;
                        }
                    }
                    _ = again.tick() => {
                        self.dial();
                        if self.open.len() > 2 && let Some(oldest) = self.open.front() {
                            self.swarm.close_connection(*oldest);
                        }
                    }
                }
            }
        };
        tokio::time::timeout(patience, holding).await.is_ok()
    }
}
