//! Configuration of the history: `[sensor.history]`.
//!
//! Pure. Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction.

use crate::recorder::config::KeyError;
use call_store::store::CallLimit;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;
use store::daily::DailyLimit;
use store::tier::Tier;
use store::tier_files::Limit;

/// Default disk space of all tiers, in MiB.
pub const BUDGET_MIB_DEFAULT: u64 = 1024;
/// Allowed disk space, in MiB: a day of an ordinary host at least.
pub const BUDGET_MIB_ALLOWED: RangeInclusive<u64> = 16..=1 << 24;
/// Default for `raw_days`.
pub const RAW_DAYS_DEFAULT: f64 = 14.0;
/// Default for `minute_days`.
pub const MINUTE_DAYS_DEFAULT: f64 = 90.0;
/// Default for `hour_days`: five years.
pub const HOUR_DAYS_DEFAULT: f64 = 1826.0;
/// Allowed ages, in days: from an hour to a century.
pub const DAYS_ALLOWED: RangeInclusive<f64> = 1.0 / 24.0..=36_525.0;

/// Default disk space of the copies of the domain's minutes and hours, in MiB.
pub const DOMAIN_BUDGET_MIB_DEFAULT: u64 = 1024;
/// Default for `domain_raw_hours`.
pub const DOMAIN_RAW_HOURS_DEFAULT: f64 = 2.0;
/// Allowed ages of copied samples, in hours: to a year.
pub const HOURS_ALLOWED: RangeInclusive<f64> = 0.25..=8760.0;
/// Default for `domain_minute_days`.
pub const DOMAIN_MINUTE_DAYS_DEFAULT: f64 = 14.0;

/// Default disk space of the process history, in MiB.
pub const PROCESS_BUDGET_MIB_DEFAULT: u64 = 128;
/// Default for `process_days`.
pub const PROCESS_DAYS_DEFAULT: f64 = 90.0;

/// Default disk space of the series of jobs, in MiB: some thousand hours of a job.
pub const JOB_SERIES_BUDGET_MIB_DEFAULT: u64 = 256;
/// Default for `job_series_days`.
pub const JOB_SERIES_DAYS_DEFAULT: f64 = 90.0;

/// Default disk space of ended calls, in MiB: about a million of them.
pub const CALL_BUDGET_MIB_DEFAULT: u64 = 512;

/// Default disk space of the ended calls of the domain, in MiB.
pub const DOMAIN_CALL_BUDGET_MIB_DEFAULT: u64 = 512;

/// Default for `call_days`: five years.
pub const CALL_DAYS_DEFAULT: f64 = 1826.0;

/// Share of each tier in the disk space of the copies, in sixteenths; that of raw is also for the log of minutes.
const COPY_SHARES: [u64; 3] = [1, 11, 4];

/// Share of each tier in the disk space, in sixteenths: about what an ordinary host needs for the default ages.
const SHARES: [u64; 3] = [6, 7, 3];

/// `[sensor.history]` as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Whether metrics are stored [default: true].
    pub on: Option<bool>,
    /// Disk space for all of it, in MiB.
    pub budget_mib: Option<u64>,
    /// Age of the oldest samples, in days.
    pub raw_days: Option<f64>,
    /// Age of the oldest minutes, in days.
    pub minute_days: Option<f64>,
    /// Age of the oldest hours, in days.
    pub hour_days: Option<f64>,
    /// Disk space for the newest samples, the minutes and hours of all hosts of the domain, in MiB, while this sensor represents
    /// the domain or is a standby; 0 for none.
    pub domain_budget_mib: Option<u64>,
    /// Age of the oldest samples of the domain's hosts, in hours; 0 for none.
    pub domain_raw_hours: Option<f64>,
    /// Age of the oldest minutes of the domain's hosts, in days.
    pub domain_minute_days: Option<f64>,
    /// Disk space for the processes that used most in each minute, in MiB; 0 for none.
    pub process_budget_mib: Option<u64>,
    /// Number of days whose processes are stored.
    pub process_days: Option<f64>,
    /// Disk space for the series of the jobs that run here, in MiB; 0 for none.
    pub job_series_budget_mib: Option<u64>,
    /// Number of days whose series are stored.
    pub job_series_days: Option<f64>,
    /// Disk space for ended calls, in MiB; 0 for none.
    pub call_budget_mib: Option<u64>,
    /// Disk space for ended calls of the domain, in MiB, while this sensor represents the domain or is a standby; 0
    /// for none.
    pub domain_call_budget_mib: Option<u64>,
    /// Age of the oldest ended calls, in days.
    pub call_days: Option<f64>,
    /// Folder or `s3://BUCKET/PREFIX` of exported days, from which metrics are answered that are not stored any more.
    pub exported: Option<String>,
}

/// Checked configuration of the history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Limits of the tiers; `None` disables the history.
    pub limits: Option<[Limit; 3]>,
    /// Limits of the copies of the domain's history; `None` disables them.
    pub copies: Option<[Limit; 3]>,
    /// Limit of the process history; `None` disables it.
    pub processes: Option<DailyLimit>,
    /// Limit of the series of jobs; `None` disables them.
    pub job_series: Option<DailyLimit>,
    /// Limits of the ended calls; `None` disables storing them.
    pub calls: Option<CallLimit>,
    /// Limits of the ended calls of the domain; `None` disables storing them.
    pub domain_calls: Option<CallLimit>,
}

impl Config {
    /// Checks `raw`.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: &RawConfig) -> Result<Config, Vec<KeyError>> {
        let mut wrong = Vec::new();
        if raw.exported.as_ref().is_some_and(|place| place.trim().is_empty()) {
            let message = "expected a folder or s3://BUCKET/PREFIX, found nothing".to_owned();
            wrong.push(KeyError { keys: vec!["exported".to_owned()], message });
        } else if let Some(place) = raw.exported.as_ref().filter(|place| !is_complete(place)) {
            let message = format!(
                "expected a folder from / on, or s3://BUCKET/PREFIX, found {place:?}: it is relative"
            );
            wrong.push(KeyError { keys: vec!["exported".to_owned()], message });
        }
        let own = mib("budget_mib", raw.budget_mib, BUDGET_MIB_DEFAULT, &mut wrong);
        let mut mib_or_none = |key, wanted: Option<u64>, default| match wanted.unwrap_or(default) {
            0 => 0,
            wanted => mib(key, Some(wanted), default, &mut wrong),
        };
        let of_domain = mib_or_none("domain_budget_mib", raw.domain_budget_mib, DOMAIN_BUDGET_MIB_DEFAULT);
        let of_processes =
            mib_or_none("process_budget_mib", raw.process_budget_mib, PROCESS_BUDGET_MIB_DEFAULT);
        let of_series =
            mib_or_none("job_series_budget_mib", raw.job_series_budget_mib, JOB_SERIES_BUDGET_MIB_DEFAULT);
        let of_calls = mib_or_none("call_budget_mib", raw.call_budget_mib, CALL_BUDGET_MIB_DEFAULT);
        let of_domain_calls =
            mib_or_none("domain_call_budget_mib", raw.domain_call_budget_mib, DOMAIN_CALL_BUDGET_MIB_DEFAULT);
        let ages = [
            days("raw_days", raw.raw_days, RAW_DAYS_DEFAULT, &mut wrong),
            days("minute_days", raw.minute_days, MINUTE_DAYS_DEFAULT, &mut wrong),
            days("hour_days", raw.hour_days, HOUR_DAYS_DEFAULT, &mut wrong),
        ];
        let minutes =
            days("domain_minute_days", raw.domain_minute_days, DOMAIN_MINUTE_DAYS_DEFAULT, &mut wrong);
        let samples =
            hours_or_none("domain_raw_hours", raw.domain_raw_hours, DOMAIN_RAW_HOURS_DEFAULT, &mut wrong);
        let process_days = days("process_days", raw.process_days, PROCESS_DAYS_DEFAULT, &mut wrong);
        let series_days = days("job_series_days", raw.job_series_days, JOB_SERIES_DAYS_DEFAULT, &mut wrong);
        let call_age = days("call_days", raw.call_days, CALL_DAYS_DEFAULT, &mut wrong);
        let [raw_age, minute_age, hour_age] = ages;
        for (finer, coarser) in [
            (("raw_days", raw_age), ("minute_days", minute_age)),
            (("minute_days", minute_age), ("hour_days", hour_age)),
            (("domain_raw_hours", samples), ("domain_minute_days", minutes)),
            (("domain_minute_days", minutes), ("hour_days", hour_age)),
        ] {
            wrong.extend(longer(finer, coarser));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let is_on = raw.on.unwrap_or(true);
        let copied = [samples, minutes, hour_age];
        Ok(Config {
            limits: is_on.then(|| limits(own, SHARES, ages)),
            copies: (is_on && of_domain > 0).then(|| limits(of_domain, COPY_SHARES, copied)),
            processes: (is_on && of_processes > 0).then(|| daily(of_processes, process_days)),
            job_series: (is_on && of_series > 0).then(|| daily(of_series, series_days)),
            calls: (is_on && of_calls > 0).then_some(CallLimit { bytes: of_calls << 20, age: call_age }),
            domain_calls: (is_on && of_domain_calls > 0)
                .then_some(CallLimit { bytes: of_domain_calls << 20, age: call_age }),
        })
    }
}

/// The error that finer values are kept longer than what they are summarized to: the summary would not be seen.
fn longer(finer: (&str, Duration), coarser: (&str, Duration)) -> Option<KeyError> {
    let days = |age: Duration| age.as_secs_f64() / 86_400.0;
    (finer.1 > coarser.1 && coarser.1 > Duration::ZERO).then(|| {
        let message = format!(
            "{} days, longer than {} with {} days; lower the one or raise the other",
            days(finer.1),
            coarser.0,
            days(coarser.1)
        );
        KeyError { keys: vec![finer.0.to_owned()], message }
    })
}

fn daily(mib: u64, age: Duration) -> DailyLimit {
    let days = usize::try_from(age.as_secs().div_ceil(86_400)).unwrap_or(usize::MAX);
    DailyLimit { bytes: mib << 20, days }
}

fn limits(mib: u64, shares: [u64; 3], ages: [Duration; 3]) -> [Limit; 3] {
    Tier::ALL.map(|tier| Limit {
        bytes: (mib << 20) / shares.iter().sum::<u64>() * shares[tier as usize],
        age: ages[tier as usize],
    })
}

fn mib(key: &str, mib: Option<u64>, default: u64, wrong: &mut Vec<KeyError>) -> u64 {
    let mib = mib.unwrap_or(default);
    if !BUDGET_MIB_ALLOWED.contains(&mib) {
        let (min, max) = (BUDGET_MIB_ALLOWED.start(), BUDGET_MIB_ALLOWED.end());
        let message = format!("{mib} MiB for the history; expected {min} to {max}");
        wrong.push(KeyError { keys: vec![key.to_owned()], message });
    }
    mib
}

fn days(key: &str, days: Option<f64>, default: f64, wrong: &mut Vec<KeyError>) -> Duration {
    let days = days.unwrap_or(default);
    if DAYS_ALLOWED.contains(&days) {
        return Duration::from_secs_f64(days * 86_400.0);
    }
    let message = format!("{days} days; expected 0.042 (an hour) to 36525");
    wrong.push(KeyError { keys: vec![key.to_owned()], message });
    Duration::ZERO
}

fn hours_or_none(key: &str, hours: Option<f64>, default: f64, wrong: &mut Vec<KeyError>) -> Duration {
    let hours = hours.unwrap_or(default);
    if HOURS_ALLOWED.contains(&hours) {
        return Duration::from_secs_f64(hours * 3600.0);
    }
    if hours != 0.0 {
        let message = format!("{hours} hours; expected 0 (none) or 0.25 to 8760");
        wrong.push(KeyError { keys: vec![key.to_owned()], message });
    }
    Duration::ZERO
}

/// Whether a place of exported days names the same folder wherever the sensor was started.
fn is_complete(place: &str) -> bool {
    place.starts_with('/') || place.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_share_the_space() {
        let Config { limits, copies, processes, job_series, calls, domain_calls } =
            Config::new(&RawConfig::default()).expect("the defaults are valid");
        assert_eq!(calls, Some(CallLimit { bytes: 512 << 20, age: Duration::from_secs(1826 * 86_400) }));
        assert_eq!(domain_calls, calls);
        assert_eq!(job_series, Some(DailyLimit { bytes: 256 << 20, days: 90 }));
        let no_calls = RawConfig { call_budget_mib: Some(0), ..RawConfig::default() };
        assert!(
            Config::new(&no_calls).is_ok_and(|config| config.calls.is_none() && config.domain_calls == calls)
        );
        let (limits, copies) = (limits.expect("on by default"), copies.expect("on by default"));
        assert_eq!(copies.iter().map(|limit| limit.bytes).sum::<u64>(), 1 << 30);
        assert_eq!(copies[0].age, Duration::from_secs(2 * 3600), "samples of two hours");
        let none = RawConfig { domain_raw_hours: Some(0.0), ..RawConfig::default() };
        let none = Config::new(&none).expect("allowed").copies.expect("minutes are copied");
        assert_eq!((none[0].age, none[1].age), (Duration::ZERO, Duration::from_secs(14 * 86_400)));
        let long = RawConfig { domain_raw_hours: Some(24.0 * 15.0), ..RawConfig::default() };
        assert_eq!(Config::new(&long).expect_err("longer than minutes")[0].keys, ["domain_raw_hours"]);
        assert_eq!(limits.iter().map(|limit| limit.bytes).sum::<u64>(), 1 << 30);
        assert_eq!(limits[0].age, Duration::from_secs(14 * 86_400));
        assert_eq!(processes, Some(DailyLimit { bytes: 128 << 20, days: 90 }));
        let off = RawConfig { on: Some(false), ..RawConfig::default() };
        assert_eq!(
            Config::new(&off),
            Ok(Config {
                limits: None,
                copies: None,
                processes: None,
                job_series: None,
                calls: None,
                domain_calls: None
            })
        );
        let none = RawConfig { domain_budget_mib: Some(0), ..RawConfig::default() };
        assert!(Config::new(&none).is_ok_and(|config| config.limits.is_some() && config.copies.is_none()));
    }

    #[test]
    fn finer_values_are_kept_no_longer_than_coarser_ones() {
        let raw =
            RawConfig { raw_days: Some(100.0), domain_minute_days: Some(3000.0), ..RawConfig::default() };
        let wrong = Config::new(&raw).expect_err("two contradictions");
        let shown: Vec<String> =
            wrong.iter().map(|error| format!("{:?} {}", error.keys, error.message)).collect();
        assert_eq!(
            shown,
            [
                "[\"raw_days\"] 100 days, longer than minute_days with 90 days; lower the one or raise the other",
                "[\"domain_minute_days\"] 3000 days, longer than hour_days with 1826 days; lower the one or raise \
                 the other",
            ]
        );
    }

    #[test]
    fn a_place_of_exported_days_does_not_depend_on_where_the_sensor_was_started() {
        let of = |place: &str| {
            Config::new(&RawConfig { exported: Some(place.to_owned()), ..RawConfig::default() })
        };
        assert!(of("/srv/grid-history").is_ok() && of("s3://bucket/prefix").is_ok());
        for wrong in ["grid-history", "./grid-history", " "] {
            assert_eq!(of(wrong).expect_err("it is refused")[0].keys, ["exported"]);
        }
    }

    #[test]
    fn all_mistakes_are_named() {
        let raw = RawConfig {
            budget_mib: Some(1),
            raw_days: Some(f64::NAN),
            hour_days: Some(-1.0),
            domain_budget_mib: Some(3),
            domain_raw_hours: Some(-0.5),
            domain_minute_days: Some(0.0),
            ..RawConfig::default()
        };
        let wrong = Config::new(&raw).expect_err("six mistakes");
        let keys: Vec<&str> = wrong.iter().flat_map(|error| &error.keys).map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "budget_mib",
                "domain_budget_mib",
                "raw_days",
                "hour_days",
                "domain_minute_days",
                "domain_raw_hours"
            ]
        );
        assert!(wrong[0].message.contains("expected 16 to"), "{}", wrong[0].message);
    }
}
