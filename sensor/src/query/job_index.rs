//! `jobs.index`: what follows in the domain's stored jobs, for the index of directories.
//!
//! Rule: of each job what a queue shows to everyone is answered to everyone. Not here: the order of stored calls (`call_store`).

use super::calls::KnownCalls;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::job_index::{IndexPosition, JobIndexPage, JobIndexParams};
use wire::api::jobs::Job;
use wire::call::State;
use wire::report::StoreKey;
use wire::report::calls::{CallPosition, FetchCalls, POSITIONS_MAX};

/// Approximate length of the calls of an answer, in bytes.
const ANSWER_LEN_BYTES: u32 = 512 << 10;

/// Creates the method.
pub(super) fn method(known: KnownCalls) -> Method {
    typed::method(move |_, params: JobIndexParams| {
        let known = known.clone();
        async move { answer(&known, &params).await }
    })
}

async fn answer(known: &KnownCalls, params: &JobIndexParams) -> Result<JobIndexPage, Fault> {
    let history = known.history.as_ref().ok_or_else(|| {
        Fault::not_found(
            "calls are not stored here ([sensor.history] of the configuration: call_days, call_budget_mib)",
        )
    })?;
    if params.reached.len() > POSITIONS_MAX {
        let found = params.reached.len();
        return Err(Fault::invalid_params(format!(
            "reached: expected at most {POSITIONS_MAX}, found {found}"
        )));
    }
    let held = params.reached.iter().map(position).collect::<Result<_, _>>()?;
    let fetch = FetchCalls { held, len_bytes: ANSWER_LEN_BYTES };
    let following = history.store().following(&fetch).await;
    let calls =
        following.map_err(|error| Fault::unavailable(format!("the stored calls cannot be read: {error}")))?;
    let ended = calls.calls.iter().map(|stored| &stored.call);
    let ended = ended.filter(|call| call.is_job() && call.state == State::Ended);
    let jobs: Vec<Job> = ended.map(|call| Job::from(call).reduced()).collect();
    let reached = IndexPosition { store: calls.position.store.to_string(), key: calls.position.key };
    Ok(JobIndexPage::new(reached, calls.is_end, &jobs))
}

fn position(at: &IndexPosition) -> Result<CallPosition, Fault> {
    let store = u64::from_str_radix(&at.store, 16).map_err(|_| {
        Fault::invalid_params(format!(
            "reached: store: expected hexadecimal digits as an answer gave them, found {:?}",
            at.store
        ))
    })?;
    Ok(CallPosition { store: StoreKey(store), key: at.key })
}
