//! Source that reads the files of `/proc`, which stay open from sweep to sweep.
//!
//! Shell. Each sweep reads the CPU clock of each process (clock_getcpuclockid(3)): the scheduler's run time
//! of all its threads, including ended ones, exact except for what a running thread has not had accounted. If
//! the clock has not advanced, the process did not run and is taken as unchanged, except for what other
//! processes do to it (a page reclaimed, a parent that ended). So `stat` is read of processes that ran, and
//! of each process every two seconds. `io` and `status` cost more and matter less often: they are read at
//! most once per second and process. The processes are listed only when one may have started (`births`).
//! Rule: an open file belongs to its process for ever: once the process is gone, reading fails, and the file
//! of the process that now has its id is opened. The clock is read before the files, so that a process that
//! runs in between is read again.
//! Left out: processes that live only between two sweeps, which `/proc` does not show.

use super::births::Births;
use super::boot_time::boot_ns;
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

/// Longest part of a file that is read, in bytes: a `status` with very long lists of groups is cut, after the
/// needed lines.
const LEN_MAX_BYTES: usize = 16 << 10;
/// Time between two reads of the costly files of a process, in nanoseconds.
const SLOW_AFTER_NS: u64 = 1_000_000_000;
/// Time between two reads of an unchanged process, and between two full listings, in nanoseconds.
const CHECK_AFTER_NS: u64 = 2_000_000_000;
/// Open files reserved for the rest of the program.
const FILES_LEFT: u64 = 1024;

/// Source over one `/proc`.
pub struct Procfs {
    proc: PathBuf,
    births: Births,
    cache: BTreeMap<u32, CachedProcess>,
    checked_ns: u64,
    reader: Reader,
}

/// Buffer and limits for reading.
struct Reader {
    buffer: Box<[u8]>,
    page_kib: u64,
    /// How many more files may stay open.
    files_left: u64,
}

/// State of one process from sweep to sweep.
struct CachedProcess {
    /// `None` if too many files are open: then it is opened for each read.
    stat: Option<File>,
    clock: Option<ClockId>,
    key: ProcessKey,
    /// CPU time of its clock, read before `stat`.
    cpu_ns: u64,
    read_ns: u64,
    slow: SlowFields,
}

/// Values that are read at most once per second.
#[derive(Clone, Copy, Default)]
struct SlowFields {
    uid: u32,
    io: Option<Io>,
    read_ns: u64,
    /// Whether the process has run since.
    is_old: bool,
}

/// Result of checking a process.
enum CheckResult {
    Same,
    Now(Process),
    Gone,
}

impl Procfs {
    /// Creates a source for the `/proc` at `proc`.
    #[must_use]
    pub fn new(proc: &Path) -> Procfs {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        Procfs {
            proc: proc.to_owned(),
            births: Births::new(proc),
            cache: BTreeMap::new(),
            checked_ns: 0,
            reader: Reader {
                buffer: vec![0; LEN_MAX_BYTES].into_boxed_slice(),
                page_kib: rustix::param::page_size() as u64 / 1024,
                files_left: files.saturating_sub(FILES_LEFT),
            },
        }
    }

    /// Lists the ids of all processes.
    ///
    /// # Errors
    /// If `/proc` cannot be listed.
    pub(super) fn list(&self) -> Result<Vec<u32>, Error> {
        let wrong = |error| Error::List { path: self.proc.clone(), error };
        let mut pids = Vec::with_capacity(self.cache.len());
        for entry in std::fs::read_dir(&self.proc).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
            pids.extend(pid.filter(|_| pids.len() < PROCESSES_MAX));
        }
        Ok(pids)
    }

    /// Reads the process with this id; `None` if it is gone or cannot be read.
    pub(super) fn process(&mut self, pid: u32, now_ns: u64) -> Option<Process> {
        let cache = self.cache.get_mut(&pid);
        let known = cache.and_then(|cache| cache.read(&self.proc, now_ns, &mut self.reader));
        known.or_else(|| {
            self.forget(pid);
            let (cache, process) = CachedProcess::open(&self.proc, pid, now_ns, &mut self.reader)?;
            self.cache.insert(pid, cache);
            Some(process)
        })
    }

    fn forget(&mut self, pid: u32) {
        if self.cache.remove(&pid).is_some_and(|cache| cache.stat.is_some()) {
            self.reader.files_left += 1;
        }
    }

    /// Reads every listed process; processes that are not listed are gone.
    fn sweep_all(&mut self, now_ns: u64, table: &mut Table) -> Result<(), Error> {
        let pids = self.list()?;
        for pid in &pids {
            let look = self.cache.get_mut(pid).map(|cache| cache.check(&self.proc, now_ns, &mut self.reader));
            let process = match look {
                Some(CheckResult::Same) if table.is_as_it_was(self.cache[pid].key) => continue,
                Some(CheckResult::Now(process)) => Some(process),
                Some(CheckResult::Same | CheckResult::Gone) | None => self.process(*pid, now_ns),
            };
            if let Some(process) = process {
                table.set(process);
            }
        }
        let gone: Vec<u32> = self.cache.keys().filter(|pid| !table.has_seen(**pid)).copied().collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
        Ok(())
    }

    /// Reads the known processes, when no process can have started.
    fn sweep_known(&mut self, now_ns: u64, table: &mut Table) {
        let mut gone = Vec::new();
        for (pid, cache) in &mut self.cache {
            match cache.check(&self.proc, now_ns, &mut self.reader) {
                CheckResult::Same => {}
                CheckResult::Now(process) => table.set(process),
                CheckResult::Gone => gone.push((*pid, cache.key)),
            }
        }
        for (pid, key) in gone {
            self.forget(pid);
            table.remove_process(key);
        }
    }
}

impl CachedProcess {
    fn open(proc: &Path, pid: u32, now_ns: u64, reader: &mut Reader) -> Option<(CachedProcess, Process)> {
        let number = i32::try_from(pid).ok()?;
        let mut cache = CachedProcess {
            stat: None,
            clock: ClockId::pid_cpu_clock_id(Pid::from_raw(number)).ok(),
            key: ProcessKey { pid, start_ns: 0 },
            cpu_ns: 0,
            read_ns: 0,
            slow: SlowFields::default(),
        };
        let file = cache.file(proc).ok()?;
        cache.cpu_ns = cache.clock_ns().unwrap_or(0);
        let stat = read_stat(&file, &mut reader.buffer)?;
        cache.key.start_ns = stat.start_ns;
        if reader.files_left > 0 {
            reader.files_left -= 1;
            cache.stat = Some(file);
        }
        cache.read_slow(proc, now_ns, &mut reader.buffer);
        // Spreads the reads over the sweeps: each process id has its own moment.
        let stagger = u64::from(pid % 64) * (SLOW_AFTER_NS / 64);
        cache.slow.read_ns = now_ns.saturating_sub(stagger);
        cache.read_ns = now_ns.saturating_sub(2 * stagger);
        let process = cache.to_process(stat, reader.page_kib);
        Some((cache, process))
    }

    fn file(&self, proc: &Path) -> io::Result<File> {
        File::open(proc.join(format!("{}/stat", self.key.pid)))
    }

    /// CPU time of the process; `None` if it is gone, or clocks of processes are not available.
    fn clock_ns(&self) -> Option<u64> {
        let time = Duration::from(self.clock?.now().ok()?);
        u64::try_from(time.as_nanos()).ok()
    }

    /// Checks whether the process ran or is due for a read, and reads it then.
    fn check(&mut self, proc: &Path, now_ns: u64, reader: &mut Reader) -> CheckResult {
        let is_due = now_ns.saturating_sub(self.read_ns) >= CHECK_AFTER_NS;
        if !is_due && self.clock_ns() == Some(self.cpu_ns) {
            return CheckResult::Same;
        }
        self.read(proc, now_ns, reader).map_or(CheckResult::Gone, CheckResult::Now)
    }

    /// Reads the process; `None` if it is gone.
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
        Some(self.to_process(stat, reader.page_kib))
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

    fn to_process(&self, stat: Stat, page_kib: u64) -> Process {
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
        // A process that starts during the listing is found by the next sweep.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder like `/proc` with one process: the clock is that of a real process, the files are written by
    /// the test.
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

        /// The resident memory in pages, after a sweep; all processes are listed if `may_begin`.
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

    /// A process that is killed when the test ends, whether it passes or not.
    struct Ended(std::process::Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.kill().and_then(|()| self.0.wait()).expect("it ends");
        }
    }

    #[test]
    fn who_did_not_run_is_read_again_only_at_the_check() {
        #[allow(clippy::disallowed_methods)] // The test watches a process that sleeps.
        let sleeper = std::process::Command::new("sleep").arg("1000").spawn().expect("it starts");
        let sleeper = Ended(sleeper);
        let (mut story, pid, mut now) = (Story::new(), sleeper.0.id(), 100 * CHECK_AFTER_NS);
        // The process runs a little before it sleeps.
        let read = loop {
            // Due for a read, whenever the previous one was.
            now += 2 * CHECK_AFTER_NS;
            story.write(pid, 5, 7);
            assert_eq!(story.rss_pages(pid, now, true), Some(7));
            let clock = story.procfs.cache[&pid].cpu_ns;
            story.write(pid, 5, 8);
            let read = [story.rss_pages(pid, now + 1, false), story.rss_pages(pid, now + 2, true)];
            let cache = &story.procfs.cache[&pid];
            if (cache.cpu_ns, cache.clock_ns()) == (clock, Some(clock)) {
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
        assert!(story.procfs.cache.is_empty());
    }

    #[test]
    fn what_another_source_reported_is_not_taken_for_unchanged() {
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
        assert!(story.procfs.cache[&pid].stat.is_none() && story.procfs.reader.files_left == 0);
    }
}
