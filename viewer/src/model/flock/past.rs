//! The past of the flock's hosts: what is requested of sensors, and which times they have stored.
//!
//! Pure. Rule: a host has one request at a time, and after an error the next one later; none while the flock
//! is not seen. Not here: which stretch is missing (`crate::flock::past`).

use super::FlockState;
use crate::feed;
use crate::flock::past::{MissingSpan, Pace, SPEED_MAX, Span, StoredSweeps, shifted};
use crate::flock::sweep::HostName;
use crate::timeline::{Mode, Timeline};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Pause before the same stretch is requested again, and before another one; timeout of an answer.
const RETRY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);
const ANSWER_MAX: Duration = Duration::from_secs(90);
/// Interval at which a sensor is asked which times it has stored.
const SPANS_INTERVAL: Duration = Duration::from_secs(30);
/// The newest sweep of a sensor that is on time is this old when it answers.
const ON_TIME: Duration = Duration::from_secs(3);
/// Enough sweeps a second of the user's time where time runs fast.
const HZ_MAX: f64 = 30.0;
/// Playback ends this long before a span of sweeps does: after that nothing would be seen.
const INTO_SPAN: Duration = Duration::from_secs(1);
/// The timeline reaches this far before the first call, if something is stored of that time.
const REACH_MIN: Duration = Duration::from_secs(600);

/// The past of a host.
#[derive(Clone, Debug, Default)]
struct HostPast {
    /// When it was requested, while there is no answer.
    requested_at: Option<Time>,
    answered_at: Option<Time>,
    /// The last request.
    request: Option<MissingSpan>,
    spans: Vec<Span>,
    error: Option<String>,
}

/// The past by host.
#[derive(Clone, Default)]
pub(super) struct Past(BTreeMap<HostName, HostPast>);

impl Past {
    /// Other hosts are watched, or in another way: requests that are out get no answer any more.
    pub(super) fn restart(&mut self, hosts: &[HostName]) {
        // A user who looks at another tab for a while comes back to the same time.
        self.0.retain(|host, _| hosts.is_empty() || hosts.contains(host));
        self.0.values_mut().for_each(|known| known.requested_at = None);
    }

    fn may_request(&self, missing: &MissingSpan, now: Time) -> bool {
        let Some(known) = self.0.get(&missing.host) else { return true };
        let is_over =
            |since: Option<Time>, pause: Duration| since.is_none_or(|since| now.since(since) > pause);
        // An answer that did not help does not help at once.
        let is_same = known.request.as_ref().is_some_and(|request| request.from == missing.from);
        let pause = if is_same || known.error.is_some() { RETRY } else { PAUSE };
        is_over(known.requested_at, ANSWER_MAX) && is_over(known.answered_at, pause)
    }
}

impl FlockState {
    /// The past of a host arrived; that of a host that is not watched any more is dropped.
    pub(in crate::model) fn take_past(
        &mut self,
        host: &HostName,
        past: Result<(Arc<StoredSweeps>, Vec<Span>), String>,
        now: Time,
    ) {
        let moved = self.flock.moved(host);
        let is_watched = self.requested.hosts.contains(host);
        let Some(known) = self.past.0.get_mut(host).filter(|_| is_watched) else { return };
        (known.requested_at, known.answered_at) = (None, Some(now));
        match past {
            Ok((past, spans)) => {
                known.spans =
                    spans.into_iter().map(|(from, to)| (shifted(from, moved), shifted(to, moved))).collect();
                known.error = None;
                self.flock.take_stored(host, &past);
                self.revision += 1;
            }
            Err(error) => known.error = Some(error),
        }
    }

    /// The requests for what is missing of the time that is shown, and for which times are stored.
    pub(in crate::model) fn past_requests(
        &self,
        timeline: &Timeline,
        time: Time,
        now: Time,
    ) -> Vec<feed::Past> {
        if !self.is_seen(now) {
            return Vec::new();
        }
        let speed = match timeline.mode() {
            Mode::Live | Mode::Playing => timeline.speed(),
            Mode::Paused => timeline.speed().min(SPEED_MAX),
        };
        let every = Duration::from_secs_f64((1.0 / self.rate_hz).max(speed / HZ_MAX));
        let mut missing_spans = match timeline.mode() {
            Mode::Live => Vec::new(),
            Mode::Playing | Mode::Paused => self.flock.missing_spans(time, Pace { speed, every }, now),
        };
        let is_old = |host: &&HostName| {
            let answered_at = self.past.0.get(*host).and_then(|known| known.answered_at);
            !missing_spans.iter().any(|missing| missing.host == **host)
                && answered_at.is_none_or(|at| now.since(at) > SPANS_INTERVAL)
        };
        // An empty stretch: it requests the spans alone.
        let of_spans = self.requested.hosts.iter().filter(is_old);
        let of_spans: Vec<MissingSpan> =
            of_spans.map(|host| MissingSpan { host: host.clone(), from: now, to: now }).collect();
        missing_spans.extend(of_spans);
        let is_due = |missing: &MissingSpan| {
            self.requested.hosts.contains(&missing.host) && self.past.may_request(missing, now)
        };
        missing_spans.into_iter().filter(is_due).map(|missing| feed::Past { missing, every }).collect()
    }

    /// A request was sent.
    pub(in crate::model) fn past_requested(&mut self, missing: MissingSpan, now: Time) {
        let known = self.past.0.entry(missing.host.clone()).or_default();
        (known.requested_at, known.request) = (Some(now), Some(missing));
    }

    /// The spans that sensors have sweeps of, while the flock is seen.
    pub(in crate::model) fn spans(&self, now: Time) -> impl Iterator<Item = Span> + '_ {
        let is_seen = self.is_seen(now);
        let known = self.past.0.values().filter(move |_| is_seen);
        known.flat_map(move |known| {
            // A span that reached to the answer reaches to now: a sensor goes on sweeping until it cannot be
            // queried.
            let goes_on =
                known.answered_at.filter(|at| known.error.is_none() && now.since(*at) <= 2 * SPANS_INTERVAL);
            let until = move |to: Time| match goes_on {
                Some(at) if at.since(to) <= ON_TIME => now,
                Some(_) | None => to,
            };
            known.spans.iter().map(move |&(from, to)| (from, until(to)))
        })
    }

    /// Whether a sensor has not answered for the past yet.
    #[must_use]
    pub fn awaits_past(&self) -> bool {
        self.past.0.values().any(|known| known.requested_at.is_some())
    }

    /// Whether a sensor without an error has not answered for the past yet.
    #[must_use]
    pub fn may_get_past(&self) -> bool {
        self.past.0.values().any(|known| known.requested_at.is_some() && known.error.is_none())
    }

    /// The first host that could not be queried for its past, and why.
    #[must_use]
    pub fn past_error(&self) -> Option<(&HostName, &str)> {
        self.past.0.iter().find_map(|(host, known)| Some((host, known.error.as_deref()?)))
    }

    /// Start of the timeline, where calls are known from `first` to `last`: it reaches back to what sensors
    /// have stored, but no farther before the calls than these are long.
    pub(in crate::model) fn stored_since(&self, first: Time, last: Time) -> Time {
        let farthest = first.minus(last.since(first).max(REACH_MIN));
        let spans = self.past.0.values().flat_map(|known| &known.spans);
        spans.map(|(from, _)| *from).filter(|from| *from >= farthest).fold(first, Time::min)
    }

    /// The nearest time within a span of sweeps on the timeline.
    pub(in crate::model) fn nearest_stored(
        &self,
        timeline: &Timeline,
        time: Time,
        now: Time,
    ) -> Option<Time> {
        let into = |(from, to): Span| {
            let last = to.minus(INTO_SPAN).max(from);
            time.clamp(from.plus(INTO_SPAN).min(last), last)
        };
        let (first, last) = timeline.span();
        let reached = self.spans(now).filter(|(from, to)| *to > first && *from < last);
        reached.map(into).min_by_key(|stored| stored.since(time).max(time.since(*stored)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn what_reached_to_the_answer_reaches_to_now_as_long_as_its_sensor_can_be_asked() {
        let (at, host) = (synthetic::time_f, HostName::new("demo", "wn01"));
        let mut state = FlockState::default();
        state.requested.hosts = vec![host.clone()];
        state.past.0.insert(host.clone(), HostPast::default());
        let spans = vec![(at(10.0), at(20.0)), (at(40.0), at(99.0))];
        state.take_past(&host, Ok((Arc::default(), spans)), at(100.0));
        let ends = |state: &mut FlockState, now: f64| {
            state.mark_seen(at(now));
            state.spans(at(now)).map(|(_, to)| to).collect::<Vec<_>>()
        };
        assert_eq!(ends(&mut state, 130.0), [at(20.0), at(130.0)]);
        assert_eq!(ends(&mut state, 161.0), [at(20.0), at(99.0)], "nothing was received for long");
        assert_eq!(ends(&mut state, 130.0), [at(20.0), at(130.0)]);
        state.take_past(&host, Err("it is gone".to_owned()), at(131.0));
        assert_eq!(ends(&mut state, 132.0), [at(20.0), at(99.0)]);
    }
}
