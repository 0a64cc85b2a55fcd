//! Copies of the minutes of the domain's hosts: a thread that stores those that were fetched.
//!
//! Rule: who has fetched something hands it over and never waits; if there is no room, it is fetched again. The store is
//! opened when it is needed first. Not here: when minutes are fetched (`report`, `representative`).

use super::handle::Handle;
use super::writing::{self, Next};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use store::reader::Reader;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::Writer;
use wire::id::HostName;
use wire::report::minutes::{Held, MinuteRow};
use wire::sample::Metric;

/// Answers of members that wait for the worker.
const QUEUE_LEN: usize = 64;

/// Minutes of a host that were fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub host: HostName,
    /// Names of the numbers in the rows.
    pub metrics: Arc<BTreeMap<u32, Arc<Metric>>>,
    pub rows: Vec<MinuteRow>,
}

enum Job {
    Store(Copied),
    /// The copies will be needed.
    Open,
    End,
}

/// The worker, ready to run.
pub struct Worker {
    folder: PathBuf,
    limits: [Limit; 3],
    jobs: Receiver<Job>,
    handle: Handle,
}

/// The copies: for who fetches minutes, and for queries; cheap to clone.
#[derive(Clone)]
pub struct Copies {
    jobs: SyncSender<Job>,
    handle: Handle,
    folder: PathBuf,
    /// Age of the oldest minutes that are fetched.
    pub age: Duration,
}

/// Creates the copies in the folder `domain-history` of the state folder; `None` without limits.
#[must_use]
pub fn set_up(limits: Option<[Limit; 3]>, state: &Path) -> Option<(Worker, Copies)> {
    let limits = limits?;
    let (sender, jobs) = sync_channel(QUEUE_LEN);
    let handle = Handle::new("copies of the domain's history");
    let (folder, age) = (state.join("domain-history"), limits[Tier::Minute as usize].age);
    let copies = Copies { jobs: sender, handle: handle.clone(), folder: folder.clone(), age };
    Some((Worker { folder, limits, jobs, handle }, copies))
}

impl Copies {
    /// Opens the copies, if they are not open yet. Returns how far they reach, once they are open.
    #[must_use]
    pub fn held(&self) -> Option<Vec<Held>> {
        self.open().map(|reader| reader.held())
    }

    /// Opens the copies, if there are any from when this host was a standby or represented the domain. Returns them,
    /// once they are open.
    #[must_use]
    pub fn reader_of_stored(&self) -> Option<Reader> {
        if self.handle.reader().is_ok() || self.folder.exists() { self.open() } else { None }
    }

    fn open(&self) -> Option<Reader> {
        let reader = self.handle.reader().ok().cloned();
        if reader.is_none() {
            // If its queue is full, it is being opened.
            let _ = self.jobs.try_send(Job::Open);
        }
        reader
    }

    /// Hands minutes to the worker; returns false if there is no room for them.
    #[must_use]
    pub fn store(&self, copied: Copied) -> bool {
        self.jobs.try_send(Job::Store(copied)).is_ok()
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
    /// Stores until [`Copies::end`] is called, then writes what is left.
    pub fn run(self) {
        let Worker { folder, limits, jobs, handle } = self;
        if matches!(jobs.recv(), Ok(Job::End) | Err(_)) {
            return;
        }
        // What is fetched meanwhile is fetched again.
        let waiting = |job| match job {
            Job::Store(_) | Job::Open => Next::Wait,
            Job::End => Next::End,
        };
        let try_open = || Writer::open_copies(&folder, limits);
        let Some(writer) = writing::open((&handle, &folder), &jobs, try_open, waiting) else { return };
        writing::run(writer, &jobs, |writer, job| {
            match job {
                Job::Store(copied) => store(writer, &copied, &handle),
                Job::Open => {}
                Job::End => return Next::End,
            }
            Next::Wait
        });
    }
}

fn store(writer: &mut Writer, Copied { host, metrics, rows }: &Copied, handle: &Handle) {
    for row in rows {
        if let Err(error) = writer.copy(host, metrics, row) {
            handle.drop_one();
            tracing::warn!(%host, %error, "a minute of a member is left out");
        }
    }
}
