//! `visperf files`: the logs a sensor reads, and its progress in each.
//!
//! Not here: how they are read (`sensor::tail`).

use crate::client::items;
use crate::command::query;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{Place, Query};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, times};
use jiff::tz::TimeZone;
use wire::api::files::{FileState, FilesParams, LogFile};
use wire::shown::whole_bytes;

/// Print the logs that the sensor reads: filter, size, lag, lines without a matching rule
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
    let answer = query::request(&args.query, &FilesParams {}, &args.place.about())?;
    let raw = items(&answer.raw, "files");
    query::print_typed(&args.query, &raw, &answer.typed.files, "the sensor reads no log", table)
}

fn table(files: &[LogFile], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["FILE", "FILTER", "CLUSTER", "STATE", "SIZE", "BEHIND", "LINES", "EVENTS", "UNKNOWN", "GAPS"];
    let mut table = Table::new(&heads).spares(&["CLUSTER", "LINES", "SIZE", "EVENTS"]);
    for file in files {
        // Nothing is known about a file that is not read.
        let is_read = !matches!(file.state, FileState::Awaited | FileState::NoFilter | FileState::NoLog);
        let is_counted = is_read && file.same_as.is_none();
        let shown = |value: u64, form: fn(u64) -> String| {
            Cell::figure(if is_counted { form(value) } else { String::new() })
        };
        let number = |value: u64| value.to_string();
        table.row(vec![
            Cell::path(&file.path).color(Color::Name),
            Cell::text(&file.filter),
            Cell::text(&file.cluster),
            Cell::text(file.state.as_str()),
            shown(file.size_bytes, whole_bytes),
            shown(file.lag_bytes, whole_bytes),
            shown(file.lines, number),
            shown(file.events, number),
            shown(file.unknown, number),
            shown(file.gaps, number),
        ]);
    }
    table.print(output)?;
    // Problems are sentences, which would leave no room in the table for other columns.
    for file in files.iter().filter(|file| !file.health.is_empty()) {
        let since = match file.gone_since {
            Some(since) => format!("since {}: ", times::brief(since.0, times::now(), &TimeZone::system())),
            None => String::new(),
        };
        let problem = format!("{}: {since}{}", clean(&file.path), clean(&file.health));
        output.line(&output.paint(Color::Caution, &problem))?;
    }
    for file in files {
        if let Some(note) = remark(file) {
            output.line(&output.paint(Color::Dim, &format!("{}: {note}", clean(&file.path))))?;
        }
    }
    Ok(())
}

/// Note on a file that has no problem.
fn remark(file: &LogFile) -> Option<String> {
    if let Some(other) = &file.same_as {
        return Some(format!("the same file as {}, and counted there", clean(other)));
    }
    let unknown = Some(file.unknown).filter(|unknown| *unknown > 0)?;
    Some(format!("{unknown} unknown: no rule takes them; `visperf filter try FILE` shows them in groups"))
}
