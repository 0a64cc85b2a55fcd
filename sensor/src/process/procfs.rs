//! Processes by the files of `/proc`, kept open from sweep to sweep.
//!
//! Shell. `stat` is read at every sweep by a positioned read; CPU time is the process's clock (clock_getcpuclockid(3)),
//! which is the scheduler's run time of all its threads, those that ended included, exact but for what a running thread
//! has not had booked. What costs more and matters less often, `io` and `status`, is read once a second for each.
//! Rule: a file that was opened belongs to its process for ever: once that is gone, reading it fails, and what has its
//! number now is opened anew.
//! Left out: lives between two sweeps, of which `/proc` knows nothing.

use super::source::{Error, Kind, Source, View};
use super::stat::{self, Stat};
use super::table::{Coverage, Table};
use nix::time::ClockId;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wire::process::delta::PROCESSES_MAX;
use wire::process::{Io, Process, ProcessKey, Usage};

/// Longest of the files that are read, in bytes: `status` with the longest lists of groups is cut, behind what matters.
const LEN_MAX_BYTES: usize = 16 << 10;
/// How old the costly figures may be, in nanoseconds.
const SLOW_AFTER_NS: u64 = 1_000_000_000;
/// Files left for everything else the program does.
const FILES_LEFT: u64 = 1024;

/// The processes below one `/proc`.
pub struct Procfs {
    proc: PathBuf,
    kept: BTreeMap<u32, Kept>,
    kept_max: usize,
    buffer: Box<[u8]>,
    page_kib: u64,
}

/// What stays open of a process.
struct Kept {
    stat: File,
    clock: Option<ClockId>,
    slow: Slow,
    read_slow_ns: u64,
}

/// What is read once a second.
#[derive(Clone, Copy, Default)]
struct Slow {
    uid: u32,
    io: Option<Io>,
}

impl Procfs {
    /// Those below this folder.
    #[must_use]
    pub fn new(proc: &Path) -> Procfs {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        Procfs {
            proc: proc.to_owned(),
            kept: BTreeMap::new(),
            kept_max: usize::try_from(files.saturating_sub(FILES_LEFT)).unwrap_or(usize::MAX),
            buffer: vec![0; LEN_MAX_BYTES].into_boxed_slice(),
            page_kib: rustix::param::page_size() as u64 / 1024,
        }
    }

    /// The numbers of all processes.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub(super) fn list(&self) -> Result<Vec<u32>, Error> {
        let wrong = |error| Error::List { path: self.proc.clone(), error };
        let mut pids = Vec::with_capacity(self.kept.len());
        for entry in std::fs::read_dir(&self.proc).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
            pids.extend(pid.filter(|_| pids.len() < PROCESSES_MAX));
        }
        Ok(pids)
    }

    /// The process with this number; `None` if it is gone or cannot be read.
    pub(super) fn process(&mut self, pid: u32, now_ns: u64) -> Option<Process> {
        let mut kept = self.kept.remove(&pid);
        let read = kept.as_ref().and_then(|kept| read_stat(&kept.stat, &mut self.buffer));
        let stat = match read {
            Some(stat) => stat,
            None => {
                let opened = Kept::open(&self.proc, pid)?;
                let stat = read_stat(&opened.stat, &mut self.buffer)?;
                kept = Some(opened);
                stat
            }
        };
        let mut kept = kept?;
        if kept.read_slow_ns == 0 || now_ns.saturating_sub(kept.read_slow_ns) >= SLOW_AFTER_NS {
            kept.read_slow(&self.proc, pid, &mut self.buffer);
            // Not all of them in one sweep: each number has its own moment in the second.
            let stagger = u64::from(pid % 64) * (SLOW_AFTER_NS / 64);
            kept.read_slow_ns = match kept.read_slow_ns {
                0 => now_ns.saturating_sub(stagger).max(1),
                _ => now_ns,
            };
        }
        let process = kept.process(pid, stat, self.page_kib);
        if self.kept.len() < self.kept_max {
            self.kept.insert(pid, kept);
        }
        Some(process)
    }
}

impl Kept {
    fn open(proc: &Path, pid: u32) -> Option<Kept> {
        let stat = File::open(proc.join(format!("{pid}/stat"))).ok()?;
        let number = i32::try_from(pid).ok()?;
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(number)).ok();
        Some(Kept { stat, clock, slow: Slow::default(), read_slow_ns: 0 })
    }

    fn read_slow(&mut self, proc: &Path, pid: u32, buffer: &mut [u8]) {
        let mut read = |name: &str| {
            let file = File::open(proc.join(format!("{pid}/{name}"))).ok()?;
            Some(fill(&file, buffer).ok()?.to_vec())
        };
        if let Some(uid) = read("status").and_then(|text| stat::uid(&text)) {
            self.slow.uid = uid;
        }
        self.slow.io = read("io").and_then(|text| stat::io(&text));
    }

    fn process(&self, pid: u32, stat: Stat, page_kib: u64) -> Process {
        let by_ticks_ns = stat.user_ns + stat.system_ns;
        let by_clock_ns = self.clock.and_then(|clock| clock.now().ok()).map(std::time::Duration::from);
        let cpu_ns = by_clock_ns.and_then(|time| u64::try_from(time.as_nanos()).ok());
        Process {
            key: ProcessKey { pid, start_ns: stat.start_ns },
            parent: stat.parent,
            uid: self.slow.uid,
            threads: stat.threads,
            state: stat.state,
            cgroup: None,
            rss_kib: stat.rss_pages * page_kib,
            usage: Usage {
                cpu_ns: cpu_ns.unwrap_or(by_ticks_ns),
                user_ns: stat.user_ns,
                system_ns: stat.system_ns,
                minor_faults: stat.minor_faults,
                major_faults: stat.major_faults,
                switches: None,
                io: self.slow.io,
            },
            name: stat.name,
        }
    }
}

fn fill<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let len = file.read_at(buffer, 0)?;
    Ok(&buffer[..len])
}

fn read_stat(file: &File, buffer: &mut [u8]) -> Option<Stat> {
    stat::stat(fill(file, buffer).ok()?)
}

impl Source for Procfs {
    fn kind(&self) -> Kind {
        Kind::Procfs
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        let begin_ns = boot_ns();
        let pids = self.list()?;
        let table: &mut Table = &mut view.table;
        table.begin(number, begin_ns, Coverage::All);
        for pid in pids {
            if let Some(process) = self.process(pid, begin_ns) {
                table.set(process);
            }
        }
        table.end(boot_ns().saturating_sub(begin_ns));
        self.kept.retain(|pid, _| table.get(*pid).is_some());
        Ok(())
    }

    fn drain(&mut self, _: &mut View) {}

    fn lost_total(&self) -> u64 {
        0
    }
}

/// Time since boot, suspension included: the clock of a process's start.
pub(crate) fn boot_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    secs * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
