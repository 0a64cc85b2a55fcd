//! `visperf account pass`: a pass that authenticates to a proxy by this host's certificate instead of an
//! account.
//!
//! Not here: how the proxy verifies it (`overlay::identity::admission`).

use crate::command::membership::{State, until};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use overlay::identity::proxy_ticket;
use serde_json::json;
use std::time::Duration;
use wire::id::PeerKey;

/// Print a ticket with which programs of this host query a proxy without an account
///
/// This host must be a member of a domain; the ticket gives access to that domain. Send it as `Authorization:
/// Bearer TICKET`. Anyone who has it can use it until it expires: treat it as a password.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:
  curl -H \"Authorization: Bearer $(visperf account pass 12D3KooW...)\" \\
      --cacert certificate.pem \\
      https://proxy.example:7321/d/UT-ICL/api/v1/domain.hosts")]
pub(super) struct Args {
    /// Key of the proxy, as it prints it at its start
    #[arg(value_name = "KEY")]
    proxy: PeerKey,
    /// Validity, such as 30m; at most 12h
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = times::span)]
    life: Duration,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Print the pass.
///
/// # Errors
/// If this host has not joined a domain, or the requested lifetime is too long.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let held = args.state.membership()?.ok_or_else(|| {
        let join = args.state.with("visperf join TOKEN");
        Failure::Failed(format!(
            "this host has joined no domain, so it has nothing to show; type `{join}` first"
        ))
    })?;
    let now = times::now();
    let made = proxy_ticket::make(&args.state.key()?, &held.chain, args.proxy, now, args.life);
    let made = made.map_err(|refused| Failure::Usage(format!("--life: {refused}")))?;
    let expires = now.plus(args.life);
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({ "pass": made, "expires": expires.secs_f64() }))?;
        return output.flush();
    }
    note(&format!("for the proxy {} alone, until {}", args.proxy, until(expires)));
    output.line(&made)?;
    output.flush()
}
