//! Index of the ended jobs of all domains: what a queue shows of each, for a directory.
//!
//! Shell. Rules: a job is one row, replaced when its domain states more; a page is stored with the position that it reaches,
//! all or nothing, so reading goes on after a crash. If the space is used up, the oldest jobs of the domain that takes most
//! are deleted. Not here: how a domain states jobs (`wire::api::job_index`), when it is asked.

mod row;
mod search;

use crate::answer::Error;
use crate::database::{PAGE_LEN_BYTES, open_reader, open_with, used_pages};
use row::push_values;
use sqlx::{Connection, QueryBuilder, SqliteConnection};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell, Semaphore, SemaphorePermit};
use wire::api::UnixTime;
use wire::api::job_index::{
    DirectoryJobs, DirectoryJobsParams, IndexPosition, IndexedDomain, JobIndexPage, PAGE_JOBS_MAX,
};
use wire::api::jobs::Job;
use wire::id::DomainName;
use wire::time::Time;

/// Changes of the schema, each once and for ever.
const MIGRATIONS: [(&str, &str); 1] = [("jobs", include_str!("schema_1_jobs.sql"))];

/// Stores of a domain whose positions are known: its representatives.
const POSITIONS_MAX: i64 = wire::report::calls::POSITIONS_MAX as i64;

/// Most characters of the name of a store.
const STORE_LEN_MAX: usize = 16;

/// Most queries that are read at a time; others wait.
const READERS_MAX: usize = 2;

/// Most jobs in one statement; SQLite allows 32,766 values.
const JOBS_AT_ONCE: usize = 500;

/// Approximate space of the jobs of one statement, in bytes.
const BYTES_AT_ONCE: usize = 256 << 10;

/// Most jobs of one number that are kept.
const LIVES_MAX: u32 = 1_000;

/// Most expired jobs that are deleted with one page.
const EXPIRED_AT_ONCE: i64 = 2_000;

/// Share of a domain's jobs that is deleted when the space is used up.
const DELETED_AT_ONCE: i64 = 16;

/// A future answer, boxed: the compiler does not see that those of the database can be sent to another thread,
/// whatever their lifetimes.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Limits of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimit {
    /// Disk space, in bytes.
    pub bytes: u64,
    /// Time after which jobs are deleted.
    pub age: Duration,
}

/// Index in one file.
pub struct JobIndex {
    path: PathBuf,
    pages_max: u64,
    age: Duration,
    writer: Mutex<Option<SqliteConnection>>,
    /// Set once the schema is current.
    is_current: OnceCell<()>,
    readers: Semaphore,
}

impl JobIndex {
    /// An index in this file, within these limits. Nothing is opened before it is used.
    #[must_use]
    pub fn new(path: &Path, limit: IndexLimit) -> JobIndex {
        JobIndex {
            path: path.to_owned(),
            pages_max: limit.bytes / PAGE_LEN_BYTES,
            age: limit.age,
            writer: Mutex::new(None),
            is_current: OnceCell::new(),
            readers: Semaphore::new(READERS_MAX),
        }
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a page that a domain stated, and how far that reaches; returns the number of jobs that were deleted for it.
    ///
    /// # Errors
    /// If the database refuses, as with a full disk, or if the page is damaged: nothing is stored then.
    pub fn take<'a>(&'a self, domain: &'a DomainName, page: &'a JobIndexPage, now: Time) -> Answer<'a, u64> {
        Box::pin(self.take_page(domain, page, now))
    }

    async fn take_page(&self, domain: &DomainName, page: &JobIndexPage, now: Time) -> Result<u64, Error> {
        let store = &page.reached.store;
        let is_store = store.len() <= STORE_LEN_MAX && u64::from_str_radix(store, 16).is_ok();
        if !is_store || page.ids.len() > PAGE_JOBS_MAX {
            return Err(Error::Damaged);
        }
        let mut writer = self.writer.lock().await;
        // After an error the connection is closed, and the next page opens another.
        let mut connection = match writer.take() {
            Some(connection) => connection,
            None => self.open_writer().await?,
        };
        let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
        let number = number_of(&mut change, domain).await?;
        let (mut deleted, mut jobs) = (0, page.jobs());
        loop {
            let jobs = chunk(&mut jobs)?;
            if jobs.is_empty() {
                break;
            }
            deleted += self.make_room(&mut change, &jobs).await?;
            put(&mut change, (number, now), &jobs).await?;
        }
        reach(&mut change, number, &page.reached).await?;
        if page.is_end {
            let complete = sqlx::query("UPDATE domain SET complete_us = ? WHERE number = ?");
            complete.bind(now.micros()).bind(number).execute(&mut *change).await?;
        }
        deleted += delete_older(&mut change, now.minus(self.age)).await?;
        change.commit().await?;
        *writer = Some(connection);
        Ok(deleted)
    }

    /// Returns how far the stores of a domain's representatives are read.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn reached<'a>(&'a self, domain: &'a DomainName) -> Answer<'a, Vec<IndexPosition>> {
        Box::pin(async move {
            let Some((mut connection, _turn)) = self.reader().await? else { return Ok(Vec::new()) };
            let sql =
                "SELECT r.store, r.key FROM reached r JOIN domain d ON d.number = r.domain WHERE d.name = ?";
            let rows: Vec<(String, i64)> =
                sqlx::query_as(sql).bind(domain.as_str()).fetch_all(&mut connection).await?;
            connection.close().await?;
            let position = |(store, key): (String, i64)| IndexPosition { store, key: key.cast_unsigned() };
            Ok(rows.into_iter().map(position).collect())
        })
    }

    /// Returns the domains, each with the number of its jobs.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn domains(&self) -> Answer<'_, Vec<IndexedDomain>> {
        Box::pin(async move {
            let Some((mut connection, _turn)) = self.reader().await? else { return Ok(Vec::new()) };
            let domains = domains(&mut connection, None).await?;
            connection.close().await?;
            Ok(domains)
        })
    }

    /// Searches jobs: a page, and the domains that were searched.
    ///
    /// # Errors
    /// If the database cannot be read, or if the search would read too much.
    pub fn search<'a>(&'a self, params: &'a DirectoryJobsParams) -> Answer<'a, DirectoryJobs> {
        Box::pin(async move {
            let Some((mut connection, _turn)) = self.reader().await? else {
                return Ok(DirectoryJobs::default());
            };
            let searched = domains(&mut connection, params.domain.as_deref()).await?;
            let found = search::page(&mut connection, params).await?;
            connection.close().await?;
            Ok(DirectoryJobs { domains: searched, ..found })
        })
    }

    /// A connection that reads, once it is this reader's turn; `None` if nothing is stored.
    async fn reader(&self) -> Result<Option<(SqliteConnection, SemaphorePermit<'_>)>, Error> {
        if !self.path.exists() {
            return Ok(None);
        }
        // The file may be of an earlier version, or be created at this moment.
        let open = async || {
            let mut writer = self.writer.lock().await;
            if writer.is_none() {
                *writer = Some(self.open_writer().await?);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = self.is_current.get_or_try_init(open).await {
            tracing::debug!(%error, "the index of jobs cannot be brought up to date: what is there is read");
        }
        let turn = self.readers.acquire().await.expect("it is never closed");
        Ok(Some((open_reader(&self.path).await?, turn)))
    }

    async fn open_writer(&self) -> Result<SqliteConnection, Error> {
        open_with(&self.path, self.pages_max, &MIGRATIONS).await
    }

    /// Deletes the oldest jobs of the domain that takes most until these have room.
    async fn make_room(&self, change: &mut SqliteConnection, jobs: &[Job]) -> Result<u64, Error> {
        // Indexes have some of the texts again.
        let sizes: usize = jobs.iter().map(row::size).sum();
        let wanted = 2 * sizes as u64 / PAGE_LEN_BYTES + self.pages_max / 16;
        let mut deleted = 0;
        while used_pages(change).await?.saturating_add(wanted) > self.pages_max {
            let gone = delete_of_largest(change).await?;
            deleted += gone;
            if gone == 0 {
                break;
            }
        }
        Ok(deleted)
    }
}

async fn number_of(change: &mut SqliteConnection, domain: &DomainName) -> Result<i64, sqlx::Error> {
    sqlx::query("INSERT OR IGNORE INTO domain (name) VALUES (?)")
        .bind(domain.as_str())
        .execute(&mut *change)
        .await?;
    sqlx::query_scalar("SELECT number FROM domain WHERE name = ?")
        .bind(domain.as_str())
        .fetch_one(change)
        .await
}

/// Returns the next jobs of a page, for one statement; none after the last.
fn chunk(jobs: &mut impl Iterator<Item = Option<Job>>) -> Result<Vec<Job>, Error> {
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while chunk.len() < JOBS_AT_ONCE
        && bytes < BYTES_AT_ONCE
        && let Some(job) = jobs.next()
    {
        let job = job.ok_or(Error::Damaged)?;
        bytes += row::size(&job);
        chunk.push(job);
    }
    Ok(chunk)
}

/// Stores jobs of a domain, or replaces their rows.
async fn put(
    change: &mut SqliteConnection,
    (domain, now): (i64, Time),
    jobs: &[Job],
) -> Result<(), sqlx::Error> {
    keep_earlier_lives(change, domain, jobs).await?;
    let mut sql = QueryBuilder::new(format!("INSERT INTO job ({}) ", row::WRITTEN));
    sql.push_values(jobs, |mut values, job| push_values(&mut values, domain, job, now));
    sql.push(" ON CONFLICT (id, domain) DO UPDATE SET ");
    sql.push(row::REPLACED);
    sql.build().execute(change).await.map(drop)
}

/// Gives stored jobs an id of their own if that of the job is used again, as the domain does.
async fn keep_earlier_lives(
    change: &mut SqliteConnection,
    domain: i64,
    jobs: &[Job],
) -> Result<(), sqlx::Error> {
    let mut sql = QueryBuilder::new("SELECT id, key, latest_us FROM job WHERE id IN (");
    let mut ids = sql.separated(", ");
    jobs.iter().for_each(|job| _ = ids.push_bind(job.id.clone()));
    sql.push(") AND domain = ").push_bind(domain);
    let known: Vec<(String, i64, i64)> = sql.build_query_as().fetch_all(&mut *change).await?;
    let earliest: HashMap<&str, i64> =
        jobs.iter().map(|job| (job.id.as_str(), row::earliest_us(job))).collect();
    for (id, key, latest_us) in known {
        if earliest.get(id.as_str()).is_none_or(|earliest| *earliest <= latest_us) {
            continue;
        }
        for life in 2..=LIVES_MAX {
            let renamed = sqlx::query("UPDATE OR IGNORE job SET id = ? WHERE key = ?");
            let renamed = renamed.bind(format!("{id}#{life}")).bind(key).execute(&mut *change).await?;
            if renamed.rows_affected() > 0 {
                break;
            }
        }
    }
    Ok(())
}

async fn reach(change: &mut SqliteConnection, domain: i64, at: &IndexPosition) -> Result<(), sqlx::Error> {
    let note = "INSERT INTO reached (domain, store, key, number) \
                SELECT ?1, ?2, ?3, 1 + coalesce((SELECT max(number) FROM reached WHERE domain = ?1), 0) WHERE true \
                ON CONFLICT (domain, store) DO UPDATE SET key = excluded.key, number = excluded.number";
    sqlx::query(note).bind(domain).bind(&at.store).bind(at.key.cast_signed()).execute(&mut *change).await?;
    let forget = "DELETE FROM reached WHERE domain = ?1 AND number <= \
                  (SELECT max(number) FROM reached WHERE domain = ?1) - ?2";
    sqlx::query(forget).bind(domain).bind(POSITIONS_MAX).execute(change).await.map(drop)
}

async fn delete_older(change: &mut SqliteConnection, than: Time) -> Result<u64, sqlx::Error> {
    let sql = "DELETE FROM job WHERE key IN \
               (SELECT key FROM job INDEXED BY job_by_time WHERE latest_us < ? ORDER BY latest_us LIMIT ?)";
    let deleted = sqlx::query(sql).bind(than.micros()).bind(EXPIRED_AT_ONCE).execute(change).await?;
    Ok(deleted.rows_affected())
}

async fn delete_of_largest(change: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let largest = "SELECT number, jobs FROM domain WHERE jobs > 0 ORDER BY bytes DESC LIMIT 1";
    let Some((domain, jobs)) = sqlx::query_as::<_, (i64, i64)>(largest).fetch_optional(&mut *change).await?
    else {
        return Ok(0);
    };
    let sql = "DELETE FROM job WHERE key IN \
               (SELECT key FROM job INDEXED BY job_by_domain WHERE domain = ? ORDER BY latest_us LIMIT ?)";
    let most = jobs / DELETED_AT_ONCE + 1;
    let deleted = sqlx::query(sql).bind(domain).bind(most).execute(change).await?;
    Ok(deleted.rows_affected())
}

/// The domain of this name, or all.
async fn domains(
    connection: &mut SqliteConnection,
    name: Option<&str>,
) -> Result<Vec<IndexedDomain>, sqlx::Error> {
    let sql = "SELECT name, complete_us, jobs FROM domain WHERE ?1 IS NULL OR name = ?1 ORDER BY name";
    let rows: Vec<(String, Option<i64>, i64)> = sqlx::query_as(sql).bind(name).fetch_all(connection).await?;
    let domain = |(domain, complete, jobs): (String, Option<i64>, i64)| IndexedDomain {
        domain,
        jobs: jobs.cast_unsigned(),
        complete: complete.map(|micros| UnixTime(Time::from_micros(micros))),
    };
    Ok(rows.into_iter().map(domain).collect())
}
