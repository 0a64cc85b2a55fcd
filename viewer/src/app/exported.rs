//! What of the window is handed to others: the rows of what is chosen, else of all that is shown.
//!
//! Rule: a table has what the tab in front shows, at the time that is looked at. Not here: the form of files (`export`).

use super::tabs::Tab;
use super::{App, Selection};
use crate::export::table::Table;
use crate::flock::measure::{Measure, share};
use crate::grid::call::Call;
use serde_json::{Value, json};

impl App {
    /// The rows of the tab in front.
    #[must_use]
    pub fn table(&self) -> Table {
        match super::tabs::front(self) {
            Tab::Flock if !self.flock().is_empty() => self.processes_table(),
            Tab::Graphs if self.graphs.has_figures() => self.series_table(),
            Tab::Sensors => self.sensors_table(),
            Tab::Map | Tab::Calls | Tab::Graphs | Tab::Flock => self.calls_table(),
        }
    }

    /// The chosen call, those of the chosen place or domain, or all that fit the search; heard of by now.
    fn calls_table(&self) -> Table {
        let columns = vec![
            "domain",
            "call",
            "job",
            "name",
            "user",
            "client",
            "state",
            "outcome",
            "reason",
            "submitted",
            "offered",
            "assigned",
            "started",
            "ended",
            "hosts",
            "offers",
            "tries",
        ];
        let now = self.timeline.time();
        let is_heard = |call: &Call| call.first().is_some_and(|first| first <= now);
        let calls = self.drawn.grid.calls.iter().enumerate();
        let calls =
            calls.filter(|(number, call)| self.fits.get(*number).copied().unwrap_or(true) && is_heard(call));
        let rows = calls.filter(|(_, call)| self.is_of_selection(call)).map(|(_, call)| self.call_row(call));
        Table { columns, rows: rows.collect() }
    }

    fn is_of_selection(&self, call: &Call) -> bool {
        match &self.selection {
            None => true,
            Some(Selection::Call(id)) => call.id == *id,
            Some(Selection::Domain(name)) => self.drawn.grid.domain(call.domain).name == *name,
            Some(Selection::Place { .. }) => self.selected_place().is_some_and(|place| {
                call.client == place || call.scheduler == Some(place) || call.hosts.contains(&place)
            }),
        }
    }

    fn call_row(&self, call: &Call) -> Vec<Value> {
        let grid = &self.drawn.grid;
        let now = self.timeline.time();
        let time = |time: Option<wire::time::Time>| {
            time.filter(|time| *time <= now).map_or(Value::Null, |time| time.secs_f64().into())
        };
        let names = |places: &[crate::grid::place::PlaceId]| -> Vec<&str> {
            places.iter().map(|&id| grid.place(id).name.as_str()).collect()
        };
        let state = call.state_at(now);
        let is_over = state == Some(wire::call::State::Ended);
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        vec![
            grid.domain(call.domain).name.as_str().into(),
            call.id.as_str().into(),
            text(&call.job),
            text(&call.name),
            text(&call.user),
            grid.place(call.client).name.as_str().into(),
            state.map_or(Value::Null, |state| state.as_str().into()),
            call.outcome.filter(|_| is_over).map_or(Value::Null, |outcome| outcome.as_str().into()),
            if is_over { text(&call.reason) } else { Value::Null },
            time(call.submitted),
            time(call.offered),
            time(call.assigned),
            time(call.started),
            time(call.ended),
            names(&call.hosts).into(),
            names(&call.offers).into(),
            call.tries.into(),
        ]
    }

    /// The processes that are chosen, else those that fit the search.
    fn processes_table(&self) -> Table {
        let columns = vec![
            "time",
            "domain",
            "host",
            "pid",
            "start_ns",
            "parent",
            "uid",
            "program",
            "threads",
            "cpu_of_host",
            "cpu_in_program",
            "memory_of_host",
            "rss_bytes",
            "disk_of_full",
            "disk_reads",
            "faults_of_full",
        ];
        let time = self.flock_time();
        let flock = self.flock();
        let mut rows = Vec::new();
        flock.each(time, |member, track, spots| {
            let host = flock.host_of(member);
            if !self.is_of_flock_choice(member, track.name, host) {
                return;
            }
            let much = |measure: Measure| json!(share(spots[measure.at()].x));
            let kind = |measure: Measure| json!(spots[measure.at()].y);
            rows.push(vec![
                time.secs_f64().into(),
                host.map_or(Value::Null, |host| (*host.domain).into()),
                host.map_or(Value::Null, |host| (*host.host).into()),
                member.pid.into(),
                member.start_ns.into(),
                track.parent.into(),
                track.uid.into(),
                flock.name(track.name).into(),
                track.threads.into(),
                much(Measure::Cpu),
                kind(Measure::Cpu),
                much(Measure::Memory),
                track.usage.rss_bytes.into(),
                much(Measure::Io),
                kind(Measure::Io),
                much(Measure::Faults),
            ]);
        });
        Table { columns, rows }
    }

    /// The figures of the hosts whose graphs are shown.
    fn series_table(&self) -> Table {
        let columns = vec!["domain", "host", "series", "time", "value"];
        let mut rows = Vec::new();
        for (host, series) in self.graphs.figures() {
            for (name, series) in series.iter() {
                let row = |(time, value): (wire::time::Time, f64)| {
                    let (domain, host) = ((*host.domain).into(), (*host.host).into());
                    vec![domain, host, name.as_str().into(), time.secs_f64().into(), value.into()]
                };
                rows.extend(series.samples().map(row));
            }
        }
        Table { columns, rows }
    }
}
