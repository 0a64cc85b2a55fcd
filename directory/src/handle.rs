//! The one table of this process, shared by the tasks that register, resolve and save.
//!
//! A short lock behind sync methods: no call waits for another longer than one look at the table, and
//! none holds the lock over an await, a file or a signature. Not here: the rules of the table (`registry`) and
//! of replication (`replicate`), the form of answers (`answers`, `methods`).

use crate::admission::List;
use crate::opened::{Opened, OpenedDenial, OpenedItem, OpenedLeave};
use crate::registry::{Answer, Counts, Registry, State};
use crate::replicate::{self, Output, Replicas};
use crate::snapshot::Snapshot;
use crate::verdict::{Accepted, Refused};
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
    /// Time since a fixed start, suspension included; never goes back.
    fn now(&self) -> Moment;
    /// The calendar, used in snapshots and answers, never compared with another host's.
    fn calendar(&self) -> Time;
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        // The boot-time clock, because a lease must not outlive a suspended machine's sleep.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let secs = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Moment(Duration::new(secs, nanos))
    }

    #[allow(clippy::disallowed_methods)] // The shell that reads the clock for the pure parts.
    fn calendar(&self) -> Time {
        std::time::SystemTime::now().into()
    }
}

/// What the directory says about a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The newest statement of its representative.
    pub record: Record,
    /// What it was opened from; none for a representative of this process.
    pub statement: Option<Arc<Statement>>,
    /// Whether it still holds.
    pub state: State,
    /// Time since it was accepted.
    pub age: Duration,
    /// Time until the lease ends; zero unless live.
    pub lease_remaining: Duration,
    /// Live representatives that answer for hosts which this one lacks, the highest term first.
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

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has, or had, a representative.
    Found(Box<Found>),
    /// Its representative said at this number, so long ago, that it is no more.
    Left(Number, Duration),
    /// Nothing, and there is nothing to learn.
    Nothing,
    /// Nothing yet: the directory has started lately, and has not heard of another.
    NothingYet,
}

/// The directory's table, to be cloned freely; every clone is the same table.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    replicas: Mutex<Replicas>,
    clock: Box<dyn Clock>,
    /// Notified when something is to be sent, or is due earlier than it was.
    woken: Notify,
    /// Grows when the list of admitted domains changes.
    admitted: watch::Sender<u64>,
}

impl Handle {
    /// Share `registry`, judged by `clock`: a directory that is alone and takes statements of its own process.
    #[must_use]
    pub fn new(registry: Registry, clock: impl Clock + 'static) -> Handle {
        Handle::among(Replicas::alone(registry), clock)
    }

    /// Share a directory that has others beside it, or takes signed statements.
    #[must_use]
    pub fn among(replicas: Replicas, clock: impl Clock + 'static) -> Handle {
        let (clock, admitted) = (Box::new(clock), watch::channel(0).0);
        let shared = Shared { replicas: Mutex::new(replicas), clock, woken: Notify::new(), admitted };
        Handle(Arc::new(shared))
    }

    /// A representative of this process states its record. See [`Registry::register`].
    ///
    /// # Errors
    /// If it is refused; the table is then as before.
    pub fn register(&self, record: Record) -> Result<Accepted, Refused> {
        let now = self.now();
        self.table().registry_mut().register(Opened::own(record), now)
    }

    /// A representative states a signed record on the connection of `from`. See [`Replicas::state`].
    ///
    /// # Errors
    /// If it is refused; the table is then as before.
    pub fn state(&self, from: PeerKey, opened: Opened) -> Result<Accepted, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.state(from, opened, now))
    }

    /// A representative says that its domain is no more. See [`Replicas::leave`].
    ///
    /// # Errors
    /// If it is refused; the table is then as before.
    pub fn leave(&self, from: PeerKey, left: OpenedLeave) -> Result<bool, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.leave(from, left, now))
    }

    /// Takes a revocation list. See [`Replicas::deny`].
    ///
    /// # Errors
    /// If it is refused; the table is then as before.
    pub fn deny(&self, denial: OpenedDenial) -> Result<bool, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.deny(denial, now))
    }

    /// Another directory asks. See [`Replicas::handle_question`].
    ///
    /// # Errors
    /// If it is not among the configured ones.
    pub fn handle_question(
        &self,
        from: PeerKey,
        question: ReplicaQuestion,
    ) -> Result<ReplicaAnswer<OpenedItem>, replicate::Refused> {
        self.and_wake(|replicas, now| replicas.handle_question(from, question, now))
    }

    /// Another directory answered. See [`Replicas::handle_answer`].
    pub fn handle_answer(&self, from: PeerKey, id: u64, answer: ReplicaAnswer<OpenedItem>) {
        self.and_wake(|replicas, now| replicas.handle_answer(from, id, answer, now));
    }

    /// A question to another directory is not answered. See [`Replicas::handle_failure`].
    pub fn handle_failure(&self, from: PeerKey, id: u64) {
        self.table().handle_failure(from, id);
    }

    /// Another directory can be reached again. See [`Replicas::handle_connected`].
    pub fn handle_connected(&self, peer: PeerKey) {
        self.and_wake(|replicas, now| replicas.handle_connected(peer, now));
    }

    /// The list of admitted domains that commands keep has changed. See [`Replicas::admit`].
    pub fn admit(&self, kept: List) {
        self.table().admit(kept);
        self.0.admitted.send_modify(|changes| *changes += 1);
    }

    /// Notifies of each change of the list of admitted domains; [`Handle::admitted`] returns it.
    #[must_use]
    pub fn admissions(&self) -> watch::Receiver<u64> {
        self.0.admitted.subscribe()
    }

    /// Every admitted domain and root, by name, after `after`; at most `most`.
    #[must_use]
    pub fn admitted(&self, after: Option<&DomainName>, most: usize) -> Vec<(DomainName, PeerKey)> {
        let table = self.table();
        let domains = table.admission().domains(after).take(most);
        domains.map(|(domain, root)| (domain.clone(), root)).collect()
    }

    /// What is held of `domain`.
    #[must_use]
    pub fn resolve(&self, domain: &DomainName) -> Option<Found> {
        let now = self.now();
        self.table().registry().resolve(domain, now).map(Found::from)
    }

    /// What is known of `domain`.
    #[must_use]
    pub fn look_up(&self, domain: &DomainName) -> Known {
        let now = self.now();
        let table = self.table();
        if let Some(answer) = table.registry().resolve(domain, now) {
            return Known::Found(Box::new(answer.into()));
        }
        match table.registry().left(domain, now) {
            Some((number, age)) => Known::Left(number, age),
            None if table.is_settled(now) => Known::Nothing,
            None => Known::NothingYet,
        }
    }

    /// The highest number known of `domain`.
    #[must_use]
    pub fn highest(&self, domain: &DomainName) -> Option<Number> {
        self.table().registry().highest(domain)
    }

    /// The newest lists of denied of `domain`, at most one by its root and one by its issuer.
    #[must_use]
    pub fn denials(&self, domain: &DomainName) -> Vec<Denial> {
        let table = self.table();
        table.registry().denials(domain).iter().map(|denial| Denial::clone(&denial.denial)).collect()
    }

    /// Everything held, by domain; at most [`crate::registry::DOMAINS_MAX`].
    #[must_use]
    pub fn domains(&self) -> Vec<Found> {
        self.domains_where(|_| true, usize::MAX)
    }

    /// The first `most` of what is held and fits, by domain.
    pub fn domains_where(&self, fits: impl Fn(&Answer<'_>) -> bool, most: usize) -> Vec<Found> {
        let now = self.now();
        self.table().registry().domains(now).filter(fits).take(most).map(Found::from).collect()
    }

    /// The first `most` names held, in order.
    #[must_use]
    pub fn names(&self, most: usize) -> Vec<DomainName> {
        let now = self.now();
        self.table().registry().domains(now).take(most).map(|held| held.record.domain.clone()).collect()
    }

    /// What happened since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.table().registry().counts()
    }

    /// Let time pass: what is to be done now, and how long until it is to be asked again at the latest.
    pub fn poll(&self) -> (Vec<Output>, Option<Duration>) {
        let now = self.now();
        let mut table = self.table();
        table.handle_timeout(now);
        let outputs = std::iter::from_fn(|| table.poll_output()).collect();
        (outputs, table.poll_timeout().map(|at| at.since(now)))
    }

    /// Waits until there may be something to do before the time that [`Handle::poll`] returned.
    pub async fn woken(&self) {
        self.0.woken.notified().await;
    }

    pub(crate) fn revision(&self) -> u64 {
        self.table().registry().revision()
    }

    /// Everything held, as a file keeps it for the next start.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now();
        Snapshot::of(self.table().registry(), now, self.0.clock.calendar())
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
        // The table is consistent between its methods, and none of them panics half way.
        self.0.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&*self.table()).finish()
    }
}
