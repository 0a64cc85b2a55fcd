//! `jobs.report`: sums of jobs that have ended.
//!
//! Rules: the jobs are read page by page, the newest first, until there are no more or it takes too long: then the answer
//! says how far it reaches. Others' jobs are summed up for root and operators alone.
//! Not here: the sums (`crate::job_sums`), the pages (`calls`).

use super::calls::owners;
use super::jobs::KnownJobs;
use crate::job_sums::JobSums;
use call_store::answer::{Owners, Query};
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::time::Duration;
use tokio::time::Instant;
use wire::api::job_report::{JobReport, JobReportParams};
use wire::query::Viewer;

/// Jobs that are read at a time.
const PAGE_JOBS: u64 = 10_000;

/// How long jobs are read: below the timeout of a call.
const READ_FOR: Duration = Duration::from_secs(20);

impl KnownJobs {
    /// `jobs.report`.
    pub(super) fn report_method(self) -> Method {
        typed::method(move |caller, params: JobReportParams| {
            let (own, viewer) = (self.clone(), caller.viewer);
            async move { own.report(params, viewer).await }
        })
    }

    async fn report(&self, params: JobReportParams, viewer: Viewer) -> Result<JobReport, Fault> {
        let owners = owners(viewer).await;
        let params = own_jobs(params, &owners)?;
        let until = Instant::now() + READ_FOR;
        let mut sums = JobSums::new(params.by);
        let mut cursor = None;
        let stored_since = loop {
            let search = params.search(PAGE_JOBS, cursor);
            let page = self.calls.page(Query::of_all(&search.into())).await?;
            let (own, whose) = (self.clone(), owners.clone());
            let summing = move || {
                page.calls.iter().for_each(|call| sums.add(&own.shown(call, &whose)));
                sums
            };
            sums = tokio::task::spawn_blocking(summing)
                .await
                .map_err(|error| Fault::internal(error.to_string()))?;
            cursor = page.next;
            if cursor.is_none() || Instant::now() > until {
                break page.stored_since;
            }
        };
        let oldest = sums.oldest();
        let (groups, left_out, total) = sums.shown(usize::try_from(params.limit).unwrap_or(usize::MAX));
        Ok(JobReport {
            domain: self.domain.to_string(),
            groups,
            left_out,
            total,
            oldest,
            is_cut: cursor.is_some(),
            own_only: owners != Owners::All,
            stored_since,
            unheard: self.calls.unheard().await,
        })
    }
}

/// Restricts a report to the viewer's own jobs, unless it may see all.
fn own_jobs(params: JobReportParams, owners: &Owners) -> Result<JobReportParams, Fault> {
    let Owners::Only(names) = owners else { return Ok(params) };
    match (&params.user, names.first()) {
        (Some(user), _) if names.contains(user) => Ok(params),
        (None, Some(own)) => Ok(JobReportParams { user: Some(own.clone()), ..params }),
        (_, None) => Err(Fault::invalid_params(
            "over TCP no user is known, and sums of jobs are shown to their user, root and operators; expected a call over \
             the local socket of a daemon",
        )),
        (Some(_), _) => Err(Fault::invalid_params(
            "user: sums of other users' jobs are shown to root and operators only; expected your own name, or none",
        )),
    }
}
