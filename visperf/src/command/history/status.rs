//! `visperf history status`: how far the stored past of a domain reaches, and what of it is exported.
//!
//! Not here: the export (`export`).

use super::days::{Reach, Walk};
use super::export::has_more;
use super::exported::place;
use super::failed;
use super::source::Source;
use crate::exit::Failure;
use crate::options::{OfDomain, Query};
use crate::output::table::{Cell, Table};
use crate::output::times::{self, in_table, offset_now, shown};
use crate::output::{Color, Output, note, report};
use history_files::Error;
use history_files::destination::Destination;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::json;
use wire::shown::count;

/// Print how far the stored past reaches, and what of it is exported
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf history status
  visperf history status /srv/grid-history")]
pub(super) struct Args {
    /// Place of an export, to compare with: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE", value_parser = place)]
    place: Option<String>,
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
}

/// Days that are stored and over, and those of them that are not exported.
struct Exported {
    days: Vec<Date>,
    missing: Vec<Date>,
}

/// Print the state.
///
/// # Errors
/// If no daemon is reached, or the place cannot be read.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut source = Source::new(&args.query.target, &args.whose)?;
    let reach = source.reach()?;
    let exported = args.place.as_deref().map(|place| compare(place, &mut source, &reach)).transpose()?;
    let mut output = args.query.width.output();
    if args.query.json {
        output.json(&json(&source.domain, &reach, exported.as_ref()))?;
        return output.flush();
    }
    print(&reach, &mut output)?;
    output.flush()?;
    let zone = TimeZone::system();
    for (host, until) in &reach.behind {
        note(&format!("metrics of {host} are copied until {}", shown(until.0, &zone)));
    }
    for host in &reach.unheard {
        note(&format!("{host} has not reported to this representative: events of it may be missing"));
    }
    if let (Some(Exported { days, missing }), Some(place)) = (exported, &args.place) {
        let (no_day, days) = (days.is_empty(), count(days.len() as u64, "day"));
        note(&match missing.as_slice() {
            [] if no_day => "no day is over yet".to_owned(),
            [] => format!("all that is over, {days}, is exported to {place}"),
            [first, ..] => format!(
                "of {days} that are over, {} not exported to {place}, from {first} on",
                match missing.len() {
                    1 => "1 is".to_owned(),
                    more => format!("{more} are"),
                }
            ),
        });
    }
    Ok(())
}

fn compare(place: &str, source: &mut Source, reach: &Reach) -> Result<Exported, Failure> {
    let destination = Destination::open(place, false).map_err(failed)?;
    let days = source.days(reach, &Walk { since: None, until: None, open: false, now: times::now() })?;
    destination.dates().map_err(failed)?;
    let (mut missing, mut own_calls_only) = (Vec::new(), 0);
    for date in &days {
        let is_there = match destination.day(&source.domain, *date) {
            Ok(known) => {
                own_calls_only += u64::from(known.as_ref().is_some_and(|known| known.own_calls_only));
                known.is_some_and(|known| !has_more(&known, reach))
            }
            Err(error @ Error::Record { .. }) => {
                report(&error.to_string());
                false
            }
            Err(error) => return Err(failed(error)),
        };
        if !is_there {
            missing.push(*date);
        }
    }
    if own_calls_only > 0 {
        note(&format!("of {} only calls of the user who exported are there", count(own_calls_only, "day")));
    }
    Ok(Exported { days, missing })
}

fn print(reach: &Reach, output: &mut Output) -> Result<(), Failure> {
    let zone = TimeZone::system();
    let mut table = Table::new(&["STORED", "SINCE"]).offset(offset_now(&zone));
    let tiers = reach.tiers.iter().map(|tier| (format!("metrics, {}", tier.tier), tier.time));
    let calls = reach.calls.map(|time| ("calls".to_owned(), time));
    let events = reach.events.map(|time| ("events".to_owned(), time));
    let processes = reach.processes.map(|time| ("processes".to_owned(), time));
    for (name, time) in tiers.chain(processes).chain(calls).chain(events) {
        let time = Cell::time(in_table(time.0, &zone, output));
        table.row(vec![Cell::whole(name).color(Color::Name), time]);
    }
    table.print(output)
}

fn json(domain: &str, reach: &Reach, exported: Option<&Exported>) -> serde_json::Value {
    let mut answer = json!({
        "domain": domain,
        "tiers": reach.tiers,
        "processes_since": reach.processes,
        "calls_since": reach.calls,
        "events_since": reach.events,
        "behind": reach.behind,
    });
    if let Some(Exported { days, missing }) = exported {
        answer["days"] = json!(days);
        answer["missing"] = json!(missing);
    }
    answer
}
