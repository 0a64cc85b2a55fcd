//! The one table of this process, shared by the tasks that register, resolve and save.
//!
//! A short lock behind sync methods: no call waits for another longer than one look at the table, and
//! none holds the lock over an await or a file. Not here: the rules of the table (`registry`).

use crate::registry::{Accepted, Answer, Counts, Refused, Registry, State};
use crate::snapshot::Snapshot;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::id::DomainName;
use wire::registration::Record;
use wire::time::{Moment, Time};

/// The two clocks a directory needs.
pub trait Clock: Send + Sync {
    /// Time since a fixed start, suspension included; never goes back.
    fn now(&self) -> Moment;
    /// The calendar, told in snapshots and answers, never compared with another host's.
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
    /// Whether it still holds.
    pub state: State,
    /// Time since it was accepted.
    pub age: Duration,
    /// Time until the lease ends; zero unless live.
    pub lease_remaining: Duration,
}

impl From<Answer<'_>> for Found {
    fn from(answer: Answer<'_>) -> Found {
        let Answer { record, state, age, lease_remaining } = answer;
        Found { record: record.clone(), state, age, lease_remaining }
    }
}

/// The directory's table, to be cloned freely; every clone is the same table.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    registry: Mutex<Registry>,
    clock: Box<dyn Clock>,
}

impl Handle {
    /// Share `registry`, judged by `clock`.
    #[must_use]
    pub fn new(registry: Registry, clock: impl Clock + 'static) -> Handle {
        Handle(Arc::new(Shared { registry: Mutex::new(registry), clock: Box::new(clock) }))
    }

    /// A representative states its record. See [`Registry::register`].
    ///
    /// # Errors
    /// If it is refused; the table is then as before.
    pub fn register(&self, record: Record) -> Result<Accepted, Refused> {
        let now = self.now();
        self.table().register(record, now)
    }

    /// What is held of `domain`.
    #[must_use]
    pub fn resolve(&self, domain: &DomainName) -> Option<Found> {
        let now = self.now();
        self.table().resolve(domain, now).map(Found::from)
    }

    /// Everything held, by domain; at most [`crate::registry::DOMAINS_MAX`].
    #[must_use]
    pub fn domains(&self) -> Vec<Found> {
        self.domains_where(|_| true, usize::MAX)
    }

    /// The first `most` of what is held and fits, by domain.
    pub fn domains_where(&self, fits: impl Fn(&Answer<'_>) -> bool, most: usize) -> Vec<Found> {
        let now = self.now();
        self.table().domains(now).filter(fits).take(most).map(Found::from).collect()
    }

    /// The first `most` names held, in order.
    #[must_use]
    pub fn names(&self, most: usize) -> Vec<DomainName> {
        let now = self.now();
        self.table().domains(now).take(most).map(|held| held.record.domain.clone()).collect()
    }

    /// What happened since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.table().counts()
    }

    /// End the leases that are over; their domains.
    pub(crate) fn expire(&self) -> Vec<DomainName> {
        let now = self.now();
        self.table().expire(now)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.table().revision()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.now();
        Snapshot::of(&self.table(), now, self.0.clock.calendar())
    }

    /// Take in what a snapshot holds as last seen; how many records were refused.
    pub(crate) fn restore(&self, snapshot: Snapshot) -> usize {
        let now = self.now();
        // The calendar is the only clock that both runs share. It is told, not compared between hosts.
        let since = self.0.clock.calendar().since(snapshot.taken);
        let mut table = self.table();
        let refused = |kept: crate::snapshot::Kept| {
            table.restore(kept.record, kept.age.saturating_add(since), now).is_err()
        };
        snapshot.kept.into_iter().map(refused).filter(|&refused| refused).count()
    }

    fn now(&self) -> Moment {
        self.0.clock.now()
    }

    fn table(&self) -> MutexGuard<'_, Registry> {
        // The table is consistent between its methods, and none of them panics half way.
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&*self.table()).finish()
    }
}
