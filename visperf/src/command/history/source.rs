//! What a daemon has stored: how far it reaches, and the rows of a day.
//!
//! Not here: where they go (`export`).

use super::days::{Reach, Walk, date_of};
use crate::client::target::Target;
use crate::client::{Client, NO_METHOD, PATIENCE};
use crate::exit::Failure;
use crate::options::OfDomain;
use crate::output::times;
use ::client::Error;
use ::client::typed::About;
use history_files::day::span;
use jiff::civil::Date;
use sensor::config::DOMAIN_DEFAULT;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use wire::api::calls::{Call, CallOrder, Calls, CallsParams, DomainCallsParams};
use wire::api::daemon::InfoParams;
use wire::api::domain::{HostState, Hosts, HostsParams};
use wire::api::events::{DomainEventsParams, Events, EventsParams};
use wire::api::history::{Aggregate, DomainHistory, DomainHistoryParams, HistoryParams};
use wire::api::process_history::{ProcessHistory, ProcessHistoryParams};
use wire::api::processes::ProcessOrder;
use wire::api::{Request, Span, UnixTime};
use wire::call::State;
use wire::time::Time;

/// Calls or events on a page.
const ROWS_ON_PAGE: u64 = 5_000;

/// Processes of an hour at most: more than are stored of one.
const PROCESSES_MAX: u64 = 10_000;

/// An hour.
const HOUR: Duration = Duration::from_secs(3600);

/// Code of a fault: there is no such thing.
const NOT_FOUND: i64 = wire::fault::NOT_FOUND as i64;

/// Name that no metric has.
const NO_METRIC: &str = "-";

/// The stored past of a domain.
pub(super) struct Source {
    client: Client,
    about: About,
    /// Name of the domain; of the host, if it is in none.
    pub(super) domain: String,
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
        let first = EventsParams { cursor: Some(String::new()), limit: 1, ..EventsParams::default() };
        let Events { events, unheard, missed, .. } = self.ask(&DomainEventsParams(first))?;
        let Hosts { hosts, .. } = self.ask(&HostsParams {})?;
        let hosts = hosts.into_iter().map(|host| (host.host, host.state == HostState::Live)).collect();
        let of_host = ProcessHistoryParams { limit: 1, ..ProcessHistoryParams::default() };
        let ProcessHistory { oldest: processes, own_only, .. } =
            self.client.ask(&of_host, &self.about, PATIENCE).unwrap_or_default();
        Ok(Reach {
            hosts,
            processes,
            own_processes_only: own_only,
            tiers: history.oldest,
            calls: stored_since,
            own_calls_only: stored_own_only,
            events: events.first().map(|event| event.time),
            behind: behind.into_iter().map(|host| (host.host, host.until)).collect(),
            unheard,
            deleted_events: missed,
        })
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

    /// Passes the processes of a host on a day that used most, hour by hour, to `each`; returns whether the host
    /// answered. One that stores none has answered.
    ///
    /// # Errors
    /// If the daemon does not answer, and the errors of `each`.
    pub(super) fn processes(
        &mut self,
        date: Date,
        host: &str,
        mut each: impl FnMut(Time, &ProcessHistory) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Range { start, end } = span(date);
        let about = About { host: Some(host.to_owned()), ..self.about.clone() };
        // Of a day that is not over, nothing is asked of the hours that are not there yet.
        let (mut hour, end) = (start, end.min(times::now()));
        while hour < end {
            let next = hour.plus(HOUR);
            let params = ProcessHistoryParams {
                since: Some(UnixTime(hour)),
                until: Some(UnixTime(next.minus(Duration::from_micros(1)))),
                order: ProcessOrder::Start,
                limit: PROCESSES_MAX,
                ..ProcessHistoryParams::default()
            };
            let answer = match self.client.ask(&params, &about, PATIENCE) {
                Err(Error::Fault { code: NOT_FOUND | NO_METHOD, .. }) => {
                    return Ok(true);
                }
                Err(Error::Fault { .. }) => return Ok(false),
                answer => answer.map_err(|error| self.client.explain(ProcessHistoryParams::METHOD, error))?,
            };
            each(hour, &answer)?;
            // The hours before the oldest have none.
            let Some(UnixTime(oldest)) = answer.oldest else { return Ok(true) };
            let passed = Duration::from_secs(oldest.micros().unsigned_abs() / 1_000_000 % HOUR.as_secs());
            hour = next.max(oldest.minus(passed));
        }
        Ok(true)
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
            limit: ROWS_ON_PAGE,
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

    /// Passes the events of a day, a page at a time, to `each`; returns how many could not be read, but for the oldest,
    /// which are `deleted`.
    ///
    /// # Errors
    /// If the daemon does not answer, and the errors of `each`.
    pub(super) fn events(
        &mut self,
        date: Date,
        deleted: u64,
        mut each: impl FnMut(&Events) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let Range { start, end } = span(date);
        let mut params = EventsParams {
            cursor: Some(String::new()),
            since: Some(UnixTime(start)),
            until: Some(UnixTime(end.minus(Duration::from_micros(1)))),
            limit: ROWS_ON_PAGE,
            ..EventsParams::default()
        };
        let mut missed = 0;
        loop {
            let page = self.ask(&DomainEventsParams(params.clone()))?;
            missed += page.missed;
            each(&page)?;
            if (page.events.len() as u64) < ROWS_ON_PAGE {
                return Ok(missed.saturating_sub(deleted));
            }
            params.cursor = Some(page.cursor);
        }
    }

    /// The days before a time, or all, that have an event.
    fn event_days(&mut self, before: Option<Time>) -> Result<BTreeSet<Date>, Failure> {
        let mut params = EventsParams {
            cursor: Some(String::new()),
            until: before.map(|before| UnixTime(before.minus(Duration::from_micros(1)))),
            limit: ROWS_ON_PAGE,
            ..EventsParams::default()
        };
        let mut days = BTreeSet::new();
        loop {
            let page = self.ask(&DomainEventsParams(params.clone()))?;
            days.extend(page.events.iter().map(|event| date_of(event.time.0)));
            if (page.events.len() as u64) < ROWS_ON_PAGE {
                return Ok(days);
            }
            params.cursor = Some(page.cursor);
        }
    }

    /// The days that are exported.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub(super) fn days(&mut self, reach: &Reach, walk: &Walk) -> Result<Vec<Date>, Failure> {
        // Logs may have any times, so events before the metrics are looked for.
        let events = self.event_days(reach.metrics().map(|date| span(date).start))?;
        walk.days(reach, &events, |date| self.next_call(date))
    }

    /// Day of the first call on this day or later.
    fn next_call(&mut self, date: Date) -> Result<Option<Date>, Failure> {
        let params = CallsParams {
            state: Some(State::Ended),
            since: Some(UnixTime(span(date).start)),
            order: CallOrder::Oldest,
            limit: 1,
            ..CallsParams::default()
        };
        let page = self.ask(&DomainCallsParams(params))?;
        let times = |call: &Call| [call.submitted, call.started, call.ended].into_iter().flatten().max();
        Ok(page.calls.first().and_then(times).map(|latest| date_of(latest.0)))
    }
}
