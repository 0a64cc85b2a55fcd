//! The shell of process sampling: a thread that sweeps on time and keeps the newest table.
//!
//! Rule: the thread waits for its deadline and for nothing else; who reads the table holds it up for as long as a copy
//! takes. The rate can be changed while it runs. A deadline that passed while a sweep was at work is slipped: counted,
//! and the next sweep's number shows it. A way of reading that fails is left for `/proc`, and the reason is told.
//! Not here: when a sweep is due (`sample::schedule`), what is read (`source`).

use super::procfs::Procfs;
use super::source::{Chosen, Error, Kind, Source, View};
use crate::sample::schedule::{Rate, Schedule};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::process::delta::Sweep;

/// How often what the kernel tells between two sweeps is taken up, so that its ring does not fill.
const DRAIN_AFTER: Duration = Duration::from_millis(100);

/// What happened since the start, and how processes are read now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The way.
    pub kind: Kind,
    /// Why better ones are not taken, or why the last sweep failed.
    pub reasons: Vec<String>,
    /// Sweeps made.
    pub sweeps_total: u64,
    /// Moments at which a sweep was due and none was made, because one before took too long.
    pub slipped_total: u64,
    /// What the kernel had no room to tell; a walk over all tasks made up for it.
    pub lost_total: u64,
}

/// Process sampling, ready to run.
pub struct Sampler {
    source: Box<dyn Source>,
    proc: PathBuf,
    shared: Arc<Shared>,
}

/// What readers see; to be cloned freely.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    orders: Mutex<Orders>,
    ordered: Condvar,
    view: Mutex<View>,
    status: Mutex<Status>,
    newest: watch::Sender<Sweep>,
}

struct Orders {
    rate: Rate,
    stop: bool,
}

impl Sampler {
    /// Sweep by this way at this rate, once run; `proc` is where `/proc` is, should the way fail.
    #[must_use]
    pub fn new(chosen: Chosen, proc: &Path, rate: Rate) -> Sampler {
        let Chosen { source, reasons } = chosen;
        let status =
            Status { kind: source.kind(), reasons, sweeps_total: 0, slipped_total: 0, lost_total: 0 };
        let shared = Shared {
            orders: Mutex::new(Orders { rate, stop: false }),
            ordered: Condvar::new(),
            view: Mutex::default(),
            status: Mutex::new(status),
            newest: watch::Sender::new(Sweep::default()),
        };
        Sampler { source, proc: proc.to_owned(), shared: Arc::new(shared) }
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
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), crate::sample::sampler::Error> {
        let Sampler { source, proc, shared } = self;
        let _stop = StopOnDrop(Arc::clone(&shared));
        let thread = Arc::clone(&shared);
        let mut work = tokio::task::spawn_blocking(move || thread.sweep_until_stopped(source, &proc));
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = shutdown.cancelled() => {
                shared.order(|orders| orders.stop = true);
                work.await
            }
        };
        outcome.map_err(|error| crate::sample::sampler::Error::Panicked(error.to_string()))
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
    /// Look at the newest table and the lives; sampling waits meanwhile, so copy and go.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&locked(&self.0.view))
    }

    /// Every sweep from now on; one that comes late skips to the newest.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Sweep> {
        self.0.newest.subscribe()
    }

    /// How it goes.
    #[must_use]
    pub fn status(&self) -> Status {
        locked(&self.0.status).clone()
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
}

impl Shared {
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut locked(&self.orders));
        self.ordered.notify_all();
    }

    fn sweep_until_stopped(&self, mut source: Box<dyn Source>, proc: &Path) {
        let mut rate = locked(&self.orders).rate;
        let mut schedule = Schedule::new(rate, running());
        let mut sweeps_total = 0;
        loop {
            match self.wait(&mut schedule, &mut rate) {
                Next::Stop => return,
                Next::Drain => source.drain(&mut locked(&self.view)),
                Next::Sweep => {
                    schedule.begin(running());
                    sweeps_total += 1;
                    let slipped_total = schedule.slipped_total();
                    let mut view = locked(&self.view);
                    let swept = source.sweep(sweeps_total + slipped_total, &mut view);
                    let View { table, recent, .. } = &mut *view;
                    recent.update(table);
                    let newest = table.sweep();
                    drop(view);
                    if let Err(error) = swept {
                        self.replace(&mut source, proc, &error);
                    }
                    let mut status = locked(&self.status);
                    status.sweeps_total = sweeps_total;
                    status.slipped_total = slipped_total;
                    status.lost_total = source.lost_total();
                    drop(status);
                    self.newest.send_replace(newest);
                }
            }
        }
    }

    /// Go on with `/proc`; if that was it, try again.
    fn replace(&self, source: &mut Box<dyn Source>, proc: &Path, error: &Error) {
        let mut status = locked(&self.status);
        let reason = format!("{}: {error}", source.kind());
        if status.reasons.last() != Some(&reason) {
            tracing::warn!("processes cannot be read by {reason}");
            status.reasons.push(reason);
        }
        if source.kind() != Kind::Procfs {
            *source = Box::new(Procfs::new(proc));
            status.kind = Kind::Procfs;
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
            let (held, timeout) = self
                .ordered
                .wait_timeout(orders, left.min(DRAIN_AFTER))
                .unwrap_or_else(PoisonError::into_inner);
            orders = held;
            if timeout.timed_out() && left > DRAIN_AFTER {
                return Next::Drain;
            }
        }
    }
}

enum Next {
    Sweep,
    Drain,
    Stop,
}

/// A table that a panic left behind is as far as its sweep came; the next one mends it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time since boot without suspension, the clock that waiting uses too.
fn running() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
