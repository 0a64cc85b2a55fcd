//! Why a job failed.
//!
//! Pure. Rules: what the middleware states of the end has priority; a process that failed is named only if the job ended
//! as it did. A job that ended well, waits or runs has no cause.
//! Not here: what it used (`waste`).

use super::Known;
use super::config::Thresholds;
use super::failed_process;
use super::job_end::{JobEnd, signal_text, status_text};
use wire::api::findings::{Finding, FindingKind};
use wire::api::jobs::Job;
use wire::call::failed_process::FailedProcess;
use wire::call::job::Fact;
use wire::call::usage::{Figure, MeasuredBy, Usage};
use wire::event::Outcome;
use wire::shown::{age, count, tenths, whole_bytes};

/// Reasons that say no more than that a job failed.
const SAYS_NOTHING: [&str; 5] = ["NonZeroExitCode", "None", "RaisedSignal", "JobFailed", "Failed"];

/// The signal that ends a process at once (signal(7)).
pub(super) const SIGKILL: u8 = 9;

pub(super) fn of(known: &Known<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let Some(outcome) = known.job.outcome else { return Vec::new() };
    let mut causes = match outcome {
        Outcome::Ok | Outcome::Finished => return Vec::new(),
        Outcome::Timeout => vec![time_limit(known)],
        Outcome::Cancelled => vec![cancelled(known)],
        Outcome::NodeFail => vec![host_failed(known)],
        Outcome::Failed => failed(known, thresholds),
    };
    let state = known.event(Fact::State);
    if let Some(first) = causes.first_mut() {
        first.events.extend(state.filter(|state| !first.events.contains(state)));
    }
    causes
}

fn time_limit(known: &Known<'_>) -> Finding {
    let Job { product_state, time_limit_secs, .. } = known.job;
    if product_state == "DEADLINE" {
        return Finding::new(FindingKind::TimeLimit, "It was ended at its deadline.");
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of a job")]
    let limit = time_limit_secs.map(|secs| secs as f64);
    let text = match (known.ran_secs(), limit) {
        (Some(ran), Some(limit)) => {
            format!("It ran for {}, and its time limit was {}.", age(ran), age(limit))
        }
        (Some(ran), None) => format!("It was ended at its time limit, after {}.", age(ran)),
        (None, _) => "It was ended at its time limit.".to_owned(),
    };
    let events = known.event(Fact::TimeLimit).into_iter().collect();
    let found = Finding::new(FindingKind::TimeLimit, text);
    Finding { value: known.ran_secs(), threshold: limit, events, ..found }
}

fn cancelled(known: &Known<'_>) -> Finding {
    let job = known.job;
    let by = match job.product_state.as_str() {
        "PREEMPTED" => "It was ended to make room for another job".to_owned(),
        _ => format!("It was cancelled{}", canceller(job)),
    };
    let when = match (job.started, known.ran_secs()) {
        (None, _) => " before it started".to_owned(),
        (Some(_), Some(ran)) => format!(" after {}", tenths(ran)),
        (Some(_), None) => String::new(),
    };
    let why = stated(job).map(|reason| format!("; its last reason: {reason}")).unwrap_or_default();
    let events = known.event(Fact::CancelledBy).into_iter().collect();
    Finding { events, ..Finding::new(FindingKind::Cancelled, format!("{by}{when}{why}.")) }
}

/// Who asked to cancel a job; empty if that is not known.
fn canceller(job: &Job) -> String {
    let by = job.cancelled_by.as_str();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = by == job.user || job.uid.is_some_and(|uid| by == uid.to_string());
    match by {
        "" => String::new(),
        _ if is_own => " by its user".to_owned(),
        "0" | "root" => " by root".to_owned(),
        by if is_number(by) => format!(" by the user with number {by}"),
        by => format!(" by {by}"),
    }
}

fn host_failed(known: &Known<'_>) -> Finding {
    let job = known.job;
    let reason = stated(job).map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = match job.hosts.as_slice() {
        [] => format!("A host of it failed{reason}."),
        [only] => format!("Its host {only} failed{reason}."),
        several => format!("One of its {} failed{reason}.", count(several.len() as u64, "host")),
    };
    Finding { hosts: job.hosts.clone(), ..Finding::new(FindingKind::HostFailed, text) }
}

fn failed(known: &Known<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let end = JobEnd::of(known.job);
    let mut causes: Vec<Finding> = out_of_memory(known, thresholds).into_iter().collect();
    causes.extend(failed_process::of(known, end));
    if causes.is_empty() {
        let reason = stated(known.job);
        causes
            .extend(reason.map(|reason| {
                Finding::new(FindingKind::Stated, format!("The middleware states: {reason}."))
            }));
        causes.extend(by_end(end));
    }
    causes
}

/// The reason in the text of the middleware, if it says more than that the job failed.
fn stated(job: &Job) -> Option<&str> {
    let reason = job.reason.trim().trim_end_matches('.');
    (!reason.is_empty() && !SAYS_NOTHING.contains(&reason)).then_some(reason)
}

fn by_end(end: JobEnd) -> Option<Finding> {
    if let Some(signal) = end.signal {
        return Some(Finding::new(FindingKind::Signal, format!("It was killed by {}.", signal_text(signal))));
    }
    let status = end.status?;
    let signal = status.checked_sub(128).filter(|signal| (1..=64).contains(signal));
    let meaning = signal.map_or_else(
        || status_text(status).to_owned(),
        |signal| format!(": by convention of shells, a process was killed by {}", signal_text(signal)),
    );
    let text = format!("It ended with exit status {status}{meaning}.");
    Some(Finding::new(FindingKind::ExitCode, text))
}

fn out_of_memory(known: &Known<'_>, thresholds: &Thresholds) -> Option<Finding> {
    let job = known.job;
    let killed: Vec<&&Usage> =
        known.usages.iter().filter(|usage| usage.figure(Figure::MemoryKills) > Some(0)).collect();
    let is_stated = job.product_state.starts_with("OUT_OF_ME") || is_of_memory(&job.reason);
    let killed = if killed.is_empty() && !is_stated { full(known) } else { killed };
    if killed.is_empty() && !is_stated {
        return None;
    }
    let kills: u64 = killed.iter().filter_map(|usage| usage.figure(Figure::MemoryKills)).sum();
    let hosts: Vec<String> = killed.iter().map(|usage| usage.host.to_string()).collect();
    let how = match kills {
        0 if is_stated => "Its memory was used up, as the middleware states".to_owned(),
        0 => format!("A process of it on {} was killed while its memory was used up", hosts.join(", ")),
        1 => format!("The kernel killed a process of it on {}, as its memory was used up", hosts.join(", ")),
        many => {
            format!(
                "The kernel killed {many} processes of it on {}, as its memory was used up",
                hosts.join(", ")
            )
        }
    };
    let used = match (job.usage, job.managed_memory_bytes()) {
        (Some(usage), Some(allocated)) => {
            let (peak, allocated) = (whole_bytes(usage.peak_memory_bytes), whole_bytes(allocated));
            format!(": at most {peak} of {allocated}")
        }
        (Some(usage), None) => format!(": at most {}", whole_bytes(usage.peak_memory_bytes)),
        (None, Some(allocated)) => format!(": it had {}", whole_bytes(allocated)),
        (None, None) => String::new(),
    };
    let found = Finding::new(FindingKind::OutOfMemory, format!("{how}{used}."));
    let value = job.usage.and_then(|usage| usage.memory_efficiency);
    let threshold = value.map(|_| thresholds.memory_near_limit);
    let events = killed.iter().map(|usage| usage.line.event.to_string()).collect();
    Some(Finding { value, threshold, hosts, events, ..found })
}

/// The usages of hosts whose memory was used up.
fn full<'a>(known: &'a Known<'_>) -> Vec<&'a &'a Usage> {
    known.usages.iter().filter(|usage| is_used_up(known, usage)).collect()
}

/// Whether the memory of the job on this host was used up, and a process was killed by the signal that the kernel sends then. The
/// kernel's own count of kills is gone with the control group of a step where that is of an older hierarchy.
pub(super) fn is_used_up(known: &Known<'_>, usage: &Usage) -> bool {
    let is_killed = |failure: &FailedProcess| failure.signal() == Some(SIGKILL);
    // Of several hosts it is not known how much each had.
    let allocated = known.job.managed_memory_bytes().filter(|_| known.job.hosts.len() == 1);
    let peak = usage.figure(Figure::PeakMemory).filter(|_| usage.by == MeasuredBy::ControlGroup);
    let is_full = allocated.zip(peak).is_some_and(|(allocated, peak)| peak >= allocated - allocated / 100);
    is_full && usage.failed.iter().any(is_killed)
}

/// Whether a reason says that memory was used up: of LSF, HTCondor, Torque/PBS and the kernel.
fn is_of_memory(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    [
        "term_memlimit",
        "out of memory",
        "oom",
        "memory usage exceeded",
        "memory limit",
        "exceeded memory",
        "mem exceeded",
    ]
    .iter()
    .any(|words| match *words {
        // Not as a part of other words.
        "oom" => reason.split(|char: char| !char.is_ascii_alphanumeric()).any(|word| word == "oom"),
        words => reason.contains(words),
    })
}
