//! Amounts of jobs in a table of their own: storing them, and giving them to rows of an earlier version.
//!
//! Rule: the caller has started a transaction. Not here: what an amount is (`wire`), searches by them (`filter`).

use crate::row::{COLUMNS, call_of, latest_us};
use sqlx::{AssertSqlSafe, QueryBuilder, Row, Sqlite, SqliteConnection};
use wire::api::job_amount::JobAmount;
use wire::api::jobs::Job;
use wire::call::Call;

/// Rows that get their amounts at a time: some tenths of a second.
const FILLED_AT_ONCE: i64 = 20_000;

/// Jobs in one statement; SQLite allows 32,766 values.
const JOBS_AT_ONCE: usize = 500;

/// Amounts of a stored job.
pub(crate) struct Amounts {
    latest_us: i64,
    key: i64,
    values: Vec<Option<f64>>,
}

impl Amounts {
    /// Returns the amounts of a job; `None` if the call is none.
    pub(crate) fn of(key: i64, call: &Call) -> Option<Amounts> {
        let job = call.is_job().then(|| Job::from(call))?;
        let values = JobAmount::ALL.iter().map(|amount| amount.of(&job, None)).collect();
        Some(Amounts { latest_us: latest_us(call), key, values })
    }
}

/// Stores amounts.
pub(crate) async fn insert(to: &mut SqliteConnection, all: &[Amounts]) -> Result<(), sqlx::Error> {
    let columns: Vec<&str> = JobAmount::ALL.iter().map(|amount| amount.as_str()).collect();
    for some in all.chunks(JOBS_AT_ONCE) {
        let mut sql = QueryBuilder::<Sqlite>::new(format!(
            "INSERT OR REPLACE INTO call_amounts (latest_us, key, {}) ",
            columns.join(", ")
        ));
        sql.push_values(some, |mut row, Amounts { latest_us, key, values }| {
            row.push_bind(*latest_us).push_bind(*key);
            values.iter().for_each(|value| _ = row.push_bind(*value));
        });
        sql.build().execute(&mut *to).await?;
    }
    Ok(())
}

/// Deletes the amounts of a job.
pub(crate) async fn delete(to: &mut SqliteConnection, latest_us: i64, key: i64) -> Result<(), sqlx::Error> {
    let delete = sqlx::query("DELETE FROM call_amounts WHERE latest_us = ? AND key = ?");
    delete.bind(latest_us).bind(key).execute(to).await.map(drop)
}

/// Whether rows of an earlier version have no amounts yet.
pub(crate) async fn are_missing(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let last: i64 = sqlx::query_scalar("SELECT without_amounts FROM identity").fetch_one(connection).await?;
    Ok(last > 0)
}

/// Gives amounts to some of the rows of an earlier version, the newest first. Returns whether there may be more.
pub(crate) async fn fill(to: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM call c WHERE c.key <= (SELECT without_amounts FROM identity) ORDER BY c.key DESC LIMIT ?"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(FILLED_AT_ONCE).fetch_all(&mut *to).await?;
    let calls = rows.iter().map(call_of).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Amounts> = calls.iter().filter_map(|(key, call)| Amounts::of(*key, call)).collect();
    insert(to, &all).await?;
    let is_full = i64::try_from(rows.len()) == Ok(FILLED_AT_ONCE);
    let left = match rows.last().filter(|_| is_full) {
        Some(row) => row.try_get::<i64, _>(0)? - 1,
        None => 0,
    };
    sqlx::query("UPDATE identity SET without_amounts = ?").bind(left).execute(to).await?;
    if left == 0 {
        tracing::info!("all stored jobs have their amounts now");
    }
    Ok(left > 0)
}
