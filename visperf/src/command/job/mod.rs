//! `visperf job`: one job, what it used over time, and sums of many.
//!
//! Not here: lists of jobs (`jobs`).

mod curves;
mod report;
mod series;
mod show;

use crate::exit::Failure;
use clap::Subcommand;

/// Show one job and what it used over time, or sum up many
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job show 17
  visperf job show slurm:17 --json
  visperf job series 17 --step 10s --csv
  visperf job report --by queue --since 7d")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Args),
    Series(series::Args),
    Report(report::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Show(args) => show::run(args),
        Action::Series(args) => series::run(args),
        Action::Report(args) => report::run(args),
    }
}
