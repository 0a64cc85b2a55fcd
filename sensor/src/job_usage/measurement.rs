//! Measurement of a job on this host: the counters of its processes, and the figures that follow.
//!
//! Pure. Rules: a counter of a process counts from the moment at which it served the job, which is its start unless
//! it served another one; what ended processes used is added up once. Where the job has a control group of its own,
//! CPU time and memory are those of the group, as far as it has seen more, and once it was read. Without one, the most memory is the largest
//! sum over the processes at a sweep, or that of one process which the kernel states at its end, if that is more.
//! Not here: which processes there are (`meter`).

use super::failures::Failures;
use crate::job_series::piece::Point;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::usage::{Figure, MeasuredBy};
use wire::process::{Life, Process, Usage};
use wire::time::Time;

/// Counters of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub cpu_ns: u64,
    pub system_ns: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl From<&Usage> for Counters {
    fn from(usage: &Usage) -> Counters {
        let io = usage.io.unwrap_or_default();
        Counters {
            cpu_ns: usage.cpu_ns,
            system_ns: usage.shared_out().1,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            read_bytes: io.read_bytes,
            written_bytes: io.written_bytes,
        }
    }
}

impl Counters {
    fn each(self, other: Counters, with: impl Fn(u64, u64) -> u64) -> Counters {
        Counters {
            cpu_ns: with(self.cpu_ns, other.cpu_ns),
            system_ns: with(self.system_ns, other.system_ns),
            minor_faults: with(self.minor_faults, other.minor_faults),
            major_faults: with(self.major_faults, other.major_faults),
            read_bytes: with(self.read_bytes, other.read_bytes),
            written_bytes: with(self.written_bytes, other.written_bytes),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Counters) -> Counters {
        self.each(other, u64::saturating_add)
    }

    /// The increase since `before`.
    #[must_use]
    pub fn since(self, before: Counters) -> Counters {
        self.each(before, u64::saturating_sub)
    }

    /// Without input and output: once a parent has waited for a process, the kernel counts that as its own (the `ioac` of
    /// wait_task_zombie in kernel/exit.c).
    #[must_use]
    pub fn without_io(self) -> Counters {
        Counters { read_bytes: 0, written_bytes: 0, ..self }
    }

    /// The larger of each; counters only grow, so it is the newer of two readings.
    #[must_use]
    pub fn newest(self, other: Counters) -> Counters {
        self.each(other, u64::max)
    }
}

/// What was read of a process at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub counters: Counters,
    pub rss_bytes: u64,
    pub threads: u32,
    /// Whether its input and output could be read.
    pub has_io: bool,
    /// Process id of its parent.
    pub parent: u32,
}

impl From<&Process> for Reading {
    fn from(process: &Process) -> Reading {
        Reading {
            counters: Counters::from(&process.usage),
            rss_bytes: process.rss_kib.saturating_mul(1024),
            threads: process.threads,
            has_io: process.usage.io.is_some(),
            parent: process.parent,
        }
    }
}

impl Reading {
    /// What is known of a process that has ended; `None` if its usage is not.
    #[must_use]
    pub fn of_life(life: &Life) -> Option<Reading> {
        let usage = life.usage.as_ref()?;
        let counters = Counters::from(usage);
        Some(Reading { counters, has_io: usage.io.is_some(), parent: life.parent, ..Reading::default() })
    }
}

/// What is read of the groups of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// The group of the job alone.
    #[default]
    Job,
    /// Also its limit and the groups below it: in the older hierarchies a kill for want of memory counts in the process's own group alone.
    Whole,
}

/// What was read of the control group of a job; an amount is `None` if the kernel has no file of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReading {
    pub cpu_us: Option<u64>,
    pub system_us: Option<u64>,
    pub peak_memory: Option<u64>,
    pub memory_kills: Option<u64>,
    pub throttled_us: Option<u64>,
    /// Memory of the moment.
    #[serde(skip)]
    pub memory: Option<u64>,
    /// Memory that it may have at most.
    #[serde(skip)]
    pub limit: Option<u64>,
    /// When it was read, in nanoseconds since boot.
    #[serde(skip)]
    pub read_ns: u64,
}

impl GroupReading {
    /// The newer of two readings: each amount only grows, except memory and limit, which are those of `other`.
    #[must_use]
    pub fn newest(self, other: GroupReading) -> GroupReading {
        GroupReading {
            cpu_us: self.cpu_us.max(other.cpu_us),
            system_us: self.system_us.max(other.system_us),
            peak_memory: self.peak_memory.max(other.peak_memory),
            memory_kills: self.memory_kills.max(other.memory_kills),
            throttled_us: self.throttled_us.max(other.throttled_us),
            memory: other.memory.or(self.memory),
            limit: other.limit.or(self.limit),
            read_ns: self.read_ns.max(other.read_ns),
        }
    }
}

/// Processes of a job that ended after its control group was last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// When the last one ended, in nanoseconds since boot.
    end_ns: u64,
    /// The most memory of one of them, in bytes.
    peak_bytes: u64,
}

/// Measurement of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Names of the job, the best first.
    pub jobs: Vec<CompactString>,
    /// Whether the middleware assigned the processes, by a control group.
    pub is_proved: bool,
    /// User of the processes.
    pub uid: u32,
    /// Start of the first process.
    pub started: Time,
    /// Its latest moment.
    pub until: Time,
    /// Living processes.
    pub live: u32,
    /// Processes that served it, ended ones included.
    pub processes: u64,
    /// Ended processes whose usage is unknown.
    pub missed: u64,
    /// Counters of ended processes.
    pub ended: Counters,
    /// Counters of all processes at the last report.
    pub total: Counters,
    /// Memory and threads of the living processes.
    pub rss_bytes: u64,
    pub threads: u64,
    pub peak_rss_bytes: u64,
    pub peak_threads: u64,
    /// Sum of memory by time, in byte seconds, and of the time, in seconds.
    pub byte_secs: f64,
    pub secs: f64,
    /// Whether the input and output of a process could not be read.
    pub lacks_io: bool,
    pub group: GroupReading,
    pub failures: Failures,
    #[serde(skip)]
    pub unread: Unread,
}

impl Measurement {
    /// Adds the memory and threads of the moment, which lasted for `secs`.
    pub fn moment(&mut self, now: Time, secs: f64) {
        self.until = self.until.max(now);
        self.peak_rss_bytes = self.peak_rss_bytes.max(self.rss_bytes);
        self.peak_threads = self.peak_threads.max(self.threads);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let bytes = self.group.memory.unwrap_or(self.rss_bytes) as f64;
        self.byte_secs += bytes * secs;
        self.secs += secs;
    }

    /// Takes in what was read of the control group.
    pub fn read_group(&mut self, reading: GroupReading) {
        // Of a group that is being removed some files are gone.
        let read_ns = if reading.peak_memory.is_some() { reading.read_ns } else { 0 };
        self.group = self.group.newest(GroupReading { read_ns, ..reading });
        if self.unread.end_ns <= read_ns {
            self.unread = Unread::default();
        }
    }

    /// Takes in the most memory that a process had, which ended at this time in nanoseconds since boot.
    pub fn process_peak(&mut self, end_ns: u64, peak_bytes: u64) {
        self.peak_rss_bytes = self.peak_rss_bytes.max(peak_bytes);
        if end_ns > self.group.read_ns {
            let Unread { end_ns: before_ns, peak_bytes: before } = self.unread;
            self.unread = Unread { end_ns: before_ns.max(end_ns), peak_bytes: before.max(peak_bytes) };
        }
    }

    /// The most memory. The middleware removes a control group soon after the last process; if that was before it was read
    /// again, the most memory of a process that ended since counts, too, as far as the limit allows.
    fn peak_memory(&self) -> u64 {
        let GroupReading { peak_memory, limit, .. } = self.group;
        peak_memory.map_or(self.peak_rss_bytes, |peak| {
            peak.max(self.unread.peak_bytes.min(limit.unwrap_or(u64::MAX)))
        })
    }

    /// The measurement as a point of its series; `total` must have been set.
    #[must_use]
    pub fn point(&self, time: Time) -> Point {
        Point {
            time: Time::from_micros(time.micros() / 1000 * 1000),
            cpu_us: self.cpu_us(),
            memory_bytes: self.group.memory.unwrap_or(self.rss_bytes) / 1024 * 1024,
            processes: u64::from(self.live),
            threads: self.threads,
            read_bytes: self.total.read_bytes,
            written_bytes: self.total.written_bytes,
        }
    }

    fn cpu_us(&self) -> u64 {
        (self.total.cpu_ns / 1000).max(self.group.cpu_us.unwrap_or(0))
    }

    /// Where CPU time and memory are from.
    #[must_use]
    pub fn by(&self) -> MeasuredBy {
        match self.group.cpu_us.or(self.group.peak_memory) {
            Some(_) => MeasuredBy::ControlGroup,
            None => MeasuredBy::Processes,
        }
    }

    /// The figures; `total` must have been set.
    #[must_use]
    pub fn figures(&self) -> Vec<(Figure, u64)> {
        let Measurement { total, group, .. } = self;
        let some = |number: u64| (number > 0).then_some(number);
        let io = |amount: u64| (!self.lacks_io).then_some(amount);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of bytes")]
        let mean = (self.secs > 0.0).then(|| (self.byte_secs / self.secs) as u64);
        let peak = self.peak_memory();
        let all = [
            (Figure::CpuTime, Some(self.cpu_us())),
            (Figure::SystemTime, Some((total.system_ns / 1000).max(group.system_us.unwrap_or(0)))),
            (Figure::PeakMemory, Some(peak)),
            // Before the group was first read, the moment had the sum over the processes.
            (Figure::MeanMemory, mean.map(|mean| mean.min(peak))),
            (Figure::Processes, Some(self.processes)),
            (Figure::PeakThreads, Some(self.peak_threads)),
            (Figure::MinorFaults, Some(total.minor_faults)),
            (Figure::MajorFaults, Some(total.major_faults)),
            (Figure::ReadBytes, io(total.read_bytes)),
            (Figure::WrittenBytes, io(total.written_bytes)),
            (Figure::MemoryKills, group.memory_kills),
            (Figure::ThrottledTime, group.throttled_us),
            (Figure::Missed, some(self.missed)),
            (Figure::Failed, some(self.failures.total())),
        ];
        all.into_iter().filter_map(|(figure, amount)| Some((figure, amount?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_control_group_where_it_has_seen_more() {
        let mut measured = Measurement {
            total: Counters { cpu_ns: 5_000_000, ..Counters::default() },
            rss_bytes: 100,
            processes: 2,
            ..Measurement::default()
        };
        measured.moment(Time::default(), 1.0);
        measured.rss_bytes = 300;
        measured.moment(Time::default(), 1.0);
        measured.rss_bytes = 0;
        let of = |measured: &Measurement, figure: Figure| {
            measured.figures().into_iter().find(|(known, _)| *known == figure).map(|(_, amount)| amount)
        };
        assert_eq!(of(&measured, Figure::CpuTime), Some(5000));
        assert_eq!(
            (of(&measured, Figure::PeakMemory), of(&measured, Figure::MeanMemory)),
            (Some(300), Some(200))
        );
        assert_eq!((of(&measured, Figure::MemoryKills), measured.by()), (None, MeasuredBy::Processes));
        assert_eq!(of(&measured, Figure::Missed), None);
        let reading = GroupReading { cpu_us: Some(7000), peak_memory: Some(120), ..GroupReading::default() };
        measured.group = measured.group.newest(reading).newest(GroupReading::default());
        assert_eq!(
            (of(&measured, Figure::CpuTime), of(&measured, Figure::PeakMemory)),
            (Some(7000), Some(120))
        );
        assert_eq!(measured.by(), MeasuredBy::ControlGroup);
        assert_eq!(of(&measured, Figure::MeanMemory), Some(120), "no more than the peak");
        measured.group.memory = Some(60);
        (0..2).for_each(|_| measured.moment(Time::default(), 1.0));
        assert_eq!(of(&measured, Figure::MeanMemory), Some(120));
        (0..4).for_each(|_| measured.moment(Time::default(), 1.0));
        assert_eq!(of(&measured, Figure::MeanMemory), Some(95), "of 400 and six times 60");
        let reading = |read_ns: u64, peak: u64| {
            let (limit, peak_memory) = (Some(500), Some(peak));
            GroupReading { read_ns, limit, peak_memory, ..GroupReading::default() }
        };
        measured.read_group(reading(10, 120));
        measured.process_peak(9, 400);
        assert_eq!(of(&measured, Figure::PeakMemory), Some(120), "the group was read after its end");
        measured.process_peak(11, 400);
        assert_eq!(of(&measured, Figure::PeakMemory), Some(400));
        measured.process_peak(12, 700);
        assert_eq!(of(&measured, Figure::PeakMemory), Some(500), "the limit");
        measured.read_group(reading(11, 130));
        measured.read_group(GroupReading { read_ns: 13, ..GroupReading::default() });
        assert_eq!(of(&measured, Figure::PeakMemory), Some(500), "the last one ended later");
        measured.read_group(reading(14, 130));
        assert_eq!(of(&measured, Figure::PeakMemory), Some(130));
        measured.lacks_io = true;
        assert_eq!(of(&measured, Figure::ReadBytes), None);
    }
}
