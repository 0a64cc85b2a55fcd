//! The subcommands, a file each.
//!
//! Each has an `Args` (its options) and a `run`; the order here is the order of `--help`.

mod completions;
mod config;
mod filter;

use crate::exit::Failure;
use clap::Subcommand;

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Filter(filter::Args),
    Config(config::Args),
    Completions(completions::Args),
}

/// Run a subcommand.
///
/// # Errors
/// Why it did not do what it was asked; tells the exit code.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Filter(args) => filter::run(args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
