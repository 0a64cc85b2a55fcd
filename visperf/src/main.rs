//! The `visperf` program: its command line, and the composition of the daemons.
//!
//! `main` reads the arguments, runs the command and turns its failure into an exit code; each subcommand
//! is a file of `command/`.

mod cli;
mod client;
mod command;
mod demo;
mod exit;
mod filter_sources;
mod output;
mod refusal;
mod serve;
mod state_folder;
mod trial;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match command::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::note(&message);
            }
            ExitCode::from(failure.code())
        }
    }
}
