//! Calls around a time before those that are cached, of one domain: the past that its representative has stored.
//!
//! Pure but for [`ask`]. Rule: one time is looked at, so what was around the previous one is replaced. Not here: the newest
//! calls (`calls`), which time is looked at (`model`).

use super::answers;
use super::ask::Client;
use super::asking::of_domain;
use super::calls::latest;
use client::Error;
use compact_str::CompactString;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::call::Call;
use wire::time::Time;

/// Calls that are requested before the time, and after it, of a domain that is shown alone.
pub(super) const SIDE_MAX: usize = 5_000;
/// A request that failed is repeated after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The next request follows after this time, and after so many times as long as the last one took.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_RATIO: u32 = 4;

/// Calls around a time.
#[derive(Debug, Default)]
pub(super) struct PastCalls {
    calls: BTreeMap<CompactString, Call>,
    /// From and until when all stored calls are among them.
    covers: Option<(Time, Time)>,
    is_out: bool,
    not_before: Duration,
}

/// What a daemon answered.
#[derive(Debug)]
pub(super) struct PastCallsAnswer {
    calls: Vec<Call>,
    covers: (Time, Time),
}

impl PastCalls {
    /// When calls around a time are to be requested, where those from `oldest` on are cached; `None` if never.
    pub(super) fn due(&self, at: Time, oldest: Option<Time>) -> Option<Duration> {
        let is_there = |(from, until): (Time, Time)| (from..=until).contains(&at);
        let is_cached = oldest.is_some_and(|oldest| at >= oldest);
        let is_lacking = !is_cached && !self.is_out && !self.covers.is_some_and(is_there);
        is_lacking.then_some(self.not_before)
    }

    /// A request was sent.
    pub(super) fn ask(&mut self) {
        self.is_out = true;
    }

    pub(super) fn is_out(&self) -> bool {
        self.is_out
    }

    /// Replace the calls by an answer; returns whether anything changed.
    pub(super) fn take(
        &mut self,
        answer: Result<PastCallsAnswer, Error>,
        now: Duration,
        took: Duration,
    ) -> bool {
        self.is_out = false;
        let Ok(answer) = answer else {
            self.not_before = now + AGAIN_AFTER;
            return false;
        };
        self.not_before = now + PAUSE.max(took * PAUSE_RATIO);
        self.covers = Some(answer.covers);
        self.calls = answer.calls.into_iter().map(|call| (call.id.clone(), call)).collect();
        true
    }

    /// Forget all, as the present is looked at; returns whether there was any.
    pub(super) fn clear(&mut self) -> bool {
        self.covers = None;
        let had_any = !self.calls.is_empty();
        self.calls.clear();
        had_any
    }

    /// Request them again, as another daemon may answer.
    pub(super) fn request_again(&mut self) {
        (self.covers, self.not_before) = (None, Duration::ZERO);
    }

    /// The times before `oldest` that are not covered.
    pub(super) fn unloaded_before(&self, oldest: Time) -> impl Iterator<Item = (Time, Time)> + use<> {
        let start = Time::from_micros(i64::MIN);
        let (from, until) = self.covers.unwrap_or((start, start));
        [(start, from), (until, oldest)].into_iter().filter(|(from, until)| from < until)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Call> {
        self.calls.values()
    }
}

/// Request so many calls on each side of a time.
///
/// # Errors
/// See [`Error`].
pub(super) fn ask(
    client: &mut Client,
    asked: Option<&str>,
    at: Time,
    side_max: usize,
) -> Result<PastCallsAnswer, Error> {
    let mut side = |order: &str, bound: &str| {
        let params = json!({ "limit": side_max, "order": order, bound: at.secs_f64() });
        client.ask("domain.calls", &of_domain(asked, params)).map(|answer| answers::calls(&answer))
    };
    Ok(around(at, side_max, side("newest", "until")?, side("oldest", "since")?))
}

/// The calls of both sides of a time, and how far they reach: the time itself is covered, whatever was answered.
pub(super) fn around(
    at: Time,
    side_max: usize,
    mut before: Vec<Call>,
    mut after: Vec<Call>,
) -> PastCallsAnswer {
    let is_cut = |calls: &[Call]| calls.len() >= side_max;
    let from = before.iter().filter_map(latest).min().filter(|_| is_cut(&before));
    let until = after.iter().filter_map(latest).max().filter(|_| is_cut(&after));
    let from = from.map_or(Time::from_micros(i64::MIN), |from| from.min(at));
    let until = until.map_or(Time::from_micros(i64::MAX), |until| until.max(at));
    before.truncate(side_max);
    after.truncate(side_max);
    PastCallsAnswer { calls: before.into_iter().chain(after).collect(), covers: (from, until) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn calls(seconds: impl Iterator<Item = u32>) -> Vec<Call> {
        let call = |secs: u32| {
            let mut call = synthetic::call(&format!("s:{secs:06}"), "ada", &["wn01"]);
            let time = Some(synthetic::time_f(f64::from(secs)));
            (call.submitted, call.started, call.ended) = (time, time, time);
            call
        };
        seconds.map(call).collect()
    }

    #[test]
    fn what_is_around_a_time_is_asked_once_and_again_beyond_it() {
        let at = |secs: f64| synthetic::time_f(secs);
        let sec = Duration::from_secs(1);
        let mut past = PastCalls::default();
        let oldest = Some(at(50_000.0));
        let is_due =
            |past: &PastCalls, at: Time, now: Duration| past.due(at, oldest).is_some_and(|due| due <= now);
        assert!(!is_due(&past, at(50_001.0), sec), "the newest are cached");
        assert!(is_due(&past, at(20_000.0), sec));
        past.ask();
        assert!(!is_due(&past, at(20_000.0), sec), "one request at a time");
        let (before, after) = (calls((15_001..=20_000).rev()), calls(20_000..20_100));
        assert!(past.take(Ok(around(at(20_000.0), SIDE_MAX, before, after)), sec, sec));
        assert_eq!(past.iter().len(), 5_099);
        assert!(!is_due(&past, at(15_000.0), 4 * sec), "not at once while the line is dragged");
        let unloaded: Vec<_> = past.unloaded_before(at(50_000.0)).collect();
        assert_eq!(unloaded, [(Time::from_micros(i64::MIN), at(15_001.0))]);
        for (secs, expected) in [(15_001.0, false), (15_000.0, true), (20_050.0, false), (49_000.0, false)] {
            assert_eq!(is_due(&past, at(secs), 5 * sec), expected, "{secs}");
        }
        past.ask();
        assert!(!past.take(Err(Error::Fault { code: 1, message: "gone".into() }), sec, sec));
        assert!(!is_due(&past, at(1.0), 5 * sec) && is_due(&past, at(1.0), 11 * sec), "later");
        assert!(past.clear() && !past.clear());
        assert!(is_due(&past, at(20_000.0), 11 * sec));
        let unloaded: Vec<_> = past.unloaded_before(at(50_000.0)).collect();
        assert_eq!(unloaded, [(Time::from_micros(i64::MIN), at(50_000.0))]);
    }

    #[test]
    fn a_daemon_that_answers_other_calls_is_not_asked_without_end() {
        let (at, sec) = (synthetic::time_f(20_000.0), Duration::from_secs(1));
        let mut past = PastCalls::default();
        let newest = || calls((40_000..40_200).rev());
        past.ask();
        past.take(Ok(around(at, 100, newest(), newest())), sec, sec);
        assert!(past.iter().len() <= 200);
        assert_eq!(past.due(at, None), None);
        past.request_again();
        assert_eq!(past.due(at, None), Some(Duration::ZERO), "another daemon may answer");
    }
}
