//! The subcommands, one file each.
//!
//! Each has an `Args` (its options) and a `run`; the order here is the order of `--help`.

mod account;
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
mod hosts;
mod interrupt;
mod join;
mod key;
mod membership;
mod metrics;
mod modules;
mod own_addresses;
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

use crate::exit::Failure;
use clap::Subcommand;

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
    Metrics(metrics::Args),
    Processes(processes::Args),
    Recordings(recordings::Args),
    Modules(modules::Args),
    Watch(watch::Args),
    Top(top::Args),
    Kill(control::kill::Args),
    Renice(control::renice::Args),
    Hosts(hosts::Args),
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
        Command::Metrics(args) => metrics::run(&args),
        Command::Processes(args) => processes::run(&args),
        Command::Recordings(args) => recordings::run(&args),
        Command::Modules(args) => modules::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Kill(args) => control::kill::run(&args),
        Command::Renice(args) => control::renice::run(&args),
        Command::Hosts(args) => hosts::run(&args),
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
