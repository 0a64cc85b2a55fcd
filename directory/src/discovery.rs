//! Service discovery for Prometheus: every host of every domain, as its `http_sd_configs` reads it.
//!
//! ```text
//! GET /sd/prometheus?port=9100   [{"targets": ["n1:9100"], "labels": {"__meta_visperf_domain": "UT-ICL", …}}, …]
//! ```
//! A target is a host's name and the port that was asked for, because what is scraped there is not visperf's:
//! node_exporter's port unless told otherwise. Labels say what is known of the host, for relabelling.
//! Hosts are those that representatives name in their records, and those that [`Hosts`] lists for a domain.

use crate::handle::{Found, Handle};
use crate::registry::State;
use rpc::fault::Fault;
use rpc::method::{Declaration, Registry};
use rpc::params::{Parameter, Params, Type};
use rpc::value::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use wire::id::{DomainName, HostName};
use wire::registration::Coverage;

/// The path that a Prometheus is told.
pub const PATH: &str = "/sd/prometheus";

/// The method that answers it.
pub const NAME: &str = "directory.targets";

/// The port of node_exporter, which a host that is monitored with Prometheus has.
const PORT_DEFAULT: i64 = 9100;

/// Most hosts in one answer: some 10 MB. More are asked for domain by domain.
const TARGETS_MAX: usize = 40_000;

/// The hosts of several domains, as far as they could be learned.
pub type Listed = BTreeMap<DomainName, Vec<HostName>>;

type Listing = Pin<Box<dyn Future<Output = Listed> + Send>>;
type List = dyn Fn(Vec<Found>) -> Listing + Send + Sync;

/// Lists the hosts of domains, as far as the composing program can learn them.
#[derive(Clone)]
pub struct Hosts(Arc<List>);

impl Hosts {
    /// What `list` says of the domains that it is given, soon: somebody waits for it.
    pub fn new<F>(list: impl Fn(Vec<Found>) -> F + Send + Sync + 'static) -> Hosts
    where
        F: Future<Output = Listed> + Send + 'static,
    {
        Hosts(Arc::new(move |found| Box::pin(list(found))))
    }

    /// None but those that records name.
    #[must_use]
    pub fn none() -> Hosts {
        Hosts::new(|_| std::future::ready(Listed::new()))
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hosts(…)")
    }
}

/// Add the method `directory.targets` and its path.
///
/// # Errors
/// If a method or a path of the same name is there already.
pub fn add(registry: &mut Registry, handle: &Handle, hosts: Hosts) -> Result<(), rpc::method::Error> {
    let handle = handle.clone();
    registry.add(declaration().handler(move |params: Params| {
        let (handle, hosts) = (handle.clone(), hosts.clone());
        async move { targets(&handle, &hosts, params.text("domain")?, params.need_whole("port")?).await }
    }))?;
    registry.add_path(PATH, NAME)
}

/// The method behind [`PATH`], for whichever daemon answers it.
#[must_use]
pub fn declaration() -> Declaration {
    let port = Type::Whole { min: 1, max: 65_535 };
    Declaration::new(NAME, "Every host, as service discovery of Prometheus takes it.")
        .details("Also GET /sd/prometheus, which http_sd_configs of Prometheus can be given.")
        .reading()
        .parameter(Parameter::new("domain", Type::Text, "only hosts of this domain"))
        .parameter(Parameter::new("port", port, "the port of each target").default(PORT_DEFAULT))
        .returns("array", "targets: [HOST:PORT]; labels: texts that begin with __meta_visperf_")
}

/// What is known of a host.
struct Target {
    role: &'static str,
    state: State,
    term: u64,
    query: Option<String>,
}

async fn targets(handle: &Handle, hosts: &Hosts, domain: Option<&str>, port: i64) -> Result<Value, Fault> {
    let domain = domain.map(DomainName::try_from).transpose();
    let domain = domain.map_err(|error| Fault::invalid_params(format!("domain: {error}")))?;
    let found: Vec<Found> = match &domain {
        Some(domain) => handle.resolve(domain).into_iter().collect(),
        None => handle.domains(),
    };
    let mut listed = (hosts.0)(found.clone()).await;
    let mut told = Vec::new();
    for found in found {
        let hosts = listed.remove(&found.record.domain).unwrap_or_default();
        for (host, target) in of_domain(&found, hosts) {
            told.push(group(found.record.domain.as_str(), host.as_str(), &target, port));
        }
        if told.len() > TARGETS_MAX {
            return Err(Fault::new(
                rpc::fault::TOO_LARGE,
                format!(
                    "more than {TARGETS_MAX} hosts; expected a domain to be named, as in {PATH}?domain=NAME"
                ),
            ));
        }
    }
    Ok(Value::array(told))
}

/// Every host of a domain once: what the primary says of it goes before what others say.
fn of_domain(found: &Found, hosts: Vec<HostName>) -> BTreeMap<HostName, Target> {
    let mut targets = BTreeMap::new();
    for told in std::iter::once(found).chain(&found.partial) {
        let query = told.record.addresses.first().cloned();
        let (state, term) = (told.state, told.record.term);
        let role = told.record.sensor_type.as_str();
        targets.entry(told.record.host.clone()).or_insert(Target { role, state, term, query });
    }
    for told in std::iter::once(found).chain(&found.partial) {
        let Some(Coverage::Part { hosts, .. }) = told.record.reach.as_ref().map(|reach| &reach.coverage)
        else {
            continue;
        };
        for host in hosts {
            targets.entry(host.clone()).or_insert_with(|| member(told));
        }
    }
    for host in hosts {
        targets.entry(host).or_insert_with(|| member(found));
    }
    targets
}

fn member(told: &Found) -> Target {
    Target { role: "member", state: told.state, term: told.record.term, query: None }
}

fn group(domain: &str, host: &str, target: &Target, port: i64) -> Value {
    let mut labels = vec![
        ("__meta_visperf_domain", Value::from(domain)),
        ("__meta_visperf_host", host.into()),
        ("__meta_visperf_role", target.role.into()),
        ("__meta_visperf_state", target.state.as_str().into()),
        ("__meta_visperf_term", target.term.to_string().into()),
    ];
    if let Some(query) = &target.query {
        labels.push(("__meta_visperf_query", query.as_str().into()));
    }
    Value::object([("targets", Value::array([format!("{host}:{port}")])), ("labels", Value::object(labels))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::SystemClock;
    use crate::testing::own_record;
    use wire::id::PeerKey;
    use wire::registration::{Reach, Record};

    fn host(name: &str) -> HostName {
        HostName::try_from(name).expect("a name")
    }

    fn directory() -> Handle {
        let handle = Handle::new(crate::registry::Registry::new(10), SystemClock);
        let coverage = Coverage::Part { hosts: vec![host("n1"), host("n2")], hosts_total: 2 };
        let key = PeerKey([1; 32]);
        let reach = Reach { root: key, peer: key, addresses: vec!["h:1".parse().expect("one")], coverage };
        handle.register(Record { reach: Some(reach), ..own_record("a", 1, 1) }).expect("accepted");
        handle.register(own_record("b", 1, 1)).expect("accepted");
        handle
    }

    #[tokio::test]
    async fn every_host_is_a_target_once_with_its_labels() {
        let hosts = Hosts::new(|found| async move {
            let names = found.into_iter().map(|found| found.record.domain);
            names.filter(|name| name.as_str() == "b").map(|b| (b, vec![host("n1"), host("n9")])).collect()
        });
        let answer = targets(&directory(), &hosts, None, 9100).await.expect("few");
        let told: Vec<String> = answer
            .as_array()
            .expect("an array")
            .iter()
            .map(|group| {
                let text = |value: &Value, name: &str| {
                    value.get(name).and_then(Value::as_text).map(str::to_owned).unwrap_or_default()
                };
                let labels = group.get("labels").expect("labels");
                let target = group.get("targets").and_then(Value::as_array).expect("targets");
                assert_eq!(target.len(), 1);
                format!(
                    "{} {} {} {}",
                    text(labels, "__meta_visperf_domain"),
                    target[0].as_text().expect("a text"),
                    text(labels, "__meta_visperf_role"),
                    text(labels, "__meta_visperf_query"),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "a n1:9100 representative http://127.0.0.1:7741",
                "a n2:9100 member ",
                "b n1:9100 representative http://127.0.0.1:7741",
                "b n9:9100 member ",
            ]
        );
        let of_one = targets(&directory(), &hosts, Some("b"), 1).await.expect("few");
        assert_eq!(of_one.as_array().map(<[Value]>::len), Some(2));
        assert_eq!(
            targets(&directory(), &hosts, Some("none"), 1).await,
            Ok(Value::array(Vec::<Value>::new()))
        );
        assert!(targets(&directory(), &hosts, Some("a b"), 1).await.is_err());
    }

    #[test]
    fn the_path_answers_what_the_method_answers() {
        let mut registry = Registry::new();
        add(&mut registry, &directory(), Hosts::none()).expect("new names");
        assert_eq!(registry.paths().collect::<Vec<_>>(), [(PATH, "directory.targets")]);
        assert!(add(&mut registry, &directory(), Hosts::none()).is_err(), "once only");
    }
}
