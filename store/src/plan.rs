//! Plan of a query: which tier answers which part of the requested time.
//!
//! Pure. Rule: the coarsest tier whose buckets fit into the step, so that the answer is exact and the work
//! small; for what that tier no longer has, the next coarser one.

use crate::tier::{Tier, floor};
use std::time::Duration;
use wire::time::Time;

/// A part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The tier that is read.
    pub tier: Tier,
    /// From this time on.
    pub since: Time,
    /// Before this time.
    pub until: Time,
}

/// The coarsest tier whose buckets fit into this step; raw without a step.
#[must_use]
pub fn tier_for(step: Option<Duration>) -> Tier {
    let fits = |tier: &Tier| {
        tier.period().is_none_or(|period| {
            step.is_some_and(|step| {
                step.as_micros() > 0 && step.as_micros().is_multiple_of(period.as_micros())
            })
        })
    };
    Tier::ALL.into_iter().rev().find(fits).unwrap_or(Tier::Raw)
}

/// Plans a query, oldest part first; `oldest` is the oldest time that each tier has.
#[must_use]
pub fn plan(step: Option<Duration>, since: Time, until: Time, oldest: [Option<Time>; 3]) -> Vec<Part> {
    let best = tier_for(step);
    let mut parts = Vec::new();
    let mut end = until;
    for tier in Tier::ALL.into_iter().skip(best.index()) {
        if end <= since {
            break;
        }
        let from = match (oldest[tier.index()], reach(tier, oldest)) {
            (Some(oldest), Some((period, further))) if oldest > since && further < floor(oldest, period) => {
                next(oldest, period).max(since)
            }
            (None, Some(_)) => end,
            _ => since,
        };
        if from < end {
            parts.push(Part { tier, since: from, until: end });
            end = from;
        }
    }
    parts.reverse();
    parts
}

/// Bucket length and oldest time of the next coarser tier that has anything.
fn reach(tier: Tier, oldest: [Option<Time>; 3]) -> Option<(Duration, Time)> {
    Tier::ALL.into_iter().skip(tier.index() + 1).find_map(|tier| tier.period().zip(oldest[tier.index()]))
}

/// The first start of a span at `time` or later.
pub(crate) fn next(time: Time, period: Duration) -> Time {
    let start = floor(time, period);
    if start == time { start } else { start.plus(period) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    #[test]
    fn the_step_chooses_the_tier() {
        let check = |step: Option<u64>, tier| assert_eq!(tier_for(step.map(Duration::from_secs)), tier);
        check(None, Tier::Raw);
        check(Some(10), Tier::Raw);
        check(Some(60), Tier::Minute);
        check(Some(90), Tier::Raw);
        check(Some(300), Tier::Minute);
        check(Some(86_400), Tier::Hour);
    }

    #[test]
    fn what_a_tier_no_longer_has_comes_from_the_next_one() {
        let oldest = [Some(at(100_030)), Some(at(36_000)), Some(at(3600))];
        let parts = plan(Some(Duration::from_secs(10)), at(0), at(200_000), oldest);
        let part = |tier, since, until| Part { tier, since: at(since), until: at(until) };
        assert_eq!(
            parts,
            [
                part(Tier::Hour, 0, 36_000),
                part(Tier::Minute, 36_000, 100_080),
                part(Tier::Raw, 100_080, 200_000),
            ]
        );
        let recent = plan(None, at(150_000), at(200_000), oldest);
        assert_eq!(recent, [part(Tier::Raw, 150_000, 200_000)]);
        let minutes = plan(Some(Duration::from_secs(60)), at(0), at(200_000), oldest);
        assert_eq!(minutes[1], part(Tier::Minute, 36_000, 200_000));
        assert_eq!(plan(None, at(5), at(5), oldest), []);
        assert_eq!(plan(None, at(0), at(5), [None; 3]), [part(Tier::Raw, 0, 5)]);
        // Buckets start before their first sample, but have no other samples.
        let young = [Some(at(100_030)), Some(at(100_020)), Some(at(97_200))];
        assert_eq!(plan(None, at(0), at(200_000), young), [part(Tier::Raw, 0, 200_000)]);
    }
}
