//! The subcommands, one file or folder each.
//!
//! [`Cli`] is the whole command line. Each has an `Args` (its options) and a `run`; the order here is the order of `--help`.

mod account;
mod archive;
mod at_once;
mod call;
mod call_follow;
mod call_names;
mod calls;
pub(crate) mod check;
mod completions;
mod config;
pub(crate) mod control;
pub(crate) mod daemons;
mod directory;
mod domain;
mod domains;
mod events;
mod files;
mod filter;
mod filters;
#[cfg(feature = "export")]
mod history;
mod hosts;
mod interrupt;
mod job;
mod jobs;
mod join;
mod key;
mod known_jobs;
mod membership;
mod metrics;
mod modules;
mod own_addresses;
mod pages;
mod processes;
mod proxy;
pub(crate) mod query;
mod recordings;
mod resolve;
mod sensor;
mod status;
mod summary;
mod token;
mod top;
mod tunnel;
mod up;
mod watch;

use crate::exit::{self, Failure};
use clap::{Parser, Subcommand};

const ABOUT: &str = "See what a grid is doing: events from the logs of unmodified middleware, and host load";

const LONG_ABOUT: &str = "\
visperf reads the logs of grid middleware (Slurm, HTCondor, Grid Engine, Torque, GridFTP ...) as they are \
written, turns their lines into events (job submitted, started, ended ...), joins the events of each job or \
transfer to a call, samples the load of the host, and answers questions about all of it.

To look around:
  visperf filter try /var/log/slurm/slurmctld.log   what is in a log, without any daemon
  visperf up                                        watch this machine, no configuration needed
  visperf events --follow                           the events as they come";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "visperf", version, about = ABOUT, long_about = LONG_ABOUT, after_long_help = exit::HELP)]
#[command(after_help = "More: visperf help COMMAND, visperf COMMAND --help", disable_help_subcommand = false)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(up::Args),
    Sensor(sensor::Args),
    Directory(directory::Args),
    Proxy(proxy::Args),
    Tunnel(tunnel::Args),
    Account(account::Args),
    Domain(domain::Args),
    Token(token::Args),
    Join(join::Args),
    Key(key::Args),
    Filter(filter::Args),
    Events(events::Args),
    Calls(calls::Args),
    Jobs(Box<jobs::Args>),
    Job(job::Args),
    Metrics(metrics::Args),
    Processes(processes::Args),
    Recordings(recordings::Args),
    #[cfg(feature = "export")]
    History(history::Args),
    Modules(modules::Args),
    Watch(watch::Args),
    Top(top::Args),
    Kill(control::kill::Args),
    Renice(control::renice::Args),
    Hosts(hosts::Args),
    Archive(archive::Args),
    Check(check::Args),
    Summary(summary::Args),
    Domains(domains::Args),
    Resolve(resolve::Args),
    Files(files::Args),
    Filters(filters::Args),
    #[command(name = "info")]
    Status(status::Args),
    Call(call::Args),
    Config(config::Args),
    Completions(completions::Args),
}

/// Run a subcommand.
///
/// # Errors
/// The failure of the subcommand, with its exit code.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Sensor(args) => sensor::run(&args),
        Command::Directory(args) => directory::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Tunnel(args) => tunnel::run(&args),
        Command::Account(args) => account::run(&args),
        Command::Domain(args) => domain::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Join(args) => join::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Filter(args) => filter::run(args),
        Command::Events(args) => events::run(&args),
        Command::Calls(args) => calls::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Job(args) => job::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Processes(args) => processes::run(&args),
        Command::Recordings(args) => recordings::run(&args),
        #[cfg(feature = "export")]
        Command::History(args) => history::run(&args),
        Command::Modules(args) => modules::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Kill(args) => control::kill::run(&args),
        Command::Renice(args) => control::renice::run(&args),
        Command::Hosts(args) => hosts::run(&args),
        Command::Archive(args) => archive::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Summary(args) => summary::run(&args),
        Command::Domains(args) => domains::run(&args),
        Command::Resolve(args) => resolve::run(&args),
        Command::Files(args) => files::run(&args),
        Command::Filters(args) => filters::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn examples_stay_whole_on_a_narrow_terminal() {
        fn check(command: &clap::Command) -> usize {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            usize::from(!help.is_empty()) + command.get_subcommands().map(check).sum::<usize>()
        }
        assert!(check(&Cli::command()) > 10);
    }
}
