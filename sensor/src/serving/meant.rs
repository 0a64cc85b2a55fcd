//! Which call or job is meant, and whether what a process serves is that.
//!
//! Pure. Rule: a number means every call that bears it, whatever the product, under any of its names, and the parts of a whole of
//! that number. Not here: who serves what (`known`).

use super::named;
use crate::query::chosen;
use compact_str::CompactString;
use log_filters::join::Joiner;

/// What stands between the number of an array or cluster of jobs, and that of one of its jobs.
const PART_MARKS: [char; 3] = ['_', '.', '['];

/// A call or a job, by the names that are known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// Ids of calls.
    ids: Vec<CompactString>,
    /// The number of a job.
    number: Option<CompactString>,
}

impl Meant {
    /// The call of this id.
    #[must_use]
    pub fn call(joiner: &Joiner, id: &str) -> Meant {
        let mut ids = joiner.ids(id);
        ids.push(id.into());
        Meant { ids, number: None }
    }

    /// All calls of this job.
    #[must_use]
    pub fn job(joiner: &Joiner, number: &str) -> Meant {
        let known = chosen::of_job(joiner, number);
        let mut ids: Vec<CompactString> = known.iter().flat_map(|id| joiner.ids(id)).collect();
        ids.sort();
        // With its product it is the id of a call.
        ids.push(number.into());
        Meant { ids, number: Some(number.into()) }
    }

    /// Whether a job that a process serves, `PRODUCT:JOB`, is that.
    #[must_use]
    pub fn is(&self, joiner: &Joiner, served: &str) -> bool {
        let bears = |number: &CompactString| bears(served, "", number);
        self.number.as_ref().is_some_and(bears)
            || self.ids.iter().any(|id| named::is_of(served, id))
            || joiner.ids(served).first().is_some_and(|present| self.ids.contains(present))
    }
}

/// Whether a call of this id and job bears the number, or is a part of a whole that does.
#[must_use]
pub fn bears(id: &str, job: &str, number: &str) -> bool {
    let name = id.split_once(':').map_or("", |(_, name)| name);
    let is_it = |name: &str| {
        let rest = name.strip_prefix(number);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PART_MARKS) || is_life(rest))
    };
    !number.is_empty() && (is_it(name) || is_it(job))
}

/// What tells apart calls whose number was used again.
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
            assert_eq!(Meant::job(&joiner, number).is(&joiner, served), expected, "{number} {served}");
        }
        for (id, served, expected) in [
            ("slurm/alpha:17#2", "slurm:17", true),
            ("slurm:17", "torque:17", false),
            ("17", "slurm:17", false),
        ] {
            assert_eq!(Meant::call(&joiner, id).is(&joiner, served), expected, "{id} {served}");
        }
        assert!(bears("slurm/alpha:17#2", "", "17"));
    }
}
