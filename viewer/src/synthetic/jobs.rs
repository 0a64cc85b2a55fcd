//! Jobs: rows of the table, curves of a row, and the page of a job with findings, events and curves of its hosts.
//!
//! Pure. Rule: everything follows from the number of a job and the time. Not here: the window that shows them (`window`).

use crate::jobs::Row;
use crate::jobs::curves::{HostCurve, SPARK_COLUMNS, Spark};
use crate::jobs::page::{LogLine, PagePart};
use crate::served::Event;
use std::sync::Arc;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::findings::{Finding, FindingKind};
use wire::api::job_usage::{HostUsage, JobUsage};
use wire::api::jobs::{Job, JobRecord};
use wire::call::State;
use wire::event::{Kind, Outcome};
use wire::time::Time;

const USERS: [&str; 5] = ["aliu", "bkumar", "mrossi", "tnowak", "ada"];
const NAMES: [&str; 6] = ["relax", "fit_model", "stage_in", "md_equilibrate", "blastn", "sweep"];
const QUEUES: [&str; 3] = ["short", "long", "gpu"];
/// Hosts of the job whose page is shown, and points of each curve.
const HOSTS: u32 = 6;
const POINTS: u32 = 240;
/// How long that job has run, in seconds.
const RUN_SECS: u32 = 2_400;
const GIB: u64 = 1 << 30;

/// This many jobs of a domain, the newest submitted shortly before `now`; the first of them wait or run.
#[must_use]
pub fn rows(domain: &Arc<str>, count: u32, now: Time) -> Vec<Row> {
    (0..count).map(|number| Row::new(domain, job(count - number, number, now))).collect()
}

fn pick<'a>(of: &[&'a str], number: u32) -> &'a str {
    of[number as usize % of.len()]
}

fn job(number: u32, back: u32, now: Time) -> Job {
    let at = |secs: u32| Some(UnixTime(now.minus(Duration::from_secs(u64::from(secs)))));
    let (submitted, waited, ran) = (back * 40 + 20, number * 7 % 300, 30 + number * 61 % 5_000);
    let state = match back {
        0..2 => State::Waiting,
        2..6 => State::Running,
        _ => State::Ended,
    };
    let started = submitted.saturating_sub(waited);
    let outcome =
        [Outcome::Ok, Outcome::Ok, Outcome::Failed, Outcome::Ok, Outcome::Timeout, Outcome::Cancelled];
    let outcome = (state == State::Ended).then(|| outcome[number as usize * 5 % 6]);
    let kinds = match outcome {
        Some(Outcome::Failed) => vec![FindingKind::FailedProcess],
        Some(Outcome::Timeout) => vec![FindingKind::TimeLimit, FindingKind::LowCpu],
        Some(Outcome::Cancelled | Outcome::Ok | Outcome::NodeFail | Outcome::Finished) | None => Vec::new(),
    };
    let efficiency = f64::from(number * 37 % 100) / 100.0;
    let has_run = state != State::Waiting;
    Job {
        id: format!("slurm:{number}"),
        job: number.to_string(),
        product: "slurm".to_owned(),
        name: format!("{}_{}", pick(&NAMES, number * 7), number % 12),
        user: pick(&USERS, number * 3).to_owned(),
        queue: pick(&QUEUES, number).to_owned(),
        state,
        outcome,
        submitted: at(submitted),
        started: at(started).filter(|_| has_run),
        ended: at(started.saturating_sub(ran)).filter(|_| state == State::Ended),
        hosts: (0..if has_run { 1 + number % 3 } else { 0 })
            .map(|host| format!("wn{:03}", (number + host) % 40 + 1))
            .collect(),
        cpus: Some(u64::from(4 + number % 4 * 4)),
        usage: has_run.then(|| JobUsage {
            cpu_secs: f64::from(ran) * 4.0 * efficiency,
            cpu_efficiency: Some(efficiency),
            peak_memory_bytes: u64::from(1 + number % 9) * GIB / 2,
            ..JobUsage::default()
        }),
        findings: kinds.into_iter().map(|kind| Finding::new(kind, "")).collect(),
        ..Job::default()
    }
}

/// CPUs in use of the row at a position; every eighth has none.
#[must_use]
pub fn spark(position: usize) -> Option<Spark> {
    let steps = u32::try_from(position % 8).ok().filter(|steps| *steps > 0)?;
    let columns = 0..u32::try_from(SPARK_COLUMNS).ok()?;
    let cpus = |column: u32| Some(4.0 + 3.5 * (f64::from(column * steps) / 16.0).sin());
    let cpus: Vec<Option<f64>> = columns.map(cpus).collect();
    let greatest = cpus.iter().flatten().copied().fold(0.0, f64::max);
    Some(Spark { cpus, greatest, missing: 0 })
}

/// The parts of the page of a job that failed shortly before `now`.
#[must_use]
pub fn page(number: u32, now: Time) -> Vec<PagePart> {
    let started = now.minus(Duration::from_secs(u64::from(RUN_SECS) + 60));
    let ended = started.plus(Duration::from_secs(u64::from(RUN_SECS)));
    let lines = [
        (Kind::JobSubmit, "", 30_i64),
        (Kind::JobStart, "", 0),
        (Kind::JobEnd, "failed", -i64::from(RUN_SECS)),
    ];
    let line = |(at, (kind, outcome, before)): (usize, (Kind, &str, i64))| LogLine {
        id: format!("1-{at}-0"),
        event: Event {
            time: Time::from_micros(started.micros() - before * 1_000_000),
            kind,
            from: String::new(),
            to: "wn001".to_owned(),
            outcome: outcome.to_owned(),
            source: "ctl01:/var/log/slurm/slurmctld.log".to_owned(),
            attributes: vec!["exit_code: 1:0".to_owned()],
        },
    };
    let lines = lines.into_iter().enumerate().map(line).collect();
    let curves = (1..=HOSTS).map(|host| {
        let (host, curve) = (format!("wn{host:03}"), curve(host, started));
        PagePart::Curves { curves: Ok(vec![HostCurve { host: host.clone(), ..curve }]), host }
    });
    let record = PagePart::Record(Ok(Arc::new(record(number, started, ended))));
    [record, PagePart::Lines(Ok(lines))].into_iter().chain(curves).collect()
}

fn record(number: u32, started: Time, ended: Time) -> JobRecord {
    let text = "Its process python3 (11522) on wn001 ended with exit status 1, and the job with it.";
    let why = Finding {
        events: vec!["1-2-0".to_owned()],
        hosts: vec!["wn001".to_owned()],
        ..Finding::new(FindingKind::FailedProcess, text)
    };
    let waste = Finding::new(FindingKind::LowCpu, "It used 27 % of the CPU time of its 48 CPUs.");
    let times = Job {
        submitted: Some(UnixTime(started.minus(Duration::from_secs(30)))),
        started: Some(UnixTime(started)),
        ended: Some(UnixTime(ended)),
        ..Job::default()
    };
    let job = Job {
        id: format!("slurm:{number}"),
        job: number.to_string(),
        product: "slurm".to_owned(),
        name: "relax_2".to_owned(),
        user: "mrossi".to_owned(),
        uid: Some(1002),
        account: "physics".to_owned(),
        queue: "long".to_owned(),
        state: State::Ended,
        outcome: Some(Outcome::Failed),
        product_state: "FAILED".to_owned(),
        code: "1:0".to_owned(),
        hosts: (1..=HOSTS).map(|host| format!("wn{host:03}")).collect(),
        tries: 1,
        cpus: Some(48),
        nodes: Some(u64::from(HOSTS)),
        memory_bytes: Some(96 * GIB),
        time_limit_secs: Some(7_200),
        usage: Some(JobUsage {
            hosts: u64::from(HOSTS),
            cpu_secs: 31_104.0,
            cpu_efficiency: Some(0.27),
            peak_memory_bytes: 21 * GIB,
            memory_efficiency: Some(0.22),
            is_over: true,
            ..JobUsage::default()
        }),
        findings: vec![why, waste],
        ..times
    };
    let usage = |host: u32| HostUsage {
        host: format!("wn{host:03}"),
        started: UnixTime(started),
        until: UnixTime(ended),
        is_over: true,
        cpu_secs: 5_184.0,
        system_secs: 52.0,
        peak_memory_bytes: 3 * GIB + u64::from(host) * GIB / 8,
        mean_memory_bytes: Some(2 * GIB),
        processes: 9,
        read_bytes: Some(GIB),
        written_bytes: Some(GIB / 4),
        ..HostUsage::default()
    };
    JobRecord {
        explanation: text.to_owned(),
        job,
        usage: (1..=HOSTS).map(usage).collect(),
        ..JobRecord::default()
    }
}

/// What a host used: the third works less than the others.
fn curve(host: u32, started: Time) -> HostCurve {
    let step = RUN_SECS / POINTS;
    let load = if host == 3 { 1.5 } else { 6.0 };
    let cpus = |at: u32| load * (0.7 + 0.3 * (f64::from(at * host) / 20.0).sin());
    let memory = |at: u32| f64::from(at.min(120)) * 2.2e7 + f64::from(host) * 1e8;
    HostCurve {
        archive: None,
        host: String::new(),
        started,
        times: (1..=POINTS).map(|at| started.plus(Duration::from_secs(u64::from(at * step)))).collect(),
        cpus: (1..=POINTS).map(cpus).collect(),
        memory_bytes: (1..=POINTS).map(memory).collect(),
    }
}
