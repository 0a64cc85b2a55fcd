//! Sampler of processes: a thread that sweeps on time and stores the newest table.
//!
//! Rule: a reader of the table blocks the thread while it copies. A sweep that was due while another still
//! ran is slipped: it is counted, and the number of the next sweep skips it. A source that fails is replaced
//! with `/proc`, and the reason is reported. After each successful sweep the taps are called, in their order.
//! Not here: when it sweeps (`sample::ticker`), what is read (`source`).

use super::procfs::Procfs;
use super::source::{ChosenSource, Error, Kind, Source, View};
use super::tap::Tap;
use crate::sample::schedule::Rate;
use crate::sample::ticker::{self, Demand, Next, Ticker, locked, running};
use crate::sample::wakeup_latency;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the kernel's records are read between two sweeps, so that the ring buffer does not fill.
const DRAIN_AFTER: Duration = Duration::from_millis(100);

/// Counters since the start, and the current source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Kind of the current source.
    pub kind: Kind,
    /// Why better sources are not used, or why the last sweep failed.
    pub reasons: Vec<String>,
    pub sweeps_total: u64,
    /// Sweeps that were due but not made, because an earlier one took too long.
    pub slipped_total: u64,
    /// Records for which the kernel had no room; a walk over all tasks made up for them.
    pub lost_total: u64,
    /// Time spent in all taps, in nanoseconds.
    pub taps_ns_total: u64,
}

/// Sampler of processes, ready to run.
pub struct Sampler {
    source: Box<dyn Source>,
    proc: PathBuf,
    taps: Vec<Box<dyn Tap>>,
    shared: Arc<Shared>,
}

/// Handle for readers; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    ticker: Arc<Ticker>,
    view: Mutex<View>,
    status: Mutex<Status>,
}

impl Sampler {
    /// Creates a sampler that sweeps this source at this rate or faster, once run. `proc` is the path of
    /// `/proc`, in case the source fails. After each sweep the taps are called, one after the other.
    #[must_use]
    pub fn new(chosen: ChosenSource, proc: &Path, rate: Rate, taps: Vec<Box<dyn Tap>>) -> Sampler {
        let ChosenSource { source, reasons } = chosen;
        let status = Status {
            kind: source.kind(),
            reasons,
            sweeps_total: 0,
            slipped_total: 0,
            lost_total: 0,
            taps_ns_total: 0,
        };
        let shared = Shared {
            ticker: Arc::new(Ticker::new(rate)),
            view: Mutex::default(),
            status: Mutex::new(status),
        };
        Sampler { source, proc: proc.to_owned(), taps, shared: Arc::new(shared) }
    }

    /// Handle for readers, before and while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Sweeps until `shutdown` fires; a sweep under way is completed. Dropping the future stops it too.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ticker::Error> {
        let Sampler { source, proc, taps, shared } = self;
        let ticker = Arc::clone(&shared.ticker);
        ticker.drive(shutdown, move || shared.sweep_until_stopped(source, &proc, taps)).await
    }
}

impl Handle {
    /// Reads the newest table and the lives. Sampling is blocked meanwhile: copy what is needed and return.
    pub fn read<T>(&self, read: impl FnOnce(&View) -> T) -> T {
        read(&locked(&self.0.view))
    }

    #[must_use]
    pub fn status(&self) -> Status {
        locked(&self.0.status).clone()
    }

    /// Current rate of sweeps: the highest of the base rate and those requested.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.ticker.rate()
    }

    /// Creates a handle that can request a higher rate, until it is dropped.
    #[must_use]
    pub fn demand(&self) -> Demand {
        self.0.ticker.demand()
    }
}

impl Shared {
    fn sweep_until_stopped(&self, mut source: Box<dyn Source>, proc: &Path, mut taps: Vec<Box<dyn Tap>>) {
        wakeup_latency::reduce();
        let mut ticker = self.ticker.follow();
        let mut sweeps_total = 0;
        loop {
            match ticker.next(Some(DRAIN_AFTER)) {
                Next::Stop => return,
                Next::Paused => {
                    let mut view = locked(&self.view);
                    source.drain(&mut view);
                    taps.iter_mut().for_each(|tap| tap.drained(&view));
                }
                Next::Sweep(now) => {
                    sweeps_total += 1;
                    let slipped_total = ticker.slipped_total();
                    let mut view = locked(&self.view);
                    let swept = source.sweep(sweeps_total + slipped_total, &mut view);
                    let View { table, recent, .. } = &mut *view;
                    recent.update(table);
                    let shown = swept.map(|()| run_taps(&mut taps, &view, now));
                    drop(view);
                    let taps_took = shown.unwrap_or_else(|error| {
                        self.replace(&mut source, proc, &error);
                        Duration::ZERO
                    });
                    let mut status = locked(&self.status);
                    status.sweeps_total = sweeps_total;
                    status.slipped_total = slipped_total;
                    status.lost_total = source.lost_total();
                    status.taps_ns_total += u64::try_from(taps_took.as_nanos()).unwrap_or(u64::MAX);
                }
            }
        }
    }

    /// Replaces a failed source with `/proc`; if it is `/proc` already, the next sweep tries again.
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
}

/// Calls all taps with a sweep; returns how long they took.
fn run_taps(taps: &mut [Box<dyn Tap>], view: &View, now: Duration) -> Duration {
    let started = running();
    for tap in taps {
        tap.swept(view, now);
    }
    running().saturating_sub(started)
}
