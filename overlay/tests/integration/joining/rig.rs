//! An issuer's daemon and members' daemons on loopback: real files, keys and connections.

use overlay::authenticator::Authenticator;
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::issuer::Issuer;
use overlay::identity::issuer_store::RevocationTarget;
use overlay::identity::join::Membership;
use overlay::identity::key::Key;
use overlay::identity::key_file;
use overlay::identity::member_files::load_membership;
use overlay::identity::token::Spec;
use overlay::identity::trust::Readers;
use overlay::joining::renewal::{Pace, Renewal};
use overlay::joining::revocation_file::RevocationFile;
use overlay::joining::service::Service;
use overlay::joining::{self, Error, Joined, Joiner};
use overlay::net::event_loop::{Config, EventLoop, Question};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Roles;
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::Token;
use wire::time::Time;

pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn now() -> Time {
    overlay::clock::calendar()
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::try_from(name).expect("a name")
}

pub(crate) fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).expect("a name")
}

/// A free address: no program listens there now, and soon only this process may.
pub(crate) fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound")
}

/// The host on which a domain was created.
pub(crate) struct Head {
    pub(crate) state: TempDir,
    pub(crate) key: Key,
    pub(crate) address: SocketAddr,
}

impl Head {
    pub(crate) fn new(name: &str) -> Head {
        Head::created(name, now())
    }

    pub(crate) fn created(name: &str, at: Time) -> Head {
        let state = tempfile::tempdir().expect("a folder");
        let key = key_file::load_or_create(state.path()).expect("drawn");
        let head = Head { state, key, address: free_port() };
        head.files().create(&domain(name), &host("head"), at).expect("created");
        head
    }

    pub(crate) fn files(&self) -> DomainFiles {
        DomainFiles::new(self.state.path(), self.key.clone())
    }

    pub(crate) fn token(&self, spec: Spec) -> Token {
        self.files().create_token(spec, vec![self.address.into()], vec![], now()).expect("made")
    }

    pub(crate) fn revoke(&self, peer: PeerKey) {
        self.files().revoke(&RevocationTarget::Peer(peer), now()).expect("revoked");
    }

    /// Start its daemon with the service of the issuer.
    pub(crate) async fn start(&self) -> Daemon {
        let (mut daemon, questions) = Daemon::open(self.state.path(), Some(self.address)).await;
        let issuer = Issuer::new(self.files(), vec![], vec![]);
        let (_, seeds) = watch::channel(vec![self.address.into()]);
        let service = Service {
            questions,
            issuer,
            me: self.key.peer(),
            gate: Arc::clone(&daemon.gate),
            denials: Arc::clone(&daemon.denials),
            seeds,
            trouble: watch::channel(None).0,
        };
        daemon.tasks.spawn(service.run(CancellationToken::new()));
        daemon
    }

    /// Start its daemon without the service; the test answers joining hosts.
    pub(crate) async fn start_unserved(&self) -> (Daemon, mpsc::Receiver<Question>) {
        Daemon::open(self.state.path(), Some(self.address)).await
    }
}

/// A running daemon; it ends when it is dropped.
pub(crate) struct Daemon {
    pub(crate) gate: Arc<Authenticator>,
    pub(crate) net: Handle,
    denials: Arc<RevocationFile>,
    state: std::path::PathBuf,
    key: Key,
    tasks: JoinSet<()>,
}

impl Daemon {
    /// Start the daemon of the member with this state folder.
    pub(crate) async fn start(state: &Path) -> Daemon {
        Daemon::open(state, None).await.0
    }

    async fn open(state: &Path, listen: Option<SocketAddr>) -> (Daemon, mpsc::Receiver<Question>) {
        let key = key_file::load(state).expect("readable").expect("there");
        let membership = load_membership(state).expect("readable").expect("joined");
        let trust = membership.trust(Readers::Nobody).expect("good");
        let (denials, held) = RevocationFile::open(state, &trust).expect("readable");
        let gate = Gate::new(trust, held, BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, Some(membership.chain)));
        let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let start = u64::from(key.peer().0[0]) << 32 | u64::from(listen.port());
        let (event_loop, net, events) =
            EventLoop::open(Config::new(vec![listen]), &key, gate.clone(), start).expect("listens");
        let mut hub = Hub::new(events);
        let questions = hub.questions(Protocol::Join);
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(CancellationToken::new()));
        tasks.spawn(hub.run());
        let mut listening = net.listening();
        listening.wait_for(|all| !all.is_empty()).await.expect("runs");
        let state = state.to_owned();
        (Daemon { gate, net, denials, state, key, tasks }, questions)
    }

    /// Renew its certificate, with short pauses.
    pub(crate) fn renew(&mut self) {
        let pace = Pace {
            look: Duration::from_millis(20),
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_millis(100),
        };
        let renewal = Renewal {
            state: self.state.clone(),
            key: self.key.clone(),
            gate: Arc::clone(&self.gate),
            denials: Arc::clone(&self.denials),
            net: self.net.clone(),
            pace,
        };
        self.tasks.spawn(renewal.run(CancellationToken::new()));
    }

    /// Hold a connection to `head`.
    pub(crate) async fn dial(&self, head: &Head) {
        self.net.keep(Target::Peer(head.key.peer()), vec![head.address.into()]).await;
    }

    pub(crate) fn serial(&self) -> u64 {
        let chain = self.gate.chain().expect("shown");
        chain.certificate.unverified().expect("whole").serial.0
    }
}

/// A host that will join.
pub(crate) struct Newcomer {
    pub(crate) state: TempDir,
}

impl Newcomer {
    pub(crate) fn new() -> Newcomer {
        Newcomer { state: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn key(&self) -> PeerKey {
        key_file::load_or_create(self.state.path()).expect("drawn").peer()
    }

    pub(crate) fn membership(&self) -> Option<Membership> {
        load_membership(self.state.path()).expect("readable")
    }

    pub(crate) fn joiner(&self, name: &str, deadline: Duration) -> Joiner {
        let state = self.state.path().to_owned();
        Joiner { state, host: host(name), wanted: Roles::NONE, deadline }
    }

    pub(crate) async fn join(&self, name: &str, token: &Token) -> Result<Joined, Error> {
        joining::join(token, &self.joiner(name, SOON), &mut |_| ()).await
    }
}

/// Wait until `holds` returns true, within a time limit.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("{what} does not come"));
}
