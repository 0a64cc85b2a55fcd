//! Connections to the database, and its schema.
//!
//! Shell. Not here: what is read and written.

use crate::answer::Error;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlStr, SqliteConnection};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Changes of the schema, each once and for ever.
const MIGRATIONS: [(&str, &str); 5] = [
    ("calls", include_str!("schema_1_calls.sql")),
    ("copies", include_str!("schema_2_copies.sql")),
    ("filters", include_str!("schema_3_filters.sql")),
    ("jobs", include_str!("schema_4_jobs.sql")),
    ("amounts", include_str!("schema_5_amounts.sql")),
];

/// Size of a page of the database, in bytes.
pub(crate) const PAGE_LEN_BYTES: u64 = 4096;

/// Longest wait for another connection that writes.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// Steps of the database between two checks of a query's budget.
const STEPS: i32 = 1000;

/// Opens the database for writing, creates it if it is missing, and brings an older one up to date.
///
/// `pages_max`: it never grows beyond; a write that would is refused.
pub(crate) async fn open_writer(path: &Path, pages_max: u64) -> Result<SqliteConnection, Error> {
    open_with(path, pages_max, &MIGRATIONS).await
}

/// As [`open_writer`], of a database with these changes of its schema.
pub(crate) async fn open_with(
    path: &Path,
    pages_max: u64,
    migrations: &[(&'static str, &'static str)],
) -> Result<SqliteConnection, Error> {
    create(path).map_err(sqlx::Error::Io)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .auto_vacuum(SqliteAutoVacuum::None)
        .journal_mode(SqliteJournalMode::Wal)
        // A crash of the system may take the last seconds; the calls are still in the journal of events then.
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY_MAX)
        .pragma("cache_size", "-1024")
        .pragma("journal_size_limit", "4194304")
        .disable_statement_logging();
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let numbered = migrations.iter().zip(1..).map(|((name, sql), number)| {
        Migration::new(number, (*name).into(), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    Migrator::with_migrations(numbered.collect()).run_direct(None, &mut connection, false).await?;
    sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages_max}")))
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

/// Creates the file, and its folder, for this user alone; SQLite gives its other files the same rights. The folder around
/// that is not created: a state folder that was removed while its daemon runs could not be put back then.
fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    file.map(drop)
}

/// Opens the database for reading.
pub(crate) async fn open_reader(path: &Path) -> Result<SqliteConnection, Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(BUSY_MAX)
        .disable_statement_logging();
    Ok(SqliteConnection::connect_with(&options).await?)
}

/// Maps the file into memory: for a query that reads a large part of it. One that reads rows here and there is slower so, if
/// they are not in memory yet, as the kernel reads what is around each.
pub(crate) async fn map(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("PRAGMA mmap_size = 1073741824").execute(connection).await.map(drop)
}

/// Bounds what the next statements may read together, in thousands of steps of the database.
pub(crate) async fn set_budget(connection: &mut SqliteConnection, budget: u32) -> Result<(), Error> {
    let mut left = budget;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STEPS, move || {
        left = left.saturating_sub(1);
        left > 0
    });
    Ok(())
}

/// Returns the number of pages with content.
pub(crate) async fn used_pages(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let all: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await?;
    let free: i64 = sqlx::query_scalar("PRAGMA freelist_count").fetch_one(connection).await?;
    Ok(u64::try_from(all - free).unwrap_or(0))
}

/// Returns the error of an exhausted budget as one of its own.
pub(crate) fn explained(error: sqlx::Error) -> Error {
    // SQLITE_INTERRUPT, see https://www.sqlite.org/rescode.html
    let is_interrupt =
        error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "9");
    if is_interrupt { Error::TooMuch } else { Error::Database(error) }
}
