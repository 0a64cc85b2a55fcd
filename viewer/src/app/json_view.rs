//! What is seen, as JSON: for scripts, and to compare pictures with answers of queries.
//!
//! Pure. Rule: it contains what the map draws, from the same scene.

use crate::grid::call::Call;
use crate::model::Model;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wire::call::State;

/// What is seen at the time that is shown.
pub(super) fn json(model: &Model) -> Value {
    let (grid, scene) = (model.grid(), model.scene());
    let calls = grid.calls.iter().enumerate().filter(|(number, call)| model.is_shown(*number, call));
    let moving: BTreeSet<&str> =
        scene.marks.iter().map(|mark| grid.calls[mark.call as usize].id.as_str()).collect();
    let counts = scene.counts;
    json!({
        "time": model.time().secs_f64(),
        "domains": grid.domains.iter().map(|domain| &domain.name).collect::<Vec<_>>(),
        "hosts": grid.hosts(),
        "calls": calls.map(|(_, call)| call_json(model, call)).collect::<Vec<_>>(),
        "moving": moving,
        "waiting": counts.waiting,
        "running": counts.running,
        "ok": counts.ok,
        "failed": counts.failed,
        "ended": counts.ended,
        "refused": grid.refused.lines(),
    })
}

fn call_json(model: &Model, call: &Call) -> Value {
    let state = call.state_at(model.time());
    let hosts: Vec<&String> = call.hosts.iter().map(|&host| &model.grid().place(host).name).collect();
    let outcome = call.outcome.filter(|_| state == Some(State::Ended));
    json!({
        "id": call.id,
        "state": state.map(State::as_str),
        "outcome": outcome.map(wire::event::Outcome::as_str),
        "user": call.user,
        "hosts": hosts,
    })
}
