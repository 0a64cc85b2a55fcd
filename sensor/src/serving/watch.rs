//! Detection of new processes on the sampling thread, and the table of the jobs that they serve.
//!
//! Shell. Rule: the sampling thread reads no file for this. A process is read when it is first seen and when
//! it has become another program. The queue of news is bounded; after it was full, the living processes are
//! sent, so that no end of a process is lost.
//! Not here: reading (`job_reader`), parsing (`job_names`), what follows (`job_table`).

use super::job_reader::JobReader;
use super::job_table::{JobTable, NewProcess, ServedJob};
use super::read::RefusedFile;
use super::reader_threads::THREADS_MAX;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::sample::ticker::{locked, running};
use compact_str::CompactString;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::process::{Process, ProcessKey, State};

/// Most batches of news in the queue, each of one sweep.
const BATCHES_MAX: usize = 256;
/// Most new processes that wait on the sampling thread for room in the queue: those that are there at the
/// start.
pub(super) const WAITING_MAX: usize = 16_384;
/// How often the watch checks whether the reading thread is stuck.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a refused file is shown.
const REFUSED_SHOWN: Duration = Duration::from_secs(600);

/// News of a sweep.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A process is new, or has become another program.
    Came(NewProcess),
    /// A process has ended, with the time in nanoseconds since boot.
    Gone(ProcessKey, u64),
    /// The living processes, after news was dropped: all others have ended, at this time in nanoseconds since
    /// boot at the latest.
    Living(BTreeSet<ProcessKey>, u64),
    /// A process started and ended between two sweeps, so it cannot be read; its end follows.
    Lived(NewProcess),
}

/// Detects new processes on the sampling thread.
pub struct ProcessDetector {
    /// By row of the table of processes: key and name of the process there.
    rows: Vec<Option<(ProcessKey, CompactString)>>,
    number: u64,
    lives_next: Option<u64>,
    news: mpsc::Sender<Vec<News>>,
    waiting: Vec<News>,
    /// Whether news was dropped, and the living processes have not been sent since.
    is_cut: bool,
    shared: Arc<Shared>,
}

/// Task that has the new processes read.
pub struct Watch {
    proc: PathBuf,
    file_systems: Vec<String>,
    news: mpsc::Receiver<Vec<News>>,
    shared: Arc<Shared>,
}

/// Handle of the results; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Default)]
pub(super) struct Shared {
    pub(super) table: Mutex<JobTable>,
    pub(super) counts: Mutex<Counts>,
    /// The last file that a process named and that was not read, with the time.
    pub(super) refused: Mutex<Option<(Duration, RefusedFile)>>,
    /// Number of changes of `table`.
    pub(super) changes: tokio::sync::watch::Sender<u64>,
}

/// Counters of the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes that were read.
    pub asked_total: u64,
    /// Of those, processes whose environment the sensor may not read.
    pub unreadable_total: u64,
    /// Processes that were skipped by the rate limiter or a full queue, or because their user blocks a
    /// thread.
    pub passed_over_total: u64,
    /// Files that processes named and that were not read.
    pub refused_total: u64,
    /// Reads that did not end in time; other processes are read on another thread.
    pub stuck_total: u64,
    /// Of those, reads that still block a thread.
    pub stuck: u64,
}

/// Creates the parts of a watch over the processes of `proc`; `file_systems` are the types on which job files
/// are read beside the local ones.
#[must_use]
pub fn over(proc: PathBuf, file_systems: Vec<String>) -> (ProcessDetector, Watch, Handle) {
    let (sender, news) = mpsc::channel(BATCHES_MAX);
    let shared = Arc::<Shared>::default();
    let detector = ProcessDetector {
        rows: Vec::new(),
        number: 0,
        lives_next: None,
        news: sender,
        waiting: Vec::new(),
        is_cut: false,
        shared: Arc::clone(&shared),
    };
    (detector, Watch { proc, file_systems, news, shared: Arc::clone(&shared) }, Handle(shared))
}

impl Handle {
    /// Runs `read` on the table of known processes.
    pub fn read<T>(&self, read: impl FnOnce(&JobTable) -> T) -> T {
        read(&locked(&self.0.table))
    }

    /// Collects the jobs of processes from now on, for [`Handle::take_news`].
    pub fn collect_news(&self) {
        locked(&self.0.table).collect_news();
    }

    /// Takes the processes whose job became known since the last time, and how many could not be collected.
    #[must_use]
    pub fn take_news(&self) -> (Vec<(ProcessKey, ServedJob)>, u64) {
        locked(&self.0.table).take_news()
    }

    /// Returns a receiver that changes whenever the table changes.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *locked(&self.0.counts)
    }

    /// Returns the present failures, as sentences.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let counts = self.counts();
        let mut health = Vec::new();
        if counts.stuck > 0 {
            health.push(format!(
                "{} processes do not let themselves be asked for their jobs and hold up a thread each; {}",
                counts.stuck,
                if counts.stuck < THREADS_MAX {
                    "others are asked"
                } else {
                    "no process is asked until one of them answers"
                }
            ));
        }
        let refused = locked(&self.0.refused);
        if let Some((_, RefusedFile { path, user, why })) =
            refused.as_ref().filter(|(when, _)| running().saturating_sub(*when) < REFUSED_SHOWN)
        {
            let total = counts.refused_total;
            health.push(format!(
                "job files named by processes and not read: {total}; the last, of user {user}: {}: {why}",
                path.display().to_string().escape_debug()
            ));
        }
        health
    }

    /// Returns the processes that served a job between these times, in nanoseconds since boot.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Vec<(ProcessKey, ServedJob)> {
        let fits = |key: ProcessKey, serves: &ServedJob| {
            key.start_ns <= to_ns && serves.end_ns.is_none_or(|end_ns| end_ns >= from_ns)
        };
        self.read(|table| {
            let all = table.all().filter(|(key, serves)| fits(*key, serves));
            all.map(|(key, serves)| (key, serves.clone())).collect()
        })
    }
}

impl Tap for ProcessDetector {
    fn swept(&mut self, view: &View, _: Duration) {
        let (table, begin_ns) = (&view.table, view.table.sweep().begin_ns);
        let next = view.lives.next();
        let (ended, _) = view.lives.since(self.lives_next.replace(next).unwrap_or(next));
        for life in ended {
            let process = NewProcess { key: life.key, parent: life.parent };
            self.waiting.extend([News::Lived(process), News::Gone(life.key, life.end_ns)]);
        }
        for place in table.changed_since(self.number) {
            if place >= self.rows.len() {
                self.rows.resize(place + 1, None);
            }
            // A process that has ended serves nothing, even before its parent has reaped it.
            let is_alive = |row: &&Process| !matches!(row.state, State::Zombie | State::Dead);
            let row = table.rows().get(place).and_then(Option::as_ref).filter(is_alive);
            let known = &mut self.rows[place];
            let is_same = |(key, name): &(ProcessKey, CompactString)| {
                row.is_some_and(|row| row.key == *key && row.name == *name)
            };
            if known.as_ref().is_some_and(is_same) {
                continue;
            }
            let before = known.take().map(|(key, _)| key);
            if let Some(key) = before.filter(|key| row.is_none_or(|row| row.key != *key)) {
                self.waiting.push(News::Gone(key, begin_ns));
            }
            if let Some(row) = row {
                *known = Some((row.key, row.name.clone()));
                self.waiting.push(News::Came(NewProcess { key: row.key, parent: row.parent }));
            }
        }
        self.number = table.sweep().number;
        self.send(begin_ns);
    }
}

impl ProcessDetector {
    fn send(&mut self, now_ns: u64) {
        if self.waiting.is_empty() && !self.is_cut {
            return;
        }
        match self.news.try_reserve() {
            Ok(place) => {
                if std::mem::take(&mut self.is_cut) {
                    let living = self.rows.iter().flatten().map(|(key, _)| *key).collect();
                    self.waiting.push(News::Living(living, now_ns));
                }
                place.send(std::mem::take(&mut self.waiting));
            }
            // They wait for the next sweep; beyond the limit they are not read.
            Err(_) if self.waiting.len() <= WAITING_MAX => {}
            Err(_) => {
                let ends = self.waiting.iter().filter(|news| matches!(news, News::Gone(..))).count();
                locked(&self.shared.counts).passed_over_total += (self.waiting.len() - ends) as u64;
                self.waiting.clear();
                self.is_cut = true;
            }
        }
    }
}

impl Watch {
    /// Runs until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let Watch { proc, file_systems, mut news, shared } = self;
        let reader = JobReader::start(proc, file_systems, shared);
        let mut read = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                batch = news.recv(), if reader.has_room() => match batch {
                    Some(batch) => reader.put(batch),
                    None => return,
                },
                _ = read.tick() => reader.check_threads(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use wire::process::Process;

    /// Sweeps processes with these pids.
    fn sweep(detector: &mut ProcessDetector, view: &mut View, pids: &[u32]) {
        let number = view.table.sweep().number + 1;
        view.table.begin(number, number, Coverage::All);
        for pid in pids {
            view.table.set(Process { key: key(*pid), ..Process::default() });
        }
        view.table.end(1);
        detector.swept(view, Duration::ZERO);
    }

    fn key(pid: u32) -> ProcessKey {
        ProcessKey { pid, start_ns: pid.into() }
    }

    /// Applies the news in the queue.
    fn apply(watch: &mut Watch, table: &mut JobTable) {
        for news in std::iter::from_fn(|| watch.news.try_recv().ok()).flatten() {
            match news {
                News::Came(process) => table.process_started(process, None),
                News::Gone(key, end_ns) => table.process_ended(key, end_ns),
                News::Living(keys, end_ns) => table.others_ended(&keys, end_ns),
                News::Lived(..) => panic!("no process lives between two sweeps here"),
            }
        }
    }

    #[test]
    fn the_ends_of_processes_are_not_lost_in_a_full_queue() {
        let (mut detector, mut watch, handle) = over(PathBuf::new(), Vec::new());
        let (mut view, mut table) = (View::default(), JobTable::default());
        let mut pid = 2;
        // One process is replaced in each sweep, and nothing is received.
        while handle.counts().passed_over_total == 0 {
            sweep(&mut detector, &mut view, &[1, pid]);
            assert!(detector.waiting.len() <= WAITING_MAX, "it is bounded");
            pid += 1;
        }
        apply(&mut watch, &mut table);
        sweep(&mut detector, &mut view, &[1, pid]);
        apply(&mut watch, &mut table);
        let live: Vec<u32> = (1..=pid).filter(|pid| table.is_live(key(*pid))).collect();
        assert_eq!(live, [1, pid]);
        let dropped = WAITING_MAX as u64 / 2 + 1;
        assert_eq!(handle.counts().passed_over_total, dropped, "an end needs no read");
    }
}
