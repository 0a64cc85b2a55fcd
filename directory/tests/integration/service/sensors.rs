//! A sensor of a domain with everything that communicates with directories: election, registrar, revocation
//! lists.

use crate::service::rig::{Member, NEXT, StoppedDirectory, free_port};
use overlay::authenticator::Authenticator;
use overlay::contacts::Contacts;
use overlay::directories::Directories;
use overlay::domain::{self, Domain, DomainHandle};
use overlay::election::{self, Me};
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::trust::{Readers, Trust};
use overlay::joining::revocation_file::RevocationFile;
use overlay::membership::Profile;
use overlay::net::event_loop::{self, EventLoop};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::registrar::{Place, Reception, Registrar};
use overlay::resolve::asker::Asking;
use overlay::revocation_sync::RevocationSync;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::join;

/// A running sensor; dropping it kills it.
pub(crate) struct Sensor {
    pub(crate) gate: Arc<Authenticator>,
    pub(crate) members: DomainHandle,
    pub(crate) directories: Arc<Directories>,
    pub(crate) address: SocketAddr,
    net: Handle,
    folder: TempDir,
    tasks: JoinSet<()>,
}

impl Sensor {
    pub(crate) fn start(member: &Member, directories: &[&StoppedDirectory], seed: Option<&Sensor>) -> Sensor {
        // Printed if a test fails; RUST_LOG selects the level.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let folder = tempfile::tempdir().expect("a folder");
        let configured: Vec<join::Directory> = directories.iter().map(|kept| kept.as_configured()).collect();
        let trust = Trust::of_member(member.domain.clone(), member.root, Readers::Admitted);
        let (file, denials) = RevocationFile::open(folder.path(), &trust).expect("none yet");
        let gate = Gate::new(trust, denials, configured.iter().map(|directory| directory.key).collect());
        let gate = Arc::new(Authenticator::new(gate, member.chain.clone()));
        let address = free_port();
        let start = u64::from(NEXT.fetch_add(1, Ordering::SeqCst)) << 32 | u64::from(std::process::id());
        let config = event_loop::Config::new(vec![address]);
        let (event_loop, net, events) =
            EventLoop::open(config, &member.key, gate.clone(), start).expect("listens");
        let mut hub = Hub::new(events);
        let (peers, sessions) = (hub.peers(), hub.sessions(Protocol::Control));
        let seeds: Vec<_> = seed.iter().map(|seed| seed.address.into()).collect();
        let mut election = election::Config::new(member.domain.clone());
        election.has_seeds = !seeds.is_empty();
        let profile = Profile { host: member.host.clone(), may_represent: true, priority: 0 };
        let me = Me { key: member.key.peer(), profile, addresses: vec![address.to_string().into()] };
        let config = domain::Config { election, me, seeds, folder: folder.path().to_owned(), seed: start };
        let opened = Domain::open(config, net.clone(), gate.clone(), peers, sessions);
        let (domain, members) = opened.expect("no term yet");
        let contacts = Arc::new(Contacts::new(net.clone(), Some(member.domain.clone())));
        let directories = Directories::new(net.me(), Arc::clone(&contacts), configured);
        let never = CancellationToken::new();
        let asking = Asking::open(folder.path(), Arc::clone(&gate), Arc::clone(&directories), 7);
        let (_, asker) = asking.expect("nothing is remembered yet");
        let registrar = Registrar {
            asker,
            key: member.key.clone(),
            gate: Arc::clone(&gate),
            members: members.clone(),
            directories: Arc::clone(&directories),
            place: Place {
                port: 7741,
                addresses: vec!["http://h1:7741".to_owned()],
                overlay: vec![address.into()],
            },
            reception: Reception::default(),
        };
        let denying = RevocationSync {
            domain: member.domain.clone(),
            gate: Arc::clone(&gate),
            denials: file,
            net: net.clone(),
            members: Some(members.clone()),
            directories: Arc::clone(&directories),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(never.clone()));
        tasks.spawn(hub.run());
        tasks.spawn(registrar.run(never.clone()));
        tasks.spawn(denying.run(never.clone()));
        let quiet = never.clone();
        tasks.spawn(async move { contacts.tend(quiet).await });
        let running = domain.run(never);
        tasks.spawn(running);
        Sensor { gate, members, directories, address, net, folder, tasks }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether it is connected to every directory.
    pub(crate) fn is_connected(&self) -> bool {
        self.directories.keys().into_iter().all(|key| self.net.is_ready(key))
    }

    /// Kill it as SIGKILL does.
    pub(crate) async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}
