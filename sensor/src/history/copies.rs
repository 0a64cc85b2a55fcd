//! Copies of the minutes and newest samples of the domain's hosts: a thread that stores those that were fetched.
//!
//! Rule: who has fetched something hands it over and never waits; if there is no room, it is fetched again. The store is
//! opened when it is needed first. Not here: when minutes are fetched (`report`, `representative`).

use super::copied::{Answer, Copied, Kind, OfKind, Rows};
use super::exported::Exported;
use super::handle::Handle;
use super::writing::{self, Next};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use store::copied_names::Sent;
use store::reader::Reader;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::Writer;
use wire::report::minutes::{Fetch, Held};

/// Answers of members that wait for the worker.
const QUEUE_LEN: usize = 64;

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
    exported: Exported,
    jobs: Receiver<Job>,
    handle: Handle,
}

/// The copies: for who fetches minutes, and for queries; cheap to clone.
#[derive(Clone)]
pub struct Copies {
    jobs: SyncSender<Job>,
    handle: Handle,
    folder: PathBuf,
    /// Age of what is fetched at most, of each kind; `None` if it is not copied.
    pub ages: OfKind<Option<Duration>>,
}

/// Creates the copies in the folder `domain-history` of the state folder; `None` without limits.
#[must_use]
pub fn set_up(limits: Option<[Limit; 3]>, state: &Path, exported: Exported) -> Option<(Worker, Copies)> {
    let limits = limits?;
    let (sender, jobs) = sync_channel(QUEUE_LEN);
    let handle = Handle::new("copies of the domain's history");
    let folder = state.join("domain-history");
    let age = |tier: Tier| Some(limits[tier as usize].age).filter(|age| !age.is_zero());
    let ages = OfKind([age(Tier::Minute), age(Tier::Raw)]);
    let copies = Copies { jobs: sender, handle: handle.clone(), folder: folder.clone(), ages };
    Some((Worker { folder, limits, exported, jobs, handle }, copies))
}

impl Copies {
    /// Opens the copies, if they are not open yet. Returns how far they reach, once they are open.
    #[must_use]
    pub fn held(&self) -> Option<OfKind<Vec<Held>>> {
        self.open().map(|reader| OfKind([reader.held(), reader.held_samples()]))
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
        let Worker { folder, limits, exported, jobs, handle } = self;
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
        writing::run(writer, &jobs, (&exported, None), |writer, job| {
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
    let outcomes: Vec<_> = match rows {
        Rows::Minutes(rows) => rows.iter().map(|row| writer.copy(host, metrics, row)).collect(),
        Rows::Samples(blocks) => {
            blocks.iter().map(|block| writer.copy_samples(host, metrics, block)).collect()
        }
    };
    for error in outcomes.into_iter().filter_map(Result::err) {
        handle.drop_one();
        tracing::warn!(%host, %error, "a minute or a block of samples of a member is left out");
    }
}

/// Reads what a fetch requests of all hosts.
pub(crate) fn read(reader: &Reader, (kind, fetch): (Kind, &Fetch), sent: &mut Sent) -> Answer {
    match kind {
        Kind::Minutes => Answer::Minutes(reader.minutes(fetch, |_| true, sent)),
        Kind::Samples => Answer::Samples(reader.samples_after(fetch, sent)),
    }
}
