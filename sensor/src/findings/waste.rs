//! What a job did not use of its allocation, and what held it up.
//!
//! Pure. Rules: only runs of some length are judged, and shares of the allocation only if all hosts were measured. Of idle,
//! one CPU and low CPU time one is stated: the first that is true.
//! Not here: why it failed (`cause`).

use super::Known;
use super::config::Thresholds;
use wire::api::findings::{Finding, FindingKind};
use wire::api::job_usage::JobUsage;
use wire::call::usage::{Figure, MeasuredBy};
use wire::event::Outcome;
use wire::shown::{share, tenths, whole_bytes};

/// Fewest allocated CPUs beside which one in use is worth a finding: two may be the threads of one core.
pub(super) const CPUS_MIN: u32 = 3;

/// CPUs in use that are one, nearly.
const ONE_CPU: std::ops::RangeInclusive<f64> = 0.6..=1.15;

/// Least CPU time whose parts are judged, in seconds.
pub(super) const CPU_SECS_MIN: f64 = 10.0;

/// Least unused memory that is worth a finding, in bytes.
const UNUSED_MIN_BYTES: f64 = 4_294_967_296.0;

/// Most processes whose sum of memory is not much more than what they have, as they share little.
const SHARE_LITTLE: u64 = 4;

pub(super) fn of(known: &Known<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let Some((usage, ran_secs)) = known.job.usage.zip(known.ran_secs()) else { return Vec::new() };
    if ran_secs < thresholds.judged_after_secs {
        return Vec::new();
    }
    let with_evidence = |found: Finding| Finding {
        events: known.usages.iter().map(|usage| usage.line.event.to_string()).collect(),
        ..found
    };
    let all = [
        cpu(known, usage, ran_secs, thresholds),
        imbalance(known, thresholds),
        throttled(known, ran_secs, thresholds),
        system_time(known, usage, thresholds),
        unused_memory(known, usage, thresholds),
        near_limit(known, usage, thresholds),
    ];
    all.into_iter().flatten().map(with_evidence).collect()
}

fn compared(kind: FindingKind, text: String, value: f64, threshold: f64) -> Finding {
    Finding { value: Some(value), threshold: Some(threshold), ..Finding::new(kind, text) }
}

/// How much of its CPUs it used.
fn cpu(known: &Known<'_>, usage: JobUsage, ran_secs: f64, thresholds: &Thresholds) -> Option<Finding> {
    let (efficiency, cpus) = usage.cpu_efficiency.zip(known.job.cpus)?;
    let (used, of_all) = (tenths(usage.cpu_secs), share(efficiency));
    let of = if cpus == 1 { "its CPU".to_owned() } else { format!("its {cpus} CPUs") };
    if efficiency < thresholds.idle {
        let text = format!("It used almost no CPU time: {used} ({of_all} of {of}).");
        return Some(compared(FindingKind::Idle, text, efficiency, thresholds.idle));
    }
    // A process that ended without its usage being known may have used the rest.
    if known.usages.iter().any(|usage| usage.figure(Figure::Missed) > Some(0)) {
        return None;
    }
    if cpus >= u64::from(CPUS_MIN) && ONE_CPU.contains(&(usage.cpu_secs / ran_secs)) {
        let text = format!("It used one of its {cpus} CPUs: {used} of CPU time ({of_all}).");
        return Some(compared(FindingKind::OneCpu, text, efficiency, thresholds.low_cpu));
    }
    (efficiency < thresholds.low_cpu).then(|| {
        let text = format!("It used {of_all} of {of}: {used} of CPU time.");
        compared(FindingKind::LowCpu, text, efficiency, thresholds.low_cpu)
    })
}

/// One of its hosts did much less than the others.
fn imbalance(known: &Known<'_>, thresholds: &Thresholds) -> Option<Finding> {
    let secs = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64();
    let mut hosts: Vec<(&str, f64)> = Vec::new();
    for usage in &known.usages {
        let used = secs(usage.figure(Figure::CpuTime).unwrap_or_default());
        match hosts.iter_mut().find(|(host, _)| *host == usage.host) {
            Some((_, sum)) => *sum += used,
            None => hosts.push((&usage.host, used)),
        }
    }
    known.job.usage?.cpu_efficiency?;
    if hosts.len() < 2 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of hosts")]
    let mean = hosts.iter().map(|(_, used)| used).sum::<f64>() / hosts.len() as f64;
    let (host, least) = hosts.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let part = least / mean;
    (mean >= CPU_SECS_MIN && part < thresholds.imbalance).then(|| {
        let text = format!(
            "Its hosts did not do the same: {host} used {}, on average {}.",
            tenths(least),
            tenths(mean)
        );
        let found = compared(FindingKind::Imbalance, text, part, thresholds.imbalance);
        Finding { hosts: vec![host.to_owned()], ..found }
    })
}

/// A limit of CPU time held it up.
fn throttled(known: &Known<'_>, ran_secs: f64, thresholds: &Thresholds) -> Option<Finding> {
    let micros = |usage: &wire::call::usage::Usage| usage.figure(Figure::ThrottledTime).unwrap_or_default();
    let usage = known.usages.iter().max_by_key(|usage| micros(usage))?;
    let secs = std::time::Duration::from_micros(micros(usage)).as_secs_f64();
    let part = secs / ran_secs;
    (secs >= CPU_SECS_MIN && part > thresholds.throttled).then(|| {
        let text = format!("A limit of CPU time held it up for {} on {}.", tenths(secs), usage.host);
        let found = compared(FindingKind::Throttled, text, part, thresholds.throttled);
        Finding { hosts: vec![usage.host.to_string()], ..found }
    })
}

/// Much of its CPU time was that of the kernel.
fn system_time(known: &Known<'_>, usage: JobUsage, thresholds: &Thresholds) -> Option<Finding> {
    let micros: u64 = known.usages.iter().filter_map(|usage| usage.figure(Figure::SystemTime)).sum();
    let secs = std::time::Duration::from_micros(micros).as_secs_f64();
    let part = secs / usage.cpu_secs;
    (secs >= CPU_SECS_MIN && part > thresholds.system_time).then(|| {
        let text = format!("{} of its CPU time ({}) was that of the kernel.", share(part), tenths(secs));
        compared(FindingKind::SystemTime, text, part, thresholds.system_time)
    })
}

/// It used a small part of its memory. A job that failed may have had no time to use more.
fn unused_memory(known: &Known<'_>, usage: JobUsage, thresholds: &Thresholds) -> Option<Finding> {
    let (part, allocated) = usage.memory_efficiency.zip(known.job.memory_bytes)?;
    #[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
    let unused = allocated as f64 * (1.0 - part);
    let is_done = known.job.outcome == Some(Outcome::Ok);
    (is_done && part < thresholds.memory_unused && unused >= UNUSED_MIN_BYTES).then(|| {
        let (peak, allocated) = (whole_bytes(usage.peak_memory_bytes), whole_bytes(allocated));
        let text = format!("It used {} of its memory: at most {peak} of {allocated}.", share(part));
        compared(FindingKind::MemoryUnused, text, part, thresholds.memory_unused)
    })
}

/// It used almost all of its memory.
fn near_limit(known: &Known<'_>, usage: JobUsage, thresholds: &Thresholds) -> Option<Finding> {
    let part = usage.memory_efficiency.filter(|_| is_memory_exact(known))?;
    (part >= thresholds.memory_near_limit).then(|| {
        let peak = whole_bytes(usage.peak_memory_bytes);
        let text = format!("It used {} of its memory ({peak}).", share(part));
        compared(FindingKind::MemoryNearLimit, text, part, thresholds.memory_near_limit)
    })
}

/// Whether its memory is known well: memory that processes share counts for each of them.
fn is_memory_exact(known: &Known<'_>) -> bool {
    known.usages.iter().all(|usage| {
        usage.by == MeasuredBy::ControlGroup || usage.figure(Figure::Processes) <= Some(SHARE_LITTLE)
    })
}
