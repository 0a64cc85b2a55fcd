//! Summary of the domain's calls (visPerf section 3.3: "the representative sensor's summarised information").
//!
//! Pure.

use compact_str::CompactString;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;

/// Number of calls by state and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls that are known and not running yet.
    pub waiting: u64,
    /// Calls that are running.
    pub running: u64,
    /// Calls that have ended.
    pub ended: u64,
    /// Ended calls by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Running and waiting calls by user.
    pub users: BTreeMap<CompactString, u64>,
    /// Running calls by host.
    pub hosts: BTreeMap<CompactString, u64>,
}

/// Counts calls.
pub fn calls(calls: impl IntoIterator<Item = Call>) -> CallCounts {
    let mut all = CallCounts::default();
    for call in calls {
        match call.state {
            State::Waiting => all.waiting += 1,
            State::Running => all.running += 1,
            State::Ended => all.ended += 1,
        }
        if call.state == State::Ended {
            *all.outcomes.entry(call.outcome.unwrap_or(Outcome::Finished)).or_default() += 1;
            continue;
        }
        if !call.user.is_empty() {
            *all.users.entry(call.user).or_default() += 1;
        }
        if call.state == State::Running {
            for host in call.hosts {
                *all.hosts.entry(host).or_default() += 1;
            }
        }
    }
    all
}

/// Returns the `most` entries with the largest counts, largest first, by name where equal.
#[must_use]
pub fn top(counts: &BTreeMap<CompactString, u64>, most: usize) -> Vec<(CompactString, u64)> {
    let mut all: Vec<_> = counts.iter().map(|(name, count)| (name.clone(), *count)).collect();
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_ordered_and_cut() {
        let counts = [("a", 1), ("b", 3), ("c", 3)].map(|(name, count)| (CompactString::from(name), count));
        let counts = BTreeMap::from(counts);
        assert_eq!(top(&counts, 2), [("b".into(), 3), ("c".into(), 3)]);
    }
}
