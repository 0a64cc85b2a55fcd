//! The days that are exported: those that are stored, and over.
//!
//! Pure. Not here: what is stored of a day (`source`).

use crate::exit::Failure;
use history_files::day::span;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::history::TierAge;
use wire::time::Time;

/// A day is over for its hosts' metrics when this time has passed: their last minute is copied.
const COPIED_AFTER: Duration = Duration::from_secs(300);

/// How far the stored past reaches.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// The oldest value of each tier.
    pub(super) tiers: Vec<TierAge>,
    /// Latest time of the oldest stored call.
    pub(super) calls: Option<UnixTime>,
    /// Time of the oldest stored event.
    pub(super) events: Option<UnixTime>,
    /// Only the caller's own calls, of those that are stored.
    pub(super) own_calls_only: bool,
    /// Start of the oldest stored minute of processes, of the host that was asked.
    pub(super) processes: Option<UnixTime>,
    /// Only the caller's own processes.
    pub(super) own_processes_only: bool,
    /// The hosts of the domain, and whether they report.
    pub(super) hosts: BTreeMap<String, bool>,
    /// Hosts whose metrics are not copied until now, and until when they are.
    pub(super) behind: BTreeMap<String, UnixTime>,
    /// Hosts whose events may be missing.
    pub(super) unheard: Vec<String>,
    /// Number of events that were deleted before the oldest stored one.
    pub(super) deleted_events: u64,
}

impl Reach {
    /// Day of the oldest minute or hour.
    pub(super) fn metrics(&self) -> Option<Date> {
        // Samples are exported as minutes: those of the open minute have none yet.
        let is_exported = |tier: &&TierAge| tier.tier == "1m" || tier.tier == "1h";
        let times = self.tiers.iter().filter(is_exported).map(|tier| tier.time.0);
        times.min().map(date_of)
    }
}

/// Which days are wanted.
pub(super) struct Walk {
    /// From this day on.
    pub(super) since: Option<Date>,
    /// Until this day.
    pub(super) until: Option<Date>,
    /// Also those that are not over.
    pub(super) open: bool,
    /// The present.
    pub(super) now: Time,
}

impl Walk {
    /// The wanted days that are stored, oldest first. From the oldest metrics on all are; before them those that have an
    /// event or a call: logs may have any times. `next_call` answers the first day with a call, on its day or later.
    ///
    /// # Errors
    /// The errors of `next_call`.
    pub(super) fn days(
        &self,
        reach: &Reach,
        events: &BTreeSet<Date>,
        mut next_call: impl FnMut(Date) -> Result<Option<Date>, Failure>,
    ) -> Result<Vec<Date>, Failure> {
        let &Walk { since, until, open, now } = self;
        let last = if open { Some(date_of(now)) } else { date_of(now.minus(COPIED_AFTER)).yesterday().ok() };
        let last = until.into_iter().chain(last).min();
        let rows = reach.calls.map(|UnixTime(time)| date_of(time)).into_iter().chain(events.first().copied());
        let first =
            rows.chain(reach.metrics()).min().map(|first| since.map_or(first, |since| since.max(first)));
        let (Some(mut date), Some(last)) = (first, last) else { return Ok(Vec::new()) };
        let mut days = Vec::new();
        while date <= last {
            if reach.metrics().is_none_or(|first| date < first) {
                let event = events.range(date..).next().copied();
                match next_call(date)?.into_iter().chain(event).chain(reach.metrics()).min() {
                    Some(next) if next <= last => date = date.max(next),
                    Some(_) | None => break,
                }
            }
            days.push(date);
            match date.tomorrow() {
                Ok(next) => date = next,
                Err(_) => break,
            }
        }
        Ok(days)
    }
}

/// Whether all of a day can be known at this time.
pub(super) fn is_over(date: Date, now: Time) -> bool {
    span(date).end <= now.minus(COPIED_AFTER)
}

/// The day (UTC) of a time.
pub(super) fn date_of(time: Time) -> Date {
    let timestamp = Timestamp::from_microsecond(time.micros()).unwrap_or_default();
    timestamp.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(day: i8, hours: u32) -> Time {
        span(date(2026, 11, day)).start.plus(HOUR * hours)
    }

    #[test]
    fn days_that_are_over_and_stored_are_exported() {
        let age = |tier: &str, time| TierAge { tier: tier.to_owned(), time: UnixTime(time) };
        let tiers = vec![age("raw", at(2, 1)), age("1m", at(4, 5)), age("1h", at(3, 23))];
        let reach = Reach { tiers, ..Reach::default() };
        let walked = |reach: &Reach, walk: Walk| -> Vec<i8> {
            let next = |_| panic!("no day is before the metrics");
            let days = walk.days(reach, &BTreeSet::new(), next).expect("no request");
            days.into_iter().map(Date::day).collect()
        };
        let days = |reach: &Reach, since, until, now| walked(reach, Walk { since, until, open: false, now });
        assert_eq!(days(&reach, None, None, at(7, 3)), [3, 4, 5, 6]);
        let midnight = at(7, 0);
        assert_eq!(days(&reach, None, None, midnight), [3, 4, 5], "the last minute is not copied yet");
        assert_eq!(days(&reach, None, None, midnight.plus(COPIED_AFTER)), [3, 4, 5, 6]);
        assert_eq!(days(&reach, Some(date(2026, 11, 5)), None, at(7, 3)), [5, 6]);
        assert_eq!(days(&reach, None, Some(date(2026, 11, 4)), at(7, 3)), [3, 4]);
        assert_eq!(days(&reach, Some(date(2026, 11, 9)), None, at(7, 3)), [0; 0]);
        let open = walked(&reach, Walk { since: None, until: None, open: true, now: midnight });
        assert_eq!(open, [3, 4, 5, 6, 7], "those that are not over too");
        assert_eq!(days(&Reach::default(), None, None, at(3, 3)), [0; 0]);
    }

    #[test]
    fn before_the_metrics_days_without_a_call_or_event_are_left_out() {
        let rows = [date(1970, 1, 1), date(2026, 11, 1), date(2026, 11, 4), date(2034, 1, 1)];
        let asked = std::cell::Cell::new(0);
        let next = |date: Date| {
            asked.set(asked.get() + 1);
            Ok(rows.into_iter().find(|row| *row >= date))
        };
        let metrics = TierAge { tier: "1m".to_owned(), time: UnixTime(at(5, 7)) };
        let mut reach = Reach { calls: Some(UnixTime::default()), tiers: vec![metrics], ..Reach::default() };
        let walk = |since| Walk { since, until: None, open: false, now: at(7, 3) };
        let with_metrics = [5, 6].map(|day| date(2026, 11, day));
        let none = BTreeSet::new();
        assert_eq!(walk(None).days(&reach, &none, next).expect("days"), [&rows[..3], &with_metrics].concat());
        assert_eq!(asked.get(), 3);
        let later = walk(Some(date(2026, 11, 2))).days(&reach, &none, next).expect("days");
        assert_eq!(later, [&rows[2..3], &with_metrics].concat());
        // Events alone.
        (reach.tiers, reach.calls) = (Vec::new(), None);
        let events = BTreeSet::from(rows);
        assert_eq!(walk(None).days(&reach, &events, |_| Ok(None)).expect("days"), rows[..3]);
        assert!(walk(None).days(&reach, &events, |_| Err(Failure::Failed(String::new()))).is_err());
    }
}
