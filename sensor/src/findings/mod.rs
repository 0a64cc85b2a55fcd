//! Findings about a job: why it failed, what it did not use of its allocation, and what else is worth knowing.
//!
//! Pure. Rules: a finding follows from what logs state and sensors measured, with fixed thresholds; where something is not
//! known there is none. A failed job has the cause first that explains the others: its explanation. How a job used its
//! allocation is judged of whole measurements alone, after a minute of running.
//! Not here: usage ([`crate::job_usage`]), the texts of logs (`log_filters`).

pub mod beside;
pub mod candidates;
mod cause;
pub mod config;
mod failed_process;
mod job_end;
mod waste;

use config::Thresholds;
use wire::api::findings::{Finding, FindingClass};
use wire::api::job_usage::last_run;
use wire::api::jobs::Job;
use wire::call::usage::Usage;
use wire::call::{Call, job::Fact};

/// A job with what was measured of its last run.
struct Known<'a> {
    call: &'a Call,
    job: &'a Job,
    usages: Vec<&'a Usage>,
}

impl Known<'_> {
    /// How long its last run took, or takes so far, in seconds; `None` if that is unknown.
    fn ran_secs(&self) -> Option<f64> {
        let latest = || self.usages.iter().map(|usage| usage.until).max();
        Some(self.call.ended.or_else(latest)?.secs_f64() - self.call.started?.secs_f64())
    }

    /// Id of the event whose line states a fact.
    fn event(&self, fact: Fact) -> Option<String> {
        Some(self.call.details.as_ref()?.line(fact)?.event.to_string())
    }
}

/// Returns the findings about a job, the causes of its failure first.
#[must_use]
pub fn of(call: &Call, job: &Job, thresholds: &Thresholds) -> Vec<Finding> {
    let known = Known { call, job, usages: last_run(call) };
    let mut findings = cause::of(&known, thresholds);
    findings.extend(waste::of(&known, thresholds));
    findings.extend(beside::requeued(job, call));
    findings
}

/// Why a job failed, in a sentence; empty if it did not.
#[must_use]
pub fn explanation(findings: &[Finding]) -> String {
    let cause = findings.iter().find(|finding| finding.is_of(FindingClass::Cause));
    cause.map(|finding| finding.text.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
