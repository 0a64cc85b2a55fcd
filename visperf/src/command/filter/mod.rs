//! `visperf filter`: lists, shows, tests, tries and creates log filters, without a daemon.
//!
//! Not here: the filters of a running sensor (`command::filters`).

mod begin;
mod list;
mod show;
mod test;
mod try_logs;

use crate::exit::Failure;
use crate::filter_sources::FilterFolders;
use clap::Subcommand;

/// List, show, test, try and write log filters (no daemon needed)
///
/// A log filter is a TOML file that defines the meaning of the lines of a log. visperf includes filters for
/// common middleware; your own are read from ~/.config/visperf/filters, /etc/visperf/filters and --filters.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FilterFolders,
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf filter list
  visperf filter try /var/log/slurm/slurmctld.log
  visperf filter new myapp /var/log/myapp.log > myapp.toml
  visperf filter try --filter myapp.toml /var/log/myapp.log
  visperf filter test myapp.toml";

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Args),
    Show(show::Args),
    Test(test::Args),
    Try(try_logs::Args),
    New(begin::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    match args.action {
        Action::List(list) => list::run(&list, &args.folders),
        Action::Show(show) => show::run(&show, &args.folders),
        Action::Test(test) => test::run(&test, &args.folders),
        Action::Try(logs) => try_logs::run(&logs, &args.folders),
        Action::New(new) => begin::run(&new),
    }
}
