//! The questions a directory answers, by XML-RPC and JSON: `directory.resolve` and `directory.domains`, and
//! `directory.targets` of [`crate::discovery`].
//!
//! Not here: how a call arrives (`rpc`); registration (in process by [`crate::handle`]).

use crate::discovery::Hosts;
use crate::handle::{Found, Handle, Known};
use crate::registry::{Answer, State};
use rpc::fault::Fault;
use rpc::method::{Declaration, Method, Registry};
use rpc::params::{Parameter, Params, Type};
use rpc::value::Value;
use std::time::Duration;
use wire::id::DomainName;
use wire::registration::{Coverage, Reach};

/// Most domains named to somebody who asked for one that is not known.
const KNOWN_TOLD_MAX: usize = 10;

/// Most domains in one answer: some 4 MB of XML.
pub const DOMAINS_TOLD_MAX: i64 = 10_000;

/// Domains in one answer unless asked otherwise.
const DOMAINS_TOLD_DEFAULT: i64 = 1000;

/// The words of [`State::as_str`].
const STATES: &[&str] = &["live", "last_seen"];

/// Add the directory's methods, answered from `handle`.
///
/// # Errors
/// If a method of the same name is there already.
pub fn add(registry: &mut Registry, handle: &Handle) -> Result<(), rpc::method::Error> {
    add_with_hosts(registry, handle, Hosts::none())
}

/// Likewise, where the composing program knows the hosts of some domains, for service discovery.
///
/// # Errors
/// If a method of the same name is there already.
pub fn add_with_hosts(
    registry: &mut Registry,
    handle: &Handle,
    hosts: Hosts,
) -> Result<(), rpc::method::Error> {
    registry.add(resolve_method(handle.clone()))?;
    registry.add(domains_method(handle.clone()))?;
    crate::discovery::add(registry, handle, hosts)
}

const RECORD_HELP: &str = "domain, host, port, type (representative or member), addresses (http://HOST:PORT, \
    the best first), term, sequence, state (live or last_seen), age and lease_remaining in seconds, restored \
    (true: known from before a restart of the directory and not heard of since); of one in the overlay also root, \
    peer (its keys), overlay (HOST:PORT), coverage (whole or part), hosts_total, and of a part hosts; partial: \
    live representatives with lower terms that answer for hosts which this one lacks, likewise";

/// `directory.resolve`, for whichever daemon answers it.
#[must_use]
pub fn resolve_declaration() -> Declaration {
    Declaration::new("directory.resolve", "Where the representative of a domain answers.")
        .details(
            "A representative states its record every 5 seconds and it holds for 15; after that the domain \
             is still told, as last_seen with its age. Every sensor of a grid answers this, from memory when no \
             directory does.",
        )
        .reading()
        .parameter(Parameter::new("domain", Type::Text, "the domain's name, such as UT-ICL").required())
        .returns("struct", RECORD_HELP)
}

/// `directory.domains`, for whichever daemon answers it.
#[must_use]
pub fn domains_declaration() -> Declaration {
    let limit = Type::Whole { min: 1, max: DOMAINS_TOLD_MAX };
    Declaration::new("directory.domains", "Every domain that the directory knows, by name.")
        .reading()
        .parameter(Parameter::new("state", Type::choice(STATES), "only domains in this state"))
        .parameter(Parameter::new("after", Type::Text, "only domains whose names come after this one"))
        .parameter(Parameter::new("limit", limit, "at most so many").default(DOMAINS_TOLD_DEFAULT))
        .returns("struct", "domains: an array of what directory.resolve gives; more: whether there are more")
}

fn resolve_method(handle: Handle) -> Method {
    resolve_declaration().handler_now(move |params: &Params| resolve(&handle, &domain_of(params)?))
}

fn domains_method(handle: Handle) -> Method {
    domains_declaration().handler_now(move |params: &Params| {
        let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(0);
        Ok(domains(&handle, params.text("state")?, params.text("after")?, limit))
    })
}

/// The parameter `domain` of [`resolve_declaration`].
///
/// # Errors
/// If it is no name of a domain.
pub fn domain_of(params: &Params) -> Result<DomainName, Fault> {
    let name = params.need_text("domain")?;
    DomainName::try_from(name).map_err(|error| Fault::invalid_params(format!("domain {name:?}: {error}")))
}

/// The fault of a domain that left so long ago.
#[must_use]
pub fn left(domain: &DomainName, age: Duration) -> Fault {
    let secs = age.as_secs();
    Fault::not_found(format!("no domain {domain} any more; its representative said so {secs} s ago"))
}

fn resolve(handle: &Handle, domain: &DomainName) -> Result<Value, Fault> {
    match handle.look_up(domain) {
        Known::Found(found) => Ok(record(&found)),
        Known::Nothing => Err(unknown(handle, domain)),
        Known::Left(_, age) => Err(left(domain, age)),
        Known::NothingYet => Err(not_yet(domain)),
    }
}

/// The fault of a domain of which a directory that has just started may still hear.
#[must_use]
pub fn not_yet(domain: &DomainName) -> Fault {
    Fault::new(
        rpc::fault::UNAVAILABLE,
        format!(
            "domain {domain} is not known yet: this directory has just started; ask again in some seconds"
        ),
    )
}

/// The fault of a domain that this directory does not know.
#[must_use]
pub fn unknown(handle: &Handle, domain: &DomainName) -> Fault {
    match known_words(handle.names(KNOWN_TOLD_MAX + 1)) {
        Some(known) => Fault::not_found(format!("no domain {domain}; {known}")),
        None => Fault::not_found(format!(
            "no domain {domain}; no domain is known yet; its representative has to register first"
        )),
    }
}

/// Which domains are known, for somebody who named another: `known are A, B and more; …`. None where there are none.
pub fn known_words(names: impl IntoIterator<Item = DomainName>) -> Option<String> {
    let mut known: Vec<String> =
        names.into_iter().take(KNOWN_TOLD_MAX + 1).map(|name| name.to_string()).collect();
    match known.len() {
        0 => None,
        _ if known.len() > KNOWN_TOLD_MAX => {
            known.truncate(KNOWN_TOLD_MAX);
            Some(format!("known are {} and more; ask directory.domains for all", known.join(", ")))
        }
        _ => Some(format!("known are {}", known.join(", "))),
    }
}

fn domains(handle: &Handle, state: Option<&str>, after: Option<&str>, limit: usize) -> Value {
    let fits = |found: &Answer<'_>| {
        state.is_none_or(|state| found.state.as_str() == state)
            && after.is_none_or(|after| found.record.domain.as_str() > after)
    };
    let found = handle.domains_where(fits, limit.saturating_add(1));
    let more = found.len() > limit;
    let told = Value::array(found.iter().take(limit).map(record));
    Value::object([("domains", told), ("more", more.into())])
}

/// What `directory.resolve` gives.
#[must_use]
pub fn record(found: &Found) -> Value {
    let partial = Value::array(found.partial.iter().map(|part| Value::object(fields(part))));
    let mut told = fields(found);
    told.push(("partial", partial));
    Value::object(told)
}

fn fields(found: &Found) -> Vec<(&'static str, Value)> {
    let Found { record, state, age, lease_remaining, .. } = found;
    let mut told = vec![
        ("domain", Value::from(record.domain.as_str())),
        ("host", record.host.as_str().into()),
        ("port", record.port.into()),
        ("type", record.sensor_type.as_str().into()),
        ("addresses", Value::array(record.addresses.iter().map(String::as_str))),
        ("term", record.term.into()),
        ("sequence", record.sequence.into()),
        ("state", state.as_str().into()),
        ("age", secs(*age)),
        ("lease_remaining", secs(*lease_remaining)),
        ("restored", (*state == State::Restored).into()),
    ];
    told.extend(record.reach.iter().flat_map(reach));
    told
}

fn reach(reach: &Reach) -> Vec<(&'static str, Value)> {
    let mut told = vec![
        ("root", Value::from(reach.root.to_string())),
        ("peer", reach.peer.to_string().into()),
        ("overlay", Value::array(reach.addresses.iter().map(wire::address::Address::as_str))),
    ];
    match &reach.coverage {
        Coverage::Whole { hosts } => {
            told.extend([("coverage", Value::from("whole")), ("hosts_total", Value::from(*hosts))]);
        }
        Coverage::Part { hosts, hosts_total } => told.extend([
            ("coverage", Value::from("part")),
            ("hosts_total", Value::from(*hosts_total)),
            ("hosts", Value::array(hosts.iter().map(wire::id::HostName::as_str))),
        ]),
    }
    told
}

/// Seconds with milliseconds: the rest would be noise.
fn secs(span: Duration) -> Value {
    #[allow(clippy::cast_precision_loss)] // Far below 2^53 milliseconds.
    let secs = span.as_millis() as f64 / 1e3;
    secs.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Clock;
    use crate::registry;
    use crate::testing::{domain, leave, part, statement};
    use rpc::dispatch::Dispatcher;
    use rpc::elsewhere::Caller;
    use rpc::limits::Limits;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
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

    fn names(answer: &Value) -> Vec<&str> {
        let domains = answer.get("domains").and_then(Value::as_array).expect("an array");
        domains.iter().map(|one| one.get("domain").and_then(Value::as_text).expect("a name")).collect()
    }

    #[test]
    fn a_domain_is_told_with_all_its_fields() {
        let (clock, handle) = directory(&["UT-ICL"]);
        clock.0.store(4500, Ordering::SeqCst);
        let expected = |state: &'static str, age: f64, lease_remaining: f64| {
            Value::object([
                ("domain", Value::from("UT-ICL")),
                ("host", "n1".into()),
                ("port", Value::Int(7741)),
                ("type", "representative".into()),
                ("addresses", Value::array(["http://127.0.0.1:7741"])),
                ("term", Value::Int(2)),
                ("sequence", Value::Int(9_007_199_254_740_993)),
                ("state", state.into()),
                ("age", age.into()),
                ("lease_remaining", lease_remaining.into()),
                ("restored", false.into()),
                ("partial", Value::array(Vec::<Value>::new())),
            ])
        };
        assert_eq!(resolve(&handle, &domain("UT-ICL")), Ok(expected("live", 4.5, 10.5)));
        clock.0.store(15_000, Ordering::SeqCst);
        assert_eq!(resolve(&handle, &domain("UT-ICL")), Ok(expected("last_seen", 15.0, 0.0)));
    }

    #[test]
    fn a_split_domain_is_told_with_both_representatives_and_where_they_are() {
        let (_, handle) = directory(&[]);
        for (peer, host) in [(1, "n1"), (2, "n2")] {
            let opened = statement("UT-ICL", peer, peer.into(), 1, part(&[host]));
            handle.register(opened.record().clone()).expect("accepted");
        }
        let told = resolve(&handle, &domain("UT-ICL")).expect("known");
        let check = |told: &Value, peer: u8, host: &str| {
            let key = |byte| Value::from(wire::id::PeerKey([byte; 32]).to_string());
            assert_eq!(told.get("term"), Some(&Value::Int(peer.into())));
            assert_eq!((told.get("root"), told.get("peer")), (Some(&key(200)), Some(&key(peer))));
            assert_eq!(told.get("overlay"), Some(&Value::array(["127.0.0.1:7742"])));
            assert_eq!(told.get("coverage"), Some(&"part".into()));
            assert_eq!(told.get("hosts"), Some(&Value::array([host])));
            assert_eq!(told.get("hosts_total"), Some(&Value::Int(1)));
        };
        check(&told, 2, "n2");
        let partial = told.get("partial").and_then(Value::as_array).expect("an array");
        assert_eq!(partial.len(), 1);
        check(&partial[0], 1, "n1");
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
        assert_eq!(fault.code, rpc::fault::UNAVAILABLE);
        assert!(fault.message.starts_with("domain a is not known yet"), "{}", fault.message);
        clock.0.store(10_000, Ordering::SeqCst);
        assert_eq!(resolve(&handle, &domain("a")).expect_err("unknown").code, rpc::fault::NOT_FOUND);
        handle.leave(wire::id::PeerKey([1; 32]), leave("a", 1, 2, 3)).expect("admitted");
        clock.0.store(70_000, Ordering::SeqCst);
        let fault = resolve(&handle, &domain("a")).expect_err("left");
        let expected = "no domain a any more; its representative said so 60 s ago";
        assert_eq!((fault.code, &*fault.message), (rpc::fault::NOT_FOUND, expected));
    }

    #[test]
    fn an_unknown_domain_is_told_which_are_known() {
        let check = |held: &[&str], expected: &str| {
            let fault = resolve(&directory(held).1, &domain("ut-icl")).expect_err("unknown");
            assert_eq!((fault.code, &*fault.message), (rpc::fault::NOT_FOUND, expected));
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
        assert_eq!(fault.code, rpc::fault::INVALID_PARAMS);
    }

    #[test]
    fn domains_are_chosen_by_state_and_paged() {
        let (clock, handle) = directory(&["a", "b", "c", "d"]);
        clock.0.store(16_500, Ordering::SeqCst); // a and b are 16.5 and 15.5 s old.
        assert_eq!(names(&domains(&handle, None, None, 10)), ["a", "b", "c", "d"]);
        assert_eq!(names(&domains(&handle, Some("live"), None, 10)), ["c", "d"]);
        assert_eq!(names(&domains(&handle, Some("last_seen"), None, 10)), ["a", "b"]);
        let page = domains(&handle, None, Some("a"), 2);
        assert_eq!((names(&page), page.get("more")), (vec!["b", "c"], Some(&Value::Bool(true))));
        let page = domains(&handle, None, Some("c"), 2);
        assert_eq!((names(&page), page.get("more")), (vec!["d"], Some(&Value::Bool(false))));
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
