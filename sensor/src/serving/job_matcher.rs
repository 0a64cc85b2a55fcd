//! Matching of a query's call or job with the job that a process serves.
//!
//! Pure. Rule: a number matches every call that has it, whatever the product, under any of its names, and the
//! parts of a whole with that number. Not here: which process serves which job (`job_table`).

use super::job_names;
use crate::call_ids;
use compact_str::CompactString;
use log_filters::join::Joiner;

/// Separators between the number of an array or cluster of jobs and that of one of its jobs.
const PART_MARKS: [char; 3] = ['_', '.', '['];

/// Call or job of a query, with the names that are known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobMatcher {
    ids: Vec<CompactString>,
    number: Option<CompactString>,
}

impl JobMatcher {
    /// Matches the call with this id.
    #[must_use]
    pub fn call(joiner: &Joiner, id: &str) -> JobMatcher {
        let mut ids = joiner.ids(id);
        ids.push(id.into());
        JobMatcher { ids, number: None }
    }

    /// Matches all calls of this job.
    #[must_use]
    pub fn job(joiner: &Joiner, number: &str) -> JobMatcher {
        let known = call_ids::of_job(joiner, number);
        let mut ids: Vec<CompactString> = known.iter().flat_map(|id| joiner.ids(id)).collect();
        ids.sort();
        // A number with its product is the id of a call.
        ids.push(number.into());
        JobMatcher { ids, number: Some(number.into()) }
    }

    /// Returns whether a job that a process serves, `PRODUCT:JOB`, matches.
    #[must_use]
    pub fn is(&self, joiner: &Joiner, served: &str) -> bool {
        let bears = |number: &CompactString| bears(served, "", number);
        self.number.as_ref().is_some_and(bears)
            || self.ids.iter().any(|id| job_names::is_of(served, id))
            || joiner.ids(served).first().is_some_and(|present| self.ids.contains(present))
    }
}

/// Returns whether a call with this id and job has the number, or is a part of a whole that has it.
#[must_use]
pub fn bears(id: &str, job: &str, number: &str) -> bool {
    let name = id.split_once(':').map_or("", |(_, name)| name);
    let is_it = |name: &str| {
        let rest = name.strip_prefix(number);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PART_MARKS) || is_life(rest))
    };
    !number.is_empty() && (is_it(name) || is_it(job))
}

/// Returns whether `rest` is the suffix that distinguishes calls whose number was used again.
fn is_life(rest: &str) -> bool {
    rest.strip_prefix('#').is_some_and(|life| life.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_meant_by_its_number_and_a_call_by_its_id() {
        let joiner = Joiner::default();
        for (number, served, expected) in [
            ("17", "slurm:17", true),
            ("17", "torque:17.server", true),
            ("17", "slurm:171", false),
            ("slurm:17", "slurm:17", true),
            ("slurm:17", "torque:17", false),
            ("94", "slurm:94_1", true),
        ] {
            assert_eq!(JobMatcher::job(&joiner, number).is(&joiner, served), expected, "{number} {served}");
        }
        for (id, served, expected) in [
            ("slurm/alpha:17#2", "slurm:17", true),
            ("slurm:17", "torque:17", false),
            ("17", "slurm:17", false),
        ] {
            assert_eq!(JobMatcher::call(&joiner, id).is(&joiner, served), expected, "{id} {served}");
        }
        assert!(bears("slurm/alpha:17#2", "", "17"));
    }
}
