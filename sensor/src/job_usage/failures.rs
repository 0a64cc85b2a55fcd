//! Failures of a job's processes: the ones that are stated with its usage.
//!
//! Pure. Rule: what is remembered and stated is bounded, whatever a job does; of failures that are alike (name, parent and
//! end) the last one represents all.
//! Not here: which of them ended the job (`findings`).

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::call::failed_process::{FAILED_MAX, FailedProcess};
use wire::process::Life;
use wire::time::Time;

/// Different failures that are remembered of a job: the last ones.
const REMEMBERED_MAX: usize = 32;

/// The failure of a process that ended at this time; `None` if it did not fail.
#[must_use]
pub fn failure_of(life: &Life, ended: Time) -> Option<FailedProcess> {
    let Life { key, parent, ref name, code, .. } = *life;
    (code != 0).then(|| FailedProcess { name: name.clone(), pid: key.pid, parent, code, ended })
}

/// Failures of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    total: u64,
    last: VecDeque<FailedProcess>,
}

impl Failures {
    /// Adds a failure.
    pub fn add(&mut self, failure: FailedProcess) {
        self.total += 1;
        let kind = |one: &FailedProcess| (one.name.clone(), one.parent, one.code);
        let alike = self.last.iter().position(|known| kind(known) == kind(&failure));
        if let Some(alike) = alike {
            self.last.remove(alike);
        } else if self.last.len() >= REMEMBERED_MAX {
            self.last.pop_front();
        }
        self.last.push_back(failure);
    }

    /// Number of failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The failures that are stated, the last first.
    #[must_use]
    pub fn stated(&self) -> Vec<FailedProcess> {
        let mut all: Vec<&FailedProcess> = self.last.iter().collect();
        // Of one moment those that were read later ended later.
        all.sort_by_key(|failure| failure.ended);
        all.into_iter().rev().take(FAILED_MAX).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(name: &str, pid: u32, code: u32, secs: i64) -> FailedProcess {
        FailedProcess { name: name.into(), pid, parent: 1, code, ended: Time::from_micros(secs * 1_000_000) }
    }

    #[test]
    fn few_of_many_failures_are_stated_and_all_are_counted() {
        let mut failures = Failures::default();
        failures.add(failure("python3", 7, 1 << 8, 1));
        for number in 0..1000 {
            failures.add(failure("grep", number, 1 << 8, 2 + i64::from(number)));
        }
        assert_eq!((failures.total(), failures.last.len()), (1001, 2));
        let names: Vec<(String, u32)> =
            failures.stated().into_iter().map(|one| (one.name.to_string(), one.pid)).collect();
        assert_eq!(names, [("grep".to_owned(), 999), ("python3".to_owned(), 7)]);
        for number in 0..1000 {
            failures.add(failure("x", number, (number % 200 + 1) << 8, 2000 + i64::from(number)));
        }
        assert_eq!((failures.total(), failures.last.len()), (2001, REMEMBERED_MAX));
        assert_eq!(failures.stated().len(), FAILED_MAX);
    }
}
