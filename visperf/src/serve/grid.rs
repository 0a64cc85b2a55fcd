//! Process of daemons: open, bind, serve, drain.
//!
//! Rule: everything is opened and bound before anything is served, so that a failure leaves nothing half
//! started.

use super::archiving;
use super::exported_days::{self, Days};
use super::forward::StandaloneRouter;
use super::info::{self, Identity, Reach, Sources};
use super::late_files::LateFiles;
use super::member::{self, Member};
use super::proxy::{Proxy, StartReport};
use super::replica::{self, Replica};
use super::state_watch::StateWatch;
use super::{control, registration, state_dir};
use crate::state_folder::LISTEN_DEFAULT;
use anyhow::{Context as _, bail};
use daemon::shutdown::{GRACE, Signals, Tasks};
use daemon::state_folder;
use directory::handle::SystemClock;
use directory::run::Directory;
use overlay::identity::state_folder::SOCKET_NAMES;
use overlay::net::handle::Handle;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::Registry;
use rpc::dispatch::statistics::Statistics;
use rpc::http::config::{Listen, PORT_DEFAULT};
use rpc::http::listener::LocalListener;
use rpc::limits::Limits;
use sd_notify::NotifyState;
use sensor::journal::lock::Lock;
use sensor::run::Sensor;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Daemons to start, and their configuration.
pub(crate) struct Plan {
    pub(crate) state: PathBuf,
    /// `None`: the default address, or any free port if that is in use.
    pub(crate) listen: Option<Listen>,
    /// Path of the local socket; `None`: in the state folder.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) sensor: Option<sensor::config::Config>,
    pub(crate) directory: Option<directory::config::Config>,
    pub(crate) proxy: Option<::proxy::config::Config>,
    /// Configuration of the overlay, which is used once the sensor has joined a domain.
    pub(crate) overlay: overlay::config::Config,
}

/// Daemons that are open and bound.
pub(crate) struct Grid {
    /// Lock of the whole state folder, for all daemons of this process; held until the last of them has
    /// ended.
    lock: Lock,
    state: PathBuf,
    /// Files of the folder that could not be written yet.
    files: LateFiles,
    /// Detects that the folder was removed.
    watch: StateWatch,
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    local: Result<LocalListener, String>,
    registry: Registry,
    http: Arc<Statistics>,
    sensor: Option<Sensor>,
    directory: Option<Place>,
    proxy: Option<Proxy>,
    member: Option<Member>,
    /// Exported days from which the sensor answers too.
    exported: Option<Days>,
    term: u64,
}

/// A directory, and its reach.
enum Place {
    /// Used by this process alone.
    Here(Directory),
    /// Part of a grid.
    Grid(Box<Replica>),
}

impl Place {
    fn directory(&self) -> &Directory {
        match self {
            Place::Here(directory) => directory,
            Place::Grid(replica) => replica.directory(),
        }
    }
}

impl Grid {
    /// Open the state, bind the address; nothing is served before [`Grid::run`].
    pub(crate) async fn open(plan: Plan) -> anyhow::Result<Grid> {
        if let Some(listen) = plan.listen {
            refuse_open_bind(listen)?;
        }
        let plan = Plan { state: state_dir::prepare(&plan.state)?, ..plan };
        let lock = Lock::take(&plan.state, crate::output::times::now())?;
        let files = LateFiles::default();
        daemon::descriptors::raise();
        let membership = member::membership(&plan.state)?;
        let mut sensor = match plan.sensor {
            Some(mut config) => {
                if let Some(membership) = &membership {
                    member::name_after(&mut config, membership)?;
                }
                Some(Sensor::open(config, &part(&plan.state, "sensor")?)?)
            }
            None => None,
        };
        let listener = bind(plan.listen).await?;
        let usual = SOCKET_NAMES[match (&sensor, &plan.directory) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => 2,
        }];
        let local = bind_local(&plan.state, plan.socket.as_deref(), usual)?;
        let address = listener.local_addr().context("the address of the listener is not known")?;
        let member = match (&mut sensor, &membership) {
            (Some(sensor), Some(membership)) => {
                Some(Member::open(&plan.state, membership, &plan.overlay, address, sensor, &files)?)
            }
            _ => None,
        };
        if let Some(sensor) = &sensor {
            control::open(&plan.state, sensor, member.as_ref().map(|member| Arc::clone(&member.gate)))?;
        }
        // A sensor that has joined a domain uses the directories of the grid.
        let directory = match plan.directory.filter(|_| member.is_none()) {
            Some(config) => Some(open_directory(config, &plan.state, sensor.is_some(), &plan.overlay)?),
            None => None,
        };
        let proxy = match &plan.proxy {
            Some(config) => {
                Some(Proxy::open(&plan.state, membership.as_ref(), config, &plan.overlay, &files).await?)
            }
            None => None,
        };
        let http = Arc::new(Statistics::default());
        let mut grid = Grid {
            lock,
            term: registration::next_term(&plan.state, &files)?,
            files,
            watch: StateWatch::new(&plan.state),
            state: plan.state,
            listener,
            address,
            local,
            registry: Registry::new(),
            http,
            sensor,
            directory,
            proxy,
            member,
            exported: None,
        };
        grid.fill_registry()?;
        Ok(grid)
    }

    fn fill_registry(&mut self) -> anyhow::Result<()> {
        let mut sources = Sources::default();
        let (files, unbound) = (self.files.clone(), self.local.as_ref().err().cloned());
        sources.health.push(Box::new(move || files.health().into_iter().chain(unbound.clone()).collect()));
        if let Some(sensor) = &self.sensor {
            sensor.set_address(format!("http://{}", self.address));
            self.exported = exported_days::open(sensor, &mut sources);
            self.registry.merge(sensor.methods()?)?;
            add_sensor(sensor, &mut sources);
        }
        if let Some(place) = &self.directory {
            let directory = place.directory();
            let (handle, unreadable) = (directory.handle(), directory.unreadable_total());
            match place {
                Place::Here(_) => {
                    directory::methods::add(&mut self.registry, &handle)?;
                    directory::job_index::add(&mut self.registry, None)?;
                }
                Place::Grid(replica) => {
                    directory::methods::add_with_hosts(&mut self.registry, &handle, replica.hosts())?;
                    directory::job_index::add(&mut self.registry, replica.jobs())?;
                    if let Some(jobs) = replica.jobs() {
                        let counted = jobs.clone();
                        sources.statistics.push(("job_index", Box::new(move || counted.counters())));
                        sources.health.push(Box::new(move || jobs.health()));
                    }
                    replica.add_forwarded(&mut self.registry)?;
                    let welcome = replica.welcome();
                    sources.health.push(Box::new(move || welcome.health()));
                    let net = replica.net.clone();
                    sources.reach = reach(net.clone());
                    sources.statistics.push(("overlay", Box::new(move || net.figures().counters())));
                }
            }
            sources.statistics.push(("directory", Box::new(move || directory_counts(&handle, unreadable))));
        }
        if let Some(proxy) = &self.proxy {
            proxy.add_methods(&mut self.registry)?;
            add_proxy_sources(proxy, &mut sources);
        }
        let kind = match (&self.sensor, &self.directory) {
            (Some(_), Some(_)) => "up",
            (Some(_), None) => "sensor",
            (None, _) if self.proxy.is_some() => "proxy",
            (None, _) => "directory",
        };
        let config = self.sensor.as_ref().map(Sensor::config);
        let identity = Identity {
            kind,
            host: config.map_or_else(crate::host_name::own, |config| config.host.to_string()),
            domain: config.map(|config| config.domain.to_string()),
            listen: self.address.to_string(),
            state: self.state.clone(),
            started: crate::output::times::now(),
        };
        if let (None, Some(config)) = (&self.member, config) {
            let alone = StandaloneRouter { domain: config.domain.clone(), host: config.host.clone() };
            self.registry.set_elsewhere(Box::new(alone));
        }
        self.add_state_and_membership(&mut sources)?;
        self.registry.add(info::method(identity, sources, Arc::clone(&self.http)))?;
        Ok(())
    }

    /// Add the health of the state folder, and the membership of a member. With a sensor they are part of the
    /// sensor's health, elsewhere of the daemon's.
    fn add_state_and_membership(&mut self, sources: &mut Sources) -> anyhow::Result<()> {
        let watch = self.watch.clone();
        let mut all: Vec<Box<dyn Fn() -> Vec<String> + Send + Sync>> = vec![Box::new(move || watch.health())];
        if let Some(member) = &self.member {
            member.between.lookups().add(&mut self.registry)?;
            self.registry.set_elsewhere(Box::new(member.router()));
            let (election, welcome) = (member.view.clone(), member.welcome());
            let (reception, trouble) = (member.between.reception(), member.issuer_trouble());
            let issuer = move || trouble.iter().filter_map(|it| it.borrow().clone()).collect::<Vec<_>>();
            let view = member.view.view();
            let seen = view.clone();
            all.push(Box::new(move || {
                let refused = welcome.health_within(&seen.borrow());
                [election.health(), refused, reception.health(), issuer()].concat()
            }));
            sources.statistics.push(("election", Box::new(move || view.borrow().counters())));
            let net = member.net.clone();
            sources.reach = reach(net.clone());
            sources.statistics.push(("overlay", Box::new(move || net.figures().counters())));
        }
        match &self.sensor {
            Some(sensor) => sensor.set_daemon_health(move || all.iter().flat_map(|ask| ask()).collect()),
            None => sources.health.extend(all),
        }
        Ok(())
    }

    /// The address at which it answers queries.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// `KEY@HOST:PORT` of a directory of a grid, for the configuration of other daemons.
    pub(crate) fn directory_contacts(&self) -> &[String] {
        match &self.directory {
            Some(Place::Grid(replica)) => &replica.own_contacts,
            _ => &[],
        }
    }

    /// A sentence about its membership; `None` where it has joined no domain.
    pub(crate) fn membership_text(&self) -> Option<String> {
        self.member.as_ref().map(Member::membership_text)
    }

    /// What a proxy prints at its start.
    pub(crate) fn proxy_start_report(&self) -> Option<&StartReport> {
        self.proxy.as_ref().map(|proxy| &proxy.start_report)
    }

    pub(crate) fn sensor(&self) -> Option<&Sensor> {
        self.sensor.as_ref()
    }

    /// Serve until a signal arrives, a task of `more` ends, or a task fails; then drain.
    pub(crate) async fn run(
        self,
        shutdown: CancellationToken,
        more: impl FnOnce(&mut Tasks),
    ) -> anyhow::Result<()> {
        let signals = Signals::catch().and_then(|signals| signals.obey(shutdown.clone()));
        let _obeying = signals.context("cannot catch signals")?;
        let mut tasks = Tasks::new(shutdown.clone());
        let Grid {
            lock,
            state,
            files,
            watch,
            listener,
            address,
            local,
            registry,
            http,
            sensor,
            directory,
            proxy,
            member,
            exported,
            term,
        } = self;
        let socket = local.as_ref().ok().map(|local| local.path().to_owned());
        tasks.spawn_sure("files", files.clone().run(shutdown.clone()));
        tasks.spawn_sure("state", watch.run(shutdown.clone()));
        if let Some(exported) = exported {
            tasks.spawn_sure("exported days", exported.run(shutdown.clone()));
        }
        if let (Some(sensor), Some(place)) = (&sensor, &directory) {
            let config = sensor.config();
            let record = registration::record(&config.domain, &config.host, address, term);
            let table = place.directory().handle();
            tasks.spawn("registration", registration::keep(table, record, shutdown.clone()));
        }
        let archive = sensor.as_ref().and_then(Sensor::archive);
        if let Some(sensor) = sensor {
            tasks.spawn("sensor", sensor.run(shutdown.clone()));
        }
        let limits = if proxy.is_some() { super::proxy::limits() } else { Limits::default() };
        let dispatcher = Arc::new(Dispatcher::new(registry, limits, http));
        if let Some(archive) = archive {
            archiving::spawn(&mut tasks, archive, (&dispatcher, member.is_some()), &shutdown);
        }
        match directory {
            None => {}
            Some(Place::Here(directory)) => tasks.spawn("directory", directory.run(shutdown.clone())),
            Some(Place::Grid(replica)) => replica.spawn(&mut tasks, Arc::clone(&dispatcher), &shutdown),
        }
        if let Some(proxy) = proxy {
            proxy.spawn(&mut tasks, Arc::clone(&dispatcher), &shutdown);
        }
        if let Some(member) = member {
            member.spawn(&mut tasks, Arc::clone(&dispatcher), &shutdown);
        }
        if let Ok(local) = local {
            let serving = rpc::http::server::serve_local(local, Arc::clone(&dispatcher), shutdown.clone());
            tasks.spawn_sure("queries of local clients", serving);
        }
        tasks.spawn("queries", rpc::http::server::serve_methods(listener, dispatcher, shutdown.clone()));
        more(&mut tasks);
        state_dir::write_listen(&state, &address.to_string(), socket.as_deref(), &files);
        notify_service_manager(&[NotifyState::Ready]);
        let result = tasks.run(GRACE).await;
        notify_service_manager(&[NotifyState::Stopping]);
        state_dir::remove_listen(&state, &files);
        drop(lock);
        result.map_err(anyhow::Error::from)
    }
}

/// Add the health and counters of a sensor to `daemon.info`.
fn add_sensor(sensor: &Sensor, sources: &mut Sources) {
    let [
        health,
        status,
        processes,
        report,
        subscriptions,
        history,
        copies,
        minutes,
        usage,
        calls,
        domain_calls,
        archive,
    ] = std::array::from_fn(|_| sensor.status());
    sources.health.push(Box::new(move || health.health()));
    sources.statistics.push(("sensor", Box::new(move || status.statistics())));
    sources.statistics.push(("processes", Box::new(move || processes.processes())));
    sources.statistics.push(("subscriptions", Box::new(move || subscriptions.subscriptions())));
    sources.statistics.push(("history", Box::new(move || history.history())));
    sources.statistics.push(("domain_history", Box::new(move || copies.copies())));
    sources.statistics.push(("process_history", Box::new(move || minutes.process_history())));
    sources.statistics.push(("job_usage", Box::new(move || usage.job_usage())));
    sources.statistics.push(("call_history", Box::new(move || calls.call_history())));
    sources.statistics.push(("domain_call_history", Box::new(move || domain_calls.domain_calls())));
    if sensor.archive().is_some() {
        sources.statistics.push(("archive", Box::new(move || archive.archive())));
    }
    sources.statistics.push(("reporting", Box::new(move || report.reporting())));
    let control = sensor.control();
    sources.statistics.push(("control", Box::new(move || control.figures().counters())));
}

/// Notify the service manager; without one this does nothing.
fn notify_service_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

fn part(state: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = state.join(name);
    state_folder::prepare_below(&path)?;
    Ok(path)
}

/// Open a directory: part of a grid if it runs without a sensor and admits a domain, else for this process
/// alone.
fn open_directory(
    config: directory::config::Config,
    state: &Path,
    has_sensor: bool,
    overlay: &overlay::config::Config,
) -> anyhow::Result<Place> {
    let folder = part(state, "directory")?;
    if !has_sensor && replica::admits_any(&config, &folder)? {
        return Ok(Place::Grid(Box::new(Replica::open(state, &folder, config, overlay)?)));
    }
    Ok(Place::Here(Directory::open(config, &folder, SystemClock)?))
}

fn add_proxy_sources(proxy: &Proxy, sources: &mut Sources) {
    let (welcome, door, net) = (proxy.welcome(), Arc::clone(&proxy.authorizer), proxy.net.clone());
    let tunnels = Arc::clone(&proxy.tunnels);
    sources.reach = reach(net.clone());
    sources.health.push(Box::new(move || welcome.health()));
    sources.statistics.push(("door", Box::new(move || [door.counters(), tunnels.counters()].concat())));
    sources.statistics.push(("overlay", Box::new(move || net.figures().counters())));
}

/// Most connections that `daemon.info` lists with their transports.
const REACH_LISTED_MAX: usize = 64;

fn reach(net: Handle) -> Option<Reach> {
    Some(Box::new(move || net.indirect(REACH_LISTED_MAX)))
}

fn directory_counts(handle: &directory::handle::Handle, unreadable: u64) -> Vec<(&'static str, u64)> {
    let counts = handle.counts();
    vec![
        ("registered_total", counts.registered_total),
        ("renewed_total", counts.renewed_total),
        ("refused_total", counts.refused_total),
        ("expired_total", counts.expired_total),
        ("dropped_total", counts.dropped_total),
        ("snapshots_unreadable_total", unreadable),
    ]
}

fn refuse_open_bind(listen: Listen) -> anyhow::Result<()> {
    if !listen.is_loopback() {
        bail!(
            "refusing to listen on {listen}: queries carry no credentials, so anyone who reaches this address \
             could read every log event; listen on 127.0.0.1, ask it through any other daemon of its domain (--host), \
             through a proxy with accounts (visperf proxy; docs/firewalls.md), or through a tunnel, for example \
             ssh -L {PORT_DEFAULT}:{LISTEN_DEFAULT} HOST"
        );
    }
    Ok(())
}

/// Bind the local socket, in the state folder unless `named`. If it cannot be created in the state folder, as
/// on a file system without sockets, that is reported, and the daemon answers on loopback alone.
fn bind_local(
    state: &Path,
    named: Option<&Path>,
    usual: &str,
) -> anyhow::Result<Result<LocalListener, String>> {
    let path = named.map_or_else(|| state.join(usual), Path::to_owned);
    match LocalListener::bind(&path) {
        Ok(local) => Ok(Ok(local)),
        Err(error) if named.is_some() => Err(error.into()),
        Err(error) => {
            let trouble =
                format!("{error}; local clients are not identified; name another path with --socket");
            tracing::warn!("{trouble}");
            Ok(Err(trouble))
        }
    }
}

async fn bind(listen: Option<Listen>) -> anyhow::Result<tokio::net::TcpListener> {
    if let Some(listen) = listen {
        return Ok(rpc::http::server::bind(listen).await?);
    }
    match rpc::http::server::bind(LISTEN_DEFAULT.into()).await {
        Ok(listener) => Ok(listener),
        Err(error) => {
            tracing::info!(%error, "taking another port");
            Ok(rpc::http::server::bind(SocketAddr::from(([127, 0, 0, 1], 0)).into()).await?)
        }
    }
}
