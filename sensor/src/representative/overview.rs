//! Aggregates of metrics over the hosts of a domain: sum, mean, minimum, maximum, count, and the hosts with
//! the largest values.
//!
//! Pure. Rules: a value that is not finite or beyond [`ABSURD`] is left out and counted, so one broken host
//! cannot spoil a sum. A sum is given only where it is meaningful (not of ratios, states and points in time).
//! Where there are too many metrics, those that the fewest hosts report are dropped.

use compact_str::CompactString;
use std::collections::BTreeMap;
use wire::id::HostName;
use wire::sample::{Metric, Semantics};

/// Values of this size and beyond are treated as damage: a thousand petabytes, thirty billion years.
pub const ABSURD: f64 = 1e18;
/// Most metrics of an overview.
pub const METRICS_MAX: usize = 1024;
/// Most metrics of one host that are added to it.
pub const METRICS_OF_HOST_MAX: usize = 512;
/// Number of hosts in a top list.
pub const TOP: usize = 10;

/// Aggregate of one metric over all hosts that report it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub name: CompactString,
    pub unit: CompactString,
    /// Sum of all values, where it is meaningful.
    pub sum: Option<f64>,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    /// Number of hosts that report it.
    pub count: u64,
    /// The hosts with the largest values, largest first.
    pub top: Vec<(HostName, f64)>,
}

/// Builder of an overview.
#[derive(Debug, Default)]
pub struct Overview {
    metrics: BTreeMap<(CompactString, CompactString), Accumulator>,
    absurd: u64,
}

#[derive(Debug)]
struct Accumulator {
    is_summable: bool,
    sum: f64,
    min: f64,
    max: f64,
    count: u64,
    top: Vec<(HostName, f64)>,
}

impl Overview {
    /// Adds a host's value of a metric.
    pub fn add(&mut self, host: &HostName, metric: &Metric, value: f64) {
        if !value.is_finite() || value.abs() >= ABSURD {
            self.absurd += 1;
            return;
        }
        let fresh = || Accumulator {
            is_summable: is_summable(metric),
            sum: 0.0,
            min: value,
            max: value,
            count: 0,
            top: Vec::new(),
        };
        let of = self.metrics.entry((metric.name.clone(), metric.unit.clone())).or_insert_with(fresh);
        of.sum += value;
        of.min = of.min.min(value);
        of.max = of.max.max(value);
        of.count += 1;
        let at = of.top.partition_point(|(_, more)| *more >= value);
        if at < TOP {
            of.top.insert(at, (host.clone(), value));
            of.top.truncate(TOP);
        }
    }

    /// Returns the number of values that were left out.
    #[must_use]
    pub fn absurd(&self) -> u64 {
        self.absurd
    }

    /// Returns the metrics sorted by name.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of hosts are small")]
    pub fn finish(self) -> Vec<Aggregate> {
        let aggregate = |((name, unit), of): ((CompactString, CompactString), Accumulator)| Aggregate {
            name,
            unit,
            sum: of.is_summable.then_some(of.sum),
            mean: of.sum / of.count as f64,
            min: of.min,
            max: of.max,
            count: of.count,
            top: of.top,
        };
        let mut all: Vec<Aggregate> = self.metrics.into_iter().map(aggregate).collect();
        if all.len() > METRICS_MAX {
            all.sort_by_key(|metric| std::cmp::Reverse(metric.count));
            all.truncate(METRICS_MAX);
            all.sort_by(|one, other| (&one.name, &one.unit).cmp(&(&other.name, &other.unit)));
        }
        all
    }
}

/// Returns whether the sum over hosts is meaningful: amounts, counts and time spent can be added; points in
/// time, ages, ratios and states cannot.
fn is_summable(metric: &Metric) -> bool {
    match (metric.semantics, metric.unit.as_str()) {
        (Semantics::State, _) | (_, "ratio" | "percent" | "celsius") | (Semantics::Gauge, "seconds") => false,
        (Semantics::Counter | Semantics::Gauge, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, unit: &str) -> Metric {
        Metric { name: name.into(), labels: Vec::new(), unit: unit.into(), semantics: Semantics::Gauge }
    }

    #[test]
    fn a_broken_host_spoils_nothing() {
        let mut overview = Overview::default();
        let load = metric("node_load1", "");
        for (nth, value) in [1.0, f64::NAN, 3.0, f64::INFINITY, 1e300, -1.0].into_iter().enumerate() {
            let host = HostName::try_from(format!("h{nth}").as_str()).expect("a name");
            overview.add(&host, &load, value);
        }
        assert_eq!(overview.absurd(), 3);
        let all = overview.finish();
        assert_eq!(
            (all[0].sum, all[0].mean, all[0].min, all[0].max, all[0].count),
            (Some(3.0), 1.0, -1.0, 3.0, 3)
        );
        assert_eq!(all[0].top.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>(), ["h2", "h0", "h5"]);
    }

    #[test]
    fn only_what_may_be_added_has_a_sum() {
        let check = |name: &str, unit: &str, semantics, is_summable: bool| {
            let mut overview = Overview::default();
            let metric = Metric { semantics, ..metric(name, unit) };
            for (host, value) in [("a", 3.0), ("b", 5.0)] {
                overview.add(&HostName::try_from(host).expect("a name"), &metric, value);
            }
            let all = overview.finish();
            assert_eq!(all[0].sum, is_summable.then_some(8.0), "{name}");
            assert_eq!((all[0].mean, all[0].min, all[0].max), (4.0, 3.0, 5.0), "{name}");
        };
        check("node_boot_time_seconds", "seconds", Semantics::Gauge, false);
        check("node_uptime_seconds", "seconds", Semantics::Gauge, false);
        check("cpu_used", "ratio", Semantics::Gauge, false);
        check("node_network_up", "", Semantics::State, false);
        check("node_load1", "", Semantics::Gauge, true);
        check("node_memory_MemFree_bytes", "bytes", Semantics::Gauge, true);
        check("node_pressure_cpu_waiting_seconds_total", "seconds", Semantics::Counter, true);
        check("node_forks_total", "", Semantics::Counter, true);
    }
}
