//! A job beside others: in its queue, and of its name.
//!
//! Pure. Not here: reading the other jobs (`query::jobs`).

use super::config::Thresholds;
use wire::api::findings::{Finding, FindingKind};
use wire::api::jobs::Job;
use wire::call::Call;
use wire::event::Outcome;
use wire::shown::{age, count};

/// Least wait that is long, in seconds.
const WAIT_MIN_SECS: f64 = 600.0;

/// Fewest other jobs whose median means something.
const OTHERS_MIN: usize = 8;

/// Most ids that a finding names.
const NAMED_MAX: usize = 5;

/// It was started more than once.
pub(super) fn requeued(job: &Job, call: &Call) -> Option<Finding> {
    let runs = call.details.as_ref().map_or(&[][..], |details| details.runs.as_slice());
    let last = runs.last()?;
    let why = match last.outcome {
        Some(outcome) => format!("; the run before the last ended as {outcome}"),
        None => String::new(),
    };
    let starts = u64::from(job.tries).max(runs.len() as u64 + 1);
    let text = format!("It was started {}{why}.", count(starts, "time"));
    let hosts = last.hosts.iter().map(ToString::to_string).collect();
    Some(Finding { hosts, ..Finding::new(FindingKind::Requeued, text) })
}

/// How long a job waited, in seconds; `None` if that is unknown.
#[must_use]
pub fn waited_secs(call: &Call) -> Option<f64> {
    let from = call.submitted?.secs_f64();
    Some((call.started?.secs_f64() - from).max(0.0))
}

/// It waited much longer than these others of its queue.
#[must_use]
pub fn long_wait(call: &Call, queue: &str, others: &[Call], thresholds: &Thresholds) -> Option<Finding> {
    let waited = waited_secs(call)?;
    let is_other = |other: &&Call| other.id != call.id;
    let mut all: Vec<f64> = others.iter().filter(is_other).filter_map(waited_secs).collect();
    if all.len() < OTHERS_MIN {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let median = all[all.len() / 2];
    let limit = (median * thresholds.long_wait_times).max(WAIT_MIN_SECS);
    (waited > limit).then(|| {
        let text = format!(
            "It waited for {}; the median of the last {} of queue {queue} is {}.",
            age(waited),
            count(all.len() as u64, "job"),
            age(median)
        );
        Finding { value: Some(waited), threshold: Some(limit), ..Finding::new(FindingKind::LongWait, text) }
    })
}

/// The jobs of the same name that ended before it failed too; `before` are the latest of them, the newest first.
#[must_use]
pub fn fails_again(call: &Call, before: &[Call]) -> Option<Finding> {
    let is_failure =
        |call: &Call| matches!(call.outcome, Some(Outcome::Failed | Outcome::Timeout | Outcome::NodeFail));
    if !is_failure(call) {
        return None;
    }
    let is_before =
        |other: &&Call| other.id != call.id && other.ended < call.ended && other.outcome.is_some();
    let before: Vec<&Call> = before.iter().filter(is_before).collect();
    let failed: Vec<&Call> = before.iter().copied().take_while(|other| is_failure(other)).collect();
    let text = match (failed.len(), before.len()) {
        (0, _) => return None,
        (1, _) => "The job of this name before it failed too".to_owned(),
        (number, _) => format!("The {number} jobs of this name before it failed too"),
    };
    let jobs: Vec<String> = failed.iter().take(NAMED_MAX).map(|other| other.id.to_string()).collect();
    let more = if failed.len() > NAMED_MAX { ", …" } else { "" };
    let text = format!("{text}: {}{more}.", jobs.join(", "));
    Some(Finding { jobs, ..Finding::new(FindingKind::FailsAgain, text) })
}
