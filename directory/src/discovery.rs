//! Service discovery for Prometheus: every host of every domain, in the format of its `http_sd_configs`.
//!
//! ```text
//! GET /sd/prometheus?port=9100   [{"targets": ["n1:9100"], "labels": {"__meta_visperf_domain": "UT-ICL", …}}, …]
//! ```
//! A target is a host name and the requested port, because the scraped exporter is not part of visperf; the
//! default is node_exporter's port. Labels describe the host, for relabelling.
//! Hosts come from the records of the representatives, and from [`Hosts`], which lists the hosts of a domain.
//! Rule: the representative decides the state of a host, but a host is live only if the record of its
//! representative is live.

use crate::faults;
use crate::handle::{Found, Handle, Lookup};
use crate::registry::State;
use rpc::dispatch::method::Registry;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use wire::api::Request as _;
use wire::api::directory::{TargetGroup, TargetsParams};
use wire::id::{DomainName, HostName};
use wire::registration::Coverage;

/// Path of the HTTP resource.
pub const PATH: &str = "/sd/prometheus";

/// Most hosts in one answer, about 10 MB. A client with more hosts requests one domain at a time.
const TARGETS_MAX: usize = 40_000;

/// The hosts of several domains with their state, as far as they are known.
pub type Listed = BTreeMap<DomainName, Vec<(HostName, HostState)>>;

/// State of a host, as `domain.hosts` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// The host reports.
    Live,
    /// The host should report and does not.
    LastSeen,
    /// The host announced that it stops.
    Left,
}

impl HostState {
    /// `live`, `last_seen` or `left`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            HostState::Live => "live",
            HostState::LastSeen => "last_seen",
            HostState::Left => "left",
        }
    }

    /// Parse the text of [`HostState::as_str`]. Returns `None` for any other text.
    #[must_use]
    pub fn of_word(word: &str) -> Option<HostState> {
        [HostState::Live, HostState::LastSeen, HostState::Left].into_iter().find(|it| it.as_str() == word)
    }

    /// State of a host for which only the state of a record is known.
    fn of_record(state: State) -> HostState {
        match state {
            State::Live => HostState::Live,
            State::Expired | State::Restored => HostState::LastSeen,
        }
    }

    /// State of a host that its representative reports as `self` and whose record is in `state`.
    fn in_record(self, state: State) -> HostState {
        match self {
            HostState::Live => HostState::of_record(state),
            HostState::LastSeen | HostState::Left => self,
        }
    }
}

type Listing = Pin<Box<dyn Future<Output = Listed> + Send>>;
type List = dyn Fn(Vec<Found>) -> Listing + Send + Sync;

/// Source of the hosts of domains, provided by the composing program.
#[derive(Clone)]
pub struct Hosts(Arc<List>);

impl Hosts {
    /// Use `list` to look up the hosts of the given domains. It must return soon, because a client waits.
    pub fn new<F>(list: impl Fn(Vec<Found>) -> F + Send + Sync + 'static) -> Hosts
    where
        F: Future<Output = Listed> + Send + 'static,
    {
        Hosts(Arc::new(move |found| Box::pin(list(found))))
    }

    /// No source: only hosts named in records are listed.
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

/// Register the method `directory.targets` and its path.
///
/// # Errors
/// If a method or a path of the same name is already registered.
pub fn add(
    registry: &mut Registry,
    handle: &Handle,
    hosts: Hosts,
) -> Result<(), rpc::dispatch::method::Error> {
    let handle = handle.clone();
    registry.add(typed::method(move |_, params: TargetsParams| {
        let (handle, hosts) = (handle.clone(), hosts.clone());
        async move { targets(&handle, &hosts, params).await }
    }))?;
    registry.add_path(PATH, TargetsParams::METHOD)
}

struct Target {
    role: &'static str,
    state: HostState,
    term: u64,
    query: Option<String>,
}

async fn targets(handle: &Handle, hosts: &Hosts, params: TargetsParams) -> Result<Vec<TargetGroup>, Fault> {
    let domain = params.domain.as_deref().map(DomainName::try_from).transpose();
    let domain = domain.map_err(|error| Fault::invalid_params(format!("domain: {error}")))?;
    let found: Vec<Found> = match &domain {
        Some(domain) => of_one(handle, domain)?,
        None => handle.domains(),
    };
    let mut listed = (hosts.0)(found.clone()).await;
    let mut groups = Vec::new();
    for found in found {
        let hosts = listed.remove(&found.record.domain).unwrap_or_default();
        for (host, target) in of_domain(&found, hosts) {
            groups.push(group(found.record.domain.as_str(), host.as_str(), &target, params.port));
        }
        if groups.len() > TARGETS_MAX {
            return Err(Fault::new(
                wire::fault::TOO_LARGE,
                format!(
                    "more than {TARGETS_MAX} hosts; expected a domain to be named, as in {PATH}?domain=NAME"
                ),
            ));
        }
    }
    Ok(groups)
}

/// Look up the requested domain. A domain that has left has no hosts.
///
/// # Errors
/// If the domain is not known: Prometheus then keeps its present targets, and a mistyped name is noticed.
fn of_one(handle: &Handle, domain: &DomainName) -> Result<Vec<Found>, Fault> {
    match handle.look_up(domain) {
        Lookup::Found(found) => Ok(vec![*found]),
        Lookup::Left(..) => Ok(Vec::new()),
        Lookup::Nothing => Err(faults::unknown(handle, domain)),
        Lookup::NothingYet => Err(faults::not_yet(domain)),
    }
}

/// Every host of a domain, once. The primary's report has priority, except for hosts that report to another
/// representative.
fn of_domain(found: &Found, listed: Vec<(HostName, HostState)>) -> BTreeMap<HostName, Target> {
    let mut targets = BTreeMap::new();
    for entry in std::iter::once(found).chain(&found.partial) {
        let query = entry.record.addresses.first().cloned();
        let (state, term) = (HostState::of_record(entry.state), entry.record.term);
        let role = entry.record.sensor_type.as_str();
        targets.entry(entry.record.host.clone()).or_insert(Target { role, state, term, query });
    }
    for entry in std::iter::once(found).chain(&found.partial) {
        for host in named(entry) {
            let state = HostState::of_record(entry.state);
            targets.entry(host.clone()).or_insert_with(|| member(entry, state));
        }
    }
    let live = found.partial.iter().filter(|entry| entry.state == State::Live);
    let elsewhere: BTreeSet<&HostName> =
        live.flat_map(|entry| std::iter::once(&entry.record.host).chain(named(entry))).collect();
    for (host, state) in listed {
        let state = if elsewhere.contains(&host) { HostState::Live } else { state.in_record(found.state) };
        let target = targets.entry(host).or_insert_with(|| member(found, state));
        target.state = state;
    }
    targets
}

/// The hosts that report to a representative, if its record names them.
fn named(entry: &Found) -> &[HostName] {
    match entry.record.reach.as_ref().map(|reach| &reach.coverage) {
        Some(Coverage::Part { hosts, .. }) => hosts,
        Some(Coverage::Whole { .. }) | None => &[],
    }
}

fn member(entry: &Found, state: HostState) -> Target {
    Target { role: "member", state, term: entry.record.term, query: None }
}

fn group(domain: &str, host: &str, target: &Target, port: u16) -> TargetGroup {
    let term = target.term.to_string();
    let labels = [
        ("domain", Some(domain)),
        ("host", Some(host)),
        ("role", Some(target.role)),
        ("state", Some(target.state.as_str())),
        ("term", Some(&term)),
        ("query", target.query.as_deref()),
    ];
    let known = labels.into_iter().filter_map(|(name, value)| Some((name, value?)));
    TargetGroup {
        targets: vec![format!("{host}:{port}")],
        labels: known.map(|(name, value)| (format!("__meta_visperf_{name}"), value.to_owned())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::SystemClock;
    use crate::testing::{domain, leave, own_record, part, statement};
    use std::time::Duration;
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
            let listed = || vec![(host("n1"), HostState::Live), (host("n9"), HostState::Live)];
            names.filter(|name| name.as_str() == "b").map(|b| (b, listed())).collect()
        });
        let asked = |domain: Option<&str>| TargetsParams {
            domain: domain.map(ToOwned::to_owned),
            ..TargetsParams::default()
        };
        let answer = targets(&directory(), &hosts, asked(None)).await.expect("few");
        let labels: Vec<String> = answer
            .iter()
            .map(|group| {
                let label = |name: &str| group.labels.get(name).cloned().unwrap_or_default();
                assert_eq!(group.targets.len(), 1);
                format!(
                    "{} {} {} {}",
                    label("__meta_visperf_domain"),
                    group.targets[0],
                    label("__meta_visperf_role"),
                    label("__meta_visperf_query"),
                )
            })
            .collect();
        assert_eq!(
            labels,
            [
                "a n1:9100 representative http://127.0.0.1:7741",
                "a n2:9100 member ",
                "b n1:9100 representative http://127.0.0.1:7741",
                "b n9:9100 member ",
            ]
        );
        let of_one = targets(&directory(), &hosts, asked(Some("b"))).await.expect("few");
        assert_eq!(of_one.len(), 2);
        let unknown = targets(&directory(), &hosts, asked(Some("none"))).await.expect_err("unknown");
        assert_eq!(
            (unknown.code, &*unknown.message),
            (wire::fault::NOT_FOUND, "no domain none; known are a, b")
        );
        assert!(targets(&directory(), &hosts, asked(Some("a b"))).await.is_err());
    }

    fn found(domain: &str, state: State, hosts: &[&str]) -> Found {
        let record = statement(domain, 1, 1, 1, part(hosts)).record().clone();
        let (age, lease_remaining) = (Duration::ZERO, Duration::ZERO);
        Found { record, statement: None, state, age, lease_remaining, partial: Vec::new() }
    }

    fn states(found: &Found, listed: &[(&str, HostState)]) -> String {
        let listed = listed.iter().map(|(name, state)| (host(name), *state)).collect();
        let lines = of_domain(found, listed);
        let lines: Vec<_> = lines.iter().map(|(host, it)| format!("{host} {}", it.state.as_str())).collect();
        lines.join(", ")
    }

    #[test]
    fn the_state_of_each_host_is_its_representatives_word() {
        let listed = [
            ("n1", HostState::Live),
            ("n2", HostState::LastSeen),
            ("n3", HostState::Left),
            ("n4", HostState::Live),
        ];
        let live = found("a", State::Live, &["n1", "n2"]);
        assert_eq!(states(&live, &listed), "n1 live, n2 last_seen, n3 left, n4 live");
        assert_eq!(states(&live, &[]), "n1 live, n2 live", "only the record is known");
        for state in [State::Expired, State::Restored] {
            let former = found("a", state, &["n1", "n2"]);
            assert_eq!(states(&former, &listed), "n1 last_seen, n2 last_seen, n3 left, n4 last_seen");
            assert_eq!(states(&former, &[]), "n1 last_seen, n2 last_seen");
        }
    }

    #[test]
    fn a_host_that_reports_to_another_representative_is_as_that_one_says() {
        let mut split = found("a", State::Live, &["n1"]);
        split.partial.push(found("a", State::Live, &["n2"]));
        let listed = [("n1", HostState::Live), ("n2", HostState::LastSeen), ("n3", HostState::LastSeen)];
        assert_eq!(states(&split, &listed), "n1 live, n2 live, n3 last_seen");
        split.partial[0].state = State::Expired;
        assert_eq!(states(&split, &listed), "n1 live, n2 last_seen, n3 last_seen");
    }

    #[tokio::test]
    async fn a_domain_that_left_has_no_hosts() {
        let mut list = crate::admission::List::default();
        list.add(domain("a"), crate::testing::ROOT).expect("one");
        let admission = crate::admission::Admission::new(list, crate::admission::List::default());
        let registry = crate::registry::Registry::new(9);
        let now = crate::handle::Clock::now(&SystemClock);
        let replicas = crate::replicate::Replicas::among(registry, admission, &[], 1, now).expect("none");
        let handle = Handle::among(replicas, SystemClock);
        let none = Hosts::none();
        let asked = || TargetsParams { domain: Some("a".to_owned()), ..TargetsParams::default() };
        let lately = targets(&handle, &none, asked()).await.expect_err("it has just started");
        assert_eq!(lately.code, wire::fault::UNAVAILABLE);
        handle.leave(PeerKey([1; 32]), leave("a", 1, 2, 3)).expect("admitted");
        assert_eq!(targets(&handle, &none, asked()).await, Ok(Vec::new()));
    }

    #[test]
    fn the_path_answers_what_the_method_answers() {
        let mut registry = Registry::new();
        add(&mut registry, &directory(), Hosts::none()).expect("new names");
        assert_eq!(registry.paths().collect::<Vec<_>>(), [(PATH, "directory.targets")]);
        assert!(add(&mut registry, &directory(), Hosts::none()).is_err(), "once only");
    }
}
