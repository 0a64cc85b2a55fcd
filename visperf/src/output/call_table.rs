//! Calls as a table: whose, where it stands, how long it waited and ran, where, how it ended and why.
//!
//! Pure. Calls come as the JSON that daemons answer and `filter try` makes.

use crate::exit::Failure;
use crate::output::event_lines::outcome_color;
use crate::output::figures::{number_of, plain, text_of, user};
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table, offset_now};
use crate::output::{Color, Output, shortened};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Of a name, a reason and of a list of hosts this much is shown on a terminal, in characters.
const SHOWN_CHARS: usize = 40;

/// The table of calls, without rows; times are shown in `zone`.
pub(crate) fn call_table(zone: &TimeZone) -> Table {
    let table = Table::new(&[
        "CALL",
        "NAME",
        "USER",
        "STATE",
        "OUTCOME",
        "SUBMITTED",
        "WAITED",
        "RAN",
        "HOSTS",
        "TRIES",
        "CODE",
        "REASON",
    ]);
    table.spares(&["TRIES", "WAITED", "SUBMITTED", "NAME", "REASON", "CODE"]).offset(offset_now(zone))
}

/// Add a row for each call, and print the table; with `now`, how long those that are not over wait and run so far.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_rows(
    mut table: Table,
    calls: impl IntoIterator<Item = Value>,
    zone: &TimeZone,
    now: Option<Time>,
    output: &mut Output,
) -> Result<(), Failure> {
    for call in calls {
        table.row(cells(&call, zone, now, output));
    }
    table.print(output)
}

fn cells(call: &Value, zone: &TimeZone, now: Option<Time>, output: &Output) -> Vec<Cell> {
    let time = |name: &str| number_of(call, name);
    let (submitted, started, ended) = (time("submitted"), time("started"), time("ended"));
    let outcome = text_of(call, "outcome");
    let state = text_of(call, "state");
    let span = |from: Option<f64>, to: Option<f64>, so_far: &str| match now {
        Some(now) if state == so_far && from.is_some() => {
            format!("{}+", between(from, from.map(|from| now.secs_f64().max(from))))
        }
        Some(_) | None => between(from, to),
    };
    let tries = number_of(call, "tries").filter(|&tries| tries > 1.0);
    let signal = text_of(call, "signal");
    let code = match (text_of(call, "code"), signal) {
        (code, "" | "0") => code.to_owned(),
        ("", signal) => format!("signal {signal}"),
        (code, signal) => format!("{code}, signal {signal}"),
    };
    let name = |text: &str| match output.width() {
        Some(_) => shortened(text, SHOWN_CHARS),
        None => text.to_owned(),
    };
    vec![
        Cell::text(text_of(call, "id")).color(Color::Name),
        Cell::text(name(text_of(call, "name"))),
        Cell::text(user(text_of(call, "user"))),
        Cell::text(state).color(if state == "running" { Color::Good } else { Color::Dim }),
        Cell::text(outcome).color(outcome_color(outcome)),
        Cell::time(submitted.map_or(String::new(), |secs| in_table(Time::from_secs_f64(secs), zone, output))),
        Cell::figure(span(submitted, started, "waiting")),
        Cell::figure(span(started, ended, "running")),
        Cell::text(name(&plain(call.get("hosts")))),
        Cell::figure(tries.map_or(String::new(), |tries| format!("{tries:.0}"))),
        Cell::text(code),
        Cell::text(name(text_of(call, "reason"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::kept::Kept;
    use serde_json::json;

    #[test]
    fn what_is_not_over_waits_and_runs_so_far() {
        let printed = |call: Value| {
            let shared = Kept::default();
            let mut output = Output::into_writer(shared.clone(), None);
            let now = Some(Time::from_secs_f64(1000.0));
            print_rows(call_table(&TimeZone::UTC), [call], &TimeZone::UTC, now, &mut output).unwrap();
            shared.text()
        };
        let running =
            printed(json!({"id": "slurm:1", "state": "running", "submitted": 930.0, "started": 940.0}));
        assert!(running.contains("10s") && running.contains("60s+"), "{running}");
        let waiting = printed(json!({"id": "slurm:1", "state": "waiting", "submitted": 1000.5}));
        assert!(waiting.contains("0s+"), "of a clock that is ahead: {waiting}");
        let ended =
            json!({"id": "slurm:1", "state": "ended", "submitted": 1.0, "started": 2.0, "ended": 4.0});
        assert!(!printed(ended).contains('+'));
    }

    #[test]
    fn hosts_and_names_are_cut_on_a_terminal_alone() {
        let hosts: Vec<String> = (0..40).map(|number| format!("wn{number:02}.site.example")).collect();
        let name = "a name that is much longer than forty characters are";
        let printed = |width: Option<usize>| {
            let shared = Kept::default();
            let mut output = Output::into_writer(shared.clone(), width);
            let call = json!({"id": "slurm:1", "name": name, "state": "running", "hosts": hosts});
            print_rows(call_table(&TimeZone::UTC), [call], &TimeZone::UTC, None, &mut output).unwrap();
            shared.text()
        };
        let whole = printed(None);
        assert!(whole.contains(&hosts.join(",")) && whole.contains(name), "{whole}");
        let cut = printed(Some(120));
        assert!(cut.contains("wn00") && cut.contains('…') && !cut.contains("wn39"), "{cut}");
    }
}
