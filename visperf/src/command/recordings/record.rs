//! `visperf recordings record`: an operator's order to record.
//!
//! Not here: triggers (the sensor's configuration has them).

use crate::cli::Query;
use crate::command::query::{Params, ask};
use crate::exit::Failure;
use crate::output::figures::{number_of, text_of};
use crate::output::note;

/// Record all processes of the daemon's host, from before now to after now
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings record
  visperf recordings record --before 60 --after 0 --note 'mount hung'")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Seconds before now, as far as memory reaches back
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    before: f64,
    /// Seconds after now
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    after: f64,
    /// Why, to be found again by it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Order it, and print its id.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = Params::default()
        .with("before_s", Some(args.before))
        .with("after_s", Some(args.after))
        .with("note", args.note.clone());
    let answer = ask(&args.query, "sensor.record", params)?;
    let mut output = args.query.width.output();
    if args.query.json {
        output.json(&answer)?;
        return output.flush();
    }
    let id = text_of(&answer, "id");
    output.line(id)?;
    output.flush()?;
    let ready = number_of(&answer, "ready_in").unwrap_or(0.0);
    note(&format!("ready in {ready} s: visperf recordings fetch {id} -o {id}.vpr"));
    Ok(())
}
