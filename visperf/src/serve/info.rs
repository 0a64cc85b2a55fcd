//! `daemon.info`: version, role and counters of every daemon.
//!
//! Rule: health and counters are read at each call, never cached.

use rpc::dispatch::method::Method;
use rpc::dispatch::statistics::Statistics;
use rpc::dispatch::typed;
use std::path::PathBuf;
use std::sync::Arc;
use tunnel::ladder::TransportKind;
use wire::api::Named;
use wire::api::daemon::{Figures, Info, InfoParams, Reached};
use wire::id::PeerKey;
use wire::time::Time;

pub(crate) struct Identity {
    pub(crate) kind: &'static str,
    pub(crate) host: String,
    pub(crate) domain: Option<String>,
    pub(crate) listen: String,
    pub(crate) state: PathBuf,
    pub(crate) started: Time,
}

/// Sources of health messages and counters, read at each call.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) health: Vec<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
    pub(crate) statistics: Vec<Statistic>,
    /// Connections that are not direct: the peers and transports.
    pub(crate) reach: Option<Reach>,
}

/// See [`Sources::reach`].
pub(crate) type Reach = Box<dyn Fn() -> Vec<(PeerKey, TransportKind)> + Send + Sync>;

type Statistic = (&'static str, Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>);

pub(crate) fn method(identity: Identity, sources: Sources, http: Arc<Statistics>) -> Method {
    typed::method(move |_, _: InfoParams| std::future::ready(Ok(answer(&identity, &sources, &http))))
}

fn answer(identity: &Identity, sources: &Sources, http: &Statistics) -> Info {
    let health: Vec<String> = sources.health.iter().flat_map(|ask| ask()).collect();
    let parts = sources.statistics.iter().map(|(part, ask)| ((*part).into(), named(ask())));
    let reach = sources.reach.as_ref().map(|ask| ask()).unwrap_or_default();
    let reach = reach
        .into_iter()
        .map(|(peer, transport)| Reached { peer: peer.to_string(), rung: transport.name().to_owned() });
    Info {
        name: "visperf".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kind: identity.kind.to_owned(),
        host: identity.host.clone(),
        domain: identity.domain.clone(),
        pid: std::process::id(),
        started: identity.started.into(),
        uptime_secs: crate::output::times::now().since(identity.started).as_secs_f64(),
        listen: vec![identity.listen.clone()],
        state_directory: identity.state.display().to_string(),
        healthy: health.is_empty(),
        health,
        reach: reach.collect(),
        statistics: Named(parts.chain([("queries".into(), queries(http))]).collect()),
    }
}

fn named(figures: impl IntoIterator<Item = (&'static str, u64)>) -> Figures {
    Named(figures.into_iter().map(|(name, figure)| (name.into(), figure)).collect())
}

fn queries(http: &Statistics) -> Figures {
    let counts = http.snapshot();
    named([
        ("connections_open", counts.connections_open),
        ("connections_total", counts.connections_total),
        ("connections_refused_total", counts.connections_refused_total),
        ("requests_total", counts.requests_total),
        ("requests_refused_total", counts.requests_refused_total),
        ("calls_total", counts.calls_total),
        ("faults_total", counts.faults_total),
        ("received_bytes", counts.received_bytes),
        ("sent_bytes", counts.sent_bytes),
        ("followers", counts.followers),
        ("follows_total", counts.follows_total),
        ("follows_refused_total", counts.follows_refused_total),
        ("followers_cut_total", counts.followers_cut_total),
        ("updates_total", counts.updates_total),
        ("updates_skipped_total", counts.updates_skipped_total),
    ])
}
