//! Methods `directory.*` of a sensor or a proxy: answered from its cache and by the directories.
//!
//! Rule: `directory.resolve` is answered for every domain that was ever known, even if no directory is
//! reachable; a list of all domains is a directory's own answer, or, if none answers, what this daemon and
//! its representative have cached; both sources are compared in the same way, so a list and
//! `directory.resolve` agree about a domain.
//! Not here: the directory's own answers (`directory::methods`).

use super::admission_status::AdmissionStatus;
use super::remote_domains;
use crate::hop::{self, Hop};
use directory::handle::Found;
use directory::registry::State;
use directory::{discovery, methods};
use overlay::directories::Directories;
use overlay::domain::DomainHandle;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::resolve::asker::Asker;
use overlay::resolve::{self, Outcome, Source, VerifiedRecord};
use rpc::dispatch::method::Registry;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::api::Request;
use wire::api::directory::{
    DOMAINS_MAX, Domain, DomainState, Domains, DomainsParams, ResolveParams, TargetsParams,
};
use wire::api::job_index::DirectoryJobsParams;

/// Timeout for directories: less than a client waits.
const DEADLINE: Duration = Duration::from_secs(4);

/// Handler of the methods.
#[derive(Clone)]
pub(crate) struct Lookups {
    pub(crate) asker: Asker,
    pub(crate) directories: Arc<Directories>,
    pub(crate) net: Handle,
    /// `None`: this daemon is no member of a domain.
    pub(crate) members: Option<DomainHandle>,
    pub(crate) welcome: AdmissionStatus,
}

impl Lookups {
    /// Add the methods and the HTTP path of service discovery.
    ///
    /// # Errors
    /// If a method of the same name already exists.
    pub(crate) fn add(self, registry: &mut Registry) -> Result<(), rpc::dispatch::method::Error> {
        let own = self.clone();
        registry.add(typed::method(move |caller, params: ResolveParams| {
            let (own, is_client) = (own.clone(), caller.peer.is_none());
            async move { own.resolve(params, is_client).await }
        }))?;
        let own = self.clone();
        registry.add(typed::method(move |caller, params: DomainsParams| {
            let (own, is_client) = (own.clone(), caller.peer.is_none());
            async move { own.domains(params, is_client).await }
        }))?;
        let asked = self.clone();
        registry.add(typed::method(move |_, params: TargetsParams| {
            let own = asked.clone();
            async move { own.ask_directories(&params).await? }
        }))?;
        let own = self.clone();
        registry.add(typed::method(move |_, params: DirectoryJobsParams| {
            let own = own.clone();
            async move { own.ask_directories(&params).await? }
        }))?;
        registry.add_path(discovery::PATH, TargetsParams::METHOD)
    }

    async fn resolve(&self, params: ResolveParams, is_client: bool) -> Result<Domain, Fault> {
        let domain = methods::named(&params.domain)?;
        // A member that asks its representative has already asked all directories without success.
        let outcome = match is_client {
            true => self.asker.resolve(&domain, DEADLINE).await,
            false => self.asker.last_known(&domain),
        };
        let own = match outcome {
            Outcome::Found(found) if found.source == Source::Memory => {
                Ok(methods::record(&self.believed(*found)))
            }
            Outcome::Found(found) => return Ok(methods::record(&to_found(*found))),
            Outcome::Unreachable => {
                Err(remote_domains::absent(&domain, &outcome, &self.welcome, || self.asker.known()))
            }
            Outcome::Left(_) | Outcome::Unknown => {
                return Err(remote_domains::absent(&domain, &outcome, &self.welcome, || self.asker.known()));
            }
        };
        // No directory answered: the representative may have a newer record.
        let remembered = if is_client { self.ask_representative(&params).await } else { None };
        match (own, remembered) {
            (Ok(own), Some(Ok(other))) if number(&own) >= number(&other) => Ok(own),
            (_, Some(Ok(other))) => Ok(other),
            (own, _) => own,
        }
    }

    /// The answer of the domain's representative from its cache: it is connected to the directories, and
    /// learns every domain.
    async fn ask_representative<R: Request>(&self, request: &R) -> Option<Result<R::Answer, Fault>> {
        let peer = self.members.as_ref()?.view().borrow().state.representative?;
        let bytes = match question(request) {
            Ok(bytes) => bytes,
            Err(fault) => return Some(Err(fault)),
        };
        let hop = Hop { peer, host: None, part: "representative", domain: None };
        let answered = self.net.ask(peer, Protocol::Query, &bytes, DEADLINE / 2).await;
        Some(hop::answer(&hop, answered).and_then(typed::answer_of::<R>))
    }

    /// The answer of the first directory that answers; an error if none does.
    async fn ask_directories<R: Request>(&self, request: &R) -> Result<Result<R::Answer, Fault>, Fault> {
        let bytes = question(request)?;
        // Connected directories first: each dead one costs its timeout.
        let mut keys: Vec<_> = self.directories.connected().collect();
        keys.extend(
            self.directories.keys().into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>(),
        );
        let mut tried = Vec::new();
        for peer in keys {
            match self.directories.query(peer, &bytes, DEADLINE / 2).await {
                Ok(bytes) => {
                    let hop = Hop { peer, host: None, part: "directory", domain: None };
                    return Ok(hop::read(&hop, &bytes).and_then(typed::answer_of::<R>));
                }
                Err(error) => tried.push(error.to_string()),
            }
        }
        if tried.is_empty() {
            tried.push("none is configured".to_owned());
        }
        tried.extend(self.welcome.health());
        let tried = tried.join("; ");
        Err(hop::unavailable(format!("no directory answered: {tried}")))
    }

    /// `directory.domains`: the answer of a directory, or, if none answers, the caches of this daemon and of
    /// the representative.
    async fn domains(&self, params: DomainsParams, is_client: bool) -> Result<Domains, Fault> {
        // A member that asks its representative has already asked all directories without success.
        if is_client && let Ok(answer) = self.ask_directories(&params).await {
            return answer;
        }
        let mut known = self.remembered(params.after.as_deref());
        let mut is_cut = false;
        if is_client {
            // In all states: the representative may have a domain in another state than this daemon.
            let all = DomainsParams { state: None, after: params.after, limit: DOMAINS_MAX };
            if let Some(Ok(other)) = self.ask_representative(&all).await {
                is_cut = other.more;
                add_newer(&mut known, other.domains);
            }
        }
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        Ok(page(known, params.state, limit, is_cut))
    }

    /// The cached record of each domain whose name comes after this one.
    fn remembered(&self, after: Option<&str>) -> BTreeMap<String, Domain> {
        let known = self.asker.known().into_iter();
        let known = known.filter(|name| after.is_none_or(|after| name.as_str() > after));
        let found = known.filter_map(|name| match self.asker.last_known(&name) {
            Outcome::Found(found) => Some((name.to_string(), methods::record(&self.believed(*found)))),
            Outcome::Left(_) | Outcome::Unknown | Outcome::Unreachable => None,
        });
        found.collect()
    }

    /// A cached record, in the form of a directory's answer.
    fn believed(&self, mut found: resolve::Found) -> Found {
        // The directories refuse this daemon's own record, so no other daemon accepts its lease.
        if self.welcome.is_refused_by(&self.directories.keys()) {
            found.primary.remaining = Duration::ZERO;
        }
        to_found(found)
    }
}

/// Add the records of others where they are newer than the own ones.
fn add_newer(known: &mut BTreeMap<String, Domain>, others: Vec<Domain>) {
    for other in others {
        if known.get(&other.domain).is_none_or(|own| number(own) < number(&other)) {
            known.insert(other.domain.clone(), other);
        }
    }
}

/// The answer of `directory.domains`; `is_cut` means that further domains follow.
fn page(known: BTreeMap<String, Domain>, state: Option<DomainState>, limit: usize, is_cut: bool) -> Domains {
    let mut fitting = known.into_values().filter(|domain| state.is_none_or(|state| domain.state == state));
    let domains = fitting.by_ref().take(limit).collect();
    Domains { domains, more: is_cut || fitting.next().is_some() }
}

/// Version of a record, to compare two of the same domain.
fn number(domain: &Domain) -> (u64, u64) {
    (domain.term, domain.sequence)
}

fn question<R: Request>(request: &R) -> Result<Vec<u8>, Fault> {
    Ok(hop::question(R::METHOD, typed::params_of(request)?, DEADLINE, 1).to_bytes())
}

/// A resolved record, in the form of a directory's answer.
fn to_found(found: resolve::Found) -> Found {
    let mut answer = one(found.primary);
    answer.partial = found.partial.into_iter().map(one).collect();
    answer
}

fn one(heard: VerifiedRecord) -> Found {
    let VerifiedRecord { record, statement, age, remaining } = heard;
    let state = if remaining.is_zero() { State::Expired } else { State::Live };
    Found {
        record,
        statement: Some(Arc::new(statement)),
        state,
        age,
        lease_remaining: remaining,
        partial: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(domain: &str, term: u64, state: DomainState) -> Domain {
        Domain { domain: domain.to_owned(), term, state, ..Domain::default() }
    }

    fn summary(page: &Domains) -> String {
        let one = |it: &Domain| format!("{} {} {}", it.domain, it.term, it.state.as_str());
        let more = if page.more { " …" } else { "" };
        format!("{}{more}", page.domains.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn a_list_from_memory_says_of_each_domain_what_is_newest() {
        use DomainState::{LastSeen, Live};
        let own = [record("A", 2, LastSeen), record("C", 1, LastSeen)];
        let mut known: BTreeMap<String, Domain> =
            own.into_iter().map(|record| (record.domain.clone(), record)).collect();
        // On equal versions the own record wins, as in `directory.resolve`.
        add_newer(&mut known, vec![record("A", 2, Live), record("B", 7, Live), record("C", 3, Live)]);
        let page = |state, limit, is_cut| summary(&page(known.clone(), state, limit, is_cut));
        assert_eq!(page(None, 9, false), "A 2 last_seen, B 7 live, C 3 live");
        assert_eq!(page(Some(Live), 9, false), "B 7 live, C 3 live");
        assert_eq!(page(None, 2, false), "A 2 last_seen, B 7 live …");
        assert_eq!(page(None, 3, true), "A 2 last_seen, B 7 live, C 3 live …");
    }
}
