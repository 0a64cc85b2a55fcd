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
use std::sync::Arc;
use wire::id::{DomainName, HostName};
use wire::registration::Coverage;

/// The path that a Prometheus is told.
pub const PATH: &str = "/sd/prometheus";

/// The port of node_exporter, which a host that is monitored with Prometheus has.
const PORT_DEFAULT: i64 = 9100;

/// Most hosts in one answer: some 10 MB. More are asked for domain by domain.
const TARGETS_MAX: usize = 40_000;

type List = dyn Fn(&DomainName) -> Vec<HostName> + Send + Sync;

/// Lists the hosts of a domain, as far as the composing program knows them.
#[derive(Clone)]
pub struct Hosts(Arc<List>);

impl Hosts {
    /// What `list` says.
    pub fn new(list: impl Fn(&DomainName) -> Vec<HostName> + Send + Sync + 'static) -> Hosts {
        Hosts(Arc::new(list))
    }

    /// None but those that records name.
    #[must_use]
    pub fn none() -> Hosts {
        Hosts::new(|_| Vec::new())
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
    let port = Type::Whole { min: 1, max: 65_535 };
    registry.add(
        Declaration::new("directory.targets", "Every host, as service discovery of Prometheus takes it.")
            .details("Also GET /sd/prometheus, which http_sd_configs of Prometheus can be given.")
            .reading()
            .parameter(Parameter::new("domain", Type::Text, "only hosts of this domain"))
            .parameter(Parameter::new("port", port, "the port of each target").default(PORT_DEFAULT))
            .returns("array", "targets: [HOST:PORT]; labels: texts that begin with __meta_visperf_")
            .handler_now(move |params: &Params| {
                targets(&handle, &hosts, params.text("domain")?, params.need_whole("port")?)
            }),
    )?;
    registry.add_path(PATH, "directory.targets")
}

/// What is known of a host.
struct Target {
    role: &'static str,
    state: State,
    term: u64,
    query: Option<String>,
}

fn targets(handle: &Handle, hosts: &Hosts, domain: Option<&str>, port: i64) -> Result<Value, Fault> {
    let domain = domain.map(DomainName::try_from).transpose();
    let domain = domain.map_err(|error| Fault::invalid_params(format!("domain: {error}")))?;
    let found = match &domain {
        Some(domain) => handle.resolve(domain).into_iter().collect(),
        None => handle.domains(),
    };
    let mut told = Vec::new();
    for found in found {
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
fn of_domain(found: &Found, hosts: &Hosts) -> BTreeMap<HostName, Target> {
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
    for host in (hosts.0)(&found.record.domain) {
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

    #[test]
    fn every_host_is_a_target_once_with_its_labels() {
        let hosts = Hosts::new(
            |of: &DomainName| {
                if of.as_str() == "b" { vec![host("n1"), host("n9")] } else { vec![] }
            },
        );
        let answer = targets(&directory(), &hosts, None, 9100).expect("few");
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
        let of_one = targets(&directory(), &hosts, Some("b"), 1).expect("few");
        assert_eq!(of_one.as_array().map(<[Value]>::len), Some(2));
        assert_eq!(targets(&directory(), &hosts, Some("none"), 1), Ok(Value::array(Vec::<Value>::new())));
        assert!(targets(&directory(), &hosts, Some("a b"), 1).is_err());
    }

    #[test]
    fn the_path_answers_what_the_method_answers() {
        let mut registry = Registry::new();
        add(&mut registry, &directory(), Hosts::none()).expect("new names");
        assert_eq!(registry.paths().collect::<Vec<_>>(), [(PATH, "directory.targets")]);
        assert!(add(&mut registry, &directory(), Hosts::none()).is_err(), "once only");
    }
}
