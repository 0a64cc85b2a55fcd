//! Stopped processes: paused by a test, or throttled on the processor.
//!
//! Rule: a process runs only while nothing holds it, and it is signalled only while it is known to exist.
//! Throttling needs no privilege: a process that has used its share of a period is stopped until the next
//! one, as by the kernel's `cpu.max`. Not here: the accounting of what was used ([`super::quota`]).

use super::quota::Quota;
use crate::wait::{self, Seen};
use anyhow::{Context, Result};
use nix::time::{ClockId, clock_getcpuclockid};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling interval for the usage of throttled processes: a hundredth of a period.
const LOOK: Duration = Duration::from_millis(1);

/// Timeout for all threads of a process to stop: moments, unless the machine is overloaded.
const STOPS: Duration = Duration::from_secs(20);

/// Reason why a process is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Story,
    Starver,
}

/// A process that can be stopped.
#[derive(Debug)]
pub(super) struct Held {
    pid: Pid,
    /// Why it is stopped; `None` when the process no longer exists.
    by: Mutex<Option<Vec<By>>>,
}

impl Held {
    pub(super) fn new(pid: u32) -> Result<Arc<Held>> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process has a number")?;
        Ok(Arc::new(Held { pid, by: Mutex::new(Some(Vec::new())) }))
    }

    pub(super) fn hold(&self, by: By) -> Result<()> {
        let mut holders = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(holders) = holders.as_mut().filter(|holders| !holders.contains(&by)) else { return Ok(()) };
        holders.push(by);
        self.signal(Signal::STOP)
    }

    /// Stop it for the test, and wait until none of its threads runs: a thread on another core continues for
    /// a while after the signal was sent.
    pub(super) fn pause(&self) -> Result<()> {
        self.hold(By::Story)?;
        wait::until(STOPS, "a process that is stopped", || {
            Ok(match self.runs()? {
                Some(thread) => Seen::NotYet(format!("thread {thread} runs")),
                None => Seen::Done(()),
            })
        })
    }

    /// A thread of it that is not stopped.
    fn runs(&self) -> Result<Option<String>> {
        let tasks = format!("/proc/{}/task", self.pid.as_raw_pid());
        for task in std::fs::read_dir(&tasks).with_context(|| tasks.clone())? {
            let task = task?;
            // A thread that ended meanwhile does not run.
            let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
            if !matches!(state, Some('T' | 't' | 'Z' | 'X')) {
                return Ok(Some(task.file_name().display().to_string()));
            }
        }
        Ok(None)
    }

    pub(super) fn release(&self, by: By) -> Result<()> {
        let mut holders = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(holders) = holders.as_mut().filter(|holders| holders.contains(&by)) else { return Ok(()) };
        holders.retain(|holder| *holder != by);
        if holders.is_empty() { self.signal(Signal::CONT) } else { Ok(()) }
    }

    /// Resume it, and never signal it again: it is about to end, or has ended.
    pub(super) fn let_go(&self) -> Result<()> {
        let holders = self.by.lock().unwrap_or_else(PoisonError::into_inner).take();
        if holders.is_some_and(|holders| !holders.is_empty()) { self.signal(Signal::CONT) } else { Ok(()) }
    }

    /// Processor time of all its threads so far; `None` when it no longer exists.
    fn used(&self) -> Option<Duration> {
        let clock: ClockId = clock_getcpuclockid(nix::unistd::Pid::from_raw(self.pid.as_raw_pid())).ok()?;
        clock.now().ok().map(Duration::from)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        match kill_process(self.pid, signal) {
            // It ended by itself; the caller that waits for it will see that.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).context("cannot signal a process"),
        }
    }
}

pub(super) type Processes = Arc<Mutex<Vec<Weak<Held>>>>;

fn alive(processes: &Processes) -> Vec<Arc<Held>> {
    let mut processes = processes.lock().unwrap_or_else(PoisonError::into_inner);
    processes.retain(|process| process.strong_count() > 0);
    processes.iter().filter_map(Weak::upgrade).collect()
}

/// Throttles the processes of one host, also those started later, until it is dropped.
#[derive(Debug)]
pub(super) struct Starver {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starver {
    /// Each process may use `percent` of one core.
    pub(super) fn start(processes: Processes, percent: u32) -> Result<Starver> {
        let end = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&end);
        let work = move || {
            let mut quotas = BTreeMap::new();
            while !is_over.load(Ordering::Relaxed) {
                starve(&processes, percent, &mut quotas);
                std::thread::sleep(LOOK);
            }
            for process in alive(&processes) {
                let _ = process.release(By::Starver);
            }
        };
        let thread = std::thread::Builder::new().name("starver".into()).spawn(work)?;
        Ok(Starver { end, thread: Some(thread) })
    }
}

fn starve(processes: &Processes, percent: u32, quotas: &mut BTreeMap<i32, Quota>) {
    for process in alive(processes) {
        let (now, Some(used)) = (wait::now(), process.used()) else { continue };
        let quota = quotas.entry(process.pid.as_raw_pid()).or_insert_with(|| Quota::new(percent, now, used));
        let done =
            if quota.must_wait(now, used) { process.hold(By::Starver) } else { process.release(By::Starver) };
        if let Err(error) = done {
            super::report(&format!("a process could not be starved: {error:#}"));
        }
    }
}

impl Drop for Starver {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
