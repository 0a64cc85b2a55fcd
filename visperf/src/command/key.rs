//! `visperf key`: this host's key, by which other daemons identify it.
//!
//! Not here: the state of a running daemon (`command::status`).

use crate::command::membership::{State, role_words, until};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use serde_json::json;

/// Print this host's key, and its membership if it has joined a domain
///
/// The key is generated at the first use and stored in the state folder. It identifies the daemon to other
/// daemons.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  visperf key --json | jq -r .key")]
pub(crate) struct Args {
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Print the key.
///
/// # Errors
/// If the key or the membership cannot be read.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = args.state.missing() {
        // Otherwise a mistyped folder would be created without notice.
        note(&format!("{} is not there; making it, with a new key", folder.display()));
    }
    let key = args.state.key()?.peer();
    let certificate = args.state.membership()?.map(|held| held.certificate()).transpose();
    let certificate = certificate.map_err(|refused| Failure::Failed(refused.to_string()))?;
    let mut output = Output::stdout();
    let Some(certificate) = certificate else {
        match args.json {
            true => output.json(&json!({ "key": key.to_string() }))?,
            false => output.line(&key.to_string())?,
        }
        return output.flush();
    };
    if args.json {
        output.json(&json!({
            "key": key.to_string(), "domain": certificate.domain.as_str(), "root": certificate.root.to_string(),
            "host": certificate.host.as_str(), "roles": role_words(certificate.roles),
            "priority": certificate.priority, "serial": certificate.serial.0,
            "issued": certificate.issued.secs_f64(), "expires": certificate.expires.secs_f64(),
        }))?;
        return output.flush();
    }
    let expired = match times::now() >= certificate.expires {
        true => " (expired by the clock of this host; if that is right, join again by a new token)",
        false => "",
    };
    output.line(&key.to_string())?;
    output.line(&format!("  domain   {}", certificate.domain))?;
    output.line(&format!("  root     {}", certificate.root))?;
    output.line(&format!("  host     {}", certificate.host))?;
    output.line(&format!("  roles    {}", certificate.roles))?;
    output.line(&format!("  expires  {}{expired}", until(certificate.expires)))?;
    output.flush()
}
