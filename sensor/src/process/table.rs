//! Table of the processes of this host as of the last sweep, each at a fixed position, with the changes of
//! that sweep.
//!
//! Pure: a source reports what it saw between [`Table::begin`] and [`Table::end`]. Invariants: at most one
//! process per process id; another process takes a position only after the first was removed; CPU time never
//! goes back, although the unaccounted time of a running thread is only estimated; [`Table::changed`]
//! contains every position that differs from the previous sweep, once, in ascending order.
//! Not here: reading the kernel (`procfs`, `bpf`), processes that live only between two sweeps (`lives`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use wire::process::delta::{PROCESSES_MAX, Sweep};
use wire::process::{Process, ProcessKey};

/// What a sweep implies for the processes that it does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// They are gone.
    All,
    /// They are unchanged.
    Changes,
}

#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Option<Process>>,
    marks: Vec<Mark>,
    /// Position by process id.
    places: HashMap<u32, u32>,
    /// Free positions, the lowest first, so that the table stays short.
    free: BinaryHeap<Reverse<u32>>,
    changed: Vec<u32>,
    /// Positions of processes that were removed since the last sweep ended.
    between: Vec<u32>,
    sweep: Sweep,
    coverage: Option<Coverage>,
    refused_total: u64,
}

/// Numbers of the last sweeps that saw and changed a position.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    seen: u64,
    changed: u64,
}

impl Table {
    /// Starts a sweep. Its number must be higher than all before.
    pub fn begin(&mut self, number: u64, begin_ns: u64, coverage: Coverage) {
        self.changed.clear();
        self.sweep = Sweep { number, begin_ns, took_ns: 0 };
        self.coverage = Some(coverage);
        for place in std::mem::take(&mut self.between) {
            self.mark_changed(place);
        }
    }

    /// Reports a process. If it is reported twice in a sweep, the later report counts.
    pub fn set(&mut self, mut process: Process) {
        let number = self.sweep.number;
        if let Some(place) = self.places.get(&process.key.pid).copied() {
            let row = self.rows[place as usize].as_mut().expect("a number leads to a process");
            if row.key == process.key {
                self.marks[place as usize].seen = number;
                process.usage.cpu_ns = process.usage.cpu_ns.max(row.usage.cpu_ns);
                if *row != process {
                    *row = process;
                    self.mark_changed(place);
                }
                return;
            }
            self.remove(place);
        }
        if let Some(place) = self.take_place() {
            self.places.insert(process.key.pid, place);
            self.rows[place as usize] = Some(process);
            self.marks[place as usize].seen = number;
            self.mark_changed(place);
        }
    }

    /// Reports that a process is unchanged; `false` if it is not in the table.
    pub fn is_as_it_was(&mut self, key: ProcessKey) -> bool {
        let place = self.place(key);
        if let Some(place) = place {
            self.marks[place as usize].seen = self.sweep.number;
        }
        place.is_some()
    }

    /// Removes a process. Between two sweeps this counts for the next one.
    pub fn remove_process(&mut self, key: ProcessKey) {
        if let Some(place) = self.place(key) {
            self.remove(place);
        }
    }

    /// Ends the sweep.
    pub fn end(&mut self, took_ns: u64) {
        self.sweep.took_ns = took_ns;
        if self.coverage == Some(Coverage::All) {
            for place in 0..self.rows.len() {
                if self.rows[place].is_some() && self.marks[place].seen != self.sweep.number {
                    self.remove(u32::try_from(place).expect("a place fits in 32 bits"));
                }
            }
        }
        self.coverage = None;
        self.changed.sort_unstable();
        while self.rows.last().is_some_and(Option::is_none) {
            self.rows.pop();
        }
    }

    /// The last sweep, or the one under way.
    #[must_use]
    pub fn sweep(&self) -> Sweep {
        self.sweep
    }

    /// The processes by position.
    #[must_use]
    pub fn rows(&self) -> &[Option<Process>] {
        &self.rows
    }

    /// Number of processes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The process with this id.
    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&Process> {
        let place = self.places.get(&pid)?;
        self.rows[*place as usize].as_ref()
    }

    /// Whether the sweep under way has reported a process with this id.
    #[must_use]
    pub fn has_seen(&self, pid: u32) -> bool {
        let place = self.places.get(&pid);
        place.is_some_and(|place| self.marks[*place as usize].seen == self.sweep.number)
    }

    /// Positions that the last sweep changed, in ascending order. A position may be beyond the end of
    /// [`Table::rows`].
    #[must_use]
    pub fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Positions that sweeps after `number` changed, in ascending order.
    pub fn changed_since(&self, number: u64) -> impl Iterator<Item = usize> + Clone {
        self.marks.iter().enumerate().filter(move |(_, mark)| mark.changed > number).map(|(place, _)| place)
    }

    /// Whether a sweep after `number` changed this position.
    #[must_use]
    pub fn has_changed_since(&self, number: u64, place: usize) -> bool {
        self.marks.get(place).is_some_and(|mark| mark.changed > number)
    }

    /// Processes for which there was no position, since the start; a process counts again in each sweep.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused_total
    }

    /// Position of a process.
    #[must_use]
    pub fn place(&self, key: ProcessKey) -> Option<u32> {
        let place = *self.places.get(&key.pid)?;
        let row = self.rows[place as usize].as_ref()?;
        (row.key == key).then_some(place)
    }

    fn take_place(&mut self) -> Option<u32> {
        if let Some(Reverse(place)) = self.free.pop() {
            if place as usize >= self.rows.len() {
                self.rows.resize(place as usize + 1, None);
            }
            return Some(place);
        }
        let place = self.marks.len();
        if place >= PROCESSES_MAX {
            self.refused_total += 1;
            return None;
        }
        self.rows.resize(place + 1, None);
        self.marks.push(Mark::default());
        Some(u32::try_from(place).expect("below the most processes"))
    }

    fn remove(&mut self, place: u32) {
        if let Some(row) = self.rows[place as usize].take() {
            self.places.remove(&row.key.pid);
            self.free.push(Reverse(place));
            match self.coverage {
                Some(_) => self.mark_changed(place),
                None => self.between.push(place),
            }
        }
    }

    fn mark_changed(&mut self, place: u32) {
        let mark = &mut self.marks[place as usize];
        if mark.changed != self.sweep.number {
            mark.changed = self.sweep.number;
            self.changed.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::process::delta::{Decoder, Encoder};

    fn process(pid: u32, start_ns: u64, cpu_ns: u64) -> Process {
        let mut process = Process { key: ProcessKey { pid, start_ns }, ..Process::default() };
        process.usage.cpu_ns = cpu_ns;
        process
    }

    fn sweep(table: &mut Table, number: u64, coverage: Coverage, processes: &[Process]) -> Vec<u32> {
        table.begin(number, number * 1000, coverage);
        processes.iter().for_each(|process| table.set(process.clone()));
        table.end(1);
        table.changed().to_vec()
    }

    #[test]
    fn a_full_sweep_drops_what_it_does_not_mention_and_one_of_changes_does_not() {
        let mut table = Table::default();
        let all = [process(1, 0, 5), process(7, 3, 0)];
        assert_eq!(sweep(&mut table, 1, Coverage::All, &all), [0, 1]);
        assert_eq!(sweep(&mut table, 2, Coverage::Changes, &[process(7, 3, 1)]), [1]);
        assert_eq!(table.len(), 2);
        assert_eq!(
            sweep(&mut table, 3, Coverage::All, &[process(7, 3, 1)]),
            [0],
            "only the one that is gone"
        );
        assert_eq!((table.get(1), table.len()), (None, 1));
    }

    #[test]
    fn a_recycled_number_is_another_process() {
        let mut table = Table::default();
        sweep(&mut table, 1, Coverage::All, &[process(7, 3, 900)]);
        sweep(&mut table, 2, Coverage::Changes, &[process(7, 8, 1)]);
        let row = table.get(7).expect("it is there");
        assert_eq!((row.key.start_ns, row.usage.cpu_ns, table.len()), (8, 1, 1));
    }

    #[test]
    fn cpu_time_never_goes_back() {
        let mut table = Table::default();
        sweep(&mut table, 1, Coverage::All, &[process(7, 3, 100), process(7, 3, 120)]);
        assert!(
            sweep(&mut table, 2, Coverage::Changes, &[process(7, 3, 110)]).is_empty(),
            "as it was reckoned"
        );
        assert_eq!(table.get(7).expect("it is there").usage.cpu_ns, 120);
    }

    #[test]
    fn places_are_used_again_and_the_other_end_follows() {
        let mut table = Table::default();
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut dice = 7_u64;
        for number in 1..300 {
            table.begin(number, number, if number % 9 == 0 { Coverage::All } else { Coverage::Changes });
            for _ in 0..20 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let pid = u32::try_from(dice >> 59).expect("small");
                match dice >> 40 & 3 {
                    0 => table.remove_process(process(pid, dice >> 50 & 1, 0).key),
                    _ => table.set(process(pid, dice >> 50 & 1, dice >> 33)),
                }
            }
            table.end(1);
            let mut frame = Vec::new();
            let changed = table.changed().iter().map(|place| *place as usize);
            encoder.changes(table.sweep(), table.rows(), changed, &mut frame);
            decoder.read(&frame).expect("the next frame");
            let rows = |rows: &[Option<Process>]| rows.iter().flatten().cloned().collect::<Vec<_>>();
            assert_eq!(rows(decoder.rows()), rows(table.rows()), "sweep {number}");
            assert_eq!(table.rows().iter().flatten().count(), table.len());
            assert!(table.rows().len() <= 32);
        }
    }

    #[test]
    fn what_ends_between_two_sweeps_is_reported_by_the_next() {
        let mut table = Table::default();
        sweep(&mut table, 1, Coverage::All, &[process(1, 0, 0), process(2, 0, 0)]);
        table.remove_process(process(1, 0, 0).key);
        assert_eq!(table.len(), 1);
        assert_eq!(sweep(&mut table, 2, Coverage::Changes, &[]), [0]);
        assert_eq!(table.changed_since(1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_rare_reader_receives_all_that_changed_meanwhile() {
        let mut table = Table::default();
        sweep(&mut table, 1, Coverage::All, &[process(1, 0, 0), process(2, 0, 0), process(3, 0, 0)]);
        sweep(&mut table, 2, Coverage::Changes, &[process(3, 0, 1)]);
        sweep(&mut table, 3, Coverage::Changes, &[process(1, 0, 1)]);
        assert_eq!(table.changed_since(1).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(table.changed_since(2).collect::<Vec<_>>(), [0]);
    }
}
