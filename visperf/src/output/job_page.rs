//! Page of one job: who, what, when, where, how it ended, and its runs.
//!
//! Pure.

use crate::exit::Failure;
use crate::output::event_lines::outcome_color;
use crate::output::figures::user;
use crate::output::job_table::{ran, state_color, waited};
use crate::output::job_usage::print_usage;
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table, offset_now, to_second};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::findings::{Finding, FindingClass};
use wire::api::jobs::{Job, JobRecord, JobRun};
use wire::call::State;
use wire::shown::{age, count, share, tenths, whole_bytes};
use wire::time::Time;

/// Width of the labels.
const LABEL_CHARS: usize = 11;

/// Most hosts that the page names.
const HOSTS_SHOWN: usize = 32;

/// Print the page of a job.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_job(
    record: &JobRecord,
    zone: &TimeZone,
    now: Time,
    output: &mut Output,
) -> Result<(), Failure> {
    output.line(&head(&record.job, output))?;
    for finding in &record.job.findings {
        let (label, color) = label_of(finding, &record.explanation);
        let mut label = format!("{label:LABEL_CHARS$}");
        for line in lines(&clean(&finding.text), output.width()) {
            output.line(&format!("{}{}", output.paint(Color::Head, &label), output.paint(color, &line)))?;
            label = " ".repeat(LABEL_CHARS);
        }
    }
    let imported = ("imported", labeled("from", &record.imported_from));
    for (label, text) in rows(&record.job, zone, now).into_iter().chain([imported]) {
        if !text.is_empty() {
            let label = format!("{label:LABEL_CHARS$}");
            output.line(&format!("{}{text}", output.paint(Color::Head, &label)))?;
        }
    }
    if record.runs.len() > 1 {
        output.line("")?;
        runs(&record.runs, zone, output).print(output)?;
    }
    print_usage(&record.usage, zone, output)
}

/// Label and color of a finding.
fn label_of(finding: &Finding, explanation: &str) -> (&'static str, Color) {
    match FindingClass::from_word(&finding.class) {
        Some(FindingClass::Cause) if finding.text == explanation => ("why", Color::Bad),
        Some(FindingClass::Cause) => ("also", Color::Bad),
        Some(FindingClass::Waste) => ("waste", Color::Caution),
        Some(FindingClass::Note) | None => ("note", Color::Dim),
    }
}

/// A sentence as lines behind a label, broken between words.
fn lines(text: &str, width: Option<usize>) -> Vec<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL_CHARS).max(LABEL_CHARS));
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let len = line.chars().count();
        if len > 0 && len + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            *line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines
}

fn head(job: &Job, output: &Output) -> String {
    let id = output.paint(Color::Name, &job.id).into_owned();
    let state = match job.outcome {
        Some(outcome) => output.paint(outcome_color(outcome.as_str()), outcome.as_str()).into_owned(),
        None => output.paint(state_color(job.state), job.state.as_str()).into_owned(),
    };
    let how = match (job.code.as_str(), job.signal.as_str()) {
        ("", "") => String::new(),
        (code, "") => format!(", exit code {code}"),
        ("", signal) => format!(", signal {signal}"),
        (code, signal) => format!(", exit code {code}, signal {signal}"),
    };
    let word = match job.product_state.as_str() {
        "" => String::new(),
        word => format!(" ({word})"),
    };
    [id, clean(&job.name), format!("{state}{}{}", clean(&word), clean(&how))]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("  ")
}

fn rows(job: &Job, zone: &TimeZone, now: Time) -> [(&'static str, String); 13] {
    let time = |time: Option<UnixTime>| time.map(|time| to_second(time.0, zone)).unwrap_or_default();
    [
        ("user", whose(job)),
        ("array", member(&job.array_job, &job.array_task)),
        ("job set", member(&job.het_job, &job.het_offset)),
        ("submitted", join([time(job.submitted), labeled("from", &job.from)])),
        ("waited", join([waited(job, now), eligible(job, zone)])),
        ("started", join([time(job.started), labeled("starts:", &tries(job))])),
        ("ended", time(job.ended)),
        ("ran", join([ran(job, now), limit(job)])),
        ("hosts", hosts(&job.hosts)),
        (if job.state == State::Waiting { "requested" } else { "allocated" }, allocated(job)),
        ("used", used(job, zone)),
        ("accounted", accounted(job)),
        ("reason", reason(job)),
    ]
}

/// Why it waits or ended, in the text of the middleware.
fn reason(job: &Job) -> String {
    match (job.reason.as_str(), job.state) {
        ("", State::Waiting) => "no log states why it waits".to_owned(),
        (reason, _) => clean(reason),
    }
}

fn whose(job: &Job) -> String {
    let number = job.uid.map(|uid| format!("{} (uid {uid})", user(&job.user)));
    let name = number.unwrap_or_else(|| user(&job.user).into_owned());
    let left_out = if job.is_reduced { "the rest is shown to its user, root and operators" } else { "" };
    join([
        clean(&name),
        labeled("account", &job.account),
        labeled("project", &job.project),
        labeled("queue", &job.queue),
        labeled("quality of service", &job.qos),
        left_out.to_owned(),
    ])
}

fn member(whole: &str, number: &str) -> String {
    match (whole, number) {
        ("", _) => String::new(),
        (whole, "") => clean(&format!("of {whole}")),
        (whole, number) => clean(&format!("number {number} of {whole}")),
    }
}

fn eligible(job: &Job, zone: &TimeZone) -> String {
    let later = job.eligible.filter(|eligible| job.submitted.is_none_or(|submitted| submitted < *eligible));
    later.map_or(String::new(), |time| format!("eligible since {}", to_second(time.0, zone)))
}

fn tries(job: &Job) -> String {
    if job.tries > 1 { job.tries.to_string() } else { String::new() }
}

fn limit(job: &Job) -> String {
    #[allow(clippy::cast_precision_loss)] // shown in whole seconds
    let limit = |secs: u64| {
        format!("{} {}", if job.started.is_some() { "of at most" } else { "at most" }, age(secs as f64))
    };
    job.time_limit_secs.map_or(String::new(), limit)
}

fn hosts(hosts: &[String]) -> String {
    let shown = hosts[..hosts.len().min(HOSTS_SHOWN)].join(", ");
    match hosts.len().saturating_sub(HOSTS_SHOWN) {
        0 => clean(&shown),
        more => format!("{} and {}", clean(&shown), count(more as u64, "other")),
    }
}

fn allocated(job: &Job) -> String {
    let counted = |number: Option<u64>, one: &str| {
        number.filter(|number| *number > 0).map_or(String::new(), |number| count(number, one))
    };
    join([
        counted(job.cpus, "CPU"),
        counted(job.nodes, "host"),
        job.managed_memory_bytes().map_or(String::new(), whole_bytes),
        counted(job.gpus, "GPU"),
    ])
}

/// What was measured of its last run.
fn used(job: &Job, zone: &TimeZone) -> String {
    let Some(usage) = job.usage else { return String::new() };
    let of =
        |part: Option<f64>| part.map_or(String::new(), |part| format!(" ({} of the allocated)", share(part)));
    let hosts = job.hosts.len() as u64;
    // Of a job that has just ended the rest comes some seconds later.
    let as_of = if job.state == State::Running || !usage.is_over {
        format!("as of {}", to_second(usage.until.0, zone))
    } else {
        String::new()
    };
    let some =
        if usage.hosts < hosts { format!("on {} of {hosts} hosts", usage.hosts) } else { String::new() };
    join([
        format!("CPU time {}{}", tenths(usage.cpu_secs), of(usage.cpu_efficiency)),
        format!("peak memory {}{}", whole_bytes(usage.peak_memory_bytes), of(usage.memory_efficiency)),
        some,
        as_of,
    ])
}

/// What the middleware's accounting states of its usage.
fn accounted(job: &Job) -> String {
    let cpu = job.accounted_cpu_secs.map(|secs| {
        #[allow(clippy::cast_precision_loss)] // shown in whole seconds and percent
        let secs = secs as f64;
        let of_allocated = efficiency(job, secs)
            .map_or(String::new(), |share_of_one| format!(" ({} of the allocated)", share(share_of_one)));
        format!("CPU time {}{of_allocated}", age(secs))
    });
    let memory = job.accounted_peak_memory_bytes.map(|bytes| format!("peak memory {}", whole_bytes(bytes)));
    join([cpu.unwrap_or_default(), memory.unwrap_or_default()])
}

/// CPU time as a share of that of the allocated CPUs while the job ran.
fn efficiency(job: &Job, cpu_secs: f64) -> Option<f64> {
    let ran = job.ended?.0.secs_f64() - job.started?.0.secs_f64();
    #[allow(clippy::cast_precision_loss)] // shown in percent
    let allocated = job.cpus? as f64 * ran;
    (allocated >= 1.0).then(|| cpu_secs / allocated)
}

fn labeled(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { clean(&format!("{label} {text}")) }
}

fn join<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn clean(text: &str) -> String {
    crate::harmless::clean(text).into_owned()
}

fn runs(runs: &[JobRun], zone: &TimeZone, output: &Output) -> Table {
    let table = Table::new(&["RUN", "STARTED", "RAN", "OUTCOME", "CODE", "SIGNAL", "HOSTS"]);
    let mut table = table.spares(&["SIGNAL", "CODE"]).offset(offset_now(zone));
    for (number, run) in (1..).zip(runs) {
        let outcome = match (run.outcome, run.ended) {
            (Some(outcome), _) => outcome.as_str(),
            (None, Some(_)) => "requeued",
            (None, None) => "",
        };
        let secs = |time: Option<UnixTime>| time.map(|time| time.0.secs_f64());
        table.row(vec![
            Cell::figure(format!("{number}")),
            Cell::time(run.started.map_or(String::new(), |time| in_table(time.0, zone, output))),
            Cell::figure(between(secs(run.started), secs(run.ended))),
            Cell::text(outcome).color(run.outcome.map_or(Color::Dim, |known| outcome_color(known.as_str()))),
            Cell::text(&run.code),
            Cell::text(&run.signal),
            Cell::text(run.hosts.join(",")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use wire::api::findings::FindingKind;
    use wire::event::Outcome;

    fn printed(record: &JobRecord) -> String {
        let shared = Capture::default();
        let mut output = Output::into_writer(shared.clone(), None);
        print_job(record, &TimeZone::UTC, at(2000), &mut output).unwrap();
        shared.text()
    }

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn ended() -> Job {
        Job {
            id: "slurm:17".to_owned(),
            name: "relax".to_owned(),
            user: "mrossi".to_owned(),
            uid: Some(1002),
            account: "physics".to_owned(),
            queue: "long".to_owned(),
            state: State::Ended,
            outcome: Some(Outcome::Failed),
            product_state: "OUT_OF_MEMORY".to_owned(),
            code: "0:125".to_owned(),
            submitted: Some(UnixTime(at(900))),
            started: Some(UnixTime(at(1000))),
            ended: Some(UnixTime(at(1100))),
            hosts: vec!["wn01".to_owned(), "wn02".to_owned()],
            cpus: Some(8),
            nodes: Some(2),
            memory_bytes: Some(4 << 30),
            time_limit_secs: Some(3600),
            accounted_cpu_secs: Some(400),
            accounted_peak_memory_bytes: Some(3 << 30),
            tries: 1,
            ..Job::default()
        }
    }

    #[test]
    fn a_page_has_who_when_where_and_how_it_ended() {
        let text = printed(&JobRecord { job: ended(), ..JobRecord::default() });
        for part in [
            "slurm:17  relax  failed (OUT_OF_MEMORY), exit code 0:125",
            "user       mrossi (uid 1002), account physics, queue long",
            "waited     100s",
            "ended      1970-01-01T00:18:20Z",
            "ran        100s, of at most 60m",
            "hosts      wn01, wn02",
            "allocated  8 CPUs, 2 hosts, 4.0 GiB",
            "accounted  CPU time 6m (50 % of the allocated), peak memory 3.0 GiB",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(!text.contains("array") && !text.contains("RUN") && !text.contains("eligible"), "{text}");
    }

    #[test]
    fn a_requeued_job_has_its_runs_and_control_characters_are_harmless() {
        let run = |started: i64, ended: Option<i64>, outcome: Option<Outcome>| JobRun {
            started: Some(UnixTime(at(started))),
            ended: ended.map(at).map(UnixTime),
            outcome,
            hosts: vec!["wn01".to_owned()],
            ..JobRun::default()
        };
        let runs = vec![
            run(100, Some(160), Some(Outcome::NodeFail)),
            run(200, Some(230), None),
            run(300, None, None),
        ];
        let job =
            Job { name: "\x1b[2Jx".to_owned(), outcome: None, state: State::Running, tries: 3, ..ended() };
        let text = printed(&JobRecord { job, runs, ..JobRecord::default() });
        for part in ["node_fail", "60s", "requeued", "30s", "starts: 3", "running"] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(!text.contains('\x1b'), "{text:?}");
    }

    #[test]
    fn findings_come_first_and_say_what_they_are_for() {
        let finding = |kind: FindingKind, text: &str| Finding::new(kind, text);
        let findings = vec![
            finding(FindingKind::OutOfMemory, "Its memory was used up."),
            finding(FindingKind::FailedProcess, "Its process \x1b[2Jx failed."),
            finding(FindingKind::Idle, "It used almost no CPU time."),
            finding(FindingKind::LongWait, "It waited for 2h."),
            Finding {
                kind: "later".to_owned(),
                class: "later".to_owned(),
                text: "New.".to_owned(),
                ..Finding::default()
            },
        ];
        let record = JobRecord {
            explanation: findings[0].text.clone(),
            job: Job { findings, ..ended() },
            ..JobRecord::default()
        };
        let text = printed(&record);
        let shown: Vec<&str> = text.lines().skip(1).take(5).collect();
        let expected = [
            "why        Its memory was used up.",
            "also       Its process ",
            "waste      It used almost no CPU time.",
            "note       It waited for 2h.",
            "note       New.",
        ];
        assert!(shown.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
        let narrow = lines("It was a long sentence of words", Some(LABEL_CHARS + 12));
        assert_eq!(narrow, ["It was a", "long", "sentence of", "words"]);
        assert_eq!(lines("It was.", None), ["It was."]);
    }

    #[test]
    fn another_user_s_job_says_that_something_is_left_out() {
        let job = ended().reduced();
        let text = printed(&JobRecord { job, ..JobRecord::default() });
        assert!(text.contains("the rest is shown to its user, root and operators"), "{text}");
        assert!(!text.contains("physics") && !text.contains("allocated  8"), "{text}");
    }
}
