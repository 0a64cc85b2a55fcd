//! `visperf recordings list`: the recordings of a host, the newest first.
//!
//! Not here: their samples (`export`).

use crate::cli::{Place, Query};
use crate::command::query::{Params, ask, items, print};
use crate::exit::Failure;
use crate::output::figures::{bytes, number_of, text_of};
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Print the recordings of a host, the newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings list
  visperf recordings list --host wn01 --json | jq -r .id")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
}

/// Print them.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = Params::default().at(&args.place);
    let answer = ask(&args.query, "sensor.recordings", params)?;
    print(&args.query, items(&answer, "recordings"), "no recordings", table)?;
    if args.query.json {
        return Ok(());
    }
    if answer.get("on").and_then(Value::as_bool) != Some(true) {
        note("the flight recorder is off; on = true in [sensor.recorder] turns it on");
    }
    let suppressed: f64 =
        items(&answer, "triggers").iter().filter_map(|trigger| number_of(trigger, "suppressed")).sum();
    if suppressed > 0.0 {
        note(&format!("{suppressed} events fitted a trigger while it was quiet (cool_down_s)"));
    }
    let refused: f64 =
        items(&answer, "triggers").iter().filter_map(|trigger| number_of(trigger, "refused")).sum();
    if refused > 0.0 {
        note(&format!("{refused} times a trigger fitted and no recording could be begun"));
    }
    if let Some(trouble) = answer.get("trouble").and_then(Value::as_str) {
        note(trouble);
    }
    Ok(())
}

fn table(recordings: &[Value], output: &mut Output) -> Result<(), Failure> {
    let heads = ["ID", "STATE", "TIME", "WINDOW", "SIZE", "TRIGGER", "NOTE"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads).spares(&["SIZE", "WINDOW", "NOTE"]).offset(offset_now(&zone));
    for recording in recordings {
        let figure = |name: &str| number_of(recording, name);
        let time = figure("time").map(Time::from_secs_f64);
        let window = figure("from").zip(figure("to")).map(|(from, to)| format!("{:.1} s", to - from));
        let trigger = match text_of(recording, "trigger") {
            "" => "(ordered)",
            trigger => trigger,
        };
        table.row(vec![
            Cell::whole(text_of(recording, "id")).color(Color::Name),
            Cell::whole(text_of(recording, "state")).color(Color::Dim),
            Cell::time(time.map(|time| in_table(time, &zone, output)).unwrap_or_default()),
            Cell::figure(window.unwrap_or_default()),
            Cell::figure(figure("size").map(bytes).unwrap_or_default()),
            Cell::text(trigger),
            Cell::text(text_of(recording, "note")),
        ]);
    }
    table.print(output)
}
