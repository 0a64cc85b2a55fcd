//! Jobs that may have a finding of some kind: what a search can ask the history of calls, before the rules are applied.
//!
//! Pure. Rule: a job that is no candidate has no such finding; a candidate may have none either.
//! Not here: the rules (`cause`, `waste`), the search (`query::job_search`).

use super::config::Thresholds;
use super::waste::{CPU_SECS_MIN, CPUS_MIN};
use wire::api::findings::FindingKind;
use wire::api::job_amount::{Comparison, Condition, JobAmount};
use wire::event::Outcome;

/// Which jobs may have a finding.
#[derive(Debug)]
pub struct Candidates {
    /// Outcome of each of them; `None` if it may be any.
    pub outcome: Option<Outcome>,
    /// Conditions that each of them meets.
    pub conditions: Vec<Condition>,
}

impl Candidates {
    /// Returns which jobs may have a finding of this kind; `None` if that does not follow from the job alone.
    #[must_use]
    pub fn of(kind: FindingKind, thresholds: &Thresholds) -> Option<Candidates> {
        let with_outcome = |outcome| Candidates { outcome: Some(outcome), conditions: Vec::new() };
        let with = |amount, comparison, value| Candidates {
            outcome: None,
            conditions: vec![Condition::new(amount, comparison, value)],
        };
        let measured = |least_cpu_secs| with(JobAmount::CpuTime, Comparison::GreaterOrEqual, least_cpu_secs);
        Some(match kind {
            FindingKind::OutOfMemory
            | FindingKind::FailedProcess
            | FindingKind::Signal
            | FindingKind::ExitCode
            | FindingKind::Stated => with_outcome(Outcome::Failed),
            FindingKind::TimeLimit => with_outcome(Outcome::Timeout),
            FindingKind::Cancelled => with_outcome(Outcome::Cancelled),
            FindingKind::HostFailed => with_outcome(Outcome::NodeFail),
            FindingKind::Idle => with(JobAmount::CpuEfficiency, Comparison::Less, thresholds.idle),
            FindingKind::LowCpu => with(JobAmount::CpuEfficiency, Comparison::Less, thresholds.low_cpu),
            FindingKind::OneCpu => with(JobAmount::Cpus, Comparison::GreaterOrEqual, f64::from(CPUS_MIN)),
            FindingKind::Imbalance | FindingKind::SystemTime => measured(CPU_SECS_MIN),
            FindingKind::Throttled => measured(0.0),
            FindingKind::MemoryUnused => Candidates {
                outcome: Some(Outcome::Ok),
                ..with(JobAmount::MemoryEfficiency, Comparison::Less, thresholds.memory_unused)
            },
            FindingKind::MemoryNearLimit => {
                with(JobAmount::MemoryEfficiency, Comparison::GreaterOrEqual, thresholds.memory_near_limit)
            }
            FindingKind::Requeued => Candidates { outcome: None, conditions: Vec::new() },
            FindingKind::LongWait | FindingKind::FailsAgain => return None,
        })
    }
}
