//! Texts of the page of a job: who, when, where, how much.
//!
//! Pure. Rule: what is not known has no line; times are so far while it waits or runs.

use crate::app::text::{moment, percent, span};
use crate::grid::text::shown;
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::job_amount::JobAmount;
use wire::api::job_usage::HostUsage;
use wire::api::jobs::{Job, JobRecord, JobRun};
use wire::call::State;
use wire::event::Outcome;
use wire::shown::{age, count, tenths, whole_bytes};
use wire::time::Time;

/// Most hosts that are named.
const HOSTS_SHOWN: usize = 32;

/// Label and text of each line.
pub(super) fn facts(record: &JobRecord, zone: &TimeZone, now: Time) -> Vec<(&'static str, String)> {
    let job = &record.job;
    let time = |time: Option<UnixTime>| time.map_or_else(String::new, |time| moment(time.0, zone, true));
    let secs = |amount: JobAmount, is_so_far: bool| {
        let so_far = if is_so_far { " so far" } else { "" };
        amount.of(job, Some(now)).map_or_else(String::new, |secs| format!("{}{so_far}", span(secs)))
    };
    let later = job.eligible.filter(|eligible| job.submitted.is_none_or(|submitted| submitted < *eligible));
    let limit = job.time_limit_secs.map_or_else(String::new, |secs| format!("at most {}", span(float(secs))));
    let tries = if job.tries > 1 { format!("{} starts", job.tries) } else { String::new() };
    let ended = if job.state == State::Ended { time(job.ended) } else { String::new() };
    let ran =
        if job.started.is_some() { secs(JobAmount::Ran, job.state == State::Running) } else { String::new() };
    let waited = if job.submitted.is_some() && (job.started.is_some() || job.state == State::Waiting) {
        secs(JobAmount::Waited, job.state == State::Waiting)
    } else {
        String::new()
    };
    let lines = [
        ("user", join([job.user.clone(), labeled("uid", job.uid.map(|uid| uid.to_string()).as_deref())])),
        ("account", job.account.clone()),
        ("project", job.project.clone()),
        ("queue", join([job.queue.clone(), labeled("quality of service", Some(&job.qos))])),
        ("array", member(&job.array_job, &job.array_task)),
        ("job set", member(&job.het_job, &job.het_offset)),
        ("submitted", join([time(job.submitted), labeled("from", Some(&job.from))])),
        ("eligible", time(later)),
        ("waited", waited),
        ("started", join([time(job.started), tries])),
        ("ended", ended),
        ("ran", join([ran, limit])),
        ("hosts", hosts(&job.hosts)),
        (if job.state == State::Waiting { "requested" } else { "allocated" }, allocated(job)),
        ("used", used(job)),
        ("accounted", accounted(job)),
        ("reason", job.reason.clone()),
        ("cancelled by", job.cancelled_by.clone()),
        ("imported", labeled("from", Some(&record.imported_from))),
    ];
    let lines = lines.into_iter().filter(|(_, text)| !text.is_empty());
    lines.map(|(label, text)| (label, shown(&text).text)).collect()
}

/// How it ended, in the middleware's word and with its code and signal.
pub(super) fn how(job: &Job) -> String {
    let word = if job.product_state.is_empty() { String::new() } else { format!("({})", job.product_state) };
    let parts = [word, labeled("exit code", Some(&job.code)), labeled("signal", Some(&job.signal))];
    shown(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")).text
}

fn member(whole: &str, number: &str) -> String {
    if whole.is_empty() { String::new() } else { format!("number {number} of {whole}") }
}

/// Names of hosts, not all of many.
fn hosts(hosts: &[String]) -> String {
    let named = hosts[..hosts.len().min(HOSTS_SHOWN)].join(", ");
    match hosts.len().saturating_sub(HOSTS_SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn allocated(job: &Job) -> String {
    let counted = |number: Option<u64>, one: &str| {
        number.filter(|number| *number > 0).map_or_else(String::new, |number| count(number, one))
    };
    join([
        counted(job.cpus, "CPU"),
        counted(job.nodes, "host"),
        job.managed_memory_bytes().map_or_else(String::new, whole_bytes),
        counted(job.gpus, "GPU"),
    ])
}

/// What was measured of its last run.
fn used(job: &Job) -> String {
    let Some(usage) = job.usage else { return String::new() };
    let of = |part: Option<f64>| {
        part.map_or_else(String::new, |part| format!(" ({} of the allocated)", percent(part)))
    };
    let hosts = job.hosts.len() as u64;
    let some =
        if usage.hosts < hosts { format!("on {} of {hosts} hosts", usage.hosts) } else { String::new() };
    join([
        format!("CPU time {}{}", tenths(usage.cpu_secs), of(usage.cpu_efficiency)),
        format!("peak memory {}{}", whole_bytes(usage.peak_memory_bytes), of(usage.memory_efficiency)),
        some,
    ])
}

/// What the middleware's accounting states of its usage.
fn accounted(job: &Job) -> String {
    join([
        job.accounted_cpu_secs.map_or_else(String::new, |secs| format!("CPU time {}", age(float(secs)))),
        job.accounted_peak_memory_bytes
            .map_or_else(String::new, |bytes| format!("peak memory {}", whole_bytes(bytes))),
    ])
}

/// Heads of the table of usage.
pub(super) const USAGE: [&str; 8] = ["host", "CPU", "system", "peak", "mean", "processes", "read", "written"];

/// A row of it.
pub(super) fn usage_row(usage: &HostUsage) -> [String; 8] {
    let bytes = |bytes: Option<u64>| bytes.map_or_else(String::new, whole_bytes);
    [
        shown(&usage.host).text,
        tenths(usage.cpu_secs),
        tenths(usage.system_secs),
        whole_bytes(usage.peak_memory_bytes),
        bytes(usage.mean_memory_bytes),
        usage.processes.to_string(),
        bytes(usage.read_bytes),
        bytes(usage.written_bytes),
    ]
}

/// Heads of the table of runs.
pub(super) const RUNS: [&str; 5] = ["started", "ran", "outcome", "code", "hosts"];

/// A row of it.
pub(super) fn run_row(run: &JobRun, zone: &TimeZone) -> [String; 5] {
    let ran = run.started.zip(run.ended).map(|(started, ended)| span(ended.0.since(started.0).as_secs_f64()));
    let outcome = match (run.outcome, run.ended) {
        (Some(outcome), _) => outcome.as_str(),
        (None, Some(_)) => "requeued",
        (None, None) => "",
    };
    let texts = [
        run.started.map_or_else(String::new, |time| moment(time.0, zone, true)),
        ran.unwrap_or_default(),
        outcome.replace('_', " "),
        join([run.code.clone(), labeled("signal", Some(&run.signal))]),
        hosts(&run.hosts),
    ];
    texts.map(|text| shown(&text).text)
}

/// Its outcome, or its state until it has one.
pub(super) fn state(job: &Job) -> String {
    job.outcome.map_or(job.state.as_str(), Outcome::as_str).replace('_', " ")
}

fn labeled(label: &str, text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(String::new, |text| format!("{label} {text}"))
}

fn join<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[allow(clippy::cast_precision_loss)] // It is shown with two digits.
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn texts(job: Job) -> Vec<String> {
        let record = JobRecord { job, ..JobRecord::default() };
        let lines = facts(&record, &TimeZone::UTC, Time::from_micros(2_000_000_000));
        lines.into_iter().map(|(label, text)| format!("{label}: {text}")).collect()
    }

    #[test]
    fn a_page_has_a_line_for_what_is_known() {
        let job = Job {
            user: "ada".to_owned(),
            uid: Some(1002),
            state: State::Running,
            submitted: at(1_000),
            started: at(1_100),
            hosts: (0..40).map(|number| format!("wn{number:02}")).collect(),
            cpus: Some(8),
            nodes: Some(2),
            memory_bytes: Some(1 << 20),
            time_limit_secs: Some(3_600),
            tries: 2,
            ..Job::default()
        };
        let lines = texts(job.clone());
        for line in [
            "user: ada, uid 1002",
            "waited: 1 min 40 s",
            "started: 1970-01-01 00:18:20, 2 starts",
            "ran: 15 min so far, at most 1 h",
            "allocated: 8 CPUs, 2 hosts",
        ] {
            assert!(lines.iter().any(|known| known == line), "{line} in {lines:?}");
        }
        assert!(lines.iter().any(|line| line.ends_with("and 8 more")));
        assert!(
            !lines.iter().any(|line| line.starts_with("ended") || line.starts_with("account")),
            "{lines:?}"
        );
        let waiting = Job { state: State::Waiting, started: None, reason: "Re\u{1b}[2J".to_owned(), ..job };
        let lines = texts(waiting);
        assert!(lines.contains(&"waited: 16 min 40 s so far".to_owned()), "{lines:?}");
        assert!(
            lines.contains(&"reason: Re\u{fffd}[2J".to_owned())
                && lines.contains(&"requested: 8 CPUs, 2 hosts".to_owned())
        );
    }

    #[test]
    fn how_it_ended_has_the_middlewares_own_word() {
        let job =
            Job { product_state: "OUT_OF_MEMORY".to_owned(), code: "0:125".to_owned(), ..Job::default() };
        assert_eq!(how(&job), "(OUT_OF_MEMORY)  exit code 0:125");
        assert_eq!(how(&Job::default()), "");
    }
}
