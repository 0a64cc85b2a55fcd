//! `visperf history`: what is stored of the past, and its export as Parquet files.
//!
//! Not here: queries of the past (`metrics`, `calls`, `processes`), the files (`history_files`).

mod days;
mod export;
pub(crate) mod exported;
mod list;
mod source;
mod status;

use crate::exit::Failure;
use clap::Subcommand;
use jiff::civil::Date;

/// Show what is stored of the past, and export it as Parquet files
///
/// An export writes each day that is over (UTC) as tables of metrics, processes, calls and events to a folder or to
/// an object store, for DuckDB, Python, Spark and other programs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf history status
  visperf history export /srv/grid-history
  visperf history export s3://grid-history/physics --since 2026-11-01
  visperf history list /srv/grid-history --verify";

#[derive(Debug, Subcommand)]
enum Action {
    Status(status::Args),
    Export(export::Args),
    List(list::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Status(args) => status::run(args),
        Action::Export(args) => export::run(args),
        Action::List(args) => list::run(args),
    }
}

/// Value parser for a day.
fn day(text: &str) -> Result<Date, String> {
    // With a time of the day it would be read too.
    let day = Some(text).filter(|text| text.len() == "2026-11-26".len()).and_then(|text| text.parse().ok());
    day.ok_or_else(|| format!("expected a day (UTC) such as 2026-11-26, found {text:?}"))
}

/// A failure of the files.
fn failed(error: history_files::Error) -> Failure {
    match error {
        history_files::Error::Place { .. }
        | history_files::Error::Keys { .. }
        | history_files::Error::Setting { .. } => Failure::Usage(error.to_string()),
        history_files::Error::Store { .. }
        | history_files::Error::Shared { .. }
        | history_files::Error::Io { .. }
        | history_files::Error::Parquet { .. }
        | history_files::Error::Different { .. }
        | history_files::Error::Table { .. }
        | history_files::Error::Record { .. } => Failure::Failed(error.to_string()),
    }
}
