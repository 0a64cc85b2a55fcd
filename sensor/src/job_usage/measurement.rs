//! Measurement of a job on this host: the counters of its processes, and the figures that follow.
//!
//! Pure. Rules: a counter of a process counts from the moment at which it served the job, which is its start unless
//! it served another one; what ended processes used is added up once. Where the job has a control group of its own,
//! CPU time and memory are those of the group, as far as it has seen more. Without one, the most memory is the largest
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
}

impl GroupReading {
    /// The newer of two readings: each amount only grows, except memory, which is that of `other`.
    #[must_use]
    pub fn newest(self, other: GroupReading) -> GroupReading {
        GroupReading {
            cpu_us: self.cpu_us.max(other.cpu_us),
            system_us: self.system_us.max(other.system_us),
            peak_memory: self.peak_memory.max(other.peak_memory),
            memory_kills: self.memory_kills.max(other.memory_kills),
            throttled_us: self.throttled_us.max(other.throttled_us),
            memory: other.memory.or(self.memory),
        }
    }
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
}

impl Measurement {
    /// Adds the memory and threads of the moment, which lasted for `secs`.
    pub fn moment(&mut self, now: Time, secs: f64) {
        self.until = self.until.max(now);
        self.peak_rss_bytes = self.peak_rss_bytes.max(self.rss_bytes);
        self.peak_threads = self.peak_threads.max(self.threads);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let bytes = self.rss_bytes as f64;
        self.byte_secs += bytes * secs;
        self.secs += secs;
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
        let all = [
            (Figure::CpuTime, Some(self.cpu_us())),
            (Figure::SystemTime, Some((total.system_ns / 1000).max(group.system_us.unwrap_or(0)))),
            (Figure::PeakMemory, Some(group.peak_memory.unwrap_or(self.peak_rss_bytes))),
            (Figure::MeanMemory, mean),
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
        measured.lacks_io = true;
        assert_eq!(of(&measured, Figure::ReadBytes), None);
    }
}
