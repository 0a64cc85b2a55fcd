//! `sensor.import_jobs`: jobs of accounting files are stored with the domain's ended calls.
//!
//! Rules: only for viewers that are trusted, and only where the domain's calls are stored, as their copies follow from there.
//! Each job is refused by itself. Not here: which job is known already (`call_store`).

use super::calls::Memory;
use super::jobs::KnownJobs;
use crate::call_history::CallHistory;
use crate::history::writing::calendar;
use call_store::importing::Import;
use compact_str::CompactString;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::HashSet;
use wire::api::job_import::{ImportJobsParams, JOBS_MAX, JobsImported, Refused, RefusedJob};
use wire::call::StoredCall;
use wire::fault;
use wire::query::Viewer;
use wire::time::Time;

impl KnownJobs {
    /// `sensor.import_jobs`.
    pub(super) fn import_method(self) -> Method {
        typed::method(move |caller, params: ImportJobsParams| {
            let (own, viewer) = (self.clone(), caller.viewer);
            async move { own.import(&params, viewer).await }
        })
    }

    async fn import(&self, params: &ImportJobsParams, viewer: Viewer) -> Result<JobsImported, Fault> {
        if !viewer.is_trusted() {
            let place = match viewer {
                Viewer::Anonymous => "over TCP no user is known: ask over the local socket of the sensor",
                Viewer::User(_) | Viewer::Trusted | Viewer::Owner(_) => "this user is neither",
            };
            let text = format!("jobs are imported by root and operators alone; {place}");
            return Err(Fault::new(fault::REFUSED, text));
        }
        let found = params.jobs.len();
        if found > JOBS_MAX {
            return Err(Fault::invalid_params(format!("jobs: expected at most {JOBS_MAX}, found {found}")));
        }
        let (history, budget) = self.place().await?;
        // Those that have just ended are known then.
        history.store_changes().await.map_err(unavailable)?;
        let (mut calls, mut refused) = (Vec::with_capacity(found), Vec::new());
        let now = calendar();
        for job in &params.jobs {
            match job.to_call(&params.source, now) {
                Ok(call) => calls.push(call),
                Err(why) => refused.push(RefusedJob::new(&job.job.id, Refused::Invalid, why)),
            }
        }
        let taken = self.ids_in_memory(&calls).await?;
        let how = Import { is_trial: params.dry_run, is_replacing: params.replace, taken };
        let mut imported = history.import(&calls, &how).await.map_err(unavailable)?;
        for job in imported.refused.iter_mut().filter(|job| job.kind == Refused::NoRoom.as_str()) {
            job.why.push_str(&format!(" ({budget} below [sensor.history])"));
        }
        refused.append(&mut imported.refused);
        if !params.dry_run {
            let JobsImported { stored, completed, known, .. } = imported;
            tracing::info!(source = %params.source.escape_debug(), stored, completed, known, refused = refused.len(), "jobs imported");
        }
        Ok(JobsImported { refused, ..imported })
    }

    /// Returns the ids of these that calls of another time in memory have.
    async fn ids_in_memory(&self, calls: &[StoredCall]) -> Result<HashSet<CompactString>, Fault> {
        let wanted =
            calls.iter().map(|StoredCall { call, .. }| (call.id.clone(), call.earliest(), call.latest()));
        let wanted: Vec<_> = wanted.collect();
        let taken = self.calls.memory.read(move |joiner| {
            let is_taken = |(id, earliest, latest): &(CompactString, Option<Time>, Option<Time>)| {
                let known = joiner.present_id(id).filter(|present| *present == id)?;
                let known = joiner.get(known)?;
                (known.earliest() > *latest || known.latest() < *earliest).then(|| id.clone())
            };
            wanted.iter().filter_map(is_taken).collect()
        });
        taken.await
    }

    /// Where the domain's ended calls are stored, and the key of its limit.
    async fn place(&self) -> Result<(&CallHistory, &'static str), Fault> {
        let budget = match &self.calls.memory {
            Memory::Own(_) => "call_budget_mib",
            Memory::Domain(service) => {
                let elsewhere = |_| {
                    let text = "this sensor does not represent its domain; jobs are imported on the host of the one that does";
                    Fault::unavailable(text.to_owned())
                };
                service.ask(|_, _| ()).await.map_err(elsewhere)?;
                "domain_call_budget_mib"
            }
        };
        let history = self.calls.history.as_ref().ok_or_else(|| {
            Fault::unavailable(format!("ended calls are not stored ({budget} below [sensor.history] is 0)"))
        })?;
        Ok((history, budget))
    }
}

fn unavailable(error: call_store::answer::Error) -> Fault {
    Fault::unavailable(format!("the database of calls refuses to store them: {error}"))
}
