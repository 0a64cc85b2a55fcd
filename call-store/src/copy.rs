//! Copies of calls: what follows in this store for another one, and how far other stores are copied.
//!
//! Shell. Rule: calls are copied in the order of their keys, so that a position says which of them are copied. Not
//! here: when they are fetched, and what is done with a call that is stored already (`keeping`).

use crate::answer::Error;
use crate::database::open_reader;
use crate::row::{COLUMNS, call_of, stored_call, texts};
use crate::store::CallStore;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};
use std::pin::Pin;
use wire::call::StoredCall;
use wire::report::StoreKey;
use wire::report::calls::{CallPosition, Calls, FetchCalls};

/// Most calls of an answer.
const CALLS_MAX: usize = 1_000;

/// Longest answer, in bytes: a call beyond is left out.
const ANSWER_LEN_MAX_BYTES: usize = 1 << 20;

impl CallStore {
    /// Reads calls for another store. See [`Calls::nothing`] for a store without any.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn following<'a>(
        &'a self,
        fetch: &'a FetchCalls,
    ) -> Pin<Box<dyn Future<Output = Result<Calls, Error>> + Send + 'a>> {
        Box::pin(async move {
            if !self.path().exists() {
                return Ok(Calls::nothing());
            }
            let _turn = self.turn().await;
            let mut connection = open_reader(self.path()).await?;
            let calls = following(&mut connection, fetch).await?;
            connection.close().await?;
            Ok(calls)
        })
    }

    /// Returns how far other stores are copied.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn positions(&self) -> Pin<Box<dyn Future<Output = Result<Vec<CallPosition>, Error>> + Send + '_>> {
        Box::pin(async move {
            if !self.path().exists() {
                return Ok(Vec::new());
            }
            let _turn = self.turn().await;
            let mut connection = open_reader(self.path()).await?;
            let rows = sqlx::query_as("SELECT store, key FROM copied").fetch_all(&mut connection).await?;
            connection.close().await?;
            Ok(rows.into_iter().map(position).collect())
        })
    }
}

fn position((store, key): (i64, i64)) -> CallPosition {
    CallPosition { store: StoreKey(store.cast_unsigned()), key: key.cast_unsigned() }
}

async fn following(connection: &mut SqliteConnection, fetch: &FetchCalls) -> Result<Calls, Error> {
    let store: i64 = sqlx::query_scalar("SELECT store FROM identity").fetch_one(&mut *connection).await?;
    let store = StoreKey(store.cast_unsigned());
    let from = fetch.held.iter().find(|held| held.store == store).map_or(0, |held| held.key);
    let mut answer = Calls { position: CallPosition { store, key: from }, calls: Vec::new(), is_end: true };
    let sql = format!("SELECT {COLUMNS}, c.aliases FROM call c WHERE c.key > ? ORDER BY c.key LIMIT ?");
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(from.cast_signed())
        .bind(i64::try_from(CALLS_MAX).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    answer.is_end = rows.len() < CALLS_MAX;
    let mut room = usize::try_from(fetch.len_bytes).unwrap_or(usize::MAX).min(ANSWER_LEN_MAX_BYTES / 2);
    for row in &rows {
        let (key, call) = call_of(row)?;
        let call = stored_call(call, texts(row.try_get("aliases")?));
        let len = len_bytes(&call);
        if len > room && !answer.calls.is_empty() {
            answer.is_end = false;
            break;
        }
        answer.position.key = key.cast_unsigned();
        room = room.saturating_sub(len);
        match len <= ANSWER_LEN_MAX_BYTES {
            true => answer.calls.push(call),
            false => tracing::warn!(id = %call.call.id, len, "a call is too long to be copied"),
        }
    }
    Ok(answer)
}

/// About as long as the call is in an answer.
fn len_bytes(StoredCall { call, aliases, .. }: &StoredCall) -> usize {
    let texts =
        [&call.id, &call.job, &call.name, &call.user, &call.from, &call.code, &call.signal, &call.reason];
    let lists = [&call.offers, &call.hosts, aliases];
    let all = texts.into_iter().chain(lists.into_iter().flatten());
    let details = call.details.as_ref().map_or(0, |details| {
        let runs =
            details.runs.iter().map(|run| 40 + run.hosts.iter().map(|host| host.len() + 1).sum::<usize>());
        let usage = details.usage.iter().map(|usage| 80 + usage.host.len() + usage.figures.len() * 6);
        details.facts.len() * 12 + details.lines.len() * 32 + runs.sum::<usize>() + usage.sum::<usize>()
    });
    all.map(|text| text.len() + 2).sum::<usize>() + details + 64
}
