//! One host of a domain as its representative sees it, worked out from two sweeps.
//!
//! Pure.

use crate::sample::table::Table;
use wire::sample::Number;
use wire::time::Time;

/// The figures of a host that its domain's table shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Logical CPUs.
    pub cpus: u64,
    /// Share of all CPUs' time that was used between the two sweeps, 0 to 1.
    pub cpu_used: Option<f64>,
    /// Memory, in bytes.
    pub memory_total: Option<u64>,
    /// Memory that could not be had without swapping, in bytes.
    pub memory_used: Option<u64>,
    /// Seconds since the host started.
    pub uptime: Option<f64>,
    /// When the newer sweep was made.
    pub time: Time,
}

/// The figures of the newer table; `older` is an earlier one, for what is a difference.
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
        cpus: cpu_times(newer).cpus,
        cpu_used: older.and_then(|older| cpu_used(&cpu_times(older), &cpu_times(newer))),
        memory_total: total,
        memory_used: total
            .zip(whole("node_memory_MemAvailable_bytes"))
            .map(|(all, free)| all.saturating_sub(free)),
        uptime: boot.map(|boot| (newer.time().secs_f64() - boot).max(0.0)),
        time: newer.time(),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuTimes {
    cpus: u64,
    all: f64,
    idle: f64,
}

/// Seconds of all CPUs in all modes, and those in which there was nothing to do.
fn cpu_times(table: &Table) -> CpuTimes {
    let mut times = CpuTimes::default();
    for (metric, value) in table.rows().filter(|(metric, _)| metric.name == "node_cpu_seconds_total") {
        let mode = metric.labels.iter().find(|(name, _)| name == "mode").map(|(_, mode)| mode.as_str());
        let secs = value.as_f64();
        times.all += secs;
        match mode {
            Some("idle") => {
                times.idle += secs;
                times.cpus += 1;
            }
            Some("iowait") => times.idle += secs,
            _ => {}
        }
    }
    times
}

fn cpu_used(older: &CpuTimes, newer: &CpuTimes) -> Option<f64> {
    let all = newer.all - older.all;
    let idle = newer.idle - older.idle;
    (all > 0.0 && newer.cpus == older.cpus).then(|| (1.0 - idle / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_share_is_what_is_not_idle() {
        let older = CpuTimes { cpus: 2, all: 100.0, idle: 80.0 };
        let newer = CpuTimes { cpus: 2, all: 104.0, idle: 81.0 };
        assert_eq!(cpu_used(&older, &newer), Some(0.75));
        assert_eq!(cpu_used(&older, &older), None);
        assert_eq!(cpu_used(&CpuTimes { cpus: 1, ..older }, &newer), None, "a CPU came or went");
    }
}
