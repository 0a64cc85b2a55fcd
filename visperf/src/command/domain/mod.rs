//! `visperf domain`: creates a domain on this host, and manages its members.
//!
//! Not here: tokens (`command::token`), joining (`command::join`), the domains of a directory
//! (`command::domains`).

mod certify;
mod confirm_clock;
mod create;
mod members;
mod revoke;

use crate::exit::Failure;
use clap::Subcommand;

/// Create a domain, list, revoke and certify its members
///
/// A domain is a named set of hosts. The host on which it is created is its issuer: it admits other hosts by
/// tokens (`visperf token create`) while its daemon runs, and renews their certificates.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf domain create UT-ICL
  visperf token create
  visperf domain members
  visperf domain revoke wn07";

#[derive(Debug, Subcommand)]
enum Action {
    Create(create::Args),
    Members(members::Args),
    Revoke(revoke::Args),
    Certify(certify::Args),
    ConfirmClock(confirm_clock::Args),
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Create(args) => create::run(args),
        Action::Members(args) => members::run(args),
        Action::Revoke(args) => revoke::run(args),
        Action::Certify(args) => certify::run(args),
        Action::ConfirmClock(args) => confirm_clock::run(args),
    }
}
