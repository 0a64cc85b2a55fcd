//! Tables for export: the rows of the selection, else of everything that a tab shows.
//!
//! Pure. Rule: a table has what a tab shows, at the time that is shown. Not here: formats of files
//! (`export`).

use crate::export::table::Table;
use crate::flock::measure::{Measure, share};
use crate::grid::call::Call;
use crate::grid::place::{HostState, PlaceId};
use crate::jobs::Row;
use crate::model::Model;
use crate::model::sensor_rows::{self, Line};
use serde_json::{Value, json};
use wire::time::Time;

/// The selected call, those of the selected place or domain, or all that fit the search.
pub(super) fn calls(model: &Model) -> Table {
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
    let calls = model.grid().calls.iter().enumerate();
    let calls = calls.filter(|(number, call)| {
        model.is_shown(*number, call) && model.selected().includes(model.grid(), call)
    });
    Table { columns, rows: calls.map(|(_, call)| call_row(model, call)).collect() }
}

fn call_row(model: &Model, call: &Call) -> Vec<Value> {
    let (grid, now) = (model.grid(), model.time());
    let time = |time: Option<Time>| {
        time.filter(|time| *time <= now).map_or(Value::Null, |time| time.secs_f64().into())
    };
    let names =
        |places: &[PlaceId]| -> Vec<&str> { places.iter().map(|&id| grid.place(id).name.as_str()).collect() };
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

/// The selected processes, else those that fit the search.
pub(super) fn processes(model: &Model) -> Table {
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
    let time = model.flock_time();
    let flock = model.flock().flock();
    let mut rows = Vec::new();
    flock.each(time, |member, track, spots| {
        let host = flock.host_of(member);
        if !model.flock().includes(member, track.name, host) {
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

/// The figures of the hosts whose graphs are shown, within the span of the graphs: as they are drawn, received samples all.
pub(super) fn series(model: &Model) -> Table {
    let columns = vec!["domain", "host", "series", "time", "value"];
    let mut rows = Vec::new();
    for line in model.drawn_values() {
        let row = |(time, value): (Time, f64)| {
            let (domain, host) = ((*line.host.domain).into(), (*line.host.host).into());
            vec![domain, host, line.name.as_str().into(), time.secs_f64().into(), value.into()]
        };
        rows.extend(line.values.iter().copied().map(row));
    }
    Table { columns, rows }
}

/// The jobs that are loaded, in their order.
pub(super) fn jobs(model: &Model) -> Table {
    let columns = vec![
        "domain",
        "id",
        "name",
        "user",
        "account",
        "queue",
        "state",
        "outcome",
        "submitted",
        "started",
        "ended",
        "cpus",
        "cpu_secs",
        "cpu_efficiency",
        "peak_memory_bytes",
        "hosts",
        "findings",
        "reason",
    ];
    Table { columns, rows: model.jobs().rows().iter().map(job_row).collect() }
}

fn job_row(row: &Row) -> Vec<Value> {
    let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let time = |time: Option<Time>| time.map_or(Value::Null, |time| time.secs_f64().into());
    vec![
        text(&row.key.domain),
        text(&row.key.id),
        text(&row.name),
        text(&row.user),
        text(&row.account),
        text(&row.queue),
        row.state.as_str().into(),
        row.outcome.map(wire::event::Outcome::as_str).into(),
        time(row.submitted),
        time(row.started),
        time(row.ended),
        row.cpus.into(),
        row.cpu_secs.into(),
        row.cpu_efficiency.into(),
        row.peak_memory_bytes.into(),
        json!(row.hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>()),
        text(&row.findings),
        text(&row.reason),
    ]
}

/// The sensors of these lines.
pub(super) fn sensors(model: &Model, lines: &[Line]) -> Table {
    let columns = vec![
        "sensor",
        "domain",
        "state",
        "heard_secs",
        "lag_bytes",
        "behind",
        "dropped",
        "thinned",
        "slipped",
        "term",
        "troubles",
    ];
    let row = |&line: &Line| {
        let row = sensor_rows::row(model, line);
        let (name, domain) = sensor_rows::names(model, line);
        vec![
            name.into(),
            domain.into(),
            row.state.map(HostState::word).into(),
            row.heard_secs.into(),
            row.lag_bytes.into(),
            row.behind.into(),
            row.dropped.into(),
            row.thinned.into(),
            row.slipped.into(),
            row.term.into(),
            row.troubles.into(),
        ]
    };
    Table { columns, rows: lines.iter().map(row).collect() }
}
