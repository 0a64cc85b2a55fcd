//! The store: changes are applied by one writer, pages are read by as many readers as ask.
//!
//! Shell. Not here: the queries themselves (`filter`), the rows (`keeping`, `row`).

use crate::amounts;
use crate::answer::{Error, Figures, Page, Place, Query};
use crate::database::{PAGE_LEN_BYTES, explained, map, open_reader, open_writer, set_budget, used_pages};
use crate::filter::{Source, range, sources};
use crate::importing::{self, Import, Limits};
use crate::keeping::{apply, delete_older, delete_oldest, note_copied};
use crate::row::{call_of, latest_us};
use log_filters::join::changes::CallChanges;
use sqlx::{Connection, SqliteConnection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell, Semaphore, SemaphorePermit};
use wire::api::calls::CallOrder;
use wire::api::job_amount::JobAmount;
use wire::api::job_import::JobsImported;
use wire::api::jobs::Job;
use wire::call::{Call, StoredCall};
use wire::name_match::has_wildcard;
use wire::report::calls::{CallPosition, Calls};
use wire::time::Time;

/// Most matching calls that are counted.
pub const COUNT_MAX: u64 = 10_000;

/// What one query may read, in thousands of steps of the database: some seconds.
const PAGE_BUDGET: u32 = 200_000;
/// What counting may read, likewise: some tenths of a second.
const COUNT_BUDGET: u32 = 5_000;

/// Most queries that are read at a time; others wait.
const READERS_MAX: usize = 2;

/// Most names that are looked at for a pattern, and most that are then read by their index.
const NAMES_LOOKED_AT: i64 = 2_000;
const NAMES_MAX: usize = 16;

/// Most calls that are read by a range of ids and sorted.
const IDS_MAX: i64 = 20_000;

/// Limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimit {
    /// Disk space, in bytes.
    pub bytes: u64,
    /// Time after which calls are deleted, by the clock and by the newest call: both must be later by so much.
    pub age: Duration,
}

/// A future answer, boxed: the compiler does not see that those of the database can be sent to another thread,
/// whatever their lifetimes.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Ended calls in one file.
pub struct CallStore {
    path: PathBuf,
    pages_max: u64,
    age: Duration,
    writer: Mutex<Option<SqliteConnection>>,
    readers: Semaphore,
    deleted: AtomicU64,
    is_current: OnceCell<()>,
    is_behind: AtomicBool,
}

impl CallStore {
    /// A store in this file, within these limits. Nothing is opened before it is used.
    #[must_use]
    pub fn new(path: &Path, limit: CallLimit) -> CallStore {
        CallStore {
            path: path.to_owned(),
            pages_max: limit.bytes / PAGE_LEN_BYTES,
            age: limit.age,
            writer: Mutex::new(None),
            readers: Semaphore::new(READERS_MAX),
            deleted: AtomicU64::new(0),
            is_current: OnceCell::new(),
            is_behind: AtomicBool::new(false),
        }
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Applies changes, all or none. Deletes the oldest calls if the space is used up or their time is over.
    ///
    /// # Errors
    /// If the database refuses, as with a full disk; the changes can be applied again later.
    pub fn apply<'a>(&'a self, changes: &'a CallChanges, now: Time) -> Answer<'a, Figures> {
        Box::pin(self.apply_now(changes, None, now))
    }

    /// Applies calls of another store, and notes up to where it is copied.
    ///
    /// # Errors
    /// As [`CallStore::apply`].
    pub fn copy(&self, calls: Calls, now: Time) -> Answer<'_, Figures> {
        let Calls { position, calls, .. } = calls;
        let changes = CallChanges { left: calls, ..CallChanges::default() };
        Box::pin(async move { self.apply_now(&changes, Some(position), now).await })
    }

    /// Stores jobs of accounting files, all of this call or none; each is stored once, however often it is given.
    ///
    /// # Errors
    /// As [`CallStore::apply`].
    pub fn import<'a>(
        &'a self,
        jobs: &'a [StoredCall],
        how: &'a Import,
        now: Time,
    ) -> Answer<'a, (JobsImported, Figures)> {
        Box::pin(async move {
            let mut writer = self.writer.lock().await;
            let mut connection = match writer.take() {
                Some(connection) => connection,
                None => self.open_writer().await?,
            };
            // A call takes about half a page at most; a part of the space is left for what logs state.
            let room =
                2 * (self.pages_max - self.pages_max / 16).saturating_sub(used_pages(&mut connection).await?);
            let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
            let imported =
                importing::import(&mut change, jobs, how, &Limits { now, age: self.age, room }).await?;
            match how.is_trial {
                true => change.rollback().await?,
                false => change.commit().await?,
            }
            let figures = self.figures(&mut connection).await?;
            *writer = Some(connection);
            Ok((imported, figures))
        })
    }

    async fn apply_now(
        &self,
        changes: &CallChanges,
        copied: Option<CallPosition>,
        now: Time,
    ) -> Result<Figures, Error> {
        let mut writer = self.writer.lock().await;
        let mut connection = match writer.take() {
            Some(connection) => connection,
            None => self.open_writer().await?,
        };
        // After an error the connection is closed, and the next change opens another.
        self.make_room(&mut connection, changes).await?;
        let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
        apply(&mut change, changes).await?;
        if let Some(position) = copied {
            note_copied(&mut change, position).await?;
        }
        let expired = delete_older(&mut change, now, self.age).await?;
        change.commit().await?;
        if self.is_behind() {
            let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
            let is_behind = amounts::fill(&mut change).await?;
            change.commit().await?;
            self.is_behind.store(is_behind, Ordering::Relaxed);
        }
        self.deleted.fetch_add(expired, Ordering::Relaxed);
        let figures = self.figures(&mut connection).await?;
        *writer = Some(connection);
        Ok(figures)
    }

    /// Deletes the oldest calls until the changes have room.
    async fn make_room(&self, connection: &mut SqliteConnection, changes: &CallChanges) -> Result<(), Error> {
        // A call takes about half a page at most, with its indexes.
        let wanted = changes.left.len() as u64 / 2 + self.pages_max / 16;
        while used_pages(connection).await?.saturating_add(wanted) > self.pages_max {
            let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
            let deleted = delete_oldest(&mut change).await?;
            change.commit().await?;
            self.deleted.fetch_add(deleted, Ordering::Relaxed);
            if deleted == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn figures(&self, connection: &mut SqliteConnection) -> Result<Figures, Error> {
        let oldest: Option<i64> =
            sqlx::query_scalar("SELECT MIN(latest_us) FROM call").fetch_one(&mut *connection).await?;
        Ok(Figures {
            used_bytes: used_pages(connection).await? * PAGE_LEN_BYTES,
            oldest: oldest.filter(|&at| at != i64::MIN).map(Time::from_micros),
            deleted: self.deleted.load(Ordering::Relaxed),
        })
    }

    /// Brings a database of an earlier version up to date, which has not all that filters look at. If that fails, what is
    /// there is read.
    async fn bring_up_to_date(&self) {
        let open = async || {
            let mut writer = self.writer.lock().await;
            if writer.is_none() {
                *writer = Some(self.open_writer().await?);
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = self.is_current.get_or_try_init(open).await {
            tracing::debug!(%error, "the database of calls cannot be brought up to date");
        }
    }

    async fn open_writer(&self) -> Result<SqliteConnection, Error> {
        let mut connection = open_writer(&self.path, self.pages_max).await?;
        self.is_behind.store(amounts::are_missing(&mut connection).await?, Ordering::Relaxed);
        Ok(connection)
    }

    /// Whether jobs that an earlier version stored have no amounts yet, by which searches choose: each change gives them
    /// to some, also one without calls.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Waits until one more may read.
    pub(crate) async fn turn(&self) -> SemaphorePermit<'_> {
        self.readers.acquire().await.expect("it is never closed")
    }

    /// Reads at most `limit` of the matching calls after `after`, or those with most of an amount.
    ///
    /// # Errors
    /// If the database cannot be read, or if the query would read too much.
    pub fn page<'a>(&'a self, query: Query<'a>, after: Option<&'a Place>, limit: usize) -> Answer<'a, Page> {
        Box::pin(self.page_now(query, after, limit))
    }

    async fn page_now(&self, query: Query<'_>, after: Option<&Place>, limit: usize) -> Result<Page, Error> {
        if !self.path.exists() {
            return Ok(Page::default());
        }
        self.bring_up_to_date().await;
        let _turn = self.turn().await;
        let mut connection = open_reader(&self.path).await?;
        set_budget(&mut connection, PAGE_BUDGET).await?;
        let sources = chosen_sources(&mut connection, query).await.map_err(explained)?;
        if sources.iter().any(|source| matches!(source, Source::Time | Source::Amounts)) {
            map(&mut connection).await?;
        }
        let (mut found, mut is_all) = (BTreeMap::new(), after.is_none());
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        for source in &sources {
            // What comes after a page that is full already is not read.
            let last = last_of_page(&found, limit, query);
            let mut sql = match query.by.sort {
                Some(amount) => source.largest(query, amount, most),
                None => source.page(query, after, last, most),
            };
            let rows = sql.build().fetch_all(&mut connection).await.map_err(explained)?;
            is_all &= last.is_none() && rows.len() < limit;
            for row in rows {
                let (key, call) = call_of(&row)?;
                found.insert(key, call);
            }
        }
        let total = found.len() as u64;
        let calls = in_order(found.into_values().collect(), query, limit);
        let (total, is_more) = match is_all {
            true => (total, false),
            false => count(&mut connection, query, &sources, calls.len() as u64).await?,
        };
        connection.close().await?;
        Ok(Page { calls, total, is_more })
    }
}

/// Sorts the calls of a page.
fn in_order(mut calls: Vec<Call>, query: Query<'_>, limit: usize) -> Vec<Call> {
    calls.sort_by(|one, other| (latest_us(one), &one.id).cmp(&(latest_us(other), &other.id)));
    match query.by.sort {
        Some(amount) => {
            calls.reverse();
            sort_by_amount(&mut calls, amount, None);
        }
        None if query.params.order == CallOrder::Newest => calls.reverse(),
        None => {}
    }
    calls.truncate(limit);
    calls
}

/// Sorts calls by an amount, the largest first, those without it last; equal ones remain in their order. `now` is for
/// those that have not ended.
pub fn sort_by_amount(calls: &mut Vec<Call>, amount: JobAmount, now: Option<Time>) {
    let with_amount = |call: Call| (amount.of(&Job::from(&call), now), call);
    let mut amounts: Vec<(Option<f64>, Call)> = calls.drain(..).map(with_amount).collect();
    amounts.sort_by(|(one, _), (other, _)| {
        other.unwrap_or(f64::NEG_INFINITY).total_cmp(&one.unwrap_or(f64::NEG_INFINITY))
    });
    calls.extend(amounts.into_iter().map(|(_, call)| call));
}

/// The latest time of the last call of a full page in the order of time.
fn last_of_page(found: &BTreeMap<i64, Call>, limit: usize, query: Query<'_>) -> Option<i64> {
    let at = limit.checked_sub(1).filter(|at| *at < found.len() && query.by.sort.is_none())?;
    let mut times: Vec<i64> = found.values().map(latest_us).collect();
    let (_, last, _) = match query.params.order {
        CallOrder::Newest => times.select_nth_unstable_by(at, |one, other| other.cmp(one)),
        CallOrder::Oldest => times.select_nth_unstable(at),
    };
    Some(*last)
}

/// Counts the matching calls, as far as that is quick.
async fn count(
    connection: &mut SqliteConnection,
    query: Query<'_>,
    sources: &[Source],
    on_page: u64,
) -> Result<(u64, bool), Error> {
    set_budget(connection, COUNT_BUDGET).await?;
    let mut total = 0;
    for source in sources {
        let most = i64::try_from(COUNT_MAX - total + 1).unwrap_or(i64::MAX);
        let counted = source.count(query, most).build_query_scalar::<i64>().fetch_one(&mut *connection).await;
        match counted.map_err(explained) {
            Ok(counted) => total += u64::try_from(counted).unwrap_or(0),
            Err(Error::TooMuch) => return Ok((total.max(on_page), true)),
            Err(error) => return Err(error),
        }
        if total > COUNT_MAX {
            return Ok((COUNT_MAX, true));
        }
    }
    Ok((total, false))
}

/// Returns the sources of a query, after a look at how many names and ids match its patterns.
async fn chosen_sources(
    connection: &mut SqliteConnection,
    query: Query<'_>,
) -> Result<Vec<Source>, sqlx::Error> {
    let params = query.params;
    let names = match &params.name {
        Some(name) if has_wildcard(name) => names(connection, name).await?,
        Some(name) => Some(vec![name.clone()]),
        None => None,
    };
    let chosen = sources(query, names);
    let pattern = params.call.as_deref().filter(|call| has_wildcard(call)).and_then(range);
    if let (Some((from, to)), [Source::Time | Source::Amounts | Source::Index("call_by_product", ..)]) =
        (pattern, chosen.as_slice())
    {
        let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM call WHERE id >= ? AND id < ? LIMIT ?)";
        let few = sqlx::query_scalar::<_, i64>(sql)
            .bind(&from)
            .bind(&to)
            .bind(IDS_MAX)
            .fetch_one(connection)
            .await?;
        if few < IDS_MAX {
            return Ok(vec![Source::Ids(from, to)]);
        }
    }
    Ok(chosen)
}

/// Returns the stored names that match a pattern, if these and those looked at are few.
async fn names(connection: &mut SqliteConnection, pattern: &str) -> Result<Option<Vec<String>>, sqlx::Error> {
    let (from, to) = range(pattern).unwrap_or_else(|| (String::new(), char::MAX.to_string()));
    // Each distinct name is found by one step in the index.
    let sql = "WITH RECURSIVE known (name) AS (
            SELECT (SELECT MIN(name) FROM call WHERE name >= ?1)
            UNION ALL
            SELECT (SELECT MIN(name) FROM call WHERE name > known.name) FROM known
            WHERE known.name IS NOT NULL AND known.name < ?2
            LIMIT ?3
        ) SELECT name, name GLOB ?4 FROM known WHERE name IS NOT NULL AND name < ?2";
    let known: Vec<(String, bool)> = sqlx::query_as(sql)
        .bind(from)
        .bind(to)
        .bind(NAMES_LOOKED_AT)
        .bind(crate::filter::glob(pattern))
        .fetch_all(connection)
        .await?;
    if known.len() + 1 >= usize::try_from(NAMES_LOOKED_AT).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let matching: Vec<String> = known.into_iter().filter(|(_, fits)| *fits).map(|(name, _)| name).collect();
    Ok((matching.len() <= NAMES_MAX).then_some(matching))
}
