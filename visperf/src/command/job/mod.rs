//! `visperf job`: one job, and sums of many.
//!
//! Not here: lists of jobs (`jobs`).

mod report;
mod show;

use crate::exit::Failure;
use clap::Subcommand;

/// Show one job, or sum up many
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job show 17
  visperf job show slurm:17 --json
  visperf job report --by queue --since 7d")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Args),
    Report(report::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Show(args) => show::run(args),
        Action::Report(args) => report::run(args),
    }
}
