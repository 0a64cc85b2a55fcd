//! `visperf calls`: jobs, transfers and requests, each joined from its events.
//!
//! Not here: the joining (the sensor does it).

use crate::cli::{Between, Query};
use crate::command::query::{Params, ask, items, print};
use crate::exit::Failure;
use crate::output::call_table::{call_table, print_rows};
use crate::output::note;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// The states of a call.
const STATES: [State; 3] = [State::Waiting, State::Running, State::Ended];
const STATE_HELP: &str = "Only calls in this state: waiting, running or ended. Anything else is the state folder of \
the daemon to ask, as in every command; both may be given";

/// Print the calls (jobs, transfers, requests) of the domain, newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf calls --state running
  visperf calls --user mrossi --outcome failed --since 1h
  visperf calls --host wn01 --json | jq -r .id")]
#[command(mut_arg("state", |state| state.value_name("STATE or DIR").help(STATE_HELP).long_help(STATE_HELP)))]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Only the call of this name
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
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

/// Take the word for a call's state, if there is one, out of the values of `--state`.
fn take_state(values: &mut Vec<PathBuf>) -> Option<&'static str> {
    let word = |value: &Path| STATES.iter().map(|state| state.as_str()).find(|word| value == Path::new(word));
    let state = values.iter().find_map(|value| word(value));
    values.retain(|value| word(value).is_none());
    state
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
    let mut query = args.query.clone();
    let state = take_state(&mut query.target.state);
    let params = Params::default()
        .with("call", args.call.clone())
        .with("state", state)
        .with("user", args.user.clone())
        .with("host", args.host.clone())
        .with("job", args.job.clone())
        .with("outcome", args.outcome)
        .with("since", args.between.since.map(Time::secs_f64))
        .with("until", args.between.until.map(Time::secs_f64))
        .with("limit", Some(args.limit))
        .with("order", Some(if args.oldest { "oldest" } else { "newest" }));
    let method = if args.local { "sensor.calls" } else { "domain.calls" };
    let answer = ask(&query, method, params)?;
    let calls = items(&answer, "calls");
    let shown = calls.len() as u64;
    print(&query, calls, "no call fits", |calls, output| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_calls_is_told_from_a_folder() {
        let check = |given: &[&str], state: Option<&str>, folders: &[&str]| {
            let mut values: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
            assert_eq!(take_state(&mut values), state, "{given:?}");
            assert_eq!(values, folders.iter().map(PathBuf::from).collect::<Vec<_>>(), "{given:?}");
        };
        check(&["running"], Some("running"), &[]);
        check(&["/s", "ended"], Some("ended"), &["/s"]);
        check(&["./running"], None, &["./running"]);
        check(&[], None, &[]);
    }
}
