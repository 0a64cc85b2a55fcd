//! Host summary: a few numbers from the last sweeps, shown in a domain's table of hosts.
//!
//! Pure. Not here: the sum over hosts (`representative::summary`).

use super::table::Table;
use std::sync::Arc;
use wire::sample::{Metric, Number};
use wire::time::Time;

/// Summary of a host, as shown in its domain's table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Logical CPUs.
    pub cpus: u64,
    /// Used share of the time of all CPUs between the last two sweeps, 0 to 1.
    pub cpu_used: Option<f64>,
    /// Total memory, in bytes.
    pub memory_total: Option<u64>,
    /// Memory that is not available without swapping, in bytes.
    pub memory_used: Option<u64>,
    /// Seconds since the host was booted.
    pub uptime: Option<f64>,
    /// Time of the newest sweep.
    pub time: Time,
}

/// Computes the summary from the newest table and the one before it.
#[must_use]
pub fn figures(newer: &Table, older: Option<&Table>) -> Figures {
    let plain = |name: &str| newer.get(name, &[]);
    let whole = |name: &str| {
        plain(name).and_then(|number| match number {
            Number::Whole(whole) => Some(whole),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a size, not negative"
            )]
            Number::Real(real) if real >= 0.0 => Some(real as u64),
            Number::Real(_) => None,
        })
    };
    let load = |name: &str| plain(name).map(Number::as_f64);
    let total = whole("node_memory_MemTotal_bytes");
    let boot = plain("node_boot_time_seconds").map(Number::as_f64);
    Figures {
        load: match (load("node_load1"), load("node_load5"), load("node_load15")) {
            (Some(one), Some(five), Some(fifteen)) => Some([one, five, fifteen]),
            _ => None,
        },
        cpus: newer.rows().filter(|(metric, _)| mode(metric) == Some("idle")).count() as u64,
        cpu_used: older.and_then(|older| cpu_used(newer, older)),
        memory_total: total,
        memory_used: total
            .zip(whole("node_memory_MemAvailable_bytes"))
            .map(|(all, free)| all.saturating_sub(free)),
        uptime: boot.map(|boot| (newer.time().secs_f64() - boot).max(0.0)),
        time: newer.time(),
    }
}

/// The metric that shows how busy the CPUs are.
const CPU_METRIC: &str = "node_cpu_seconds_total";

fn mode(metric: &Metric) -> Option<&str> {
    let label = metric.labels.iter().find(|(name, _)| name == "mode");
    label.filter(|_| metric.name == CPU_METRIC).map(|(_, mode)| mode.as_str())
}

/// Used share of the time of all CPUs between two sweeps.
fn cpu_used(newer: &Table, older: &Table) -> Option<f64> {
    let (mut all, mut idle) = (0.0, 0.0);
    let cpus = |table: &Table| -> Vec<(Arc<Metric>, f64)> {
        let rows = table.rows().filter(|(metric, _)| mode(metric).is_some());
        rows.map(|(metric, value)| (Arc::clone(metric), value.as_f64())).collect()
    };
    let (older, newer) = (cpus(older), cpus(newer));
    for (at, (metric, value)) in newer.iter().enumerate() {
        // The same place, unless CPUs were added or removed in between.
        let same = older.get(at).filter(|(known, _)| known == metric);
        let Some((_, before)) = same.or_else(|| older.iter().find(|(known, _)| known == metric)) else {
            continue;
        };
        all += value - before;
        if matches!(mode(metric), Some("idle" | "iowait")) {
            idle += value - before;
        }
    }
    (all > 0.0).then(|| (1.0 - idle / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::table::{Rows, metric};
    use super::*;
    use wire::sample::Semantics;

    fn table(values: &[(&str, f64)]) -> Table {
        let mut rows = Rows::default();
        for (mode, value) in values {
            let labels = [("cpu", "0"), ("mode", *mode)];
            rows.push_real(&metric(CPU_METRIC, "seconds", Semantics::Counter, &labels), *value);
        }
        rows.push_real(&metric("node_load1", "", Semantics::Gauge, &[]), 7.0);
        rows.finish(Time::default())
    }

    #[test]
    fn the_used_share_is_what_is_not_idle() {
        let older = table(&[("user", 10.0), ("idle", 80.0), ("iowait", 1.0)]);
        let newer = table(&[("user", 13.0), ("idle", 80.5), ("iowait", 1.5)]);
        assert_eq!(figures(&newer, Some(&older)).cpu_used, Some(0.75));
        assert_eq!(figures(&newer, None).cpu_used, None, "one sweep shows no difference");
        let moved = table(&[("iowait", 1.5), ("user", 13.0), ("idle", 80.5)]);
        assert_eq!(figures(&moved, Some(&older)).cpu_used, Some(0.75), "in another order");
    }
}
