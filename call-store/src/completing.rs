//! What an imported job adds to a stored one: what is not known of it.
//!
//! Pure. Rule: nothing that is known is replaced, but a user's number by the name, and an end whose outcome no log states.
//! Not here: which stored job it is (`importing`).

use compact_str::CompactString;
use wire::call::job::Fact;
use wire::call::{Call, State};
use wire::event::Outcome;

/// Adds to a call what is not known of it; if that is anything, also where it is from.
pub(crate) fn complete(known: &mut Call, imported: &Call) {
    let before = known.clone();
    if is_number(&known.user) && !is_number(&imported.user) {
        known.user.clear();
    }
    let texts = [
        (&mut known.name, &imported.name),
        (&mut known.user, &imported.user),
        (&mut known.from, &imported.from),
        (&mut known.code, &imported.code),
        (&mut known.signal, &imported.signal),
        (&mut known.reason, &imported.reason),
    ];
    for (known, text) in texts.into_iter().filter(|(known, _)| known.is_empty()) {
        known.clone_from(text);
    }
    known.submitted = known.submitted.or(imported.submitted);
    known.started = known.started.or(imported.started);
    known.ended = known.ended.or(imported.ended);
    if matches!(known.outcome, None | Some(Outcome::Finished)) {
        (known.state, known.outcome) = (State::Ended, imported.outcome);
    }
    if known.hosts.is_empty() {
        known.hosts.clone_from(&imported.hosts);
    }
    known.tries = known.tries.max(u32::from(known.started.is_some()));
    let Some(imported) = &imported.details else { return };
    let details = known.details.get_or_insert_default();
    for statement in imported.facts.iter().filter(|statement| statement.fact != Fact::ImportedFrom) {
        if details.statement(statement.fact).is_none() {
            details.facts.push(statement.clone());
        }
    }
    if details.runs.is_empty() {
        details.runs.clone_from(&imported.runs);
    }
    if *known == before {
        return;
    }
    let facts = &mut known.details.get_or_insert_default().facts;
    if let Some(from) = imported.statement(Fact::ImportedFrom) {
        facts.retain(|statement| statement.fact != Fact::ImportedFrom);
        facts.push(from.clone());
    }
    facts.sort_unstable_by_key(|statement| statement.fact);
}

fn is_number(user: &CompactString) -> bool {
    user.bytes().all(|byte| byte.is_ascii_digit())
}
