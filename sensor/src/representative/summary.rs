//! The domain in a few figures (visPerf section 3.3: "the representative sensor's summarised information").
//!
//! Pure.

use compact_str::CompactString;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::sample::Semantics;

/// A metric over all hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: CompactString,
    /// Its unit.
    pub unit: CompactString,
    sum: f64,
    /// Whether the values of several hosts may be added.
    pub is_additive: bool,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// How many values.
    pub count: u64,
}

impl Metric {
    /// Sum of all values, if that means anything.
    #[must_use]
    pub fn sum(&self) -> Option<f64> {
        self.is_additive.then_some(self.sum)
    }

    /// Mean of all values.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of hosts are small")]
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

/// One host's value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The metric's name.
    pub name: CompactString,
    /// Its unit.
    pub unit: CompactString,
    /// How it is to be read.
    pub semantics: Semantics,
    /// The value.
    pub value: f64,
}

impl Value {
    /// Whether it may be added to that of another host: amounts and counts may, and time spent; moments,
    /// ages, shares and states may not.
    fn is_additive(&self) -> bool {
        match (self.semantics, self.unit.as_str()) {
            (Semantics::State, _) | (_, "ratio" | "percent" | "celsius") | (Semantics::Gauge, "seconds") => {
                false
            }
            (Semantics::Counter | Semantics::Gauge, _) => true,
        }
    }
}

/// Metrics by name over their values; what is no number is left out.
pub fn metrics(values: impl IntoIterator<Item = Value>) -> Vec<Metric> {
    let mut all: BTreeMap<CompactString, Metric> = BTreeMap::new();
    for told in values {
        let is_additive = told.is_additive();
        let Value { name, unit, value, .. } = told;
        if !value.is_finite() {
            continue;
        }
        let fresh =
            || Metric { name: name.clone(), unit, sum: 0.0, is_additive, min: value, max: value, count: 0 };
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
        let all = metrics(values.map(|(name, value)| told(name, "", Semantics::Gauge, value)));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].sum(), all[0].min, all[0].max, all[0].count), (Some(3.0), -1.0, 3.0, 3));
        assert_eq!(all[0].mean(), 1.0);
    }

    fn told(name: &str, unit: &str, semantics: Semantics, value: f64) -> Value {
        Value { name: name.into(), unit: unit.into(), semantics, value }
    }

    #[test]
    fn only_what_may_be_added_has_a_sum() {
        let check = |name: &str, unit: &str, semantics, is_additive: bool| {
            let all = metrics([told(name, unit, semantics, 3.0), told(name, unit, semantics, 5.0)]);
            assert_eq!(all[0].sum(), is_additive.then_some(8.0), "{name}");
            assert_eq!((all[0].mean(), all[0].min, all[0].max), (4.0, 3.0, 5.0), "{name}");
        };
        check("node_boot_time_seconds", "seconds", Semantics::Gauge, false);
        check("node_time_seconds", "seconds", Semantics::Gauge, false);
        check("node_uptime_seconds", "seconds", Semantics::Gauge, false);
        check("cpu_used", "ratio", Semantics::Gauge, false);
        check("node_network_up", "", Semantics::State, false);
        check("node_load1", "", Semantics::Gauge, true);
        check("node_memory_MemFree_bytes", "bytes", Semantics::Gauge, true);
        check("node_pressure_cpu_waiting_seconds_total", "seconds", Semantics::Counter, true);
        check("node_forks_total", "", Semantics::Counter, true);
    }

    #[test]
    fn the_top_is_ordered_and_cut() {
        let counts = [("a", 1), ("b", 3), ("c", 3)].map(|(name, count)| (CompactString::from(name), count));
        let counts = BTreeMap::from(counts);
        assert_eq!(top(&counts, 2), [("b".into(), 3), ("c".into(), 3)]);
    }
}
