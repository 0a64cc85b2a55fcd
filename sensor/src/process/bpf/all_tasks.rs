//! All processes at each sweep, by a walk over every task in the kernel.
//!
//! Shell. Rule: threads add to their process whether they are told before it or after it. What a running thread has not
//! had booked is not in its CPU time: at most a tick of the kernel's.

use super::super::hidden::Hidden;
use super::super::procfs::boot_ns;
use super::super::source::{Error, Kind, Source, View};
use super::super::table::{Coverage, Table};
use super::loaded::Loaded;
use super::record::{self, Record};
use std::path::Path;
use wire::process::{Process, Usage};

/// The walk and what it needs from sweep to sweep.
pub struct AllTasks {
    loaded: Loaded,
    tasks: Tasks,
    hidden: Hidden,
}

/// The tasks of one walk.
pub(super) struct Tasks {
    records: Vec<u8>,
    processes: Vec<Process>,
    threads: Vec<(u32, Usage)>,
    page_kib: u64,
}

impl AllTasks {
    /// Load the walk; what it does not show is read from `proc`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(proc: &Path) -> Result<AllTasks, Error> {
        let (mut loaded, types) = Loaded::new(0)?;
        loaded.load_walk(&types)?;
        drop(types);
        let mut tasks = Tasks::new();
        // What loads may still fail when it is used.
        tasks.walk(&mut loaded)?;
        Ok(AllTasks { loaded, tasks, hidden: Hidden::new(proc) })
    }
}

impl Source for AllTasks {
    fn kind(&self) -> Kind {
        Kind::BpfSweep
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        let begin_ns = boot_ns();
        self.tasks.walk(&mut self.loaded)?;
        let took_ns = boot_ns().saturating_sub(begin_ns);
        view.table.begin(number, begin_ns, Coverage::All);
        self.tasks.tell(&mut view.table);
        self.hidden.tell(&mut view.table);
        view.table.end(took_ns);
        Ok(())
    }

    fn drain(&mut self, _: &mut View) {}

    fn lost_total(&self) -> u64 {
        0
    }
}

impl Tasks {
    pub(super) fn new() -> Tasks {
        let page_kib = rustix::param::page_size() as u64 / 1024;
        Tasks { records: Vec::new(), processes: Vec::new(), threads: Vec::new(), page_kib }
    }

    /// Walk, and read what was told.
    pub(super) fn walk(&mut self, loaded: &mut Loaded) -> Result<(), Error> {
        loaded.walk(&mut self.records)?;
        self.processes.clear();
        self.threads.clear();
        let mut rest = self.records.as_slice();
        while let Some((record, len)) = record::read(rest, self.page_kib) {
            rest = &rest[len..];
            match record {
                Record::Process(process, _) if !record::is_removed(&process) => self.processes.push(process),
                Record::Thread(pid, usage) => self.threads.push((pid, usage)),
                // The walk tells of nothing else.
                Record::Process(..)
                | Record::Fork(..)
                | Record::Exec(..)
                | Record::Exit(_)
                | Record::Freed(_)
                | Record::Sweep(_) => {}
            }
        }
        // The kernel walks by number, so this finds them in order.
        self.processes.sort_by_key(|process| process.key.pid);
        for (pid, usage) in &self.threads {
            if let Ok(at) = self.processes.binary_search_by_key(pid, |process| process.key.pid) {
                add(&mut self.processes[at].usage, usage);
            }
        }
        Ok(())
    }

    /// Tell the table, and keep nothing.
    pub(super) fn tell(&mut self, table: &mut Table) {
        self.processes.drain(..).for_each(|process| table.set(process));
    }
}

fn add(sum: &mut Usage, part: &Usage) {
    sum.cpu_ns += part.cpu_ns;
    sum.user_ns += part.user_ns;
    sum.system_ns += part.system_ns;
    sum.minor_faults += part.minor_faults;
    sum.major_faults += part.major_faults;
    if let (Some(sum), Some(part)) = (&mut sum.switches, &part.switches) {
        sum.voluntary += part.voluntary;
        sum.involuntary += part.involuntary;
    }
    if let (Some(sum), Some(part)) = (&mut sum.io, &part.io) {
        sum.read_bytes += part.read_bytes;
        sum.written_bytes += part.written_bytes;
        sum.read_chars += part.read_chars;
        sum.written_chars += part.written_chars;
    }
}
