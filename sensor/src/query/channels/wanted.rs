//! What a subscription wants, from the parameters of a call and back.
//!
//! Rule: what is not given stays as it was; an empty text takes a filter, condition or script away. Every mistake is told
//! with the parameter it is in.

use crate::process::details;
use rpc::fault::Fault;
use rpc::params::Params;
use rpc::value::{Name, Value};
use std::fmt::Display;
use wire::channel::{Budget, Kind, Rate, Selection, Wanted, expression};
use wire::event;
use wire::near_names;

/// Members of a budget.
const BUDGET: [&str; 3] = ["cpu_ms", "bytes", "queue_bytes"];

/// The user whose processes a call selects: a name, or a number as text.
pub(super) fn user_of_processes(kind: Kind, params: &Params) -> Result<Option<String>, Fault> {
    let Some(given) = params.value("selection").filter(|_| kind == Kind::Process) else { return Ok(None) };
    let mut given = members("selection", given, kind.selectors())?.iter();
    given
        .find(|(name, _)| name == "user")
        .map(|(_, value)| text_or_number("selection.user", value))
        .transpose()
}

/// The number of such a user. May block: names are asked of the system, which may ask a server.
pub(super) fn uid(user: &str) -> Result<u32, Fault> {
    details::uid(user)
        .ok_or_else(|| Fault::not_found(format!("selection.user: this host has no user {user:?}")))
}

/// `wanted` with what the call gives; `uid` is that of [`user_of_processes`].
pub(super) fn changed(mut wanted: Wanted, params: &Params, uid: Option<u32>) -> Result<Wanted, Fault> {
    if let Some(given) = params.value("selection") {
        let given = members("selection", given, wanted.kind.selectors())?;
        wanted.selection = selection_of(wanted.kind, given, uid)?;
    }
    changed_but_selection(wanted, params)
}

/// The same, where another host selects: names of users are its.
pub(super) fn changed_but_selection(mut wanted: Wanted, params: &Params) -> Result<Wanted, Fault> {
    if let Some(hz) = params.number("rate")? {
        wanted.rate = Rate::try_from(hz).map_err(invalid)?;
    }
    if let Some(text) = params.text("filter")? {
        wanted.filter = expression::filter(text).map_err(|error| within("filter", &error))?;
    }
    if let Some(text) = params.text("condition")? {
        let condition = (!text.trim().is_empty()).then(|| expression::condition(text)).transpose();
        wanted.condition = condition.map_err(|error| within("condition", &error))?;
    }
    if let Some(text) = params.text("script")? {
        wanted.script = (!text.trim().is_empty()).then(|| text.to_owned());
    }
    if let Some(changes) = params.flag("changes")? {
        wanted.changes = changes;
    }
    if let Some(only_signals) = params.flag("only_signals")? {
        wanted.only_signals = only_signals;
    }
    if let Some(given) = params.value("budget") {
        wanted.budget = budget_of(wanted.budget, members("budget", given, &BUDGET)?)?;
    }
    Ok(wanted)
}

/// What a subscription is of.
pub(super) fn kind(params: &Params) -> Result<Kind, Fault> {
    let given = params.need_text("kind")?;
    Kind::from_word(given).ok_or_else(|| Fault::internal(format!("kind: {given:?} is none, and was let in")))
}

/// A selection as a value.
pub(super) fn selection(selection: &Selection) -> Value {
    let Selection { name, uid, command, pid, under, job, call, user, event, outcomes, metric } = selection;
    let text =
        |text: &Option<_>| text.as_ref().map(|text: &compact_str::CompactString| Value::from(text.as_str()));
    let number = |number: Option<u32>| number.map(|number| Value::UInt(number.into()));
    let values = [
        ("name", text(name)),
        ("user", uid.map(|uid| Value::Text(uid.to_string())).or_else(|| text(user))),
        ("command", text(command)),
        ("pid", number(*pid)),
        ("under", number(*under)),
        ("job", text(job)),
        ("call", text(call)),
        ("kind", event.map(|kind| Value::from(kind.as_str()))),
        ("outcome", outcomes_value(outcomes)),
        ("metric", text(metric)),
    ];
    Value::object(values.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// One outcome as a text, which every version takes; several as an array.
fn outcomes_value(outcomes: &[event::Outcome]) -> Option<Value> {
    match outcomes {
        [] => None,
        [one] => Some(Value::from(one.as_str())),
        several => Some(Value::array(several.iter().map(|outcome| outcome.as_str()))),
    }
}

/// A budget as a value.
pub(super) fn budget(budget: Budget) -> Value {
    let values = [budget.cpu_ms, budget.bytes, budget.queue_bytes];
    Value::object(BUDGET.into_iter().zip(values.map(|value| Value::from(u64::from(value)))))
}

/// The members are those of the kind.
fn selection_of(kind: Kind, given: &[(Name, Value)], uid: Option<u32>) -> Result<Selection, Fault> {
    let mut selection = Selection::default();
    for (name, value) in given {
        match name.as_ref() {
            "name" => selection.name = Some(text("selection.name", value)?.into()),
            "command" => selection.command = Some(text("selection.command", value)?.into()),
            "pid" => selection.pid = Some(whole("selection.pid", value)?),
            "under" => selection.under = Some(whole("selection.under", value)?),
            "job" => selection.job = Some(text_or_number("selection.job", value)?.into()),
            "call" => selection.call = Some(text("selection.call", value)?.into()),
            "metric" => selection.metric = Some(text("selection.metric", value)?.into()),
            "kind" => selection.event = Some(event_kind(text("selection.kind", value)?)?),
            "outcome" => selection.outcomes = outcomes(value)?,
            _ if kind == Kind::Process => selection.uid = uid,
            _ => selection.user = Some(text_or_number("selection.user", value)?.into()),
        }
    }
    Ok(selection)
}

fn event_kind(word: &str) -> Result<event::Kind, Fault> {
    let known = || event::Kind::ALL.iter().map(|kind| kind.as_str());
    event::Kind::from_word(word).ok_or_else(|| {
        let (all, near) = (known().collect::<Vec<_>>().join(", "), near_names::suggestion(word, known()));
        Fault::invalid_params(format!("selection.kind: expected one of {all}, found {word:?}{near}"))
    })
}

/// One outcome or an array of outcomes, each once, in one order: who wants the same has the same selection.
fn outcomes(value: &Value) -> Result<Vec<event::Outcome>, Fault> {
    let one = |value| outcome(text("selection.outcome", value)?);
    let mut outcomes = if let Value::Array(values) = value {
        values.iter().map(one).collect::<Result<Vec<_>, Fault>>()?
    } else {
        vec![one(value)?]
    };
    outcomes.sort_unstable_by_key(|outcome| outcome.as_str());
    outcomes.dedup();
    Ok(outcomes)
}

fn outcome(word: &str) -> Result<event::Outcome, Fault> {
    let known = || event::Outcome::ALL.iter().map(|outcome| outcome.as_str());
    event::Outcome::from_word(word).ok_or_else(|| {
        let (all, near) = (known().collect::<Vec<_>>().join(", "), near_names::suggestion(word, known()));
        Fault::invalid_params(format!("selection.outcome: expected one of {all}, found {word:?}{near}"))
    })
}

fn text_or_number(what: &str, value: &Value) -> Result<String, Fault> {
    let number = value.as_int().map(|number| number.to_string());
    number.map_or_else(|| text(what, value).map(ToOwned::to_owned), Ok)
}

fn budget_of(mut budget: Budget, given: &[(Name, Value)]) -> Result<Budget, Fault> {
    for (name, value) in given {
        match name.as_ref() {
            "cpu_ms" => budget.cpu_ms = whole("budget.cpu_ms", value)?,
            "bytes" => budget.bytes = whole("budget.bytes", value)?,
            _ => budget.queue_bytes = whole("budget.queue_bytes", value)?,
        }
    }
    budget.checked().map_err(invalid)
}

/// The members of a structure that has only these.
fn members<'a>(what: &str, value: &'a Value, known: &[&str]) -> Result<&'a [(Name, Value)], Fault> {
    let Value::Struct(members) = value else {
        return Err(Fault::invalid_params(format!("{what}: expected a structure, found {}", value.shown())));
    };
    let unknown = members.iter().find(|(name, _)| !known.contains(&name.as_ref()));
    unknown.map_or(Ok(members), |(name, _)| {
        let shown = Value::from(name.as_ref()).shown();
        Err(Fault::invalid_params(format!("{what}: expected {}, found {shown}", known.join(", "))))
    })
}

fn text<'a>(what: &str, value: &'a Value) -> Result<&'a str, Fault> {
    value
        .as_text()
        .ok_or_else(|| Fault::invalid_params(format!("{what}: expected text, found {}", value.shown())))
}

/// Decimal text is taken too: clients without numbers send it.
fn whole(what: &str, value: &Value) -> Result<u32, Fault> {
    let number = value.as_int().and_then(|number| u32::try_from(number).ok());
    let number = number.or_else(|| value.as_text().and_then(|text| text.trim().parse().ok()));
    number.ok_or_else(|| {
        Fault::invalid_params(format!("{what}: expected a whole number below 2^32, found {}", value.shown()))
    })
}

fn within(what: &str, error: &impl Display) -> Fault {
    Fault::invalid_params(format!("{what}: {error}"))
}

fn invalid(error: impl Display) -> Fault {
    Fault::invalid_params(error.to_string())
}
