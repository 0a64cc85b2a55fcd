//! Failures of a job's processes, and which of them the others passed on.
//!
//! Pure. Rules: a script that fails because a program failed ends with the status of the program, so a chain of equal
//! ends is followed from a parent down to the child that failed first. The processes that a launcher starts through a
//! daemon have another parent: below a launcher, one that just ended so is taken. What is remembered is bounded.
//! Not here: whether the job failed because of it, which its end says (`findings`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::call::failed_process::{FAILED_MAX, FailedProcess, passes_on};
use wire::process::Life;
use wire::time::Time;

/// Failures that are remembered of a job: the last ones.
const REMEMBERED_MAX: usize = 64;

/// How long after the failure of a process its launcher ends.
const LAUNCHER_ENDS_AFTER_MICROS: u64 = 5_000_000;

/// Programs that start the processes of a parallel job through daemons.
const LAUNCHERS: [&str; 9] =
    ["srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "aprun", "jsrun", "charmrun"];

/// Process that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    name: CompactString,
    pid: u32,
    parent: u32,
    code: u32,
    ended: Time,
}

impl Failure {
    /// The failure of a process that ended at this time; `None` if it did not fail.
    #[must_use]
    pub fn of(life: &Life, ended: Time) -> Option<Failure> {
        let Life { key, parent, ref name, code, .. } = *life;
        (code != 0).then(|| Failure { name: name.clone(), pid: key.pid, parent, code, ended })
    }
}

/// Failures of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    total: u64,
    last: VecDeque<Failure>,
}

impl Failures {
    /// Adds a failure.
    pub fn add(&mut self, failure: Failure) {
        self.total += 1;
        if self.last.len() >= REMEMBERED_MAX {
            self.last.pop_front();
        }
        self.last.push_back(failure);
    }

    /// Number of failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The processes that failed first, one for each way in which the others ended because of them; the last first.
    #[must_use]
    pub fn causes(&self) -> Vec<FailedProcess> {
        let mut left: Vec<&Failure> = self.last.iter().collect();
        left.sort_by_key(|failure| failure.ended);
        let mut causes: Vec<FailedProcess> = Vec::new();
        while let Some(last) = left.pop() {
            if causes.len() >= FAILED_MAX {
                break;
            }
            let mut first = last;
            while let Some(at) = below(first, &left) {
                first = left.remove(at);
            }
            if causes.iter().all(|known| !passes_on(known.passed_on, last.code)) {
                causes.push(FailedProcess {
                    name: first.name.clone(),
                    pid: first.pid,
                    code: first.code,
                    passed_on: last.code,
                    ended: first.ended,
                });
            }
        }
        causes
    }
}

/// The failure that `failure` passed on, by its place in these, which ended before; the last one.
fn below(failure: &Failure, before: &[&Failure]) -> Option<usize> {
    let is_passed_on = |other: &&&Failure| passes_on(failure.code, other.code);
    let place = |is_it: &dyn Fn(&&&Failure) -> bool| before.iter().rposition(|other| is_it(&other));
    let child = place(&|other| is_passed_on(other) && other.parent == failure.pid);
    if child.is_some() || !LAUNCHERS.contains(&failure.name.as_str()) {
        return child;
    }
    let is_just_ended = |other: &&&Failure| {
        failure.ended.micros().abs_diff(other.ended.micros()) <= LAUNCHER_ENDS_AFTER_MICROS
    };
    let has_parent_here = |other: &&&Failure| before.iter().any(|parent| parent.pid == other.parent);
    place(&|other| is_passed_on(other) && is_just_ended(other) && !has_parent_here(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(name: &str, pid: u32, parent: u32, code: u32, secs: i64) -> Failure {
        Failure { name: name.into(), pid, parent, code, ended: Time::from_micros(secs * 1_000_000) }
    }

    fn causes(all: &[Failure]) -> Vec<(String, u32, u32)> {
        let mut failures = Failures::default();
        all.iter().for_each(|failure| failures.add(failure.clone()));
        let name = |cause: FailedProcess| (cause.name.to_string(), cause.code, cause.passed_on);
        failures.causes().into_iter().map(name).collect()
    }

    const ONE: u32 = 1 << 8;

    #[test]
    fn the_end_of_a_script_is_that_of_the_program_that_failed_last_with_its_status() {
        let found = causes(&[
            failure("grep", 11, 10, ONE, 1),
            failure("test", 12, 10, 2 << 8, 2),
            failure("python3", 14, 13, ONE, 5),
            failure("time", 13, 10, ONE, 5),
            failure("slurm_script", 10, 1, ONE, 6),
        ]);
        assert_eq!(found, [("python3".into(), ONE, ONE), ("test".into(), 2 << 8, 2 << 8)]);
        let own = [failure("grep", 11, 10, ONE, 1), failure("slurm_script", 10, 1, 3 << 8, 6)];
        assert_eq!(causes(&own)[0], ("slurm_script".into(), 3 << 8, 3 << 8), "it chose the status itself");
    }

    #[test]
    fn a_signal_is_passed_on_as_a_status() {
        let found = causes(&[failure("crash", 11, 10, 11, 1), failure("bash", 10, 1, 139 << 8, 1)]);
        assert_eq!(found, [("crash".into(), 11, 139 << 8)]);
    }

    #[test]
    fn below_a_launcher_the_process_that_just_ended_so_is_taken() {
        let srun = [
            failure("probe", 19, 18, ONE, 1),
            failure("solver", 21, 20, ONE, 59),
            failure("srun", 11, 10, ONE, 60),
            failure("slurm_script", 10, 1, ONE, 60),
        ];
        assert_eq!(causes(&srun), [("solver".into(), ONE, ONE), ("probe".into(), ONE, ONE)][..1]);
        let other = [failure("solver", 21, 20, ONE, 59), failure("bash", 10, 1, ONE, 60)];
        assert_eq!(causes(&other)[0].0, "bash", "a shell starts its children itself");
    }

    #[test]
    fn few_of_many_failures_are_remembered_and_all_are_counted() {
        let mut failures = Failures::default();
        for number in 0..1000 {
            failures.add(failure("x", number, 1, (number % 200 + 1) << 8, i64::from(number)));
        }
        assert_eq!((failures.total(), failures.last.len()), (1000, REMEMBERED_MAX));
        assert_eq!(failures.causes().len(), FAILED_MAX);
    }
}
