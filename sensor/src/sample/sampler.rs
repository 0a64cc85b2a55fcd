//! Sampler: a thread that sweeps on time, publishes the newest table, and hands every table to the history.
//!
//! Rule: readers get tables by pointer, so no reader delays the thread.
//! Not here: when it sweeps (`ticker`), what it reads (`host`).

use super::collector::{Collectors, Now};
use super::figures::{Figures, figures};
use super::schedule::Rate;
use super::table::Table;
use super::ticker::{Error, Next, Ticker, locked, running};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::time::Time;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completed sweeps.
    pub sweeps_total: u64,
    /// Deadlines without a sweep, because an earlier sweep took too long.
    pub slipped_total: u64,
    /// Values dropped because the table was full.
    pub refused_total: u64,
}

/// Sampler, ready to run.
pub struct Sampler {
    collectors: Collectors,
    shared: Arc<Shared>,
    sink: Option<Sink>,
}

/// Receiver of every table, which must not wait.
pub type Sink = Box<dyn Fn(&Arc<Table>) + Send>;

/// Handle by which readers access the samples; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    ticker: Arc<Ticker>,
    newest: watch::Sender<Option<Arc<Table>>>,
    /// The table before the newest, for differences.
    before: Mutex<Option<Arc<Table>>>,
    sweeps: AtomicU64,
    slipped: AtomicU64,
    refused: AtomicU64,
}

impl Sampler {
    /// Creates a sampler that sweeps over `collectors` at this rate once it runs.
    #[must_use]
    pub fn new(collectors: Collectors, rate: Rate) -> Sampler {
        let shared = Shared {
            ticker: Arc::new(Ticker::new(rate)),
            newest: watch::Sender::new(None),
            before: Mutex::new(None),
            sweeps: AtomicU64::new(0),
            slipped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        };
        Sampler { collectors, shared: Arc::new(shared), sink: None }
    }

    /// Sends every table to `sink`, until the sampler ends.
    pub fn set_sink(&mut self, sink: Sink) {
        self.sink = Some(sink);
    }

    /// Returns a handle for readers; usable before and while the sampler runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Sweeps until `shutdown` fires, and completes a sweep in progress. Dropping the future stops it too.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let Sampler { collectors, shared, sink } = self;
        let ticker = Arc::clone(&shared.ticker);
        ticker.drive(shutdown, move || shared.sweep_until_stopped(collectors, sink)).await
    }
}

impl Handle {
    /// The newest table; `None` before the first sweep.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Table>> {
        self.0.newest.borrow().clone()
    }

    /// Subscribes to every table from now on; a slow subscriber skips to the newest.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Table>>> {
        self.0.newest.subscribe()
    }

    /// Summarizes the host from the newest two sweeps; `None` before the first sweep.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let before = locked(&self.0.before).clone();
        Some(figures(&*self.latest()?, before.as_deref()))
    }

    /// The current sampling rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.ticker.rate()
    }

    /// Changes the rate; the new period counts from the last sweep.
    pub fn set_rate(&self, rate: Rate) {
        self.0.ticker.set_rate(rate);
    }

    /// Returns the counters since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            sweeps_total: self.0.sweeps.load(Ordering::Relaxed),
            slipped_total: self.0.slipped.load(Ordering::Relaxed),
            refused_total: self.0.refused.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    fn sweep_until_stopped(&self, mut collectors: Collectors, sink: Option<Sink>) {
        let mut ticker = self.ticker.follow();
        while let Next::Sweep(now) = ticker.next(None) {
            let now = Now { calendar: calendar(), running: now };
            let table = Arc::new(collectors.sweep(now, running));
            self.sweeps.fetch_add(1, Ordering::Relaxed);
            self.slipped.store(ticker.slipped_total(), Ordering::Relaxed);
            self.refused.store(collectors.refused_total(), Ordering::Relaxed);
            if let Some(sink) = &sink {
                sink(&table);
            }
            let before = self.newest.send_replace(Some(table));
            *locked(&self.before) = before;
        }
    }
}

#[allow(clippy::disallowed_methods)] // The shell that reads the calendar clock for the collectors.
fn calendar() -> Time {
    std::time::SystemTime::now().into()
}
