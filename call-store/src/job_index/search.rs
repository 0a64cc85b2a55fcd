//! A page of the index: the filters of a search as SQL, and its cursor.
//!
//! Rule: rows are read by the index of the most selective filter, in the order of time, within a budget of steps.
//! Not here: the rows (`row`).

use super::row::{COLUMNS, job_of};
use crate::answer::Error;
use crate::database::{explained, set_budget};
use crate::filter::glob;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};
use wire::api::calls::CallOrder;
use wire::api::job_index::{DirectoryJobs, DirectoryJobsParams};
use wire::api::jobs::Job;
use wire::name_match::has_wildcard;

/// What one search may read, in thousands of steps of the database: some seconds.
const PAGE_BUDGET: u32 = 200_000;

/// Reads the page of a search.
pub(super) async fn page(
    connection: &mut SqliteConnection,
    params: &DirectoryJobsParams,
) -> Result<DirectoryJobs, Error> {
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let mut sql = QueryBuilder::new(format!("SELECT {COLUMNS} FROM job AS j "));
    push_source(&mut sql, params);
    push_filters(&mut sql, params);
    let (from, order) = match params.order {
        CallOrder::Newest => ("<", "DESC"),
        CallOrder::Oldest => (">", "ASC"),
    };
    if let Some(cursor) = &params.cursor {
        let Cursor { latest_us, domain, id } = cursor_of(cursor)?;
        sql.push(format!(" AND (j.latest_us, j.id, d.name) {from} (")).push_bind(latest_us);
        sql.push(", ").push_bind(id.to_owned()).push(", ").push_bind(domain.to_owned()).push(")");
        // The index is read from there on.
        sql.push(format!(" AND j.latest_us {from}= ")).push_bind(latest_us);
    }
    sql.push(format!(" ORDER BY j.latest_us {order}, j.id {order}, d.name {order} LIMIT "));
    // One more, which shows that there is a next page.
    sql.push_bind(i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX));
    set_budget(connection, PAGE_BUDGET).await?;
    let rows = sql.build().fetch_all(connection).await.map_err(explained)?;
    let shown = rows.iter().take(limit);
    let jobs = shown.map(job_of).collect::<Result<Vec<Job>, sqlx::Error>>()?;
    let next = match rows.get(limit.wrapping_sub(1)) {
        Some(last) if rows.len() > limit => Some(format!(
            "{}/{}/{}",
            last.try_get::<i64, _>(18)?,
            last.try_get::<&str, _>(0)?,
            last.try_get::<&str, _>(1)?
        )),
        Some(_) | None => None,
    };
    Ok(DirectoryJobs { jobs, next, domains: Vec::new() })
}

/// The last job of a page.
struct Cursor<'a> {
    latest_us: i64,
    domain: &'a str,
    id: &'a str,
}

fn cursor_of(text: &str) -> Result<Cursor<'_>, Error> {
    let mut parts = text.splitn(3, '/');
    let (Some(micros), Some(domain), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::Cursor);
    };
    Ok(Cursor { latest_us: micros.parse().map_err(|_| Error::Cursor)?, domain, id })
}

/// Adds the index by which rows are read, and what they have there.
fn push_source(sql: &mut QueryBuilder<Sqlite>, params: &DirectoryJobsParams) {
    let mut by = |index: &str, condition: &str, value: &str| {
        sql.push(format!(
            "INDEXED BY {index} CROSS JOIN domain AS d ON d.number = j.domain WHERE {condition}"
        ));
        if !value.is_empty() {
            sql.push_bind(value.to_owned());
        }
    };
    if let Some(id) = params.id.as_ref().filter(|id| !has_wildcard(id)) {
        by("job_by_id", "j.id = ", id);
    } else if let Some(job) = &params.job {
        sql.push("CROSS JOIN domain AS d ON d.number = j.domain WHERE j.key IN (");
        sql.push("SELECT key FROM job INDEXED BY job_by_number WHERE job = ").push_bind(job.clone());
        sql.push(" UNION SELECT key FROM job INDEXED BY job_by_array WHERE array_job <> '' AND array_job = ");
        sql.push_bind(job.clone()).push(")");
    } else if let Some(user) = &params.user {
        by("job_by_user", "j.user = ", user);
    } else if let Some(domain) = &params.domain {
        by("job_by_domain", "j.domain = (SELECT number FROM domain WHERE name = ", domain);
        sql.push(")");
    } else {
        by("job_by_time", "TRUE", "");
    }
}

fn push_filters(sql: &mut QueryBuilder<Sqlite>, params: &DirectoryJobsParams) {
    let DirectoryJobsParams { domain, id, name, user, queue, on_host, outcome, since, until, .. } = params;
    let list = |sql: &mut QueryBuilder<Sqlite>, column: &str, values: &[&str]| {
        if values.is_empty() {
            return;
        }
        sql.push(format!(" AND {column} IN ("));
        let mut list = sql.separated(", ");
        for value in values {
            list.push_bind((*value).to_owned());
        }
        sql.push(")");
    };
    list(sql, "d.name", &domain.iter().map(String::as_str).collect::<Vec<_>>());
    list(sql, "j.outcome", &outcome.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>());
    list(sql, "j.user", &user.iter().map(String::as_str).collect::<Vec<_>>());
    list(sql, "j.queue", &queue.iter().map(String::as_str).collect::<Vec<_>>());
    for (column, pattern) in [("j.id", id), ("j.name", name)] {
        if let Some(pattern) = pattern {
            sql.push(format!(" AND {column} GLOB ")).push_bind(glob(pattern));
        }
    }
    if let Some(host) = on_host {
        // In the JSON list, with or without its domain.
        sql.push(" AND (instr(j.hosts, ").push_bind(format!("\"{host}\"")).push(") > 0");
        sql.push(" OR instr(j.hosts, ").push_bind(format!("\"{host}.")).push(") > 0)");
    }
    if let Some(since) = since {
        sql.push(" AND j.latest_us >= ").push_bind(since.0.micros());
    }
    if let Some(until) = until {
        sql.push(" AND j.latest_us <= ").push_bind(until.0.micros());
    }
}
