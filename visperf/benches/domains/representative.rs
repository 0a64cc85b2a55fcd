//! Representative of one simulated domain, as a directory sees it.
//!
//! It signs and states as `overlay::registrar` does and sends questions through the same `Directories`; only
//! the domain is missing. Not here: how many representatives there are and how often they look up domains
//! (`main`).

use crate::grid::{self, Daemon};
use directory::registry::RENEWAL_INTERVAL;
use overlay::clock;
use overlay::contacts::{Contacts, Keep};
use overlay::directories::Directories;
use overlay::identity::key::Key;
use overlay::identity::record;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Chain, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::Directory;
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Answer, Question, Stated};
use wire::time::Time;

/// Kinds of keys: root keys of domains, and keys of their representatives.
const ROOTS: u8 = 102;
const KIND: u8 = 103;
/// Host of all representatives.
const HOST: &str = "head.site.example";
/// Timeout of a question to the directory, the same as in the product's own daemons.
const DEADLINE: Duration = Duration::from_secs(4);
/// Timeout of the first question: connecting ten thousand domains takes a while.
const FIRST_DEADLINE: Duration = Duration::from_secs(60);

/// Name of a domain by its number.
pub(crate) fn name(nth: u32) -> DomainName {
    DomainName::try_from(format!("SITE-{nth:05}").as_str()).expect("a name")
}

/// Root key of a domain.
pub(crate) fn root(nth: u32) -> Key {
    grid::key(ROOTS, nth)
}

pub(crate) struct Representative {
    nth: u32,
    key: Key,
    chain: Chain,
    directory: PeerKey,
    directories: Arc<Directories>,
}

impl Representative {
    /// Connect to the directory on behalf of the domain of this number.
    pub(crate) fn start(
        nth: u32,
        directory: &Directory,
        tasks: &mut JoinSet<()>,
        ending: &CancellationToken,
    ) -> anyhow::Result<Representative> {
        let key = grid::key(KIND, nth);
        let now = clock::calendar();
        let certificate = Certificate {
            domain: name(nth),
            root: root(nth).peer(),
            peer: key.peer(),
            host: HostName::try_from(HOST)?,
            roles: Roles::SENSOR,
            priority: 0,
            serial: Serial(1),
            issued: now,
            expires: Time::from_micros(now.micros() + 86_400_000_000),
        };
        let chain = Chain { certificate: root(nth).seal(&certificate)?, delegation: None };
        let gate = grid::gate(chain.clone(), BTreeSet::from([directory.key]))?;
        let daemon = Daemon::open(&key, gate, nth.into())?;
        let contacts = Arc::new(Contacts::new(daemon.net.clone(), Some(name(nth))));
        let directories = Directories::new(key.peer(), contacts, vec![directory.clone()]);
        daemon.spawn(tasks, ending);
        Ok(Representative { nth, key, chain, directory: directory.key, directories })
    }

    /// State the record until `ending`; `seat` is dropped once it was stated for the first time.
    pub(crate) async fn keep_stated(
        &self,
        seat: OwnedSemaphorePermit,
        outcomes: &Outcomes,
        ending: CancellationToken,
    ) {
        self.state(1, FIRST_DEADLINE, outcomes).await;
        drop(seat);
        // Statements are spread over the interval without further measures, as the domains started one after
        // another.
        let mut due = tokio::time::interval(RENEWAL_INTERVAL);
        due.tick().await;
        for sequence in 2.. {
            tokio::select! {
                () = ending.cancelled() => return,
                _ = due.tick() => self.state(sequence, DEADLINE, outcomes).await,
            }
        }
    }

    async fn state(&self, sequence: u64, deadline: Duration, outcomes: &Outcomes) {
        let addresses = vec![Address::try_from("head.site.example:7742").expect("an address")];
        let (root, peer) = (root_of(&self.chain), self.key.peer());
        let record = Record {
            domain: name(self.nth),
            host: HostName::try_from(HOST).expect("a name"),
            port: 7317,
            sensor_type: SensorType::Representative,
            addresses: vec![format!("http://{HOST}:7317")],
            term: 1,
            sequence,
            stated: clock::calendar(),
            reach: Some(Reach { root, peer, addresses, coverage: Coverage::Whole { hosts: 500 } }),
        };
        let statement = record::state(&record, &self.key, &self.chain).expect("it is short");
        let began = clock::now();
        let question = Question::State(Box::new(statement));
        match self.directories.ask(self.directory, question, Keep::ForMore, deadline).await {
            Ok(Answer::Stated(Stated::Primary)) => outcomes.stated(clock::now().since(began)),
            Ok(other) => outcomes.failed(format!("{other:?}")),
            Err(error) => outcomes.failed(error.to_string()),
        }
    }

    /// Look up `domain`.
    pub(crate) async fn resolve(&self, domain: DomainName, outcomes: &Outcomes) {
        let began = clock::now();
        let question = Question::Resolve(domain);
        match self.directories.ask(self.directory, question, Keep::ForMore, DEADLINE).await {
            Ok(Answer::Resolved(_)) => outcomes.resolved(clock::now().since(began)),
            Ok(other) => outcomes.failed(format!("{other:?}")),
            Err(error) => outcomes.failed(error.to_string()),
        }
    }
}

fn root_of(chain: &Chain) -> PeerKey {
    chain.certificate.unverified().expect("it was sealed here").root
}

/// Results since the last [`Outcomes::take`].
#[derive(Default)]
pub(crate) struct Outcomes(Mutex<Sums>);

#[derive(Default)]
struct Sums {
    stated: Vec<Duration>,
    resolved: Vec<Duration>,
    failed: u64,
    /// Error of the first failure.
    reason: Option<String>,
}

impl Outcomes {
    fn stated(&self, took: Duration) {
        self.change(|sums| sums.stated.push(took));
    }

    fn resolved(&self, took: Duration) {
        self.change(|sums| sums.resolved.push(took));
    }

    fn failed(&self, reason: String) {
        self.change(|sums| {
            sums.failed += 1;
            sums.reason.get_or_insert(reason);
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Sums) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Format the results, and reset them.
    pub(crate) fn take(&self) -> impl fmt::Display + use<> {
        let Sums { stated, resolved, failed, reason } = self.change(std::mem::take);
        let reason = reason.map_or_else(String::new, |reason| format!(" (the first: {reason})"));
        format!(
            "{} statements taken ({}), {} look-ups answered ({}), {failed} failed{reason}",
            stated.len(),
            quantiles(stated),
            resolved.len(),
            quantiles(resolved)
        )
    }
}

#[allow(clippy::cast_precision_loss)] // Microseconds of a few seconds.
fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times.get((times.len().saturating_sub(1)) * share / 100);
    match (at(50), at(99)) {
        (Some(p50), Some(p99)) => {
            format!("p50 {:.2} ms, p99 {:.2} ms", p50.as_secs_f64() * 1e3, p99.as_secs_f64() * 1e3)
        }
        _ => "none".to_owned(),
    }
}
