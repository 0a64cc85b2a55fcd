//! `visperf recordings record`: starts a recording, as an operator.
//!
//! Not here: triggers (the sensor's configuration has them).

use crate::command::query::request;
use crate::exit::Failure;
use crate::options::Query;
use crate::output::{note, times};
use ::client::typed::About;
use std::time::Duration;
use wire::api::Span;
use wire::api::recordings::{RecordAnswer, RecordParams};

/// Record all processes of the daemon's host, from before now to after now
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings record
  visperf recordings record --before 1m --after 5s --note 'mount hung'")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Time before now, limited by what is in memory: 60 (seconds), 5s or 1m
    #[arg(long, value_name = "SPAN", default_value = "30", value_parser = secs)]
    before: Duration,
    /// Time after now, in the same formats
    #[arg(long, value_name = "SPAN", default_value = "10", value_parser = secs)]
    after: Duration,
    /// Note to store with the recording
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Parse seconds, or a duration with a unit.
fn secs(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(secs) => Duration::try_from_secs_f64(secs).map_err(|error| error.to_string()),
        Err(_) => times::span(text),
    }
}

/// Start the recording, and print its id.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = RecordParams {
        before_s: Span(args.before),
        after_s: Span(args.after),
        note: args.note.clone().unwrap_or_default(),
    };
    let answer = request(&args.query, &params, &About::default())?;
    let mut output = args.query.width.output();
    if args.query.json {
        output.json(&answer.raw)?;
        return output.flush();
    }
    let RecordAnswer { id, ready_in_secs } = answer.typed;
    output.line(&id)?;
    output.flush()?;
    note(&format!("ready in {ready_in_secs} s: visperf recordings fetch {id} -o {id}.vpr"));
    Ok(())
}
