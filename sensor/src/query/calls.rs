//! `sensor.calls` and its common part with `domain.calls`: jobs, transfers and requests, joined from their
//! events.
//!
//! Not here: which calls a method reads (its callers), how events become calls (`log_filters::join`),
//! pagination (`call_page`).

use super::call_page::{Cursor, page, word_of};
use crate::call_ids;
use crate::name_match;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use wire::api::calls::{self as api, Calls, CallsParams, DomainCallsParams, SensorCallsParams};
use wire::call::Call;
use wire::time::Time;

/// `sensor.calls`.
#[must_use]
pub fn method(joiner: &Arc<Mutex<Joiner>>) -> Method {
    let joiner = Arc::clone(joiner);
    typed::method(move |_, SensorCallsParams(params)| std::future::ready(answer(&joiner, &params)))
}

/// `domain.calls` of a sensor that is the only one of its domain.
pub(super) fn method_of_domain(joiner: &Arc<Mutex<Joiner>>) -> Method {
    let joiner = Arc::clone(joiner);
    typed::method(move |_, DomainCallsParams(params)| std::future::ready(answer(&joiner, &params)))
}

fn answer(joiner: &Mutex<Joiner>, params: &CallsParams) -> Result<Calls, Fault> {
    // The lock is held while calls are selected, not while they are sorted and encoded.
    let calls = found(&joiner.lock().unwrap_or_else(PoisonError::into_inner), params);
    to_page(calls, params)
}

/// Returns the latest time of a call.
#[must_use]
pub fn latest(call: &Call) -> Option<Time> {
    [call.submitted, call.offered, call.selected, call.started, call.ended].into_iter().flatten().max()
}

/// Returns whether a host name in a log is the requested one, which may be given without its domain.
pub(super) fn is_host(known: &str, wanted: &str) -> bool {
    known == wanted || (!wanted.is_empty() && known.split('.').next() == Some(wanted))
}

/// Returns the calls that match.
pub(super) fn found(joiner: &Joiner, params: &CallsParams) -> Vec<Call> {
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
pub(super) fn to_page(calls: Vec<Call>, params: &CallsParams) -> Result<Calls, Fault> {
    let cursor = cursor(params)?;
    let total = calls.len() as u64;
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let (calls, next) = page(calls, params.order, cursor.as_ref(), limit);
    Ok(Calls {
        calls: calls.iter().map(api::Call::from).collect(),
        total,
        next: next.map(|next| next.to_string()),
        unheard: Vec::new(),
    })
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
        let CallsParams { name, user, on_host, state, outcome, since, until, .. } = self.params;
        let on = |host: &String| call.hosts.iter().any(|known| is_host(known, host));
        self.job.as_ref().is_none_or(|ids| ids.contains(&call.id))
            && name.as_ref().is_none_or(|name| name_match::matches(name, &call.name))
            && user.as_ref().is_none_or(|user| call.user == *user)
            && on_host.as_ref().is_none_or(on)
            && state.is_none_or(|state| call.state == state)
            && (outcome.is_empty() || call.outcome.is_some_and(|known| outcome.contains(&known)))
            && since.is_none_or(|since| latest(call) >= Some(since.0))
            && until.is_none_or(|until| latest(call) <= Some(until.0))
    }
}
