//! `jobs.get`: a job of a domain, with what logs state of it and what follows.
//!
//! Rule: of another user's job only what a queue shows to everyone is answered, unless the viewer is trusted.
//! Not here: searches (`job_search`), how calls are found in memory and in the history (`calls`), findings
//! (`crate::findings`).

use super::calls::{CallPage, KnownCalls, owners};
use crate::findings::config::Thresholds;
use crate::findings::{self, beside};
use call_store::answer::{Owners, Query};
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::UnixTime;
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::findings::Finding;
use wire::api::jobs::{Job, JobParams, JobRecord};
use wire::call::Call;
use wire::call::job::Fact;
use wire::event::Outcome;
use wire::id::DomainName;
use wire::query::Viewer;

/// Most jobs of one number that a refusal names.
const NAMED_MAX: usize = 5;

/// Most jobs of its queue whose waits a job is compared with, and most earlier jobs of its name.
const BESIDE_MAX: u64 = 64;

/// Jobs of a domain.
#[derive(Clone)]
pub(super) struct KnownJobs {
    pub(super) calls: KnownCalls,
    pub(super) domain: DomainName,
    pub(super) thresholds: Thresholds,
}

impl KnownJobs {
    /// `jobs.get`.
    pub(super) fn get_method(self) -> Method {
        typed::method(move |caller, JobParams { job }: JobParams| {
            let (own, viewer) = (self.clone(), caller.viewer);
            async move { own.get(&job, viewer).await }
        })
    }

    async fn get(&self, name: &str, viewer: Viewer) -> Result<JobRecord, Fault> {
        let owners = owners(viewer).await;
        let call = find(&self.calls, name).await?;
        let mut job = self.shown(&call, &owners);
        if !owners.include(&call.user) {
            return Ok(JobRecord { job, ..JobRecord::default() });
        }
        job.findings.extend(self.beside_others(&call, &job.queue).await?);
        let explanation = findings::explanation(&job.findings);
        Ok(JobRecord { job, explanation, ..JobRecord::from(&call) })
    }

    /// Findings that compare a job with others.
    async fn beside_others(&self, call: &Call, queue: &str) -> Result<Vec<Finding>, Fault> {
        let of_product = format!("{}:*", call.id.split_once(':').map_or("", |(scope, _)| scope));
        let others = CallsParams {
            call: Some(of_product),
            jobs_only: true,
            limit: BESIDE_MAX,
            order: CallOrder::Newest,
            ..CallsParams::default()
        };
        let mut found = Vec::new();
        if let Some(started) = call.started.filter(|_| !queue.is_empty()) {
            let (of_this, until) = (Some(queue.to_owned()), Some(UnixTime(started)));
            let of_queue = CallsParams { queue: of_this, until, ..others.clone() };
            let page = self.calls.page(Query::of_all(&of_queue)).await?;
            found.extend(beside::long_wait(call, queue, &page.calls, &self.thresholds));
        }
        let is_named = !call.name.is_empty() && !call.user.is_empty();
        if let Some(ended) = call.ended.filter(|_| is_named) {
            let (name, user) = (Some(call.name.to_string()), Some(call.user.to_string()));
            let of_name = CallsParams { name, user, until: Some(UnixTime(ended)), ..others };
            let mut page = self.calls.page(Query::of_all(&of_name)).await?;
            page.calls.retain(|other| (&other.name, &other.user) == (&call.name, &call.user));
            found.extend(beside::fails_again(call, &page.calls));
        }
        Ok(found)
    }

    pub(super) fn shown(&self, call: &Call, owners: &Owners) -> Job {
        let job = Job { domain: self.domain.to_string(), ..Job::from(call) };
        if !owners.include(&call.user) {
            return job.reduced();
        }
        Job { findings: findings::of(call, &job, &self.thresholds), ..job }
    }
}

/// Finds the job with this id, or the only one with this number.
async fn find(known: &KnownCalls, name: &str) -> Result<Call, Fault> {
    if name.is_empty() || wire::name_match::has_wildcard(name) {
        return Err(Fault::invalid_params(format!(
            "job: expected the id or number of a job, found {name:?}"
        )));
    }
    let limit = NAMED_MAX as u64 + 1;
    let mut by_alias = None;
    // A number alone is an alias of every job that has it.
    if name.contains(':') {
        let id = Some(name.to_owned());
        let by_id = CallsParams { call: id, jobs_only: true, limit: 1, ..CallsParams::default() };
        by_alias = known.page(Query::of_all(&by_id)).await?.calls.into_iter().next();
        // Slurm gives a task of an array the number of the whole array, too: then several jobs are meant.
        if let Some(call) = by_alias.take_if(|call| call.id == name || !is_task(call)) {
            return Ok(call);
        }
    }
    // The number of one product: of a part, or of the whole that it is a part of.
    let (scope, number) = name.split_once(':').filter(|(scope, _)| is_scope(scope)).unzip();
    let by_number = CallsParams {
        call: scope.map(|scope| format!("{scope}*")),
        job: Some(number.unwrap_or(name).to_owned()),
        jobs_only: true,
        limit,
        ..CallsParams::default()
    };
    let CallPage { calls, .. } = known.page(Query::of_all(&by_number)).await?;
    match calls.as_slice() {
        [only] => Ok(only.clone()),
        [] => by_alias.ok_or_else(|| {
            let hint = "visperf jobs --name finds jobs by their names";
            Fault::not_found(format!("no job has the id or number {name}; {hint}"))
        }),
        several => Err(Fault::invalid_params(named_several(name, several))),
    }
}

/// Text that names jobs with one number, those that did not end well first.
fn named_several(name: &str, several: &[Call]) -> String {
    let mut several: Vec<&Call> = several.iter().collect();
    several.sort_by_key(|call| (call.outcome == Some(Outcome::Ok), call.outcome.is_none()));
    let state = |call: &Call| call.outcome.map_or(call.state.as_str(), Outcome::as_str);
    let ids: Vec<String> =
        several.iter().take(NAMED_MAX).map(|call| format!("{} ({})", call.id, state(call))).collect();
    let more = if several.len() > NAMED_MAX { ", …" } else { "" };
    format!(
        "job: several jobs have the number {name}; expected the id of one: {}{more}; a search by this number lists all",
        ids.join(", ")
    )
}

/// Whether a job is a task of an array.
fn is_task(call: &Call) -> bool {
    call.fact(Fact::ArrayTask).is_some()
}

/// Whether a text before a colon is a product, or a product and a cluster: a number may be a URL.
fn is_scope(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic()) && !text.starts_with("http")
}
