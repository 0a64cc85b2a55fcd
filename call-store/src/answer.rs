//! Answers of the store, and reasons why there is none.
//!
//! Pure. Not here: how they are found (`store`).

use compact_str::CompactString;
use wire::api::calls::CallsParams;
use wire::api::job_amount::ByAmount;
use wire::call::Call;
use wire::time::Time;

/// Reason why calls could not be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused.
    #[error("{0}")]
    Database(#[from] sqlx::Error),
    /// The schema is not one that this version knows.
    #[error("{0}; if a later version wrote it, start that one, or move the file away to begin a new one")]
    Schema(#[from] sqlx::migrate::MigrateError),
    /// The query would read too much.
    #[error(
        "too many stored calls were read without an end: expected a query that fewer of them match in part; \
         give a time, a user, a host, a job or an outcome"
    )]
    TooMuch,
    /// A page of jobs has lists that do not fit each other, or are too long.
    #[error("the page of jobs is damaged: its lists do not fit each other, or are too long")]
    Damaged,
    /// The cursor is none that an answer had.
    #[error("cursor: expected one as an answer gave it in `next`")]
    Cursor,
}

/// Users whose calls are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Owners {
    /// All.
    #[default]
    All,
    /// The user with one of these names, as `user` of a call: none if there is no name.
    Only(Vec<String>),
}

impl Owners {
    /// Whether calls of this user are read.
    #[must_use]
    pub fn include(&self, user: &str) -> bool {
        match self {
            Owners::All => true,
            Owners::Only(names) => names.iter().any(|name| name == user),
        }
    }
}

/// What is read.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Filters and order; the limit and the cursor are not looked at.
    pub params: &'a CallsParams,
    /// Amounts to choose and sort by; if any, only jobs match.
    pub by: &'a ByAmount,
    /// Whose calls.
    pub owners: &'a Owners,
}

static NO_AMOUNT: ByAmount = ByAmount { conditions: Vec::new(), sort: None };

impl<'a> Query<'a> {
    /// Reads matching calls of all users, whatever their amounts.
    #[must_use]
    pub fn of_all(params: &'a CallsParams) -> Query<'a> {
        Query::of(params, &Owners::All)
    }

    /// Reads matching calls of these users, whatever their amounts.
    #[must_use]
    pub fn of(params: &'a CallsParams, owners: &'a Owners) -> Query<'a> {
        Query { params, by: &NO_AMOUNT, owners }
    }
}

/// Place of a call in the order by its latest time, then its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its latest time, if any is known.
    pub latest: Option<Time>,
    /// Its id.
    pub id: CompactString,
}

/// Stored calls of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// At most as many as asked for, in the order of the query.
    pub calls: Vec<Call>,
    /// Number of matching calls on all pages, or of those that were counted.
    pub total: u64,
    /// Whether there may be more than `total`.
    pub is_more: bool,
}

/// Size of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Disk space in use, in bytes.
    pub used_bytes: u64,
    /// Latest time of the oldest stored call.
    pub oldest: Option<Time>,
    /// Number of calls deleted because the space was used up.
    pub deleted: u64,
}
