//! `sensor.calls` and what `domain.calls` has in common with it: jobs, transfers and requests, their events joined.
//!
//! Not here: whose calls they are (the callers), how events become calls (`log_filters::join`), the pages of an answer
//! (`call_page`).

use super::call_page::{Cursor, Order, page};
use super::declared;
use super::{chosen, shape};
use crate::likeness;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use wire::call::Call;
use wire::event::Outcome;
use wire::time::Time;

/// `sensor.calls`.
#[must_use]
pub fn method(joiner: &Arc<Mutex<Joiner>>) -> Method {
    answering(declared::sensor_calls(), joiner)
}

/// `declaration`, answered from these calls.
pub(super) fn answering(declaration: Declaration, joiner: &Arc<Mutex<Joiner>>) -> Method {
    let joiner = Arc::clone(joiner);
    declaration.handler_now(move |params| {
        let calls = found(&joiner.lock().unwrap_or_else(PoisonError::into_inner), params)?;
        shown(calls, params)
    })
}

const ORDERS: [&str; 2] = [Order::ALL[0].as_str(), Order::ALL[1].as_str()];

pub(super) fn declaration(name: &'static str, summary: &'static str) -> Declaration {
    let states = Type::choice(&["waiting", "running", "ended"]);
    Declaration::new(name, summary)
        .reading()
        .parameter(Parameter::new(
            "call",
            Type::Text,
            "only the call of this id; * or \u{2026} in it stand for any characters",
        ))
        .parameter(Parameter::new(
            "name",
            Type::Text,
            "only those that their user named so; * stands for any characters",
        ))
        .parameter(Parameter::new(
            "job",
            Type::Text,
            "only calls that bear this job number under any of their names, or are a part of it",
        ))
        .parameter(Parameter::new("user", Type::Text, "only this user's"))
        .parameter(Parameter::new(
            "on_host",
            Type::Text,
            "only those that ran on this host (with or without its domain)",
        ))
        .parameter(Parameter::new("state", states, "only those that stand so"))
        .parameter(Parameter::new(
            "outcome",
            Type::Texts,
            "only those with this outcome, or one of these outcomes",
        ))
        .parameter(Parameter::new("since", Type::Time, "only those whose latest time is this or later"))
        .parameter(Parameter::new("until", Type::Time, "only those whose latest time is this or earlier"))
        .parameter(
            Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "at most so many calls")
                .default(1000),
        )
        .parameter(
            Parameter::new(
                "order",
                Type::choice(&ORDERS),
                "which come first, by their latest time",
            )
            .default("newest"),
        )
        .parameter(Parameter::new(
            "cursor",
            Type::Text,
            "the calls after those of an earlier answer, as its next gave it; the other parameters as in that call",
        ))
        .returns("struct", "calls, total (all that fit), next (the cursor of the next page, where there is one)")
}

/// The latest time told of a call.
#[must_use]
pub fn latest(call: &Call) -> Option<Time> {
    [call.submitted, call.offered, call.selected, call.started, call.ended].into_iter().flatten().max()
}

/// Whether a host that a log names is the wanted one, which may be given without its domain.
pub(super) fn is_host(known: &str, wanted: &str) -> bool {
    known == wanted || (!wanted.is_empty() && known.split('.').next() == Some(wanted))
}

/// The calls that fit.
pub(super) fn found(joiner: &Joiner, params: &Params) -> Result<Vec<Call>, Fault> {
    let wanted = Wanted::new(params, joiner)?;
    let id = params.text("call")?;
    Ok(match id.and_then(|id| joiner.get(id)) {
        Some(call) => Some(call).filter(|call| wanted.fits(call)).into_iter().collect(),
        None => {
            let is_meant =
                |call: &Call| id.is_none_or(|id| likeness::is_part(id) && likeness::means(id, &call.id));
            joiner.calls().filter(|call| is_meant(call) && wanted.fits(call)).collect()
        }
    })
}

/// A page of them, in the requested order, for the answer.
pub(super) fn shown(calls: Vec<Call>, params: &Params) -> Result<Value, Fault> {
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let order = params.text("order")?.and_then(Order::from_word).unwrap_or(Order::Newest);
    let cursor = cursor(params, order)?;
    let total = calls.len() as u64;
    let (calls, next) = page(calls, order, cursor.as_ref(), limit);
    let mut members: Vec<(Name, Value)> = vec![
        ("calls".into(), Value::Array(calls.iter().map(shape::call).collect())),
        ("total".into(), Value::UInt(total)),
    ];
    members.extend(next.map(|next| (Name::Borrowed("next"), Value::Text(next.to_string()))));
    Ok(Value::Struct(members))
}

/// Where the page begins; at the first call unless given.
fn cursor(params: &Params, order: Order) -> Result<Option<Cursor>, Fault> {
    let Some(text) = params.text("cursor")?.filter(|text| !text.is_empty()) else { return Ok(None) };
    let cursor: Cursor = text.parse().map_err(|error| Fault::invalid_params(format!("cursor: {error}")))?;
    if cursor.order() != order {
        let (expected, found) = (order.as_str(), cursor.order().as_str());
        return Err(Fault::invalid_params(format!(
            "cursor: expected one of order {expected}, found one of {found}"
        )));
    }
    Ok(Some(cursor))
}

/// The outcome of this name.
fn outcome(word: &str) -> Result<Outcome, Fault> {
    Outcome::ALL.iter().copied().find(|outcome| outcome.as_str() == word).ok_or_else(|| {
        let known: Vec<_> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        Fault::invalid_params(format!("outcome: expected one of {}, found {word:?}", known.join(", ")))
    })
}

struct Wanted<'a> {
    /// Ids of the calls that the job number means.
    job: Option<HashSet<CompactString>>,
    name: Option<&'a str>,
    user: Option<&'a str>,
    host: Option<&'a str>,
    state: Option<&'a str>,
    outcomes: Vec<Outcome>,
    since: Option<Time>,
    until: Option<Time>,
}

impl<'a> Wanted<'a> {
    fn new(params: &'a Params, joiner: &Joiner) -> Result<Wanted<'a>, Fault> {
        Ok(Wanted {
            job: params.text("job")?.map(|job| chosen::of_job(joiner, job)),
            name: params.text("name")?,
            user: params.text("user")?,
            host: params.text("on_host")?,
            state: params.text("state")?,
            outcomes: params.texts("outcome")?.into_iter().map(outcome).collect::<Result<_, _>>()?,
            since: params.time("since")?,
            until: params.time("until")?,
        })
    }

    fn fits(&self, call: &Call) -> bool {
        let on = |host: &str| call.hosts.iter().any(|known| is_host(known, host));
        self.job.as_ref().is_none_or(|ids| ids.contains(&call.id))
            && self.name.is_none_or(|name| likeness::means(name, &call.name))
            && self.user.is_none_or(|user| call.user == user)
            && self.host.is_none_or(on)
            && self.state.is_none_or(|state| call.state.as_str() == state)
            && (self.outcomes.is_empty() || call.outcome.is_some_and(|known| self.outcomes.contains(&known)))
            && self.since.is_none_or(|since| latest(call) >= Some(since))
            && self.until.is_none_or(|until| latest(call) <= Some(until))
    }
}
