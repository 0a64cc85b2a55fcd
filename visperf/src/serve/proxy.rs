//! Proxy daemon: its key and certificate in the overlay, the directories by which it finds domains, and its
//! listener.
//!
//! Rules: it is a member of a domain with the role of a viewer, and asks as one; it opens the connections to
//! the directories itself, so that it knows its peers before they connect. Everything is read and bound
//! before anything runs.
//! Not here: logins and permissions of visitors (`proxy`), reaching a domain (`remote_domains`).

use super::admission_status::AdmissionStatus;
use super::credentials::Credentials;
use super::forward::Router;
use super::guest_login::GuestLogin;
use super::late_files::LateFiles;
use super::lookups::Lookups;
use super::overlay::{Overlay, Part};
use super::remote_domains::{Lookup, RemoteDomains};
use super::state_dir;
use anyhow::{Context as _, anyhow};
use daemon::shutdown::Tasks;
use overlay::authenticator::Authenticator;
use overlay::config::Config;
use overlay::contacts::Contacts;
use overlay::directories::Directories;
use overlay::identity::join::Membership;
use overlay::identity::proxy_ticket;
use overlay::joining::renewal::{Pace, Renewal};
use overlay::net::event_loop::CONNECTIONS_MAX;
use overlay::net::handle::Handle;
use overlay::net::https_stream::tunnels::Tunnels;
use overlay::net::protocol::Protocol;
use overlay::resolve::asker::{Asker, Asking};
use overlay::revocation_sync::RevocationSync;
use proxy::account::{Accounts, REALM_DEFAULT};
use proxy::account_file;
use proxy::authorizer::{Member, ProxyAuthorizer, TicketVerifier};
use proxy::certificate::{Certificate, Origin};
use proxy::config::Tls;
use proxy::upgrade::TunnelUpgrade;
use proxy::watch::Watch;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::Registry;
use rpc::fault::Fault;
use rpc::limits::Limits;
use rpc::stream_limits::StreamLimits;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::id::PeerKey;

/// Interval of the requests to hold the connections to the directories; shorter than the timeout after which
/// they would be closed.
const HOLD_INTERVAL: Duration = Duration::from_secs(20);

/// Most connections without a stream at the listener: each takes some 20 KiB, and together less than half of
/// the descriptors of a process.
const CONNECTIONS_AT_DOOR: usize = 8_000;

/// Most connections from one address, including those with streams: many users may share one.
const CONNECTIONS_OF_ADDRESS: usize = 2_000;

/// Most streams beyond those connections: with them a process has 19,000, where systems allow 20,000
/// descriptors.
const FOLLOWERS: usize = 11_000;

/// Most different questions that are streamed: as many as calls in progress, since each may be in progress at
/// once.
const QUESTIONS: usize = CALLS_IN_WORK;

/// Largest answer, so that all answers in progress fit into memory.
const ANSWER_BYTES: usize = 16 << 20;

/// Most calls in progress.
const CALLS_IN_WORK: usize = 512;

/// Limits of one proxy.
pub(crate) fn limits() -> Limits {
    Limits {
        connections: CONNECTIONS_AT_DOOR,
        connections_per_address: CONNECTIONS_OF_ADDRESS,
        answer_bytes: ANSWER_BYTES,
        calls_in_work: CALLS_IN_WORK,
        follow: StreamLimits {
            followers: FOLLOWERS,
            followers_of_source: CONNECTIONS_OF_ADDRESS,
            questions: QUESTIONS,
            ..StreamLimits::default()
        },
        ..Limits::default()
    }
}

/// A proxy that is bound, and not yet running.
pub(crate) struct Proxy {
    pub(crate) net: Handle,
    pub(crate) authorizer: Arc<ProxyAuthorizer>,
    /// Connections for the overlay that arrive at the proxy's listener.
    pub(crate) tunnels: Arc<Tunnels>,
    pub(crate) start_report: StartReport,
    overlay: Overlay,
    others: RemoteDomains,
    asker: Asker,
    asking: Asking,
    directories: Arc<Directories>,
    denying: RevocationSync,
    renewal: Renewal,
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    watch: Watch,
}

/// What a proxy prints at its start.
#[derive(Clone, Debug)]
pub(crate) struct StartReport {
    /// The address at which visitors connect.
    pub(crate) address: SocketAddr,
    /// SHA-256 of the certificate and its file; `None` without encryption.
    pub(crate) certificate: Option<(String, std::path::PathBuf)>,
    /// Number of accounts.
    pub(crate) accounts: usize,
    /// Number of directories that it asks.
    pub(crate) directories: usize,
    /// `KEY@HOST:PORT`, by which daemons inside register with it.
    pub(crate) contacts: Vec<String>,
    /// The same with the port of its listener, for daemons that can only use web traffic; empty where it
    /// listens on loopback alone.
    pub(crate) web_contacts: Vec<String>,
}

fn not_joined(state: &Path) -> anyhow::Error {
    anyhow!(
        "a proxy is a member of a domain, and the state folder {} has joined none; type `visperf token create \
         --role viewer` on the host that created the domain, and what it prints here, with --state {0}",
        state.display()
    )
}

impl Proxy {
    /// Read keys and files, and listen. Call it within a tokio runtime.
    ///
    /// # Errors
    /// If a file cannot be used, or an address cannot be listened on.
    pub(crate) async fn open(
        state: &Path,
        membership: Option<&Membership>,
        config: &proxy::config::Config,
        overlay_config: &Config,
        files: &LateFiles,
    ) -> anyhow::Result<Proxy> {
        let membership = membership.ok_or_else(|| not_joined(state))?;
        let Credentials { certificate, key, chain, previous, gate, denials, directories: known } =
            Credentials::read(state, membership, overlay_config)?;
        let listener_files = ListenerFiles::read(state, config)?;
        let place = (certificate.host.as_str(), CONNECTIONS_MAX, Part::Proxy);
        let overlay = Overlay::open(key, gate, Some(chain.clone()), overlay_config, place)?;
        overlay.gate.show(chain, previous);
        state_dir::write_reached(state, &overlay.advertised, files)?;
        let contacts = Arc::new(Contacts::new(overlay.net.clone(), None));
        let me = overlay.key.peer();
        let directories = Directories::new(me, Arc::clone(&contacts), known);
        let gate = || Arc::clone(&overlay.gate);
        let (asking, asker) = Asking::open(state, gate(), Arc::clone(&directories), overlay.seed)?;
        let denying = RevocationSync {
            domain: certificate.domain.clone(),
            gate: gate(),
            denials: Arc::clone(&denials),
            net: overlay.net.clone(),
            members: None,
            directories: Arc::clone(&directories),
        };
        let renewal = Renewal {
            state: state.to_owned(),
            key: overlay.key.clone(),
            gate: gate(),
            denials,
            net: overlay.net.clone(),
            pace: Pace::default(),
        };
        let others = RemoteDomains {
            lookup: Lookup::Asked(asker.clone()),
            contacts,
            welcome: overlay.welcome.clone(),
        };
        let opened = open_listener(listener_files, config, Arc::new(Members { me, gate: gate() })).await?;
        let start_report = StartReport {
            address: opened.address,
            certificate: opened.certificate.as_ref().map(|it| (it.fingerprint(), it.origin().certificate())),
            accounts: opened.accounts,
            directories: directories.keys().len(),
            contacts: overlay.advertised.iter().map(|at| format!("{me}@{at}")).collect(),
            web_contacts: web_contacts(me, &overlay.advertised, opened.address),
        };
        let watch = Watch::new(state, Arc::clone(&opened.authorizer), opened.certificate.clone());
        Ok(Proxy {
            net: overlay.net.clone(),
            tunnels: Tunnels::new(&overlay.net),
            authorizer: opened.authorizer,
            start_report,
            overlay,
            others,
            asker,
            asking,
            directories,
            denying,
            renewal,
            listener: opened.listener,
            certificate: opened.certificate,
            watch,
        })
    }

    /// Health messages about refusals of this daemon by others, as sentences.
    pub(crate) fn welcome(&self) -> AdmissionStatus {
        self.overlay.welcome.clone()
    }

    /// Add the methods of domains and of directories: all calls are forwarded.
    ///
    /// # Errors
    /// If a method of the same name already exists.
    pub(crate) fn add_methods(&self, registry: &mut Registry) -> Result<(), rpc::dispatch::method::Error> {
        for declaration in sensor::query::declared::all() {
            // The router forwards each call, or returns the reason why it cannot.
            registry
                .add(declaration.handler_now(|_| Err(Fault::internal("a proxy has no answer of its own"))))?;
        }
        let lookups = Lookups {
            asker: self.asker.clone(),
            directories: Arc::clone(&self.directories),
            net: self.net.clone(),
            members: None,
            welcome: self.overlay.welcome.clone(),
        };
        lookups.add(registry)?;
        registry.set_elsewhere(Box::new(Router {
            net: self.net.clone(),
            own: None,
            others: self.others.clone(),
            relays: None,
        }));
        Ok(())
    }

    /// Serve visitors until `shutdown`.
    pub(crate) fn spawn(self, tasks: &mut Tasks, dispatcher: Arc<Dispatcher>, shutdown: &CancellationToken) {
        let Proxy { mut overlay, others, asking, directories, denying, renewal, .. } = self;
        let logins = overlay.hub.questions(Protocol::Enter);
        let entering = GuestLogin {
            authorizer: Arc::clone(&self.authorizer),
            others: others.clone(),
            key: overlay.key.clone(),
            gate: Arc::clone(&overlay.gate),
            net: self.net,
        };
        let (listener, watch) = (self.listener, self.watch);
        let options = rpc::http::server::ListenerOptions {
            authorizer: Some(self.authorizer),
            tls: self.certificate.map(|certificate| certificate.acceptor()),
            upgrade: Some(Arc::new(TunnelUpgrade::new(self.tunnels))),
        };
        overlay.spawn(tasks, shutdown.clone());
        tasks.spawn("look-up", asking.run(shutdown.clone()));
        tasks.spawn_sure("visitors", entering.run(logins, shutdown.clone()));
        tasks.spawn_sure("denials", denying.run(shutdown.clone()));
        tasks.spawn_sure("renewal", renewal.run(shutdown.clone()));
        tasks.spawn_sure("accounts", watch.run(shutdown.clone()));
        tasks.spawn_sure("directories", hold(directories, shutdown.clone()));
        let ending = shutdown.clone();
        tasks.spawn_sure("contacts", async move { others.contacts.tend(ending).await });
        tasks.spawn("door", rpc::http::server::serve_with(options, listener, dispatcher, shutdown.clone()));
    }
}

/// `KEY@HOST:PORT` of the listener, with the host names under which the overlay is reached.
fn web_contacts(me: PeerKey, advertised: &[Address], door: SocketAddr) -> Vec<String> {
    if door.ip().is_loopback() {
        return Vec::new();
    }
    let mut contacts: Vec<String> = Vec::new();
    for at in advertised {
        let host = if at.host().contains(':') { format!("[{}]", at.host()) } else { at.host().to_owned() };
        let contact = format!("{me}@{host}:{}", door.port());
        if !contacts.contains(&contact) {
            contacts.push(contact);
        }
    }
    contacts
}

async fn hold(directories: Arc<Directories>, shutdown: CancellationToken) {
    let mut again = tokio::time::interval(HOLD_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = again.tick() => directories.hold().await,
        }
    }
}

/// Authenticates members by their passes, with the same checks as for a connection.
struct Members {
    me: PeerKey,
    gate: Arc<Authenticator>,
}

impl TicketVerifier for Members {
    fn member(&self, text: &str) -> Result<Member, String> {
        let shown = proxy_ticket::read(text).map_err(|error| error.to_string())?;
        let principal = self.gate.open_pass(&shown, self.me).map_err(|refused| refused.to_string())?;
        let (Some(domain), Some(host)) = (principal.domain, principal.host) else {
            return Err("the pass is of no member of a domain".to_owned());
        };
        Ok(Member { domain, host })
    }
}

struct OpenedListener {
    authorizer: Arc<ProxyAuthorizer>,
    listener: TcpListener,
    address: SocketAddr,
    certificate: Option<Arc<Certificate>>,
    accounts: usize,
}

/// Accounts and certificate of the listener.
struct ListenerFiles {
    accounts: Accounts,
    /// `None` without encryption.
    certificate: Option<Arc<Certificate>>,
}

impl ListenerFiles {
    fn read(state: &Path, config: &proxy::config::Config) -> anyhow::Result<ListenerFiles> {
        let accounts = match account_file::read(state)? {
            Some(accounts) => accounts,
            None => Accounts::new(REALM_DEFAULT)?,
        };
        let origin = match &config.tls {
            Tls::Plain => None,
            Tls::Given { certificate, key } => {
                Some(Origin::Given { certificate: certificate.clone(), key: key.clone() })
            }
            Tls::Own { names } => {
                let mut names = names.clone();
                let host = crate::host_name::own();
                let at = config.listen.address().ip();
                let specified = (!at.is_unspecified()).then(|| at.to_string());
                names.extend([host, "localhost".to_owned()].into_iter().chain(specified));
                Some(Origin::Own { folder: state.join(account_file::FOLDER), names })
            }
        };
        Ok(ListenerFiles { accounts, certificate: origin.map(Certificate::open).transpose()? })
    }
}

async fn open_listener(
    files: ListenerFiles,
    config: &proxy::config::Config,
    passes: Arc<dyn TicketVerifier>,
) -> anyhow::Result<OpenedListener> {
    let ListenerFiles { accounts, certificate } = files;
    let listener = rpc::http::server::bind(config.listen).await?;
    let address = listener.local_addr().context("the address of the listener is not known")?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let channel = format!("{scheme}://{address}").into_bytes();
    let authorizer = ProxyAuthorizer::new(&accounts, channel, config.takes_md5, Some(passes));
    let authorizer = authorizer.map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(OpenedListener { authorizer, listener, address, certificate, accounts: accounts.all().count() })
}

#[cfg(test)]
mod tests {
    use proxy::grant::Class;
    use rpc::dispatch::method::Declaration;
    use std::collections::BTreeMap;
    use wire::api::directory::{DomainsParams, ResolveParams, TargetsParams};
    use wire::api::job_index::DirectoryJobsParams;

    /// The class of each method. Enter a new method here, and in `proxy::grant` if viewers may call it.
    const CLASSED: [(Class, &[&str]); 4] = [
        (
            Class::Figures,
            &[
                "domain.history",
                "domain.hosts",
                "domain.metrics",
                "sensor.alter",
                "sensor.channels",
                "sensor.history",
                "sensor.metrics",
                "sensor.past_processes",
                "sensor.process_history",
                "sensor.processes",
                "sensor.subscribe",
                "sensor.subscriptions",
                "sensor.take",
                "sensor.unsubscribe",
            ],
        ),
        (
            Class::Logs,
            &[
                "directory.jobs",
                "domain.calls",
                "domain.events",
                "domain.summary",
                "jobs.get",
                "jobs.index",
                "jobs.report",
                "jobs.search",
                "sensor.archive",
                "sensor.call_processes",
                "sensor.calls",
                "sensor.events",
                "sensor.files",
                "sensor.filters",
                "sensor.job_series",
                "sensor.modules",
                "sensor.recording",
                "sensor.recording_file",
                "sensor.recordings",
                "sensor.series_copy",
            ],
        ),
        (Class::Grid, &["directory.domains", "directory.resolve", "directory.targets"]),
        (Class::Steering, &["sensor.change_module", "sensor.control", "sensor.import_jobs", "sensor.record"]),
    ];

    #[test]
    fn each_method_handed_on_has_an_explicit_class() {
        let of_directories = [
            Declaration::of::<ResolveParams>(),
            Declaration::of::<DomainsParams>(),
            Declaration::of::<TargetsParams>(),
            Declaration::of::<DirectoryJobsParams>(),
        ];
        let mut found: BTreeMap<Class, Vec<&str>> = BTreeMap::new();
        for declaration in sensor::query::declared::all().into_iter().chain(of_directories) {
            let class = Class::of(declaration.name(), declaration.is_reading());
            found.entry(class).or_default().push(declaration.name());
        }
        found.values_mut().for_each(|names| names.sort_unstable());
        let expected: BTreeMap<Class, Vec<&str>> =
            CLASSED.iter().map(|(class, names)| (*class, names.to_vec())).collect();
        assert_eq!(found, expected);
    }
}
