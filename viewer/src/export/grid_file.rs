//! File format of a saved grid, in the terms of the daemons' answers, so that another viewer shows the same.
//!
//! Rule: a file is untrusted: it has at most 256 MiB, is never in memory as a whole, and goes through the
//! grid's builder, which enforces all other limits (`reading`). A grid that is written and read back is the
//! same, except for what was refused.

mod reading;

use super::Error;
use crate::grid::Grid;
use crate::grid::call::Call;
use crate::grid::place::{HostState, Part, Place};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;
use wire::time::Time;

/// Maximum size of a file in bytes: with 50,000 calls and 20,000 hosts it has some 40 MB.
const FILE_LEN_MAX_BYTES: u64 = 256 << 20;
/// Name and version of the format.
const FORM: &str = "visperf grid 1";

/// Serialize a grid.
#[must_use]
pub fn text(grid: &Grid) -> String {
    let domains: Vec<Value> = (0_u32..)
        .zip(&grid.domains)
        .map(|(number, domain)| {
            let servers = domain.ids().map(|id| grid.place(id)).filter(|place| place.part == Part::Server);
            let calls = grid.calls.iter().filter(|call| call.domain.0 == number);
            json!({
                "domain": domain.name,
                "hosts": servers.map(host).collect::<Vec<_>>(),
                "calls": calls.map(|one| call(grid, one)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut text = json!({ "form": FORM, "domains": domains }).to_string();
    text.push('\n');
    text
}

/// Read a saved grid from a file, opened at `now`.
///
/// # Errors
/// If the file cannot be read, or is no saved grid.
pub fn open(path: &Path, now: Time) -> Result<Grid, Error> {
    let failed = |error| Error::Read { path: path.display().to_string(), error };
    let refuse = |found: String| Error::Content { path: path.display().to_string(), found };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > FILE_LEN_MAX_BYTES {
        return Err(refuse(format!("more than {} MiB", FILE_LEN_MAX_BYTES >> 20)));
    }
    reading::read(BufReader::new(file.take(FILE_LEN_MAX_BYTES)), now).map_err(refuse)
}

/// A host, with the field names of `domain.hosts`.
fn host(place: &Place) -> Value {
    let mut object = Map::new();
    object.insert("host".into(), place.name.as_str().into());
    let changes: Vec<Value> = place
        .changes
        .iter()
        .map(|(time, state)| json!({ "time": time.secs_f64(), "state": word_of(*state) }))
        .collect();
    if !changes.is_empty() {
        object.insert("changes".into(), changes.into());
    }
    let Some(report) = &place.report else { return Value::Object(object) };
    object.insert("state".into(), word_of(place.state).into());
    object.insert("role".into(), report.role.as_str().into());
    let memory = report.memory_bytes.zip(report.memory_used).map(|(total, used)| total * used);
    let figures = [
        ("cpu_used", report.cpu_used),
        ("memory_used_bytes", memory.or(report.memory_used)),
        ("memory_total_bytes", report.memory_bytes.or(report.memory_used.map(|_| 1.0))),
        ("load1", report.load1),
        ("cpus", report.cpus),
        ("age_secs", report.age_secs),
    ];
    object.extend(figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))));
    let counts = [
        ("lag_bytes", report.lag_bytes),
        ("events_behind", report.events_behind),
        ("events_lost", report.events_lost),
        ("events_refused", report.events_refused),
        ("samples_thinned", report.samples_thinned),
    ];
    object.extend(counts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))));
    object.insert("health".into(), report.health.clone().into());
    Value::Object(object)
}

fn word_of(state: HostState) -> &'static str {
    match state {
        HostState::Unknown => "unknown",
        HostState::Live => "live",
        HostState::Silent => "silent",
        HostState::Draining => "draining",
        HostState::Left => "left",
        HostState::Down => "last_seen",
    }
}

fn state_of(word: &str) -> Option<HostState> {
    use HostState::{Down, Draining, Left, Live, Silent, Unknown};
    [Unknown, Live, Silent, Draining, Left, Down].into_iter().find(|state| word_of(*state) == word)
}

/// A call, with the field names of `domain.calls`.
fn call(grid: &Grid, call: &Call) -> Value {
    let names = |places: &[crate::grid::place::PlaceId]| -> Vec<&str> {
        places.iter().map(|&id| grid.place(id).name.as_str()).collect()
    };
    // Without a scheduler no host was selected.
    let selected = call.assigned.filter(|_| call.scheduler.is_some());
    let mut object = json!({
        "id": call.id, "job": call.job, "name": call.name, "user": call.user, "reason": call.reason,
        "from": grid.place(call.client).name, "state": call.state.as_str(),
        "hosts": names(&call.hosts), "offers": names(&call.offers), "tries": call.tries, "events": call.events,
    });
    let times = [
        ("submitted", call.submitted),
        ("offered", call.offered),
        ("selected", selected),
        ("started", call.started),
        ("ended", call.ended),
    ];
    for (name, time) in times {
        if let Some(time) = time {
            object[name] = time.secs_f64().into();
        }
    }
    if let Some(outcome) = call.outcome {
        object["outcome"] = outcome.as_str().into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::builder::{Builder, CALLS_MAX, CLIENTS_MAX};
    use crate::grid::place::Report;
    use crate::grid::refused::Reason;
    use crate::synthetic;

    fn read(text: &str, now: Time) -> Result<Grid, String> {
        reading::read(text.as_bytes(), now)
    }

    #[test]
    fn a_grid_that_is_written_and_read_is_the_same() {
        let grid = synthetic::grid(3, 20, 400, 7);
        let read = read(&text(&grid), synthetic::latest()).unwrap();
        assert_eq!(read.domains, grid.domains);
        assert_eq!(read.calls, grid.calls);
        assert_eq!(read.failures, grid.failures);
        let names = |grid: &Grid| {
            grid.places.iter().map(|place| (place.name.clone(), place.state)).collect::<Vec<_>>()
        };
        assert_eq!(names(&read), names(&grid));
    }

    #[test]
    fn counts_of_reports_are_stored_and_may_be_missing() {
        let report = Report {
            lag_bytes: Some(4_096),
            events_behind: Some(7),
            events_lost: Some(3),
            events_refused: Some(2),
            samples_thinned: Some(11),
            ..Report::default()
        };
        let mut builder = Builder::new(synthetic::latest());
        let domain = builder.domain("Slurm").unwrap();
        builder.host(domain, "wn01", HostState::Live, report);
        let grid = builder.build();
        assert_eq!(read(&text(&grid), synthetic::latest()).unwrap(), grid);
        let of_old_viewer = r#"{"form": "visperf grid 1", "domains": [{"domain": "Slurm", "hosts": [
            {"host": "wn01", "state": "live", "role": "member", "cpu_used": 0.5, "health": []}]}]}"#;
        let old = read(of_old_viewer, synthetic::latest()).unwrap();
        let report = old.places[0].report.as_ref().unwrap();
        assert_eq!((report.cpu_used, report.lag_bytes, report.events_lost), (Some(0.5), None, None));
    }

    #[test]
    fn changes_of_hosts_and_hosts_that_only_calls_name_are_kept() {
        let mut builder = Builder::new(synthetic::latest());
        let domain = builder.domain("Slurm").unwrap();
        builder.host_change(domain, "wn01", synthetic::time_f(5.0), HostState::Down);
        builder.host_change(domain, "wn01", synthetic::time_f(9.0), HostState::Live);
        builder.call(domain, &synthetic::call("slurm:1", "ada", &["wn02"]));
        let grid = builder.build();
        assert_eq!(read(&text(&grid), synthetic::latest()).unwrap(), grid);
    }

    #[test]
    fn clients_that_share_a_place_share_it_again() {
        let mut builder = Builder::new(synthetic::latest());
        let domain = builder.domain("Slurm").unwrap();
        for number in 0..CLIENTS_MAX + 5 {
            let id = format!("slurm:{number:05}");
            let mut call = synthetic::call(&id, &format!("u{number:05}"), &["wn01"]);
            // The clients that share a place are read first, while there is space.
            call.submitted = Some(synthetic::time_f(if number < CLIENTS_MAX - 1 { 10.0 } else { 1.0 }));
            builder.call(domain, &call);
        }
        let grid = builder.build();
        let again = read(&text(&grid), synthetic::latest()).unwrap();
        assert_eq!(again.domains, grid.domains);
        assert_eq!(again.calls, grid.calls);
        assert_eq!(again.places, grid.places);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let refused = |text: &str| read(text, synthetic::latest()).unwrap_err();
        assert!(refused("{").contains("no JSON"));
        assert!(refused("{\"form\": \"visperf grid 2\"}").contains("instead of"));
        assert!(refused("{}").contains("instead of"));
        assert!(
            refused("{\"domains\": []}").contains("instead of"),
            "nothing is taken before the form is known"
        );
        let wrong = refused(r#"{"form": "visperf grid 1", "domains": [7]}"#);
        assert!(wrong.contains("a domain"), "{wrong}");
        let wrong = refused(r#"{"form": "visperf grid 1", "domains": [{"hosts": []}]}"#);
        assert!(wrong.contains("name"), "{wrong}");
        let odd = r#"{"form": "visperf grid 1", "x": [{}], "domains": [{"domain": "a", "hosts": [7, {"host": "x", "changes": [1, {"time": "x"}]}]}]}"#;
        assert_eq!(read(odd, synthetic::latest()).unwrap().hosts(), 1);
        let missing = open(Path::new("/nonexistent.visperf"), synthetic::latest()).unwrap_err();
        assert!(missing.to_string().contains("cannot read"));
    }

    #[test]
    fn a_file_cannot_fill_the_memory() {
        let begin = r#"{"form": "visperf grid 1", "domains": [{"domain": "a", "#;
        // A host with a million values is refused.
        let large =
            format!("{begin}\"hosts\": [{{\"host\": \"x\", \"y\": [0{}]}}]}}]}}", ",0".repeat(1_000_000));
        let wrong = read(&large, synthetic::latest()).unwrap_err();
        assert!(wrong.contains("at most 4096 values"), "{wrong}");
        // Of endless calls the first are stored, and the others counted.
        let calls: Vec<String> =
            (0..CALLS_MAX + 7).map(|number| format!("{{\"id\":\"{number}\"}}")).collect();
        let many = format!("{begin}\"calls\": [{}]}}]}}", calls.join(","));
        let grid = read(&many, synthetic::latest()).unwrap();
        assert_eq!((grid.calls.len(), grid.refused.count(Reason::Calls)), (CALLS_MAX, 7));
    }
}
