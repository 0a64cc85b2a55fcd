//! Directory of a grid: its key, its connections, the other directories, and the domains that its operator
//! admits.
//!
//! Rule: without an admitted domain no peer could connect, so nothing listens (see `grid`); a state folder
//! that has joined a domain belongs to a sensor, and cannot be a directory's.
//! Not here: the table (`directory`), a directory for one machine alone (`grid`).

use super::admission_status::AdmissionStatus;
use super::discovered;
use super::forward::Router;
use super::job_indexing;
use super::overlay::{Overlay, Part};
use super::queries::Queries;
use super::remote_domains::{Lookup, RemoteDomains};
use anyhow::ensure;
use daemon::shutdown::Tasks;
use directory::handle::SystemClock;
use directory::job_index::Indexing;
use directory::replicate::Output;
use directory::run::{Directory, ReplicaPeers};
use directory::service::{ASKS_MAX, Service};
use directory::{admitted_file, config};
use overlay::config::Config;
use overlay::contacts::Contacts;
use overlay::identity::admission::Gate;
use overlay::identity::key_file;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::Trust;
use overlay::net::event_loop::directory_connections;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::Registry;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::join;

/// A directory that is bound, and not yet running.
pub(crate) struct Replica {
    pub(crate) net: Handle,
    /// `KEY@HOST:PORT`, for the configuration of other daemons.
    pub(crate) own_contacts: Vec<String>,
    others: RemoteDomains,
    overlay: Overlay,
    directory: Directory,
    /// Index of jobs; `None` if the configuration has none.
    jobs: Option<Indexing>,
    service: Service,
    asks: mpsc::Sender<Output>,
}

/// Whether a directory with this configuration and the folder `part` admits any domain.
///
/// # Errors
/// If the list cannot be read.
pub(crate) fn admits_any(config: &config::Config, part: &Path) -> anyhow::Result<bool> {
    Ok(config.domains.iter().next().is_some() || admitted_file::read(part)?.iter().next().is_some())
}

impl Replica {
    /// Read the key in `state` and the table in its folder `part`, and listen. Call it within a tokio
    /// runtime.
    ///
    /// # Errors
    /// If a file cannot be used, or the address cannot be listened on.
    pub(crate) fn open(
        state: &Path,
        part: &Path,
        config: config::Config,
        overlay_config: &Config,
    ) -> anyhow::Result<Replica> {
        ensure!(
            super::member::membership(state)?.is_none(),
            "the state folder {} is that of a sensor which has joined a domain; give the directory a folder of its \
             own with --state DIR",
            state.display()
        );
        let key = key_file::load_or_create(state)?;
        let me = key.peer();
        let others: Vec<join::Directory> =
            overlay_config.directories.iter().filter(|other| other.key != me).cloned().collect();
        let keys = others.iter().map(|other| other.key);
        let gate = Gate::new(
            Trust::of_directory(BTreeMap::new()),
            RevocationLists::default(),
            keys.clone().collect(),
        );
        let host = crate::host_name::own();
        let connections = directory_connections(daemon::descriptors::raise());
        let mut overlay = Overlay::open(key, gate, None, overlay_config, (&host, connections, Part::End))?;
        let jobs = config.jobs;
        let replica_peers = ReplicaPeers { peers: keys.collect(), seed: overlay.seed };
        let directory = Directory::open_among(config, part, SystemClock, &replica_peers)?;
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let service = Service {
            directory: directory.handle(),
            net: overlay.net.clone(),
            gate: Arc::clone(&overlay.gate),
            questions: overlay.hub.questions(Protocol::Directory),
            peers: overlay.hub.peers(),
            asks: asked,
            others,
            is_member: false,
        };
        // Before a peer can connect: the domains of the list are admitted from the start.
        service.follow_list();
        let net = overlay.net.clone();
        let contacts = Arc::new(Contacts::new(net.clone(), None));
        let others = RemoteDomains {
            lookup: Lookup::Table(directory.handle()),
            contacts,
            welcome: overlay.welcome.clone(),
        };
        let own_contacts = overlay.advertised.iter().map(|address| format!("{me}@{address}")).collect();
        let table = directory.handle();
        let jobs = jobs.map(|jobs| job_indexing::open(part, jobs, table, others.clone()));
        Ok(Replica { net, own_contacts, others, overlay, directory, jobs, service, asks })
    }

    /// Health messages about refusals of this daemon by others, as sentences.
    pub(crate) fn welcome(&self) -> AdmissionStatus {
        self.overlay.welcome.clone()
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The index of jobs.
    pub(crate) fn jobs(&self) -> Option<Indexing> {
        self.jobs.clone()
    }

    /// The router of queries to domains.
    fn router(&self) -> Router {
        Router { net: self.net.clone(), own: None, others: self.others.clone(), relays: None }
    }

    /// Add the methods of domains: a question about any domain may enter here.
    ///
    /// # Errors
    /// If a method of the same name already exists.
    pub(crate) fn add_forwarded(&self, registry: &mut Registry) -> Result<(), rpc::dispatch::method::Error> {
        for declaration in sensor::query::declared::all() {
            // The router forwards each call, or returns the reason why it cannot.
            registry.add(
                declaration.handler_now(|_| Err(Fault::internal("a directory has no answer of its own"))),
            )?;
        }
        registry.set_elsewhere(Box::new(self.router()));
        Ok(())
    }

    /// List of hosts for service discovery, from the domains' representatives.
    pub(crate) fn hosts(&self) -> directory::discovery::Hosts {
        discovered::hosts(self.others.clone())
    }

    /// Serve until `shutdown`.
    pub(crate) fn spawn(self, tasks: &mut Tasks, dispatcher: Arc<Dispatcher>, shutdown: &CancellationToken) {
        let Replica { others, overlay, directory, jobs, service, asks, .. } = self;
        let gate = Arc::clone(&overlay.gate);
        overlay.answer_queries(Queries::new(dispatcher, gate, None, shutdown.clone()));
        overlay.spawn(tasks, shutdown.clone());
        tasks.spawn("directory", directory.run_among(asks, shutdown.clone()));
        if let Some(jobs) = jobs {
            tasks.spawn_sure("index of jobs", jobs.run(shutdown.clone()));
        }
        let ending = shutdown.clone();
        tasks.spawn_sure("directories", service.run(ending));
        let ending = shutdown.clone();
        tasks.spawn_sure("contacts", async move { others.contacts.tend(ending).await });
    }
}
