//! The shell of sampling: a thread that sweeps on time, publishes the newest table and keeps the history.
//!
//! Rule: the thread waits for its deadline and for nothing else; readers take the newest table by pointer
//! and copies of the history, so none of them holds it up. The rate can be changed while it runs.
//! Not here: when a sweep is due (`schedule`), what is read (`host`).

use super::collector::{Collectors, Now};
use super::figures::{CPU_METRIC, Figures, figures};
use super::history::{Completeness, History, Series};
use super::schedule::{Rate, Schedule};
use super::table::Table;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::sample::Metric;
use wire::time::Time;

/// Sweeps looked back for what is a difference between two: one more than needed, as sweeps may be late.
const SWEEPS_FOR_DIFFERENCES: u32 = 3;

/// Why sampling ended other than as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The thread panicked outside a collector.
    #[error("the sampling thread panicked: {0}")]
    Panicked(String),
}

/// What happened since the start; all only grow, but for the last two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sweeps made.
    pub sweeps_total: u64,
    /// Moments at which a sweep was due and none was made, because one before took too long.
    pub slipped_total: u64,
    /// Values that had no place in a table.
    pub refused_total: u64,
    /// Sweeps in the history.
    pub history_sweeps: usize,
    /// About how many bytes the history takes.
    pub history_bytes: usize,
}

/// Sampling, ready to run.
pub struct Sampler {
    collectors: Collectors,
    shared: Arc<Shared>,
}

/// What readers see of the sampling; to be cloned freely.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    orders: Mutex<Orders>,
    ordered: Condvar,
    newest: watch::Sender<Option<Arc<Table>>>,
    history: Mutex<History>,
    sweeps: AtomicU64,
    slipped: AtomicU64,
    refused: AtomicU64,
}

struct Orders {
    rate: Rate,
    stop: bool,
}

impl Sampler {
    /// Sweep over `collectors` at this rate, once run.
    #[must_use]
    pub fn new(collectors: Collectors, rate: Rate) -> Sampler {
        let shared = Shared {
            orders: Mutex::new(Orders { rate, stop: false }),
            ordered: Condvar::new(),
            newest: watch::Sender::new(None),
            history: Mutex::new(History::default()),
            sweeps: AtomicU64::new(0),
            slipped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        };
        Sampler { collectors, shared: Arc::new(shared) }
    }

    /// For readers, before and while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Sweep until `shutdown` fires. The sweep under way is finished. Dropping the future stops it too.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let Sampler { collectors, shared } = self;
        let _stop = StopOnDrop(Arc::clone(&shared));
        let thread = Arc::clone(&shared);
        // A thread of its own: reading `/proc` can take milliseconds on a host in trouble.
        let mut work = tokio::task::spawn_blocking(move || thread.sweep_until_stopped(collectors));
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = shutdown.cancelled() => {
                shared.order(|orders| orders.stop = true);
                work.await
            }
        };
        outcome.map_err(|error| Error::Panicked(error.to_string()))
    }
}

/// Ends the thread when the task that owns it is dropped.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.order(|orders| orders.stop = true);
    }
}

impl Handle {
    /// The newest table; `None` before the first sweep.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Table>> {
        self.0.newest.borrow().clone()
    }

    /// Every table from now on; one that comes late skips to the newest.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Table>>> {
        self.0.newest.subscribe()
    }

    /// The series of the wanted metrics from `since` on, at most `points_max` points: the newest.
    #[must_use]
    pub fn history(
        &self,
        wanted: impl Fn(&Metric) -> bool,
        since: Time,
        points_max: usize,
    ) -> (Vec<Series>, Completeness) {
        let view = locked(&self.0.history).view();
        view.series(wanted, since, points_max)
    }

    /// What the newest sweeps tell of the host as a whole; `None` before the first.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let latest = self.latest()?;
        let recent = latest.time().minus(self.rate().period() * SWEEPS_FOR_DIFFERENCES);
        let (cpu, _) = self.history(|metric| metric.name == CPU_METRIC, recent, usize::MAX);
        Some(figures(&latest, &cpu))
    }

    /// How often it sweeps.
    #[must_use]
    pub fn rate(&self) -> Rate {
        locked(&self.0.orders).rate
    }

    /// From the last sweep on, another rate.
    pub fn set_rate(&self, rate: Rate) {
        self.0.order(|orders| orders.rate = rate);
    }

    /// What happened since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let history = locked(&self.0.history);
        Counts {
            sweeps_total: self.0.sweeps.load(Ordering::Relaxed),
            slipped_total: self.0.slipped.load(Ordering::Relaxed),
            refused_total: self.0.refused.load(Ordering::Relaxed),
            history_sweeps: history.sweeps(),
            history_bytes: history.len_bytes(),
        }
    }
}

impl Shared {
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut locked(&self.orders));
        self.ordered.notify_all();
    }

    fn sweep_until_stopped(&self, mut collectors: Collectors) {
        let mut rate = locked(&self.orders).rate;
        let mut schedule = Schedule::new(rate, running());
        while self.wait(&mut schedule, &mut rate) == Next::Sweep {
            let now = Now { calendar: calendar(), running: running() };
            schedule.begin(now.running);
            let table = Arc::new(collectors.sweep(now, running));
            locked(&self.history).push(&table);
            self.sweeps.fetch_add(1, Ordering::Relaxed);
            self.slipped.store(schedule.slipped_total(), Ordering::Relaxed);
            self.refused.store(collectors.refused_total(), Ordering::Relaxed);
            self.newest.send_replace(Some(table));
        }
    }

    fn wait(&self, schedule: &mut Schedule, rate: &mut Rate) -> Next {
        let mut orders = locked(&self.orders);
        loop {
            if orders.stop {
                return Next::Stop;
            }
            if orders.rate != *rate {
                *rate = orders.rate;
                schedule.set_rate(*rate, running());
            }
            let left = schedule.wait(running());
            if left.is_zero() {
                return Next::Sweep;
            }
            orders = self.ordered.wait_timeout(orders, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    Sweep,
    Stop,
}

/// Nothing behind these locks is left half done by a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time since boot without suspension, the clock that waiting uses too.
fn running() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[allow(clippy::disallowed_methods)] // The shell that reads the calendar for the collectors.
fn calendar() -> Time {
    std::time::SystemTime::now().into()
}
