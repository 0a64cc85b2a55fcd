//! Collector of minutes: what every process used in a minute, and which of them used most.
//!
//! Pure: takes sweeps and the time of the calendar. Rule: usage is the difference of a process's counters over the minute; a
//! process that started in it has used all of its counters. Of a process that was there before and was not seen, nothing is
//! known in its first minute. Not here: command lines (`worker`).

use super::minute::{ProcessMinute, ProcessRow};
use crate::process::source::View;
use compact_str::CompactString;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use wire::process::{Life, Process, ProcessKey, Usage};
use wire::time::Time;

/// Processes of a minute by each measure.
pub const TOP: usize = 20;

/// Length of a minute, in microseconds.
const MINUTE_MICROS: i64 = 60_000_000;

/// Ended processes of a minute in memory: beyond, those that used least are dropped.
const ENDED_MAX: usize = 1024;

/// Longest command line that is stored, in bytes.
pub const COMMAND_LEN_MAX_BYTES: usize = 512;

/// Start times are as exact as their source: hundredths of a second.
const SLACK_NS: u64 = 20_000_000;

/// Collector of minutes.
#[derive(Debug)]
pub struct Collector {
    booted: Time,
    open: Option<Open>,
    /// Number of the next ended process.
    lives_next: Option<u64>,
}

/// The minute under way.
#[derive(Debug)]
struct Open {
    /// Minutes since 1970.
    number: i64,
    /// When it started, in nanoseconds since boot.
    begin_ns: u64,
    /// Counters at its start.
    before: HashMap<ProcessKey, Counters>,
    ended: Vec<ProcessRow>,
    missed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    cpu_ns: u64,
    io_bytes: Option<(u64, u64)>,
}

impl From<&Usage> for Counters {
    fn from(usage: &Usage) -> Counters {
        Counters { cpu_ns: usage.cpu_ns, io_bytes: usage.io.map(|io| (io.read_bytes, io.written_bytes)) }
    }
}

impl Counters {
    fn minus(self, before: Counters) -> Counters {
        let io =
            |now: (u64, u64), then: (u64, u64)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
        Counters {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            io_bytes: self.io_bytes.map(|now| io(now, before.io_bytes.unwrap_or_default())),
        }
    }
}

impl Collector {
    /// Creates a collector on a host that was booted then.
    #[must_use]
    pub fn new(booted: Time) -> Collector {
        Collector { booted, open: None, lives_next: None }
    }

    /// Takes in a sweep that was made at `now`; returns the minute before, if it is over.
    pub fn sweep(&mut self, view: &View, now: Time) -> Option<ProcessMinute> {
        let number = now.micros().div_euclid(MINUTE_MICROS);
        let next = self.lives_next.replace(view.lives.next()).unwrap_or_else(|| view.lives.next());
        let Some(open) = &mut self.open else {
            self.open = Some(Open::begin(number, view));
            return None;
        };
        open.take_ended(view, next);
        if open.number == number {
            return None;
        }
        let over = self.open.replace(Open::begin(number, view))?;
        Some(over.end(view, self.booted))
    }
}

impl Open {
    fn begin(number: i64, view: &View) -> Open {
        let live = view.table.rows().iter().flatten();
        let before = live.map(|process| (process.key, Counters::from(&process.usage))).collect();
        let begin_ns = view.table.sweep().begin_ns;
        Open { number, begin_ns, before, ended: Vec::new(), missed: 0 }
    }

    /// What was used since the minute began; `None` if it is not known.
    fn used(&self, key: ProcessKey, usage: &Usage) -> Option<Counters> {
        match self.before.get(&key) {
            Some(before) => Some(Counters::from(usage).minus(*before)),
            None => (key.start_ns + SLACK_NS >= self.begin_ns).then(|| usage.into()),
        }
    }

    fn take_ended(&mut self, view: &View, next: u64) {
        let (lives, missed) = view.lives.since(next);
        self.missed += missed;
        for life in lives {
            match self.row_of_life(life) {
                Some(row) => self.ended.push(row),
                None => self.missed += 1,
            }
            if self.ended.len() > ENDED_MAX {
                self.keep_largest();
            }
        }
    }

    fn keep_largest(&mut self) {
        let kept = top(&self.ended.iter().map(Measures::from).collect::<Vec<_>>());
        let ended = std::mem::take(&mut self.ended).into_iter().enumerate();
        self.ended = ended.filter(|(at, _)| kept.contains(at)).map(|(_, row)| row).collect();
    }

    fn row_of_life(&self, life: &Life) -> Option<ProcessRow> {
        let used = self.used(life.key, life.usage.as_ref()?)?;
        Some(ProcessRow {
            key: life.key,
            parent: life.parent,
            uid: life.uid,
            name: life.name.clone(),
            command: shortened(&life.command),
            cpu_ns: used.cpu_ns,
            rss_kib: 0,
            io_bytes: used.io_bytes,
            end: Some((life.end_ns, life.code)),
            job: None,
        })
    }

    fn end(self, view: &View, booted: Time) -> ProcessMinute {
        let live = || view.table.rows().iter().flatten();
        let measures_of = |process: &Process| {
            let used = self.used(process.key, &process.usage).unwrap_or_default();
            Measures { cpu_ns: used.cpu_ns, rss_kib: process.rss_kib, io_bytes: sum(used.io_bytes) }
        };
        let mut measures: Vec<Measures> = self.ended.iter().map(Measures::from).collect();
        measures.extend(live().map(measures_of));
        let kept = top(&measures);
        let row_of = |process: &Process| {
            let used = self.used(process.key, &process.usage).unwrap_or_default();
            ProcessRow {
                key: process.key,
                parent: process.parent,
                uid: process.uid,
                name: process.name.clone(),
                command: view.lives.command(process.key).map(|text| shortened(text)).unwrap_or_default(),
                cpu_ns: used.cpu_ns,
                rss_kib: process.rss_kib,
                io_bytes: used.io_bytes,
                end: None,
                job: None,
            }
        };
        let ended = self.ended.len();
        let living = live().enumerate().filter(|(at, _)| kept.contains(&(ended + at)));
        let living: Vec<ProcessRow> = living.map(|(_, process)| row_of(process)).collect();
        let covered_ns = view.table.sweep().begin_ns.saturating_sub(self.begin_ns);
        let ended =
            self.ended.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, row)| row);
        ProcessMinute {
            start: Time::from_micros(self.number.saturating_mul(MINUTE_MICROS)),
            covered_us: covered_ns / 1000,
            booted,
            processes: u32::try_from(view.table.len()).unwrap_or(u32::MAX),
            missed: self.missed,
            rows: ended.chain(living).collect(),
        }
    }
}

/// What processes are chosen by.
#[derive(Clone, Copy, Debug, Default)]
struct Measures {
    cpu_ns: u64,
    rss_kib: u64,
    io_bytes: u64,
}

impl From<&ProcessRow> for Measures {
    fn from(row: &ProcessRow) -> Measures {
        Measures { cpu_ns: row.cpu_ns, rss_kib: row.rss_kib, io_bytes: sum(row.io_bytes) }
    }
}

/// The start of a command line.
#[must_use]
pub fn shortened(command: &str) -> CompactString {
    command[..command.floor_char_boundary(COMMAND_LEN_MAX_BYTES)].into()
}

fn sum(io_bytes: Option<(u64, u64)>) -> u64 {
    io_bytes.map_or(0, |(read, written)| read.saturating_add(written))
}

/// Places of those that are among the largest by any measure.
fn top(all: &[Measures]) -> BTreeSet<usize> {
    let by: [fn(&Measures) -> u64; 3] = [|one| one.cpu_ns, |one| one.rss_kib, |one| one.io_bytes];
    let mut kept = BTreeSet::new();
    for measure in by {
        let mut places: Vec<usize> = (0..all.len()).filter(|at| measure(&all[*at]) > 0).collect();
        if places.len() > TOP {
            places.select_nth_unstable_by_key(TOP - 1, |at| Reverse(measure(&all[*at])));
            places.truncate(TOP);
        }
        kept.extend(places);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use wire::process::Io;

    const SECOND: u64 = 1_000_000_000;
    /// The start of a minute.
    const START: i64 = 1_795_737_600_000_000;

    /// A host on which process N uses N milliseconds of CPU time and N KiB of memory, and writes N bytes a second.
    struct Simulated {
        view: View,
        collector: Collector,
        secs: u64,
    }

    impl Simulated {
        fn new() -> Simulated {
            Simulated {
                view: View::default(),
                collector: Collector::new(Time::from_micros(START)),
                secs: 1000,
            }
        }

        fn sweep(&mut self, pids: &[u32]) -> Option<ProcessMinute> {
            self.secs += 1;
            let table = &mut self.view.table;
            table.begin(self.secs, self.secs * SECOND, Coverage::All);
            for pid in pids {
                table.set(process(*pid, self.secs));
            }
            table.end(0);
            let now = Time::from_micros(START + (self.secs - 1000).cast_signed() * 1_000_000);
            self.collector.sweep(&self.view, now)
        }
    }

    fn process(pid: u32, secs: u64) -> Process {
        let mut process = Process {
            key: ProcessKey { pid, start_ns: 1 },
            rss_kib: pid.into(),
            name: "work".into(),
            ..Process::default()
        };
        process.usage.cpu_ns = secs * u64::from(pid) * 1_000_000;
        process.usage.io = Some(Io { written_bytes: secs * u64::from(pid), ..Io::default() });
        process
    }

    #[test]
    fn a_minute_has_those_that_used_most_and_what_they_used_in_it() {
        let mut host = Simulated::new();
        let pids: Vec<u32> = (1..=100).collect();
        let minutes: Vec<ProcessMinute> = (0..130).filter_map(|_| host.sweep(&pids)).collect();
        let [first, second] = minutes.as_slice() else { panic!("{} minutes", minutes.len()) };
        assert_eq!((first.start.micros(), first.covered_us), (START, 59_000_000));
        assert_eq!((second.start.micros(), second.covered_us), (START + MINUTE_MICROS, 60_000_000));
        assert_eq!((second.processes, second.missed, second.rows.len()), (100, 0, TOP));
        for row in &second.rows {
            assert!(row.key.pid > 80);
            assert_eq!(row.cpu_ns, 60 * u64::from(row.key.pid) * 1_000_000);
            assert_eq!(row.io_bytes, Some((0, 60 * u64::from(row.key.pid))));
        }
    }

    #[test]
    fn a_short_life_counts_and_an_unknown_past_does_not() {
        let mut host = Simulated::new();
        host.sweep(&[1]);
        let life = |pid: u32, start_ns: u64| Life {
            key: ProcessKey { pid, start_ns },
            parent: 1,
            uid: 7,
            cgroup: None,
            name: "short".into(),
            command: "".into(),
            end_ns: start_ns + SECOND,
            code: 256,
            usage: Some(Usage { cpu_ns: SECOND, ..Usage::default() }),
        };
        host.view.lives.exit(life(500, host.secs * SECOND + 5));
        // It was there before the sensor, which did not see it.
        host.view.lives.exit(life(501, 3));
        // It starts in the minute, and lives on; so does one that was there before and was not seen.
        let minute = (0..60).find_map(|_| {
            let secs = host.secs + 1;
            let minute = host.sweep(&[1]);
            host.view.table.begin(secs * 1000, secs * SECOND, Coverage::Changes);
            host.view.table.end(0);
            minute
        });
        let minute = minute.expect("a minute is over");
        let short = minute.rows.iter().find(|row| row.key.pid == 500).expect("it used a second");
        assert_eq!((short.cpu_ns, short.uid, short.end.map(|(_, code)| code)), (SECOND, 7, Some(256)));
        assert_eq!((minute.missed, minute.rows.len()), (1, 2));
    }

    #[test]
    fn a_flood_of_short_lives_is_bounded_and_leaves_the_largest() {
        let mut host = Simulated::new();
        host.sweep(&[]);
        for second in 0..60u64 {
            for number in 0..400u32 {
                let key = ProcessKey { pid: 1000 + number, start_ns: (host.secs + 1) * SECOND + second };
                let usage = Usage { cpu_ns: second * 1000 + u64::from(number), ..Usage::default() };
                let life = Life {
                    key,
                    parent: 1,
                    uid: 0,
                    cgroup: None,
                    name: "".into(),
                    command: "".into(),
                    end_ns: 0,
                    code: 0,
                    usage: Some(usage),
                };
                host.view.lives.exit(life);
            }
            if let Some(minute) = host.sweep(&[]) {
                let least = minute.rows.iter().map(|row| row.cpu_ns).min();
                assert_eq!((minute.rows.len(), least), (TOP, Some(58 * 1000 + 380)));
                return;
            }
            let open = host.collector.open.as_ref().expect("a minute is under way");
            assert!(open.ended.len() <= ENDED_MAX);
        }
        panic!("no minute was over");
    }

    #[test]
    fn a_long_command_line_is_cut_between_characters() {
        assert_eq!(shortened(&format!("x{}", "é".repeat(400))).len(), COMMAND_LEN_MAX_BYTES - 1);
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn a_clock_that_jumps_ends_the_minute_and_says_what_it_covered() {
        let mut host = Simulated::new();
        host.sweep(&[1]);
        host.sweep(&[1]);
        let back = Time::from_micros(START - 3 * MINUTE_MICROS);
        let minute = host.collector.sweep(&host.view, back).expect("another minute");
        assert_eq!((minute.start.micros(), minute.covered_us), (START, 1_000_000));
    }
}
