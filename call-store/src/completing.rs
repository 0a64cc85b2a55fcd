//! What an imported job adds to a stored one: what is not known of it.
//!
//! Pure. Rule: nothing that is known is replaced, but a user's number by the name, and an end whose outcome no log states.
//! Not here: which stored job it is (`importing`).

use compact_str::CompactString;
use std::mem::take;
use wire::call::job::{Fact, JobDetails};
use wire::call::{Call, State};
use wire::event::Outcome;

/// Adds to a call what is not known of it. Returns whether that was anything.
pub(crate) fn complete(known: &mut Call, imported: &Call) -> bool {
    let is_better_user = !known.user.is_empty() && is_number(&known.user) && !is_number(&imported.user);
    if is_better_user && !imported.user.is_empty() {
        take(&mut known.user);
    }
    let texts = [
        (&mut known.name, &imported.name),
        (&mut known.user, &imported.user),
        (&mut known.from, &imported.from),
        (&mut known.code, &imported.code),
        (&mut known.signal, &imported.signal),
        (&mut known.reason, &imported.reason),
    ];
    let mut is_more = texts.into_iter().fold(false, |is_more, (known, text)| add_text(known, text) | is_more);
    let times = [
        (&mut known.submitted, imported.submitted),
        (&mut known.started, imported.started),
        (&mut known.ended, imported.ended),
    ];
    for (known, time) in times {
        is_more |= known.is_none() && time.is_some();
        *known = known.or(time);
    }
    let is_unknown =
        matches!(known.outcome, None | Some(Outcome::Finished)) && known.outcome != imported.outcome;
    if is_unknown {
        (known.state, known.outcome) = (State::Ended, imported.outcome);
        is_more = true;
    }
    if known.hosts.is_empty() && !imported.hosts.is_empty() {
        known.hosts.clone_from(&imported.hosts);
        is_more = true;
    }
    known.tries = known.tries.max(u32::from(known.started.is_some()));
    match &imported.details {
        Some(imported) => add_details(known.details.get_or_insert_default(), imported, is_more) || is_more,
        None => is_more,
    }
}

fn is_number(user: &str) -> bool {
    user.bytes().all(|byte| byte.is_ascii_digit())
}

fn add_text(known: &mut CompactString, text: &CompactString) -> bool {
    let is_more = known.is_empty() && !text.is_empty();
    if is_more {
        known.clone_from(text);
    }
    is_more
}

/// Adds facts and earlier runs; if anything was added, or `is_more`, also where it is from.
fn add_details(known: &mut JobDetails, imported: &JobDetails, mut is_more: bool) -> bool {
    for statement in &imported.facts {
        if statement.fact != Fact::ImportedFrom && known.statement(statement.fact).is_none() {
            known.facts.push(statement.clone());
            is_more = true;
        }
    }
    if known.runs.is_empty() && !imported.runs.is_empty() {
        known.runs.clone_from(&imported.runs);
        is_more = true;
    }
    if let Some(from) = imported.statement(Fact::ImportedFrom).filter(|_| is_more) {
        known.facts.retain(|statement| statement.fact != Fact::ImportedFrom);
        known.facts.push(from.clone());
    }
    known.facts.sort_unstable_by_key(|statement| statement.fact);
    is_more
}
