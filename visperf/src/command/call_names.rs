//! Suggestions for unknown calls: similar ids for the id of a call that is in no log.
//!
//! Not here: how similarity is computed (`wire::near_names`).

use crate::command::query::{LIMIT_MAX, request};
use crate::exit::Failure;
use crate::options::{OfDomain, Query};
use wire::api::calls::{Call, CallsParams, DomainCallsParams, SensorCallsParams};
use wire::near_names;

/// Refuse a call id that is unknown to the domain, or to the sensor alone if `local`; a pattern is always
/// accepted.
///
/// # Errors
/// If there is no such call: a usage error with similar ids. If no daemon is reached, or it answers with a
/// fault.
pub(crate) fn check(query: &Query, whose: &OfDomain, local: bool, id: &str) -> Result<(), Failure> {
    if id.contains(['*', '\u{2026}']) {
        return Ok(());
    }
    let known = |params: CallsParams| -> Result<Vec<Call>, Failure> {
        let about = whose.about();
        let answer = match local {
            true => request(query, &SensorCallsParams(params), &about),
            false => request(query, &DomainCallsParams(params), &about),
        };
        Ok(answer?.typed.calls)
    };
    let one = CallsParams { call: Some(id.to_owned()), limit: 1, ..CallsParams::default() };
    if !known(one)?.is_empty() {
        return Ok(());
    }
    let all = known(CallsParams { limit: LIMIT_MAX, ..CallsParams::default() })?;
    Err(Failure::Usage(unknown(id, all.iter().map(|call| call.id.as_str()))))
}

fn unknown<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> String {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => format!(
            "no call is named {id}; ids are such as slurm:{id}, and `visperf calls --job {id}` finds the number"
        ),
        false => format!("no call is named {id}{}", near_names::suggestion(id, known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_call_is_refused_with_near_ones() {
        let known = || ["slurm:17", "slurm:171", "htcondor:4.0"].into_iter();
        assert_eq!(unknown("slrum:17", known()), "no call is named slrum:17; did you mean slurm:17?");
        assert_eq!(unknown("x:999999", known()), "no call is named x:999999");
        assert!(unknown("17", known()).contains("`visperf calls --job 17`"));
    }
}
