//! `directory.*` as a sensor answers it: from its memory and the directories' word.
//!
//! Rule: `directory.resolve` is answered for whatever was ever known, directories dead or not; lists of all domains are
//! the directories' own answers, and what this sensor and its representative remember where none answers; both are asked
//! the same, so that a list says of a domain what `directory.resolve` says.
//! Not here: the directory's own answers (`directory::methods`).

use super::elsewhere::{self, Hop};
use super::others;
use super::welcome::Welcome;
use directory::handle::Found;
use directory::registry::State;
use directory::{discovery, methods};
use overlay::directories::Directories;
use overlay::domain::DomainHandle;
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use overlay::resolve::asker::Asker;
use overlay::resolve::{self, Heard, Outcome, Source};
use rpc::fault::Fault;
use rpc::method::Registry;
use rpc::params::Params;
use rpc::value::{Name, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long directories may take: less than a client waits.
const DEADLINE: Duration = Duration::from_secs(4);

/// What answers.
#[derive(Clone)]
pub(crate) struct Lookups {
    pub(crate) asker: Asker,
    pub(crate) directories: Arc<Directories>,
    pub(crate) net: Handle,
    /// None: this daemon has no part in a domain.
    pub(crate) members: Option<DomainHandle>,
    pub(crate) welcome: Welcome,
}

impl Lookups {
    /// Add the methods and the path of service discovery.
    ///
    /// # Errors
    /// If one of the same name is there already.
    pub(crate) fn add(self, registry: &mut Registry) -> Result<(), rpc::method::Error> {
        let own = self.clone();
        registry.add(methods::resolve_declaration().handler_for(move |caller, params: Params| {
            let (own, is_client) = (own.clone(), caller.peer.is_none());
            async move { own.resolve(&params, is_client).await }
        }))?;
        let own = self.clone();
        registry.add(methods::domains_declaration().handler_for(move |caller, params: Params| {
            let (own, is_client) = (own.clone(), caller.peer.is_none());
            async move { own.domains(&params, is_client).await }
        }))?;
        registry.add(discovery::declaration().handler(move |params: Params| {
            let own = self.clone();
            async move { own.ask_directories(discovery::NAME, &params).await? }
        }))?;
        registry.add_path(discovery::PATH, discovery::NAME)
    }

    async fn resolve(&self, params: &Params, is_client: bool) -> Result<Value, Fault> {
        let domain = methods::domain_of(params)?;
        // A member asks its representative after all directories were asked in vain.
        let outcome = match is_client {
            true => self.asker.resolve(&domain, DEADLINE).await,
            false => self.asker.last_known(&domain),
        };
        let own = match outcome {
            Outcome::Found(found) if found.source == Source::Memory => {
                Ok(methods::record(&self.believed(*found)))
            }
            Outcome::Found(found) => return Ok(methods::record(&told(*found))),
            Outcome::Unreachable => {
                Err(others::absent(&domain, &outcome, &self.welcome, || self.asker.known()))
            }
            Outcome::Left(_) | Outcome::Unknown => {
                return Err(others::absent(&domain, &outcome, &self.welcome, || self.asker.known()));
            }
        };
        // No directory answered: the representative may know better.
        let asked = params.values().to_vec();
        let remembered =
            if is_client { self.ask_representative("directory.resolve", asked).await } else { None };
        match (own, remembered) {
            (Ok(own), Some(Ok(other))) if number(&own) >= number(&other) => Ok(own),
            (_, Some(Ok(other))) => Ok(other),
            (own, _) => own,
        }
    }

    /// What the domain's representative remembers: it holds connections to the directories, and learns every domain.
    async fn ask_representative(
        &self,
        method: &'static str,
        params: Vec<(Name, Value)>,
    ) -> Option<Result<Value, Fault>> {
        let peer = self.members.as_ref()?.view().borrow().state.representative?;
        let bytes = elsewhere::question(method, params, DEADLINE, 1).to_bytes();
        let hop = Hop { peer, host: None, part: "representative", domain: None };
        let answered = self.net.ask(peer, Protocol::Query, &bytes, DEADLINE / 2).await;
        Some(elsewhere::answer(&hop, answered))
    }

    /// What the first directory that answers says; an error if none does.
    async fn ask_directories(
        &self,
        method: &'static str,
        params: &Params,
    ) -> Result<Result<Value, Fault>, Fault> {
        let bytes = question(method, params);
        // Those that are there first: one that is dead costs its deadline.
        let mut keys: Vec<_> = self.directories.connected().collect();
        keys.extend(
            self.directories.keys().into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>(),
        );
        let mut tried = Vec::new();
        for peer in keys {
            match self.directories.query(peer, &bytes, DEADLINE / 2).await {
                Ok(bytes) => {
                    let hop = Hop { peer, host: None, part: "directory", domain: None };
                    return Ok(elsewhere::read(&hop, &bytes));
                }
                Err(error) => tried.push(error.to_string()),
            }
        }
        if tried.is_empty() {
            tried.push("none is configured".to_owned());
        }
        tried.extend(self.welcome.health());
        let tried = tried.join("; ");
        Err(elsewhere::unavailable(format!("no directory answered: {tried}")))
    }

    /// `directory.domains`: what directories say; where none answers, what is remembered here and by the representative.
    async fn domains(&self, params: &Params, is_client: bool) -> Result<Value, Fault> {
        // A member asks its representative after all directories were asked in vain.
        if is_client && let Ok(told) = self.ask_directories("directory.domains", params).await {
            return told;
        }
        let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(0);
        let (state, after) = (params.text("state")?, params.text("after")?);
        let mut known = self.remembered(after);
        let mut is_cut = false;
        if is_client {
            // In all states, as it may know another of a domain than is known here.
            let mut asked = vec![("limit".into(), Value::Int(methods::DOMAINS_TOLD_MAX))];
            asked.extend(after.map(|after| ("after".into(), Value::from(after))));
            let other = self.ask_representative("directory.domains", asked).await.and_then(Result::ok);
            is_cut = other.as_ref().is_some_and(|other| other.get("more") == Some(&Value::Bool(true)));
            let other = other.as_ref().and_then(|other| other.get("domains")?.as_array());
            add_newer(&mut known, other.unwrap_or_default());
        }
        Ok(page(known, state, limit, is_cut))
    }

    /// What this sensor remembers of each domain whose name comes after this one.
    fn remembered(&self, after: Option<&str>) -> BTreeMap<String, Value> {
        let known = self.asker.known().into_iter();
        let known = known.filter(|name| after.is_none_or(|after| name.as_str() > after));
        let found = known.filter_map(|name| match self.asker.last_known(&name) {
            Outcome::Found(found) => Some((name.to_string(), methods::record(&self.believed(*found)))),
            Outcome::Left(_) | Outcome::Unknown | Outcome::Unreachable => None,
        });
        found.collect()
    }

    /// What is remembered, as a directory would tell it.
    fn believed(&self, mut found: resolve::Found) -> Found {
        // What this daemon states itself they do not take: nobody else believes in its lease.
        if self.welcome.is_refused_by(&self.directories.keys()) {
            found.primary.remaining = Duration::ZERO;
        }
        told(found)
    }
}

/// Of each domain what is newer: what is known here, or what another daemon says.
fn add_newer(known: &mut BTreeMap<String, Value>, others: &[Value]) {
    for other in others {
        let Some(name) = other.get("domain").and_then(Value::as_text) else { continue };
        if known.get(name).is_none_or(|own| number(own) < number(other)) {
            known.insert(name.to_owned(), other.clone());
        }
    }
}

/// The answer of `directory.domains`; `is_cut` says that there are others behind.
fn page(known: BTreeMap<String, Value>, state: Option<&str>, limit: usize, is_cut: bool) -> Value {
    let is_in = |record: &Value| {
        state.is_none_or(|state| record.get("state").and_then(Value::as_text) == Some(state))
    };
    let mut fitting = known.into_values().filter(is_in);
    let domains = Value::array(fitting.by_ref().take(limit));
    Value::object([("domains", domains), ("more", (is_cut || fitting.next().is_some()).into())])
}

/// Which of two statements of a domain is the newer one.
fn number(record: &Value) -> (u64, u64) {
    let figure = |name| match record.get(name) {
        Some(Value::UInt(number)) => *number,
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    (figure("term"), figure("sequence"))
}

fn question(method: &'static str, params: &Params) -> Vec<u8> {
    elsewhere::question(method, params.values().to_vec(), DEADLINE, 1).to_bytes()
}

/// What was found, as a directory tells it.
fn told(found: resolve::Found) -> Found {
    let mut told = one(found.primary);
    told.partial = found.partial.into_iter().map(one).collect();
    told
}

fn one(heard: Heard) -> Found {
    let Heard { record, statement, age, remaining } = heard;
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

    fn record(domain: &'static str, term: u64, state: &'static str) -> Value {
        Value::object([("domain", Value::from(domain)), ("term", Value::UInt(term)), ("state", state.into())])
    }

    fn told(page: &Value) -> String {
        let text =
            |value: &Value, name| value.get(name).and_then(Value::as_text).unwrap_or_default().to_owned();
        let domains = page.get("domains").and_then(Value::as_array).unwrap();
        let domains: Vec<_> = domains
            .iter()
            .map(|it| format!("{} {} {}", text(it, "domain"), number(it).0, text(it, "state")))
            .collect();
        let more = if page.get("more") == Some(&Value::Bool(true)) { " …" } else { "" };
        format!("{}{more}", domains.join(", "))
    }

    #[test]
    fn a_list_from_memory_says_of_each_domain_what_is_newest() {
        let own = [record("A", 2, "last_seen"), record("C", 1, "last_seen")];
        let mut known: BTreeMap<String, Value> = ["A", "C"].map(str::to_owned).into_iter().zip(own).collect();
        // Of the same number what is known here goes first, as in `directory.resolve`.
        add_newer(&mut known, &[record("A", 2, "live"), record("B", 7, "live"), record("C", 3, "live")]);
        let page = |state, limit, is_cut| told(&page(known.clone(), state, limit, is_cut));
        assert_eq!(page(None, 9, false), "A 2 last_seen, B 7 live, C 3 live");
        assert_eq!(page(Some("live"), 9, false), "B 7 live, C 3 live");
        assert_eq!(page(None, 2, false), "A 2 last_seen, B 7 live …");
        assert_eq!(page(None, 3, true), "A 2 last_seen, B 7 live, C 3 live …");
    }
}
