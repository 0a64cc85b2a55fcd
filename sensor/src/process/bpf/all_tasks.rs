//! Source that reads all processes at each sweep, by a kernel program that walks every task (a BPF iterator).
//!
//! Shell. Rule: the usage of threads is added to their process whether their records come before or after it.
//! The CPU time that the kernel has not yet accounted to a running thread is missing: at most one tick of the
//! kernel.

use super::super::boot_time::boot_ns;
use super::super::hidden::Hidden;
use super::super::source::{Error, Kind, Source, View};
use super::super::table::{Coverage, Table};
use super::programs::Programs;
use super::record::{self, Record};
use std::path::Path;
use wire::process::{Process, Usage};

/// The loaded program and its buffers.
pub struct AllTasks {
    programs: Programs,
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
    /// Loads the program; processes that it does not show are read from `proc`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(proc: &Path) -> Result<AllTasks, Error> {
        let (mut programs, types) = Programs::new(0)?;
        programs.load_walk(&types)?;
        drop(types);
        let mut tasks = Tasks::new();
        // A program that loads may still fail when it runs.
        tasks.walk(&mut programs)?;
        Ok(AllTasks { programs, tasks, hidden: Hidden::new(proc) })
    }
}

impl Source for AllTasks {
    fn kind(&self) -> Kind {
        Kind::BpfSweep
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        let begin_ns = boot_ns();
        self.tasks.walk(&mut self.programs)?;
        let took_ns = boot_ns().saturating_sub(begin_ns);
        view.table.begin(number, begin_ns, Coverage::All);
        self.tasks.move_into(&mut view.table);
        self.hidden.add_to(&mut view.table);
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

    /// Walks all tasks, and decodes their records.
    pub(super) fn walk(&mut self, programs: &mut Programs) -> Result<(), Error> {
        programs.walk(&mut self.records)?;
        self.processes.clear();
        self.threads.clear();
        let mut rest = self.records.as_slice();
        while let Some((record, len)) = record::read(rest, self.page_kib) {
            rest = &rest[len..];
            match record {
                Record::Process(process, _) if !record::is_removed(&process) => self.processes.push(process),
                Record::Thread(pid, usage) => self.threads.push((pid, usage)),
                // The walk makes no other records.
                Record::Process(..)
                | Record::Fork(..)
                | Record::Exec(..)
                | Record::Exit(_)
                | Record::Freed(..)
                | Record::Sweep(_) => {}
            }
        }
        // The kernel walks by process id, so they are usually sorted already.
        self.processes.sort_by_key(|process| process.key.pid);
        for (pid, usage) in &self.threads {
            if let Ok(at) = self.processes.binary_search_by_key(pid, |process| process.key.pid) {
                add(&mut self.processes[at].usage, usage);
            }
        }
        Ok(())
    }

    /// Moves the processes into the table.
    pub(super) fn move_into(&mut self, table: &mut Table) {
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
