//! Registration: the representative renews its domain's record in the directories.
//!
//! ```text
//! view changes, or 5 s passed ── may it serve? ──▶ sign ──▶ one task for each directory ──▶ State
//!                        Behind: higher numbers, at once ◀──────────────┘
//! ```
//! Rules: a record is signed, and a signed record is sent, only while the sensor may serve. A slow directory
//! delays no other, and receives the newest record when it answers again.
//! Not here: which sensor represents (`domain`), revocation lists (`revocation_sync`), the directories' side
//! (`directory`).

pub mod acceptance;
mod numbers;
pub mod schedule;

use crate::authenticator::Authenticator;
use crate::clock;
use crate::contacts::Keep;
use crate::directories::Directories;
use crate::domain::{DomainHandle, View};
use crate::election::Role;
use crate::identity::key::Key;
use crate::identity::record;
use crate::resolve::asker::Asker;
use acceptance::{Acceptance, Change};
use schedule::{CHANGE_INTERVAL, Content, Due, RENEWAL_INTERVAL, Schedule, coverage};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::{Certificate, Statement};
use wire::id::PeerKey;
use wire::join::DIRECTORIES_MAX;
use wire::registration::{REACH_ADDRESSES_MAX, Reach, Record, SensorType};
use wire::replication::{Answer, Question, Stated};

/// Lease of a record, as directories count it (`directory::registry`).
const LEASE: Duration = Duration::from_secs(15);

/// Timeout of a directory's answer.
const DEADLINE: Duration = Duration::from_secs(4);

/// Addresses of this daemon's interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port of the query interface.
    pub port: u16,
    /// Every address of the query interface, as `http://HOST:PORT`, the best first.
    pub addresses: Vec<String>,
    /// Addresses of this daemon in the overlay, the best first.
    pub overlay: Vec<Address>,
}

/// Status of the registration, for the daemon's health; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Reception(Arc<Mutex<Acceptance>>);

impl Reception {
    /// Messages about what is wrong.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        self.lock().unaccepted(clock::now()).map(unaccepted).into_iter().collect()
    }

    fn log(change: Option<Change>) {
        match change {
            Some(Change::Unaccepted(span)) => tracing::warn!("{}", unaccepted(span)),
            Some(Change::Again) => tracing::info!("a directory takes this domain's record again"),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Acceptance> {
        // The value is consistent between its methods, and none of them panics half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unaccepted(span: Duration) -> String {
    format!(
        "no directory has taken this domain's record for {} s, so other domains may not find it; are the directories \
         of [overlay] running, and reached from here?",
        span.as_secs()
    )
}

/// The registration task.
#[derive(Debug)]
pub struct Registrar {
    pub key: Key,
    /// The authorizer, which has the daemon's certificate with its domain, root and host.
    pub gate: Arc<Authenticator>,
    /// This sensor's part in its domain.
    pub members: DomainHandle,
    /// The directories that receive the record.
    pub directories: Arc<Directories>,
    /// The resolver, which takes this daemon's own record and answers with it if no directory does.
    pub asker: Asker,
    /// The addresses in the record.
    pub place: Place,
    pub reception: Reception,
}

/// Answer of one directory to a record.
type Outcome = (PeerKey, Stated);

/// The record to send; none while this sensor does not represent its domain.
type Current = Option<Arc<Statement>>;

impl Registrar {
    /// Register until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut view = self.members.view();
        let (current, _) = watch::channel(None);
        let (outcomes, mut received) = mpsc::channel(DIRECTORIES_MAX);
        let mut workers = JoinSet::new();
        for directory in self.directories.keys() {
            let (directories, members) = (Arc::clone(&self.directories), self.members.clone());
            workers.spawn(send_records(
                directory,
                directories,
                members,
                current.subscribe(),
                outcomes.clone(),
            ));
        }
        let mut schedule = Schedule::default();
        loop {
            let known = view.borrow_and_update().clone();
            if matches!(known.state.role, Role::Representative | Role::Standby) {
                self.directories.hold().await;
            }
            let due = self.state(&known, &mut schedule, &current);
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = view.changed() => if changed.is_err() { return },
                Some(outcome) = received.recv() => self.handle_outcome(&mut schedule, outcome),
                () = tokio::time::sleep(due) => {}
            }
        }
    }

    /// Sign and publish the record if it is due. Returns how long until the next check.
    fn state(&self, known: &View, schedule: &mut Schedule, current: &watch::Sender<Current>) -> Duration {
        let may_serve = known.state.role == Role::Representative && self.members.may_serve();
        let Some(chain) = self.gate.chain().filter(|_| may_serve) else {
            current.send_if_modified(|current| current.take().is_some());
            schedule.rest();
            self.reception.lock().rest();
            return CHANGE_INTERVAL;
        };
        let members = known.members.iter().map(|seen| &seen.member);
        let coverage = coverage(&known.state, members);
        let content = Content { elected: known.state.term, coverage, chain };
        let (term, sequence) = match schedule.due(&content, clock::now()) {
            Due::In(span) => return span,
            Due::Now { term, sequence } => (term, sequence),
        };
        if !self.directories.keys().is_empty() {
            let mut acceptance = self.reception.lock();
            acceptance.published(clock::now());
            Reception::log(acceptance.look(clock::now()));
        }
        match self.sign(&content, term, sequence) {
            Ok(statement) => drop(current.send_replace(Some(Arc::new(statement)))),
            Err(error) => tracing::error!(error, "the domain's record cannot be stated"),
        }
        RENEWAL_INTERVAL
    }

    fn sign(&self, content: &Content, term: u64, sequence: u64) -> Result<Statement, String> {
        // The daemon's own chain: it was verified when it was received.
        let certificate: Certificate =
            content.chain.certificate.unverified().map_err(|error| error.to_string())?;
        let addresses = self.place.overlay.iter().take(REACH_ADDRESSES_MAX).cloned().collect();
        let (root, peer, coverage) = (certificate.root, self.key.peer(), content.coverage.clone());
        let record = Record {
            domain: certificate.domain,
            host: certificate.host,
            port: self.place.port,
            sensor_type: SensorType::Representative,
            addresses: self.place.addresses.clone(),
            term,
            sequence,
            stated: clock::calendar(),
            reach: Some(Reach { root, peer, addresses, coverage }),
        };
        let stated = record::state(&record, &self.key, &content.chain);
        let statement = stated.map_err(|refused| refused.to_string())?;
        self.asker.take_own(record, statement.clone(), LEASE);
        Ok(statement)
    }

    fn handle_outcome(&self, schedule: &mut Schedule, (directory, stated): Outcome) {
        if matches!(stated, Stated::Primary | Stated::Taken | Stated::Partial { .. }) {
            Reception::log(self.reception.lock().accepted(clock::now()));
        }
        match stated {
            Stated::Primary | Stated::Taken => {}
            Stated::Partial { highest } => {
                tracing::info!(%directory, term = highest.term, peer = %highest.peer, "another represents the domain too");
            }
            Stated::Behind { highest } => {
                tracing::warn!(%directory, term = highest.term, "the directory knows higher numbers; going on above them");
                schedule.exceed(self.key.peer(), highest);
            }
            Stated::Refused(reason) => tracing::warn!(%directory, reason, "the record was refused"),
        }
    }
}

/// Send the current record to one directory, as soon as it is connected.
async fn send_records(
    directory: PeerKey,
    directories: Arc<Directories>,
    members: DomainHandle,
    mut current: watch::Receiver<Current>,
    outcomes: mpsc::Sender<Outcome>,
) {
    while current.changed().await.is_ok() {
        if current.borrow().is_none() {
            continue;
        }
        directories.reach(directory).await;
        // Everything may have changed during the wait.
        let statement = current.borrow_and_update().clone();
        let Some(statement) = statement.filter(|_| members.may_serve()) else { continue };
        let question = Question::State(Box::new(Statement::clone(&statement)));
        match directories.ask(directory, question, Keep::ForMore, DEADLINE).await {
            Ok(Answer::Stated(stated)) => {
                if outcomes.send((directory, stated)).await.is_err() {
                    return;
                }
            }
            Ok(_) => {
                tracing::warn!(%directory, "a directory answered something else; is it of another version?")
            }
            Err(error) => tracing::warn!(%error, "could not renew the directory registration; will retry"),
        }
    }
}
