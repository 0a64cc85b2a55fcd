//! What of the past is requested of domains: calls around the time that is looked at, and how far back values are
//! stored.
//!
//! Pure. Not here: calls around a time (`live::past_calls`), metrics of the past (`live::history`).

use super::{Cache, CacheChanges, OfDomain, Question};
use crate::feed::Update;
use crate::grid::builder::CALLS_MAX;
use crate::live::calls::latest;
use crate::live::past_calls::{PastCallsAnswer, SIDE_MAX};
use crate::live::poll_schedule::{Due, PollSchedule};
use client::Error;
use std::time::Duration;
use wire::time::Time;

/// Interval of requests for the oldest values that a domain has stored, and after none could be received.
const OLDEST_EVERY: Duration = Duration::from_secs(600);
const OLDEST_AGAIN: Duration = Duration::from_secs(30);

impl Cache {
    /// Have the calls around a time in the grid too; returns whether the grid changed.
    pub(in crate::live) fn look_at(&mut self, at: Option<Time>) -> bool {
        self.looked_at = at;
        let is_present = at.is_none();
        self.domains.iter_mut().filter(|_| is_present).fold(false, |had_any, domain| {
            let has_any = domain.past_calls.clear();
            had_any || has_any
        })
    }

    /// The question for the calls of a domain around the time that is looked at.
    pub(super) fn past_calls(&mut self, now: Duration) -> Option<Question> {
        let at = self.looked_at?;
        // Half of the map at most is of the past, and all domains are in it.
        let side_max = (CALLS_MAX / 4 / self.domains.len().max(1)).clamp(1, SIDE_MAX);
        let domain =
            self.domains.iter_mut().find(|domain| domain.past_calls_due(at).is_some_and(|due| due <= now))?;
        domain.past_calls.ask();
        Some(Question::PastCalls { asked: domain.asked.clone(), at, side_max })
    }

    pub(super) fn take_past_calls(
        &mut self,
        asked: Option<&str>,
        answer: Result<PastCallsAnswer, Error>,
        now: Duration,
        took: Duration,
    ) -> CacheChanges {
        let domain = self.domains.iter_mut().find(|domain| domain.asked.as_deref() == asked);
        let is_wanted = self.looked_at.is_some();
        let grid = domain.is_some_and(|domain| {
            let changed = domain.past_calls.take(answer, now, took);
            // The present is looked at again meanwhile.
            if !is_wanted {
                domain.past_calls.clear();
            }
            changed && is_wanted
        });
        CacheChanges { grid, ..CacheChanges::default() }
    }

    /// The times at which a domain may have calls that are not in the grid.
    pub(super) fn unloaded(&self) -> Vec<(Time, Time)> {
        let room = self.newest_shown_since();
        let known = self.domains.iter().filter(|domain| !domain.hosts.is_empty());
        let of_domain = |domain: &OfDomain| {
            let oldest = domain.calls.oldest()?;
            let oldest = room.map_or(oldest, |room| room.max(oldest));
            Some(domain.past_calls.unloaded_before(oldest))
        };
        known.filter_map(of_domain).flatten().collect()
    }

    /// When the oldest values of a domain are due.
    pub(super) fn oldest_due(&self) -> Option<Duration> {
        let known = self.domains.iter().filter(|domain| !domain.hosts.is_empty());
        known.filter_map(|domain| domain.oldest.as_ref()?.next(false)).min()
    }

    /// The question for the oldest values of a domain that is due.
    pub(super) fn oldest(&mut self, now: Duration) -> Option<Question> {
        // At time zero everything is asked once, for a grid alone.
        let mut known = self.domains.iter_mut().filter(|domain| !domain.hosts.is_empty() && !now.is_zero());
        known.find_map(|domain| {
            let schedule = domain.oldest.get_or_insert_with(|| PollSchedule::every(OLDEST_EVERY));
            schedule.due(now, false)?;
            schedule.ask();
            Some(Question::Oldest(domain.asked.clone()))
        })
    }

    pub(super) fn take_oldest(
        &mut self,
        asked: Option<&str>,
        oldest: Result<Option<Time>, Error>,
        now: Duration,
        took: Duration,
    ) -> CacheChanges {
        let domain = self.domains.iter_mut().find(|domain| domain.asked.as_deref() == asked);
        if let Some(schedule) = domain.and_then(|domain| domain.oldest.as_mut()) {
            match &oldest {
                // A daemon of an earlier version stores nothing: it is asked as seldom.
                Ok(_) | Err(Error::Fault { .. }) => {
                    schedule.set_every(OLDEST_EVERY);
                    schedule.answered(Due::All, now, took);
                }
                Err(_) => {
                    schedule.set_every(OLDEST_AGAIN);
                    schedule.failed(now);
                }
            }
        }
        let update = oldest.ok().flatten().map(Update::Oldest);
        CacheChanges { update, ..CacheChanges::default() }
    }

    /// The cached calls are shown from this time on: those of the past that are looked at take the room of the oldest.
    pub(super) fn newest_shown_since(&self) -> Option<Time> {
        let past: usize = self.domains.iter().map(|domain| domain.past_calls.iter().len()).sum();
        let calls = self.domains.iter().flat_map(|domain| domain.calls.iter());
        let mut times: Vec<Time> = match past {
            0 => return None,
            _ => calls.filter_map(latest).collect(),
        };
        times.sort_unstable();
        let beyond = (times.len() + past).saturating_sub(CALLS_MAX);
        match beyond {
            0 => None,
            // There is room for none of them.
            beyond => Some(times.get(beyond).copied().unwrap_or(Time::from_micros(i64::MAX))),
        }
    }
}
