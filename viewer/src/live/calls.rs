//! Cached calls of one domain.
//!
//! Pure. Rule: a daemon may answer with only part of its calls; calls older than that part stay in the cache,
//! and those not in the cache are counted. Not here: the requests (`asking`), the limit over all domains
//! (`cache`).

use crate::grid::builder::{AHEAD, CALLS_MAX};
use compact_str::CompactString;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::call::Call;
use wire::time::Time;

/// Overlap of two requests: calls are requested from this long before the newest known time, because logs of
/// several hosts arrive late.
const OVERLAP: Duration = Duration::from_secs(30);

/// Which calls to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallsRequest {
    /// All calls, up to the limit of the cache.
    All,
    /// One answer's worth of the newest calls, because ids become more complete as more is known.
    Newest,
    /// Calls of this time and later.
    Since(Time),
}

/// Answer of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallsResponse {
    /// The request that it answers.
    pub(super) request: CallsRequest,
    /// The calls, the newest first.
    pub(super) calls: Vec<Call>,
    /// Calls of the daemon that match the request; an answer may hold fewer.
    pub(super) total: u64,
}

/// The cache of one domain.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: BTreeMap<CompactString, Call>,
    newest: Option<Time>,
    has_all: bool,
    left_out: u64,
}

/// The latest timestamp of a call, by which daemons sort and select.
pub(super) fn latest(call: &Call) -> Option<Time> {
    [call.submitted, call.offered, call.selected, call.started, call.ended].into_iter().flatten().max()
}

impl Calls {
    /// What to request now.
    pub(super) fn request(&self, is_whole_due: bool) -> CallsRequest {
        match self.newest {
            _ if !self.has_all => CallsRequest::All,
            Some(newest) if !is_whole_due => CallsRequest::Since(newest.minus(OVERLAP)),
            Some(_) | None => CallsRequest::Newest,
        }
    }

    /// Request all calls next time: another daemon may answer then.
    pub(super) fn request_all(&mut self) {
        self.has_all = false;
    }

    /// Merge an answer received `at`. Returns whether anything changed.
    pub(super) fn take(&mut self, answer: CallsResponse, at: Time) -> bool {
        let is_cut = answer.total > answer.calls.len() as u64;
        let oldest = answer.calls.iter().map(latest).min().flatten();
        let mut changed = match answer.request {
            CallsRequest::Since(_) => {
                // More happened than one answer holds, so calls are missing in between.
                self.has_all &= !is_cut;
                false
            }
            CallsRequest::All => self.drop_missing(&answer.calls, |_| true),
            CallsRequest::Newest => self.drop_missing(&answer.calls, |call| !is_cut || latest(call) > oldest),
        };
        let (is_whole, total) = (!matches!(answer.request, CallsRequest::Since(_)), answer.total);
        let believed = at.plus(AHEAD);
        for call in answer.calls {
            // A call dated to the year 9999 must not stop all further requests.
            self.newest = self.newest.max(latest(&call).filter(|time| *time <= believed));
            changed |= self.calls.get(&call.id) != Some(&call);
            self.calls.insert(call.id.clone(), call);
        }
        self.has_all |= answer.request == CallsRequest::All;
        self.forget(CALLS_MAX);
        if is_whole {
            self.left_out = total.saturating_sub(self.calls.len() as u64);
        }
        changed
    }

    /// Drop the calls that the answer would contain if the daemon still had them. Returns whether there were
    /// any.
    fn drop_missing(&mut self, answered: &[Call], would_be_answered: impl Fn(&Call) -> bool) -> bool {
        let ids: BTreeSet<&CompactString> = answered.iter().map(|call| &call.id).collect();
        let before = self.calls.len();
        self.calls.retain(|id, call| ids.contains(id) || !would_be_answered(call));
        self.calls.len() != before
    }

    /// Drop the oldest calls beyond `most`.
    pub(super) fn forget(&mut self, most: usize) {
        let beyond = self.calls.len().saturating_sub(most);
        if beyond == 0 {
            return;
        }
        let mut by_time: Vec<(Option<Time>, CompactString)> =
            self.calls.values().map(|call| (latest(call), call.id.clone())).collect();
        by_time.sort_unstable();
        for (_, id) in by_time.into_iter().take(beyond) {
            self.calls.remove(&id);
        }
        self.left_out += beyond as u64;
    }

    /// The calls in the cache.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Call> {
        self.calls.values()
    }

    /// Latest time of the oldest call in the cache.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.calls.values().filter_map(latest).min()
    }

    /// Whether a call is in the cache.
    pub(super) fn has(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// Calls of the daemon that are not in the cache.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn call(number: usize) -> Call {
        let mut call = synthetic::call(&format!("s:{number:06}"), "u", &[]);
        #[allow(clippy::cast_precision_loss)]
        let time = Some(synthetic::time_f(number as f64));
        (call.submitted, call.started, call.ended) = (time, time, time);
        call
    }

    /// What a daemon that has the calls with these numbers answers, with at most `limit` of them.
    fn answer(request: CallsRequest, numbers: std::ops::Range<usize>, limit: usize) -> CallsResponse {
        let total = numbers.len() as u64;
        CallsResponse { request, calls: numbers.rev().take(limit).map(call).collect(), total }
    }

    fn numbers(calls: &Calls) -> (usize, Option<&str>, Option<&str>) {
        let mut ids = calls.calls.keys().map(CompactString::as_str);
        (calls.calls.len(), ids.next(), ids.next_back())
    }

    #[test]
    fn older_calls_stay_known_when_only_the_newest_are_answered() {
        let mut calls = Calls::default();
        assert_eq!(calls.request(false), CallsRequest::All);
        assert!(calls.take(answer(CallsRequest::All, 0..25_000, 25_000), synthetic::latest()));
        assert!(
            !calls.take(answer(CallsRequest::Newest, 0..25_000, 10_000), synthetic::latest()),
            "nothing is new"
        );
        assert_eq!(numbers(&calls), (25_000, Some("s:000000"), Some("s:024999")));
        assert_eq!(calls.left_out(), 0);
    }

    #[test]
    fn a_call_that_is_reported_no_more_is_forgotten_where_it_would_have_been() {
        let mut calls = Calls::default();
        calls.take(answer(CallsRequest::All, 0..100, 100), synthetic::latest());
        let mut newest = answer(CallsRequest::Newest, 0..100, 10);
        newest.calls.remove(3);
        newest.total -= 1;
        assert!(calls.take(newest, synthetic::latest()));
        assert!(!calls.calls.contains_key("s:000096") && calls.calls.contains_key("s:000050"));
        assert_eq!(calls.left_out(), 0);
    }

    #[test]
    fn what_is_not_known_is_counted_and_a_hole_is_filled() {
        let mut calls = Calls::default();
        calls.take(answer(CallsRequest::All, 0..70_000, CALLS_MAX), synthetic::latest());
        assert_eq!((calls.calls.len(), calls.left_out()), (CALLS_MAX, 20_000));
        let since = calls.request(false);
        assert!(matches!(since, CallsRequest::Since(_)));
        calls.take(answer(since, 69_990..70_010, 20), synthetic::latest());
        assert_eq!((calls.calls.len(), calls.left_out()), (CALLS_MAX, 20_010));
        calls.take(answer(since, 70_010..90_000, 10_000), synthetic::latest());
        assert_eq!(calls.request(false), CallsRequest::All, "between them are some that were not answered");
    }

    #[test]
    fn the_oldest_calls_are_forgotten() {
        let mut calls = Calls::default();
        calls.take(answer(CallsRequest::All, 0..CALLS_MAX + 3, CALLS_MAX + 3), synthetic::latest());
        assert_eq!(numbers(&calls).0, CALLS_MAX);
        assert!(!calls.calls.contains_key("s:000002") && calls.calls.contains_key("s:000003"));
    }
}
