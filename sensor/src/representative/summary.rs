//! The domain in a few figures (visPerf section 3.3: "the representative sensor's summarised information").
//!
//! Pure.

use compact_str::CompactString;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;

/// A metric over all hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: CompactString,
    /// Its unit.
    pub unit: CompactString,
    /// Sum of all values.
    pub sum: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// How many values.
    pub count: u64,
}

impl Metric {
    /// Mean of all values.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of hosts are small")]
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

/// Metrics by name over their values; what is no number is left out.
pub fn metrics(values: impl IntoIterator<Item = (CompactString, CompactString, f64)>) -> Vec<Metric> {
    let mut all: BTreeMap<CompactString, Metric> = BTreeMap::new();
    for (name, unit, value) in values {
        if !value.is_finite() {
            continue;
        }
        let fresh = || Metric { name: name.clone(), unit, sum: 0.0, min: value, max: value, count: 0 };
        let metric = all.entry(name.clone()).or_insert_with(fresh);
        metric.sum += value;
        metric.min = metric.min.min(value);
        metric.max = metric.max.max(value);
        metric.count += 1;
    }
    all.into_values().collect()
}

/// Calls by where they stand and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Known, not running.
    pub waiting: u64,
    /// At work.
    pub running: u64,
    /// Over.
    pub ended: u64,
    /// Of those over, by how.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Running and waiting calls by user.
    pub users: BTreeMap<CompactString, u64>,
    /// Running calls by host.
    pub hosts: BTreeMap<CompactString, u64>,
}

/// Count calls.
pub fn calls(calls: impl IntoIterator<Item = Call>) -> Calls {
    let mut all = Calls::default();
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

/// The `most` entries with the largest counts, largest first, by name where equal.
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
    fn values_come_together_by_name() {
        let values = [("load", 1.0), ("load", 3.0), ("other", f64::NAN), ("load", -1.0)];
        let all = metrics(values.map(|(name, value)| (name.into(), "".into(), value)));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].sum, all[0].min, all[0].max, all[0].count), (3.0, -1.0, 3.0, 3));
        assert_eq!(all[0].mean(), 1.0);
    }

    #[test]
    fn the_top_is_ordered_and_cut() {
        let counts = [("a", 1), ("b", 3), ("c", 3)].map(|(name, count)| (CompactString::from(name), count));
        let counts = BTreeMap::from(counts);
        assert_eq!(top(&counts, 2), [("b".into(), 3), ("c".into(), 3)]);
    }
}
