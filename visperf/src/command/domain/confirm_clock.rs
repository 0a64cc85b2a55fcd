//! `visperf domain confirm-clock`: the operator confirms that the clock of the issuer's host is right.
//!
//! Not here: when that is needed (`overlay::identity::issuer_clock`).

use crate::command::membership::{self, State};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use overlay::clock;
use serde_json::json;

/// Confirm that the clock of this host is correct, so that its issuer signs again
///
/// An issuer signs nothing while its clock differs by more than an hour from those of most members, from the
/// time that its host ran since the clock was correct, or from what it signed. Compare the clock with a
/// correct one before you confirm: certificates signed with a wrong clock are useless. The confirmation is
/// valid for a day, until the clock is set, or until the host is restarted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  date --utc
  visperf domain confirm-clock")]
pub(crate) struct Args {
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Confirm the clock.
///
/// # Errors
/// If no domain was created here, or its files cannot be read or written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (files, now) = (args.state.domain_files()?, times::now());
    files.confirm_clock(now, clock::now()).map_err(membership::failure)?;
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({ "time": now.secs_f64() }))?;
        return output.flush();
    }
    output.line(&format!("it is {}; the issuer signs by this clock for a day", membership::until(now)))?;
    output.flush()?;
    note("if that is not the time, set the clock at once: what is signed meanwhile is of no use");
    Ok(())
}
