//! The `visperf` program: its command line, and the composition of the daemons.
//!
//! `main` reads the arguments, runs the command and turns its failure into an exit code; each subcommand
//! is a file of `command/`.

mod allocator;
mod client;
mod command;
mod demo;
mod exit;
mod filter_sources;
mod harmless;
mod hop;
mod host_name;
mod options;
mod output;
mod port_owner;
mod refusal;
mod serve;
mod state_folder;
mod state_owner;
mod top;
mod trial;
mod wrong_word;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let cli = match command::Cli::try_parse_from(command::control::kill::with_signals(
        std::env::args_os().collect(),
    )) {
        Ok(cli) => cli,
        Err(error) => return mistaken(&wrong_word::explained(error, &arguments), &arguments),
    };
    match command::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::report(&port_owner::explained(&message));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Exit for a wrong command line, or for a request for help; a monitoring plugin has its own code and line
/// for it.
fn mistaken(error: &clap::Error, arguments: &[String]) -> ExitCode {
    if !error.use_stderr() || arguments.first().is_none_or(|command| command != "check") {
        error.exit();
    }
    let failure = command::check::mistaken(&error.to_string());
    ExitCode::from(failure.code())
}
