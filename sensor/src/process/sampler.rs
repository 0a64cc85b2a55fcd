//! The shell of process sampling: a thread that sweeps on time and keeps the newest table.
//!
//! Rule: who reads the table holds the thread up for as long as a copy takes. A deadline that passed while a sweep was at
//! work is slipped: counted, and the next sweep's number shows it. A way of reading that fails is left for `/proc`, and the
//! reason is told. After each sweep that succeeded the taps see it, in the order in which they were given.
//! Not here: when it sweeps (`sample::beat`), what is read (`source`).

use super::procfs::Procfs;
use super::source::{Chosen, Error, Kind, Source, View};
use super::tap::Tap;
use crate::sample::beat::{self, Beat, Next, Wish, locked, running};
use crate::sample::prompt;
use crate::sample::schedule::Rate;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
    /// How long all taps took, in nanoseconds.
    pub taps_ns_total: u64,
}

/// Process sampling, ready to run.
pub struct Sampler {
    source: Box<dyn Source>,
    proc: PathBuf,
    taps: Vec<Box<dyn Tap>>,
    shared: Arc<Shared>,
}

/// What readers see; to be cloned freely.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    beat: Arc<Beat>,
    view: Mutex<View>,
    status: Mutex<Status>,
}

impl Sampler {
    /// Sweep by this way at least at this rate, once run; `proc` is where `/proc` is, should the way fail. After each
    /// sweep it is shown to `taps`, one after the other.
    #[must_use]
    pub fn new(chosen: Chosen, proc: &Path, rate: Rate, taps: Vec<Box<dyn Tap>>) -> Sampler {
        let Chosen { source, reasons } = chosen;
        let status = Status {
            kind: source.kind(),
            reasons,
            sweeps_total: 0,
            slipped_total: 0,
            lost_total: 0,
            taps_ns_total: 0,
        };
        let shared =
            Shared { beat: Arc::new(Beat::new(rate)), view: Mutex::default(), status: Mutex::new(status) };
        Sampler { source, proc: proc.to_owned(), taps, shared: Arc::new(shared) }
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
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), beat::Error> {
        let Sampler { source, proc, taps, shared } = self;
        let beat = Arc::clone(&shared.beat);
        beat.drive(shutdown, move || shared.sweep_until_stopped(source, &proc, taps)).await
    }
}

impl Handle {
    /// Look at the newest table and the lives; sampling waits meanwhile, so copy and go.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&locked(&self.0.view))
    }

    /// How it goes.
    #[must_use]
    pub fn status(&self) -> Status {
        locked(&self.0.status).clone()
    }

    /// How often it sweeps: the highest of the rate it was given and of those wished for.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.0.beat.rate()
    }

    /// Something by which others can have it sweep more often, as long as they keep it.
    #[must_use]
    pub fn wish(&self) -> Wish {
        self.0.beat.wish()
    }
}

impl Shared {
    fn sweep_until_stopped(&self, mut source: Box<dyn Source>, proc: &Path, mut taps: Vec<Box<dyn Tap>>) {
        prompt::be_woken_promptly();
        let mut beat = self.beat.follow();
        let mut sweeps_total = 0;
        loop {
            match beat.next(Some(DRAIN_AFTER)) {
                Next::Stop => return,
                Next::Paused => source.drain(&mut locked(&self.view)),
                Next::Sweep(now) => {
                    sweeps_total += 1;
                    let slipped_total = beat.slipped_total();
                    let mut view = locked(&self.view);
                    let swept = source.sweep(sweeps_total + slipped_total, &mut view);
                    let View { table, recent, .. } = &mut *view;
                    recent.update(table);
                    let shown = swept.map(|()| show(&mut taps, &view, now));
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
}

/// Show a sweep to all taps; gives how long they took.
fn show(taps: &mut [Box<dyn Tap>], view: &View, now: Duration) -> Duration {
    let begun = running();
    for tap in taps {
        tap.swept(view, now);
    }
    running().saturating_sub(begun)
}
