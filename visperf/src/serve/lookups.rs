//! `directory.*` as a sensor answers it: from its memory and the directories' word.
//!
//! Rule: `directory.resolve` is answered for whatever was ever known, directories dead or not; lists of all domains are
//! the directories' own answers, and what this sensor remembers where none answers.
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
use rpc::value::Value;
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
        registry.add(methods::domains_declaration().handler(move |params: Params| {
            let own = own.clone();
            async move {
                let asked = own.ask_directories("directory.domains", &params).await;
                asked.unwrap_or_else(|_| Ok(own.remembered(&params)))
            }
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
            Outcome::Found(mut found) if found.source == Source::Memory => {
                // What this daemon states itself they do not take: nobody else believes in its lease.
                if self.welcome.is_refused_by(&self.directories.keys()) {
                    found.primary.remaining = Duration::ZERO;
                }
                Ok(methods::record(&told(*found)))
            }
            Outcome::Found(found) => return Ok(methods::record(&told(*found))),
            Outcome::Unreachable => Err(others::absent(&domain, &outcome, &self.welcome)),
            Outcome::Left(_) | Outcome::Unknown => {
                return Err(others::absent(&domain, &outcome, &self.welcome));
            }
        };
        // No directory answered: the representative may know better.
        let remembered = if is_client { self.ask_representative(params).await } else { None };
        match (own, remembered) {
            (Ok(own), Some(Ok(other))) if number(&own) >= number(&other) => Ok(own),
            (_, Some(Ok(other))) => Ok(other),
            (own, _) => own,
        }
    }

    /// What the domain's representative remembers: it holds connections to the directories, and learns every domain.
    async fn ask_representative(&self, params: &Params) -> Option<Result<Value, Fault>> {
        let peer = self.members.as_ref()?.view().borrow().state.representative?;
        let bytes = question("directory.resolve", params);
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

    /// `directory.domains` as far as this sensor remembers it.
    fn remembered(&self, params: &Params) -> Value {
        let state = params.text("state").ok().flatten();
        let after = params.text("after").ok().flatten();
        let limit =
            params.need_whole("limit").ok().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
        let known =
            self.asker.known().into_iter().filter(|name| after.is_none_or(|after| name.as_str() > after));
        let found = known.filter_map(|name| match self.asker.last_known(&name) {
            Outcome::Found(found) => Some(told(*found)),
            Outcome::Left(_) | Outcome::Unknown | Outcome::Unreachable => None,
        });
        let mut fitting = found.filter(|found| state.is_none_or(|state| found.state.as_str() == state));
        let domains = Value::array(fitting.by_ref().take(limit).map(|found| methods::record(&found)));
        Value::object([("domains", domains), ("more", fitting.next().is_some().into())])
    }
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
    elsewhere::bytes_of(&elsewhere::question(method, params.values().to_vec(), DEADLINE, 1))
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
