//! Calls as a table: whose, where it stands, how long it waited and ran, where, how it ended and why.
//!
//! Pure. Calls come as the JSON that daemons answer and `filter try` makes.

use crate::exit::Failure;
use crate::output::event_lines::outcome_color;
use crate::output::figures::{number_of, plain, text_of, user};
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table};
use crate::output::{Color, Output, shortened};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Of a name, a reason and of a list of hosts this much is shown on a terminal, in characters.
const SHOWN_CHARS: usize = 40;

/// The table of calls, without rows.
pub(crate) fn call_table() -> Table {
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
    table.spares(&["TRIES", "WAITED", "SUBMITTED", "NAME", "REASON", "CODE"])
}

/// Add a row for each call, and print the table.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_rows(
    mut table: Table,
    calls: impl IntoIterator<Item = Value>,
    zone: &TimeZone,
    output: &mut Output,
) -> Result<(), Failure> {
    for call in calls {
        table.row(cells(&call, zone, output));
    }
    table.print(output)
}

fn cells(call: &Value, zone: &TimeZone, output: &Output) -> Vec<Cell> {
    let time = |name: &str| number_of(call, name);
    let (submitted, started, ended) = (time("submitted"), time("started"), time("ended"));
    let outcome = text_of(call, "outcome");
    let state = text_of(call, "state");
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
        Cell::whole(
            submitted.map_or(String::new(), |secs| in_table(Time::from_secs_f64(secs), zone, output)),
        ),
        Cell::figure(between(submitted, started)),
        Cell::figure(between(started, ended)),
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
    fn hosts_and_names_are_cut_on_a_terminal_alone() {
        let hosts: Vec<String> = (0..40).map(|number| format!("wn{number:02}.site.example")).collect();
        let name = "a name that is much longer than forty characters are";
        let printed = |width: Option<usize>| {
            let shared = Kept::default();
            let mut output = Output::into_writer(shared.clone(), width);
            let call = json!({"id": "slurm:1", "name": name, "state": "running", "hosts": hosts});
            print_rows(call_table(), [call], &TimeZone::UTC, &mut output).unwrap();
            shared.text()
        };
        let whole = printed(None);
        assert!(whole.contains(&hosts.join(",")) && whole.contains(name), "{whole}");
        let cut = printed(Some(120));
        assert!(cut.contains("wn00") && cut.contains('…') && !cut.contains("wn39"), "{cut}");
    }
}
