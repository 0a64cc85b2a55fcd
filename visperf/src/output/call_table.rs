//! Table of calls: user, state, waiting and running time, hosts, outcome and reason.
//!
//! Pure.

use crate::exit::Failure;
use crate::output::event_lines::outcome_color;
use crate::output::figures::user;
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table, offset_now};
use crate::output::{Color, Output, shortened};
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::calls::Call;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Characters shown of a name, a reason and a list of hosts on a terminal.
const SHOWN_CHARS: usize = 40;

/// An empty table of calls; times are shown in `zone`.
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

/// Add a row for each call, and print the table; with `now`, also the waiting and running time so far of
/// calls that have not ended.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_rows(
    mut table: Table,
    calls: impl IntoIterator<Item = Call>,
    zone: &TimeZone,
    now: Option<Time>,
    output: &mut Output,
) -> Result<(), Failure> {
    for call in calls {
        table.row(cells(&call, zone, now, output));
    }
    table.print(output)
}

fn cells(call: &Call, zone: &TimeZone, now: Option<Time>, output: &Output) -> Vec<Cell> {
    let secs = |time: Option<UnixTime>| time.map(|time| time.0.secs_f64());
    let (submitted, started, ended) = (secs(call.submitted), secs(call.started), secs(call.ended));
    let outcome = call.outcome.map_or("", Outcome::as_str);
    let span = |from: Option<f64>, to: Option<f64>, so_far: State| match now {
        Some(now) if call.state == so_far && from.is_some() => {
            format!("{}+", between(from, from.map(|from| now.secs_f64().max(from))))
        }
        Some(_) | None => between(from, to),
    };
    let tries = Some(call.tries).filter(|&tries| tries > 1);
    let code = match (call.code.as_str(), call.signal.as_str()) {
        (code, "" | "0") => code.to_owned(),
        ("", signal) => format!("signal {signal}"),
        (code, signal) => format!("{code}, signal {signal}"),
    };
    let name = |text: &str| match output.width() {
        Some(_) => shortened(text, SHOWN_CHARS),
        None => text.to_owned(),
    };
    vec![
        Cell::text(call.id.as_str()).color(Color::Name),
        Cell::text(name(&call.name)),
        Cell::text(user(&call.user)),
        Cell::text(call.state.as_str()).color(if call.state == State::Running {
            Color::Good
        } else {
            Color::Dim
        }),
        Cell::text(outcome).color(outcome_color(outcome)),
        Cell::time(call.submitted.map_or(String::new(), |time| in_table(time.0, zone, output))),
        Cell::figure(span(submitted, started, State::Waiting)),
        Cell::figure(span(started, ended, State::Running)),
        Cell::text(name(&call.hosts.join(","))),
        Cell::figure(tries.map_or(String::new(), |tries| tries.to_string())),
        Cell::text(code),
        Cell::text(name(&call.reason)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use serde_json::json;

    fn call(state: State, [submitted, started, ended]: [Option<f64>; 3]) -> Call {
        let time = |secs: Option<f64>| secs.map(|secs| UnixTime(Time::from_secs_f64(secs)));
        let bare = json!({"id": "slurm:1", "job": "1", "name": "", "user": "", "from": "", "state": "waiting", "offers": [],
            "hosts": [], "tries": 0, "events": 1});
        let bare: Call = serde_json::from_value(bare).unwrap();
        Call { state, submitted: time(submitted), started: time(started), ended: time(ended), ..bare }
    }

    #[test]
    fn what_is_not_over_waits_and_runs_so_far() {
        let printed = |state, times| {
            let shared = Capture::default();
            let mut output = Output::into_writer(shared.clone(), None);
            let now = Some(Time::from_secs_f64(1000.0));
            let calls = [call(state, times)];
            print_rows(call_table(&TimeZone::UTC), calls, &TimeZone::UTC, now, &mut output).unwrap();
            shared.text()
        };
        let running = printed(State::Running, [Some(930.0), Some(940.0), None]);
        assert!(running.contains("10s") && running.contains("60s+"), "{running}");
        let waiting = printed(State::Waiting, [Some(1000.5), None, None]);
        assert!(waiting.contains("0s+"), "of a clock that is ahead: {waiting}");
        assert!(!printed(State::Ended, [Some(1.0), Some(2.0), Some(4.0)]).contains('+'));
    }

    #[test]
    fn hosts_and_names_are_cut_on_a_terminal_alone() {
        let hosts: Vec<String> = (0..40).map(|number| format!("wn{number:02}.site.example")).collect();
        let name = "a name that is much longer than forty characters are";
        let printed = |width: Option<usize>| {
            let shared = Capture::default();
            let mut output = Output::into_writer(shared.clone(), width);
            let running = call(State::Running, [None; 3]);
            let call = Call { name: name.to_owned(), hosts: hosts.clone(), ..running };
            print_rows(call_table(&TimeZone::UTC), [call], &TimeZone::UTC, None, &mut output).unwrap();
            shared.text()
        };
        let whole = printed(None);
        assert!(whole.contains(&hosts.join(",")) && whole.contains(name), "{whole}");
        let cut = printed(Some(120));
        assert!(cut.contains("wn00") && cut.contains('…') && !cut.contains("wn39"), "{cut}");
    }
}
