//! `visperf calls`: jobs, transfers and requests, each joined from its events.
//!
//! Not here: the joining (the sensor does it).

use crate::cli::{Between, OfDomain, Query, chosen, user, whole, words};
use crate::client::target::Target;
use crate::command::query::{LIMIT_MAX, Params, ask, items, note_left_out, note_unheard, print};
use crate::exit::Failure;
use crate::output::call_table::{call_table, print_rows};
use crate::output::times;
use crate::wrong_word;
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Print the calls (jobs, transfers, requests) of the domain, newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf calls --in running
  visperf calls --user mrossi --outcome failed --since 1h
  visperf calls --outcome failed --outcome timeout
  visperf calls --name 'relax-*' --in waiting
  visperf calls --host wn01 --json | jq -r .id")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Only calls in this state
    #[arg(long = "in", value_name = "STATE", value_parser = words(State::ALL.map(State::as_str)))]
    within: Option<String>,
    /// Only the call of this id, whole or as a table shortened it; * stands for any characters
    #[arg(long, value_name = "CALL", value_parser = chosen)]
    call: Option<String>,
    /// Only calls that their user named so; * stands for any characters
    #[arg(long, value_name = "NAME", value_parser = chosen)]
    name: Option<String>,
    /// Only calls of this user: a name, or the number that is shown as `uid 1000`
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only calls that ran on this host
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    /// Only the calls of this job number, as the middleware prints it, in any product; also their parts
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    /// Only calls with this outcome; may be repeated
    #[arg(long, value_name = "OUTCOME", value_parser = words(Outcome::ALL.iter().map(|outcome| outcome.as_str())))]
    outcome: Vec<String>,
    #[command(flatten)]
    between: Between,
    /// At most so many
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=LIMIT_MAX), default_value_t = 1000)]
    limit: u64,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Ask only the sensor that is connected to, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
}

/// `--state running` means a folder, and was meant for `--in running`.
fn refuse_state_of_calls(target: &Target) -> Result<(), Failure> {
    let Some(folder) = target.named_state().filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let meant = match folder.to_str().and_then(wrong_word::meant_state) {
        Some(meant) => format!("was {meant} meant?"),
        None => {
            format!("for calls in a state use --in with one of {}", State::ALL.map(State::as_str).join(", "))
        }
    };
    Err(Failure::Usage(format!(
        "--state is the folder where a daemon keeps its state, and there is no folder {}; {meant}",
        folder.display()
    )))
}

/// Print the calls.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    refuse_state_of_calls(&args.query.target)?;
    let params = Params::default()
        .of(&args.whose)
        .with("call", args.call.clone())
        .with("name", args.name.clone())
        .with("state", args.within.clone())
        .with("user", args.user.clone())
        .with("on_host", args.host.clone())
        .with("job", args.job.clone())
        .with("outcome", outcomes(&args.outcome))
        .with("since", args.between.since.map(Time::secs_f64))
        .with("until", args.between.until.map(Time::secs_f64))
        .with("limit", Some(args.limit))
        .with("order", Some(if args.oldest { "oldest" } else { "newest" }));
    let method = if args.local { "sensor.calls" } else { "domain.calls" };
    let answer = ask(&args.query, method, params)?;
    print(&args.query, items(&answer, "calls"), "no call fits", |calls, output| {
        print_rows(call_table(), calls.iter().cloned(), &TimeZone::system(), Some(times::now()), output)
    })?;
    note_left_out(&answer, "calls");
    note_unheard(&answer);
    Ok(())
}
/// One outcome as a text, which every version of a daemon takes; several as a list.
fn outcomes(all: &[String]) -> Option<Value> {
    match all {
        [] => None,
        [one] => Some(one.as_str().into()),
        several => Some(several.into()),
    }
}
