//! Configuration of an archive: `[sensor.archive]`.
//!
//! Pure. Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction.

use crate::recorder::config::KeyError;
use serde::Deserialize;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;
use store::daily::DailyLimit;

/// Default disk space, in MiB.
const BUDGET_MIB_DEFAULT: u64 = 16 << 10;
/// Allowed disk space, in MiB.
const BUDGET_MIB_ALLOWED: RangeInclusive<u64> = 64..=1 << 28;
/// Default number of days of each host: ten years.
const DAYS_DEFAULT: u64 = 3653;
/// Allowed number of days.
const DAYS_ALLOWED: RangeInclusive<u64> = 1..=36_525;
/// Default number of archives that have the series of a host.
const COPIES_DEFAULT: u64 = 2;
/// Allowed number of archives that have the series of a host.
const COPIES_ALLOWED: RangeInclusive<u64> = 1..=16;
/// Default time after which others take over what an archive has, in seconds.
const TAKE_OVER_SECS_DEFAULT: u64 = 1800;
/// Allowed times for that: longer than a restart.
const TAKE_OVER_SECS_ALLOWED: RangeInclusive<u64> = 10..=30 * 86_400;
/// Default time between two rounds, in seconds.
const ROUND_SECS_DEFAULT: u64 = 30;
/// Allowed times between two rounds, in seconds.
const ROUND_SECS_ALLOWED: RangeInclusive<u64> = 1..=3600;

/// `[sensor.archive]` as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Whether this sensor is an archive [default: false].
    pub on: Option<bool>,
    /// Disk space, in MiB.
    pub budget_mib: Option<u64>,
    /// Number of days of each host.
    pub days: Option<u64>,
    /// Number of archives that have the series of a host; the same at all archives of the domain.
    pub copies: Option<u64>,
    /// Time after which others take over what an archive has that is away, in seconds.
    pub take_over_secs: Option<u64>,
    /// Time between two rounds in which hosts are asked, in seconds.
    pub round_secs: Option<u64>,
}

/// Checked configuration of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: DailyLimit,
    pub copies: usize,
    pub take_over: Duration,
    pub round: Duration,
}

impl Config {
    /// Checks `raw`; `None` if it is off.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: &RawConfig) -> Result<Option<Config>, Vec<KeyError>> {
        let mut wrong = Vec::new();
        let budget =
            checked("budget_mib", raw.budget_mib, BUDGET_MIB_DEFAULT, &BUDGET_MIB_ALLOWED, &mut wrong);
        let days = checked("days", raw.days, DAYS_DEFAULT, &DAYS_ALLOWED, &mut wrong);
        let copies = checked("copies", raw.copies, COPIES_DEFAULT, &COPIES_ALLOWED, &mut wrong);
        let take_over = checked(
            "take_over_secs",
            raw.take_over_secs,
            TAKE_OVER_SECS_DEFAULT,
            &TAKE_OVER_SECS_ALLOWED,
            &mut wrong,
        );
        let round =
            checked("round_secs", raw.round_secs, ROUND_SECS_DEFAULT, &ROUND_SECS_ALLOWED, &mut wrong);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(raw.on.unwrap_or(false).then(|| Config {
            limit: DailyLimit { bytes: budget << 20, days: count(days) },
            copies: count(copies),
            take_over: Duration::from_secs(take_over),
            round: Duration::from_secs(round),
        }))
    }
}

/// Returns the value; after recording its error, if it is not allowed.
fn checked<T: PartialOrd + Display>(
    key: &str,
    wanted: Option<T>,
    default: T,
    allowed: &RangeInclusive<T>,
    wrong: &mut Vec<KeyError>,
) -> T {
    let value = wanted.unwrap_or(default);
    if !allowed.contains(&value) {
        let message = format!("{value}; expected {} to {}", allowed.start(), allowed.end());
        wrong.push(KeyError { keys: vec![key.to_owned()], message });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_unless_it_is_turned_on_and_wrong_values_are_named() {
        assert_eq!(Config::new(&RawConfig::default()), Ok(None));
        let on = RawConfig { on: Some(true), ..RawConfig::default() };
        let config = Config::new(&on).expect("valid").expect("on");
        assert_eq!((config.limit.bytes, config.limit.days, config.copies), (16 << 30, 3653, 2));
        assert_eq!((config.take_over, config.round), (Duration::from_secs(1800), Duration::from_secs(30)));
        let raw = RawConfig { on: None, budget_mib: Some(1), copies: Some(0), days: Some(0), ..on };
        let wrong = Config::new(&raw).expect_err("three values");
        let keys: Vec<&str> = wrong.iter().map(|wrong| wrong.keys[0].as_str()).collect();
        assert_eq!(keys, ["budget_mib", "days", "copies"]);
        assert_eq!(wrong[0].message, "1; expected 64 to 268435456");
    }
}
