//! What a daemon has stored: how far it reaches, and the rows of a day.
//!
//! Not here: where they go (`export`).

use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::options::OfDomain;
use ::client::typed::About;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use sensor::config::DOMAIN_DEFAULT;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use wire::api::calls::{CallOrder, Calls, CallsParams, DomainCallsParams};
use wire::api::daemon::InfoParams;
use wire::api::history::{Aggregate, DomainHistory, DomainHistoryParams, HistoryParams, TierAge};
use wire::api::{Request, Span, UnixTime};
use wire::call::State;
use wire::time::Time;

/// A day is over for its hosts' metrics when this time has passed: their last minute is copied.
const COPIED_AFTER: Duration = Duration::from_secs(300);

/// Calls on a page.
const CALLS_ON_PAGE: u64 = 5_000;

/// Name that no metric has.
const NO_METRIC: &str = "-";

/// The stored past of a domain.
pub(super) struct Source {
    client: Client,
    about: About,
    /// Name of the domain; of the host, if it is in none.
    pub(super) domain: String,
}

/// How far the stored past reaches.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// The oldest value of each tier.
    pub(super) tiers: Vec<TierAge>,
    /// Latest time of the oldest stored call.
    pub(super) calls: Option<UnixTime>,
    /// Only the caller's own calls, of those that are stored.
    pub(super) own_calls_only: bool,
    /// Hosts whose metrics are not copied until now, and until when they are.
    pub(super) behind: BTreeMap<String, UnixTime>,
}

impl Source {
    /// The past of the queried daemon's domain, or of another.
    ///
    /// # Errors
    /// If no daemon is reached.
    pub(super) fn new(target: &Target, whose: &OfDomain) -> Result<Source, Failure> {
        let mut source = Source { client: Client::new(target), about: whose.about(), domain: String::new() };
        source.domain = match &whose.domain {
            Some(domain) => domain.clone(),
            None => {
                let info = source.ask(&InfoParams {})?;
                // A daemon without a domain of its own has the same name for it everywhere.
                info.domain.filter(|domain| domain != DOMAIN_DEFAULT).unwrap_or(info.host)
            }
        };
        Ok(source)
    }

    fn ask<R: Request>(&mut self, request: &R) -> Result<R::Answer, Failure> {
        let answer = self.client.ask(request, &self.about, PATIENCE);
        answer.map_err(|error| self.client.explain(R::METHOD, error))
    }

    /// How far the past reaches.
    ///
    /// # Errors
    /// If the daemon does not answer, or stores none.
    pub(super) fn reach(&mut self) -> Result<Reach, Failure> {
        let none = HistoryParams { name: Some(NO_METRIC.to_owned()), ..HistoryParams::default() };
        let DomainHistory { history, behind } =
            self.ask(&DomainHistoryParams { history: none, host: None })?;
        let calls = CallsParams { limit: 1, state: Some(State::Ended), ..CallsParams::default() };
        let Calls { stored_since, stored_own_only, .. } = self.ask(&DomainCallsParams(calls))?;
        let behind = behind.into_iter().map(|host| (host.host, host.until)).collect();
        Ok(Reach { tiers: history.oldest, calls: stored_since, own_calls_only: stored_own_only, behind })
    }

    /// Passes the metrics of a day, a page at a time, to `each`.
    ///
    /// # Errors
    /// If the daemon does not answer, and the errors of `each`.
    pub(super) fn metrics(
        &mut self,
        date: Date,
        mut each: impl FnMut(&DomainHistory) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Range { start, end } = span(date);
        let mut cursor = String::new();
        loop {
            let history = HistoryParams {
                since: Some(UnixTime(start)),
                until: Some(UnixTime(end)),
                step: Some(Span(Duration::from_secs(60))),
                aggregate: Aggregate::Summary,
                cursor: Some(cursor),
                ..HistoryParams::default()
            };
            let answer = self.ask(&DomainHistoryParams { history, host: None })?;
            each(&answer)?;
            match answer.history.next {
                Some(next) => cursor = next,
                None => return Ok(()),
            }
        }
    }

    /// Passes the calls that ended on a day, a page at a time, to `each`.
    ///
    /// # Errors
    /// If the daemon does not answer, and the errors of `each`.
    pub(super) fn calls(
        &mut self,
        date: Date,
        mut each: impl FnMut(&Calls) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Range { start, end } = span(date);
        let mut params = CallsParams {
            state: Some(State::Ended),
            since: Some(UnixTime(start)),
            until: Some(UnixTime(end.minus(Duration::from_micros(1)))),
            order: CallOrder::Oldest,
            limit: CALLS_ON_PAGE,
            ..CallsParams::default()
        };
        loop {
            let mut page = self.ask(&DomainCallsParams(params.clone()))?;
            params.cursor = page.next.take();
            each(&page)?;
            if params.cursor.is_none() {
                return Ok(());
            }
        }
    }
}

impl Reach {
    /// The days that are stored, of those wanted, and over; with `open` also those that are not.
    pub(super) fn days(&self, since: Option<Date>, until: Option<Date>, open: bool, now: Time) -> Vec<Date> {
        let last = if open { Some(date_of(now)) } else { date_of(now.minus(COPIED_AFTER)).yesterday().ok() };
        let last = until.into_iter().chain(last).min();
        let first = since.into_iter().chain(self.since().map(date_of)).max();
        let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
        first.series(1.day()).take_while(|date| *date <= last).collect()
    }

    /// Time of the oldest minute, hour or call.
    fn since(&self) -> Option<Time> {
        // Samples are exported as minutes: those of the open minute have none yet.
        let times = self.tiers.iter().filter(|tier| tier.tier != "raw").map(|tier| tier.time);
        times.chain(self.calls).min().map(|UnixTime(time)| time)
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

/// The time of a day (UTC).
pub(super) fn span(date: Date) -> Range<Time> {
    let start = |date: Date| {
        let zoned = date.to_zoned(TimeZone::UTC).expect("every day begins in UTC");
        Time::from_micros(zoned.timestamp().as_microsecond())
    };
    start(date)..start(date.tomorrow().unwrap_or(date))
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
        let mut reach = Reach { tiers, ..Reach::default() };
        let days = |reach: &Reach, since, until, now| -> Vec<i8> {
            reach.days(since, until, false, now).into_iter().map(Date::day).collect()
        };
        assert_eq!(days(&reach, None, None, at(7, 3)), [3, 4, 5, 6]);
        let midnight = at(7, 0);
        assert_eq!(days(&reach, None, None, midnight), [3, 4, 5], "the last minute is not copied yet");
        assert_eq!(days(&reach, None, None, midnight.plus(COPIED_AFTER)), [3, 4, 5, 6]);
        assert_eq!(days(&reach, Some(date(2026, 11, 5)), None, at(7, 3)), [5, 6]);
        assert_eq!(days(&reach, None, Some(date(2026, 11, 4)), at(7, 3)), [3, 4]);
        assert_eq!(days(&reach, Some(date(2026, 11, 9)), None, at(7, 3)), [0; 0]);
        let open: Vec<i8> = reach.days(None, None, true, midnight).into_iter().map(Date::day).collect();
        assert_eq!(open, [3, 4, 5, 6, 7], "those that are not over too");
        reach.calls = Some(UnixTime(at(1, 0)));
        assert_eq!(days(&reach, None, None, at(3, 3)), [1, 2]);
        assert_eq!(days(&Reach::default(), None, None, at(3, 3)), [0; 0]);
    }
}
