//! `visperf history list`: the days that are exported to a place.
//!
//! Not here: the export (`export`).

use super::exported::place;
use super::failed;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{Width, chosen};
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output, as_answered, note, report};
use history_files::day::{Day, DayFile};
use history_files::destination::Destination;
use history_files::table;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use wire::shell::quoted;
use wire::shown::whole_bytes;

/// Print the days that are exported to a place
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf history list /srv/grid-history
  visperf history list s3://grid-history/physics --verify
  visperf history list /srv/grid-history --json | jq -r '.files[].path'")]
pub(super) struct Args {
    /// Folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE", value_parser = place)]
    place: String,
    /// Only days of this domain
    #[arg(long, value_name = "DOMAIN", value_parser = chosen)]
    domain: Option<String>,
    /// Read every file, and compare its length and checksum
    #[arg(long)]
    verify: bool,
    /// Print JSON, one object for each day
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Print the days.
///
/// # Errors
/// If the place cannot be read, or a file is damaged.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let destination = Destination::open(&args.place, false).map_err(failed)?;
    let mut dates = destination.dates().map_err(failed)?;
    dates.retain(|(domain, _)| args.domain.as_ref().is_none_or(|wanted| wanted == domain));
    let (days, problems) = destination.days(&dates);
    let mut problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut output = args.width.output();
    match args.json {
        true => days.iter().try_for_each(|day| output.json(&as_answered(&day.brief())?))?,
        false if days.is_empty() => note(match &args.domain {
            Some(_) => "no day of this domain is exported there",
            None => "no day is exported there",
        }),
        false => print(&days, &mut output)?,
    }
    output.flush()?;
    if args.verify {
        let files: Vec<&DayFile> = days.iter().flat_map(|day| &day.files).collect();
        let wrong = files.iter().filter_map(|file| destination.verify(file).err());
        let wrong: Vec<String> = wrong.map(|error| error.to_string()).collect();
        note(&format!("{} of {} files are as they were exported", files.len() - wrong.len(), files.len()));
        if !wrong.is_empty() {
            note(&clean(&format!(
                "visperf history export {} --again --since DAY --until DAY writes a day again, if it is still stored",
                quoted(&destination.to_string())
            )));
        }
        problems.extend(wrong);
    }
    problems.iter().for_each(|problem| report(problem));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Printed(Kind::Failed)),
    }
}

/// What of a day is missing: why, and hosts.
pub(super) fn incomplete(day: &Day) -> Vec<&str> {
    let states = [
        (day.unfinished, "interrupted"),
        (day.until.is_some(), "not over"),
        (day.own_calls_only, "own calls only"),
        (day.own_processes_only, "own processes only"),
        (day.missed_events > 0, "events missed"),
    ];
    let states = states.into_iter().filter_map(|(is_so, state)| is_so.then_some(state));
    let behind = day.behind.iter().map(|behind| &behind.host).chain(&day.unheard).chain(&day.silent);
    let hosts: BTreeSet<&str> = behind.map(String::as_str).collect();
    states.chain(hosts).collect()
}

fn print(days: &[Day], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["DOMAIN", "DAY", "METRICS", "PROCESSES", "CALLS", "EVENTS", "SIZE", "EXPORTED", "INCOMPLETE"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads).spares(&["INCOMPLETE", "EXPORTED", "SIZE"]).offset(offset_now(&zone));
    for day in days {
        let rows = |table: table::Table| {
            let rows = day.file(table).map(|file| file.rows);
            Cell::figure(rows.map(|rows| rows.to_string()).unwrap_or_default())
        };
        table.row(vec![
            Cell::text(&day.domain).color(Color::Name),
            Cell::whole(day.date.to_string()),
            rows(table::Table::Metrics),
            rows(table::Table::Processes),
            rows(table::Table::Calls),
            rows(table::Table::Events),
            Cell::figure(whole_bytes(day.len_bytes())),
            Cell::time(in_table(day.exported.0, &zone, output)),
            Cell::text(incomplete(day).join(", ")).color(Color::Dim),
        ]);
    }
    table.print(output)
}
