//! `visperf recordings record`: an operator's order to record.
//!
//! Not here: triggers (the sensor's configuration has them).

use crate::cli::Query;
use crate::command::query::{Params, ask};
use crate::exit::Failure;
use crate::output::figures::{number_of, text_of};
use crate::output::{note, times};

/// Record all processes of the daemon's host, from before now to after now
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings record
  visperf recordings record --before 1m --after 5s --note 'mount hung'")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Time before now, as far as memory reaches back: 60 (seconds), 5s or 1m
    #[arg(long, value_name = "SPAN", default_value = "30", value_parser = secs)]
    before: f64,
    /// Time after now, in the same forms
    #[arg(long, value_name = "SPAN", default_value = "10", value_parser = secs)]
    after: f64,
    /// Why, to be found again by it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Seconds, or a span with its unit.
fn secs(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(secs) if secs.is_finite() => Ok(secs),
        _ => times::span(text).map(|span| span.as_secs_f64()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_seconds_or_has_a_unit() {
        for (text, expected) in [("5", 5.0), ("0.5", 0.5), ("5s", 5.0), ("1m", 60.0), ("1m30s", 90.0)] {
            assert_eq!(secs(text), Ok(expected), "{text}");
        }
        assert!(secs("5 apples").is_err() && secs("").is_err() && secs("inf").is_err());
    }
}
