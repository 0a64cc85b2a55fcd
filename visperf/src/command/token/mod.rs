//! `visperf token`: the tokens that admit other hosts to the domain that was created here.
//!
//! Not here: using a token (`command::join`).

mod create;
mod list;
mod revoke;

use crate::exit::Failure;
use clap::Subcommand;

/// Create, list and revoke tokens, with which other hosts join the domain
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf token create
  visperf token create --uses 20 --ttl 1h
  visperf token create --role viewer
  visperf token create --replace 'wn[0-9]*'
  visperf token list
  visperf token revoke 3f2a90b1c4de";

#[derive(Debug, Subcommand)]
enum Action {
    Create(create::Args),
    List(list::Args),
    Revoke(revoke::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Create(args) => create::run(args),
        Action::List(args) => list::run(args),
        Action::Revoke(args) => revoke::run(args),
    }
}
