//! What a subscription wants, from the parameters of a call and back.
//!
//! Rule: what is not given stays as it was; an empty text takes a filter, condition or script away. Every mistake is told
//! with the parameter it is in.

use crate::process::details;
use rpc::fault::Fault;
use rpc::params::Params;
use rpc::value::{Name, Value};
use std::fmt::Display;
use wire::channel::{Budget, Rate, Selection, Wanted, expression};

/// Members of a selection.
const SELECTION: [&str; 5] = ["name", "user", "command", "pid", "under"];
/// Members of a budget.
const BUDGET: [&str; 3] = ["cpu_ms", "bytes", "queue_bytes"];

/// `wanted` with what the call gives.
pub(super) fn changed(mut wanted: Wanted, params: &Params) -> Result<Wanted, Fault> {
    if let Some(given) = params.value("selection") {
        wanted.selection = selection_of(members("selection", given, &SELECTION)?)?;
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

/// A selection as a value.
pub(super) fn selection(selection: &Selection) -> Value {
    let Selection { name, uid, command, pid, under } = selection;
    let text =
        |text: &Option<_>| text.as_ref().map(|text: &compact_str::CompactString| Value::from(text.as_str()));
    let number = |number: Option<u32>| number.map(|number| Value::UInt(number.into()));
    let user = uid.map(|uid| Value::Text(uid.to_string()));
    let values = [text(name), user, text(command), number(*pid), number(*under)];
    let given = SELECTION.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
    Value::object(given)
}

/// A budget as a value.
pub(super) fn budget(budget: Budget) -> Value {
    let values = [budget.cpu_ms, budget.bytes, budget.queue_bytes];
    Value::object(BUDGET.into_iter().zip(values.map(|value| Value::from(u64::from(value)))))
}

fn selection_of(given: &[(Name, Value)]) -> Result<Selection, Fault> {
    let mut selection = Selection::default();
    for (name, value) in given {
        match name.as_ref() {
            "name" => selection.name = Some(text("selection.name", value)?.into()),
            "command" => selection.command = Some(text("selection.command", value)?.into()),
            "pid" => selection.pid = Some(whole("selection.pid", value)?),
            "under" => selection.under = Some(whole("selection.under", value)?),
            _ => {
                let user = value.as_int().map(|number| number.to_string());
                let user = user.map_or_else(|| text("selection.user", value).map(ToOwned::to_owned), Ok)?;
                let uid = details::uid(&user);
                let unknown = || Fault::not_found(format!("selection.user: this host has no user {user:?}"));
                selection.uid = Some(uid.ok_or_else(unknown)?);
            }
        }
    }
    Ok(selection)
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
