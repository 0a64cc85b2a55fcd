//! `visperf calls`: jobs, transfers and requests, each joined from its events.
//!
//! Not here: the joining (the sensor does it).

#[cfg(feature = "export")]
mod exported;

use crate::client::target::Target;
use crate::client::{Client, PATIENCE};
use crate::command::call_names;
use crate::command::pages::Pages;
use crate::command::query::{note_missing, print_typed};
use crate::exit::Failure;
use crate::options::{Between, OfDomain, Query, chosen, user, whole, words};
use crate::output::call_table::{call_table, print_rows};
use crate::output::{note, times};
use crate::wrong_word;
use ::client::typed::Answered;
use clap::builder::TypedValueParser;
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::api::Request;
use wire::api::UnixTime;
use wire::api::calls::{Call, CallOrder, Calls, CallsParams, DomainCallsParams, SensorCallsParams};
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Print the calls (jobs, transfers, requests) of the domain, newest first
///
/// The time of a call, by which --since and --until choose and calls are sorted, is the latest that is known of it: its
/// end, if it has ended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf calls --in running
  visperf calls --user mrossi --outcome failed --since 1h
  visperf calls --outcome failed --outcome timeout
  visperf calls --limit 50000 --json
  visperf calls --name 'relax-*' --in waiting
  visperf calls --user mrossi --since 90d --from /srv/grid-history
  visperf calls --host wn01 --json | jq -r .id")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Only calls in this state
    #[arg(long = "in", value_name = "STATE", value_parser = states())]
    within: Option<State>,
    /// Only the call with this id, complete or as shortened in a table; * matches any characters
    #[arg(long, value_name = "CALL", value_parser = chosen)]
    call: Option<String>,
    /// Only calls to which their user gave this name; * matches any characters
    #[arg(long, value_name = "NAME", value_parser = chosen)]
    name: Option<String>,
    /// Only calls of this user: a name, or the number printed as `uid 1000`
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only calls that ran on this host
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    /// Only calls with this job number, as the middleware prints it, of any product, and their parts; slurm:17 for
    /// the call of one product
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    /// Only calls with this outcome; may be repeated
    #[arg(long, value_name = "OUTCOME", value_parser = outcomes())]
    outcome: Vec<Outcome>,
    #[command(flatten)]
    between: Between,
    /// Maximum number of calls; several pages are requested from the daemon if needed
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u64::MAX), default_value_t = 1000)]
    limit: u64,
    /// Continue after an earlier page: the cursor in its note, with the same other options
    #[arg(long, value_name = "CURSOR", value_parser = chosen)]
    cursor: Option<String>,
    /// Print the oldest calls first
    #[arg(long)]
    oldest: bool,
    /// Query only the connected sensor, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
    /// Read days that were exported to this place (visperf history export) instead of asking a daemon
    #[cfg(feature = "export")]
    #[arg(long, value_name = "PLACE", value_parser = crate::command::history::exported::place, conflicts_with_all = ["local", "cursor"])]
    from: Option<String>,
}

pub(crate) fn states() -> impl TypedValueParser<Value = State> {
    let words = words(State::ALL.map(State::as_str));
    words
        .try_map(|word| State::ALL.into_iter().find(|state| state.as_str() == word).ok_or("expected a state"))
}

pub(crate) fn outcomes() -> impl TypedValueParser<Value = Outcome> {
    let words = words(Outcome::ALL.iter().map(|outcome| outcome.as_str()));
    words.try_map(|word| Outcome::from_word(&word).ok_or("expected an outcome"))
}

/// Refuse `--state running`, which names a folder, with a hint to `--in running`.
pub(crate) fn refuse_state_of_calls(command: &str, target: &Target) -> Result<(), Failure> {
    let Some(folder) = target.named_state().filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let meant = match folder.to_str().and_then(|word| wrong_word::meant_state(command, word)) {
        Some(meant) => format!("was {meant} meant?"),
        None => {
            format!(
                "for {command} in a state use --in with one of {}",
                State::ALL.map(State::as_str).join(", ")
            )
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
    refuse_state_of_calls("calls", &args.query.target)?;
    #[cfg(feature = "export")]
    if let Some(place) = &args.from {
        let exported::Found { calls, exported } = exported::read(place, args)?;
        print(args, calls)?;
        return exported.finish();
    }
    let mut client = Client::new(&args.query.target);
    let ask = |cursor, limit| ask(&mut client, args, params(args, cursor, limit));
    let pages = Pages::read(args.cursor.clone(), args.limit, ask)?;
    if let (true, Some(call)) = (pages.items.is_empty(), &params(args, None, 1).call) {
        call_names::check(&args.query, &args.whose, args.local, call)?;
    }
    let left_out = pages.left_out();
    let Pages { items: calls, last, .. } = pages;
    print(args, calls)?;
    if let Some(text) = left_out {
        note(&text);
    }
    note_missing(&last.unheard);
    note_end_of_past(args.between.since, last.stored_since);
    if last.stored_own_only && args.between.since.is_some() {
        note("older calls of other users are listed to root and operators only");
    }
    Ok(())
}

/// Print calls, each with its JSON.
fn print(args: &Args, calls: Vec<(Call, Value)>) -> Result<(), Failure> {
    let (calls, raw): (Vec<Call>, Vec<Value>) = calls.into_iter().unzip();
    print_typed(&args.query, &raw, &calls, "no call fits", |calls, output| {
        let zone = TimeZone::system();
        print_rows(call_table(&zone), calls.iter().cloned(), &zone, Some(times::now()), output)
    })
}

fn ask(client: &mut Client, args: &Args, params: CallsParams) -> Result<Answered<Calls>, Failure> {
    let about = args.whose.about();
    let (method, answer) = match args.local {
        true => (SensorCallsParams::METHOD, client.request(&SensorCallsParams(params), &about, PATIENCE)),
        false => (DomainCallsParams::METHOD, client.request(&DomainCallsParams(params), &about, PATIENCE)),
    };
    answer.map_err(|error| client.explain(method, error))
}

fn params(args: &Args, cursor: Option<String>, limit: u64) -> CallsParams {
    let (call, job) = call_or_number(args.call.as_ref(), args.job.as_ref());
    CallsParams {
        call,
        name: args.name.clone(),
        job,
        user: args.user.clone(),
        account: None,
        queue: None,
        jobs_only: false,
        on_host: args.host.clone(),
        state: args.within,
        outcome: args.outcome.clone(),
        since: args.between.since.map(UnixTime),
        until: args.between.until.map(UnixTime),
        limit,
        order: if args.oldest { CallOrder::Oldest } else { CallOrder::Newest },
        cursor,
    }
}

/// Returns the call and the job number to choose by: a number with its product, as in the table of processes, is the
/// id of a call. Other job numbers may have a colon too, as that of a URL.
pub(crate) fn call_or_number(
    call: Option<&String>,
    job: Option<&String>,
) -> (Option<String>, Option<String>) {
    let is_call = job.and_then(|job| job.split_once(':')).is_some_and(|(product, number)| {
        product.starts_with(|char: char| char.is_ascii_alphabetic())
            && number.starts_with(|char: char| char.is_ascii_digit())
    });
    match (call, job) {
        (None, Some(job)) if is_call => (Some(job.clone()), None),
        (call, job) => (call.cloned(), job.cloned()),
    }
}

/// Note on a period that begins before the oldest stored call.
pub(crate) fn note_end_of_past(since: Option<Time>, oldest: Option<UnixTime>) {
    if let (Some(since), Some(UnixTime(oldest))) = (since, oldest)
        && since < oldest
    {
        note(&format!("the oldest stored call is of {}", times::to_second(oldest, &TimeZone::system())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_its_product_is_a_call_and_other_numbers_with_colons_are_not() {
        for (job, is_call) in
            [("slurm:17", true), ("17", false), ("https://gk.site/1/", false), ("1:2", false)]
        {
            let job = job.to_owned();
            let (call, number) = call_or_number(None, Some(&job));
            assert_eq!((call.is_some(), number.is_none()), (is_call, is_call), "{job}");
        }
    }
}
