//! The filters of a query as SQL, and the index by which its rows are read.
//!
//! Pure. Not here: running it (`store`).

use crate::answer::{Owners, Place, Query};
use crate::row::COLUMNS;
use sqlx::{QueryBuilder, Sqlite};
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::job_amount::{Condition, JobAmount};
use wire::call::State;
use wire::event::Outcome;
use wire::name_match::{has_wildcard, is_wildcard};
use wire::time::Time;

/// Tables, and the columns of theirs that have an index in the order of time.
const HOSTS: (&str, &str) = ("call_host", "host");
const ALIASES: (&str, &str) = ("call_alias", "alias");
const USERS: (&str, &str) = ("call", "user");
const NAMES: (&str, &str) = ("call", "name");
const OUTCOMES: (&str, &str) = ("call", "outcome");

/// The indexes of jobs by account and by queue.
const BY_ACCOUNT: &str = "call_by_account";
const BY_QUEUE: &str = "call_by_queue";

/// The index of calls by user, and that of those that did not end well.
const BY_USER: &str = "call_by_user";
const NOT_OK: &str = "call_not_ok";

/// Where rows are read, in the order of their latest time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// All calls.
    Time,
    /// All jobs, by their amounts.
    Amounts,
    /// Calls that have not ended, as far as anything showed.
    NotEnded,
    /// The rows of an index that have this value, in this column.
    Index(&'static str, &'static str, String),
    /// Calls with an id from the first text on and before the second.
    Ids(String, String),
    /// Calls that ran on this host.
    Host(String),
    /// Calls that have this alias.
    Alias(String),
}

/// Returns the sources whose rows together are all that may match. `names` are the known names that match the
/// pattern of the query, if these are few.
pub(crate) fn sources(query: Query<'_>, names: Option<Vec<String>>) -> Vec<Source> {
    let Query { params, by, owners } = query;
    if *owners == Owners::Only(Vec::new()) {
        return Vec::new();
    }
    let index = |index, column, value: &str| Source::Index(index, column, value.to_owned());
    if let Some(call) = params.call.as_deref().filter(|call| !has_wildcard(call)) {
        return vec![index("call_by_id", "id", call), Source::Alias(call.to_owned())];
    }
    if let Some(job) = &params.job {
        return vec![Source::Alias(job.clone())];
    }
    if let Some(host) = &params.on_host {
        return vec![Source::Host(host.clone())];
    }
    if params.state.is_some_and(|state| state != State::Ended) {
        return vec![Source::NotEnded];
    }
    if let Some(names) = names {
        return names.iter().map(|name| index("call_by_name", "name", name)).collect();
    }
    let is_ended_badly = !params.outcome.is_empty() && !params.outcome.contains(&Outcome::Ok);
    let of_user = |user: &String| index(if is_ended_badly { NOT_OK } else { BY_USER }, "user", user);
    if let Some(user) = &params.user {
        return vec![of_user(user)];
    }
    if let Owners::Only(users) = owners {
        return users.iter().map(of_user).collect();
    }
    if let Some(account) = &params.account {
        return vec![index(BY_ACCOUNT, "account", account)];
    }
    if !params.outcome.is_empty() {
        let outcomes = Outcome::ALL.iter().filter(|outcome| params.outcome.contains(outcome));
        return outcomes.map(|outcome| index("call_by_outcome", "outcome", outcome.as_str())).collect();
    }
    if let Some(queue) = &params.queue {
        return vec![index(BY_QUEUE, "queue", queue)];
    }
    match params.call.as_deref().and_then(|call| prefix(call).split_once([':', '/'])) {
        Some((product, _)) => vec![index("call_by_product", "product", product)],
        None if !by.is_none() => vec![Source::Amounts],
        None => vec![Source::Time],
    }
}

/// Returns the range of texts that start as the pattern does; `None` if it starts with a wildcard.
pub(crate) fn range(pattern: &str) -> Option<(String, String)> {
    let prefix = prefix(pattern);
    let end = format!("{prefix}{}", char::MAX);
    (!prefix.is_empty()).then(|| (prefix.to_owned(), end))
}

/// Returns the part of a pattern before its first wildcard.
fn prefix(pattern: &str) -> &str {
    pattern.split(is_wildcard).next().unwrap_or_default()
}

/// Returns the pattern as `GLOB` has it.
pub(crate) fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    for char in pattern.chars() {
        match char {
            char if is_wildcard(char) => glob.push('*'),
            '?' | '[' => glob.extend(['[', char, ']']),
            char => glob.push(char),
        }
    }
    glob
}

impl Source {
    /// Adds `SELECT … FROM … WHERE …` of the rows that match, without the page. Other columns than those of the
    /// source's index are read of matching rows only, if they are requested.
    fn push_select(&self, sql: &mut QueryBuilder<Sqlite>, columns: Option<&str>, query: Query<'_>) {
        sql.push(format!("SELECT {} FROM ", columns.unwrap_or("1")));
        let needs_row =
            columns.is_some_and(|columns| columns.starts_with("c.")) || self.filters_by_row(query);
        let own = self.table();
        // Few columns are read to see if a job meets the conditions.
        let amounts = match query.by.is_none() || *self == Source::Amounts {
            true => String::new(),
            false => {
                format!(
                    " CROSS JOIN call_amounts AS a ON a.latest_us = {own}.latest_us AND a.key = {own}.key"
                )
            }
        };
        let row =
            if needs_row { format!(" CROSS JOIN call AS c ON c.key = {own}.key") } else { String::new() };
        let by = |sql: &mut QueryBuilder<Sqlite>, (table, column): (&str, &str), value: &str| {
            sql.push(format!("{table} AS i{amounts}{row} WHERE i.{column} = ")).push_bind(value.to_owned());
        };
        match self {
            Source::Time => {
                sql.push(format!("call AS c INDEXED BY call_by_time{amounts} WHERE TRUE"));
            }
            Source::Amounts => {
                sql.push(format!("call_amounts AS a{row} WHERE TRUE"));
            }
            Source::NotEnded => {
                // The condition is that of the index, word for word.
                sql.push(format!("call AS c INDEXED BY call_not_ended{amounts} WHERE c.state <> 'ended'"));
            }
            Source::Index(index, column, value) => {
                sql.push(format!("call AS c INDEXED BY {index}{amounts} WHERE c.{column} = "));
                sql.push_bind(value.clone());
                // The condition is that of the index, word for word.
                match *index {
                    NOT_OK => _ = sql.push(" AND c.outcome <> 'ok'"),
                    BY_ACCOUNT => _ = sql.push(" AND c.account <> ''"),
                    BY_QUEUE => _ = sql.push(" AND c.queue <> ''"),
                    _ => {}
                }
            }
            Source::Ids(from, to) => {
                sql.push(format!("call AS c INDEXED BY call_by_id{amounts} WHERE c.id >= "))
                    .push_bind(from.clone());
                sql.push(" AND c.id < ").push_bind(to.clone());
            }
            Source::Host(host) => by(sql, HOSTS, host),
            Source::Alias(alias) => by(sql, ALIASES, alias),
        }
        self.push_filters(sql, query);
        if let Owners::Only(users) = query.owners {
            self.push_known(sql, USERS, users);
        }
    }

    /// The table by whose columns `latest_us` and `key` rows are found in the order of time.
    fn table(&self) -> &'static str {
        match self {
            Source::Time | Source::NotEnded | Source::Index(..) | Source::Ids(..) => "c",
            Source::Amounts => "a",
            Source::Host(_) | Source::Alias(_) => "i",
        }
    }

    /// Whether a filter looks at the row of a call, and not only at indexes.
    fn filters_by_row(&self, query: Query<'_>) -> bool {
        let CallsParams { call, name, state, account, queue, jobs_only, .. } = query.params;
        let by_job = account.is_some() || queue.is_some() || (*jobs_only && query.by.is_none());
        by_job || call.is_some() || name.as_deref().is_some_and(has_wildcard) || state.is_some()
    }

    /// Adds a filter by user or outcome: what is read by host or by the index that has both has the values.
    fn push_known<T: AsRef<str>>(&self, sql: &mut QueryBuilder<Sqlite>, of: (&str, &str), values: &[T]) {
        let column = match self {
            Source::Host(_) => format!("i.{}", of.1),
            Source::Index(NOT_OK, ..) => format!("c.{}", of.1),
            Source::Time
            | Source::Amounts
            | Source::NotEnded
            | Source::Index(..)
            | Source::Ids(..)
            | Source::Alias(_) => {
                self.push_indexed(sql, of, values);
                return;
            }
        };
        sql.push(format!(" AND ({column} IN ("));
        let mut list = sql.separated(", ");
        for value in values {
            list.push_bind(value.as_ref().to_owned());
        }
        sql.push(")");
        if matches!(self, Source::Host(_)) {
            // A row from before has no value.
            sql.push(format!(" OR {column} IS NULL"));
            self.push_indexed(sql, of, values);
        }
        sql.push(")");
    }

    /// Adds a filter for rows that have one of these values in an index: it is quicker to look there than at
    /// the row.
    fn push_indexed<T: AsRef<str>>(
        &self,
        sql: &mut QueryBuilder<Sqlite>,
        (table, column): (&str, &str),
        values: &[T],
    ) {
        let index = if table == "call" { format!(" INDEXED BY call_by_{column}") } else { String::new() };
        sql.push(format!(" AND EXISTS (SELECT 1 FROM {table} AS x{index} WHERE x.{column} IN ("));
        let mut list = sql.separated(", ");
        for value in values {
            list.push_bind(value.as_ref().to_owned());
        }
        let own = self.table();
        sql.push(format!(") AND x.latest_us = {own}.latest_us AND x.key = {own}.key)"));
    }

    fn push_filters(&self, sql: &mut QueryBuilder<Sqlite>, query: Query<'_>) {
        let CallsParams { call, name, job, user, on_host, state, outcome, since, until, .. } = query.params;
        self.push_job_filters(sql, query);
        let own = self.table();
        if let Some(since) = since {
            sql.push(format!(" AND {own}.latest_us >= ")).push_bind(since.0.micros());
        }
        if let Some(until) = until {
            sql.push(format!(" AND {own}.latest_us <= ")).push_bind(until.0.micros());
        }
        match call {
            Some(call) if has_wildcard(call) => {
                sql.push(" AND c.id GLOB ").push_bind(glob(call));
            }
            // It is found by its id already.
            Some(call) if matches!(self, Source::Alias(_)) => {
                sql.push(" AND c.id <> ").push_bind(call.clone());
            }
            Some(_) | None => {}
        }
        let is_by = |sought: &str| matches!(self, Source::Index(index, ..) if *index == sought);
        // The sources by name are all that match.
        match name.as_ref().filter(|_| !is_by("call_by_name")) {
            Some(name) if has_wildcard(name) => {
                sql.push(" AND c.name GLOB ").push_bind(glob(name));
            }
            Some(name) => self.push_indexed(sql, NAMES, &[name]),
            None => {}
        }
        if let Some(user) = user.as_ref().filter(|_| !is_by(BY_USER) && !is_by(NOT_OK)) {
            self.push_known(sql, USERS, &[user]);
        }
        if let Some(state) = state {
            sql.push(" AND c.state = ").push_bind(state.as_str());
        }
        if !outcome.is_empty() && !is_by("call_by_outcome") {
            let words: Vec<&str> = outcome.iter().map(|outcome| outcome.as_str()).collect();
            self.push_known(sql, OUTCOMES, &words);
        }
        if let Some(host) = on_host.as_ref().filter(|_| !matches!(self, Source::Host(_))) {
            self.push_indexed(sql, HOSTS, &[host]);
        }
        let is_by_alias = matches!(self, Source::Alias(_)) && call.is_none();
        if let Some(job) = job.as_ref().filter(|_| !is_by_alias) {
            self.push_indexed(sql, ALIASES, &[job]);
        }
    }

    fn push_job_filters(&self, sql: &mut QueryBuilder<Sqlite>, Query { params, by, .. }: Query<'_>) {
        for (column, value) in [("account", &params.account), ("queue", &params.queue)] {
            if let Some(value) = value {
                sql.push(format!(" AND c.{column} = ")).push_bind(value.clone());
            }
        }
        // Only jobs have amounts.
        if params.jobs_only && by.is_none() {
            sql.push(" AND c.is_job = 1");
        }
        for Condition { amount, comparison, value } in &by.conditions {
            sql.push(format!(" AND a.{amount} {} ", comparison.sign())).push_bind(*value);
        }
        if let Some(amount) = by.sort {
            sql.push(format!(" AND a.{amount} IS NOT NULL"));
        }
    }

    /// The rows of a page: at most `limit` after `after` and not after `last`, if that is given, in the order of the
    /// query.
    pub(crate) fn page(
        &self,
        query: Query<'_>,
        after: Option<&Place>,
        last: Option<i64>,
        limit: i64,
    ) -> QueryBuilder<Sqlite> {
        let mut sql = QueryBuilder::new("");
        self.push_select(&mut sql, Some(COLUMNS), query);
        let (than, order) = match query.params.order {
            CallOrder::Newest => ("<", "DESC"),
            CallOrder::Oldest => (">", "ASC"),
        };
        let latest = format!("{}.latest_us", self.table());
        if let Some(Place { latest: at, id }) = after {
            let at = at.map_or(i64::MIN, Time::micros);
            sql.push(format!(" AND {latest} {than}= ")).push_bind(at);
            sql.push(format!(" AND ({latest} {than} ")).push_bind(at);
            sql.push(format!(" OR c.id {than} ")).push_bind(id.to_string()).push(")");
        }
        if let Some(last) = last {
            let until = if than == "<" { ">=" } else { "<=" };
            sql.push(format!(" AND {latest} {until} ")).push_bind(last);
        }
        sql.push(format!(" ORDER BY {latest} {order}, c.id {order} LIMIT ")).push_bind(limit);
        sql
    }

    /// The rows with most of an amount, at most `limit`, in any order.
    pub(crate) fn largest(&self, query: Query<'_>, amount: JobAmount, limit: i64) -> QueryBuilder<Sqlite> {
        let own = self.table();
        let mut sql = QueryBuilder::new(format!("SELECT {COLUMNS} FROM ("));
        self.push_select(&mut sql, Some(&format!("{own}.key AS key, a.{amount} AS amount")), query);
        sql.push(format!(" ORDER BY amount DESC, {own}.latest_us DESC LIMIT ")).push_bind(limit);
        sql.push(") AS largest CROSS JOIN call AS c ON c.key = largest.key");
        sql
    }

    /// The number of rows that match, counted up to `most`.
    pub(crate) fn count(&self, query: Query<'_>, most: i64) -> QueryBuilder<Sqlite> {
        let mut sql = QueryBuilder::new("SELECT COUNT(*) FROM (");
        self.push_select(&mut sql, None, query);
        sql.push(" LIMIT ").push_bind(most).push(")");
        sql
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::job_amount::ByAmount;

    #[test]
    fn what_is_no_wildcard_here_is_none_there() {
        assert_eq!(glob("a*b…c?[d]"), "a*b*c[?][[]d]");
        assert_eq!(range("slurm:1*"), Some(("slurm:1".to_owned(), format!("slurm:1{}", char::MAX))));
        assert_eq!(range("*1"), None);
    }

    #[test]
    fn the_most_selective_filter_chooses_the_index() {
        let by = ByAmount::default();
        let sources =
            |params: &CallsParams, names| sources(Query { params, by: &by, owners: &Owners::All }, names);
        let all = CallsParams::default();
        assert_eq!(sources(&all, None), [Source::Time]);
        let user = CallsParams { user: Some("ada".to_owned()), ..all.clone() };
        assert_eq!(sources(&user, None), [Source::Index("call_by_user", "user", "ada".to_owned())]);
        let badly = |outcome: &[Outcome]| CallsParams { outcome: outcome.to_vec(), ..user.clone() };
        let of_ada = |index| [Source::Index(index, "user", "ada".to_owned())];
        assert_eq!(sources(&badly(&[Outcome::Failed, Outcome::Timeout]), None), of_ada("call_not_ok"));
        assert_eq!(sources(&badly(&[Outcome::Failed, Outcome::Ok]), None), of_ada("call_by_user"));
        let host = CallsParams { on_host: Some("wn1".to_owned()), ..user };
        assert_eq!(sources(&host, None), [Source::Host("wn1".to_owned())]);
        let product = CallsParams { call: Some("slurm/a:*7".to_owned()), ..all.clone() };
        assert_eq!(
            sources(&product, None),
            [Source::Index("call_by_product", "product", "slurm".to_owned())]
        );
        assert_eq!(sources(&all, Some(Vec::new())), [], "no name matches");
    }
}
