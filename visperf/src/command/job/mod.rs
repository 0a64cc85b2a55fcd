//! `visperf job`: one job.
//!
//! Not here: lists of jobs (`jobs`).

mod show;

use crate::exit::Failure;
use clap::Subcommand;

/// Show one job: its runs, what was allocated, its events
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job show 17
  visperf job show slurm:17 --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Show(args) => show::run(args),
    }
}
