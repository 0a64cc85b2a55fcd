//! Import: jobs of accounting files are stored once, however often they are given.
//!
//! Rules: a job is a stored one if they have a name in common and a moment, as numbers are used again. What is known of
//! a job remains. Nothing is deleted for imported jobs: those without room are refused.
//! Not here: the database (`store`), what is added to a known job (`completing`).

use crate::completing::complete;
use crate::keeping::{delete_row, insert};
use crate::row::{COLUMNS, call_of, latest_us, product_of, stored_call, texts};
use compact_str::{CompactString, format_compact};
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use wire::api::job_import::{JobsImported, Refused, RefusedJob};
use wire::call::job::Fact;
use wire::call::{Call, StoredCall};
use wire::shown::count;
use wire::time::Time;

/// Most calls whose names are looked up at a time, and most names; SQLite allows 32,766 values.
const CALLS_AT_ONCE: usize = 200;
const NAMES_AT_ONCE: usize = 8_000;

/// Most stored calls that are compared at a time: numbers may have been used many times.
const KNOWN_MAX: usize = 20_000;

/// Tolerance for times in whole seconds, in microseconds.
const SECONDS_DIFFER_US: i64 = 2_000_000;

/// Time zones differ by multiples of this, in microseconds, and by so many at most.
const ZONES_DIFFER_US: i64 = 900_000_000;
const ZONES_MAX: i64 = 26 * 4;

/// How jobs are imported.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// Only says what would be done.
    pub is_trial: bool,
    /// What was imported of a job before, and no log states, is replaced.
    pub is_replacing: bool,
    /// Ids that calls of another time have which are not stored.
    pub taken: HashSet<CompactString>,
}

/// Limits of an import.
pub(crate) struct Limits {
    pub(crate) now: Time,
    pub(crate) age: Duration,
    /// How many jobs have room.
    pub(crate) room: u64,
}

/// A stored job.
struct Known {
    key: i64,
    stored: StoredCall,
}

impl Known {
    /// Whether all that is known of it was imported.
    fn was_imported(&self) -> bool {
        self.stored.call.events == 0 && self.stored.call.fact(Fact::ImportedFrom).is_some()
    }
}

/// Stores jobs, within a transaction of the caller.
pub(crate) async fn import(
    to: &mut SqliteConnection,
    jobs: &[StoredCall],
    how: &Import,
    limits: &Limits,
) -> Result<JobsImported, sqlx::Error> {
    // Older ones would be deleted once a job of today is stored.
    let before = limits.now.minus(limits.age).micros();
    let answer = JobsImported::default();
    let mut importing = Importing { how, before, room: limits.room, age: limits.age, answer };
    let mut rest = jobs;
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(distinct(rest));
        importing.chunk(to, chunk).await?;
        rest = later;
    }
    Ok(JobsImported { room: importing.room, ..importing.answer })
}

/// How many of the first calls have no name in common.
fn distinct(calls: &[StoredCall]) -> usize {
    let mut seen = HashSet::new();
    for (at, call) in calls.iter().enumerate() {
        let is_first = names(call).filter(|name| !seen.insert(*name)).count() == 0;
        if at > 0 && (!is_first || at == CALLS_AT_ONCE || seen.len() > NAMES_AT_ONCE) {
            return at;
        }
    }
    calls.len()
}

fn names(call: &StoredCall) -> impl Iterator<Item = &str> {
    std::iter::once(&call.call.id).chain(&call.aliases).map(CompactString::as_str)
}

struct Importing<'a> {
    how: &'a Import,
    /// Calls whose latest time is earlier are not stored, in microseconds.
    before: i64,
    age: Duration,
    room: u64,
    answer: JobsImported,
}

impl Importing<'_> {
    /// Imports jobs without a common name.
    async fn chunk(&mut self, to: &mut SqliteConnection, jobs: &[StoredCall]) -> Result<(), sqlx::Error> {
        let (known, by_name) = known(to, jobs).await?;
        let ids = known.iter().map(|known| &known.stored.call.id).chain(&self.how.taken);
        let mut taken: HashSet<CompactString> = ids.cloned().collect();
        let mut wanted = Vec::new();
        for job in jobs {
            let mut places: Vec<usize> =
                names(job).filter_map(|name| by_name.get(name)).flatten().copied().collect();
            places.sort_unstable();
            places.dedup();
            let same_name: Vec<&Known> = places.into_iter().map(|at| &known[at]).collect();
            if let Some(same) = self.same(&same_name, &job.call) {
                let better = self.better(same, job);
                if better.call == same.stored.call {
                    self.answer.known += 1;
                    continue;
                }
                self.answer.completed += 1;
                let StoredCall { call, aliases, .. } = &same.stored;
                delete_row(to, (same.key, latest_us(call)), &call.hosts, aliases).await?;
                wanted.push(Cow::Owned(better));
            } else if let Some((kind, why)) = self.refusal(&job.call, &same_name) {
                self.answer.refused.push(RefusedJob::new(&job.call.id, kind, why));
            } else {
                (self.answer.stored, self.room) = (self.answer.stored + 1, self.room - 1);
                wanted.push(Cow::Owned(with_free_id(job, &mut taken)));
            }
        }
        insert(to, wanted).await
    }

    /// The stored job that this one is. One that differs by a time zone is not: times of both would be mixed.
    fn same<'k>(&self, same_name: &[&'k Known], job: &Call) -> Option<&'k Known> {
        let shifted = same_name.iter().find(|known| hours_between(&known.stored.call, job).is_some());
        match shifted {
            Some(shifted) => (self.how.is_replacing && shifted.was_imported()).then_some(*shifted),
            None => same_name.iter().find(|known| have_common_moment(&known.stored.call, job)).copied(),
        }
    }

    /// The stored job with what the imported one adds, or in its place.
    fn better(&self, known: &Known, job: &StoredCall) -> StoredCall {
        let mut better = known.stored.clone();
        if self.how.is_replacing && known.was_imported() {
            let id = std::mem::take(&mut better.call.id);
            (better.call, better.first) = (Call { id, ..job.call.clone() }, job.first);
        } else {
            complete(&mut better.call, &job.call);
        }
        better
    }

    /// Why a job that is not known is not stored.
    fn refusal(&self, job: &Call, same_name: &[&Known]) -> Option<(Refused, String)> {
        if latest_us(job) < self.before {
            let days = self.age.as_secs() / 86_400;
            let why =
                format!("calls are stored for {} (call_days below [sensor.history])", count(days, "day"));
            return Some((Refused::TooOld, why));
        }
        let shifted = same_name.iter().find_map(|known| hours_between(&known.stored.call, job));
        if let Some(hours) = shifted {
            let (hours, direction) = (hours.abs(), if hours > 0.0 { "later" } else { "earlier" });
            let why = format!(
                "it is known {hours} h {direction} and otherwise the same: another time zone, of this file or of what is stored"
            );
            return Some((Refused::Shifted, why));
        }
        let why = "the space for calls is used up";
        (self.room == 0).then(|| (Refused::NoRoom, why.to_owned()))
    }
}

/// The job with an id that no stored job has: a number may have been used before.
fn with_free_id(job: &StoredCall, taken: &mut HashSet<CompactString>) -> StoredCall {
    let mut job = job.clone();
    let name = job.call.id.clone();
    let mut life = 2;
    while !taken.insert(job.call.id.clone()) {
        job.call.id = format_compact!("{name}#{life}");
        life += 1;
    }
    if job.call.id != name {
        job.aliases.push(name);
    }
    job
}

/// Returns the stored jobs that have a name of these, and which of them have each name.
async fn known(
    to: &mut SqliteConnection,
    jobs: &[StoredCall],
) -> Result<(Vec<Known>, HashMap<CompactString, Vec<usize>>), sqlx::Error> {
    let mut sql = QueryBuilder::<Sqlite>::new(format!(
        "SELECT {COLUMNS}, c.aliases FROM call c WHERE c.is_job <> 0 AND c.key IN (SELECT key FROM call WHERE id IN ("
    ));
    let push_names = |sql: &mut QueryBuilder<Sqlite>| {
        let mut wanted = sql.separated(", ");
        jobs.iter().flat_map(names).for_each(|name| _ = wanted.push_bind(name.to_owned()));
    };
    push_names(&mut sql);
    sql.push(") UNION SELECT key FROM call_alias WHERE alias IN (");
    push_names(&mut sql);
    sql.push(")) ORDER BY c.latest_us DESC LIMIT ").push_bind(i64::try_from(KNOWN_MAX).unwrap_or(i64::MAX));
    let rows = sql.build().fetch_all(to).await?;
    let mut known = Vec::with_capacity(rows.len());
    let mut by_name: HashMap<CompactString, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let (key, call) = call_of(row)?;
        let stored = stored_call(call, texts(row.try_get("aliases")?));
        // The alias of a copied call may be a number alone, which other products have, too.
        let product = product_of(&stored.call.id);
        for name in names(&stored).filter(|name| product_of(name) == product) {
            by_name.entry(name.into()).or_default().push(at);
        }
        known.push(Known { key, stored });
    }
    Ok((known, by_name))
}

fn have_common_moment(one: &Call, other: &Call) -> bool {
    let span = |call: &Call| {
        (call.earliest().map_or(0, Time::micros), call.latest().map_or(i64::MAX / 2, Time::micros))
    };
    let ((from, to), (other_from, other_to)) = (span(one), span(other));
    from <= other_to + SECONDS_DIFFER_US && other_from <= to + SECONDS_DIFFER_US
}

/// How much later a job is known that is the same but for the time zone, in hours.
fn hours_between(known: &Call, job: &Call) -> Option<f64> {
    let span = |call: &Call| Some((call.started?.micros(), call.ended?.micros()));
    let ((from, to), (job_from, job_to)) = (span(known)?, span(job)?);
    let later = from - job_from;
    let zones = (later + ZONES_DIFFER_US / 2).div_euclid(ZONES_DIFFER_US);
    let is_whole = (later - zones * ZONES_DIFFER_US).abs() <= SECONDS_DIFFER_US;
    let is_as_long = ((to - from) - (job_to - job_from)).abs() <= SECONDS_DIFFER_US;
    // The log of a scheduler may have neither.
    let fits = |known: &str, job: &str| known.is_empty() || known == job;
    let is_same =
        fits(&known.user, &job.user) && fits(&known.name, &job.name) && known.outcome == job.outcome;
    #[expect(clippy::cast_precision_loss, reason = "some hours")]
    let hours = zones as f64 / 4.0;
    (is_whole && is_as_long && is_same && zones != 0 && zones.abs() <= ZONES_MAX).then_some(hours)
}
