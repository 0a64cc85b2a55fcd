//! Overlay of a daemon: its key, its admission, its connections; opened, and not yet running.
//!
//! Rule: services are registered with the hub before it runs; connections are closed last, after the daemon's
//! last messages.
//! Not here: which peers are admitted (`overlay::identity`), the services (`member`, `replica`).

use super::admission_status::AdmissionStatus;
use super::queries::Queries;
use anyhow::Context as _;
use daemon::shutdown::Tasks;
use overlay::authenticator::Authenticator;
use overlay::config::{Config, PORT};
use overlay::hub::{Hub, PeerEvent};
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::safe_file;
use overlay::net::event_loop::{self, EventLoop};
use overlay::net::handle::Handle;
use overlay::net::outbound::HttpProxy;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tunnel::digest::client::Login;
use wire::address::Address;
use wire::credential::Chain;

/// Role of a daemon in connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An end of connections.
    End,
    /// Also carries connections of others.
    Proxy,
}

/// The overlay, opened and not yet running.
pub(crate) struct Overlay {
    pub(crate) key: Key,
    pub(crate) gate: Arc<Authenticator>,
    pub(crate) net: Handle,
    pub(crate) hub: Hub,
    /// Addresses at which others can dial this daemon.
    pub(crate) advertised: Vec<Address>,
    /// Refusals of this daemon by others.
    pub(crate) welcome: AdmissionStatus,
    /// Random number for jitter, and to distinguish this process from an earlier one.
    pub(crate) seed: u64,
    event_loop: EventLoop,
    heard: broadcast::Receiver<PeerEvent>,
}

impl Overlay {
    /// Listen as in `config`, with at most `connections_max` connections; `host` is the name under which
    /// others may find this host. Call it within a tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub(crate) fn open(
        key: Key,
        gate: Gate,
        chain: Option<Chain>,
        config: &Config,
        (host, connections_max, part): (&str, u32, Part),
    ) -> anyhow::Result<Overlay> {
        let gate = Arc::new(Authenticator::new(gate, chain));
        let listen = config.listen.map_or_else(everywhere, |listen| vec![listen]);
        let mut advertised = advertised(config, &listen, host);
        let through = through(&config.via);
        advertised
            .truncate(wire::membership::ADDRESSES_MAX - through.len().min(wire::membership::ADDRESSES_MAX));
        advertised.extend(through);
        let seed = getrandom::u64().context("the system gives no random numbers")?;
        let config = event_loop::Config {
            connections_max,
            via: config.via.clone(),
            is_proxy: part == Part::Proxy,
            http_proxy: config.http_proxy.as_ref().map(http_proxy).transpose()?,
            ..event_loop::Config::new(listen)
        };
        let (event_loop, net, events) = EventLoop::open(config, &key, gate.clone(), seed)?;
        let hub = Hub::new(events);
        let (heard, welcome) = (hub.peers(), AdmissionStatus::of(Arc::clone(&gate)));
        Ok(Overlay { key, gate, net, hub, advertised, welcome, seed, event_loop, heard })
    }

    /// Let `answerer` answer questions of the query interface.
    pub(crate) fn answer_queries(&self, answerer: Queries) {
        self.event_loop.answer_queries(Arc::new(answerer));
    }

    /// Run the connections and the hub until `quiet`, which comes after the shutdown, when the last messages
    /// are sent.
    pub(crate) fn spawn(self, tasks: &mut Tasks, quiet: CancellationToken) {
        let Overlay { event_loop, hub, welcome, heard, .. } = self;
        let ending = quiet.clone();
        tasks.spawn_sure("welcome", welcome.listen(heard, ending));
        tasks.spawn_sure("overlay", event_loop.run(quiet));
        tasks.spawn_sure("hub", hub.run());
    }
}

/// The site's own HTTP proxy, with the secret from its file.
fn http_proxy(config: &overlay::config::HttpProxy) -> anyhow::Result<HttpProxy> {
    let login = match &config.login {
        None => None,
        Some((name, file)) => {
            let secret = safe_file::read_named(file)?
                .with_context(|| format!("there is no file {}", file.display()))?;
            let secret =
                String::from_utf8(secret).with_context(|| format!("{} is no text", file.display()))?;
            Some(Login { name: name.clone(), secret: secret.trim().to_owned(), allows_md5: true })
        }
    };
    Ok(HttpProxy { at: config.at.clone(), login })
}

/// The addresses by which others reach this daemon through its proxies.
fn through(via: &[wire::join::Directory]) -> Vec<Address> {
    let all = via.iter().flat_map(|proxy| proxy.addresses.iter().map(|at| at.through(proxy.key)));
    all.filter_map(Result::ok).collect()
}

/// The unspecified address of each address family that the system supports.
fn everywhere() -> Vec<SocketAddr> {
    let mut all = vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT)];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        all.push(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT));
    }
    all
}

/// Addresses for other daemons: the configured ones, else those it listens at, else those of its interfaces
/// and its host's name.
fn advertised(config: &Config, listen: &[SocketAddr], host: &str) -> Vec<Address> {
    if !config.advertise.is_empty() {
        return config.advertise.clone();
    }
    let is_named = |address: &&SocketAddr| !address.ip().is_unspecified();
    let named: Vec<Address> = listen.iter().filter(is_named).map(|address| (*address).into()).collect();
    if !named.is_empty() {
        return named;
    }
    let port = listen.first().map_or(PORT, SocketAddr::port);
    let by_name = Address::try_from(format!("{host}:{port}").as_str());
    let found = super::interfaces::addresses().into_iter().map(|ip| SocketAddr::new(ip, port).into());
    found.chain(by_name.ok()).take(wire::membership::ADDRESSES_MAX).collect()
}
