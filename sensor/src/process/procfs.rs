//! Processes by the files of `/proc`, kept open from sweep to sweep.
//!
//! Shell. The process's CPU clock (clock_getcpuclockid(3)) is read at every sweep: the scheduler's run time of all its
//! threads, those that ended included, exact but for what a running thread has not had booked. Where it stands still the
//! process did not run, and is as it was, but for what others do to it (a page taken away, a parent that ended): so
//! `stat` is read of those that ran, and of each every two seconds. `io` and `status` cost more and matter less
//! often: they are read at most once a second of each. The processes are listed when one may have started (`births`).
//! Rule: a file that was opened belongs to its process for ever: once that is gone, reading it fails, and what has its
//! number now is opened again. A clock is read before the files, so that what runs in between is read again.
//! Left out: lives between two sweeps, of which `/proc` knows nothing.

use super::births::Births;
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
use std::time::Duration;
use wire::process::delta::PROCESSES_MAX;
use wire::process::{Io, Process, ProcessKey, Usage};

/// Longest of the files that are read, in bytes: `status` with the longest lists of groups is cut, behind what matters.
const LEN_MAX_BYTES: usize = 16 << 10;
/// How old the costly figures may be, in nanoseconds.
const SLOW_AFTER_NS: u64 = 1_000_000_000;
/// How long a sweep may rely on the one before, in nanoseconds.
const CHECK_AFTER_NS: u64 = 2_000_000_000;
/// Files left for everything else the program does.
const FILES_LEFT: u64 = 1024;

/// The processes below one `/proc`.
pub struct Procfs {
    proc: PathBuf,
    births: Births,
    kept: BTreeMap<u32, Kept>,
    checked_ns: u64,
    reader: Reader,
}

/// What reading takes.
struct Reader {
    buffer: Box<[u8]>,
    page_kib: u64,
    /// How many files may still be kept open.
    files_left: u64,
}

/// What is kept of a process.
struct Kept {
    /// None where no more files may be kept open: it is opened at each reading.
    stat: Option<File>,
    clock: Option<ClockId>,
    key: ProcessKey,
    /// What its clock told before `stat` was read.
    cpu_ns: u64,
    read_ns: u64,
    slow: Slow,
}

/// What is read once a second.
#[derive(Clone, Copy, Default)]
struct Slow {
    uid: u32,
    io: Option<Io>,
    read_ns: u64,
    /// Whether the process has run since.
    is_old: bool,
}

/// What a look at a process found.
enum Look {
    Same,
    Now(Process),
    Gone,
}

impl Procfs {
    /// Those below this folder.
    #[must_use]
    pub fn new(proc: &Path) -> Procfs {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        Procfs {
            proc: proc.to_owned(),
            births: Births::new(proc),
            kept: BTreeMap::new(),
            checked_ns: 0,
            reader: Reader {
                buffer: vec![0; LEN_MAX_BYTES].into_boxed_slice(),
                page_kib: rustix::param::page_size() as u64 / 1024,
                files_left: files.saturating_sub(FILES_LEFT),
            },
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
        let kept = self.kept.get_mut(&pid);
        let known = kept.and_then(|kept| kept.read(&self.proc, now_ns, &mut self.reader));
        known.or_else(|| {
            self.forget(pid);
            let (kept, process) = Kept::open(&self.proc, pid, now_ns, &mut self.reader)?;
            self.kept.insert(pid, kept);
            Some(process)
        })
    }

    fn forget(&mut self, pid: u32) {
        if self.kept.remove(&pid).is_some_and(|kept| kept.stat.is_some()) {
            self.reader.files_left += 1;
        }
    }

    /// Every process that is listed; those that are not are gone.
    fn sweep_all(&mut self, now_ns: u64, table: &mut Table) -> Result<(), Error> {
        let pids = self.list()?;
        for pid in &pids {
            let look = self.kept.get_mut(pid).map(|kept| kept.look(&self.proc, now_ns, &mut self.reader));
            let process = match look {
                Some(Look::Same) if table.is_as_it_was(self.kept[pid].key) => continue,
                Some(Look::Now(process)) => Some(process),
                Some(Look::Same | Look::Gone) | None => self.process(*pid, now_ns),
            };
            if let Some(process) = process {
                table.set(process);
            }
        }
        let gone: Vec<u32> = self.kept.keys().filter(|pid| !table.has_seen(**pid)).copied().collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
        Ok(())
    }

    /// Those that are known, where no other can have started.
    fn sweep_known(&mut self, now_ns: u64, table: &mut Table) {
        let mut gone = Vec::new();
        for (pid, kept) in &mut self.kept {
            match kept.look(&self.proc, now_ns, &mut self.reader) {
                Look::Same => {}
                Look::Now(process) => table.set(process),
                Look::Gone => gone.push((*pid, kept.key)),
            }
        }
        for (pid, key) in gone {
            self.forget(pid);
            table.gone(key);
        }
    }
}

impl Kept {
    fn open(proc: &Path, pid: u32, now_ns: u64, reader: &mut Reader) -> Option<(Kept, Process)> {
        let number = i32::try_from(pid).ok()?;
        let mut kept = Kept {
            stat: None,
            clock: ClockId::pid_cpu_clock_id(Pid::from_raw(number)).ok(),
            key: ProcessKey { pid, start_ns: 0 },
            cpu_ns: 0,
            read_ns: 0,
            slow: Slow::default(),
        };
        let file = kept.file(proc).ok()?;
        kept.cpu_ns = kept.clock_ns().unwrap_or(0);
        let stat = read_stat(&file, &mut reader.buffer)?;
        kept.key.start_ns = stat.start_ns;
        if reader.files_left > 0 {
            reader.files_left -= 1;
            kept.stat = Some(file);
        }
        kept.read_slow(proc, now_ns, &mut reader.buffer);
        // Not all of them in one sweep: each number has its own moment.
        let stagger = u64::from(pid % 64) * (SLOW_AFTER_NS / 64);
        kept.slow.read_ns = now_ns.saturating_sub(stagger);
        kept.read_ns = now_ns.saturating_sub(2 * stagger);
        let process = kept.told(stat, reader.page_kib);
        Some((kept, process))
    }

    fn file(&self, proc: &Path) -> io::Result<File> {
        File::open(proc.join(format!("{}/stat", self.key.pid)))
    }

    /// Its CPU time; `None` where clocks of processes are not told, or it is gone.
    fn clock_ns(&self) -> Option<u64> {
        let time = Duration::from(self.clock?.now().ok()?);
        u64::try_from(time.as_nanos()).ok()
    }

    /// What there is to tell of it.
    fn look(&mut self, proc: &Path, now_ns: u64, reader: &mut Reader) -> Look {
        let is_due = now_ns.saturating_sub(self.read_ns) >= CHECK_AFTER_NS;
        if !is_due && self.clock_ns() == Some(self.cpu_ns) {
            return Look::Same;
        }
        self.read(proc, now_ns, reader).map_or(Look::Gone, Look::Now)
    }

    /// It as it is now; `None` if it is gone.
    fn read(&mut self, proc: &Path, now_ns: u64, reader: &mut Reader) -> Option<Process> {
        let cpu_ns = self.clock_ns();
        self.slow.is_old |= cpu_ns != Some(self.cpu_ns);
        let stat = match &self.stat {
            Some(file) => read_stat(file, &mut reader.buffer),
            None => read_stat(&self.file(proc).ok()?, &mut reader.buffer),
        };
        let stat = stat.filter(|stat| stat.start_ns == self.key.start_ns)?;
        self.cpu_ns = cpu_ns.unwrap_or(0);
        self.read_ns = now_ns;
        if self.slow.is_old && now_ns.saturating_sub(self.slow.read_ns) >= SLOW_AFTER_NS {
            self.read_slow(proc, now_ns, &mut reader.buffer);
        }
        Some(self.told(stat, reader.page_kib))
    }

    fn read_slow(&mut self, proc: &Path, now_ns: u64, buffer: &mut [u8]) {
        let pid = self.key.pid;
        let mut read = |name: &str| {
            let file = File::open(proc.join(format!("{pid}/{name}"))).ok()?;
            Some(fill(&file, buffer).ok()?.to_vec())
        };
        if let Some(uid) = read("status").and_then(|text| stat::uid(&text)) {
            self.slow.uid = uid;
        }
        self.slow.io = read("io").and_then(|text| stat::io(&text));
        self.slow.read_ns = now_ns;
        self.slow.is_old = false;
    }

    fn told(&self, stat: Stat, page_kib: u64) -> Process {
        let by_ticks_ns = stat.user_ns + stat.system_ns;
        Process {
            key: self.key,
            parent: stat.parent,
            uid: self.slow.uid,
            threads: stat.threads,
            state: stat.state,
            cgroup: None,
            rss_kib: stat.rss_pages * page_kib,
            usage: Usage {
                cpu_ns: if self.cpu_ns > 0 { self.cpu_ns } else { by_ticks_ns },
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
        let table: &mut Table = &mut view.table;
        // What begins while the processes are listed is found by the next sweep.
        let is_due = self.checked_ns == 0 || begin_ns.saturating_sub(self.checked_ns) >= CHECK_AFTER_NS;
        if self.births.may_be() || is_due {
            table.begin(number, begin_ns, Coverage::All);
            self.sweep_all(begin_ns, table)?;
            self.checked_ns = begin_ns;
        } else {
            table.begin(number, begin_ns, Coverage::Changes);
            self.sweep_known(begin_ns, table);
        }
        table.end(boot_ns().saturating_sub(begin_ns));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder like `/proc` with one process: the clock is the real one's, the files are the test's.
    struct Story {
        folder: tempfile::TempDir,
        procfs: Procfs,
        table: Table,
        sweeps: u64,
    }

    impl Story {
        fn new() -> Story {
            let folder = tempfile::tempdir().expect("a folder");
            let procfs = Procfs::new(folder.path());
            Story { folder, procfs, table: Table::default(), sweeps: 0 }
        }

        fn write(&self, pid: u32, start_ticks: u64, rss_pages: u64) {
            let own = self.folder.path().join(pid.to_string());
            fs::create_dir_all(&own).expect("a folder");
            let zeros = "0 ".repeat(15);
            let stat = format!("{pid} (a b) S 1 {zeros}1 0 {start_ticks} 0 {rss_pages} {zeros}\n");
            fs::write(own.join("stat"), stat).expect("written");
        }

        /// The resident memory in pages, once it has been looked at; all are listed where `may_begin`.
        fn rss_pages(&mut self, pid: u32, now_ns: u64, may_begin: bool) -> Option<u64> {
            self.sweeps += 1;
            let coverage = if may_begin { Coverage::All } else { Coverage::Changes };
            self.table.begin(self.sweeps, now_ns, coverage);
            if may_begin {
                self.procfs.sweep_all(now_ns, &mut self.table).expect("it is listed");
            } else {
                self.procfs.sweep_known(now_ns, &mut self.table);
            }
            self.table.end(0);
            self.table.get(pid).map(|process| process.rss_kib / self.procfs.reader.page_kib)
        }
    }

    /// A process that ends with the test, however that ends.
    struct Ended(std::process::Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.kill().and_then(|()| self.0.wait()).expect("it ends");
        }
    }

    #[test]
    fn who_did_not_run_is_read_again_only_at_the_check() {
        #[allow(clippy::disallowed_methods)] // What is watched is a process that sleeps.
        let sleeper = std::process::Command::new("sleep").arg("1000").spawn().expect("it starts");
        let sleeper = Ended(sleeper);
        let (mut story, pid, mut now) = (Story::new(), sleeper.0.id(), 100 * CHECK_AFTER_NS);
        // It runs a little before it sleeps.
        let read = loop {
            // Due, whenever it was read in the round before.
            now += 2 * CHECK_AFTER_NS;
            story.write(pid, 5, 7);
            assert_eq!(story.rss_pages(pid, now, true), Some(7));
            let clock = story.procfs.kept[&pid].cpu_ns;
            story.write(pid, 5, 8);
            let read = [story.rss_pages(pid, now + 1, false), story.rss_pages(pid, now + 2, true)];
            let kept = &story.procfs.kept[&pid];
            if (kept.cpu_ns, kept.clock_ns()) == (clock, Some(clock)) {
                break read;
            }
        };
        assert_eq!(read, [Some(7), Some(7)], "its clock stands still");
        assert_eq!(story.rss_pages(pid, now + CHECK_AFTER_NS, false), Some(8));
    }

    #[test]
    fn who_runs_is_read_at_every_sweep() {
        let (mut story, pid, now) = (Story::new(), std::process::id(), 100 * CHECK_AFTER_NS);
        for (sweep, may_begin) in [(0, true), (1, false), (2, true), (3, false)] {
            story.write(pid, 5, 7 + sweep);
            assert_eq!(story.rss_pages(pid, now + sweep, may_begin), Some(7 + sweep));
        }
    }

    #[test]
    fn who_is_gone_or_another_is_found_out() {
        let (mut story, pid, now) = (Story::new(), std::process::id(), 100 * CHECK_AFTER_NS);
        story.write(pid, 5, 7);
        assert_eq!(story.rss_pages(pid, now, true), Some(7));
        story.write(pid, 6, 9);
        assert_eq!(story.rss_pages(pid, now + 1, true), Some(9));
        assert_eq!(story.table.get(pid).expect("it is there").key.start_ns, 6 * stat::TICK_NS);
        story.write(pid, 7, 9);
        assert_eq!(story.rss_pages(pid, now + 2, false), None, "a new one is found by listing alone");
        assert_eq!(story.rss_pages(pid, now + 3, true), Some(9));
        fs::remove_dir_all(story.folder.path().join(pid.to_string())).expect("removed");
        assert_eq!(story.rss_pages(pid, now + 4, true), None);
        assert!(story.procfs.kept.is_empty());
    }

    #[test]
    fn what_another_source_told_is_not_taken_for_unchanged() {
        let (mut story, pid, now) = (Story::new(), std::process::id(), 100 * CHECK_AFTER_NS);
        story.write(pid, 5, 7);
        assert_eq!(story.rss_pages(pid, now, true), Some(7));
        story.table = Table::default();
        assert_eq!(story.rss_pages(pid, now + 1, true), Some(7));
    }

    #[test]
    fn beyond_the_files_that_may_be_open_each_is_opened_at_its_turn() {
        let (mut story, pid, now) = (Story::new(), std::process::id(), 100 * CHECK_AFTER_NS);
        story.procfs.reader.files_left = 0;
        story.write(pid, 5, 7);
        assert_eq!(story.rss_pages(pid, now, true), Some(7));
        story.write(pid, 5, 8);
        assert_eq!(story.rss_pages(pid, now + 1, false), Some(8));
        assert!(story.procfs.kept[&pid].stat.is_none() && story.procfs.reader.files_left == 0);
    }
}
