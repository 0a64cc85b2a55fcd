//! Facts of jobs: what the accounting of Slurm, Grid Engine and Torque states of each job is what its call has, from all
//! logs of a cluster together.
//!
//! The expected values are parsed here from the accounting, independently of the filters.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection::{self, folder, join, moment, read, registry};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use wire::call::Call;
use wire::call::job::Fact;

/// Facts of a job; an empty text is a fact that must be unknown.
type Facts = Vec<(Fact, String)>;

/// All calls of a cluster, by job number.
fn calls(cluster: &Path) -> BTreeMap<String, Call> {
    let files = collection::files(cluster);
    let logs: Vec<_> = files.iter().filter_map(|path| read(registry(), path)).collect();
    assert!(logs.len() >= 3, "{}: {} logs", cluster.display(), logs.len());
    join(&logs).into_iter().map(|call| (call.job.to_string(), call)).collect()
}

/// Checks every job of the accounting; those that were accounted for twice by their last record.
fn check(cluster: &str, file: &str, expected: fn(&str) -> Option<(String, Facts)>) {
    let cluster = folder().join(cluster);
    let calls = calls(&cluster);
    let accounting = fs::read_to_string(cluster.join(file)).unwrap();
    let expected: BTreeMap<String, Facts> = accounting.lines().filter_map(expected).collect();
    assert!(expected.len() >= 40, "{}: {} jobs", cluster.display(), expected.len());
    for (job, facts) in &expected {
        let call = calls.get(job).unwrap_or_else(|| panic!("no call of {job}"));
        assert!(call.is_job(), "{call:?}");
        for (fact, value) in facts {
            assert_eq!(call.fact(*fact).unwrap_or_default(), value, "{fact} of {call:#?}");
        }
    }
}

fn between<'a>(line: &'a str, before: &str) -> &'a str {
    let rest = line.split_once(before).unwrap_or_else(|| panic!("{before} in {line}")).1;
    rest.split(' ').next().unwrap_or_default()
}

fn or_none(value: &str, none: &str) -> String {
    if value == none { String::new() } else { value.to_owned() }
}

fn slurm(line: &str) -> Option<(String, Facts)> {
    let array = line.contains(" ArrayJobId=");
    let [array_job, array_task] =
        ["ArrayJobId=", "ArrayTaskId="].map(|name| if array { between(line, name) } else { "" });
    let job = if array { format!("{array_job}_{array_task}") } else { between(line, "JobId=").to_owned() };
    let mem: u64 = between(line, ",mem=").split('M').next()?.parse().ok()?;
    let limit: u64 = between(line, " TimeLimit=").parse().ok()?;
    let uid = line.split_once('(')?.1.split(')').next()?;
    let facts = vec![
        (Fact::Uid, uid.to_owned()),
        (Fact::Queue, between(line, " Partition=").to_owned()),
        (Fact::State, between(line, " JobState=").to_owned()),
        (Fact::TimeLimit, (limit * 60).to_string()),
        (Fact::Memory, (mem << 20).to_string()),
        (Fact::Eligible, (moment(between(line, " EligibleTime=")).micros() / 1_000_000).to_string()),
        (Fact::Nodes, or_none(between(line, " NodeCnt="), "0")),
        (Fact::Cpus, or_none(between(line, " ProcCnt="), "0")),
        (Fact::ArrayJob, array_job.to_owned()),
        (Fact::ArrayTask, array_task.to_owned()),
    ];
    Some((job, facts))
}

fn grid_engine(line: &str) -> Option<(String, Facts)> {
    let fields: Vec<&str> = line.split(':').collect();
    let [job, queue, slots, task, cpu, rss] =
        [6, 1, 35, 36, 37, 17].map(|number: usize| fields.get(number - 1).copied().unwrap_or_default());
    let is_part = fields.get(41).is_some_and(|part| *part != "NONE");
    if line.starts_with('#') || is_part {
        return None;
    }
    let is_task = task != "0";
    let key = if is_task { format!("{job}.{task}") } else { job.to_owned() };
    let rss: f64 = rss.parse().ok()?;
    let facts = vec![
        (Fact::Queue, queue.to_owned()),
        (Fact::Cpus, slots.to_owned()),
        (Fact::CpuTime, cpu.split('.').next()?.to_owned()),
        (Fact::PeakMemory, if rss > 0.0 { format!("{:.0}", rss * 1024.0) } else { String::new() }),
        (Fact::ArrayJob, if is_task { job.to_owned() } else { String::new() }),
        (Fact::ArrayTask, or_none(task, "0")),
    ];
    Some((key, facts))
}

fn torque(line: &str) -> Option<(String, Facts)> {
    let mut parts = line.splitn(4, ';').skip(1);
    let (kind, job, pairs) = (parts.next()?, parts.next()?, parts.next()?);
    if kind != "E" {
        return None;
    }
    let value = |name: &str| {
        let pair = pairs.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        pair.unwrap_or_default()
    };
    let slots: Vec<&str> = value("exec_host").split('+').collect();
    let mut hosts: Vec<&str> = slots.iter().filter_map(|slot| slot.split('/').next()).collect();
    hosts.dedup();
    let secs = |clock: &str| {
        let parts = clock.split(':').map(|part| part.parse::<u64>().unwrap_or(0));
        if clock.is_empty() { String::new() } else { parts.fold(0, |sum, part| sum * 60 + part).to_string() }
    };
    let array = job.split('.').next().and_then(|number| number.split_once('-'));
    let mem = value("resources_used.mem")
        .strip_suffix("kb")
        .map_or(String::new(), |kib| (kib.parse::<u64>().unwrap() * 1024).to_string());
    let facts = vec![
        (Fact::Queue, value("queue").to_owned()),
        (Fact::Cpus, slots.len().to_string()),
        (Fact::Nodes, hosts.len().to_string()),
        (Fact::TimeLimit, secs(value("Resource_List.walltime"))),
        (Fact::CpuTime, secs(value("resources_used.cput"))),
        (Fact::PeakMemory, mem),
        (Fact::Eligible, value("etime").to_owned()),
        (Fact::ArrayJob, array.map_or("", |(array, _)| array).to_owned()),
        (Fact::ArrayTask, array.map_or("", |(_, task)| task).to_owned()),
    ];
    Some((job.to_owned(), facts))
}

#[test]
fn facts_of_slurm_s_jobs_are_those_of_its_completion_file() {
    check("slurm/22.05.8-alpha", "jobcomp.log", slurm);
}

#[test]
fn facts_of_grid_engine_s_jobs_are_those_of_its_accounting() {
    check("gridengine/8.1.9-alpha", "accounting", grid_engine);
}

#[test]
fn facts_of_torque_s_jobs_are_those_of_its_accounting() {
    check("torque/2.4.16-delta", "accounting.20261120", torque);
}
