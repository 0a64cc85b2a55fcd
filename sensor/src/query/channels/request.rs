//! Settings of a subscription, from the parameters of a call.
//!
//! Rule: a parameter that is not given keeps its value; an empty text removes a filter, condition or script.
//! Every error names the parameter that it is in.

use crate::process::details;
use rpc::codec::value::Value;
use rpc::fault::Fault;
use std::fmt::Display;
use wire::api::channels::{Selection, Settings};
use wire::channel::{ChannelRequest, Kind, Rate, expression};
use wire::near_names;

/// Returns the user whose processes a call selects: a name, or a uid as text.
pub(super) fn user_of_processes(kind: Kind, settings: &Settings) -> Option<String> {
    let user = settings.selection.as_ref().filter(|_| kind == Kind::Process)?.user.as_ref()?;
    Some(user.to_string())
}

/// Looks up the uid of such a user. May block: the system may query a server for names.
pub(super) fn uid(user: &str) -> Result<u32, Fault> {
    details::uid(user)
        .ok_or_else(|| Fault::not_found(format!("selection.user: this host has no user {user:?}")))
}

/// Returns `wanted` with the settings of the call; `uid` is that of [`user_of_processes`].
pub(super) fn changed(
    mut wanted: ChannelRequest,
    settings: &Settings,
    uid: Option<u32>,
) -> Result<ChannelRequest, Fault> {
    if let Some(selection) = of_kind(wanted.kind, settings)? {
        wanted.selection = selection.of_kind(wanted.kind, uid);
    }
    changed_but_selection(wanted, settings)
}

/// As [`changed`], but without the selection, which another host applies because it resolves the user names.
pub(super) fn changed_but_selection(
    mut wanted: ChannelRequest,
    settings: &Settings,
) -> Result<ChannelRequest, Fault> {
    of_kind(wanted.kind, settings)?;
    if let Some(hz) = settings.rate_hz {
        wanted.rate = Rate::try_from(hz).map_err(|error| within("rate_hz", &error))?;
    }
    if let Some(text) = &settings.filter {
        wanted.filter = expression::filter(text).map_err(|error| within("filter", &error))?;
    }
    if let Some(text) = &settings.condition {
        let condition = (!text.trim().is_empty()).then(|| expression::condition(text)).transpose();
        wanted.condition = condition.map_err(|error| within("condition", &error))?;
    }
    if let Some(text) = &settings.script {
        wanted.script = Some(text.clone()).filter(|text| !text.trim().is_empty());
    }
    wanted.changes = settings.changes.unwrap_or(wanted.changes);
    wanted.only_signals = settings.only_signals.unwrap_or(wanted.only_signals);
    if let Some(budget) = settings.budget {
        wanted.budget = budget
            .within(wanted.budget)
            .checked()
            .map_err(|error| Fault::invalid_params(error.to_string()))?;
    }
    Ok(wanted)
}

/// Returns the selection of a call after checking that each part of it applies to this kind.
fn of_kind(kind: Kind, settings: &Settings) -> Result<Option<&Selection>, Fault> {
    let (Some(selection), known) = (&settings.selection, kind.selectors()) else { return Ok(None) };
    match selection.given().into_iter().find(|name| !known.contains(name)) {
        None => Ok(Some(selection)),
        Some(name) => {
            let (all, shown) = (known.join(", "), Value::from(name).shown());
            let near = near_names::suggestion(name, known.iter().copied());
            let kind = kind.as_str();
            Err(Fault::invalid_params(format!(
                "selection: expected {all} for kind {kind}, found {shown}{near}"
            )))
        }
    }
}

fn within(what: &str, error: &impl Display) -> Fault {
    Fault::invalid_params(format!("{what}: {error}"))
}
