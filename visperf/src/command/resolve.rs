//! `visperf resolve`: looks up the representative of a domain.
//!
//! Not here: leases and terms (`directory`).

use crate::command::domains;
use crate::command::query;
use crate::exit::Failure;
use crate::options::Query;
use ::client::typed::About;
use wire::api::directory::ResolveParams;

/// Print the address of a domain's representative, from the directory
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  visperf resolve UT-ICL --json | jq -r '\"\\(.host):\\(.port)\"'")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Name of the domain
    #[arg(value_name = "DOMAIN")]
    domain: String,
}

/// Print where the domain's representative answers.
///
/// # Errors
/// If no daemon is reached, or the directory does not know the domain (a fault).
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = ResolveParams { domain: args.domain.clone() };
    let answer = query::request(&args.query, &params, &About::default())?;
    query::print_typed(&args.query, &[answer.raw], &[answer.typed], "", domains::table)
}
