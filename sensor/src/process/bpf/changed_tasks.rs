//! Source that reads only the processes that ran, and every start and end; a walk over all tasks now and then
//! corrects the rest.
//!
//! Shell. A process that did not run since the last sweep is taken as unchanged. What other processes did to
//! it (a page reclaimed, a parent that ended, a wake-up) is seen at the next walk, every [`WALK_AFTER_NS`].
//! After a loss of records, the next sweep walks at once.

use super::super::boot_time::boot_ns;
use super::super::hidden::Hidden;
use super::super::source::{Error, Kind, Source, View};
use super::super::table::Coverage;
use super::all_tasks::Tasks;
use super::programs::Programs;
use super::record::{self, Record, Sweep};
use aya::maps::{MapData, RingBuf};
use std::path::Path;
use wire::process::Process;

/// Time between two walks, in nanoseconds.
pub const WALK_AFTER_NS: u64 = 2_000_000_000;

/// Attempts to read the end of a sweep from the ring buffer, while another processor still writes an earlier
/// record.
const LOOKS_MAX: u32 = 10_000;

/// The loaded programs and the state of their ring buffer.
pub struct ChangedTasks {
    programs: Programs,
    ring: RingBuf<MapData>,
    tasks: Tasks,
    hidden: Hidden,
    page_kib: u64,
    last: Sweep,
    walked_ns: u64,
    /// Unaccounted CPU time of each process in this sweep, by process id, in nanoseconds: the sum of its
    /// running threads.
    running: Vec<(u32, u64)>,
    lost_ends: u64,
}

impl ChangedTasks {
    /// Loads and attaches the programs; processes that a walk does not show are read from `proc`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open(proc: &Path) -> Result<ChangedTasks, Error> {
        let hidden = Hidden::new(proc);
        let (mut programs, types) = Programs::new(hidden.listed_len())?;
        programs.load_walk(&types)?;
        let ring = programs.listen(&types)?;
        drop(types);
        programs.sweep_changed()?;
        Ok(ChangedTasks {
            programs,
            ring,
            tasks: Tasks::new(),
            hidden,
            page_kib: rustix::param::page_size() as u64 / 1024,
            last: Sweep::default(),
            walked_ns: 0,
            running: Vec::new(),
            lost_ends: 0,
        })
    }

    /// Applies the records in the ring buffer; returns the end of the sweep, if it is among them.
    fn take(&mut self, view: &mut View) -> Option<Sweep> {
        let mut end = None;
        while let Some(bytes) = self.ring.next() {
            match record::read(&bytes, self.page_kib) {
                Some((Record::Process(process, open_ns), _)) => {
                    set(view, process, open_ns, &mut self.running)
                }
                Some((Record::Fork(key, parent), _)) => view.lives.fork(key, parent),
                Some((Record::Exec(key, command), _)) => view.lives.exec(key, command),
                Some((Record::Exit(life), _)) => view.lives.exit(life),
                Some((Record::Freed(freed), _)) => {
                    view.table.remove_process(freed.key);
                    view.lives.freed(freed);
                }
                Some((Record::Sweep(sweep), _)) => end = Some(sweep),
                Some((Record::Thread(..), _)) | None => {}
            }
        }
        end
    }

    fn take_sweep(&mut self, view: &mut View) -> Option<Sweep> {
        for _ in 0..LOOKS_MAX {
            if let Some(sweep) = self.take(view) {
                return Some(sweep);
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// Adds a process to the table. A running process has a record for each of its running threads, so their
/// unaccounted CPU time is added up.
fn set(view: &mut View, mut process: Process, open_ns: u64, running: &mut Vec<(u32, u64)>) {
    if record::is_removed(&process) {
        return;
    }
    if open_ns > 0 {
        let pid = process.key.pid;
        let mut of_process = running.iter_mut().filter(|(other, _)| *other == pid);
        let open_ns = match of_process.next() {
            Some((_, sum)) => {
                *sum += open_ns;
                *sum
            }
            None => {
                running.push((pid, open_ns));
                open_ns
            }
        };
        process.usage.cpu_ns += open_ns;
    }
    view.table.set(process);
}

impl Source for ChangedTasks {
    fn kind(&self) -> Kind {
        Kind::BpfChanged
    }

    fn sweep(&mut self, number: u64, view: &mut View) -> Result<(), Error> {
        let begin_ns = boot_ns();
        let must_walk = self.walked_ns == 0 || begin_ns.saturating_sub(self.walked_ns) >= WALK_AFTER_NS;
        self.running.clear();
        view.table.begin(number, begin_ns, if must_walk { Coverage::All } else { Coverage::Changes });
        self.programs.sweep_changed()?;
        let end = self.take_sweep(view);
        if must_walk {
            self.tasks.walk(&mut self.programs)?;
            self.tasks.move_into(&mut view.table);
            self.hidden.add_to(&mut view.table);
            self.walked_ns = begin_ns;
        }
        view.table.end(boot_ns().saturating_sub(begin_ns));
        let is_whole = match end {
            Some(end) => {
                let lost = |sweep: &Sweep| sweep.lost_marks + sweep.lost_records;
                let is_whole = lost(&end) == lost(&self.last);
                self.last = end;
                is_whole
            }
            None => {
                self.lost_ends += 1;
                false
            }
        };
        if !is_whole {
            self.walked_ns = 0;
        }
        Ok(())
    }

    fn drain(&mut self, view: &mut View) {
        // The end of a sweep cannot be there: the sweep itself has read it, or it was lost.
        self.take(view);
    }

    fn lost_total(&self) -> u64 {
        self.last.lost_marks + self.last.lost_records + self.lost_ends
    }
}
