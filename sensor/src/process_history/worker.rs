//! Worker of the process history: completes the minutes and stores them.
//!
//! Shell. Rule: the sampling thread hands over a minute and never waits. If the disk refuses, minutes wait in
//! memory, up to a bound, and the trouble is shown. The thread may hang on a process whose command line cannot be
//! read, so the end of the sensor does not wait for it without end.

use super::collector::{Collector, shortened};
use super::minute::{ProcessMinute, ProcessRow};
use crate::history::failure::Failure;
use crate::history::writing::calendar;
use crate::process::boot_time::booted;
use crate::process::details;
use crate::process::source::View;
use crate::process::tap::Tap;
use crate::serving::watch;
use compact_str::CompactString;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use store::daily::{DailyLimit, DailyLog, DailyReader};
use wire::process::ProcessKey;
use wire::version::PROCESS_HISTORY;

/// Folder in the state folder.
const FOLDER: &str = "process-history";

/// Minutes that wait for the worker.
const QUEUE_LEN: usize = 16;

/// Minutes in memory while the disk refuses them.
const WAITING_MAX: usize = 240;

/// The worker, ready to run.
pub struct Worker {
    minutes: Receiver<ProcessMinute>,
    limit: DailyLimit,
    proc: PathBuf,
    serving: watch::Handle,
    handle: Handle,
    waiting: VecDeque<ProcessMinute>,
    /// Command lines of the processes of the last minute.
    commands: HashMap<ProcessKey, CompactString>,
}

/// Tap that hands minutes over, on the sampling thread.
pub struct MinuteTap {
    collector: Collector,
    minutes: SyncSender<ProcessMinute>,
    handle: Handle,
}

/// Handle for queries and status; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    reader: DailyReader,
    failure: Failure,
    used_bytes: AtomicU64,
    damaged_bytes: AtomicU64,
    dropped: AtomicU64,
}

/// How often minutes that the disk refused are tried again.
const AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Creates the process history in the state folder; `None` without a limit.
#[must_use]
pub fn set_up(
    limit: Option<DailyLimit>,
    state: &Path,
    proc: &Path,
    serving: watch::Handle,
) -> Option<(MinuteTap, Worker, Handle)> {
    let limit = limit?;
    let reader = DailyReader::new(&state.join(FOLDER), PROCESS_HISTORY);
    let shared = Shared {
        reader,
        failure: Failure::new("process history"),
        used_bytes: AtomicU64::default(),
        damaged_bytes: AtomicU64::default(),
        dropped: AtomicU64::default(),
    };
    let (handle, (sender, minutes)) = (Handle(Arc::new(shared)), sync_channel(QUEUE_LEN));
    let tap = MinuteTap { collector: Collector::new(booted()), minutes: sender, handle: handle.clone() };
    let (waiting, commands) = (VecDeque::new(), HashMap::new());
    let worker =
        Worker { minutes, limit, proc: proc.to_owned(), serving, handle: handle.clone(), waiting, commands };
    Some((tap, worker, handle))
}

impl Tap for MinuteTap {
    fn swept(&mut self, view: &View, _: Duration) {
        if let Some(minute) = self.collector.sweep(view, calendar())
            && self.minutes.try_send(minute).is_err()
        {
            self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Worker {
    /// Stores minutes until the sampling thread has ended.
    pub fn run(mut self) {
        let mut log = None;
        loop {
            match self.minutes.recv_timeout(AGAIN_EVERY) {
                Ok(minute) => self.wait(minute),
                Err(RecvTimeoutError::Timeout) if self.waiting.is_empty() => continue,
                // What the disk refused is tried again before the next minute comes.
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let stored = self.store(&mut log);
            self.handle.show(&stored, log.as_ref());
        }
    }

    fn wait(&mut self, mut minute: ProcessMinute) {
        self.complete(&mut minute);
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.handle.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.waiting.push_back(minute);
    }

    fn store(&mut self, log: &mut Option<DailyLog>) -> io::Result<()> {
        let log = match log {
            Some(log) => log,
            None => log.insert(DailyLog::open(self.handle.0.reader.folder(), PROCESS_HISTORY, self.limit)?),
        };
        while let Some(minute) = self.waiting.front() {
            log.append(minute.start, &minute.pack()?)?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Adds the command lines and the jobs.
    fn complete(&mut self, minute: &mut ProcessMinute) {
        let mut commands = HashMap::new();
        for row in &mut minute.rows {
            self.complete_row(row);
            if row.end.is_none() {
                commands.insert(row.key, row.command.clone());
            }
        }
        self.commands = commands;
    }

    fn complete_row(&self, row: &mut ProcessRow) {
        if row.command.is_empty() && row.end.is_none() {
            let known = self.commands.get(&row.key).cloned();
            let read = || Some(shortened(&details::command(&self.proc, row.key)?));
            row.command = known.or_else(read).unwrap_or_default();
        }
        row.job = self.serving.read(|table| table.of(row.key)?.jobs.first().cloned());
    }
}

impl Handle {
    /// Returns the reader of the stored minutes.
    #[must_use]
    pub fn reader(&self) -> &DailyReader {
        &self.0.reader
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.failure.trouble(None)
    }

    /// Statistics: name and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![
            ("used_bytes", read(&self.0.used_bytes)),
            ("damaged_bytes_total", read(&self.0.damaged_bytes)),
            ("minutes_lost_total", read(&self.0.dropped)),
        ]
    }

    fn show(&self, stored: &io::Result<()>, log: Option<&DailyLog>) {
        if let Some(log) = log {
            self.0.used_bytes.store(log.used_bytes(), Ordering::Relaxed);
            self.0.damaged_bytes.store(log.damaged_bytes(), Ordering::Relaxed);
        }
        self.0.failure.set(self.0.reader.folder(), stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::time::Time;

    const START: Time = Time::from_micros(1_795_737_600_000_000);

    fn set_up_in(state: &Path) -> (MinuteTap, Worker, Handle) {
        let proc = Path::new("/proc");
        let (_, _, serving) = watch::over(proc.to_owned(), Vec::new());
        let limit = DailyLimit { bytes: 1 << 20, days: 9 };
        set_up(Some(limit), state, proc, serving).expect("there is a limit")
    }

    fn minute(number: u32, rows: Vec<ProcessRow>) -> ProcessMinute {
        let start = START.plus(Duration::from_secs(60) * number);
        ProcessMinute { start, rows, ..ProcessMinute::default() }
    }

    fn stored(handle: &Handle) -> Vec<ProcessMinute> {
        let mut minutes = Vec::new();
        let read = handle.reader().each(START, Time::from_micros(i64::MAX), |_, bytes| {
            minutes.extend(ProcessMinute::unpack(bytes));
            true
        });
        assert_eq!(read.expect("readable"), 0);
        minutes
    }

    #[test]
    fn rows_are_completed_with_their_commands_and_stored_with_the_last_minute() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tap, worker, handle) = set_up_in(folder.path());
        let view = {
            let mut view = View::default();
            let mut source = crate::process::procfs::Procfs::new(Path::new("/proc"));
            crate::process::source::Source::sweep(&mut source, 1, &mut view).expect("a sweep");
            view
        };
        let own = view.table.get(std::process::id()).expect("this one").key;
        let rows = vec![ProcessRow { key: own, ..ProcessRow::default() }];
        tap.minutes.try_send(minute(0, rows)).expect("there is room");
        drop(tap);
        worker.run();
        let [stored] = stored(&handle).try_into().expect("one minute");
        let program = std::env::args().next().expect("a program");
        assert!(stored.rows[0].command.starts_with(&program), "{}", stored.rows[0].command);
        assert!(handle.figures()[0].1 > 100 && handle.trouble().is_none());
    }

    #[test]
    fn minutes_wait_while_the_disk_refuses_them_and_the_trouble_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let in_its_place = folder.path().join(FOLDER);
        std::fs::write(&in_its_place, "another file").expect("written");
        let (tap, worker, handle) = set_up_in(folder.path());
        let running = std::thread::spawn(move || worker.run());
        tap.minutes.try_send(minute(0, Vec::new())).expect("there is room");
        while handle.trouble().is_none() {
            std::thread::yield_now();
        }
        assert!(handle.trouble().is_some_and(|trouble| trouble.contains(FOLDER)));
        std::fs::remove_file(&in_its_place).expect("removed");
        tap.minutes.try_send(minute(1, Vec::new())).expect("there is room");
        drop(tap);
        running.join().expect("no panic");
        let starts: Vec<Time> = stored(&handle).iter().map(|minute| minute.start).collect();
        assert_eq!(
            (starts, handle.trouble()),
            (vec![minute(0, Vec::new()).start, minute(1, Vec::new()).start], None)
        );
    }
}
