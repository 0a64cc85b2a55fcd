//! Table of jobs: user, account, queue, state, times, what was allocated and used, and why a job waits or ended.
//!
//! Pure.

use crate::exit::Failure;
use crate::output::event_lines::outcome_color;
use crate::output::figures::user;
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table, now, offset_now};
use crate::output::{Color, Output, shortened};
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::job_amount::JobAmount;
use wire::api::job_usage::JobUsage;
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;
use wire::shown::{share, tenths, whole_bytes};
use wire::time::Time;

/// Characters shown of a name, a reason and a list of hosts on a terminal.
const SHOWN_CHARS: usize = 40;

const HEADS: [&str; 20] = [
    "DOMAIN",
    "JOB",
    "NAME",
    "USER",
    "ACCOUNT",
    "QUEUE",
    "STATE",
    "OUTCOME",
    "SUBMITTED",
    "WAITED",
    "RAN",
    "CPUS",
    "MEMORY",
    "GPUS",
    "CPU USED",
    "WASTED",
    "PEAK",
    "HOSTS",
    "FINDINGS",
    "REASON",
];

/// Columns to leave out on a narrow terminal, in this order.
const SPARED: [&str; 14] = [
    "GPUS",
    "MEMORY",
    "ACCOUNT",
    "WAITED",
    "PEAK",
    "WASTED",
    "CPUS",
    "REASON",
    "SUBMITTED",
    "QUEUE",
    "CPU USED",
    "HOSTS",
    "NAME",
    "FINDINGS",
];

/// Print a table of jobs, in the zone of this system.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_jobs(jobs: &[Job], asked: &[JobAmount], output: &mut Output) -> Result<(), Failure> {
    print_in(&TimeZone::system(), now(), (jobs, asked), output)
}

/// `asked`: amounts that it was searched by, whose columns stay longest.
fn print_in(
    zone: &TimeZone,
    now: Time,
    (jobs, asked): (&[Job], &[JobAmount]),
    output: &mut Output,
) -> Result<(), Failure> {
    let is_asked = |head: &&&str| asked.iter().any(|amount| column(*amount) == Some(**head));
    let last = SPARED.iter().filter(is_asked);
    let spared: Vec<&str> = SPARED.iter().filter(|head| !is_asked(head)).chain(last).copied().collect();
    let mut table = Table::new(&HEADS).spares(&spared).offset(offset_now(zone));
    // The domain of all is known to the user.
    let has_several = jobs.windows(2).any(|pair| pair[0].domain != pair[1].domain);
    for job in jobs {
        let domain = if has_several { job.domain.as_str() } else { "" };
        let domain = Cell::text(domain).color(Color::Name);
        table.row(std::iter::once(domain).chain(cells(job, zone, now, output)).collect());
    }
    table.print(output)
}

fn cells(job: &Job, zone: &TimeZone, now: Time, output: &Output) -> Vec<Cell> {
    let outcome = job.outcome.map_or("", Outcome::as_str);
    let count = |number: Option<u64>| Cell::figure(number.map_or(String::new(), |number| number.to_string()));
    let name = |text: &str| match output.width() {
        Some(_) => shortened(text, SHOWN_CHARS),
        None => text.to_owned(),
    };
    vec![
        Cell::text(job.id.as_str()).color(Color::Name),
        Cell::text(name(&job.name)),
        Cell::text(user(&job.user)),
        Cell::text(&job.account),
        Cell::text(&job.queue),
        Cell::text(job.state.as_str()).color(state_color(job.state)),
        Cell::text(outcome).color(outcome_color(outcome)),
        Cell::time(job.submitted.map_or(String::new(), |time| in_table(time.0, zone, output))),
        Cell::figure(waited(job, now)),
        Cell::figure(ran(job, now)),
        count(job.cpus),
        Cell::figure(job.managed_memory_bytes().map_or(String::new(), whole_bytes)),
        count(job.gpus.filter(|gpus| *gpus > 0)),
        Cell::figure(job.usage.map_or(String::new(), cpu_used)),
        Cell::figure(job.usage.and_then(|usage| usage.wasted_cpu_secs).map_or(String::new(), tenths)),
        Cell::figure(job.usage.map_or(String::new(), |usage| whole_bytes(usage.peak_memory_bytes))),
        Cell::text(name(&job.hosts.join(","))),
        Cell::text(kinds(job)),
        Cell::text(name(&job.reason)),
    ]
}

/// The column that has an amount.
fn column(amount: JobAmount) -> Option<&'static str> {
    match amount {
        JobAmount::CpuTime | JobAmount::CpuEfficiency => Some("CPU USED"),
        JobAmount::Wasted => Some("WASTED"),
        JobAmount::PeakMemory | JobAmount::MemoryEfficiency => Some("PEAK"),
        JobAmount::Waited => Some("WAITED"),
        JobAmount::Cpus => Some("CPUS"),
        JobAmount::Gpus => Some("GPUS"),
        JobAmount::Memory => Some("MEMORY"),
        JobAmount::Ran
        | JobAmount::ReadBytes
        | JobAmount::WrittenBytes
        | JobAmount::Nodes
        | JobAmount::TimeLimit
        | JobAmount::Tries => None,
    }
}

/// Kinds of its findings.
pub(crate) fn kinds(job: &Job) -> String {
    let kinds: Vec<&str> = job.findings.iter().map(|finding| finding.kind.as_str()).collect();
    kinds.join(",")
}

/// Measured CPU time: as a share of the allocated, if that is known.
pub(crate) fn cpu_used(usage: JobUsage) -> String {
    usage.cpu_efficiency.map_or_else(|| tenths(usage.cpu_secs), share)
}

/// Color of a state.
pub(crate) fn state_color(state: State) -> Color {
    if state == State::Running { Color::Good } else { Color::Dim }
}

/// Time between submission and start; so far, with `+`, while it waits.
pub(crate) fn waited(job: &Job, now: Time) -> String {
    span(job.submitted, job.started, now, job.state == State::Waiting)
}

/// Time between start and end; so far, with `+`, while it runs.
pub(crate) fn ran(job: &Job, now: Time) -> String {
    span(job.started, job.ended, now, job.state == State::Running)
}

fn span(from: Option<UnixTime>, to: Option<UnixTime>, now: Time, is_so_far: bool) -> String {
    let secs = |time: Option<UnixTime>| time.map(|time| time.0.secs_f64());
    match (from, is_so_far) {
        (Some(UnixTime(from)), true) => {
            format!("{}+", between(Some(from.secs_f64()), Some(now.max(from).secs_f64())))
        }
        _ => between(secs(from), secs(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;

    fn printed(job: Job, width: Option<usize>) -> String {
        let shared = Capture::default();
        let mut output = Output::into_writer(shared.clone(), width);
        print_in(&TimeZone::UTC, at(1000), (&[job], &[JobAmount::Waited]), &mut output).unwrap();
        shared.text()
    }

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn job() -> Job {
        Job {
            id: "slurm:17".to_owned(),
            user: "mrossi".to_owned(),
            account: "physics".to_owned(),
            queue: "long".to_owned(),
            submitted: Some(UnixTime(at(930))),
            cpus: Some(8),
            memory_bytes: Some(16 << 30),
            ..Job::default()
        }
    }

    #[test]
    fn a_job_has_what_was_allocated_and_its_times_so_far() {
        let waiting = printed(job(), None);
        for part in ["slurm:17", "mrossi", "physics", "long", "waiting", "70s+", "16.0 GiB"] {
            assert!(waiting.contains(part), "{part} in {waiting}");
        }
        let running = Job { state: State::Running, started: Some(UnixTime(at(990))), ..job() };
        let running = printed(running, None);
        assert!(running.contains("60s ") && running.contains("10s+"), "{running}");
        let ahead = Job { submitted: Some(UnixTime(at(1005))), ..job() };
        assert!(printed(ahead, None).contains("0s+"), "of a clock that is ahead");
    }

    #[test]
    fn a_narrow_terminal_has_no_line_that_is_too_long() {
        let wide = Job {
            name: "a name that is much longer than forty characters are".to_owned(),
            hosts: (0..40).map(|number| format!("wn{number:02}.site.example")).collect(),
            reason: "Resources".to_owned(),
            ..job()
        };
        let printed = printed(wide, Some(80));
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
        assert!(printed.contains("slurm:17") && printed.contains("waiting"), "{printed}");
        assert!(
            printed.contains("WAITED") && !printed.contains("CPUS"),
            "what was asked for stays: {printed}"
        );
    }
}
