//! Worker of the history: a thread that stores every sweep of the host.
//!
//! Rule: the sampling thread hands over a pointer and never waits; if the worker is late, sweeps are dropped
//! and counted. The worker alone touches the disk; while the history cannot be opened it tries again, and
//! the sensor runs without.

use super::config::Config;
use crate::sample::table::Table;
use crate::sample::ticker::locked;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use store::reader::{Reader, State};
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::time::Time;

/// Sweeps that wait for the worker: half a minute at 64 Hz, as long as a disk may take to answer.
const QUEUE_LEN: usize = 2048;

/// Sweeps in memory while the history cannot be opened: an hour at 1 Hz.
const WAITING_MAX: usize = 3600;

/// Time between two writes to the disk: what a crash may lose.
const FLUSH_INTERVAL: Duration = Duration::from_secs(8);

/// Worker of the history, ready to run.
pub struct Worker {
    folder: PathBuf,
    limits: [Limit; 3],
    host: HostName,
    sweeps: Receiver<Arc<Table>>,
    waiting: VecDeque<Arc<Table>>,
    handle: Handle,
}

/// Sender of sweeps, for the sampling thread.
pub struct Sink {
    sweeps: SyncSender<Arc<Table>>,
    handle: Handle,
}

/// Handle by which queries read the history; cheap to clone.
#[derive(Clone, Default)]
pub struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Set once the history is open.
    reader: OnceLock<Reader>,
    /// Why the history is not open.
    failure: Mutex<Option<String>>,
    dropped: AtomicU64,
}

/// Creates the history in the folder `history` of the state folder; `None` if the configuration disables it.
#[must_use]
pub fn set_up(config: Config, state: &Path, host: HostName) -> Option<(Worker, Sink, Handle)> {
    let limits = config.limits?;
    let (sender, sweeps) = sync_channel(QUEUE_LEN);
    let handle = Handle::default();
    let sink = Sink { sweeps: sender, handle: handle.clone() };
    let (folder, waiting) = (state.join("history"), VecDeque::new());
    Some((Worker { folder, limits, host, sweeps, waiting, handle: handle.clone() }, sink, handle))
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
}

impl Sink {
    /// Hands a sweep to the worker; a sweep that has no place in the queue is dropped and counted.
    pub fn store(&self, table: &Arc<Table>) {
        let sent = self.sweeps.try_send(Arc::clone(table));
        if let Err(TrySendError::Disconnected(_)) = &sent {
            self.handle.fail(Some("its thread has ended by a defect; restart the sensor".to_owned()));
        }
        if sent.is_err() {
            self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Worker {
    /// Stores sweeps until the sampling thread has ended, then writes what is left.
    pub fn run(mut self) {
        let Some(mut writer) = self.open() else { return };
        for table in std::mem::take(&mut self.waiting) {
            push(&mut writer, &self.host, &table);
        }
        let mut due = now() + FLUSH_INTERVAL;
        loop {
            match self.sweeps.recv_timeout(due.saturating_duration_since(now())) {
                Ok(table) => push(&mut writer, &self.host, &table),
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

    /// Opens the history, and tries again while that fails; `None` if the sampling thread ends before.
    fn open(&mut self) -> Option<Writer> {
        loop {
            match Writer::open(&self.folder, self.limits) {
                Ok(mut writer) => {
                    writer.mark_start(&self.host, calendar());
                    report_damage(&writer.reader().state());
                    self.handle.fail(None);
                    // It is opened once.
                    let _ = self.handle.0.reader.set(writer.reader());
                    return Some(writer);
                }
                Err(error) => {
                    let shown = format!("{}: {error}", self.folder.display());
                    if self.handle.fail(Some(shown.clone())) {
                        tracing::warn!("history: cannot be opened: {shown}; it is tried again");
                    }
                }
            }
            let due = now() + FLUSH_INTERVAL;
            while now() < due {
                match self.sweeps.recv_timeout(due.saturating_duration_since(now())) {
                    Ok(table) => self.wait_with(table),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
        }
    }

    fn wait_with(&mut self, table: Arc<Table>) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.waiting.push_back(table);
    }
}

fn push(writer: &mut Writer, host: &HostName, table: &Table) {
    writer.push(host, Sweep { time: table.time(), metrics: table.metrics(), values: table.values() });
}

/// The time of the calendar.
#[must_use]
#[allow(clippy::disallowed_methods)] // The shell that marks the start, and answers up to now.
pub fn calendar() -> Time {
    std::time::SystemTime::now().into()
}

#[allow(clippy::disallowed_methods)] // The shell that decides when it is time to write.
fn now() -> Instant {
    Instant::now()
}

impl Handle {
    /// Returns the reader of the stored values.
    ///
    /// # Errors
    /// Why the history is not open.
    pub fn reader(&self) -> Result<&Reader, String> {
        self.0.reader.get().ok_or_else(|| {
            let failure = locked(&self.0.failure).clone();
            failure.unwrap_or_else(|| "it is being opened; ask again in a second".to_owned())
        })
    }

    /// Returns the state of the store.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.reader.get().map(Reader::state).unwrap_or_default()
    }

    /// Number of sweeps dropped since the start because the disk was too slow.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let state = self.state();
        let failure = locked(&self.0.failure).clone();
        let failure = failure.as_deref().or_else(|| state.error());
        failure.map(|error| format!("history: samples are in memory only: {error}"))
    }

    /// Shows a failure, or that there is none; returns whether it differs from the one before.
    fn fail(&self, failure: Option<String>) -> bool {
        let mut known = locked(&self.0.failure);
        let differs = *known != failure;
        *known = failure;
        differs
    }
}
