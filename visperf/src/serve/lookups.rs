//! `directory.*` as a sensor answers it: from its memory and the directories' word.
//!
//! Rule: `directory.resolve` is answered for whatever was ever known, directories dead or not; lists of all domains are
//! the directories' own answers, and what this sensor remembers where none answers.
//! Not here: the directory's own answers (`directory::methods`).

use super::elsewhere::{self, Hop};
use super::others;
use directory::handle::Found;
use directory::registry::State;
use directory::{discovery, methods};
use overlay::directories::Directories;
use overlay::resolve::asker::Asker;
use overlay::resolve::{self, Heard, Outcome};
use rpc::fault::Fault;
use rpc::method::Registry;
use rpc::packed;
use rpc::params::Params;
use rpc::value::Value;
use std::sync::Arc;
use std::time::Duration;
use wire::query::Question;

/// How long directories may take: less than a client waits.
const DEADLINE: Duration = Duration::from_secs(4);

/// What answers.
#[derive(Clone)]
pub(crate) struct Lookups {
    pub(crate) asker: Asker,
    pub(crate) directories: Arc<Directories>,
}

impl Lookups {
    /// Add the methods and the path of service discovery.
    ///
    /// # Errors
    /// If one of the same name is there already.
    pub(crate) fn add(self, registry: &mut Registry) -> Result<(), rpc::method::Error> {
        let own = self.clone();
        registry.add(methods::resolve_declaration().handler(move |params: Params| {
            let own = own.clone();
            async move { own.resolve(&params).await }
        }))?;
        let own = self.clone();
        registry.add(methods::domains_declaration().handler(move |params: Params| {
            let own = own.clone();
            async move {
                let asked = own.ask_directories("directory.domains", &params).await;
                asked.map_or_else(|_| Ok(own.remembered(&params)), |answer| answer)
            }
        }))?;
        registry.add(discovery::declaration().handler(move |params: Params| {
            let own = self.clone();
            async move { own.ask_directories("directory.targets", &params).await? }
        }))?;
        registry.add_path(discovery::PATH, "directory.targets")
    }

    async fn resolve(&self, params: &Params) -> Result<Value, Fault> {
        let domain = methods::domain_of(params)?;
        match self.asker.resolve(&domain, DEADLINE).await {
            Outcome::Found(found) => Ok(methods::record(&told(*found))),
            outcome => Err(others::absent(&domain, &outcome)),
        }
    }

    /// What the first directory that answers says; an error if none does.
    async fn ask_directories(
        &self,
        method: &'static str,
        params: &Params,
    ) -> Result<Result<Value, Fault>, Fault> {
        let mut packed_params = Vec::new();
        packed::write(&Value::Struct(params.values().to_vec()), &mut packed_params);
        let question = Question {
            method: method.into(),
            params: packed_params,
            time_left_ms: elsewhere::millis(DEADLINE),
            hops_left: 1,
        };
        let bytes = postcard::to_stdvec(&question).expect("a question has no part that cannot be written");
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
        let tried = if tried.is_empty() { "none is configured".to_owned() } else { tried.join("; ") };
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
