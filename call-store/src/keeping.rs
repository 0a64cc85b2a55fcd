//! Changes of the rows: storing a call, replacing what is known of it, and deleting the oldest.
//!
//! Rule: the caller has started a transaction. Not here: when calls are deleted (`store`).

use crate::amounts::{self, Amounts};
use crate::completing::complete;
use crate::row::{
    self, COLUMNS, WRITTEN, aliases, call_of, latest_us, product_of, push_values, stored_call, texts,
};
use compact_str::{CompactString, format_compact};
use log_filters::job_usage::belongs;
use log_filters::join::changes::{CallChanges, FormerId, LateUsage};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, QueryBuilder, Row, Sqlite, SqliteConnection};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use wire::call::job::{Fact, JobDetails};
use wire::call::usage::Usage;
use wire::call::{Call, StoredCall, without_life};
use wire::event::Outcome;
use wire::report::calls::{CallPosition, POSITIONS_MAX};
use wire::time::Time;

/// Tolerance for the clocks of two daemons, in microseconds.
const CLOCKS_DIFFER_US: i64 = 1_000_000;

/// How long after its latest time events may still belong to a call, in microseconds.
const LATE_US: i64 = 1_800_000_000;

/// Most calls in one statement; SQLite allows 32,766 values.
const CALLS_AT_ONCE: usize = 200;

/// How many of the latest calls of a number a late usage is compared with.
const LIVES_LOOKED_AT: i64 = 64;

/// Most entries of a table of hosts or aliases in one statement.
const ENTRIES_AT_ONCE: usize = 2_000;

/// Most expired calls that are deleted with one change.
const EXPIRED_AT_ONCE: i64 = 2_000;

/// Share of the calls that is deleted when the space is used up.
const DELETED_AT_ONCE: i64 = 32;

/// A stored row, as far as it is compared with a new one.
struct Known {
    key: i64,
    earliest_us: i64,
    latest_us: i64,
    events: i64,
    state: String,
    outcome: String,
    hosts: String,
    aliases: String,
    details: Option<Vec<u8>>,
}

/// Applies changes, within a transaction of the caller.
pub(crate) async fn apply(to: &mut SqliteConnection, changes: &CallChanges) -> Result<(), sqlx::Error> {
    for former in &changes.former {
        forget(to, former).await?;
    }
    let mut chunk: Vec<&StoredCall> = Vec::new();
    let mut ids = HashSet::new();
    for left in &changes.left {
        if chunk.len() == CALLS_AT_ONCE || !ids.insert(&left.call.id) {
            store(to, &chunk).await?;
            chunk.clear();
            ids = HashSet::from([&left.call.id]);
        }
        chunk.push(left);
    }
    store(to, &chunk).await?;
    for late in &changes.late {
        add_late(to, late).await?;
    }
    Ok(())
}

/// Adds a usage to the stored call that it belongs to, if there is one.
async fn add_late(to: &mut SqliteConnection, late: &LateUsage) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SELECT {COLUMNS}, c.aliases FROM call c WHERE c.key IN \
         (SELECT key FROM call_alias WHERE alias = ? ORDER BY latest_us DESC LIMIT ?)"
    );
    for name in &late.names {
        let Some((product, job)) = name.split_once(':') else { continue };
        let rows = sqlx::query(AssertSqlSafe(sql.clone())).bind(job).bind(LIVES_LOOKED_AT);
        for row in rows.fetch_all(&mut *to).await? {
            let (_, mut call) = call_of(&row)?;
            if product_of(&call.id) == product && belongs(&late.usage, &call) {
                add_usage(&mut call.details.get_or_insert_default().usage, &late.usage);
                let left = stored_call(call, texts(row.try_get("aliases")?));
                return store(to, &[&left]).await;
            }
        }
    }
    Ok(())
}

fn add_usage(usages: &mut Vec<Usage>, usage: &Usage) {
    match usages.iter_mut().find(|known| usage.is_same(known)) {
        Some(known) if usage.is_newer(known) => *known = usage.clone(),
        Some(_) => {}
        None => usages.push(usage.clone()),
    }
}

async fn forget(to: &mut SqliteConnection, former: &FormerId) -> Result<(), sqlx::Error> {
    match known(to, &[&former.id]).await?.get(&former.id).and_then(|lives| lives.first()) {
        Some(known) if known.latest_us >= former.first.micros() => delete(to, known).await,
        Some(_) | None => Ok(()),
    }
}

/// Stores calls of different ids, or replaces their rows: with few statements, as each one takes longer than a row.
async fn store(to: &mut SqliteConnection, chunk: &[&StoredCall]) -> Result<(), sqlx::Error> {
    let ids: Vec<&CompactString> = chunk.iter().map(|left| &left.call.id).collect();
    let known = known(to, &ids).await?;
    let mut wanted = Vec::new();
    for left in chunk {
        let mut left = Cow::Borrowed(*left);
        let mut lives = known.get(&left.call.id).into_iter().flatten();
        if let Some(known) = lives.find(|known| is_same(known, &left)) {
            // Fewer events: what came after the call had been dropped from memory.
            if i64::from(left.call.events) < known.events {
                continue;
            }
            if let Cow::Borrowed(call) = left {
                left = with_added(to, known, call).await?;
            }
            if is_unchanged(known, &left.call) {
                continue;
            }
            delete(to, known).await?;
        } else {
            // A number that was used again: the earlier call gets an id of its own.
            for other in known.get(&left.call.id).into_iter().flatten() {
                if other.latest_us <= latest_us(&left.call) {
                    rename(to, other, &left.call.id).await?;
                } else {
                    let left = left.to_mut();
                    let id = free_id(to, &left.call.id).await?;
                    left.aliases.push(std::mem::replace(&mut left.call.id, id));
                    break;
                }
            }
        }
        wanted.push(left);
    }
    insert(to, wanted).await
}

/// Gives the row of a call whose id a later one has an id of its own.
async fn rename(to: &mut SqliteConnection, earlier: &Known, id: &str) -> Result<(), sqlx::Error> {
    let mut aliases = texts(&earlier.aliases);
    aliases.push(id.into());
    let update = sqlx::query("UPDATE call SET id = ?, aliases = ? WHERE key = ?");
    let other = free_id(to, id).await?;
    update.bind(other.as_str()).bind(row::json(&aliases)).bind(earlier.key).execute(&mut *to).await?;
    let insert = sqlx::query("INSERT OR IGNORE INTO call_alias (alias, latest_us, key) VALUES (?, ?, ?)");
    insert.bind(id).bind(earlier.latest_us).bind(earlier.key).execute(to).await.map(drop)
}

/// Returns an id of a later life that no call has.
async fn free_id(to: &mut SqliteConnection, id: &str) -> Result<CompactString, sqlx::Error> {
    let mut life = 1;
    loop {
        life += 1;
        let other = format_compact!("{}#{life}", without_life(id));
        let taken = sqlx::query("SELECT 1 FROM call WHERE id = ?").bind(other.as_str());
        if taken.fetch_optional(&mut *to).await?.is_none() {
            return Ok(other);
        }
    }
}

/// Stores calls as new rows.
pub(crate) async fn insert(
    to: &mut SqliteConnection,
    wanted: Vec<Cow<'_, StoredCall>>,
) -> Result<(), sqlx::Error> {
    let last: i64 = sqlx::query_scalar("SELECT last_key FROM identity").fetch_one(&mut *to).await?;
    let keyed: Vec<_> = (last + 1..).zip(wanted).collect();
    let mut hosts = Vec::new();
    let mut others = Vec::new();
    for (key, left) in &keyed {
        let latest = latest_us(&left.call);
        let about = [left.call.user.as_str(), left.call.outcome.map_or("", Outcome::as_str)];
        let of_hosts = row::hosts(&left.call.hosts).into_iter();
        hosts.extend(of_hosts.map(|host| (host.to_owned(), latest, *key, about.to_vec())));
        others.extend(aliases(left).into_iter().map(|alias| (alias, latest, *key, Vec::new())));
    }
    if let Some((last, _)) = keyed.last() {
        sqlx::query("UPDATE identity SET last_key = ?").bind(last).execute(&mut *to).await?;
        let mut sql = QueryBuilder::<Sqlite>::new(format!("INSERT INTO call (key, {WRITTEN}) "));
        sql.push_values(&keyed, |mut row, (key, left)| push_values(row.push_bind(key), left));
        sql.build().execute(&mut *to).await?;
    }
    let tables = [
        ("call_host (host, latest_us, key, user, outcome)", hosts),
        ("call_alias (alias, latest_us, key)", others),
    ];
    for (table, rows) in tables {
        for rows in rows.chunks(ENTRIES_AT_ONCE) {
            let mut sql = QueryBuilder::<Sqlite>::new(format!("INSERT INTO {table} "));
            sql.push_values(rows, |mut row, (text, latest, key, about)| {
                row.push_bind(text.clone()).push_bind(latest).push_bind(key);
                about.iter().for_each(|text| _ = row.push_bind((*text).to_owned()));
            });
            sql.build().execute(&mut *to).await?;
        }
    }
    let all: Vec<Amounts> = keyed.iter().filter_map(|(key, left)| Amounts::of(*key, &left.call)).collect();
    amounts::insert(to, &all).await
}

/// Whether a call with the id of a stored one is that one: not if it was submitted after it was over, nor if its
/// first event came long after, nor if it was over long before. Of a stored one without any time that is not known.
fn is_same(known: &Known, left: &StoredCall) -> bool {
    let Known { earliest_us, latest_us, .. } = *known;
    if latest_us == i64::MIN {
        return true;
    }
    let submitted = left.call.submitted.map(Time::micros);
    let is_later = submitted.is_some_and(|at| at > latest_us.saturating_add(CLOCKS_DIFFER_US))
        || left.first.micros() > latest_us.saturating_add(LATE_US);
    let over = left.call.latest().map(Time::micros);
    !is_later && over.is_none_or(|at| at.saturating_add(LATE_US) >= earliest_us)
}

/// Whether nothing has happened to a call since its row was written, as for most after a restart.
fn is_unchanged(known: &Known, call: &Call) -> bool {
    i64::from(call.events) == known.events
        && latest_us(call) == known.latest_us
        && call.state.as_str() == known.state
        && call.outcome.map_or("", Outcome::as_str) == known.outcome
        && has_same_details(known, call)
}

/// Whether the stored details are those of the call, or all that is known of it.
fn has_same_details(known: &Known, call: &Call) -> bool {
    let Some(details) = &call.details else { return true };
    known.details.as_ref().is_some_and(|stored| *stored == row::details_bytes(details))
}

/// The call with what is stored of it and not in memory: measured usage that is there no longer, and what was imported.
async fn with_added<'a>(
    to: &mut SqliteConnection,
    known: &Known,
    left: &'a StoredCall,
) -> Result<Cow<'a, StoredCall>, sqlx::Error> {
    let stored = known.details.as_deref().and_then(row::details_of).unwrap_or_default();
    let mut with_usage = with_stored_usage(&stored, left);
    if stored.statement(Fact::ImportedFrom).is_some()
        && let Some(stored) = call_with(to, known.key).await?
    {
        complete(&mut with_usage.to_mut().call, &stored);
    }
    Ok(with_usage)
}

fn with_stored_usage<'a>(stored: &JobDetails, left: &'a StoredCall) -> Cow<'a, StoredCall> {
    let is_missing = |usage: &Usage| {
        let details = left.call.details.as_deref();
        !details.is_some_and(|details| details.usage.iter().any(|known| known.is_same(usage)))
    };
    let missing: Vec<Usage> = stored.usage.iter().filter(|usage| is_missing(usage)).cloned().collect();
    if missing.is_empty() {
        return Cow::Borrowed(left);
    }
    let mut left = left.clone();
    let usage = &mut left.call.details.get_or_insert_default().usage;
    usage.extend(missing);
    usage.sort_by(|one, other| (&one.host, one.started).cmp(&(&other.host, other.started)));
    Cow::Owned(left)
}

impl Known {
    const COLUMNS: &str = "key, latest_us, events, state, outcome, hosts, aliases, details, \
        min(coalesce(submitted_us, latest_us), coalesce(offered_us, latest_us), coalesce(selected_us, latest_us), \
        coalesce(started_us, latest_us), coalesce(ended_us, latest_us))";

    fn new(row: &SqliteRow) -> Result<Known, sqlx::Error> {
        Ok(Known {
            key: row.try_get(0)?,
            latest_us: row.try_get(1)?,
            events: row.try_get(2)?,
            state: row.try_get(3)?,
            outcome: row.try_get(4)?,
            hosts: row.try_get(5)?,
            aliases: row.try_get(6)?,
            details: row.try_get(7)?,
            earliest_us: row.try_get(8)?,
        })
    }
}

/// Returns the stored calls of each id, the latest first.
async fn known(
    to: &mut SqliteConnection,
    ids: &[&CompactString],
) -> Result<HashMap<CompactString, Vec<Known>>, sqlx::Error> {
    let mut sql =
        QueryBuilder::<Sqlite>::new(format!("SELECT {}, id FROM call WHERE id IN (", Known::COLUMNS));
    let mut wanted = sql.separated(", ");
    for id in ids {
        wanted.push_bind(id.to_string());
    }
    let rows = sql.push(") ORDER BY latest_us DESC").build().fetch_all(to).await?;
    let mut known: HashMap<CompactString, Vec<Known>> = HashMap::new();
    for row in &rows {
        known.entry(row.try_get::<&str, _>("id")?.into()).or_default().push(Known::new(row)?);
    }
    Ok(known)
}

/// Returns the call of a row.
async fn call_with(to: &mut SqliteConnection, key: i64) -> Result<Option<Call>, sqlx::Error> {
    let sql = format!("SELECT {COLUMNS} FROM call c WHERE c.key = ?");
    let row = sqlx::query(AssertSqlSafe(sql)).bind(key).fetch_optional(to).await?;
    row.map(|row| call_of(&row).map(|(_, call)| call)).transpose()
}

async fn delete(to: &mut SqliteConnection, known: &Known) -> Result<(), sqlx::Error> {
    delete_row(to, (known.key, known.latest_us), &texts(&known.hosts), &texts(&known.aliases)).await
}

/// Deletes the row of a call with this key and latest time.
pub(crate) async fn delete_row(
    to: &mut SqliteConnection,
    (key, latest_us): (i64, i64),
    hosts: &[CompactString],
    aliases: &[CompactString],
) -> Result<(), sqlx::Error> {
    for host in row::hosts(hosts) {
        let delete = sqlx::query("DELETE FROM call_host WHERE host = ? AND latest_us = ? AND key = ?");
        delete.bind(host).bind(latest_us).bind(key).execute(&mut *to).await?;
    }
    for alias in aliases {
        let delete = sqlx::query("DELETE FROM call_alias WHERE alias = ? AND latest_us = ? AND key = ?");
        delete.bind(alias.as_str()).bind(latest_us).bind(key).execute(&mut *to).await?;
    }
    amounts::delete(to, latest_us, key).await?;
    sqlx::query("DELETE FROM call WHERE key = ?").bind(key).execute(to).await?;
    Ok(())
}

/// Deletes calls older than `age`, not all at once. Returns how many. Age is measured from the newest call, so that a
/// wrong clock deletes nothing, but from `now` if that is earlier, as a log may have any time.
pub(crate) async fn delete_older(
    to: &mut SqliteConnection,
    now: Time,
    age: Duration,
) -> Result<u64, sqlx::Error> {
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT MAX(latest_us) FROM call").fetch_one(&mut *to).await?;
    let Some(newest) = newest else { return Ok(0) };
    let before = now.min(Time::from_micros(newest)).minus(age).micros();
    let sql = format!(
        "SELECT {} FROM call WHERE latest_us < ? AND latest_us > ? ORDER BY latest_us LIMIT ?",
        Known::COLUMNS
    );
    // A call without any time has no age.
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(before).bind(i64::MIN).bind(EXPIRED_AT_ONCE);
    let rows = rows.fetch_all(&mut *to).await?;
    delete_all(to, rows).await
}

async fn delete_all(to: &mut SqliteConnection, rows: Vec<SqliteRow>) -> Result<u64, sqlx::Error> {
    for row in &rows {
        delete(to, &Known::new(row)?).await?;
    }
    Ok(rows.len() as u64)
}

/// Deletes the oldest calls, a share of all. Returns how many.
pub(crate) async fn delete_oldest(to: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let highest: Option<i64> = sqlx::query_scalar("SELECT MAX(key) FROM call").fetch_one(&mut *to).await?;
    let lowest: Option<i64> = sqlx::query_scalar("SELECT MIN(key) FROM call").fetch_one(&mut *to).await?;
    let (Some(highest), Some(lowest)) = (highest, lowest) else { return Ok(0) };
    // Keys are given in the order of storing: their span is about the number of calls.
    let count = (highest - lowest) / DELETED_AT_ONCE + 1;
    let sql = format!("SELECT {} FROM call ORDER BY latest_us LIMIT ?", Known::COLUMNS);
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(count).fetch_all(&mut *to).await?;
    delete_all(to, rows).await
}

/// Notes how far another store is copied, within a transaction of the caller.
pub(crate) async fn note_copied(
    to: &mut SqliteConnection,
    position: CallPosition,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT OR REPLACE INTO copied SELECT ?, ?, coalesce(max(number), 0) + 1 FROM copied";
    let CallPosition { store, key } = position;
    sqlx::query(sql).bind(store.0.cast_signed()).bind(key.cast_signed()).execute(&mut *to).await?;
    let sql = "DELETE FROM copied WHERE number <= (SELECT max(number) FROM copied) - ?";
    sqlx::query(sql).bind(i64::try_from(POSITIONS_MAX).unwrap_or(i64::MAX)).execute(to).await?;
    Ok(())
}
