//! Loading of jobs: which page is requested next, and when what changed is requested again.
//!
//! Pure. Rule: one query at a time; all pages of a search have the same parameters, as their cursor requires. After an
//! error what is loaded remains, and the query is repeated after increasing pauses.

use super::range::Bounds;
use crate::jobs::PageRequest;
use std::sync::Arc;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::jobs::JobsSearchParams;
use wire::time::Time;

/// Interval of requests for what changed, in seconds.
const REFRESH_SECS: f64 = 3.0;
/// How far back a request for what changed goes beyond the previous one: a log may be read late.
const OVERLAP: Duration = Duration::from_secs(60);
/// First and longest pause after an error, in seconds.
const RETRY_SECS: f64 = 3.0;
const RETRY_MAX_SECS: f64 = 60.0;
/// Timeout of an answer, in seconds.
const ANSWER_MAX_SECS: f64 = 330.0;

/// What is requested next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    First,
    Page(String),
    /// All pages are loaded: what changed since.
    Changes,
}

/// What a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Page,
    Changes,
}

/// State of the loading of a search.
#[derive(Clone, Debug, Default)]
pub(super) struct Loading {
    /// Number of the search.
    number: u64,
    domain: Arc<str>,
    params: JobsSearchParams,
    next: Next,
    waiting: Option<(Time, Purpose)>,
    answered_at: Option<Time>,
    /// When the changes were requested that are known.
    changes_until: Option<Time>,
    failures: i32,
    error: Option<String>,
}

impl Loading {
    /// Start another search.
    pub(super) fn start(&mut self, domain: Arc<str>, params: JobsSearchParams, (since, until): Bounds) {
        let params = JobsSearchParams { since: since.map(UnixTime), until: until.map(UnixTime), ..params };
        *self = Loading { number: self.number + 1, domain, params, ..Loading::default() };
    }

    pub(super) fn params(&self) -> &JobsSearchParams {
        &self.params
    }

    pub(super) fn domain(&self) -> &str {
        &self.domain
    }

    /// Whether a search was started.
    pub(super) fn is_started(&self) -> bool {
        self.number > 0
    }

    /// Whether pages are missing.
    pub(super) fn is_loading(&self) -> bool {
        self.is_started() && self.next != Next::Changes
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The query that is due.
    pub(super) fn request(&self, now: Time) -> Option<PageRequest> {
        let since = |at: Option<Time>| at.map_or(f64::MAX, |at| now.since(at).as_secs_f64());
        if !self.is_started() || self.waiting.is_some_and(|(at, _)| since(Some(at)) < ANSWER_MAX_SECS) {
            return None;
        }
        let pause = RETRY_SECS * 2_f64.powi(self.failures.min(8) - 1);
        if self.failures > 0 && since(self.answered_at) < pause.min(RETRY_MAX_SECS) {
            return None;
        }
        let params = match &self.next {
            Next::First => self.params.clone(),
            Next::Page(cursor) => JobsSearchParams { cursor: Some(cursor.clone()), ..self.params.clone() },
            // Of a span that is over nothing changes.
            Next::Changes if self.params.until.is_some() || since(self.answered_at) < REFRESH_SECS => {
                return None;
            }
            Next::Changes => {
                let since = self.changes_until.map(|at| UnixTime(at.minus(OVERLAP)));
                JobsSearchParams { since: since.max(self.params.since), ..self.params.clone() }
            }
        };
        Some(PageRequest { number: self.number, domain: Arc::clone(&self.domain), params })
    }

    /// The query was sent.
    pub(super) fn requested(&mut self, now: Time) {
        let purpose = if self.next == Next::Changes { Purpose::Changes } else { Purpose::Page };
        if self.next == Next::First {
            self.changes_until = Some(now);
        }
        self.waiting = Some((now, purpose));
    }

    /// An answer with the cursor of the next page arrived; what it was for, unless it is of an earlier search.
    /// `is_full` is whether no more rows can be loaded.
    pub(super) fn answered(
        &mut self,
        number: u64,
        now: Time,
        next: Option<&str>,
        is_full: bool,
    ) -> Option<Purpose> {
        let (requested_at, purpose) = self.waiting.filter(|_| number == self.number)?;
        (self.waiting, self.answered_at, self.failures, self.error) = (None, Some(now), 0, None);
        match (purpose, next) {
            (Purpose::Page, Some(cursor)) if !is_full => self.next = Next::Page(cursor.to_owned()),
            (Purpose::Page, _) => self.next = Next::Changes,
            (Purpose::Changes, _) => self.changes_until = Some(requested_at),
        }
        Some(purpose)
    }

    /// The query failed.
    pub(super) fn failed(&mut self, number: u64, now: Time, error: String) {
        if number == self.number && self.waiting.take().is_some() {
            self.failures = self.failures.saturating_add(1);
            (self.answered_at, self.error) = (Some(now), Some(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn loading() -> Loading {
        let mut loading = Loading::default();
        assert_eq!(loading.request(at(1_000)), None, "nothing is searched");
        loading.start("Alpha".into(), JobsSearchParams::default(), (Some(at(100)), None));
        loading
    }

    /// The cursor and the start of the query that is due, which is sent.
    fn sent(loading: &mut Loading, secs: i64) -> Option<(Option<String>, Option<Time>)> {
        let request = loading.request(at(secs))?;
        loading.requested(at(secs));
        Some((request.params.cursor, request.params.since.map(|since| since.0)))
    }

    #[test]
    fn pages_are_requested_one_after_the_other_then_what_changed() {
        let mut loading = loading();
        assert_eq!(sent(&mut loading, 1_000), Some((None, Some(at(100)))));
        assert_eq!(sent(&mut loading, 1_001), None, "the answer is waited for");
        assert_eq!(loading.answered(1, at(1_001), Some("c1"), false), Some(Purpose::Page));
        assert_eq!(sent(&mut loading, 1_001), Some((Some("c1".to_owned()), Some(at(100)))));
        assert!(loading.is_loading());
        assert_eq!(loading.answered(1, at(1_002), None, false), Some(Purpose::Page));
        assert!(!loading.is_loading());
        assert_eq!(sent(&mut loading, 1_004), None);
        assert_eq!(
            sent(&mut loading, 1_006),
            Some((None, Some(at(940)))),
            "since a minute before the first page"
        );
        assert_eq!(loading.answered(1, at(1_007), Some("c2"), false), Some(Purpose::Changes));
        assert_eq!(sent(&mut loading, 1_020), Some((None, Some(at(946)))));
    }

    #[test]
    fn an_error_is_retried_later_each_time_and_answers_of_earlier_searches_are_dropped() {
        let mut loading = loading();
        let tried: Vec<i64> = (0..100)
            .filter(|secs| {
                let is_sent = sent(&mut loading, *secs).is_some();
                loading.failed(1, at(*secs), "no daemon answers".to_owned());
                is_sent
            })
            .collect();
        assert_eq!(tried, [0, 3, 9, 21, 45, 93]);
        assert_eq!(loading.error(), Some("no daemon answers"));
        loading.start("Alpha".into(), JobsSearchParams::default(), (None, None));
        assert_eq!(loading.error(), None);
        assert!(sent(&mut loading, 100).is_some(), "another search starts at once");
        assert_eq!(loading.answered(1, at(101), None, false), None);
        assert_eq!(loading.answered(2, at(101), Some("c1"), true), Some(Purpose::Page));
        assert!(!loading.is_loading(), "there is no room for more");
    }

    #[test]
    fn of_a_span_that_is_over_nothing_is_requested_again() {
        let mut loading = Loading::default();
        loading.start("Alpha".into(), JobsSearchParams::default(), (Some(at(0)), Some(at(10))));
        assert!(sent(&mut loading, 20).is_some());
        loading.answered(1, at(21), None, false);
        assert_eq!(sent(&mut loading, 999), None);
    }
}
