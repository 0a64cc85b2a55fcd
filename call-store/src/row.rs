//! A call as a row: its columns, and the texts under which it is found besides them.
//!
//! Pure. Not here: the schema (`schema_1_calls.sql`).

use compact_str::CompactString;
use sqlx::query_builder::Separated;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite};
use std::collections::BTreeSet;
use wire::at_end::AtEnd;
use wire::call::job::{Fact, JobDetails};
use wire::call::{Call, PART_MARKS, State, StoredCall, host_names};
use wire::event::Outcome;
use wire::time::Time;

/// Columns of [`call_of`], in its order, of the table named `c`.
pub(crate) const COLUMNS: &str = "c.key, c.id, c.job, c.name, c.user, c.origin, c.state, c.outcome, \
    c.submitted_us, c.offered_us, c.selected_us, c.started_us, c.ended_us, c.offers, c.hosts, c.code, c.signal, \
    c.reason, c.tries, c.events, c.details";

/// Columns of [`push_values`], in its order.
pub(crate) const WRITTEN: &str = "id, product, job, name, user, origin, state, outcome, submitted_us, offered_us, \
    selected_us, started_us, ended_us, latest_us, offers, hosts, aliases, code, signal, reason, tries, events, account, \
    queue, is_job, details";

/// Returns the latest time of a call, in microseconds; the smallest integer if it has none.
pub(crate) fn latest_us(call: &Call) -> i64 {
    call.latest().map_or(i64::MIN, Time::micros)
}

/// Adds the values of a call.
pub(crate) fn push_values(values: &mut Separated<'_, Sqlite, &'static str>, left: &StoredCall) {
    let call = &left.call;
    let product = product_of(&call.id);
    let micros = |time: Option<Time>| time.map(Time::micros);
    for text in
        [call.id.as_str(), product, &call.job, &call.name, &call.user, &call.from, call.state.as_str()]
    {
        values.push_bind(text.to_owned());
    }
    values.push_bind(call.outcome.map_or("", Outcome::as_str));
    for time in [call.submitted, call.offered, call.selected, call.started, call.ended] {
        values.push_bind(micros(time));
    }
    values.push_bind(latest_us(call));
    values.push_bind(json(&call.offers)).push_bind(json(&call.hosts)).push_bind(json(&aliases(left)));
    for text in [&call.code, &call.signal, &call.reason] {
        values.push_bind(text.to_string());
    }
    values.push_bind(i64::from(call.tries)).push_bind(i64::from(call.events));
    for fact in [Fact::Account, Fact::Queue] {
        values.push_bind(call.fact(fact).unwrap_or_default().to_owned());
    }
    values.push_bind(i64::from(call.is_job()));
    values.push_bind(call.details.as_deref().map(details_bytes));
}

/// Details of a job as they are stored: what was measured follows, as an earlier version has none of it.
pub(crate) fn details_bytes(details: &JobDetails) -> Vec<u8> {
    let usage = AtEnd((!details.usage.is_empty()).then_some(&details.usage));
    postcard::to_stdvec(&(details, usage)).expect("it can be written to memory")
}

/// Reads stored details; `None` if they are of a later version: the call is known without them.
pub(crate) fn details_of(bytes: &[u8]) -> Option<Box<JobDetails>> {
    let (details, AtEnd(usage)) = postcard::from_bytes::<(Box<JobDetails>, AtEnd<_>)>(bytes).ok()?;
    Some(Box::new(JobDetails { usage: usage.unwrap_or_default(), ..*details }))
}

/// Returns the call of a row, and its key.
pub(crate) fn call_of(row: &SqliteRow) -> Result<(i64, Call), sqlx::Error> {
    let text = |at: usize| row.try_get::<&str, _>(at).map(CompactString::from);
    let time = |at: usize| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(at)?.map(Time::from_micros));
    let count =
        |at: usize| Ok::<_, sqlx::Error>(u32::try_from(row.try_get::<i64, _>(at)?).unwrap_or(u32::MAX));
    let state: &str = row.try_get(6)?;
    let outcome: &str = row.try_get(7)?;
    let call = Call {
        id: text(1)?,
        job: text(2)?,
        name: text(3)?,
        user: text(4)?,
        from: text(5)?,
        state: State::ALL.into_iter().find(|known| known.as_str() == state).unwrap_or(State::Ended),
        // An outcome that only a later version knows is an end all the same.
        outcome: (!outcome.is_empty()).then(|| Outcome::from_word(outcome).unwrap_or(Outcome::Finished)),
        submitted: time(8)?,
        offered: time(9)?,
        selected: time(10)?,
        started: time(11)?,
        ended: time(12)?,
        offers: texts(row.try_get(13)?),
        hosts: texts(row.try_get(14)?),
        code: text(15)?,
        signal: text(16)?,
        reason: text(17)?,
        tries: count(18)?,
        events: count(19)?,
        details: row.try_get::<Option<&[u8]>, _>(20)?.and_then(details_of),
    };
    Ok((row.try_get(0)?, call))
}

/// Returns a call as it is stored in another place. Of its events only those with a time are known.
pub(crate) fn stored_call(call: Call, aliases: Vec<CompactString>) -> StoredCall {
    StoredCall { first: call.earliest().unwrap_or_default(), aliases, call }
}

/// Returns the other texts under which a call is found: see `call_alias` in the schema.
pub(crate) fn aliases(left: &StoredCall) -> Vec<String> {
    let mut aliases = BTreeSet::new();
    let product = product_of(&left.call.id);
    for name in left.aliases.iter().chain([&left.call.id]) {
        aliases.insert(name.as_str());
        // The alias of a copied call may be a number, which may have a colon too.
        let named = name.split_once(':').filter(|(scope, _)| product_of(scope) == product);
        aliases.extend(named.map(|(_, number)| number));
    }
    let job = left.call.job.as_str();
    aliases.insert(job);
    aliases.extend(job.match_indices(PART_MARKS).map(|(at, _)| &job[..at]));
    aliases.remove(left.call.id.as_str());
    aliases.remove("");
    aliases.into_iter().map(str::to_owned).collect()
}

/// Returns the product of an id or of its scope.
pub(crate) fn product_of(id: &str) -> &str {
    id.split([':', '/']).next().unwrap_or_default()
}

/// Returns each host of a call, also without its domain.
pub(crate) fn hosts(hosts: &[CompactString]) -> BTreeSet<&str> {
    hosts.iter().flat_map(|host| host_names(host)).collect()
}

/// Returns the texts of a JSON list; none if it is damaged.
pub(crate) fn texts(json: &str) -> Vec<CompactString> {
    serde_json::from_str(json).unwrap_or_default()
}

/// Returns texts as a JSON list.
pub(crate) fn json<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&texts).expect("texts can be written to memory")
}
