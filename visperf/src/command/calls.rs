//! `visperf calls`: jobs, transfers and requests, each joined from its events.

use crate::cli::{Between, Query};
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::call_table::{call_table, print_rows};
use crate::output::note;
use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::event::Outcome;
use wire::time::Time;

/// Print the calls (jobs, transfers, requests) of the domain, newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf calls --state running
  visperf calls --user mrossi --outcome failed --since 1h
  visperf calls --host wn01 --json | jq -r .id")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Only the call of this name
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    /// Only calls in this state
    #[arg(long, value_name = "STATE")]
    state: Option<StateWord>,
    /// Only calls of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only calls that ran on this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only the call of this job number, as the middleware prints it
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only calls that ended so: ok, failed, cancelled, timeout, node_fail, finished
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    outcome: Option<&'static str>,
    #[command(flatten)]
    between: Between,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), default_value_t = 1000)]
    limit: u64,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Ask only the sensor that is connected to, not its whole domain
    #[arg(long)]
    local: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateWord {
    Waiting,
    Running,
    Ended,
}

impl StateWord {
    fn as_str(self) -> &'static str {
        match self {
            StateWord::Waiting => "waiting",
            StateWord::Running => "running",
            StateWord::Ended => "ended",
        }
    }
}

fn outcome(word: &str) -> Result<&'static str, String> {
    Outcome::from_word(word).map(Outcome::as_str).ok_or_else(|| {
        let words: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        format!("expected one of {}", words.join(", "))
    })
}

/// Print the calls.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = Params::default()
        .with("call", args.call.clone())
        .with("state", args.state.map(StateWord::as_str))
        .with("user", args.user.clone())
        .with("host", args.host.clone())
        .with("job", args.job.clone())
        .with("outcome", args.outcome)
        .with("since", args.between.since.map(Time::secs_f64))
        .with("until", args.between.until.map(Time::secs_f64))
        .with("limit", Some(args.limit))
        .with("order", Some(if args.oldest { "oldest" } else { "newest" }));
    let method = if args.local { "sensor.calls" } else { "domain.calls" };
    let answer = query::ask(&args.query, method, params)?;
    let calls = query::items(&answer, "calls");
    let shown = calls.len() as u64;
    query::print(&args.query, calls, "no call fits", |calls, output| {
        print_rows(call_table(), calls.iter().cloned(), &TimeZone::system(), output)
    })?;
    match answer.get("total").and_then(Value::as_u64) {
        Some(total) if total > shown => {
            note(&format!("{shown} of {total} calls; --limit {total} shows more"))
        }
        Some(_) | None => {}
    }
    Ok(())
}
