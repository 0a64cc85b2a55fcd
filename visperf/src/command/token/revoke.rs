//! `visperf token revoke`: revokes a token before it expires.
//!
//! Not here: revoking the hosts that it admitted (`visperf domain revoke`).

use crate::command::membership::{self, State};
use crate::exit::Failure;
use crate::output::{Output, times};
use serde_json::json;

/// Revoke a token: no further host can join with it
///
/// Hosts that have joined with it remain members; `visperf domain revoke` removes them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf token revoke 3f2a90b1c4de")]
pub(crate) struct Args {
    /// Id of the token, as printed by `visperf token list`
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Revoke the token.
///
/// # Errors
/// If no domain was created here, or there is no such token.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let files = args.state.domain_files()?;
    let id = args.id.to_ascii_lowercase();
    if !files.revoke_token(&id, times::now()).map_err(membership::failure)? {
        return Err(Failure::Failed(format!(
            "there is no token {:?}; expected an id of 12 digits and letters a to f, as `{}` prints it",
            args.id,
            args.state.with("visperf token list")
        )));
    }
    let mut output = Output::stdout();
    match args.json {
        true => output.json(&json!({ "id": id, "state": "revoked" }))?,
        false => output.line(&format!("revoked token {id}; hosts that it let in stay members"))?,
    }
    output.flush()
}
