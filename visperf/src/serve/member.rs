//! A sensor that has joined a domain: its key, its certificate, its connections, its part in the election.
//!
//! Rule: everything is read and bound before anything runs; without a membership in the state directory
//! there is no overlay, and nothing listens.
//! Not here: joining (`overlay::joining`), what is reported (`sensor`).

use super::elsewhere::Router;
use super::queries;
use anyhow::{Context as _, ensure};
use daemon::shutdown::Tasks;
use overlay::config::{Config, PORT};
use overlay::domain::{self, Domain, DomainHandle, View};
use overlay::election::{self, Me};
use overlay::gatekeeper::Gatekeeper;
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::issuer::Issuer;
use overlay::identity::join::Membership;
use overlay::identity::{key_file, member_files};
use overlay::joining::denials::DenialFile;
use overlay::joining::renewal::{Pace, Renewal};
use overlay::joining::service::Service;
use overlay::membership::Standing;
use overlay::net::event_loop::{self, EventLoop, Question};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use rpc::dispatch::Dispatcher;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Role};
use wire::join::SEEDS_MAX;
use wire::membership::State;

/// A member that is open: bound, and part of nothing yet.
pub(crate) struct Member {
    pub(crate) certificate: Certificate,
    pub(crate) net: Handle,
    pub(crate) gate: Arc<Gatekeeper>,
    pub(crate) view: DomainHandle,
    event_loop: EventLoop,
    hub: Hub,
    domain: Domain,
    questions: mpsc::Receiver<Question>,
    renewal: Renewal,
    /// Only where the domain was created: admits others.
    issuer: Option<Issuing>,
}

/// The issuer's side.
struct Issuing {
    service: Service,
    /// Keeps the seeds that joiners are told up to date.
    seeds: watch::Sender<Vec<Address>>,
    own: Vec<Address>,
}

/// The membership in `state`, if its daemon has joined a domain.
///
/// # Errors
/// If the file cannot be used.
pub(crate) fn membership(state: &Path) -> anyhow::Result<Option<Membership>> {
    Ok(member_files::load_membership(state)?)
}

/// A sensor goes by the names that its certificate gives it.
///
/// # Errors
/// If the configuration names another domain or host.
pub(crate) fn name_after(config: &mut sensor::config::Config, membership: &Membership) -> anyhow::Result<()> {
    let certificate = membership.certificate()?;
    let usual = sensor::config::DOMAIN_DEFAULT;
    ensure!(
        config.domain == certificate.domain || config.domain.as_str() == usual,
        "the configuration says domain = {:?}, but this daemon has joined {}; change the configuration, or use \
         another state directory and join {0:?} with it",
        config.domain.as_str(),
        certificate.domain
    );
    config.domain = certificate.domain;
    config.host = certificate.host;
    Ok(())
}

impl Member {
    /// Read keys and files, listen, and be ready to [`Member::spawn`]. Call it within a runtime.
    ///
    /// # Errors
    /// If a file cannot be used, or the address not be listened on.
    pub(crate) fn open(state: &Path, membership: &Membership, config: &Config) -> anyhow::Result<Member> {
        let certificate = membership.certificate()?;
        let key = key_file::load_or_create(state)?;
        let trust = membership.trust(config.readers.clone())?;
        let (denial_file, denials) = DenialFile::open(state, &trust)?;
        let directories = membership.directories.iter().chain(&config.directories);
        let gate = Gate::new(trust, denials, directories.map(|directory| directory.key).collect());
        let gate = Arc::new(Gatekeeper::new(gate, Some(membership.chain.clone())));
        let listen = config.listen.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT));
        let start = getrandom::u64().context("the system gives no random numbers")?;
        let overlay_config = event_loop::Config::new(vec![listen]);
        let (event_loop, net, events) = EventLoop::open(overlay_config, &key, gate.clone(), start)?;
        let mut hub = Hub::new(events);
        let (peers, visits) = (hub.peers(), hub.visits(Protocol::Control));
        let questions = hub.questions(Protocol::Query);
        // The issuer too, where the token said it is: the way in when everybody has moved.
        let known = membership.seeds.iter().chain(&membership.issuer).chain(&config.seeds);
        let seeds: BTreeSet<Address> = known.cloned().collect();
        let seeds: Vec<Address> = seeds.into_iter().collect();
        let mut election = election::Config::new(certificate.domain.clone());
        election.has_seeds = !seeds.is_empty();
        let own = advertised(config, listen, &certificate);
        let me = Me {
            key: key.peer(),
            standing: Standing {
                host: certificate.host.clone(),
                may_represent: certificate.roles.has(Role::Representative),
                priority: certificate.priority,
            },
            addresses: own.iter().map(|at| at.as_str().into()).collect(),
        };
        let renewal = Renewal {
            state: state.to_owned(),
            key: key.clone(),
            gate: Arc::clone(&gate),
            denials: Arc::clone(&denial_file),
            net: net.clone(),
            pace: Pace::default(),
        };
        let files = DomainFiles::new(state, key);
        let issuer = files.exist().then(|| {
            let directories = membership.directories.iter().chain(&config.directories).cloned().collect();
            let (seeds, told) = watch::channel(own.clone());
            let questions = hub.questions(Protocol::Join);
            let issuer = Issuer::new(files, directories, own.clone());
            let (me, gate) = (me.key, Arc::clone(&gate));
            let service = Service { questions, issuer, me, gate, denials: denial_file, seeds: told };
            Issuing { service, seeds, own }
        });
        let config = domain::Config { election, me, seeds, folder: state.to_owned(), seed: start };
        let (domain, view) = Domain::open(config, net.clone(), Arc::clone(&gate), peers, visits)?;
        Ok(Member { certificate, net, gate, view, event_loop, hub, domain, questions, renewal, issuer })
    }

    /// Where queries for others go.
    pub(crate) fn router(&self) -> Router {
        Router {
            net: self.net.clone(),
            domain: self.certificate.domain.clone(),
            host: self.certificate.host.clone(),
            members: self.view.clone(),
        }
    }

    /// Take part until `shutdown`; the connections are closed when the last words are said.
    pub(crate) fn spawn(self, tasks: &mut Tasks, dispatcher: Arc<Dispatcher>, shutdown: &CancellationToken) {
        let Member { gate, view, event_loop, hub, domain, questions, renewal, issuer, .. } = self;
        let quiet = CancellationToken::new();
        let (ending, closing) = (shutdown.clone(), quiet.clone());
        tasks.spawn("domain", async move {
            let result = domain.run(ending).await;
            closing.cancel();
            result
        });
        tasks.spawn("overlay", async move {
            event_loop.run(quiet).await;
            Ok::<(), Infallible>(())
        });
        tasks.spawn("hub", async move {
            hub.run().await;
            Ok::<(), Infallible>(())
        });
        let ending = shutdown.clone();
        tasks.spawn("renewal", async move {
            renewal.run(ending).await;
            Ok::<(), Infallible>(())
        });
        if let Some(issuing) = issuer {
            let ending = shutdown.clone();
            tasks.spawn("issuer", async move {
                issuing.run(view, ending).await;
                Ok::<(), Infallible>(())
            });
        }
        let shutdown = shutdown.clone();
        tasks.spawn("questions", async move {
            queries::serve(questions, dispatcher, gate, shutdown).await;
            Ok::<(), Infallible>(())
        });
    }
}

impl Issuing {
    /// Admit others until `shutdown`; who joins is told of members that are there.
    async fn run(self, members: DomainHandle, shutdown: CancellationToken) {
        let Issuing { service, seeds, own } = self;
        let mut view = members.view();
        let telling = async {
            loop {
                let known = view.borrow_and_update().clone();
                seeds.send_replace(seeds_of(&own, &known));
                if view.changed().await.is_err() {
                    return;
                }
            }
        };
        let (denied, _) = watch::channel(Vec::new());
        tokio::join!(service.run(denied, shutdown.clone()), async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = telling => {}
            }
        });
    }
}

/// Where a joiner begins to look: this daemon, then members that are alive.
fn seeds_of(own: &[Address], view: &View) -> Vec<Address> {
    let alive = view.members.iter().filter(|seen| seen.member.state == State::Alive);
    let first = alive.filter_map(|seen| Address::try_from(seen.member.addresses.first()?.as_str()).ok());
    let mut all: Vec<Address> = own.to_vec();
    for address in first {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all.truncate(SEEDS_MAX);
    all
}

/// Where others can dial this daemon: as configured, else where it listens, else by its host's name.
fn advertised(config: &Config, listen: SocketAddr, certificate: &Certificate) -> Vec<Address> {
    if !config.advertise.is_empty() {
        return config.advertise.clone();
    }
    if !listen.ip().is_unspecified() {
        return vec![listen.into()];
    }
    let named = Address::try_from(format!("{}:{}", certificate.host, listen.port()).as_str());
    let found =
        super::interfaces::addresses().into_iter().map(|ip| SocketAddr::new(ip, listen.port()).into());
    found.chain(named.ok()).take(wire::membership::ADDRESSES_MAX).collect()
}
