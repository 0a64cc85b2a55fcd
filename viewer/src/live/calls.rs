//! Cached calls of one domain.
//!
//! Pure. Rule: a daemon may answer with only part of its calls; calls older than that part stay in the cache,
//! and those not in the cache are counted. Not here: the requests (`asking`), the limit over all domains
//! (`known`).

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
pub(super) enum Wanted {
    /// All calls, up to the limit of the cache.
    All,
    /// One answer's worth of the newest calls, because ids become more complete as more is known.
    Newest,
    /// Calls of this time and later.
    Since(Time),
}

/// Answer of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    /// The request that it answers.
    pub(super) wanted: Wanted,
    /// The calls, the newest first.
    pub(super) calls: Vec<Call>,
    /// Calls of the daemon that match the request; an answer may hold fewer.
    pub(super) total: u64,
}

/// The cache of one domain.
#[derive(Debug, Default)]
pub(super) struct Calls {
    kept: BTreeMap<CompactString, Call>,
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
    pub(super) fn wanted(&self, is_whole_due: bool) -> Wanted {
        match self.newest {
            _ if !self.has_all => Wanted::All,
            Some(newest) if !is_whole_due => Wanted::Since(newest.minus(OVERLAP)),
            Some(_) | None => Wanted::Newest,
        }
    }

    /// Request all calls next time: another daemon may answer then.
    pub(super) fn begin_anew(&mut self) {
        self.has_all = false;
    }

    /// Merge an answer received `at`. Returns whether anything changed.
    pub(super) fn take(&mut self, told: Told, at: Time) -> bool {
        let is_cut = told.total > told.calls.len() as u64;
        let oldest = told.calls.iter().map(latest).min().flatten();
        let mut changed = match told.wanted {
            Wanted::Since(_) => {
                // More happened than one answer holds, so calls are missing in between.
                self.has_all &= !is_cut;
                false
            }
            Wanted::All => self.keep_told(&told.calls, |_| true),
            Wanted::Newest => self.keep_told(&told.calls, |call| !is_cut || latest(call) > oldest),
        };
        let (is_whole, total) = (!matches!(told.wanted, Wanted::Since(_)), told.total);
        let believed = at.plus(AHEAD);
        for call in told.calls {
            // A call dated to the year 9999 must not stop all further requests.
            self.newest = self.newest.max(latest(&call).filter(|time| *time <= believed));
            changed |= self.kept.get(&call.id) != Some(&call);
            self.kept.insert(call.id.clone(), call);
        }
        self.has_all |= told.wanted == Wanted::All;
        self.forget(CALLS_MAX);
        if is_whole {
            self.left_out = total.saturating_sub(self.kept.len() as u64);
        }
        changed
    }

    /// Drop the calls that the answer would contain if the daemon still had them. Returns whether there were
    /// any.
    fn keep_told(&mut self, told: &[Call], would_be_told: impl Fn(&Call) -> bool) -> bool {
        let ids: BTreeSet<&CompactString> = told.iter().map(|call| &call.id).collect();
        let before = self.kept.len();
        self.kept.retain(|id, call| ids.contains(id) || !would_be_told(call));
        self.kept.len() != before
    }

    /// Drop the oldest calls beyond `most`.
    pub(super) fn forget(&mut self, most: usize) {
        let beyond = self.kept.len().saturating_sub(most);
        if beyond == 0 {
            return;
        }
        let mut by_time: Vec<(Option<Time>, CompactString)> =
            self.kept.values().map(|call| (latest(call), call.id.clone())).collect();
        by_time.sort_unstable();
        for (_, id) in by_time.into_iter().take(beyond) {
            self.kept.remove(&id);
        }
        self.left_out += beyond as u64;
    }

    /// The calls in the cache.
    pub(super) fn known(&self) -> impl ExactSizeIterator<Item = &Call> {
        self.kept.values()
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
    fn told(wanted: Wanted, numbers: std::ops::Range<usize>, limit: usize) -> Told {
        let total = numbers.len() as u64;
        Told { wanted, calls: numbers.rev().take(limit).map(call).collect(), total }
    }

    fn numbers(calls: &Calls) -> (usize, Option<&str>, Option<&str>) {
        let mut ids = calls.kept.keys().map(CompactString::as_str);
        (calls.kept.len(), ids.next(), ids.next_back())
    }

    #[test]
    fn older_calls_stay_known_when_only_the_newest_are_answered() {
        let mut calls = Calls::default();
        assert_eq!(calls.wanted(false), Wanted::All);
        assert!(calls.take(told(Wanted::All, 0..25_000, 25_000), synthetic::latest()));
        assert!(!calls.take(told(Wanted::Newest, 0..25_000, 10_000), synthetic::latest()), "nothing is new");
        assert_eq!(numbers(&calls), (25_000, Some("s:000000"), Some("s:024999")));
        assert_eq!(calls.left_out(), 0);
    }

    #[test]
    fn a_call_that_is_told_no_more_is_forgotten_where_it_would_have_been() {
        let mut calls = Calls::default();
        calls.take(told(Wanted::All, 0..100, 100), synthetic::latest());
        let mut newest = told(Wanted::Newest, 0..100, 10);
        newest.calls.remove(3);
        newest.total -= 1;
        assert!(calls.take(newest, synthetic::latest()));
        assert!(!calls.kept.contains_key("s:000096") && calls.kept.contains_key("s:000050"));
        assert_eq!(calls.left_out(), 0);
    }

    #[test]
    fn what_is_not_known_is_counted_and_a_hole_is_filled() {
        let mut calls = Calls::default();
        calls.take(told(Wanted::All, 0..70_000, CALLS_MAX), synthetic::latest());
        assert_eq!((calls.kept.len(), calls.left_out()), (CALLS_MAX, 20_000));
        let since = calls.wanted(false);
        assert!(matches!(since, Wanted::Since(_)));
        calls.take(told(since, 69_990..70_010, 20), synthetic::latest());
        assert_eq!((calls.kept.len(), calls.left_out()), (CALLS_MAX, 20_010));
        calls.take(told(since, 70_010..90_000, 10_000), synthetic::latest());
        assert_eq!(calls.wanted(false), Wanted::All, "between them are some that were not answered");
    }

    #[test]
    fn the_oldest_calls_are_forgotten() {
        let mut calls = Calls::default();
        calls.take(told(Wanted::All, 0..CALLS_MAX + 3, CALLS_MAX + 3), synthetic::latest());
        assert_eq!(numbers(&calls).0, CALLS_MAX);
        assert!(!calls.kept.contains_key("s:000002") && calls.kept.contains_key("s:000003"));
    }
}
