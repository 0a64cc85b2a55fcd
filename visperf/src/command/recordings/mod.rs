//! `visperf recordings`: the flight recorder's recordings of all processes around an event.
//!
//! Not here: the recorder (the sensor has it), the file format (`wire::recording`).

mod cut;
mod export;
mod fetch;
mod file;
mod list;
mod record;

use crate::exit::Failure;
use clap::Subcommand;

/// List, create, fetch, cut and export recordings of all processes
///
/// Every sensor keeps the last minute of all processes in memory. A trigger in its configuration, or a
/// request, stores the time before and after it as a recording.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf recordings list
  visperf recordings record --before 30 --after 10 --note 'slow again'
  visperf recordings fetch 20261120T122417Z -o slow.vpr
  visperf recordings cut slow.vpr --from=-5s --to=+2s -o short.vpr
  visperf recordings export short.vpr csv > short.csv";

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Args),
    Record(record::Args),
    Fetch(fetch::Args),
    Cut(cut::Args),
    Export(export::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::List(args) => list::run(args),
        Action::Record(args) => record::run(args),
        Action::Fetch(args) => fetch::run(args),
        Action::Cut(args) => cut::run(args),
        Action::Export(args) => export::run(args),
    }
}
