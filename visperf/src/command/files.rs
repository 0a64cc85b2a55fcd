//! `visperf files`: the logs a sensor reads, and how far it is.
//!
//! Not here: how they are read (`sensor::tail`).

use crate::cli::{Place, Query};
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, clean, times};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Print the logs that the sensor reads: filter, size, how far behind, lines that no rule takes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
}

/// Print the files.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = query::ask(&args.query, "sensor.files", Params::default().at(&args.place))?;
    query::print(&args.query, query::items(&answer, "files"), "the sensor reads no log", table)
}

fn table(files: &[Value], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["FILE", "FILTER", "CLUSTER", "STATE", "SIZE", "BEHIND", "LINES", "EVENTS", "UNKNOWN", "GAPS"];
    let mut table = Table::new(&heads).spares(&["CLUSTER", "LINES", "SIZE", "EVENTS"]);
    for file in files {
        // Of what is not read nothing is known.
        let is_read = !matches!(text_of(file, "state"), "awaited" | "no_filter" | "no_log");
        let is_counted = is_read && file.get("same_as").is_none();
        let shown = |name: &str| number_of(file, name).filter(|_| is_counted);
        let size = |name: &str| Cell::figure(shown(name).map_or(String::new(), bytes));
        let figure = |name: &str| Cell::figure(plain(file.get(name).filter(|_| is_counted)));
        table.row(vec![
            Cell::path(text_of(file, "path")).color(Color::Name),
            Cell::text(text_of(file, "filter")),
            Cell::text(text_of(file, "cluster")),
            Cell::text(text_of(file, "state")),
            size("size"),
            size("lag"),
            figure("lines"),
            figure("events"),
            figure("unknown"),
            figure("gaps"),
        ]);
    }
    table.print(output)?;
    // Sentences, which would leave a table no room for anything else.
    for file in files.iter().filter(|file| !text_of(file, "health").is_empty()) {
        let since = match file.get("gone_since").and_then(Value::as_f64) {
            Some(since) => {
                format!(
                    "since {}: ",
                    times::brief(Time::from_secs_f64(since), times::now(), &TimeZone::system())
                )
            }
            None => String::new(),
        };
        let told = format!("{}: {since}{}", clean(text_of(file, "path")), clean(text_of(file, "health")));
        output.line(&output.paint(Color::Caution, &told))?;
    }
    for file in files {
        if let Some(note) = remark(file) {
            output.line(&output.paint(Color::Dim, &format!("{}: {note}", clean(text_of(file, "path")))))?;
        }
    }
    Ok(())
}

/// What to know of a file of which nothing is wrong.
fn remark(file: &Value) -> Option<String> {
    if let Some(other) = file.get("same_as").and_then(Value::as_str) {
        return Some(format!("the same file as {}, and counted there", clean(other)));
    }
    let unknown = number_of(file, "unknown").filter(|unknown| *unknown > 0.0)?;
    Some(format!("{unknown:.0} unknown: no rule takes them; `visperf filter try FILE` shows them in groups"))
}
