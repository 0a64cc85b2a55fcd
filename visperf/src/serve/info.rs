//! `daemon.info`: what every daemon tells of itself.
//!
//! Rule: health and figures are asked when the call comes, never remembered.

use rpc::method::{Declaration, Method};
use rpc::statistics::Statistics;
use rpc::value::{Name, Value};
use std::path::PathBuf;
use std::sync::Arc;
use tunnel::ladder::Rung;
use wire::id::PeerKey;
use wire::time::Time;

/// What a daemon tells of itself, fixed parts.
pub(crate) struct Identity {
    pub(crate) kind: &'static str,
    pub(crate) host: String,
    pub(crate) domain: Option<String>,
    pub(crate) listen: String,
    pub(crate) state: PathBuf,
    pub(crate) started: Time,
}

/// What is wrong and how much was done, asked at each call.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) health: Vec<Box<dyn Fn() -> Vec<String> + Send + Sync>>,
    pub(crate) statistics: Vec<Statistic>,
    /// How connections are made that are not direct: with whom, and by which rung.
    pub(crate) reach: Option<Reach>,
}

/// See [`Sources::reach`].
pub(crate) type Reach = Box<dyn Fn() -> Vec<(PeerKey, Rung)> + Send + Sync>;

type Statistic = (&'static str, Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>);

pub(crate) fn method(identity: Identity, sources: Sources, http: Arc<Statistics>) -> Method {
    Declaration::new("daemon.info", "what this daemon is, how it is, and what it did")
        .reading()
        .returns(
            "struct",
            "name, version, kind, host, domain, pid, started, uptime, listen, state_directory, healthy, health, reach, statistics",
        )
        .handler_now(move |_| Ok(answer(&identity, &sources, &http)))
}

fn answer(identity: &Identity, sources: &Sources, http: &Statistics) -> Value {
    let health: Vec<String> = sources.health.iter().flat_map(|ask| ask()).collect();
    let mut statistics: Vec<(Name, Value)> = Vec::new();
    for (part, ask) in &sources.statistics {
        let figures = ask().into_iter().map(|(name, value)| (name, Value::UInt(value)));
        statistics.push(((*part).into(), Value::object(figures)));
    }
    statistics.push(("queries".into(), queries(http)));
    let reach = sources.reach.as_ref().map(|ask| ask()).unwrap_or_default();
    let reach = reach.into_iter().map(|(peer, rung)| {
        Value::object([("peer", Value::Text(peer.to_string())), ("rung", Value::Text(rung.name().into()))])
    });
    let reach = reach.collect();
    let mut members: Vec<(Name, Value)> = vec![
        ("name".into(), Value::Text("visperf".into())),
        ("version".into(), Value::Text(env!("CARGO_PKG_VERSION").into())),
        ("kind".into(), Value::Text(identity.kind.into())),
        ("host".into(), Value::Text(identity.host.clone())),
    ];
    if let Some(domain) = &identity.domain {
        members.push(("domain".into(), Value::Text(domain.clone())));
    }
    members.extend([
        ("pid".into(), Value::UInt(std::process::id().into())),
        ("started".into(), Value::Double(identity.started.secs_f64())),
        ("uptime".into(), Value::Double(crate::output::times::now().since(identity.started).as_secs_f64())),
        ("listen".into(), Value::Array(vec![Value::Text(identity.listen.clone())])),
        ("state_directory".into(), Value::Text(identity.state.display().to_string())),
        ("healthy".into(), Value::Bool(health.is_empty())),
        ("health".into(), Value::Array(health.into_iter().map(Value::Text).collect())),
        ("reach".into(), Value::Array(reach)),
        ("statistics".into(), Value::Struct(statistics)),
    ]);
    Value::Struct(members)
}

fn queries(http: &Statistics) -> Value {
    let counts = http.snapshot();
    Value::object([
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
