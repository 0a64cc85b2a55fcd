//! Jobs in the order of an amount.
//!
//! Pure. Rule: jobs without the amount are last; of equal ones the order remains. Not here: amounts (`wire`).

use serde_json::Value;
use wire::api::job_amount::JobAmount;
use wire::api::jobs::Job;
use wire::time::Time;

/// Sorts jobs, the largest first; returns of how many the amount is not known.
pub(super) fn sort(items: &mut [(Job, Value)], by: JobAmount, now: Time) -> usize {
    let amount = |job: &Job| by.of(job, Some(now)).unwrap_or(f64::NEG_INFINITY);
    items.sort_by(|(one, _), (other, _)| amount(other).total_cmp(&amount(one)));
    items.iter().filter(|(job, _)| by.of(job, Some(now)).is_none()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;
    use wire::api::job_usage::JobUsage;
    use wire::call::State;

    #[test]
    fn the_largest_is_first_and_what_is_not_known_last() {
        let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
        let used = |wasted: f64| {
            Some(JobUsage { cpu_secs: 9.0 - wasted, wasted_cpu_secs: Some(wasted), ..JobUsage::default() })
        };
        let job = |id: &str, state, usage, started| Job {
            id: id.to_owned(),
            state,
            usage,
            submitted: at(0),
            started,
            ..Job::default()
        };
        let jobs = [
            job("unknown", State::Ended, None, None),
            job("idle", State::Running, used(8.0), at(10)),
            job("busy", State::Running, used(1.0), at(1)),
            job("waits", State::Waiting, None, None),
        ];
        let sorted = |by: JobAmount| {
            let mut items: Vec<(Job, Value)> = jobs.iter().map(|job| (job.clone(), Value::Null)).collect();
            let unknown = sort(&mut items, by, Time::from_micros(50_000_000));
            (items.into_iter().map(|(job, _)| job.id).collect::<Vec<String>>(), unknown)
        };
        let as_known = |ids: [&str; 4], unknown| (ids.map(str::to_owned).to_vec(), unknown);
        assert_eq!(sorted(JobAmount::Wasted), as_known(["idle", "busy", "unknown", "waits"], 2));
        assert_eq!(sorted(JobAmount::CpuTime), as_known(["busy", "idle", "unknown", "waits"], 2));
        assert_eq!(sorted(JobAmount::Ran), as_known(["busy", "idle", "unknown", "waits"], 2));
        assert_eq!(sorted(JobAmount::Waited), as_known(["waits", "idle", "busy", "unknown"], 1));
    }
}
