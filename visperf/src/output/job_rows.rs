//! Jobs as rows for other programs: comma-separated values, and the columns of `sacct --parsable2`.
//!
//! Pure. Rule: a row is one line, whatever a name contains; times are in UTC, amounts in bytes and seconds.

use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::Output;
use crate::output::times::shown;
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;

/// Columns of the comma-separated form.
const COLUMNS: &str = "domain,id,job,product,name,user,uid,account,project,queue,qos,array_job,array_task,het_job,het_offset,from,state,outcome,\
    product_state,code,signal,cancelled_by,submitted,eligible,started,ended,tries,hosts,cpus,nodes,memory_bytes,gpus,\
    time_limit_secs,accounted_cpu_secs,accounted_peak_memory_bytes,measured_hosts,cpu_secs,cpu_efficiency,wasted_cpu_secs,peak_memory_bytes,memory_efficiency,findings,reason,is_reduced";

/// Columns that `sacct` prints by default.
const SACCT: &str = "JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode";

/// Print jobs as comma-separated values, with a line of names (RFC 4180, but lines end with a newline alone).
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_csv(jobs: &[Job], output: &mut Output) -> Result<(), Failure> {
    output.line(COLUMNS)?;
    jobs.iter().try_for_each(|job| output.line(&values(job).join(",")))
}

/// Print jobs as `sacct --parsable2` does by default, for scripts that read that.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_sacct(jobs: &[Job], output: &mut Output) -> Result<(), Failure> {
    output.line(SACCT)?;
    jobs.iter().try_for_each(|job| output.line(&sacct(job)))
}

fn values(job: &Job) -> Vec<String> {
    let text = |text: &str| match clean(text) {
        text if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
        text => text.into_owned(),
    };
    let time = |time: Option<UnixTime>| time.map(|time| shown(time.0, &TimeZone::UTC)).unwrap_or_default();
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let texts = |all: &[&str]| all.iter().map(|one| text(one)).collect::<Vec<String>>();
    let mut row = texts(&[&job.domain, &job.id, &job.job, &job.product, &job.name, &job.user]);
    row.push(number(job.uid));
    row.extend(texts(&[&job.account, &job.project, &job.queue, &job.qos, &job.array_job, &job.array_task]));
    row.extend(texts(&[&job.het_job, &job.het_offset, &job.from]));
    row.extend(texts(&[job.state.as_str(), job.outcome.map_or("", Outcome::as_str)]));
    row.extend(texts(&[&job.product_state, &job.code, &job.signal, &job.cancelled_by]));
    row.extend([job.submitted, job.eligible, job.started, job.ended].map(time));
    row.extend([job.tries.to_string(), text(&job.hosts.join(" "))]);
    row.extend([job.cpus, job.nodes, job.memory_bytes, job.gpus, job.time_limit_secs].map(number));
    row.extend([job.accounted_cpu_secs, job.accounted_peak_memory_bytes].map(number));
    let share = |share: Option<f64>| share.map(|share| format!("{share:.4}")).unwrap_or_default();
    let usage = job.usage;
    row.push(number(usage.map(|usage| usage.hosts)));
    row.push(usage.map(|usage| format!("{:.3}", usage.cpu_secs)).unwrap_or_default());
    row.push(share(usage.and_then(|usage| usage.cpu_efficiency)));
    let wasted = usage.and_then(|usage| usage.wasted_cpu_secs);
    row.push(wasted.map(|secs| format!("{secs:.3}")).unwrap_or_default());
    row.push(number(usage.map(|usage| usage.peak_memory_bytes)));
    row.push(share(usage.and_then(|usage| usage.memory_efficiency)));
    let kinds: Vec<&str> = job.findings.iter().map(|finding| finding.kind.as_str()).collect();
    row.push(text(&kinds.join(" ")));
    row.extend([text(&job.reason), job.is_reduced.to_string()]);
    row
}

fn sacct(job: &Job) -> String {
    // sacct prints a separator within a name as it is, which shifts the columns.
    let text = |text: &str| clean(text).replace('|', " ");
    let number = match (job.array_job.as_str(), job.het_job.as_str()) {
        ("", "") => job.job.clone(),
        ("", het) => format!("{het}+{}", job.het_offset),
        (array, _) => format!("{array}_{}", job.array_task),
    };
    // Slurm prints code and signal; of others a signal is part of the code.
    let code = match (job.code.as_str(), job.signal.as_str()) {
        (code, _) if code.contains(':') => code.to_owned(),
        (code, "" | "0") => format!("{}:0", if code.is_empty() { "0" } else { code }),
        (_, signal) => format!("0:{signal}"),
    };
    let cpus = job.cpus.unwrap_or(0).to_string();
    [&number, &job.name, &job.queue, &job.account, &cpus, state(job), &code].map(text).join("|")
}

/// The state as Slurm has it.
fn state(job: &Job) -> &str {
    if job.product == "slurm" && !job.product_state.is_empty() {
        return &job.product_state;
    }
    match (job.state, job.outcome) {
        (State::Waiting, _) => "PENDING",
        (State::Running, _) => "RUNNING",
        (State::Ended, Some(Outcome::Failed)) => "FAILED",
        (State::Ended, Some(Outcome::Cancelled)) => "CANCELLED",
        (State::Ended, Some(Outcome::Timeout)) => "TIMEOUT",
        (State::Ended, Some(Outcome::NodeFail)) => "NODE_FAIL",
        (State::Ended, Some(Outcome::Ok | Outcome::Finished) | None) => "COMPLETED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use wire::time::Time;

    fn printed(print: fn(&[Job], &mut Output) -> Result<(), Failure>, job: Job) -> Vec<String> {
        let shared = Capture::default();
        print(&[job], &mut Output::into_writer(shared.clone(), None)).unwrap();
        shared.text().lines().map(str::to_owned).collect()
    }

    fn job() -> Job {
        Job {
            id: "slurm:9_7".to_owned(),
            job: "16".to_owned(),
            product: "slurm".to_owned(),
            name: "a, \"b\"|\n\x1b[2J".to_owned(),
            user: "ada".to_owned(),
            queue: "long".to_owned(),
            account: "physics".to_owned(),
            array_job: "9".to_owned(),
            array_task: "7".to_owned(),
            state: State::Ended,
            outcome: Some(Outcome::Failed),
            product_state: "OUT_OF_MEMORY".to_owned(),
            code: "0:125".to_owned(),
            started: Some(UnixTime(Time::from_micros(60_000_000))),
            hosts: vec!["wn1".to_owned(), "wn2".to_owned()],
            cpus: Some(4),
            ..Job::default()
        }
    }

    #[test]
    fn a_row_has_a_value_for_every_column_and_is_one_line() {
        let lines = printed(print_csv, job());
        assert_eq!((lines.len(), values(&job()).len()), (2, COLUMNS.split(',').count()));
        assert!(lines[1].starts_with(",slurm:9_7,16,slurm,\"a, \"\"b\"\"|"), "{lines:?}");
        assert!(
            lines[1].contains(",1970-01-01T00:01:00.000Z,") && lines[1].contains(",wn1 wn2,4,"),
            "{lines:?}"
        );
        assert!(!lines[1].contains('\x1b'));
    }

    #[test]
    fn the_columns_of_sacct_keep_their_number() {
        let lines = printed(print_sacct, job());
        let columns: Vec<&str> = lines[1].split('|').collect();
        assert_eq!(columns.len(), SACCT.split('|').count(), "{lines:?}");
        assert_eq!(
            (columns[0], &columns[2..]),
            ("9_7", &["long", "physics", "4", "OUT_OF_MEMORY", "0:125"][..])
        );
        let other =
            Job { product: "torque".to_owned(), array_job: String::new(), code: "3".to_owned(), ..job() };
        let lines = printed(print_sacct, other.clone());
        assert!(lines[1].starts_with("16|") && lines[1].ends_with("|FAILED|3:0"), "{lines:?}");
        let killed = Job { code: "137".to_owned(), signal: "9".to_owned(), ..other };
        assert!(printed(print_sacct, killed)[1].ends_with("|FAILED|0:9"));
    }
}
