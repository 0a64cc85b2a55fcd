//! Amounts of a job, by which a search chooses and sorts: `cpu_efficiency < 20 %`.
//!
//! Pure. Rules: an amount that is not known fits no condition. Of other users' jobs those amounts are known that follow
//! from what a queue shows to everyone. Not here: the search itself ([`super::jobs`]), its storage (`call_store`).

mod condition;

pub use condition::{Comparison, Condition, ConditionError, conditions};

use super::UnixTime;
use super::jobs::Job;
use crate::call::State;
use crate::event::words;
use crate::time::Time;

words!(
    /// Amount of a job. The words are columns of the call history, too: they remain.
    JobAmount {
        /// Measured CPU time.
        CpuTime = "cpu_time",
        /// Measured CPU time as a share of that of the allocated CPUs.
        CpuEfficiency = "cpu_efficiency",
        /// CPU time of the allocated CPUs that was not used.
        Wasted = "wasted",
        /// Measured peak memory.
        PeakMemory = "peak_memory",
        /// That as a share of the allocated memory.
        MemoryEfficiency = "memory_efficiency",
        /// Bytes read from storage, measured.
        ReadBytes = "read_bytes",
        /// Bytes written to storage, measured.
        WrittenBytes = "written_bytes",
        /// Time from the start to the end, or until now.
        Ran = "ran",
        /// Time from the submission to the start, or until now of a job that waits.
        Waited = "waited",
        /// Allocated CPUs.
        Cpus = "cpus",
        /// Allocated hosts.
        Nodes = "nodes",
        /// Allocated GPUs.
        Gpus = "gpus",
        /// Allocated memory.
        Memory = "memory",
        /// Longest time that it may run.
        TimeLimit = "time_limit",
        /// Number of starts.
        Tries = "tries",
    }
);

/// What an amount is of, and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Share of one.
    Share,
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// Pieces.
    Count,
}

impl JobAmount {
    /// What it is of.
    #[must_use]
    pub const fn dimension(self) -> Dimension {
        match self {
            JobAmount::CpuEfficiency | JobAmount::MemoryEfficiency => Dimension::Share,
            JobAmount::CpuTime
            | JobAmount::Wasted
            | JobAmount::Ran
            | JobAmount::Waited
            | JobAmount::TimeLimit => Dimension::Time,
            JobAmount::PeakMemory | JobAmount::ReadBytes | JobAmount::WrittenBytes | JobAmount::Memory => {
                Dimension::Bytes
            }
            JobAmount::Cpus | JobAmount::Nodes | JobAmount::Gpus | JobAmount::Tries => Dimension::Count,
        }
    }

    /// Whether everyone may know it of every job.
    #[must_use]
    pub const fn is_shown_to_all(self) -> bool {
        matches!(self, JobAmount::Ran | JobAmount::Waited | JobAmount::Nodes | JobAmount::Tries)
    }

    /// Returns the amount of a job, in its unit; `None` if it is not known. `now` is for jobs that wait or run: without
    /// it, how long they do so is not known.
    #[must_use]
    pub fn of(self, job: &Job, now: Option<Time>) -> Option<f64> {
        let usage = job.usage.as_ref();
        match self {
            JobAmount::CpuTime => usage.map(|usage| usage.cpu_secs),
            JobAmount::CpuEfficiency => usage?.cpu_efficiency,
            JobAmount::Wasted => usage?.wasted_cpu_secs,
            JobAmount::PeakMemory => usage.map(|usage| float(usage.peak_memory_bytes)),
            JobAmount::MemoryEfficiency => usage?.memory_efficiency,
            JobAmount::ReadBytes => usage?.read_bytes.map(float),
            JobAmount::WrittenBytes => usage?.written_bytes.map(float),
            JobAmount::Ran => span(job.started?, job.ended, job, now),
            JobAmount::Waited => span(job.submitted?, job.started, job, now),
            JobAmount::Cpus => job.cpus.map(float),
            JobAmount::Nodes => job.nodes.map(float),
            JobAmount::Gpus => job.gpus.map(float),
            JobAmount::Memory => job.managed_memory_bytes().map(float),
            JobAmount::TimeLimit => job.time_limit_secs.map(float),
            JobAmount::Tries => Some(f64::from(job.tries)),
        }
    }
}

/// Seconds between two times, or until now of a job that has not ended.
fn span(UnixTime(from): UnixTime, to: Option<UnixTime>, job: &Job, now: Option<Time>) -> Option<f64> {
    let to = to.map(|to| to.0).or_else(|| now.filter(|_| job.state != State::Ended))?;
    Some((to.secs_f64() - from.secs_f64()).max(0.0))
}

/// What a search of jobs chooses and sorts by, besides what calls have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByAmount {
    /// Conditions that a job must meet, all of them.
    pub conditions: Vec<Condition>,
    /// Amount in whose order jobs are read, the largest first; jobs without it are left out.
    pub sort: Option<JobAmount>,
}

impl ByAmount {
    /// Whether no amount is looked at.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == ByAmount::default()
    }

    /// Whether everyone may know all amounts that it looks at, of every job.
    #[must_use]
    pub fn is_shown_to_all(&self) -> bool {
        let conditions = self.conditions.iter().map(|condition| condition.amount);
        conditions.chain(self.sort).all(JobAmount::is_shown_to_all)
    }

    /// Whether a job meets the conditions, and has the amount to sort by.
    #[must_use]
    pub fn fits(&self, job: &Job, now: Time) -> bool {
        self.conditions.iter().all(|condition| condition.fits(job, now))
            && self.sort.is_none_or(|amount| amount.of(job, Some(now)).is_some())
    }
}

#[allow(clippy::cast_precision_loss)] // amounts are below 2^53
fn float(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::job_usage::JobUsage;

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn job() -> Job {
        Job {
            state: State::Ended,
            submitted: at(10),
            started: at(40),
            ended: at(100),
            tries: 2,
            cpus: Some(4),
            nodes: Some(1),
            gpus: Some(1),
            memory_bytes: Some(1 << 30),
            time_limit_secs: Some(600),
            usage: Some(JobUsage {
                cpu_secs: 60.0,
                cpu_efficiency: Some(0.25),
                wasted_cpu_secs: Some(180.0),
                peak_memory_bytes: 1 << 28,
                memory_efficiency: Some(0.25),
                read_bytes: Some(7),
                written_bytes: Some(8),
                ..JobUsage::default()
            }),
            ..Job::default()
        }
    }

    #[test]
    fn every_amount_of_a_job_is_known_and_of_another_users_those_that_a_queue_shows() {
        let amounts = |job: &Job| -> Vec<Option<f64>> {
            JobAmount::ALL.iter().map(|amount| amount.of(job, None)).collect()
        };
        let expected = [
            60.0,
            0.25,
            180.0,
            268_435_456.0,
            0.25,
            7.0,
            8.0,
            60.0,
            30.0,
            4.0,
            1.0,
            1.0,
            1_073_741_824.0,
            600.0,
            2.0,
        ];
        assert_eq!(amounts(&job()), expected.map(Some));
        let reduced = job().reduced();
        for amount in JobAmount::ALL {
            assert_eq!(amount.of(&reduced, None).is_some(), amount.is_shown_to_all(), "{amount}");
        }
    }

    #[test]
    fn a_job_that_waits_or_runs_does_so_until_now() {
        let now = at(140).map(|time| time.0);
        let running = Job { state: State::Running, ended: None, ..job() };
        assert_eq!(JobAmount::Ran.of(&running, now), Some(100.0));
        assert_eq!(
            (JobAmount::Ran.of(&running, None), JobAmount::Waited.of(&running, None)),
            (None, Some(30.0))
        );
        let waiting = Job { state: State::Waiting, started: None, ended: None, ..job() };
        assert_eq!(
            (JobAmount::Ran.of(&waiting, now), JobAmount::Waited.of(&waiting, now)),
            (None, Some(130.0))
        );
        let cancelled = Job { started: None, ..job() };
        assert_eq!((JobAmount::Ran.of(&cancelled, now), JobAmount::Waited.of(&cancelled, now)), (None, None));
        let unknown = Job { ended: None, ..job() };
        assert_eq!(JobAmount::Ran.of(&unknown, now), None, "when it ended is not known");
    }

    #[test]
    fn a_search_by_amounts_leaves_out_what_is_not_known() {
        let now = Time::from_micros(0);
        let by = |text: &str, sort| ByAmount { conditions: conditions(text).expect("valid"), sort };
        assert!(by("cpu_efficiency < 30 % and cpus >= 4", None).fits(&job(), now));
        assert!(!by("cpu_efficiency < 30 % and cpus > 4", None).fits(&job(), now));
        let unmeasured = Job { usage: None, ..job() };
        for text in ["wasted < 1h", "wasted >= 0"] {
            assert!(!by(text, None).fits(&unmeasured, now), "{text}");
        }
        assert!(!by("cpus > 1", Some(JobAmount::Wasted)).fits(&unmeasured, now));
        assert!(by("cpus > 1", Some(JobAmount::Ran)).fits(&unmeasured, now));
        assert!(by("ran > 1m and waited > 1m", Some(JobAmount::Tries)).is_shown_to_all());
        assert!(!by("ran > 1m", Some(JobAmount::Wasted)).is_shown_to_all());
        assert!(!by("cpus > 1", None).is_shown_to_all() && ByAmount::default().is_none());
    }
}
