//! `visperf calls --from PLACE`: calls of exported days, without a daemon.
//!
//! Not here: the files (`history_files`).

use super::{Args, params};
use crate::command::history::exported::Exported;
use crate::exit::Failure;
use crate::output::as_answered;
use history_files::day::Day;
use history_files::table::Table;
use serde_json::Value;
use wire::api::calls::{Call, CallsParams};
use wire::call::{self, State};
use wire::name_match;

/// What was read.
pub(super) struct Found {
    /// The calls, each with its JSON.
    pub(super) calls: Vec<(Call, Value)>,
    /// What a user should know of them.
    pub(super) notes: Vec<String>,
}

/// Reads the calls of a place, as many as are asked for.
///
/// # Errors
/// If the place or a file cannot be read, or calls are asked for that have not ended.
pub(super) fn read(place: &str, args: &Args) -> Result<Found, Failure> {
    if args.within.is_some_and(|state| state != State::Ended) {
        return Err(Failure::Usage("--in: exported calls have ended; leave the option out".to_owned()));
    }
    let mut exported = Exported::open(place, args.whose.domain.as_deref())?;
    exported.leave(args.between.since, args.between.until);
    let params = params(args, None, args.limit);
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let (mut calls, mut is_more) = (Vec::new(), false);
    let days = exported.days.iter();
    let days: Vec<&Day> = if args.oldest { days.collect() } else { days.rev().collect() };
    let bar = exported.bar();
    for file in days.iter().filter_map(|day| day.file(Table::Calls)) {
        if calls.len() > limit {
            break;
        }
        let before = calls.len();
        let read = exported.destination.calls(file, &mut |call| {
            if fits(&call, &params) {
                calls.push(call);
            }
        });
        read.map_err(|error| Failure::Failed(error.to_string()))?;
        calls[before..].sort_by(|a, b| (a.latest(), &a.id).cmp(&(b.latest(), &b.id)));
        if !args.oldest {
            calls[before..].reverse();
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if calls.len() > limit {
        calls.truncate(limit);
        is_more = true;
    }
    let answered = |call: &call::Call| {
        let call = Call::from(call);
        Ok((call.clone(), as_answered(&call)?))
    };
    Ok(Found {
        calls: calls.iter().map(answered).collect::<Result<_, Failure>>()?,
        notes: notes(&exported, args, is_more),
    })
}

fn fits(call: &call::Call, params: &CallsParams) -> bool {
    params.fit(call)
        && params.call.as_ref().is_none_or(|id| name_match::matches(id, &call.id))
        && params.job.as_ref().is_none_or(|job| call.has_number(job))
}

fn notes(exported: &Exported, args: &Args, is_more: bool) -> Vec<String> {
    let mut notes = exported.notes();
    if exported.days.iter().any(|day| day.own_calls_only) {
        notes.push("of some days only calls of the user who exported them are there".to_owned());
    }
    if is_more {
        let (time, limit) = (if args.oldest { "--since" } else { "--until" }, args.limit);
        notes.push(format!("there are more than {limit} calls; --limit or {time} shows others"));
    }
    notes
}
