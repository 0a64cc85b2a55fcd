//! Plan of a query: which tier answers which part of the requested time.
//!
//! Pure. Rule: the coarsest tier whose buckets fit into the step, so that the answer is exact and the work
//! small; for what that tier no longer has, minutes that are stored elsewhere, and else the next coarser one.

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

/// What answers a part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A tier of this store.
    Tier(Part),
    /// Minutes that are stored elsewhere, from the first time on, before the second.
    Elsewhere(Time, Time),
}

/// Plans a query as [`plan`] does; the minutes of these times are stored `elsewhere`: spans that do not overlap, oldest
/// first, which begin and end with whole hours.
#[must_use]
pub fn plan_with(
    step: Duration,
    since: Time,
    until: Time,
    oldest: [Option<Time>; 3],
    elsewhere: &[(Time, Time)],
) -> Vec<Piece> {
    let best = tier_for(Some(step));
    let stored = best.period().map(|period| oldest[best.index()].map_or(until, |time| next(time, period)));
    let end = stored.map_or(since, |stored| stored.clamp(since, until));
    let here = |since, until| plan(Some(step), since, until, oldest).into_iter().map(Piece::Tier);
    let (mut pieces, mut from) = (Vec::new(), since);
    for (first, last) in elsewhere {
        let (first, last) = ((*first).max(from), (*last).min(end));
        if first < last {
            pieces.extend(here(from, first));
            pieces.push(Piece::Elsewhere(first, last));
            from = last;
        }
    }
    pieces.extend(here(from, until));
    pieces
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
    fn minutes_elsewhere_are_read_where_the_tier_of_the_step_has_none() {
        let oldest = [Some(at(200_030)), Some(at(100_020)), Some(at(3600))];
        let elsewhere = [(at(7200), at(14_400)), (at(86_400), at(172_800))];
        let planned = |step, since, until, oldest| {
            plan_with(Duration::from_secs(step), at(since), at(until), oldest, &elsewhere)
        };
        let tier = |tier, since, until| Piece::Tier(Part { tier, since: at(since), until: at(until) });
        let other = |since, until| Piece::Elsewhere(at(since), at(until));
        assert_eq!(
            planned(60, 0, 250_000, oldest),
            [
                tier(Tier::Hour, 0, 7200),
                other(7200, 14_400),
                tier(Tier::Hour, 14_400, 86_400),
                other(86_400, 100_020),
                tier(Tier::Minute, 100_020, 250_000),
            ]
        );
        // Hours are here.
        assert_eq!(planned(3600, 3600, 250_000, oldest), [tier(Tier::Hour, 3600, 250_000)]);
        // Minutes do not answer finer steps.
        assert_eq!(planned(10, 100_080, 250_000, oldest).len(), 2);
        assert!(planned(10, 0, 250_000, oldest).iter().all(|piece| matches!(piece, Piece::Tier(_))));
        // Nothing is here.
        let nothing = planned(3600, 90_000, 180_000, [None; 3]);
        assert_eq!(nothing, [other(90_000, 172_800), tier(Tier::Hour, 172_800, 180_000)]);
        assert_eq!(planned(60, 8000, 9000, oldest), [other(8000, 9000)]);
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
