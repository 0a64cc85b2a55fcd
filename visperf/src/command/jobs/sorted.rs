//! Jobs in the order of what they used.
//!
//! Pure. Rule: jobs without a value are last; of equal ones the order remains.

use serde_json::Value;
use wire::api::UnixTime;
use wire::api::jobs::Job;
use wire::time::Time;

/// What jobs are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortBy {
    /// CPU time of the allocated CPUs that was not used
    Wasted,
    /// Measured CPU time
    Cpu,
    /// Measured peak memory
    Memory,
    /// Time from the start to the end, or until now
    Ran,
    /// Time from the submission to the start, or until now
    Waited,
}

/// Sorts jobs, the largest first; returns of how many the amount is not known.
pub(super) fn sort(items: &mut [(Job, Value)], by: SortBy, now: Time) -> usize {
    items.sort_by(|(one, _), (other, _)| amount(other, by, now).total_cmp(&amount(one, by, now)));
    items.iter().filter(|(job, _)| amount(job, by, now) == f64::NEG_INFINITY).count()
}

#[allow(clippy::cast_precision_loss)] // only compared
fn amount(job: &Job, by: SortBy, now: Time) -> f64 {
    let span = |from: Option<UnixTime>, to: Option<UnixTime>| {
        let secs = |time: Option<UnixTime>| time.map(|time| time.0.secs_f64());
        Some(secs(to).unwrap_or(now.secs_f64()) - secs(from)?)
    };
    let amount = match by {
        SortBy::Wasted => job.usage.and_then(|usage| usage.wasted_cpu_secs),
        SortBy::Cpu => job.usage.map(|usage| usage.cpu_secs),
        SortBy::Memory => job.usage.map(|usage| usage.peak_memory_bytes as f64),
        SortBy::Ran => span(job.started, job.ended),
        SortBy::Waited => span(job.submitted, job.started.or(job.ended)),
    };
    amount.unwrap_or(f64::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::job_usage::JobUsage;

    #[test]
    fn the_largest_is_first_and_what_is_not_known_last() {
        let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
        let job = |id: &str, usage: Option<(f64, u64)>, times: [Option<UnixTime>; 3]| Job {
            id: id.to_owned(),
            usage: usage.map(|(wasted, peak_memory_bytes)| JobUsage {
                cpu_secs: 9.0 - wasted,
                wasted_cpu_secs: Some(wasted),
                peak_memory_bytes,
                ..JobUsage::default()
            }),
            submitted: times[0],
            started: times[1],
            ended: times[2],
            ..Job::default()
        };
        let jobs = [
            job("unknown", None, [None; 3]),
            job("idle", Some((8.0, 5)), [at(0), at(10), at(20)]),
            job("busy", Some((1.0, 7)), [at(0), at(1), None]),
            job("waits", None, [at(0), None, None]),
        ];
        let sorted = |by: SortBy| {
            let mut items: Vec<(Job, Value)> = jobs.iter().map(|job| (job.clone(), Value::Null)).collect();
            let unknown = sort(&mut items, by, Time::from_micros(50_000_000));
            assert_eq!(
                unknown,
                if matches!(by, SortBy::Ran | SortBy::Wasted | SortBy::Cpu | SortBy::Memory) { 2 } else { 1 }
            );
            items.into_iter().map(|(job, _)| job.id).collect::<Vec<String>>()
        };
        assert_eq!(sorted(SortBy::Wasted)[..2], ["idle", "busy"]);
        assert_eq!(sorted(SortBy::Cpu)[..2], ["busy", "idle"]);
        assert_eq!(sorted(SortBy::Memory)[..2], ["busy", "idle"]);
        assert_eq!(sorted(SortBy::Ran)[..2], ["busy", "idle"]);
        assert_eq!(sorted(SortBy::Waited), ["waits", "idle", "busy", "unknown"]);
    }
}
