//! Shared handle to the one table of this process, for the tasks that register, resolve and save.
//!
//! A mutex behind synchronous methods: no call holds the lock for longer than one access to the table, or
//! across an await, a file access or a signature check. Not here: the rules of the table (`registry`) and of
//! replication (`replicate`), the form of answers (`answers`, `methods`).

use crate::admission::List;
use crate::opened::{Opened, OpenedDenial, OpenedItem, OpenedLeave};
use crate::registry::outcome::{Accepted, Refused};
use crate::registry::{Answer, Counts, Registry, State};
use crate::replicate::{self, Output, Replicas};
use crate::snapshot::Snapshot;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use wire::credential::{Denial, Statement};
use wire::id::{DomainName, PeerKey};
use wire::registration::Record;
use wire::replication::{Number, ReplicaAnswer, ReplicaQuestion};
use wire::time::{Moment, Time};

/// The two clocks a directory needs.
pub trait Clock: Send + Sync {
    /// Time since a fixed start, including suspension; it never goes back.
    fn now(&self) -> Moment;
    /// Calendar time for snapshots and answers; it is never compared with another host's.
    fn calendar(&self) -> Time;
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        // The boot-time clock, because a lease must not survive the sleep of a suspended machine.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let secs = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Moment(Duration::new(secs, nanos))
    }

    #[allow(clippy::disallowed_methods)] // This is the shell that reads the clock for the pure parts.
    fn calendar(&self) -> Time {
        std::time::SystemTime::now().into()
    }
}

/// Result of a look-up: the record of a domain and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Newest record of the representative.
    pub record: Record,
    /// Signed form of the record; `None` for a representative of this process.
    pub statement: Option<Arc<Statement>>,
    pub state: State,
    /// Time since the record was accepted.
    pub age: Duration,
    /// Time until the lease ends; zero unless the record is live.
    pub lease_remaining: Duration,
    /// Live representatives that answer for hosts missing from this record, highest term first.
    pub partial: Vec<Found>,
}

impl From<Answer<'_>> for Found {
    fn from(answer: Answer<'_>) -> Found {
        let Answer { record, state, age, lease_remaining, opened, partial } = answer;
        let statement = opened.statement().cloned();
        let partial = partial.into_iter().map(Found::from).collect();
        Found { record: record.clone(), statement, state, age, lease_remaining, partial }
    }
}

/// What the directory knows about a domain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The domain has, or had, a representative.
    Found(Box<Found>),
    /// The domain left: the number of the leave, and its age.
    Left(Number, Duration),
    /// Unknown to this directory and, as far as it can know, to the others.
    Nothing,
    /// Unknown so far: the directory has just started and has not finished asking the others.
    NothingYet,
}

/// The directory's table. Clones are cheap and share the same table.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    replicas: Mutex<Replicas>,
    clock: Box<dyn Clock>,
    /// Notified when there is output, or when the next timeout is earlier than before.
    woken: Notify,
    /// Incremented when the list of admitted domains changes.
    admitted: watch::Sender<u64>,
}

impl Handle {
    /// Share `registry` with the time of `clock`: a single directory for representatives of its own process.
    #[must_use]
    pub fn new(registry: Registry, clock: impl Clock + 'static) -> Handle {
        Handle::among(Replicas::alone(registry), clock)
    }

    /// Share a directory that has peers, or accepts signed statements.
    #[must_use]
    pub fn among(replicas: Replicas, clock: impl Clock + 'static) -> Handle {
        let (clock, admitted) = (Box::new(clock), watch::channel(0).0);
        let shared = Shared { replicas: Mutex::new(replicas), clock, woken: Notify::new(), admitted };
        Handle(Arc::new(shared))
    }

    /// Register the record of a representative of this process. See [`Registry::register`].
    ///
    /// # Errors
    /// If the record is refused; the table is then unchanged.
    pub fn register(&self, record: Record) -> Result<Accepted, Refused> {
        let now = self.now();
        self.table().registry_mut().register(Opened::own(record), now)
    }

    /// Process a signed record that a representative sent on the connection of `from`. See
    /// [`Replicas::state`].
    ///
    /// # Errors
    /// If the record is refused; the table is then unchanged.
    pub fn state(&self, from: PeerKey, opened: Opened) -> Result<Accepted, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.state(from, opened, now))
    }

    /// Process the leave of a domain, sent by its representative. See [`Replicas::leave`].
    ///
    /// # Errors
    /// If the leave is refused; the table is then unchanged.
    pub fn leave(&self, from: PeerKey, left: OpenedLeave) -> Result<bool, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.leave(from, left, now))
    }

    /// Process a revocation list. See [`Replicas::deny`].
    ///
    /// # Errors
    /// If the list is refused; the table is then unchanged.
    pub fn deny(&self, denial: OpenedDenial) -> Result<bool, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.deny(denial, now))
    }

    /// Answer a question of another directory. See [`Replicas::handle_question`].
    ///
    /// # Errors
    /// If the other directory is not configured as a peer.
    pub fn handle_question(
        &self,
        from: PeerKey,
        question: ReplicaQuestion,
    ) -> Result<ReplicaAnswer<OpenedItem>, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.handle_question(from, question, now))
    }

    /// Process the answer of another directory. See [`Replicas::handle_answer`].
    pub fn handle_answer(&self, from: PeerKey, id: u64, answer: ReplicaAnswer<OpenedItem>) {
        self.and_wake(|replicas, now| replicas.handle_answer(from, id, answer, now));
    }

    /// Process the failure of a question to another directory. See [`Replicas::handle_failure`].
    pub fn handle_failure(&self, from: PeerKey, id: u64) {
        self.table().handle_failure(from, id);
    }

    /// Process the connection of another directory. See [`Replicas::handle_connected`].
    pub fn handle_connected(&self, peer: PeerKey) {
        self.and_wake(|replicas, now| replicas.handle_connected(peer, now));
    }

    /// Replace the list of admitted domains that commands write. See [`Replicas::admit`].
    pub fn admit(&self, kept: List) {
        self.table().admit(kept);
        self.0.admitted.send_modify(|changes| *changes += 1);
    }

    /// Subscribe to changes of the list of admitted domains; [`Handle::admitted`] returns the list.
    #[must_use]
    pub fn admissions(&self) -> watch::Receiver<u64> {
        self.0.admitted.subscribe()
    }

    /// The first `most` admitted domains and roots after the name `after`, sorted by name.
    #[must_use]
    pub fn admitted(&self, after: Option<&DomainName>, most: usize) -> Vec<(DomainName, PeerKey)> {
        let table = self.table();
        let domains = table.admission().domains(after).take(most);
        domains.map(|(domain, root)| (domain.clone(), root)).collect()
    }

    /// The record of `domain` and its state.
    #[must_use]
    pub fn resolve(&self, domain: &DomainName) -> Option<Found> {
        let now = self.now();
        self.table().registry().resolve(domain, now).map(Found::from)
    }

    /// Look up `domain`, including whether it left or may still be learnt.
    #[must_use]
    pub fn look_up(&self, domain: &DomainName) -> Lookup {
        let now = self.now();
        let table = self.table();
        if let Some(answer) = table.registry().resolve(domain, now) {
            return Lookup::Found(Box::new(answer.into()));
        }
        match table.registry().left(domain, now) {
            Some((number, age)) => Lookup::Left(number, age),
            None if table.is_settled(now) => Lookup::Nothing,
            None => Lookup::NothingYet,
        }
    }

    /// Highest number known for `domain`.
    #[must_use]
    pub fn highest(&self, domain: &DomainName) -> Option<Number> {
        self.table().registry().highest(domain)
    }

    /// Newest revocation lists of `domain`: at most one of its root and one of its issuer.
    #[must_use]
    pub fn denials(&self, domain: &DomainName) -> Vec<Denial> {
        let table = self.table();
        table.registry().denials(domain).iter().map(|denial| Denial::clone(&denial.denial)).collect()
    }

    /// All records, sorted by domain; at most [`crate::registry::DOMAINS_MAX`].
    #[must_use]
    pub fn domains(&self) -> Vec<Found> {
        self.domains_where(|_| true, usize::MAX)
    }

    /// The first `most` records that match `fits`, sorted by domain.
    pub fn domains_where(&self, fits: impl Fn(&Answer<'_>) -> bool, most: usize) -> Vec<Found> {
        let now = self.now();
        self.table().registry().domains(now).filter(fits).take(most).map(Found::from).collect()
    }

    /// The first `most` domain names, sorted.
    #[must_use]
    pub fn names(&self, most: usize) -> Vec<DomainName> {
        let now = self.now();
        self.table().registry().domains(now).take(most).map(|held| held.record.domain.clone()).collect()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.table().registry().counts()
    }

    /// Process what is due now. Returns the outputs, and the longest time until the next call.
    pub fn poll(&self) -> (Vec<Output>, Option<Duration>) {
        let now = self.now();
        let mut table = self.table();
        table.handle_timeout(now);
        let outputs = std::iter::from_fn(|| table.poll_output()).collect();
        (outputs, table.poll_timeout().map(|at| at.since(now)))
    }

    /// Wait until there may be work before the time that [`Handle::poll`] returned.
    pub async fn woken(&self) {
        self.0.woken.notified().await;
    }

    pub(crate) fn revision(&self) -> u64 {
        self.table().registry().revision()
    }

    /// The content of the table, to be saved for the next start.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now();
        Snapshot::of(self.table().registry(), now, self.0.clock.calendar())
    }

    /// The time by the calendar.
    pub(crate) fn calendar(&self) -> Time {
        self.0.clock.calendar()
    }

    fn and_wake<T>(&self, act: impl FnOnce(&mut Replicas, Moment) -> T) -> T {
        let now = self.now();
        let mut table = self.table();
        let before = table.poll_timeout();
        let result = act(&mut table, now);
        if table.has_output() || table.poll_timeout() < before {
            self.0.woken.notify_one();
        }
        result
    }

    fn now(&self) -> Moment {
        self.0.clock.now()
    }

    fn table(&self) -> MutexGuard<'_, Replicas> {
        // A poisoned lock is safe: the table is consistent between its methods, and none of them panics half
        // way.
        self.0.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&*self.table()).finish()
    }
}
