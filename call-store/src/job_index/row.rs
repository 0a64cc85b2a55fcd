//! A job of the index as a row.
//!
//! Pure. Not here: the schema (`schema_1_jobs.sql`).

use crate::row::{json, texts};
use sqlx::query_builder::Separated;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite};
use wire::api::UnixTime;
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// What a row takes beside its texts, in bytes.
const ROW_BYTES: usize = 200;

/// Columns of [`push_values`], in its order.
pub(super) const WRITTEN: &str = "domain, id, job, name, user, queue, outcome, reason, array_job, array_task, het_job, \
    het_offset, submitted_us, started_us, ended_us, latest_us, hosts, nodes, tries, size";

/// What is replaced in the row of a job that is stored already.
pub(super) const REPLACED: &str = "job = excluded.job, name = excluded.name, user = excluded.user, \
    queue = excluded.queue, outcome = excluded.outcome, reason = excluded.reason, array_job = excluded.array_job, \
    array_task = excluded.array_task, het_job = excluded.het_job, het_offset = excluded.het_offset, \
    submitted_us = excluded.submitted_us, started_us = excluded.started_us, ended_us = excluded.ended_us, \
    latest_us = excluded.latest_us, hosts = excluded.hosts, nodes = excluded.nodes, tries = excluded.tries, size = excluded.size";

/// Columns of [`job_of`], in its order, of the tables named `j` and `d`.
pub(super) const COLUMNS: &str = "d.name, j.id, j.job, j.name, j.user, j.queue, j.outcome, j.reason, j.array_job, \
    j.array_task, j.het_job, j.het_offset, j.submitted_us, j.started_us, j.ended_us, j.hosts, j.nodes, j.tries, \
    j.latest_us";

/// The latest time of a job, in microseconds, by which it is sorted and expires: now if it has none or one in the future.
fn latest_us(job: &Job, now: Time) -> i64 {
    let latest = job.submitted.max(job.started).max(job.ended);
    latest.map_or(now, |time| time.0.min(now)).micros()
}

/// Approximate disk space of a job, in bytes.
pub(super) fn size(job: &Job) -> usize {
    let texts = [&job.id, &job.job, &job.name, &job.user, &job.queue, &job.reason, &job.array_job];
    let texts = texts.into_iter().chain(&job.hosts);
    ROW_BYTES + texts.map(|text| text.len() + 3).sum::<usize>()
}

/// The earliest time of a job, in microseconds; the smallest integer if it has none.
pub(super) fn earliest_us(job: &Job) -> i64 {
    let times = [job.submitted, job.started, job.ended].into_iter().flatten();
    times.map(|time| time.0.micros()).min().unwrap_or(i64::MIN)
}

/// Adds the values of a job.
pub(super) fn push_values(
    values: &mut Separated<'_, Sqlite, &'static str>,
    domain: i64,
    job: &Job,
    now: Time,
) {
    let outcome = job.outcome.map_or("", Outcome::as_str).to_owned();
    let course = [&outcome, &job.reason, &job.array_job, &job.array_task, &job.het_job, &job.het_offset];
    values.push_bind(domain);
    for text in [&job.id, &job.job, &job.name, &job.user, &job.queue].into_iter().chain(course) {
        values.push_bind(text.clone());
    }
    for time in [job.submitted, job.started, job.ended] {
        values.push_bind(time.map(|time| time.0.micros()));
    }
    let hosts: Vec<&str> = job.hosts.iter().map(String::as_str).collect();
    values.push_bind(latest_us(job, now)).push_bind(json(&hosts));
    values.push_bind(job.nodes.map(u64::cast_signed)).push_bind(i64::from(job.tries));
    values.push_bind(i64::try_from(size(job)).unwrap_or(i64::MAX));
}

/// Returns the job of a row.
pub(super) fn job_of(row: &SqliteRow) -> Result<Job, sqlx::Error> {
    let text = |at: usize| row.try_get::<String, _>(at);
    let time = |at: usize| {
        let micros = row.try_get::<Option<i64>, _>(at)?;
        Ok::<_, sqlx::Error>(micros.map(|micros| UnixTime(Time::from_micros(micros))))
    };
    let (id, outcome) = (text(1)?, text(6)?);
    Ok(Job {
        domain: text(0)?,
        product: crate::row::product_of(&id).to_owned(),
        id,
        job: text(2)?,
        name: text(3)?,
        user: text(4)?,
        queue: text(5)?,
        state: State::Ended,
        outcome: Some(Outcome::from_word(&outcome).unwrap_or(Outcome::Finished)),
        reason: text(7)?,
        array_job: text(8)?,
        array_task: text(9)?,
        het_job: text(10)?,
        het_offset: text(11)?,
        submitted: time(12)?,
        started: time(13)?,
        ended: time(14)?,
        hosts: texts(row.try_get(15)?).into_iter().map(String::from).collect(),
        nodes: row.try_get::<Option<i64>, _>(16)?.map(i64::cast_unsigned),
        tries: u32::try_from(row.try_get::<i64, _>(17)?).unwrap_or(u32::MAX),
        is_reduced: true,
        ..Job::default()
    })
}
