//! Reads from `/proc` which job each process serves, on threads that can be abandoned.
//!
//! Shell. Rules: a limited number of processes is read a second; the others serve what their parents serve. A
//! process that named no job is read once more a little later, since a program starts as a copy of its
//! parent. A process that does not answer blocks its thread; other users' processes are then read on another
//! thread, and shutdown does not wait for blocked threads.
//! Not here: which processes are new (`watch`), what is read (`read`), what follows (`job_table`).

use super::job_table::{NewProcess, ServedJob};
use super::read::{self, ReadOutcome, RefusedFile};
use super::reader_threads::ReaderThreads;
use super::watch::{News, Shared, WAITING_MAX};
use crate::process::boot_time::boot_ns;
use crate::sample::ticker::{locked, running};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Most processes read a second: at 50 µs each, 2 % of a core at most.
const READS_PER_SECOND_MAX: u64 = 400;
/// Burst of processes read: those that are there at the start.
const READS_BURST_MAX: u64 = WAITING_MAX as u64;
/// Delay before a process is read a second time.
const AGAIN_AFTER_NS: u64 = 1_000_000_000;
/// Enough for some files of 128 KiB, which are on the heap.
const STACK_LEN_BYTES: usize = 256 << 10;
/// Pid of the kernel's thread that starts its other threads.
const KTHREADD: u32 = 2;

/// Handle of the owner. When it is dropped, reading ends after the current process.
pub(super) struct JobReader(Arc<Inner>);

struct Inner {
    proc: PathBuf,
    file_systems: Vec<String>,
    shared: Arc<Shared>,
    work: Mutex<Work>,
    changed: Condvar,
}

/// Queue of work; never locked while a process is read.
struct Work {
    news: VecDeque<News>,
    /// Processes to read again, each with its due time in nanoseconds since boot.
    again: VecDeque<(u64, NewProcess)>,
    /// Tokens of the rate limiter, and the time of its last refill.
    left: u64,
    since_ns: u64,
    threads: ReaderThreads,
    /// Whether the last thread could not be started.
    start_failed: bool,
    stop: bool,
}

impl Drop for JobReader {
    fn drop(&mut self) {
        locked(&self.0.work).stop = true;
        self.0.changed.notify_all();
    }
}

impl JobReader {
    /// Starts to read the processes of `proc`.
    pub(super) fn start(proc: PathBuf, file_systems: Vec<String>, shared: Arc<Shared>) -> JobReader {
        let work = Work {
            news: VecDeque::new(),
            again: VecDeque::new(),
            left: READS_BURST_MAX,
            since_ns: boot_ns(),
            threads: ReaderThreads::default(),
            start_failed: false,
            stop: false,
        };
        let (work, changed) = (Mutex::new(work), Condvar::new());
        let reader = JobReader(Arc::new(Inner { proc, file_systems, shared, work, changed }));
        reader.check_threads();
        reader
    }

    /// Returns whether more news is accepted now.
    pub(super) fn has_room(&self) -> bool {
        locked(&self.0.work).news.len() < WAITING_MAX
    }

    /// Adds the news of a sweep.
    pub(super) fn put(&self, mut batch: Vec<News>) {
        // Parents before their children, and the end of each after the start of its children.
        batch.sort_by_key(|news| match news {
            News::Came(process) | News::Lived(process) => (process.key.start_ns, false),
            News::Gone(_, end_ns) | News::Living(_, end_ns) => (*end_ns, true),
        });
        locked(&self.0.work).news.extend(batch);
        self.0.changed.notify_all();
    }

    /// Starts a thread if one is due: at first, and when the current read is stuck.
    pub(super) fn check_threads(&self) {
        let mut work = locked(&self.0.work);
        if work.threads.check(running()) {
            let mut counts = locked(&self.0.shared.counts);
            counts.stuck = work.threads.stuck_count();
            counts.stuck_total += 1;
        }
        let Some(thread) = work.threads.due() else { return };
        let inner = Arc::clone(&self.0);
        let builder = std::thread::Builder::new().name("jobs".to_owned()).stack_size(STACK_LEN_BYTES);
        let failure = builder.spawn(move || inner.run(thread)).err();
        let is_news = failure.is_some() && !work.start_failed;
        work.start_failed = failure.is_some();
        if let Some(error) = failure {
            work.threads.start_failed();
            if is_news {
                tracing::warn!(%error, "could not start a thread to read the jobs of processes; retrying");
            }
        }
    }
}

impl Inner {
    fn run(&self, thread: u64) {
        while let Some((process, is_first)) = self.next(thread) {
            let user = read::real_user(&self.proc, process.key.pid);
            let is_held_up = locked(&self.work).threads.set_user(thread, user);
            let answer = (!is_held_up).then(|| read::ask(&self.proc, process.key, user, &self.file_systems));
            if !self.is_back(thread) {
                return;
            }
            match answer {
                Some((outcome, refused)) => self.take((process, user), outcome, refused, is_first),
                None => self.pass_over(process),
            }
        }
    }

    /// Waits for the next process to read; returns it and whether it is read for the first time. `None` if
    /// this thread is no longer active.
    fn next(&self, thread: u64) -> Option<(NewProcess, bool)> {
        let mut work = locked(&self.work);
        let mut has_changed = false;
        loop {
            if work.stop || !work.threads.is_active(thread) {
                return None;
            }
            let now_ns = boot_ns();
            let again = work.again.pop_front_if(|(due_ns, _)| *due_ns <= now_ns);
            let due = match again {
                // It has ended; it must not be added again.
                Some((_, process)) if !locked(&self.shared.table).is_live(process.key) => continue,
                Some((_, process)) => Some((process, false)),
                None => match work.news.pop_front() {
                    None => None,
                    Some(news) => {
                        has_changed = true;
                        match self.heed(news) {
                            Some(process) => Some((process, true)),
                            None => continue,
                        }
                    }
                },
            };
            match due {
                Some(due) if work.may_ask(now_ns) => {
                    work.threads.read_started(running());
                    return Some(due);
                }
                Some((process, _)) => self.pass_over(process),
                None => {
                    if std::mem::take(&mut has_changed) {
                        self.shared.changes.send_modify(|times| *times += 1);
                    }
                    let wait_ns =
                        work.again.front().map_or(u64::MAX, |(due_ns, _)| due_ns.saturating_sub(now_ns));
                    let waited = self.changed.wait_timeout(work, Duration::from_nanos(wait_ns));
                    (work, _) = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Handles news that needs no read; otherwise returns the process to read.
    fn heed(&self, news: News) -> Option<NewProcess> {
        let mut table = locked(&self.shared.table);
        match news {
            News::Came(process) => {
                let is_of_kernel = process.key.pid == KTHREADD || process.parent == KTHREADD;
                return (!is_of_kernel).then_some(process);
            }
            News::Gone(key, end_ns) => table.process_ended(key, end_ns),
            News::Living(keys, end_ns) => table.others_ended(&keys, end_ns),
            News::Lived(process) => table.process_started(process, None),
        }
        None
    }

    /// Records that a read has ended; returns whether this thread is still active.
    fn is_back(&self, thread: u64) -> bool {
        let mut work = locked(&self.work);
        let is_active = work.threads.read_ended(thread);
        locked(&self.shared.counts).stuck = work.threads.stuck_count();
        is_active
    }

    fn pass_over(&self, process: NewProcess) {
        locked(&self.shared.counts).passed_over_total += 1;
        locked(&self.shared.table).process_started(process, None);
    }

    fn take(
        &self,
        (process, user): (NewProcess, Option<u32>),
        outcome: ReadOutcome,
        refused: Option<RefusedFile>,
        is_first: bool,
    ) {
        let mut counts = locked(&self.shared.counts);
        counts.asked_total += 1;
        counts.unreadable_total += u64::from(is_first && outcome == ReadOutcome::Unreadable);
        // A process that names no job is read twice: its refused file is counted once.
        if let Some(refused) = refused.filter(|_| is_first) {
            counts.refused_total += 1;
            *locked(&self.shared.refused) = Some((running(), refused));
        }
        drop(counts);
        let job = match outcome {
            ReadOutcome::Job(jobs, by, groups) => {
                Some(ServedJob { jobs, by, user, groups: Arc::new(groups), end_ns: None })
            }
            ReadOutcome::Nothing | ReadOutcome::Unreadable => None,
            // It ended meanwhile; it must not be added again.
            ReadOutcome::Gone if !is_first => return,
            ReadOutcome::Gone => None,
        };
        if job.is_none() && is_first {
            let mut work = locked(&self.work);
            if (work.again.len() as u64) < READS_BURST_MAX {
                work.again.push_back((boot_ns() + AGAIN_AFTER_NS, process));
            }
        }
        let is_news = job.is_some();
        locked(&self.shared.table).process_started(process, job);
        if is_news {
            self.shared.changes.send_modify(|times| *times += 1);
        }
    }
}

impl Work {
    fn may_ask(&mut self, now_ns: u64) -> bool {
        let more = now_ns.saturating_sub(self.since_ns) * READS_PER_SECOND_MAX / 1_000_000_000;
        if more > 0 {
            self.left = (self.left + more).min(READS_BURST_MAX);
            self.since_ns = now_ns;
        }
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::stat;
    use std::path::Path;
    use wire::process::ProcessKey;

    /// Creates a process in a fake `/proc`, of this user and serving this job; without a job it does not
    /// answer.
    fn process(proc: &Path, pid: u32, user: u32, job: Option<u32>) -> News {
        let folder = proc.join(pid.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("status"), format!("Name:\tx\nUid:\t{user}\t0\t0\t0\n")).unwrap();
        std::fs::write(folder.join("cgroup"), "0::/\n").unwrap();
        let text = std::fs::read("/proc/self/stat").unwrap();
        std::fs::write(folder.join("stat"), &text).unwrap();
        let environ = folder.join("environ");
        match job {
            Some(job) => std::fs::write(environ, format!("SLURM_JOB_ID={job}\0")).unwrap(),
            None => {
                let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
                rustix::fs::mknodat(rustix::fs::CWD, environ, kind, mode, 0).unwrap();
            }
        }
        let start_ns = stat::stat(&text).expect("the kernel's form").start_ns;
        News::Came(NewProcess { key: ProcessKey { pid, start_ns }, parent: 1 })
    }

    fn key(news: &News) -> ProcessKey {
        let News::Came(process) = news else { panic!("{news:?}") };
        process.key
    }

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let since = running();
        while !is_so() {
            assert!(running().saturating_sub(since) < Duration::from_secs(60), "not within its time: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_process_that_does_not_answer_holds_up_only_its_own_user_s() {
        let proc = tempfile::tempdir().unwrap();
        let shared = Arc::<Shared>::default();
        let stuck = process(proc.path(), 42, 1000, None);
        let (own, other) = (process(proc.path(), 43, 1000, Some(1)), process(proc.path(), 44, 1001, Some(2)));
        let reader = JobReader::start(proc.path().to_owned(), Vec::new(), Arc::clone(&shared));
        reader.put(vec![stuck, own, other]);
        until("another thread", || {
            reader.check_threads();
            locked(&shared.counts).stuck == 1
        });
        let jobs = || locked(&shared.table).all().map(|(key, _)| key.pid).collect::<Vec<u32>>();
        until("the process of another user", || jobs() == [44]);
        assert_eq!(locked(&shared.counts).passed_over_total, 1, "the other one of the same user");

        drop(std::fs::OpenOptions::new().write(true).open(proc.path().join("42/environ")).unwrap());
        until("the thread's return", || locked(&shared.counts).stuck == 0);
        reader.put(vec![process(proc.path(), 45, 1000, Some(3))]);
        until("the user to be asked again", || jobs() == [44, 45]);
        assert_eq!(locked(&shared.counts).stuck_total, 1);
    }

    #[test]
    fn children_of_short_lived_processes_serve_their_job_in_whatever_order_they_are_known() {
        let proc = tempfile::tempdir().unwrap();
        let shared = Arc::<Shared>::default();
        let job = process(proc.path(), 42, 1000, Some(7));
        let start_ns = key(&job).start_ns;
        let of =
            |pid: u32, parent: u32, start_ns: u64| NewProcess { key: ProcessKey { pid, start_ns }, parent };
        let (child, grandchild) = (of(50, 42, start_ns + 10), of(51, 50, start_ns + 20));
        let reader = JobReader::start(proc.path().to_owned(), Vec::new(), Arc::clone(&shared));
        reader.put(vec![
            News::Lived(child),
            News::Gone(child.key, start_ns + 40),
            News::Lived(grandchild),
            News::Gone(grandchild.key, start_ns + 30),
            job,
        ]);
        let ends =
            || locked(&shared.table).all().map(|(key, serves)| (key.pid, serves.end_ns)).collect::<Vec<_>>();
        let expected = [(42, None), (50, Some(start_ns + 40)), (51, Some(start_ns + 30))];
        until("the process and what it started, with their ends", || ends() == expected);
    }

    #[test]
    fn a_process_that_has_ended_is_not_read_again() {
        let proc = tempfile::tempdir().unwrap();
        let shared = Arc::<Shared>::default();
        let [ended, other] = [42, 43].map(|pid| process(proc.path(), pid, 1000, Some(0)));
        // They name no job yet: each is a copy of its parent.
        let write = |pid: u32, text: &str| {
            std::fs::write(proc.path().join(pid.to_string()).join("environ"), text).unwrap();
        };
        write(42, "A=1\0");
        write(43, "A=1\0");
        let gone = key(&ended);
        let reader = JobReader::start(proc.path().to_owned(), Vec::new(), Arc::clone(&shared));
        reader.put(vec![ended, other]);
        until("the first reads", || locked(&shared.counts).asked_total == 2);
        reader.put(vec![News::Gone(gone, gone.start_ns + 1)]);
        write(42, "SLURM_JOB_ID=42\0");
        write(43, "SLURM_JOB_ID=43\0");
        let serves = |pid: u32| locked(&shared.table).all().any(|(key, _)| key.pid == pid);
        until("the second read", || serves(43));
        assert!(!serves(42), "its files are there until its parent has reaped it");
    }
}
