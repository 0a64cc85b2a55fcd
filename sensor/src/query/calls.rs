//! `sensor.calls` and `domain.calls`: jobs, transfers and requests, joined from their events.
//!
//! Rules: a call that has ended is read from the call history, any other from memory, so none is listed twice. If the
//! history fails, or has not stored the latest changes, what is in memory is listed from there. Stored calls of another
//! user are absent, unless the viewer is trusted; those in memory are listed to all.
//! Not here: how events become calls (`log_filters::join`), pagination (`call_page`), stored calls (`call_store`).

use super::call_page::{Cursor, page, word_of};
use super::domain::{absent, silent_hosts};
use crate::call_history::CallHistory;
use crate::call_ids;
use crate::history::writing::calendar;
use crate::process::details::Users;
use crate::representative::service::Handle;
use crate::sample::ticker::locked;
use call_store::answer::{Error, Owners, Page, Query};
use call_store::store::sort_by_amount;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use wire::api::UnixTime;
use wire::api::calls::{self as api, Calls, CallsParams, DomainCallsParams, SensorCallsParams};
use wire::api::jobs::Job;
use wire::call::job::Fact;
use wire::call::{Call, State};
use wire::name_match;
use wire::query::Viewer;
use wire::time::Time;

/// Calls that are in memory.
#[derive(Clone)]
pub enum Memory {
    /// Those of a sensor's own logs.
    Own(Arc<Mutex<Joiner>>),
    /// Those of its domain, while it represents it.
    Domain(Handle),
}

/// Page of calls.
pub(super) struct CallPage {
    /// Calls in the requested order.
    pub(super) calls: Vec<Call>,
    /// Number of matching calls on all pages, or of those that were counted.
    pub(super) total: u64,
    /// Whether there may be more than `total`.
    pub(super) is_more: bool,
    /// Latest time of the oldest stored call.
    pub(super) stored_since: Option<UnixTime>,
    /// Cursor of the next page.
    pub(super) next: Option<String>,
}

/// Calls in memory and those that were stored.
#[derive(Clone)]
pub struct KnownCalls {
    pub memory: Memory,
    /// `None` if the configuration turns it off.
    pub history: Option<CallHistory>,
}

/// `sensor.calls`.
#[must_use]
pub fn method(own: &KnownCalls) -> Method {
    let own = own.clone();
    typed::method(move |caller, SensorCallsParams(params)| {
        let (own, viewer) = (own.clone(), caller.viewer);
        async move { own.answer(&params, viewer).await }
    })
}

/// `domain.calls`.
pub(super) fn method_of_domain(known: &KnownCalls) -> Method {
    let known = known.clone();
    typed::method(move |caller, DomainCallsParams(params)| {
        let (known, viewer) = (known.clone(), caller.viewer);
        async move {
            let calls = known.answer(&params, viewer).await?;
            Ok(Calls { unheard: known.unheard().await, ..calls })
        }
    })
}

impl Memory {
    /// Runs a short query.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Joiner) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        match self {
            Memory::Own(joiner) => Ok(query(&locked(joiner))),
            Memory::Domain(service) => {
                service.ask(move |domain, _| query(domain.calls())).await.map_err(absent)
            }
        }
    }
}

impl KnownCalls {
    async fn answer(&self, params: &CallsParams, viewer: Viewer) -> Result<Calls, Fault> {
        let owners = owners(viewer).await;
        let page = self.page(Query::of(params, &owners)).await?;
        Ok(Calls {
            calls: page.calls.iter().map(api::Call::from).collect(),
            total: page.total,
            total_is_more: page.is_more,
            stored_since: page.stored_since,
            stored_own_only: self.history.is_some() && owners != Owners::All,
            next: page.next,
            unheard: Vec::new(),
        })
    }

    /// Reads a page: stored calls of the users of the query, and those in memory.
    pub(super) async fn page(&self, query: Query<'_>) -> Result<CallPage, Fault> {
        let Query { params, owners, .. } = query;
        let Some(history) = &self.history else { return to_page(self.in_memory(query).await?, query) };
        let place = cursor(params)?.map(|cursor| cursor.place());
        let is_stored = matches!(history.store_changes().await, Ok(true));
        let mut calls = self.in_memory(query).await?;
        // One more, which shows that there is a next page.
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX).saturating_add(1);
        let stored = match history.store().page(query, place.as_ref(), limit).await {
            Ok(stored) => {
                let stored = self.without_those_in_memory(stored, is_stored).await?;
                if is_stored {
                    let oldest = history.size().and_then(|size| size.oldest);
                    leave_not_stored(&mut calls, &stored, owners, oldest);
                }
                stored
            }
            Err(error @ Error::TooMuch) => return Err(Fault::invalid_params(error.to_string())),
            Err(error) => {
                tracing::warn!(%error, "stored calls cannot be read");
                Page::default()
            }
        };
        let (total, is_more) = (calls.len() as u64 + stored.total, stored.is_more);
        calls.extend(stored.calls);
        let stored_since = history.size().and_then(|size| size.oldest).map(UnixTime);
        let page = to_page(calls, query)?;
        Ok(CallPage { total, is_more, stored_since, ..page })
    }

    /// Returns the hosts whose calls may be missing.
    pub(super) async fn unheard(&self) -> Vec<String> {
        match &self.memory {
            Memory::Own(_) => Vec::new(),
            Memory::Domain(service) => silent_hosts(service).await,
        }
    }

    /// Returns the matching calls in memory. It is locked while they are selected, not while they are sorted and
    /// encoded.
    async fn in_memory(&self, query: Query<'_>) -> Result<Vec<Call>, Fault> {
        let wanted = query.params.clone();
        let mut calls = self.memory.read(move |joiner| found(joiner, &wanted)).await?;
        if !query.by.is_none() {
            let now = calendar();
            calls.retain(|call| call.is_job() && query.by.fits(&Job::from(call), now));
        }
        Ok(calls)
    }

    /// Leaves out calls that are not read from the history: all those in memory if it lacks the latest changes, else
    /// those that run again, as another sensor may have stored their end.
    async fn without_those_in_memory(&self, mut stored: Page, is_stored: bool) -> Result<Page, Fault> {
        let filtered = self.memory.read(move |joiner| {
            let before = stored.calls.len();
            stored.calls.retain(|call| match is_stored {
                true => !runs_again(call, joiner),
                false => joiner.present_id(&call.id).is_none(),
            });
            stored.total = stored.total.saturating_sub((before - stored.calls.len()) as u64);
            stored
        });
        filtered.await
    }
}

/// Whether a stored call is in memory and has not ended; what was imported of it is its end, which no log states.
fn runs_again(stored: &Call, joiner: &Joiner) -> bool {
    if stored.events == 0 && stored.fact(Fact::ImportedFrom).is_some() {
        return false;
    }
    let present = joiner.present_id(&stored.id).filter(|id| **id == stored.id).and_then(|id| joiner.get(id));
    // One that began later only has the same id.
    present.is_some_and(|call| call.state != State::Ended && call.earliest() <= stored.latest())
}

/// Whose stored calls this viewer gets.
pub(super) async fn owners(viewer: Viewer) -> Owners {
    match viewer {
        Viewer::Trusted | Viewer::Owner(_) => Owners::All,
        Viewer::Anonymous => Owners::Only(Vec::new()),
        Viewer::User(uid) => {
            // The name may be looked up over the network.
            let named = tokio::task::spawn_blocking(move || Users::default().name(uid).map(str::to_owned));
            let name = named.await.ok().flatten();
            Owners::Only(name.into_iter().chain([uid.to_string()]).collect())
        }
    }
}

/// Leaves the calls in memory that are not read from the history: those of others, those that have not ended, neither
/// before their changes were stored nor after, and those that are too old to be stored.
fn leave_not_stored(calls: &mut Vec<Call>, stored: &Page, owners: &Owners, oldest: Option<Time>) {
    calls.retain(|call| {
        let is_older = oldest.is_none_or(|oldest| call.latest() < Some(oldest));
        call.state != State::Ended || !owners.include(&call.user) || is_older
    });
    let again: HashMap<&str, Option<Time>> =
        stored.calls.iter().map(|call| (call.id.as_str(), call.latest())).collect();
    calls.retain(|call| again.get(call.id.as_str()).is_none_or(|at| *at < call.latest()));
}

/// Returns the calls that match.
fn found(joiner: &Joiner, params: &CallsParams) -> Vec<Call> {
    let wanted = CallFilter::new(params, joiner);
    let id = params.call.as_deref();
    match id.and_then(|id| joiner.get(id)) {
        Some(call) => Some(call).filter(|call| wanted.fits(call)).into_iter().collect(),
        None => {
            let is_meant = |call: &Call| {
                id.is_none_or(|id| name_match::has_wildcard(id) && name_match::matches(id, &call.id))
            };
            joiner.calls().filter(|call| is_meant(call) && wanted.fits(call)).collect()
        }
    }
}

/// Returns one page of the calls, in the requested order.
fn to_page(mut calls: Vec<Call>, Query { params, by, .. }: Query<'_>) -> Result<CallPage, Fault> {
    let cursor = cursor(params)?;
    let total = calls.len() as u64;
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    if let Some(amount) = by.sort {
        sort_by_amount(&mut calls, amount, Some(calendar()));
        calls.truncate(limit);
        return Ok(CallPage { calls, total, is_more: false, stored_since: None, next: None });
    }
    let (calls, next) = page(calls, params.order, cursor.as_ref(), limit);
    Ok(CallPage { calls, total, is_more: false, stored_since: None, next: next.map(|next| next.to_string()) })
}

/// Parses the cursor of the page; `None` for the first page.
fn cursor(params: &CallsParams) -> Result<Option<Cursor>, Fault> {
    let Some(text) = params.cursor.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let cursor: Cursor = text.parse().map_err(|error| Fault::invalid_params(format!("cursor: {error}")))?;
    if cursor.order() != params.order {
        let (expected, found) = (word_of(params.order), word_of(cursor.order()));
        return Err(Fault::invalid_params(format!(
            "cursor: expected one of order {expected}, found one of {found}"
        )));
    }
    Ok(Some(cursor))
}

struct CallFilter<'a> {
    /// Ids of the calls that match the job number.
    job: Option<HashSet<CompactString>>,
    params: &'a CallsParams,
}

impl<'a> CallFilter<'a> {
    fn new(params: &'a CallsParams, joiner: &Joiner) -> CallFilter<'a> {
        CallFilter { job: params.job.as_ref().map(|job| call_ids::of_job(joiner, job)), params }
    }

    fn fits(&self, call: &Call) -> bool {
        self.job.as_ref().is_none_or(|ids| ids.contains(&call.id)) && self.params.fit(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log_filters::found::Found;
    use wire::call::job::{JobDetails, NO_LINE, Statement};
    use wire::call::{Authority, Keys, Naming};
    use wire::event::{Content, Id, Kind};
    use wire::id::{Generation, SensorKey};

    fn time(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn join(joiner: &mut Joiner, kind: Kind, job: &str, secs: i64) {
        let keys = Keys {
            scope: "test".into(),
            names: vec![job.into()],
            parent: None,
            naming: Naming::Unique,
            authority: Authority::Scheduler,
        };
        let found = Found { offset: 0, number: 0, content: Content::new(kind, time(secs)), keys: Some(keys) };
        let offset = secs.unsigned_abs();
        joiner.join(&found, Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 });
    }

    #[test]
    fn a_call_that_is_too_old_to_be_stored_is_listed_from_memory() {
        let mut joiner = Joiner::new(9);
        for (job, secs) in [("1", 100), ("2", 200), ("3", 300)] {
            join(&mut joiner, Kind::JobEnd, job, secs);
        }
        let left = |owners: &Owners, oldest: Option<i64>| {
            let mut calls: Vec<Call> = joiner.calls().collect();
            leave_not_stored(&mut calls, &Page::default(), owners, oldest.map(time));
            let mut ids: Vec<String> = calls.iter().map(|call| call.id.to_string()).collect();
            ids.sort();
            ids
        };
        assert_eq!(left(&Owners::All, Some(200)), ["test:1"]);
        assert_eq!(left(&Owners::All, None), ["test:1", "test:2", "test:3"], "nothing is stored");
        assert_eq!(left(&Owners::Only(Vec::new()), Some(200)).len(), 3, "stored ones are not read");
    }

    #[test]
    fn the_stored_end_of_a_call_that_runs_again_is_left_out_and_an_earlier_call_of_its_id_is_not() {
        let mut joiner = Joiner::new(9);
        join(&mut joiner, Kind::JobStart, "1", 100);
        join(&mut joiner, Kind::JobStart, "2", 100);
        join(&mut joiner, Kind::JobEnd, "2", 120);
        let stored = |id: &str, ended| {
            let call = joiner.get("test:1").expect("it was joined");
            Call {
                id: id.into(),
                state: State::Ended,
                started: Some(time(ended - 1)),
                ended: Some(time(ended)),
                ..call
            }
        };
        assert!(runs_again(&stored("test:1", 150), &joiner));
        assert!(!runs_again(&stored("test:1", 50), &joiner), "an earlier call");
        assert!(!runs_again(&stored("test:2", 120), &joiner), "it has ended");
        assert!(!runs_again(&stored("test:3", 150), &joiner), "it is not in memory");
        let statement = Statement {
            fact: Fact::ImportedFrom,
            value: "sacct.txt".into(),
            by: Authority::Accounting,
            line: NO_LINE,
        };
        let details = JobDetails { facts: vec![statement], ..JobDetails::default() };
        let imported = Call { events: 0, details: Some(Box::new(details)), ..stored("test:1", 150) };
        assert!(!runs_again(&imported, &joiner), "no log states its end");
    }
}
