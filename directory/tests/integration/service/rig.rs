//! Directories and daemons of domains on loopback: real keys, certificates, files and connections.

use directory::admission::List;
use directory::admitted_file;
use directory::config::Config;
use directory::handle::{Handle, SystemClock};
use directory::run::{Directory, ReplicaPeers};
use directory::service::{ASKS_MAX, Service};
use overlay::authenticator::Authenticator;
use overlay::hub::{Hub, PeerEvent};
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::record;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use overlay::net::event_loop::{self, EventLoop};
use overlay::net::handle as net;
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Denial, Denied, DenyList, Role, Roles, Serial, Statement};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join;
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Answer, Farewell, Leave, Question, Resolved, Stated};
use wire::time::Time;

/// Longer than any step takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Timeout of steps that depend on the representative: a sensor that lost the role is not a candidate for a
/// minute.
const AT_LAST: Duration = Duration::from_secs(90);

pub(crate) static NEXT: AtomicU8 = AtomicU8::new(1);

fn fresh_key() -> Key {
    Key::from_seed([NEXT.fetch_add(1, Ordering::SeqCst); 32])
}

pub(crate) fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound")
}

pub(crate) fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).expect("a name")
}

/// Poll until the condition is true. Returns how long that took.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let started = overlay::clock::now();
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(AT_LAST, waiting).await.is_ok(), "{what} did not happen");
    overlay::clock::now().since(started)
}

/// Root of a domain, which itself signs its members' certificates.
pub(crate) struct Root {
    pub(crate) key: Key,
    pub(crate) name: DomainName,
}

impl Root {
    pub(crate) fn new(name: &str) -> Root {
        Root { key: fresh_key(), name: domain(name) }
    }

    pub(crate) fn member(&self, roles: Roles) -> Member {
        let key = fresh_key();
        let now = overlay::clock::calendar();
        let host = HostName::try_from("h1").expect("a name");
        let certificate = Certificate {
            domain: self.name.clone(),
            root: self.key.peer(),
            peer: key.peer(),
            host: host.clone(),
            roles,
            priority: 0,
            serial: Serial(1),
            issued: now,
            expires: now.plus(Duration::from_secs(86_400)),
        };
        let chain = Chain { certificate: self.key.seal(&certificate).expect("short"), delegation: None };
        Member { key, chain: Some(chain), domain: self.name.clone(), root: self.key.peer(), host }
    }

    pub(crate) fn representative(&self) -> Member {
        self.member(Roles::SENSOR)
    }

    pub(crate) fn viewer(&self) -> Member {
        self.member(Roles::NONE.with(Role::Viewer))
    }

    pub(crate) fn denial(&self, denied: PeerKey) -> Denial {
        let stated = overlay::clock::calendar();
        let denied = vec![Denied { peer: denied, issued_until: stated.plus(SOON) }];
        let list = DenyList { domain: self.name.clone(), root: self.key.peer(), number: 1, stated, denied };
        Denial { list: self.key.seal(&list).expect("short"), delegation: None }
    }
}

/// A daemon that may connect.
pub(crate) struct Member {
    pub(crate) key: Key,
    pub(crate) chain: Option<Chain>,
    pub(crate) domain: DomainName,
    pub(crate) root: PeerKey,
    pub(crate) host: HostName,
}

impl Member {
    pub(crate) fn statement(&self, term: u64, sequence: u64) -> Statement {
        let reach = Reach {
            root: self.root,
            peer: self.key.peer(),
            addresses: vec![Address::try_from("h1:7318").expect("an address")],
            coverage: Coverage::Whole { hosts: 1 },
        };
        let record = Record {
            domain: self.domain.clone(),
            host: self.host.clone(),
            port: 7741,
            sensor_type: SensorType::Representative,
            addresses: vec!["http://h1:7741".to_owned()],
            term,
            sequence,
            stated: Time::default(),
            reach: Some(reach),
        };
        record::state(&record, &self.key, self.chain.as_ref().expect("has one")).expect("short")
    }

    pub(crate) fn farewell(&self, term: u64, sequence: u64) -> Farewell {
        let (domain, root, peer) = (self.domain.clone(), self.root, self.key.peer());
        let leave = Leave { domain, root, peer, term, sequence, stated: Time::default() };
        record::take_leave(&leave, &self.key, self.chain.as_ref().expect("has one")).expect("short")
    }

    /// Connect to `directory`.
    pub(crate) async fn start(&self, directory: &StoppedDirectory) -> Client {
        let trust = Trust::of_member(self.domain.clone(), self.root, Readers::Nobody);
        let gate = Gate::new(trust, RevocationLists::default(), [directory.key.peer()].into());
        let gate = Arc::new(Authenticator::new(gate, self.chain.clone()));
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let start = u64::from(NEXT.fetch_add(1, Ordering::SeqCst)) << 32 | u64::from(std::process::id());
        let config = event_loop::Config::new(vec![listen]);
        let (event_loop, net, events) = EventLoop::open(config, &self.key, gate, start).expect("listens");
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(CancellationToken::new()));
        let hub = Hub::new(events);
        let peers = hub.peers();
        tasks.spawn(hub.run());
        net.keep(Target::Peer(directory.key.peer()), vec![directory.address.into()]).await;
        Client { net, directory: directory.key.peer(), peers, _tasks: tasks }
    }
}

/// A daemon that queries a directory.
pub(crate) struct Client {
    pub(crate) net: net::Handle,
    directory: PeerKey,
    peers: tokio::sync::broadcast::Receiver<PeerEvent>,
    _tasks: JoinSet<()>,
}

impl Client {
    /// Wait until it is accepted.
    pub(crate) async fn ready(self) -> Client {
        until("a welcome", || self.net.is_ready(self.directory)).await;
        self
    }

    /// The text with which the directory rejects it.
    pub(crate) async fn unwelcome(&mut self) -> String {
        let searching = async {
            loop {
                match self.peers.recv().await.expect("runs") {
                    PeerEvent::Unwelcome(peer, reason) if peer == self.directory => return reason,
                    PeerEvent::Ready(..) => panic!("it was welcome"),
                    PeerEvent::Unwelcome(..) | PeerEvent::Gone(_) => {}
                }
            }
        };
        tokio::time::timeout(SOON, searching).await.expect("in time")
    }

    pub(crate) async fn ask(&self, question: &Question) -> Result<Answer, net::AskError> {
        let bytes = postcard::to_stdvec(question).expect("encodes");
        let answer = self.net.ask(self.directory, Protocol::Directory, &bytes, SOON).await?;
        Ok(postcard::from_bytes(&answer).expect("decodes"))
    }

    pub(crate) async fn state(&self, statement: Statement) -> Stated {
        let answer = self.ask(&Question::State(Box::new(statement))).await.expect("answered");
        let Answer::Stated(stated) = answer else { panic!("{answer:?}") };
        stated
    }

    pub(crate) async fn resolve(&self, name: &str) -> Resolved {
        let answer = self.ask(&Question::Resolve(domain(name))).await.expect("answered");
        let Answer::Resolved(resolved) = answer else { panic!("{answer:?}") };
        resolved
    }
}

/// A stopped directory with its stored state.
pub(crate) struct StoppedDirectory {
    pub(crate) key: Key,
    pub(crate) address: SocketAddr,
    pub(crate) state: TempDir,
}

impl StoppedDirectory {
    pub(crate) fn admit(&self, roots: &[&Root]) {
        let mut list = List::default();
        for root in roots {
            list.add(root.name.clone(), root.key.peer()).expect("few");
        }
        admitted_file::write(self.state.path(), &list).expect("written");
    }

    pub(crate) fn as_configured(&self) -> join::Directory {
        join::Directory { key: self.key.peer(), addresses: vec![self.address.into()] }
    }

    pub(crate) fn start(&self, all: &[&StoppedDirectory]) -> Running {
        let others = all.iter().filter(|other| other.key.peer() != self.key.peer());
        let others: Vec<join::Directory> = others.map(|other| other.as_configured()).collect();
        let peers: Vec<PeerKey> = others.iter().map(|other| other.key).collect();
        let trust = Trust::of_directory(BTreeMap::new());
        let gate = Gate::new(trust, RevocationLists::default(), peers.iter().copied().collect());
        let gate = Arc::new(Authenticator::new(gate, None));
        let start = u64::from(NEXT.fetch_add(1, Ordering::SeqCst)) << 32 | u64::from(std::process::id());
        let config = event_loop::Config::new(vec![self.address]);
        let (event_loop, net, events) =
            EventLoop::open(config, &self.key, gate.clone(), start).expect("listens");
        let mut hub = Hub::new(events);
        let (questions, hears) = (hub.questions(Protocol::Directory), hub.peers());
        let replica_peers = ReplicaPeers { peers, seed: start };
        let directory =
            Directory::open_among(Config::default(), self.state.path(), SystemClock, &replica_peers);
        let directory = directory.expect("opens");
        let table = directory.handle();
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let service = Service {
            directory: table.clone(),
            net: net.clone(),
            gate,
            questions,
            peers: hears,
            asks: asked,
            others,
            is_member: false,
        };
        service.follow_list();
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(shutdown.clone()));
        tasks.spawn(hub.run());
        tasks.spawn(service.run(shutdown.clone()));
        let running = directory.run_among(asks, shutdown.clone());
        tasks.spawn(async move { running.await.expect("the disk is well") });
        Running { table, tasks }
    }
}

pub(crate) fn directories<const N: usize>(admitted: &[&Root]) -> [StoppedDirectory; N] {
    std::array::from_fn(|_| {
        let kept = StoppedDirectory {
            key: fresh_key(),
            address: free_port(),
            state: tempfile::tempdir().expect("a folder"),
        };
        kept.admit(admitted);
        kept
    })
}

/// A running directory; dropping it kills it.
pub(crate) struct Running {
    pub(crate) table: Handle,
    tasks: JoinSet<()>,
}

impl Running {
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.table.resolve(&domain(name)).is_some()
    }

    /// Kill it as SIGKILL does.
    pub(crate) async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}
