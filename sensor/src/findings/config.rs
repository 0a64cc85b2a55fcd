//! Configuration of findings: `[sensor.findings]`.
//!
//! Pure. Rule: [`RawConfig`] mirrors the file and nothing else; [`Thresholds`] are valid by construction.

use crate::recorder::config::KeyError;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Shares, in percent.
const PERCENT_ALLOWED: RangeInclusive<f64> = 0.0..=100.0;

/// Shortest runs that may be judged, in seconds.
const RAN_SECS_ALLOWED: RangeInclusive<f64> = 1.0..=86_400.0;

/// How many times the median of its queue a job may wait.
const TIMES_ALLOWED: RangeInclusive<f64> = 1.0..=1000.0;

/// `[sensor.findings]` as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// How long a job runs until its usage is judged, in seconds [default: 60].
    pub judged_after_secs: Option<f64>,
    /// CPU time below which a job is idle, in percent of the allocated [default: 2].
    pub idle_percent: Option<f64>,
    /// CPU time below which it is low, in percent of the allocated [default: 30].
    pub low_cpu_percent: Option<f64>,
    /// CPU time of a host below which hosts differ, in percent of their mean [default: 50].
    pub imbalance_percent: Option<f64>,
    /// Memory above which it is near the limit, in percent of the allocated [default: 95].
    pub memory_near_limit_percent: Option<f64>,
    /// Memory below which it is not used, in percent of the allocated [default: 10].
    pub memory_unused_percent: Option<f64>,
    /// Time in which a limit of CPU time held a job up, in percent of its run [default: 10].
    pub throttled_percent: Option<f64>,
    /// CPU time in the kernel, in percent of all [default: 40].
    pub system_time_percent: Option<f64>,
    /// How many times the median of its queue a job waits at least for it to be long [default: 4].
    pub long_wait_times: Option<f64>,
}

/// Thresholds: shares are of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    pub judged_after_secs: f64,
    pub idle: f64,
    pub low_cpu: f64,
    pub imbalance: f64,
    pub memory_near_limit: f64,
    pub memory_unused: f64,
    pub throttled: f64,
    pub system_time: f64,
    pub long_wait_times: f64,
}

impl Thresholds {
    /// Checks `raw`.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: &RawConfig) -> Result<Thresholds, Vec<KeyError>> {
        let mut wrong = Vec::new();
        let mut checked = |key: &str, value: Option<f64>, default: f64, allowed: &RangeInclusive<f64>| {
            let value = value.unwrap_or(default);
            if !allowed.contains(&value) {
                let message = format!("{value}; expected {} to {}", allowed.start(), allowed.end());
                wrong.push(KeyError { keys: vec![key.to_owned()], message });
            }
            value
        };
        let mut share = |key: &str, value: Option<f64>, default: f64| {
            checked(key, value, default, &PERCENT_ALLOWED) / 100.0
        };
        let shares = Thresholds {
            judged_after_secs: 0.0,
            idle: share("idle_percent", raw.idle_percent, 2.0),
            low_cpu: share("low_cpu_percent", raw.low_cpu_percent, 30.0),
            imbalance: share("imbalance_percent", raw.imbalance_percent, 50.0),
            memory_near_limit: share("memory_near_limit_percent", raw.memory_near_limit_percent, 95.0),
            memory_unused: share("memory_unused_percent", raw.memory_unused_percent, 10.0),
            throttled: share("throttled_percent", raw.throttled_percent, 10.0),
            system_time: share("system_time_percent", raw.system_time_percent, 40.0),
            long_wait_times: 0.0,
        };
        let judged_after_secs = checked("judged_after_secs", raw.judged_after_secs, 60.0, &RAN_SECS_ALLOWED);
        let long_wait_times = checked("long_wait_times", raw.long_wait_times, 4.0, &TIMES_ALLOWED);
        if wrong.is_empty() {
            Ok(Thresholds { judged_after_secs, long_wait_times, ..shares })
        } else {
            Err(wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_defaults_and_all_mistakes_are_named() {
        let default = Thresholds::new(&RawConfig::default()).expect("the defaults are valid");
        assert_eq!((default.judged_after_secs, default.low_cpu, default.long_wait_times), (60.0, 0.3, 4.0));
        let own = RawConfig { low_cpu_percent: Some(50.0), ..RawConfig::default() };
        assert_eq!(Thresholds::new(&own).map(|own| own.low_cpu), Ok(0.5));
        let wrong = RawConfig {
            idle_percent: Some(-1.0),
            system_time_percent: Some(f64::NAN),
            judged_after_secs: Some(0.0),
            ..RawConfig::default()
        };
        let wrong = Thresholds::new(&wrong).expect_err("three mistakes");
        let keys: Vec<&str> = wrong.iter().map(|error| error.keys[0].as_str()).collect();
        assert_eq!(keys, ["idle_percent", "system_time_percent", "judged_after_secs"]);
        assert_eq!(wrong[0].message, "-1; expected 0 to 100");
    }
}
