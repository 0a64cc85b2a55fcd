//! `visperf calls --from PLACE`: calls of exported days, without a daemon.
//!
//! Not here: the files (`history_files`).

use super::{Args, params};
use crate::command::history::exported::Exported;
use crate::exit::Failure;
use crate::output::as_answered;
use history_files::table::Table;
use serde_json::Value;
use std::collections::HashSet;
use wire::api::calls::{Call, CallsParams};
use wire::call::{self, State};
use wire::name_match;

/// What was read.
pub(super) struct Found {
    /// The calls, each with its JSON.
    pub(super) calls: Vec<(Call, Value)>,
    /// What is to be said of them at the end.
    pub(super) exported: Exported,
}

/// Reads the calls of a place, as many as are asked for.
///
/// # Errors
/// If the place cannot be read, or calls are asked for that have not ended.
pub(super) fn read(place: &str, args: &Args) -> Result<Found, Failure> {
    if args.within.is_some_and(|state| state != State::Ended) {
        return Err(Failure::Usage("--in: exported calls have ended; leave the option out".to_owned()));
    }
    let mut exported = Exported::open(place, args.whose.domain.as_deref())?;
    exported.choose(args.between.since, args.between.until);
    let params = params(args, None, args.limit);
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let (mut calls, mut is_more) = (Vec::<call::Call>::new(), false);
    let mut files = exported.files(Table::Calls);
    if !args.oldest {
        files.reverse();
    }
    let bar = exported.bar();
    for file in files {
        if calls.len() > limit {
            break;
        }
        let mut found = Vec::new();
        let read = exported.destination.calls(&file, &mut |call| {
            if fits(&call, &params) {
                found.push(call);
                if found.len() / 2 > limit {
                    sort(&mut found, args.oldest);
                    found.truncate(limit + 1);
                }
            }
        });
        if let Err(error) = read {
            exported.failed(&error);
        }
        sort(&mut found, args.oldest);
        add(&mut calls, found, args.oldest);
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
    let calls = calls.iter().map(answered).collect::<Result<_, Failure>>()?;
    add_notes(&mut exported, args, is_more);
    Ok(Found { calls, exported })
}

fn sort(calls: &mut [call::Call], is_oldest_first: bool) {
    calls.sort_by(|a, b| (a.latest(), &a.id).cmp(&(b.latest(), &b.id)));
    if !is_oldest_first {
        calls.reverse();
    }
}

/// Adds the calls of another day. One that ran again is listed with its last end alone.
fn add(calls: &mut Vec<call::Call>, mut found: Vec<call::Call>, is_later: bool) {
    let ids = |calls: &[call::Call]| calls.iter().map(|call| call.id.clone()).collect::<HashSet<_>>();
    if is_later {
        let again = ids(&found);
        calls.retain(|call| !again.contains(&call.id));
    } else {
        let again = ids(calls);
        found.retain(|call| !again.contains(&call.id));
    }
    calls.append(&mut found);
}

fn fits(call: &call::Call, params: &CallsParams) -> bool {
    params.fit(call)
        && params.call.as_ref().is_none_or(|id| is_meant(id, &call.id))
        && params.job.as_ref().is_none_or(|job| call.has_number(job))
}

/// Whether an id, or the part of it behind the product, matches.
fn is_meant(meant: &str, id: &str) -> bool {
    let number = id.split_once(':').map_or(id, |(_, number)| number);
    name_match::matches(meant, id) || number == meant
}

fn add_notes(exported: &mut Exported, args: &Args, is_more: bool) {
    if is_more {
        exported.notes.push(format!("there are more calls than --limit {}", args.limit));
    }
}
