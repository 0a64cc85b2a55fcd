//! Worker of the history: a thread that stores every sweep of the host.
//!
//! Rule: the sampling thread hands over a pointer and never waits; if the worker is late, sweeps are dropped
//! and counted. The worker alone touches the disk.

use super::config::Config;
use crate::sample::table::Table;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use store::reader::{Reader, State};
use store::tier::Tier;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::time::Time;

/// Sweeps that wait for the worker: half a minute at 64 Hz, as long as a disk may take to answer.
const QUEUE_LEN: usize = 2048;

/// Time between two writes to the disk: what a crash may lose.
const FLUSH_INTERVAL: Duration = Duration::from_secs(8);

/// Worker of the history, ready to run.
pub struct Worker {
    writer: Writer,
    host: HostName,
    sweeps: Receiver<Arc<Table>>,
}

/// Sender of sweeps, for the sampling thread.
pub struct Sink {
    sweeps: SyncSender<Arc<Table>>,
    dropped: Arc<AtomicU64>,
}

/// Handle by which queries read the history; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    reader: Reader,
    dropped: Arc<AtomicU64>,
}

/// Opens the history in the folder `history` of the state folder; `None` if the configuration disables it.
///
/// # Errors
/// If the folder cannot be used.
pub fn open(
    config: Config,
    state: &Path,
    host: HostName,
    now: Time,
) -> io::Result<Option<(Worker, Sink, Handle)>> {
    let Some(limits) = config.limits else { return Ok(None) };
    let mut writer = Writer::open(&state.join("history"), limits)?;
    writer.mark_start(&host, now);
    let handle = Handle { reader: writer.reader(), dropped: Arc::default() };
    report_damage(&handle.state());
    let (sender, sweeps) = sync_channel(QUEUE_LEN);
    let sink = Sink { sweeps: sender, dropped: Arc::clone(&handle.dropped) };
    Ok(Some((Worker { writer, host, sweeps }, sink, handle)))
}

fn report_damage(state: &State) {
    for (tier, files) in Tier::ALL.into_iter().zip(&state.tiers) {
        let store::tier_files::Counts { damaged_bytes, unreadable_files, .. } = files.files;
        if damaged_bytes > 0 || unreadable_files > 0 {
            tracing::warn!(
                tier = tier.name(),
                damaged_bytes,
                unreadable_files,
                "history: damaged parts of the files are skipped; the rest is used"
            );
        }
    }
    if let Some(error) = state.error() {
        tracing::warn!("history: {error}; it is tried again");
    }
}

impl Sink {
    /// Hands a sweep to the worker; a sweep that has no place in the queue is dropped and counted.
    pub fn store(&self, table: &Arc<Table>) {
        if self.sweeps.try_send(Arc::clone(table)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Worker {
    /// Stores sweeps until the sampling thread has ended, then writes what is left.
    pub fn run(self) {
        let Worker { mut writer, host, sweeps } = self;
        let mut due = now() + FLUSH_INTERVAL;
        loop {
            match sweeps.recv_timeout(due.saturating_duration_since(now())) {
                Ok(table) => {
                    let (time, metrics) = (table.time(), table.metrics());
                    writer.push(&host, Sweep { time, metrics, values: table.values() });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if now() >= due {
                writer.flush();
                due = now() + FLUSH_INTERVAL;
            }
        }
        writer.close();
    }
}

/// The time of the calendar.
#[must_use]
#[allow(clippy::disallowed_methods)] // The shell that marks the start.
pub fn calendar() -> Time {
    std::time::SystemTime::now().into()
}

#[allow(clippy::disallowed_methods)] // The shell that decides when it is time to write.
fn now() -> Instant {
    Instant::now()
}

impl Handle {
    /// Returns the reader of the stored values.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the state of the store.
    #[must_use]
    pub fn state(&self) -> State {
        self.reader.state()
    }

    /// Number of sweeps dropped since the start because the disk was too slow.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let state = self.state();
        state.error().map(|error| format!("history: samples are in memory only: {error}; it is tried again"))
    }
}
