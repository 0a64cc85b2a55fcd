//! `jobs.search`: pages of jobs, by their amounts and findings, too.
//!
//! Rules: a search by what only a job's user may see is one of the viewer's own jobs, unless the viewer is trusted. Findings
//! are not stored: jobs that may have one are read until a page is full or it takes too long.
//! Not here: one job (`jobs`), which jobs may have a finding (`crate::findings::candidates`).

use super::call_page::cursor_after;
use super::calls::{CallPage, owners};
use super::jobs::KnownJobs;
use crate::findings::candidates::Candidates;
use call_store::answer::{Owners, Query};
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use tokio::time::Instant;
use wire::api::calls::CallsParams;
use wire::api::findings::FindingKind;
use wire::api::job_amount::ByAmount;
use wire::api::jobs::{Job, Jobs, JobsSearchParams};
use wire::query::Viewer;

/// Most conditions of a search.
const CONDITIONS_MAX: usize = 32;

/// Jobs that are read at a time to look for findings.
const PAGE_JOBS: u64 = 1_000;

/// Jobs with most of an amount that are read to look for findings.
const SORTED_JOBS: u64 = 10_000;

/// How long jobs are read to look for findings: well below the timeout of a call.
const READ_FOR: Duration = Duration::from_secs(5);

impl KnownJobs {
    /// `jobs.search`.
    pub(super) fn search_method(self) -> Method {
        typed::method(move |caller, params: JobsSearchParams| {
            let (own, viewer) = (self.clone(), caller.viewer);
            async move { own.search(params, viewer).await }
        })
    }

    async fn search(&self, params: JobsSearchParams, viewer: Viewer) -> Result<Jobs, Fault> {
        let owners = owners(viewer).await;
        let (finding, by) = (params.finding, params.by_amount());
        let is_of_own = params.account.is_some() || finding.is_some() || !by.is_shown_to_all();
        let mut search: CallsParams = params.into();
        if by.sort.is_some() && search.cursor.is_some() {
            return Err(Fault::invalid_params("cursor: sorted jobs are one page; expected none with `sort`"));
        }
        if by.conditions.len() > CONDITIONS_MAX {
            let found = by.conditions.len();
            return Err(Fault::invalid_params(format!(
                "where: expected at most {CONDITIONS_MAX} conditions, found {found}"
            )));
        }
        if is_of_own {
            search = own_jobs(search, &owners)?;
        }
        let jobs = match finding {
            Some(kind) => self.with_finding(kind, search, by, &owners).await?,
            None => {
                let query = Query { params: &search, by: &by, owners: &Owners::All };
                let page = self.calls.page(query).await?;
                self.answer(page, &owners)
            }
        };
        let own_only = is_of_own && owners != Owners::All;
        Ok(Jobs { own_only, unheard: self.calls.unheard().await, ..jobs })
    }

    fn answer(&self, page: CallPage, owners: &Owners) -> Jobs {
        Jobs {
            jobs: page.calls.iter().map(|call| self.shown(call, owners)).collect(),
            total: page.total,
            total_is_more: page.is_more,
            stored_since: page.stored_since,
            next: page.next,
            ..Jobs::default()
        }
    }

    /// Searches jobs with a finding of this kind.
    async fn with_finding(
        &self,
        kind: FindingKind,
        mut search: CallsParams,
        mut by: ByAmount,
        owners: &Owners,
    ) -> Result<Jobs, Fault> {
        let candidates = Candidates::of(kind, &self.thresholds).ok_or_else(|| not_searchable(kind))?;
        if let Some(outcome) = candidates.outcome {
            if !search.outcome.is_empty() && !search.outcome.contains(&outcome) {
                return Ok(Jobs::default());
            }
            search.outcome = vec![outcome];
        }
        by.conditions.extend(candidates.conditions);
        let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
        search.limit = if by.sort.is_some() { SORTED_JOBS } else { PAGE_JOBS };
        let until = Instant::now() + READ_FOR;
        let mut found: Vec<Job> = Vec::new();
        loop {
            let page = self.calls.page(Query { params: &search, by: &by, owners: &Owners::All }).await?;
            let mut next = page.next;
            let mut is_cut = by.sort.is_some() && page.calls.len() as u64 == SORTED_JOBS;
            for call in &page.calls {
                let job = self.shown(call, owners);
                found.extend(Some(job).filter(|job| job.has_finding(kind)));
                if found.len() == limit {
                    is_cut = true;
                    next = by.sort.is_none().then(|| cursor_after(call, search.order));
                    break;
                }
            }
            if next.is_none() || found.len() == limit || Instant::now() > until {
                let total_is_more = is_cut || next.is_some();
                let stored_since = page.stored_since;
                let total = found.len() as u64;
                return Ok(Jobs { total, jobs: found, total_is_more, stored_since, next, ..Jobs::default() });
            }
            search.cursor = next;
            tokio::task::yield_now().await;
        }
    }
}

fn not_searchable(kind: FindingKind) -> Fault {
    Fault::invalid_params(format!(
        "finding: {kind} compares a job with others and is found for one job alone (jobs.get, visperf job show); expected \
         another kind"
    ))
}

/// Restricts a search by what others may not see to the viewer's own jobs.
fn own_jobs(params: CallsParams, owners: &Owners) -> Result<CallsParams, Fault> {
    let Owners::Only(names) = owners else { return Ok(params) };
    match (&params.user, names.first()) {
        (Some(user), _) if names.contains(user) => Ok(params),
        (None, Some(own)) => Ok(CallsParams { user: Some(own.clone()), ..params }),
        (Some(_), _) | (None, None) => Err(Fault::invalid_params(
            "account, allocation, usage and findings of other users' jobs are shown to root and operators only, so a search by \
             them is one of your own jobs, over the local socket of a daemon; expected one without `account`, `finding`, and \
             conditions and a sort by other amounts than ran, waited, nodes and tries",
        )),
    }
}
