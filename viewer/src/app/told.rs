//! What is to be seen, as JSON: for scripts, and to compare pictures with what queries say.
//!
//! Rule: it tells what the map draws, from the same scene.

use super::App;
use crate::grid::call::Call;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wire::call::State;

impl App {
    /// What is to be seen now.
    #[must_use]
    pub fn told(&self) -> Value {
        let grid = &self.drawn.grid;
        let time = self.timeline.time();
        let fits = |number: usize| self.fits.get(number).copied().unwrap_or(true);
        let drawn = grid
            .calls
            .iter()
            .enumerate()
            .filter(|(number, call)| fits(*number) && call.first().is_some_and(|first| first <= time));
        let moving: BTreeSet<&str> =
            self.scene.marks.iter().map(|mark| grid.calls[mark.call as usize].id.as_str()).collect();
        let counts = self.scene.counts;
        json!({
            "time": time.secs_f64(),
            "domains": grid.domains.iter().map(|domain| &domain.name).collect::<Vec<_>>(),
            "hosts": grid.hosts(),
            "calls": drawn.map(|(_, call)| self.told_call(call)).collect::<Vec<_>>(),
            "moving": moving,
            "waiting": counts.waiting,
            "running": counts.running,
            "ok": counts.ok,
            "failed": counts.failed,
            "ended": counts.ended,
            "refused": grid.refused.lines(),
        })
    }

    /// A call as it stands at the time that is looked at.
    fn told_call(&self, call: &Call) -> Value {
        let time = self.timeline.time();
        let state = call.state_at(time);
        let hosts: Vec<&String> = call.hosts.iter().map(|&host| &self.drawn.grid.place(host).name).collect();
        let outcome = call.outcome.filter(|_| state == Some(State::Ended));
        json!({
            "id": call.id,
            "state": state.map(State::as_str),
            "outcome": outcome.map(wire::event::Outcome::as_str),
            "user": call.user,
            "hosts": hosts,
        })
    }
}
