//! `visperf recordings list`: the recordings of a host, newest first.
//!
//! Not here: the samples in them (`export`).

use crate::client::items;
use crate::command::query::{print_typed, request};
use crate::exit::Failure;
use crate::options::{Place, Query};
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use wire::api::recordings::{Recording, RecordingsParams};
use wire::shown::whole_bytes;

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

/// Print the recordings.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = request(&args.query, &RecordingsParams {}, &args.place.about())?;
    let recordings = &answer.typed.recordings;
    print_typed(&args.query, &items(&answer.raw, "recordings"), recordings, "no recordings", table)?;
    if args.query.json {
        return Ok(());
    }
    if !answer.typed.on {
        note("the flight recorder is off; on = true in [sensor.recorder] turns it on");
    }
    let triggers = &answer.typed.triggers;
    let suppressed: u64 = triggers.iter().map(|trigger| trigger.suppressed).fold(0, u64::saturating_add);
    if suppressed > 0 {
        note(&format!("{suppressed} events fitted a trigger while it was quiet (cool_down_s)"));
    }
    let refused: u64 = triggers.iter().map(|trigger| trigger.refused).fold(0, u64::saturating_add);
    if refused > 0 {
        note(&format!("{refused} times a trigger matched and no recording could be started"));
    }
    if let Some(trouble) = &answer.typed.trouble {
        note(trouble);
    }
    Ok(())
}

fn table(recordings: &[Recording], output: &mut Output) -> Result<(), Failure> {
    let heads = ["ID", "STATE", "TIME", "WINDOW", "SIZE", "TRIGGER", "NOTE"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads).spares(&["SIZE", "WINDOW", "NOTE"]).offset(offset_now(&zone));
    for recording in recordings {
        let window = recording.to.0.secs_f64() - recording.from.0.secs_f64();
        let trigger = match recording.trigger.as_str() {
            "" => "(ordered)",
            trigger => trigger,
        };
        table.row(vec![
            Cell::whole(&recording.id).color(Color::Name),
            Cell::whole(recording.state.as_str()).color(Color::Dim),
            Cell::time(in_table(recording.time.0, &zone, output)),
            Cell::figure(format!("{window:.1} s")),
            Cell::figure(whole_bytes(recording.size_bytes)),
            Cell::text(trigger),
            Cell::text(&recording.note),
        ]);
    }
    table.print(output)
}
