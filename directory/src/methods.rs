//! Query methods of a directory, by XML-RPC and JSON: `directory.resolve` and `directory.domains`, and
//! `directory.targets` of [`crate::discovery`].
//!
//! Not here: the transport of a call (`rpc`); registration (in process by [`crate::handle`]).

use crate::discovery::Hosts;
use crate::faults::{left, not_yet, unknown};
use crate::handle::{Found, Handle, Lookup};
use crate::registry::{Answer, State};
use rpc::dispatch::method::Registry;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::future::ready;
use std::time::Duration;
use wire::api::directory::{self as api, Domain, Domains, DomainsParams, ResolveParams};
use wire::id::DomainName;
use wire::registration::{Coverage, Reach};

/// Register the directory's methods, answered from `handle`.
///
/// # Errors
/// If a method of the same name is already registered.
pub fn add(registry: &mut Registry, handle: &Handle) -> Result<(), rpc::dispatch::method::Error> {
    add_with_hosts(registry, handle, Hosts::none())
}

/// As [`add`], with a source of the hosts of some domains, for service discovery.
///
/// # Errors
/// If a method of the same name is already registered.
pub fn add_with_hosts(
    registry: &mut Registry,
    handle: &Handle,
    hosts: Hosts,
) -> Result<(), rpc::dispatch::method::Error> {
    let (own, listing) = (handle.clone(), handle.clone());
    registry.add(typed::method(move |_, params: ResolveParams| {
        ready(named(&params.domain).and_then(|domain| resolve(&own, &domain)))
    }))?;
    registry.add(typed::method(move |_, params: DomainsParams| ready(Ok(domains(&listing, &params)))))?;
    crate::discovery::add(registry, handle, hosts)
}

/// Parse `name` as a domain name.
///
/// # Errors
/// If it is not a valid domain name.
pub fn named(name: &str) -> Result<DomainName, Fault> {
    DomainName::try_from(name).map_err(|error| Fault::invalid_params(format!("domain {name:?}: {error}")))
}

fn resolve(handle: &Handle, domain: &DomainName) -> Result<Domain, Fault> {
    match handle.look_up(domain) {
        Lookup::Found(found) => Ok(record(&found)),
        Lookup::Nothing => Err(unknown(handle, domain)),
        Lookup::Left(_, age) => Err(left(domain, age)),
        Lookup::NothingYet => Err(not_yet(domain)),
    }
}

fn domains(handle: &Handle, wanted: &DomainsParams) -> Domains {
    let fits = |found: &Answer<'_>| {
        wanted.state.is_none_or(|state| found.state.word() == state)
            && wanted.after.as_ref().is_none_or(|after| found.record.domain.as_str() > after.as_str())
    };
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let found = handle.domains_where(fits, limit.saturating_add(1));
    Domains { domains: found.iter().take(limit).map(record).collect(), more: found.len() > limit }
}

/// Answer of `directory.resolve`.
#[must_use]
pub fn record(found: &Found) -> Domain {
    let Found { record, state, age, lease_remaining, partial, .. } = found;
    let domain = Domain {
        domain: record.domain.to_string(),
        host: record.host.to_string(),
        port: record.port,
        sensor_type: record.sensor_type.as_str().to_owned(),
        addresses: record.addresses.clone(),
        term: record.term,
        sequence: record.sequence,
        state: state.word(),
        age_secs: secs(*age),
        lease_remaining_secs: secs(*lease_remaining),
        restored: *state == State::Restored,
        partial: partial.iter().map(self::record).collect(),
        ..Domain::default()
    };
    match &record.reach {
        Some(reach) => with_reach(domain, reach),
        None => domain,
    }
}

fn with_reach(domain: Domain, reach: &Reach) -> Domain {
    let (coverage, hosts_total, hosts) = match &reach.coverage {
        Coverage::Whole { hosts } => (api::Coverage::Whole, *hosts, None),
        Coverage::Part { hosts, hosts_total } => {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            (api::Coverage::Part, *hosts_total, Some(hosts))
        }
    };
    Domain {
        root: Some(reach.root.to_string()),
        peer: Some(reach.peer.to_string()),
        overlay: Some(reach.addresses.iter().map(ToString::to_string).collect()),
        coverage: Some(coverage),
        hosts_total: Some(hosts_total),
        hosts,
        ..domain
    }
}

/// Seconds, rounded to milliseconds.
#[allow(clippy::cast_precision_loss)] // Far below 2^53 milliseconds.
fn secs(span: Duration) -> f64 {
    span.as_millis() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Clock;
    use crate::registry;
    use crate::testing::{domain, leave, part, statement};
    use rpc::dispatch::Dispatcher;
    use rpc::dispatch::forward::Caller;
    use rpc::limits::Limits;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use wire::api::directory::DomainState;
    use wire::id::HostName;
    use wire::registration::{Record, SensorType};
    use wire::time::{Moment, Time};

    #[derive(Clone, Default)]
    struct Millis(Arc<AtomicU64>);

    impl Clock for Millis {
        fn now(&self) -> Moment {
            Moment(Duration::from_millis(self.0.load(Ordering::SeqCst)))
        }
        fn calendar(&self) -> Time {
            Time::default()
        }
    }

    fn directory(names: &[&str]) -> (Millis, Handle) {
        let clock = Millis::default();
        let handle = Handle::new(registry::Registry::new(100), clock.clone());
        for name in names {
            let record = Record {
                domain: DomainName::try_from(*name).expect("a name"),
                host: HostName::try_from("n1").expect("a name"),
                port: 7741,
                sensor_type: SensorType::Representative,
                addresses: vec!["http://127.0.0.1:7741".to_owned()],
                term: 2,
                sequence: (1 << 53) | 1,
                stated: Time::default(),
                reach: None,
            };
            handle.register(record).expect("accepted");
            clock.0.fetch_add(1000, Ordering::SeqCst);
        }
        (clock, handle)
    }

    fn names(answer: &Domains) -> Vec<&str> {
        answer.domains.iter().map(|one| one.domain.as_str()).collect()
    }

    #[test]
    fn a_domain_is_returned_with_all_its_fields() {
        let (clock, handle) = directory(&["UT-ICL"]);
        clock.0.store(4500, Ordering::SeqCst);
        let expected = |state: DomainState, age_secs: f64, lease_remaining_secs: f64| Domain {
            domain: "UT-ICL".into(),
            host: "n1".into(),
            port: 7741,
            sensor_type: "representative".into(),
            addresses: vec!["http://127.0.0.1:7741".into()],
            term: 2,
            sequence: 9_007_199_254_740_993,
            state,
            age_secs,
            lease_remaining_secs,
            ..Domain::default()
        };
        assert_eq!(resolve(&handle, &domain("UT-ICL")), Ok(expected(DomainState::Live, 4.5, 10.5)));
        clock.0.store(15_000, Ordering::SeqCst);
        assert_eq!(resolve(&handle, &domain("UT-ICL")), Ok(expected(DomainState::LastSeen, 15.0, 0.0)));
    }

    #[test]
    fn a_split_domain_is_returned_with_both_representatives_and_where_they_are() {
        let (_, handle) = directory(&[]);
        for (peer, host) in [(1, "n1"), (2, "n2")] {
            let opened = statement("UT-ICL", peer, peer.into(), 1, part(&[host]));
            handle.register(opened.record().clone()).expect("accepted");
        }
        let answer = resolve(&handle, &domain("UT-ICL")).expect("known");
        let check = |answer: &Domain, peer: u8, host: &str| {
            let key = |byte| Some(wire::id::PeerKey([byte; 32]).to_string());
            assert_eq!((answer.term, &answer.root, &answer.peer), (peer.into(), &key(200), &key(peer)));
            assert_eq!(answer.overlay, Some(vec!["127.0.0.1:7742".to_owned()]));
            assert_eq!((answer.coverage, answer.hosts_total), (Some(api::Coverage::Part), Some(1)));
            assert_eq!(answer.hosts, Some(vec![host.to_owned()]));
        };
        check(&answer, 2, "n2");
        assert_eq!(answer.partial.len(), 1);
        check(&answer.partial[0], 1, "n1");
    }

    #[test]
    fn a_directory_that_started_lately_says_not_yet_and_one_that_left_says_so() {
        let clock = Millis::default();
        let mut list = crate::admission::List::default();
        list.add(domain("a"), crate::testing::ROOT).expect("one");
        let admission = crate::admission::Admission::new(list, crate::admission::List::default());
        let registry = registry::Registry::new(9);
        let replicas =
            crate::replicate::Replicas::among(registry, admission, &[], 1, clock.now()).expect("none");
        let handle = Handle::among(replicas, clock.clone());
        let fault = resolve(&handle, &domain("a")).expect_err("unknown");
        assert_eq!(fault.code, wire::fault::UNAVAILABLE);
        assert!(fault.message.starts_with("domain a is not known yet"), "{}", fault.message);
        clock.0.store(10_000, Ordering::SeqCst);
        assert_eq!(resolve(&handle, &domain("a")).expect_err("unknown").code, wire::fault::NOT_FOUND);
        handle.leave(wire::id::PeerKey([1; 32]), leave("a", 1, 2, 3)).expect("admitted");
        clock.0.store(70_000, Ordering::SeqCst);
        let fault = resolve(&handle, &domain("a")).expect_err("left");
        let expected = "no domain a any more; its representative said so 60 s ago";
        assert_eq!((fault.code, &*fault.message), (wire::fault::NOT_FOUND, expected));
    }

    #[test]
    fn the_error_of_an_unknown_domain_lists_the_known_ones() {
        let check = |held: &[&str], expected: &str| {
            let fault = resolve(&directory(held).1, &domain("ut-icl")).expect_err("unknown");
            assert_eq!((fault.code, &*fault.message), (wire::fault::NOT_FOUND, expected));
        };
        check(&[], "no domain ut-icl; no domain is known yet; its representative has to register first");
        check(&["b", "a"], "no domain ut-icl; known are a, b");
        check(
            &["k", "j", "i", "h", "g", "f", "e", "d", "c", "b", "a"],
            "no domain ut-icl; known are a, b, c, d, e, f, g, h, i, j and more; ask directory.domains for all",
        );
    }

    #[tokio::test]
    async fn what_is_no_name_is_no_domain() {
        let mut registry = Registry::new();
        add(&mut registry, &directory(&[]).1).expect("new names");
        let dispatcher = Dispatcher::new(registry, Limits::default(), Arc::default());
        let caller = Caller::client(Duration::from_secs(5));
        let params = vec![("domain".into(), "a b".into())];
        let fault = dispatcher.call_for(&caller, "directory.resolve", params).await.expect_err("no name");
        assert_eq!(fault.code, wire::fault::INVALID_PARAMS);
    }

    #[test]
    fn domains_are_chosen_by_state_and_paged() {
        let (clock, handle) = directory(&["a", "b", "c", "d"]);
        clock.0.store(16_500, Ordering::SeqCst); // a and b are 16.5 and 15.5 s old.
        let asked = |state: Option<DomainState>, after: Option<&str>, limit: u64| {
            let after = after.map(ToOwned::to_owned);
            domains(&handle, &DomainsParams { state, after, limit })
        };
        assert_eq!(names(&asked(None, None, 10)), ["a", "b", "c", "d"]);
        assert_eq!(names(&asked(Some(DomainState::Live), None, 10)), ["c", "d"]);
        assert_eq!(names(&asked(Some(DomainState::LastSeen), None, 10)), ["a", "b"]);
        let page = asked(None, Some("a"), 2);
        assert_eq!((names(&page), page.more), (vec!["b", "c"], true));
        let page = asked(None, Some("c"), 2);
        assert_eq!((names(&page), page.more), (vec!["d"], false));
    }

    #[test]
    fn the_methods_are_declared() {
        let mut registry = Registry::new();
        let (_, handle) = directory(&[]);
        add(&mut registry, &handle).expect("new names");
        let ours: Vec<&str> = registry.names().filter(|name| name.starts_with("directory.")).collect();
        assert_eq!(ours, ["directory.domains", "directory.resolve", "directory.targets"]);
        assert!(add(&mut registry, &handle).is_err(), "once only");
    }
}
