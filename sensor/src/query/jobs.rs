//! `jobs.search` and `jobs.get`: the jobs of a domain, with what logs state of them.
//!
//! Rule: of another user's job only what a queue shows to everyone is answered, unless the viewer is trusted.
//! Not here: how calls are found in memory and in the history (`calls`).

use super::calls::{CallPage, KnownCalls, owners};
use call_store::answer::Owners;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::calls::CallsParams;
use wire::api::jobs::{Job, JobParams, JobRecord, Jobs, JobsSearchParams};
use wire::call::Call;
use wire::id::DomainName;
use wire::query::Viewer;

/// Most jobs of one number that a refusal names.
const NAMED_MAX: usize = 5;

/// `jobs.search`.
pub(super) fn search_method(known: &KnownCalls, domain: &DomainName) -> Method {
    let (known, domain) = (known.clone(), domain.clone());
    typed::method(move |caller, params: JobsSearchParams| {
        let (known, domain, viewer) = (known.clone(), domain.clone(), caller.viewer);
        async move { search(&known, &domain, params, viewer).await }
    })
}

/// `jobs.get`.
pub(super) fn get_method(known: &KnownCalls, domain: &DomainName) -> Method {
    let (known, domain) = (known.clone(), domain.clone());
    typed::method(move |caller, JobParams { job }: JobParams| {
        let (known, domain, viewer) = (known.clone(), domain.clone(), caller.viewer);
        async move { get(&known, &domain, &job, viewer).await }
    })
}

async fn search(
    known: &KnownCalls,
    domain: &DomainName,
    params: JobsSearchParams,
    viewer: Viewer,
) -> Result<Jobs, Fault> {
    let owners = owners(viewer).await;
    let page = known.page(&own_facts(params.into(), &owners)?, &Owners::All).await?;
    Ok(Jobs {
        jobs: page.calls.iter().map(|call| shown(call, domain, &owners)).collect(),
        total: page.total,
        total_is_more: page.is_more,
        stored_since: page.stored_since,
        next: page.next,
        unheard: known.unheard().await,
    })
}

/// Restricts a search by what others may not see to the viewer's own jobs.
fn own_facts(params: CallsParams, owners: &Owners) -> Result<CallsParams, Fault> {
    let Owners::Only(names) = owners else { return Ok(params) };
    if params.account.is_none() {
        return Ok(params);
    }
    match (&params.user, names.first()) {
        (Some(user), _) if names.contains(user) => Ok(params),
        (None, Some(own)) => Ok(CallsParams { user: Some(own.clone()), ..params }),
        (Some(_), _) | (None, None) => Err(Fault::invalid_params(
            "account: accounts of other users' jobs are shown to root and operators only; expected a search \
             without it, or as the user of the jobs",
        )),
    }
}

async fn get(
    known: &KnownCalls,
    domain: &DomainName,
    name: &str,
    viewer: Viewer,
) -> Result<JobRecord, Fault> {
    let owners = owners(viewer).await;
    let call = find(known, name).await?;
    let job = shown(&call, domain, &owners);
    Ok(match owners.include(&call.user) {
        true => JobRecord { job, ..JobRecord::from(&call) },
        false => JobRecord { job, ..JobRecord::default() },
    })
}

/// Finds the job with this id, or the only one with this number.
async fn find(known: &KnownCalls, name: &str) -> Result<Call, Fault> {
    if name.is_empty() || wire::name_match::has_wildcard(name) {
        return Err(Fault::invalid_params(format!(
            "job: expected the id or number of a job, found {name:?}"
        )));
    }
    let limit = NAMED_MAX as u64 + 1;
    // A number alone is an alias of every job that has it.
    if name.contains(':') {
        let id = Some(name.to_owned());
        let by_id = CallsParams { call: id, jobs_only: true, limit: 1, ..CallsParams::default() };
        if let Some(call) = known.page(&by_id, &Owners::All).await?.calls.into_iter().next() {
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
    let CallPage { calls, .. } = known.page(&by_number, &Owners::All).await?;
    match calls.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Fault::not_found(format!("no job is named {name}"))),
        several => {
            let ids: Vec<&str> = several.iter().take(NAMED_MAX).map(|call| call.id.as_str()).collect();
            let more = if several.len() > NAMED_MAX { ", …" } else { "" };
            Err(Fault::invalid_params(format!(
                "job: several jobs have the number {name}; expected the id of one: {}{more}",
                ids.join(", ")
            )))
        }
    }
}

/// Whether a text before a colon is a product, or a product and a cluster: a number may be a URL.
fn is_scope(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic()) && !text.starts_with("http")
}

fn shown(call: &Call, domain: &DomainName, owners: &Owners) -> Job {
    let job = Job { domain: domain.to_string(), ..Job::from(call) };
    if owners.include(&call.user) { job } else { job.reduced() }
}
