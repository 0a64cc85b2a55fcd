//! Host summary: a few numbers from the last sweeps, shown in a domain's table of hosts.
//!
//! Pure. Not here: the sum over hosts (`representative::summary`).

use super::history::Series;
use super::table::Table;
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

/// Computes the summary from the newest table; `cpu` are the series of `node_cpu_seconds_total` up to it.
#[must_use]
pub fn figures(newer: &Table, cpu: &[Series]) -> Figures {
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
        cpu_used: cpu_used(cpu),
        memory_total: total,
        memory_used: total
            .zip(whole("node_memory_MemAvailable_bytes"))
            .map(|(all, free)| all.saturating_sub(free)),
        uptime: boot.map(|boot| (newer.time().secs_f64() - boot).max(0.0)),
        time: newer.time(),
    }
}

/// The metric whose series show how busy the CPUs are.
pub const CPU_METRIC: &str = "node_cpu_seconds_total";

fn mode(metric: &Metric) -> Option<&str> {
    let label = metric.labels.iter().find(|(name, _)| name == "mode");
    label.filter(|_| metric.name == CPU_METRIC).map(|(_, mode)| mode.as_str())
}

/// Used share of the time of all CPUs between the last two points of each series.
fn cpu_used(series: &[Series]) -> Option<f64> {
    let (mut all, mut idle) = (0.0, 0.0);
    for series in series {
        let [.., (_, older), (_, newer)] = series.points.as_slice() else { continue };
        let secs = newer.as_f64() - older.as_f64();
        all += secs;
        if matches!(mode(&series.metric), Some("idle" | "iowait")) {
            idle += secs;
        }
    }
    (all > 0.0).then(|| (1.0 - idle / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wire::sample::Semantics;

    fn series(mode: &str, values: &[f64]) -> Series {
        let metric = Metric {
            name: CPU_METRIC.into(),
            labels: vec![("cpu".into(), "0".into()), ("mode".into(), mode.into())],
            unit: "seconds".into(),
            semantics: Semantics::Counter,
        };
        let points = values.iter().zip(0..).map(|(value, at)| (Time::from_micros(at), Number::Real(*value)));
        Series { metric: Arc::new(metric), points: points.collect() }
    }

    #[test]
    fn the_used_share_is_what_is_not_idle() {
        let busy = [
            series("user", &[0.0, 10.0, 13.0]),
            series("idle", &[0.0, 80.0, 80.5]),
            series("iowait", &[1.0, 1.0, 1.5]),
        ];
        assert_eq!(cpu_used(&busy), Some(0.75), "between the last two sweeps only");
        assert_eq!(cpu_used(&[series("user", &[1.0])]), None, "one sweep shows no difference");
    }
}
