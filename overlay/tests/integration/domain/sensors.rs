//! Sensors of the tests: real keys and certificates, real connections, a folder each.

use overlay::authenticator::Authenticator;
use overlay::domain::{Config, Domain, DomainHandle, View};
use overlay::election::{self, Me, Role};
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use overlay::membership::Profile;
use overlay::net::event_loop::{self, EventLoop};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::Term;
use wire::time::Time;

static NEXT: AtomicU8 = AtomicU8::new(1);

/// A domain's root: it signs its members' certificates itself.
pub(crate) struct Root {
    key: Key,
    domain: DomainName,
}

impl Root {
    pub(crate) fn new(domain: &str) -> Root {
        let seed = NEXT.fetch_add(1, Ordering::SeqCst);
        Root { key: Key::from_seed([seed; 32]), domain: DomainName::try_from(domain).expect("a name") }
    }

    /// Start this many sensors; the first one is the seed of the others.
    pub(crate) async fn start(&self, count: usize) -> Vec<Sensor> {
        let mut sensors = Vec::new();
        for _ in 0..count {
            let seeds = sensors.first().map(Sensor::address).into_iter().collect();
            sensors.push(self.member().start(seeds).await);
        }
        sensors
    }

    pub(crate) async fn start_with_seed(&self, count: usize, seed: &Sensor) -> Vec<Sensor> {
        let mut sensors = Vec::new();
        for _ in 0..count {
            sensors.push(self.member().start(vec![seed.address()]).await);
        }
        sensors
    }

    fn member(&self) -> Stopped {
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let key = Key::from_seed([number; 32]);
        let host = HostName::try_from(format!("h{number}").as_str()).expect("a name");
        let now = overlay::clock::calendar();
        let certificate = Certificate {
            domain: self.domain.clone(),
            root: self.key.peer(),
            peer: key.peer(),
            host: host.clone(),
            roles: Roles::SENSOR,
            priority: 0,
            serial: Serial(number.into()),
            issued: now,
            expires: Time::from_micros(now.micros() + 86_400_000_000),
        };
        let chain = Chain { certificate: self.key.seal(&certificate).expect("short"), delegation: None };
        let folder = tempfile::tempdir().expect("a folder");
        Stopped {
            key,
            chain,
            host,
            domain: self.domain.clone(),
            root: self.key.peer(),
            folder,
            listen: None,
            seeds: Vec::new(),
        }
    }
}

/// A stopped sensor, with its keys and files.
pub(crate) struct Stopped {
    key: Key,
    chain: Chain,
    host: HostName,
    domain: DomainName,
    root: PeerKey,
    folder: TempDir,
    listen: Option<SocketAddr>,
    seeds: Vec<Address>,
}

impl Stopped {
    pub(crate) async fn start_again(self) -> Sensor {
        let seeds = self.seeds.clone();
        self.start(seeds).await
    }

    async fn start(mut self, seeds: Vec<Address>) -> Sensor {
        // Shown where a test fails; RUST_LOG selects the messages.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let trust = Trust::of_member(self.domain.clone(), self.root, Readers::Nobody);
        let gate = Gate::new(trust, RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, Some(self.chain.clone())));
        let listen = self.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let start = u64::from(NEXT.fetch_add(1, Ordering::SeqCst)) << 32 | u64::from(std::process::id());
        let config = event_loop::Config::new(vec![listen]);
        let (event_loop, net, events) =
            EventLoop::open(config, &self.key, gate.clone(), start).expect("listens");
        let mut hub = Hub::new(events);
        let (peers, sessions) = (hub.peers(), hub.sessions(Protocol::Control));
        let (shutdown, quiet) = (CancellationToken::new(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(quiet.clone()));
        tasks.spawn(hub.run());
        let mut listening = net.listening();
        let address = listening.wait_for(|all| !all.is_empty()).await.expect("runs")[0];
        self.listen = Some(address);
        self.seeds.clone_from(&seeds);
        let mut election = election::Config::new(self.domain.clone());
        election.has_seeds = !seeds.is_empty();
        let config = Config {
            election,
            me: Me {
                key: self.key.peer(),
                profile: Profile { host: self.host.clone(), may_represent: true, priority: 0 },
                addresses: vec![address.to_string().into()],
            },
            seeds,
            folder: self.folder.path().to_owned(),
            seed: start,
        };
        let (domain, handle) = Domain::open(config, net.clone(), gate, peers, sessions).expect("no term yet");
        let running = domain.run(shutdown.clone());
        tasks.spawn(running);
        Sensor { kept: self, net, handle, shutdown, quiet, tasks, address }
    }
}

/// A running sensor.
pub(crate) struct Sensor {
    kept: Stopped,
    net: Handle,
    handle: DomainHandle,
    shutdown: CancellationToken,
    quiet: CancellationToken,
    tasks: JoinSet<()>,
    address: SocketAddr,
}

impl Sensor {
    pub(crate) fn key(&self) -> PeerKey {
        self.kept.key.peer()
    }

    pub(crate) fn net(&self) -> &Handle {
        &self.net
    }

    fn address(&self) -> Address {
        self.address.into()
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.handle.view().borrow().clone()
    }

    pub(crate) fn may_serve(&self) -> bool {
        self.handle.may_serve()
    }

    pub(crate) fn role(&self) -> Role {
        self.view().state.role
    }

    /// Like SIGKILL: no last message is sent.
    pub(crate) async fn kill(mut self) -> Stopped {
        self.tasks.shutdown().await;
        self.kept
    }

    /// Like SIGTERM.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        let _ = self.tasks.join_next().await;
        self.quiet.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The representative and term of all sensors, once they agree, each is covered and the standbys know it.
pub(crate) async fn all_agree(sensors: &[Sensor], most: Duration) -> (PeerKey, Term) {
    let agreed = || {
        let views: Vec<Arc<View>> = sensors.iter().map(Sensor::view).collect();
        let first = (views[0].state.representative?, views[0].state.term);
        let same =
            views.iter().all(|view| (view.state.representative, view.state.term) == (Some(first.0), first.1));
        let own = views.iter().find(|view| view.state.role == Role::Representative)?;
        let whole = sensors.iter().all(|sensor| own.state.coverage.contains(&sensor.key()));
        let standbys = views.iter().filter(|view| view.state.role == Role::Standby).count();
        let whole = whole && standbys == 2.min(sensors.len() - 1);
        (same && whole && own.state.representative == Some(first.0)).then_some(first)
    };
    let waiting = async {
        loop {
            if let Some(agreed) = agreed() {
                return agreed;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(most, waiting).await {
        Ok(agreed) => agreed,
        Err(_) => {
            let states: Vec<_> =
                sensors.iter().map(|sensor| (sensor.key(), sensor.view().state.clone())).collect();
            panic!("they do not agree within {most:?}: {states:#?}")
        }
    }
}

pub(crate) fn representative_of(sensors: &[Sensor], key: PeerKey) -> &Sensor {
    sensors.iter().find(|sensor| sensor.key() == key).expect("one of them")
}
