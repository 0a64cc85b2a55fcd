//! Workers of the history: a thread that stores every sweep of the host, and one that stores the minutes of the
//! domain's other hosts.
//!
//! Rule: who has something to store hands over a pointer and never waits; if the worker is late, sweeps are
//! dropped and counted, and minutes are fetched again. The worker alone writes to the disk; while a history
//! cannot be opened it tries again, and the sensor runs without. That of the domain is opened when it is needed
//! first. Not here: when minutes are fetched (`report`, `representative`).

use crate::sample::table::Table;
use crate::sample::ticker::locked;
use std::collections::{BTreeMap, VecDeque};
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
use wire::report::minutes::{Held, MinuteRow};
use wire::sample::Metric;
use wire::time::Time;

/// Sweeps that wait for the worker: half a minute at 64 Hz, as long as a disk may take to answer.
const QUEUE_LEN: usize = 2048;

/// Sweeps in memory while the history cannot be opened: an hour at 1 Hz.
const WAITING_MAX: usize = 3600;

/// Time between two writes to the disk: what a crash may lose.
const FLUSH_INTERVAL: Duration = Duration::from_secs(8);

/// Answers of members that wait for the worker.
const COPIES_QUEUE_LEN: usize = 64;

/// What a worker stores.
enum Job {
    Sweep(Arc<Table>),
    Copied(Copied),
    /// The history will be needed.
    Open,
    End,
}

/// Minutes of a host that were fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub host: HostName,
    /// Names of the numbers in the rows.
    pub metrics: Arc<BTreeMap<u32, Arc<Metric>>>,
    pub rows: Vec<MinuteRow>,
}

/// A worker, ready to run.
pub struct Worker {
    folder: PathBuf,
    limits: [Limit; 3],
    content: Content,
    jobs: Receiver<Job>,
    waiting: VecDeque<Arc<Table>>,
    handle: Handle,
}

/// Whose values a history has.
enum Content {
    /// Those of this host.
    Own(HostName),
    /// Copies of those of all hosts of the domain.
    Copies,
}

/// Sender of sweeps, for the sampling thread.
pub struct Sink {
    jobs: SyncSender<Job>,
    handle: Handle,
}

/// The copies of the domain's minutes: for who fetches them, and for queries; cheap to clone.
#[derive(Clone)]
pub struct Copies {
    jobs: SyncSender<Job>,
    handle: Handle,
    /// Age of the oldest minutes that are fetched.
    pub age: Duration,
}

/// Handle by which queries read a history; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    /// Whose history it is, in messages.
    name: &'static str,
    /// Set once the history is open.
    reader: OnceLock<Reader>,
    /// Why the history is not open.
    failure: Mutex<Option<String>>,
    dropped: AtomicU64,
}

/// Creates the history of this host in the folder `history` of the state folder; `None` without limits.
#[must_use]
pub fn set_up(limits: Option<[Limit; 3]>, state: &Path, host: HostName) -> Option<(Worker, Sink, Handle)> {
    let (worker, jobs) = worker(limits?, state.join("history"), Content::Own(host), QUEUE_LEN, "history");
    let handle = worker.handle.clone();
    let sink = Sink { jobs, handle: handle.clone() };
    Some((worker, sink, handle))
}

/// Creates the copies of the domain's minutes in the folder `domain-history` of the state folder; `None` without
/// limits.
#[must_use]
pub fn set_up_copies(limits: Option<[Limit; 3]>, state: &Path) -> Option<(Worker, Copies)> {
    let limits = limits?;
    let (name, folder) = ("copies of the domain's history", state.join("domain-history"));
    let (worker, jobs) = worker(limits, folder, Content::Copies, COPIES_QUEUE_LEN, name);
    let copies = Copies { jobs, handle: worker.handle.clone(), age: limits[Tier::Minute as usize].age };
    Some((worker, copies))
}

fn worker(
    limits: [Limit; 3],
    folder: PathBuf,
    content: Content,
    queue_len: usize,
    name: &'static str,
) -> (Worker, SyncSender<Job>) {
    let (sender, jobs) = sync_channel(queue_len);
    let (failure, dropped) = (Mutex::default(), AtomicU64::default());
    let handle = Handle(Arc::new(Shared { name, reader: OnceLock::new(), failure, dropped }));
    (Worker { folder, limits, content, jobs, waiting: VecDeque::new(), handle }, sender)
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
        let sent = self.jobs.try_send(Job::Sweep(Arc::clone(table)));
        if let Err(TrySendError::Disconnected(_)) = &sent {
            self.handle.fail(Some("its thread has ended by a defect; restart the sensor".to_owned()));
        }
        if sent.is_err() {
            self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Copies {
    /// Opens the copies, if they are not open yet. Returns how far they reach, once they are open.
    #[must_use]
    pub fn held(&self) -> Option<Vec<Held>> {
        match self.handle.reader() {
            Ok(reader) => Some(reader.held()),
            Err(_) => {
                // If its queue is full, it is being opened.
                let _ = self.jobs.try_send(Job::Open);
                None
            }
        }
    }

    /// Hands minutes to the worker; returns false if there is no room for them.
    #[must_use]
    pub fn store(&self, copied: Copied) -> bool {
        self.jobs.try_send(Job::Copied(copied)).is_ok()
    }

    /// Returns the handle for queries.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lets the worker write what it has, and end. It may wait for the disk.
    pub fn end(&self) {
        // An error means that it has ended.
        let _ = self.jobs.send(Job::End);
    }
}

impl Worker {
    /// Stores until the sampling thread has ended or [`Copies::end`] is called, then writes what is left.
    pub fn run(mut self) {
        if matches!(self.content, Content::Copies) && matches!(self.jobs.recv(), Ok(Job::End) | Err(_)) {
            return;
        }
        let Some(mut writer) = self.open() else { return };
        for table in std::mem::take(&mut self.waiting) {
            self.store(&mut writer, Job::Sweep(table));
        }
        let mut due = now() + FLUSH_INTERVAL;
        loop {
            match self.jobs.recv_timeout(due.saturating_duration_since(now())) {
                Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(job) => self.store(&mut writer, job),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if now() >= due {
                writer.flush();
                due = now() + FLUSH_INTERVAL;
            }
        }
        writer.close();
    }

    /// Opens the history, and tries again while that fails; `None` if it is to end before.
    fn open(&mut self) -> Option<Writer> {
        loop {
            match self.try_open() {
                Ok(writer) => {
                    report_damage(&writer.reader().state());
                    self.handle.fail(None);
                    // It is opened once.
                    let _ = self.handle.0.reader.set(writer.reader());
                    return Some(writer);
                }
                Err(error) => {
                    let shown = format!("{}: {error}", self.folder.display());
                    if self.handle.fail(Some(shown.clone())) {
                        tracing::warn!("{} cannot be opened: {shown}; it is tried again", self.handle.0.name);
                    }
                }
            }
            let due = now() + FLUSH_INTERVAL;
            while now() < due {
                match self.jobs.recv_timeout(due.saturating_duration_since(now())) {
                    Ok(Job::Sweep(table)) => self.wait_with(table),
                    Ok(Job::Copied(_) | Job::Open) | Err(RecvTimeoutError::Timeout) => {}
                    Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
        }
    }

    fn try_open(&self) -> std::io::Result<Writer> {
        match &self.content {
            Content::Own(host) => {
                let mut writer = Writer::open(&self.folder, self.limits)?;
                writer.mark_start(host, calendar());
                Ok(writer)
            }
            Content::Copies => Writer::open_copies(&self.folder, self.limits),
        }
    }

    fn store(&self, writer: &mut Writer, job: Job) {
        match (&self.content, job) {
            (Content::Own(host), Job::Sweep(table)) => {
                let sweep = Sweep { time: table.time(), metrics: table.metrics(), values: table.values() };
                writer.push(host, sweep);
            }
            (Content::Copies, Job::Copied(Copied { host, metrics, rows })) => {
                for row in &rows {
                    if let Err(error) = writer.copy(&host, &metrics, row) {
                        self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(%host, %error, "a minute of a member is left out");
                    }
                }
            }
            (_, Job::Sweep(_) | Job::Copied(_) | Job::Open | Job::End) => {}
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

    /// Number of sweeps dropped since the start because the disk was too slow, or of minutes that could not be
    /// read.
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
        failure.map(|error| format!("{}: what is new is in memory only: {error}", self.0.name))
    }

    /// Shows a failure, or that there is none; returns whether it differs from the one before.
    fn fail(&self, failure: Option<String>) -> bool {
        let mut known = locked(&self.0.failure);
        let differs = *known != failure;
        *known = failure;
        differs
    }
}
