//! Memory of a subscription: what it remembers of each process from one sample to the next, and the choice of
//! processes that follows from it.
//!
//! Pure. Rule: a process is identified by its id and start time; a process that was absent has no past. Not
//! here: the filter (`predicate`).

use super::fields::process::{ProcessView, Processes};
use super::predicate::{CompiledFilter, keep_top};
use crate::process::table::Table;
use crate::process::visibility::Visibility;
use wire::process::{Process, ProcessKey};

/// What is remembered of each process since the previous sample, by position in the table.
#[derive(Debug, Default)]
pub struct Memory {
    at_ns: u64,
    past: Vec<Past>,
    /// One value per slot of the filter, for each position.
    values: Vec<f64>,
    slots: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Past {
    key: ProcessKey,
    cpu_ns: u64,
}

/// A process that passed: its position, and its CPU usage in cores.
pub type PassedProcess = (usize, Option<f64>);

impl Memory {
    /// Discards the values of the filter, because it is another filter now.
    pub fn forget_values(&mut self) {
        self.slots = 0;
        self.values.clear();
    }

    /// Chooses the processes at `places` that are selected and pass the filter, and remembers their values.
    /// Positions that are not in `places` must not have changed since the previous sample. With a `top`, the
    /// processes come in its order, else by position. The CPU usage of a process that this memory does not
    /// know yet is `of_late`, if that is known.
    pub fn choose<'a>(
        &mut self,
        filter: &CompiledFilter<Processes>,
        (table, visibility): (&'a Table, Visibility),
        places: impl Iterator<Item = usize>,
        command: impl Fn(ProcessKey) -> Option<&'a str>,
        of_late: impl Fn(usize) -> Option<f64>,
        is_selected: impl Fn(&ProcessView<'_>) -> bool,
    ) -> Vec<PassedProcess> {
        let at_ns = table.sweep().begin_ns;
        #[allow(clippy::cast_precision_loss)] // A time between two samples.
        let secs = at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        self.make_room(filter, table.rows().len());
        let mut passed = Vec::new();
        for place in places {
            let Some(process) = table.rows().get(place).and_then(Option::as_ref) else {
                // A process that later takes this position has no past.
                if let Some(past) = self.past.get_mut(place) {
                    *past = Past::default();
                }
                continue;
            };
            let mut view = ProcessView { process, cpu: None, command: command(process.key), visibility };
            if !visibility.shows(process.uid) || !is_selected(&view) {
                continue;
            }
            view.cpu = self.take_share(place, process, at_ns).or_else(|| of_late(place));
            let past = &mut self.values[place * self.slots..(place + 1) * self.slots];
            if filter.passes(&view, past, secs, table) {
                passed.push((place, view.cpu));
            }
            filter.note_seen(&view, past);
        }
        self.at_ns = at_ns;
        if let Some((count, number)) = filter.top() {
            passed = keep_top(passed, count, |(place, cpu)| {
                let process = table.rows()[*place].as_ref()?;
                (number.get)(&ProcessView { process, cpu: *cpu, command: None, visibility })
            });
        }
        if self.slots > 0 {
            for (place, cpu) in &passed {
                let Some(process) = &table.rows()[*place] else { continue };
                let past = &mut self.values[place * self.slots..(place + 1) * self.slots];
                filter.note_sent(&ProcessView { process, cpu: *cpu, command: None, visibility }, past);
            }
        }
        passed
    }

    fn make_room(&mut self, filter: &CompiledFilter<Processes>, places: usize) {
        if self.slots != filter.slots() {
            self.slots = filter.slots();
            self.values = vec![f64::NAN; self.past.len() * self.slots];
        }
        if let Some(behind) = self.past.get_mut(places..) {
            behind.fill(Past::default());
        }
        if self.past.len() < places {
            self.past.resize(places, Past::default());
            self.values.resize(places * self.slots, f64::NAN);
        }
    }

    /// CPU usage in cores since the previous sample; for a younger process, since its start.
    #[allow(clippy::cast_precision_loss)]
    fn take_share(&mut self, place: usize, process: &Process, at_ns: u64) -> Option<f64> {
        let past = &mut self.past[place];
        let (key, cpu_ns) = (process.key, process.usage.cpu_ns);
        let before = std::mem::replace(past, Past { key, cpu_ns });
        let is_known = before.key == key;
        if !is_known {
            self.values[place * self.slots..(place + 1) * self.slots].fill(f64::NAN);
        }
        let (from_ns, from_cpu_ns) = match is_known {
            true => (self.at_ns, before.cpu_ns),
            false if self.at_ns > 0 && key.start_ns >= self.at_ns => (key.start_ns, 0),
            false => return None,
        };
        let span_ns = at_ns.checked_sub(from_ns).filter(|span| *span > 0)?;
        Some(cpu_ns.saturating_sub(from_cpu_ns) as f64 / span_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use wire::channel::expression;
    use wire::process::{Io, State};

    const MS: u64 = 1_000_000;

    struct Story {
        filter: CompiledFilter<Processes>,
        memory: Memory,
        table: Table,
        number: u64,
        of_late: Option<f64>,
    }

    impl Story {
        fn new(filter: &str) -> Story {
            let filter =
                CompiledFilter::new(&expression::filter(filter).expect("understood")).expect("known");
            Story { filter, memory: Memory::default(), table: Table::default(), number: 0, of_late: None }
        }

        /// Makes a sweep 100 ms after the previous one; returns the ids of the processes that pass.
        fn sweep(&mut self, processes: &[Process]) -> Vec<u32> {
            self.number += 1;
            self.table.begin(self.number, (1000 + 100 * self.number) * MS, Coverage::All);
            processes.iter().for_each(|process| self.table.set(process.clone()));
            self.table.end(0);
            let rows = self.table.rows().len();
            let passed = self.memory.choose(
                &self.filter,
                (&self.table, Visibility::ALL),
                0..rows,
                |_| None,
                |_| self.of_late,
                |_| true,
            );
            passed.iter().filter_map(|(place, _)| Some(self.table.rows()[*place].as_ref()?.key.pid)).collect()
        }
    }

    fn process(pid: u32, cpu_ms: u64, rss_kib: u64) -> Process {
        let mut process = Process { key: ProcessKey { pid, start_ns: 1 }, rss_kib, ..Process::default() };
        process.usage.cpu_ns = cpu_ms * MS;
        process.usage.io = Some(Io { read_bytes: cpu_ms * 1000, ..Io::default() });
        process
    }

    #[test]
    fn a_share_is_of_the_time_since_the_sample_before() {
        let mut story = Story::new("cpu > 0.5");
        assert_eq!(story.sweep(&[process(1, 0, 1), process(2, 0, 1)]), [0; 0], "nothing is known yet");
        assert_eq!(story.sweep(&[process(1, 60, 1), process(2, 40, 1)]), [1]);
        // Started 30 ms ago and busy since.
        let mut young = process(3, 25, 1);
        young.key.start_ns = 1270 * MS;
        assert_eq!(story.sweep(&[process(1, 61, 1), process(2, 140, 1), young]), [2, 3]);
        // Another process with the id of one that was busy.
        let mut other = process(2, 150, 1);
        other.key.start_ns = 2;
        assert_eq!(story.sweep(&[other]), [0; 0], "what it used is not known");
    }

    #[test]
    fn who_was_away_has_no_past() {
        let mut story = Story::new("cpu > 0.5");
        story.sweep(&[process(1, 0, 1), process(2, 0, 1)]);
        story.sweep(&[process(1, 90, 1)]);
        assert_eq!(
            story.sweep(&[process(1, 180, 1), process(2, 900, 1)]),
            [1],
            "not all that it used meanwhile"
        );
        story.sweep(&[process(2, 910, 1)]);
        assert_eq!(story.sweep(&[process(1, 900, 1), process(2, 920, 1)]), [0; 0]);
    }

    #[test]
    fn a_change_is_one_against_what_was_sent() {
        let mut story = Story::new("rss_bytes changes by 10ki");
        assert_eq!(story.sweep(&[process(1, 0, 100), process(2, 0, 100)]), [1, 2], "sent for the first time");
        assert_eq!(story.sweep(&[process(1, 0, 105), process(2, 0, 111)]), [2]);
        assert_eq!(story.sweep(&[process(1, 0, 110), process(2, 0, 112)]), [0; 0]);
        assert_eq!(story.sweep(&[process(1, 0, 111), process(2, 0, 100)]), [1, 2], "small changes add up");
    }

    #[test]
    fn growth_is_a_second() {
        let mut story = Story::new("rate of read_bytes >= 100k");
        assert_eq!(story.sweep(&[process(1, 0, 1), process(2, 0, 1)]), [0; 0]);
        assert_eq!(story.sweep(&[process(1, 10, 1), process(2, 9, 1)]), [1]);
        assert_eq!(story.sweep(&[process(1, 19, 1), process(2, 19, 1)]), [2]);
        let unreadable = Process { usage: wire::process::Usage::default(), ..process(1, 0, 1) };
        assert_eq!(story.sweep(&[unreadable]), [0; 0], "what is not known passes nothing");
        assert_eq!(story.sweep(&[process(1, 100, 1)]), [0; 0]);
    }

    #[test]
    fn texts_families_and_tops() {
        let named = |pid: u32, name: &str, parent: u32| Process {
            name: name.into(),
            parent,
            state: if pid == 3 { State::Running } else { State::Sleeping },
            ..process(pid, 0, u64::from(pid))
        };
        let all =
            [named(1, "slurmd", 0), named(2, "slurmstepd", 1), named(3, "python3", 2), named(4, "bash", 2)];
        let check =
            |filter: &str, expected: &[u32]| assert_eq!(Story::new(filter).sweep(&all), expected, "{filter}");
        check("name ~ \"^slurm\"", &[1, 2]);
        check("name !~ \"^slurm\"", &[3, 4]);
        check("state = \"running\"", &[3]);
        check("state != \"running\" and pid > 1", &[2, 4]);
        check("command ~ \"a\"", &[]);
        check("child of 2", &[3, 4]);
        check("parent of 2", &[1]);
        check("parent of 99", &[]);
        check("top 2 by rss_bytes", &[4, 3]);
        check("pid < 4 top 2 by rss_bytes", &[3, 2]);
        check("top 2 by cpu", &[]);
    }

    #[test]
    fn a_top_has_only_those_with_a_known_value() {
        let mut story = Story::new("top 2 by cpu");
        assert_eq!(story.sweep(&[process(1, 0, 1), process(2, 0, 1)]), [0; 0], "nothing is known yet");
        let joined = process(3, 500, 1);
        assert_eq!(story.sweep(&[process(1, 10, 1), process(2, 60, 1), joined]), [2, 1]);
    }

    #[test]
    fn at_first_a_share_is_that_of_late_where_it_is_known() {
        let mut story = Story { of_late: Some(0.7), ..Story::new("cpu > 0.5") };
        assert_eq!(story.sweep(&[process(1, 0, 1), process(2, 0, 1)]), [1, 2]);
        assert_eq!(story.sweep(&[process(1, 60, 1), process(2, 40, 1)]), [1], "since the sample before");
    }
}
