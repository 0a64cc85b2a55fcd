//! CPU budget of all subscriptions together, and how their owners share it.
//!
//! Pure but for a lock: callers pass `now`. Rules: CPU time has a common part, used first come, first served,
//! and a guaranteed part, divided equally among the active owners. One owner, however many subscriptions it
//! has, therefore leaves the others their shares. Of subscriptions and of queue bytes, an owner may have at
//! most half of what the others left.
//! Not here: the budget of one subscription (`meter`, `account`), who the owners are (`owner`).

use super::meter::Meter;
use super::owner::Owner;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Common part, in milliseconds of CPU per second: enough for a hundred ordinary subscriptions at 64 Hz.
pub const COMMON_MS: u32 = 250;
/// Guaranteed part, divided among the owners, in milliseconds of CPU per second.
pub const GUARANTEED_MS: u32 = 250;
/// A round of evaluations may take the interval between two sweeps divided by this.
const ROUND_PART: u32 = 2;
/// A round may always take this long, whatever the rate: most rounds are shorter.
const ROUND_MIN: Duration = Duration::from_millis(2);
/// Divisor for the part of subscriptions and queue bytes that is reserved for the sensor's own subscriptions
/// and root.
const RESERVED_PART: u64 = 8;
/// An owner without an evaluation for this long gets no share.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// How long an owner whose subscriptions were throttled is reported.
const REPORTED_FOR: Duration = Duration::from_secs(60);

/// CPU time of all subscriptions, by owner.
#[derive(Debug)]
pub struct Shares<O> {
    common: Meter,
    guaranteed_per_sec: f64,
    /// Guaranteed share of each owner now, in seconds of CPU per second.
    per_sec: f64,
    divided_at: Duration,
    owners: BTreeMap<O, Share>,
    used: Duration,
    throttled_total: u64,
}

#[derive(Debug)]
struct Share {
    meter: Meter,
    /// CPU seconds used lately: decays exponentially, by a factor of e each second.
    recent: f64,
    recent_at: Duration,
    seen_at: Duration,
    throttled: u64,
    throttled_at: Duration,
}

impl Share {
    /// Applies the decay up to `now`; returns the CPU seconds used lately.
    fn decay(&mut self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.recent_at);
        self.recent_at = self.recent_at.max(now);
        self.recent *= (-passed.as_secs_f64()).exp();
        self.recent
    }
}

impl<O: Ord + Copy> Shares<O> {
    /// Creates shares with so many milliseconds per second in common and so many divided among the owners.
    #[must_use]
    pub fn new(common_ms: u32, guaranteed_ms: u32) -> Shares<O> {
        Shares {
            common: Meter::new(f64::from(common_ms) / 1e3, Duration::ZERO),
            guaranteed_per_sec: f64::from(guaranteed_ms) / 1e3,
            per_sec: f64::from(guaranteed_ms) / 1e3,
            divided_at: Duration::ZERO,
            owners: BTreeMap::new(),
            used: Duration::ZERO,
            throttled_total: 0,
        }
    }

    /// Marks the owner as active: from now on it has a share.
    fn see(&mut self, owner: O, now: Duration) -> &mut Share {
        let is_new = !self.owners.contains_key(&owner);
        if is_new || now.saturating_sub(self.divided_at) >= GONE_AFTER {
            self.divided_at = now;
            self.owners.retain(|_, share| now.saturating_sub(share.seen_at) < REPORTED_FOR);
            let present = self.owners.values().filter(|share| now.saturating_sub(share.seen_at) < GONE_AFTER);
            let count = u32::try_from(present.count() + usize::from(is_new)).unwrap_or(u32::MAX);
            self.per_sec = self.guaranteed_per_sec / f64::from(count.max(1));
            let per_sec = self.per_sec;
            self.owners.values_mut().for_each(|share| share.meter.limit(per_sec, now));
        }
        let per_sec = self.per_sec;
        let share = self.owners.entry(owner).or_insert_with(|| Share {
            meter: Meter::new(per_sec, now),
            recent: 0.0,
            recent_at: now,
            seen_at: now,
            throttled: 0,
            throttled_at: Duration::ZERO,
        });
        share.seen_at = now;
        share
    }

    /// Whether a subscription of this owner may be evaluated.
    pub fn may_run(&mut self, owner: O, now: Duration) -> bool {
        let has_share = self.see(owner, now).meter.has_left(now);
        self.common.has_left(now) || has_share
    }

    /// CPU time that this owner used lately: owners that used less go first.
    pub fn recent(&mut self, owner: O, now: Duration) -> Duration {
        Duration::from_secs_f64(self.see(owner, now).decay(now))
    }

    /// Charges the CPU time of an evaluation: to the common part while any of it is left, else to the owner's
    /// share.
    pub fn spend(&mut self, owner: O, cpu: Duration, now: Duration) {
        self.used += cpu;
        let secs = cpu.as_secs_f64();
        let is_common = self.common.has_left(now);
        if is_common {
            self.common.spend(secs);
        }
        if let Some(share) = self.owners.get_mut(&owner) {
            share.decay(now);
            share.recent += secs;
            if !is_common {
                share.meter.spend(secs);
            }
        }
    }

    /// Counts a sample of this owner that was left out.
    pub fn throttle(&mut self, owner: O, now: Duration) {
        self.throttled_total += 1;
        if let Some(share) = self.owners.get_mut(&owner) {
            if now.saturating_sub(share.throttled_at) >= REPORTED_FOR {
                share.throttled = 0;
            }
            (share.throttled, share.throttled_at) = (share.throttled + 1, now);
        }
    }

    /// Owners with samples left out lately, and how many.
    pub fn throttled(&self, now: Duration) -> impl Iterator<Item = (O, u64)> {
        let lately = self.owners.iter().filter(move |(_, share)| {
            share.throttled > 0 && now.saturating_sub(share.throttled_at) < REPORTED_FOR
        });
        lately.map(|(owner, share)| (*owner, share.throttled))
    }

    /// CPU time of all owners since the start.
    #[must_use]
    pub fn used(&self) -> Duration {
        self.used
    }

    /// Samples left out since the start.
    #[must_use]
    pub fn throttled_total(&self) -> u64 {
        self.throttled_total
    }
}

/// CPU budget shared by the subscriptions of several hubs.
#[derive(Clone)]
pub struct Budget(pub(super) Arc<Mutex<Shares<Owner>>>);

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(COMMON_MS, GUARANTEED_MS)
    }
}

impl Budget {
    /// Creates a budget with so many milliseconds per second in common and so many divided among the owners.
    #[must_use]
    pub fn new(common_ms: u32, guaranteed_ms: u32) -> Budget {
        Budget(Arc::new(Mutex::new(Shares::new(common_ms, guaranteed_ms))))
    }
}

/// How long one round of evaluations may take when sweeps come at this interval.
#[must_use]
pub fn round(interval: Duration) -> Duration {
    (interval / ROUND_PART).max(ROUND_MIN)
}

/// How much of a shared resource is taken, by one owner and by all others.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    all: u64,
    own: u64,
    others: u64,
}

impl Usage {
    /// Nothing is taken yet of `all`.
    #[must_use]
    pub fn of(all: u64) -> Usage {
        Usage { all, own: 0, others: 0 }
    }

    /// Adds `count` to what the owner itself or the others have taken.
    pub fn add(&mut self, is_own: bool, count: u64) {
        *if is_own { &mut self.own } else { &mut self.others } += count;
    }

    /// How much is lacking for `more` of the owner; 0 if it may have that. Trusted owners may take all that
    /// is left. Others may take half of what the rest left, or `least` if that is more and is there; an
    /// eighth of all stays reserved for trusted owners.
    #[must_use]
    pub fn lacks(self, more: u64, least: u64, is_trusted: bool) -> u64 {
        let left = self.all.saturating_sub(self.others);
        let most = match is_trusted {
            true => left,
            false => {
                let left = left.saturating_sub(self.all / RESERVED_PART);
                (left / 2).max(least).min(left)
            }
        };
        self.own.saturating_add(more).saturating_sub(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Each millisecond, every owner requests one evaluation of so many microseconds, ordered by `recent`.
    fn run(wants_us: &[u64]) -> Vec<Duration> {
        let mut shares = Shares::new(COMMON_MS, GUARANTEED_MS);
        let mut used = vec![Duration::ZERO; wants_us.len()];
        for ms in 0..10_000 {
            let mut order: Vec<usize> = (0..wants_us.len()).collect();
            order.sort_by_key(|owner| shares.recent(*owner, at(ms)));
            for owner in order {
                if shares.may_run(owner, at(ms)) {
                    let cpu = Duration::from_micros(wants_us[owner]);
                    shares.spend(owner, cpu, at(ms));
                    used[owner] += cpu;
                } else {
                    shares.throttle(owner, at(ms));
                }
            }
        }
        used
    }

    #[test]
    fn one_alone_has_both_parts_and_no_more() {
        let [used] = run(&[900])[..] else { panic!("one") };
        let expected = at(10 * u64::from(COMMON_MS + GUARANTEED_MS));
        assert!(used.abs_diff(expected) < at(600), "{used:?}");
    }

    #[test]
    fn a_consumer_that_needs_little_gets_it_beside_those_that_need_all() {
        let used = run(&[50, 900, 900, 900]);
        assert_eq!(used[0], at(500), "every one of its evaluations");
        assert!(used.iter().sum::<Duration>() < at(5_800), "{used:?}");
    }

    #[test]
    fn all_that_is_left_out_is_counted_and_reported_for_a_while() {
        let mut shares = Shares::new(1, 1);
        assert!(shares.may_run(7_u32, at(0)) && shares.may_run(8, at(0)));
        shares.spend(7, at(100), at(0));
        assert!(shares.may_run(7, at(10)), "it has its share");
        shares.spend(7, at(100), at(10));
        assert!(!shares.may_run(7, at(20)) && shares.may_run(8, at(20)), "the other has its share");
        shares.throttle(7, at(10));
        shares.throttle(7, at(20));
        assert_eq!(shares.throttled(at(30)).collect::<Vec<_>>(), [(7, 2)]);
        assert_eq!(shares.throttled(at(70_000)).count(), 0);
        assert_eq!((shares.throttled_total(), shares.used()), (2, at(200)));
        assert!(shares.may_run(8, at(200_000)));
        assert_eq!(shares.owners.len(), 1, "the other is gone");
    }

    #[test]
    fn half_of_what_others_left_and_a_few_in_any_case() {
        let lacks = |others: u64, own: u64, is_trusted: bool| {
            let mut usage = Usage::of(256);
            usage.add(false, others);
            usage.add(true, own);
            usage.lacks(1, 8, is_trusted)
        };
        for (others, own, expected) in [
            (0, 111, 0),
            (0, 112, 1),
            (112, 55, 0),
            (112, 56, 1),
            (214, 7, 0),
            (214, 8, 1),
            (220, 4, 1),
            (224, 0, 1),
        ] {
            assert_eq!(lacks(others, own, false), expected, "{others} {own}");
        }
        assert_eq!((lacks(224, 31, true), lacks(224, 32, true)), (0, 1), "root has the rest");
    }
}
