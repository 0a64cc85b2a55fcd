//! Jobs on their way to the daemon, some hundreds in a call.
//!
//! Rule: a call that fails is not repeated here: what it would have stored is stored by the next import of the file.

use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use ::client::typed::About;
use serde_json::Value;
use std::collections::BTreeMap;
use wire::api::Request;
use wire::api::domain::{HostRole, HostsParams};
use wire::api::job_import::{ImportJobsParams, ImportedJob, JOBS_MAX, JobsImported, Refused, RefusedJob};

/// Longest list of jobs in a call, in bytes, and most values in it: most of what a daemon reads at a time.
const LEN_MAX_BYTES: usize = 768 << 10;
const VALUES_MAX: usize = 9_000;

/// Most refused jobs of each kind that are remembered with their reason.
const REFUSED_MAX: usize = 3;

/// Jobs that are sent together, and what became of those before.
pub(super) struct Batch {
    client: Client,
    params: ImportJobsParams,
    len_bytes: usize,
    values: usize,
    answered: Answered,
}

/// What became of the jobs.
#[derive(Default)]
pub(super) struct Answered {
    /// Sums; without refused jobs.
    pub(super) sums: JobsImported,
    /// Refused jobs by the kind of the reason: how many, and the first ones.
    pub(super) refused: BTreeMap<String, (u64, Vec<RefusedJob>)>,
}

impl Answered {
    /// Number of refused jobs.
    pub(super) fn refused(&self) -> u64 {
        self.refused.iter().map(|(_, (count, _))| count).sum()
    }

    fn refuse(&mut self, job: RefusedJob) {
        let (count, first) = self.refused.entry(job.kind.clone()).or_default();
        *count += 1;
        if first.len() < REFUSED_MAX {
            first.push(job);
        }
    }
}

/// Number of values in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.iter().map(|(_, value)| count(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

impl Batch {
    pub(super) fn new(client: Client, source: String, dry_run: bool, replace: bool) -> Batch {
        let params = ImportJobsParams { source, dry_run, replace, jobs: Vec::new() };
        Batch { client, params, len_bytes: 0, values: 0, answered: Answered::default() }
    }

    pub(super) fn answered(&self) -> &Answered {
        &self.answered
    }

    /// Finds out whether the daemon takes jobs, before any file is read.
    pub(super) fn try_it(&mut self) -> Result<(), Failure> {
        let nothing = ImportJobsParams { dry_run: true, ..ImportJobsParams::default() };
        self.answered.sums.room = self.ask(&nothing)?.room;
        Ok(())
    }

    /// Notes a job that is refused here.
    pub(super) fn refuse(&mut self, place: String, why: String) {
        self.answered.refuse(RefusedJob::new(&place, Refused::Invalid, why));
    }

    /// Adds a job, and sends those before it if there are many.
    pub(super) fn push(&mut self, job: ImportedJob) -> Result<(), Failure> {
        let value = serde_json::to_value(&job).unwrap_or_default();
        let (len, values) = (value.to_string().len() + 1, count(&value));
        let is_full = self.len_bytes + len > LEN_MAX_BYTES || self.values + values > VALUES_MAX;
        if is_full || self.params.jobs.len() == JOBS_MAX {
            self.send()?;
        }
        self.len_bytes += len;
        self.values += values;
        self.params.jobs.push(job);
        Ok(())
    }

    /// Sends the jobs.
    pub(super) fn send(&mut self) -> Result<(), Failure> {
        if self.params.jobs.is_empty() {
            return Ok(());
        }
        let params = std::mem::take(&mut self.params.jobs);
        let answer = self.ask(&ImportJobsParams { jobs: params, ..self.params.clone() })?;
        (self.len_bytes, self.values) = (0, 0);
        let sums = &mut self.answered.sums;
        sums.stored += answer.stored;
        sums.completed += answer.completed;
        sums.known += answer.known;
        answer.refused.into_iter().for_each(|job| self.answered.refuse(job));
        Ok(())
    }

    fn ask(&mut self, params: &ImportJobsParams) -> Result<JobsImported, Failure> {
        match self.client.request(params, &About::default(), PATIENCE) {
            Ok(answer) => Ok(answer.typed),
            Err(error) => {
                let is_elsewhere = error.to_string().contains("does not represent");
                let failure = self.client.explain(ImportJobsParams::METHOD, error);
                Err(if is_elsewhere { self.with_place(failure) } else { failure })
            }
        }
    }

    /// Adds the host of the representative to the message of a daemon that is none.
    fn with_place(&mut self, failure: Failure) -> Failure {
        let Failure::Fault { code, message } = failure else { return failure };
        let answer = self.client.request(&HostsParams {}, &About::default(), PATIENCE);
        let hosts = answer.map(|answer| answer.typed.hosts).unwrap_or_default();
        let host = hosts.iter().find(|host| host.role == HostRole::Representative);
        let place = host.map(|host| format!(": {}", host.host)).unwrap_or_default();
        Failure::Fault { code, message: format!("{message}{place}") }
    }
}
