//! Slurm: every job of the completion file is exactly one call, with the right times, hosts and end: from
//! that file alone, from the controller's log alone as far as it reports, and from all logs of the cluster in
//! two orders.
//!
//! The expected values are parsed here from the completion file and the controller's log, independently of
//! the filters.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{Read, moment};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::time::Time;

/// A job in Slurm's accounting.
#[derive(Debug)]
struct Job {
    /// `9_0` for a task of an array if known, else the number.
    name: String,
    user: String,
    job_name: String,
    outcome: Outcome,
    submitted: Option<Time>,
    started: Option<Time>,
    ended: Time,
    hosts: Vec<String>,
}

const SECOND: i64 = 1_000_000;

fn near(one: Option<Time>, other: Option<Time>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one.micros() - other.micros()).abs() <= SECOND,
        (one, other) => one == other,
    }
}

fn clusters() -> Vec<PathBuf> {
    let mut clusters: Vec<PathBuf> = fs::read_dir(collection::folder().join("slurm"))
        .expect("the collection has logs of Slurm")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("jobcomp.log").exists())
        .collect();
    clusters.sort();
    assert!(clusters.len() >= 2, "{clusters:?}");
    clusters
}

/// Text between `before` and `after`.
fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &line[line.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

/// Expand `wn[01-02,04]` to its hosts, which is all that these clusters need.
fn hosts(list: &str) -> Vec<String> {
    if list == "(null)" {
        return Vec::new();
    }
    let Some((stem, ranges)) = list.strip_suffix(']').and_then(|list| list.split_once('[')) else {
        return vec![list.to_owned()];
    };
    let mut hosts = Vec::new();
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        for number in low.parse::<u32>().unwrap()..=high.parse().unwrap() {
            hosts.push(format!("{stem}{number:0width$}", width = low.len()));
        }
    }
    hosts
}

/// The job numbers of array tasks: `13` is `9_0`.
fn task_names(controller: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for line in controller.lines() {
        for word in line.split_ascii_whitespace() {
            let Some((name, number)) =
                word.split_once('=').and_then(|(_, id)| id.strip_suffix(')')?.split_once('('))
            else {
                continue;
            };
            if name.contains('_') {
                names.insert(number.to_owned(), name.to_owned());
            }
        }
    }
    names
}

/// Submission times of jobs and arrays, from the controller's log.
fn submissions(controller: &str) -> BTreeMap<String, Time> {
    let mut times = BTreeMap::new();
    for line in controller.lines() {
        if line.contains("_slurm_rpc_submit_batch_job") || line.contains("_slurm_rpc_allocate_resources") {
            let Some(job) = between(line, "JobId=", " ") else { continue };
            times.insert(job.to_owned(), moment(between(line, "[", "]").unwrap()));
        }
    }
    times
}

fn accounted(folder: &Path) -> Vec<Job> {
    let controller = fs::read_to_string(folder.join("slurmctld.log")).unwrap();
    let (tasks, submitted) = (task_names(&controller), submissions(&controller));
    let completions = fs::read_to_string(folder.join("jobcomp.log")).unwrap();
    let mut jobs = Vec::new();
    for line in completions.lines() {
        let number = between(line, "JobId=", " ").unwrap();
        let name = tasks.get(number).map_or(number, String::as_str).to_owned();
        let array = name.split_once('_').map_or(number, |(array, _)| array);
        let hosts = hosts(between(line, " NodeList=", " ").unwrap());
        jobs.push(Job {
            user: between(line, " UserId=", "(").unwrap().to_owned(),
            job_name: between(line, " Name=", " JobState=").unwrap().to_owned(),
            outcome: match between(line, " JobState=", " ").unwrap() {
                "COMPLETED" => Outcome::Ok,
                "FAILED" => Outcome::Failed,
                "CANCELLED" => Outcome::Cancelled,
                "TIMEOUT" => Outcome::Timeout,
                other => panic!("state {other} is new to this test"),
            },
            submitted: between(line, " SubmitTime=", " ")
                .map(moment)
                .or_else(|| submitted.get(array).copied()),
            started: (!hosts.is_empty()).then(|| moment(between(line, " StartTime=", " ").unwrap())),
            ended: moment(between(line, " EndTime=", " ").unwrap()),
            hosts,
            name,
        });
    }
    assert!(jobs.len() >= 90, "{}: only {} jobs", folder.display(), jobs.len());
    jobs
}

/// The logs of a cluster by their names.
fn logs(folder: &Path) -> Vec<(String, Read)> {
    let registry = collection::registry();
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".log"))
        .collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
        .into_iter()
        .map(|name| {
            let log = collection::read(registry, &folder.join(&name))
                .unwrap_or_else(|| panic!("{name}: no filter"));
            (name, log)
        })
        .collect()
}

/// The call of each job: exactly one per job, and no others.
fn by_job(calls: &[Call]) -> BTreeMap<&str, &Call> {
    let map: BTreeMap<&str, &Call> = calls.iter().map(|call| (call.job.as_str(), call)).collect();
    assert_eq!(map.len(), calls.len(), "two calls of one job");
    map
}

fn check_fully(jobs: &[Job], calls: &[Call], with_submission: bool) {
    assert_eq!(calls.len(), jobs.len(), "calls, and jobs accounted for");
    let calls = by_job(calls);
    for job in jobs {
        let call = calls.get(job.name.as_str()).unwrap_or_else(|| panic!("no call of {job:?}"));
        let is_right = call.state == State::Ended
            && near(call.started, job.started)
            && near(call.ended, Some(job.ended))
            && call.outcome == Some(job.outcome)
            && call.hosts == job.hosts
            && call.user == job.user
            && call.name == job.job_name
            && call.tries == u32::from(job.started.is_some())
            && (!with_submission || near(call.submitted, job.submitted));
        assert!(is_right, "{job:#?}\n{call:#?}");
    }
}

#[test]
fn the_completion_file_alone_reports_every_job() {
    for folder in clusters() {
        let logs = logs(&folder);
        let (_, log) = logs.iter().find(|(name, _)| name == "jobcomp.log").unwrap();
        assert_eq!(log.filter, "slurm-jobcomp");
        let mut jobs = accounted(&folder);
        let has_tasks = fs::read_to_string(folder.join("jobcomp.log")).unwrap().contains("ArrayTaskId=");
        if !has_tasks {
            // Before 17.11 the file has only a task's own number.
            let tasks = task_names(&fs::read_to_string(folder.join("slurmctld.log")).unwrap());
            let numbers: BTreeMap<_, _> = tasks.iter().map(|(number, name)| (name, number)).collect();
            for job in &mut jobs {
                if let Some(number) = numbers.get(&job.name) {
                    job.name = (*number).clone();
                }
            }
        }
        let mut calls = collection::join([log]);
        for call in &mut calls {
            if has_tasks && let Some(task) = call.id.strip_prefix("slurm:") {
                call.job = task.into();
            }
        }
        check_fully(&jobs, &calls, has_tasks);
        assert_eq!(log.unknown, Vec::<String>::new());
    }
}

#[test]
fn all_logs_together_report_every_job_once_in_any_order() {
    for folder in clusters() {
        let jobs = accounted(&folder);
        let logs = logs(&folder);
        check_fully(&jobs, &collection::join(logs.iter().map(|(_, log)| log)), true);
        check_fully(&jobs, &collection::join(logs.iter().rev().map(|(_, log)| log)), true);
    }
}

/// All permutations of this many elements.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..of {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                (0..=order.len()).map(move |at| [&order[..at], &[next], &order[at..]].concat())
            })
            .collect();
    }
    orders
}

#[test]
fn a_job_has_one_id_whatever_is_read_first() {
    for folder in clusters() {
        let logs = logs(&folder);
        let tasks = task_names(&fs::read_to_string(folder.join("slurmctld.log")).unwrap());
        assert!(tasks.len() > 20, "{tasks:?}");
        let ids = |order: &[usize]| -> BTreeSet<String> {
            let calls = collection::join(order.iter().map(|&at| &logs[at].1));
            calls.iter().map(|call| call.id.to_string()).collect()
        };
        let known = ids(&[0, 1, 2, 3]);
        for task in tasks.values() {
            assert!(known.contains(&format!("slurm:{task}")), "{task}: {known:?}");
        }
        let orders = orders(4);
        assert_eq!(orders.len(), 24);
        for order in orders {
            assert_eq!(ids(&order), known, "{order:?}");
        }
    }
}

#[test]
fn the_controllers_log_alone_agrees_with_the_accounts() {
    for folder in clusters() {
        let jobs = accounted(&folder);
        let logs = logs(&folder);
        let (_, log) = logs.iter().find(|(name, _)| name == "slurmctld.log").unwrap();
        let calls = collection::join([log]);
        assert_eq!(calls.len(), jobs.len());
        let calls = by_job(&calls);
        for job in &jobs {
            let call = calls.get(job.name.as_str()).unwrap_or_else(|| panic!("no call of {job:?}"));
            // The log prints no start, and from 17.02 on no end of a running job that was cancelled: both are
            // implied by the selection of a host and the request to cancel.
            let is_right = call.state == State::Ended
                && near(call.submitted, job.submitted)
                && near(call.selected, job.started)
                && near(call.started, job.started)
                && call.hosts == job.hosts
                && near(call.ended, Some(job.ended))
                && call.outcome == Some(job.outcome);
            assert!(is_right, "{job:#?}\n{call:#?}");
        }
    }
}

/// A host's log reports the start and end of the batch script of a job.
#[test]
fn the_hosts_logs_alone_report_when_batch_jobs_ran() {
    for folder in clusters() {
        let jobs = accounted(&folder);
        let tasks = task_names(&fs::read_to_string(folder.join("slurmctld.log")).unwrap());
        let logs = logs(&folder);
        let hosts: Vec<&Read> =
            logs.iter().map(|(_, log)| log).filter(|log| log.filter == "slurmd").collect();
        let calls = collection::join(hosts);
        let mut seen = 0;
        for call in calls.iter().filter(|call| call.started.is_some()) {
            let name = tasks.get(call.job.as_str()).map_or(call.job.as_str(), String::as_str);
            let job = jobs.iter().find(|job| job.name == name).unwrap();
            seen += 1;
            let outcome_fits = match call.outcome {
                Some(Outcome::Finished) => true,
                outcome => outcome == Some(job.outcome),
            };
            let late = call.ended.map(|at| at.micros() - job.ended.micros());
            let is_right = call.state == State::Ended
                && near(call.started, job.started)
                && late.is_some_and(|late| (-SECOND..=3 * SECOND).contains(&late))
                && outcome_fits;
            assert!(is_right, "{job:#?}\n{call:#?}");
        }
        assert!(seen >= 40, "{}: only {seen} jobs", folder.display());
    }
}

/// Outcomes for which the collection has no example.
const CONTROLLER: &str = "\
[2026-11-20T12:00:00.100] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=1 usec=1
[2026-11-20T12:00:01.100] sched: Allocate JobId=7 NodeList=wn02 #CPUs=1 Partition=short
[2026-11-20T12:05:00.100] error: Nodes wn02 not responding, setting DOWN
[2026-11-20T12:05:00.200] requeue job JobId=7 due to failure of node wn02
[2026-11-20T12:05:30.000] Requeuing JobId=7
[2026-11-20T12:06:00.000] sched: Allocate JobId=7 NodeList=wn03 #CPUs=1 Partition=short
[2026-11-20T12:08:00.000] _job_complete: JobId=7 WEXITSTATUS 0
[2026-11-20T12:08:00.000] _job_complete: JobId=7 done
[2026-11-20T12:10:00.000] _slurm_rpc_submit_batch_job: JobId=8 InitPrio=1 usec=1
[2026-11-20T12:10:01.000] sched: Allocate JobId=8 NodeList=wn[02-03] #CPUs=2 Partition=short
[2026-11-20T12:11:00.000] Killing JobId=8 on failed node wn03
[2026-11-20T12:12:00.000] _slurm_rpc_submit_batch_job: JobId=9 InitPrio=1 usec=1
[2026-11-20T12:12:01.000] sched: Allocate JobId=9 NodeList=wn02 #CPUs=2 Partition=short
[2026-11-20T12:12:30.000] Requeuing JobId=9
[2026-11-20T12:13:00.000] sched: Allocate JobId=9 NodeList=wn04 #CPUs=2 Partition=short
[2026-11-20T12:13:30.000] _job_complete: JobId=9 WEXITSTATUS 3
[2026-11-20T12:13:30.000] _job_complete: JobId=9 done
";

const COMPLETIONS: &str = "\
JobId=7 UserId=a(1) GroupId=a(1) Name=lost JobState=NODE_FAIL Partition=short TimeLimit=10 StartTime=2026-11-20T12:00:01 EndTime=2026-11-20T12:05:00 NodeList=wn02 NodeCnt=1 ProcCnt=1 WorkDir=/ ReservationName= Tres= Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-20T12:00:00 EligibleTime=2026-11-20T12:00:00 DerivedExitCode=0:0 ExitCode=0:0 
JobId=7 UserId=a(1) GroupId=a(1) Name=lost JobState=COMPLETED Partition=short TimeLimit=10 StartTime=2026-11-20T12:06:00 EndTime=2026-11-20T12:08:00 NodeList=wn03 NodeCnt=1 ProcCnt=1 WorkDir=/ ReservationName= Tres= Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-20T12:05:30 EligibleTime=2026-11-20T12:05:30 DerivedExitCode=0:0 ExitCode=0:0 
JobId=8 UserId=a(1) GroupId=a(1) Name=lost JobState=NODE_FAIL Partition=short TimeLimit=10 StartTime=2026-11-20T12:10:01 EndTime=2026-11-20T12:11:00 NodeList=wn[02-03] NodeCnt=2 ProcCnt=2 WorkDir=/ 
JobId=9 UserId=a(1) GroupId=a(1) Name=again JobState=PENDING Partition=short TimeLimit=10 StartTime=2026-11-20T12:12:01 EndTime=2026-11-20T12:12:29 NodeList=wn02 NodeCnt=1 ProcCnt=2 WorkDir=/ 
JobId=9 UserId=a(1) GroupId=a(1) Name=again JobState=FAILED Partition=short TimeLimit=10 StartTime=2026-11-20T12:13:00 EndTime=2026-11-20T12:13:30 NodeList=wn04 NodeCnt=1 ProcCnt=2 WorkDir=/ 
";

#[test]
fn a_job_that_is_tried_again_is_one_call() {
    let registry = collection::registry();
    let log = |name: &str, text: &str| collection::read_bytes(registry, name, text.as_bytes()).unwrap();
    let (controller, completions) = (log("slurmctld.log", CONTROLLER), log("jobcomp.log", COMPLETIONS));
    let orders: [&[&Read]; 4] =
        [&[&completions], &[&controller], &[&controller, &completions], &[&completions, &controller]];
    for (number, order) in orders.iter().enumerate() {
        let calls = collection::join(order.iter().copied());
        assert_eq!(calls.len(), 3, "order {number}: {calls:#?}");
        let calls = by_job(&calls);
        let check = |job: &str, started: &str, ended: &str, outcome, hosts: &[&str], tries: u32| {
            let call = calls[job];
            let is_right = near(call.started.or(call.selected), Some(moment(started)))
                && near(call.ended, Some(moment(ended)))
                && call.outcome == Some(outcome)
                && call.hosts == hosts
                && (call.started.is_none() || call.tries == tries);
            assert!(is_right, "order {number}, job {job}: {call:#?}");
        };
        check("7", "2026-11-20T12:06:00", "2026-11-20T12:08:00", Outcome::Ok, &["wn03"], 2);
        check("8", "2026-11-20T12:10:01", "2026-11-20T12:11:00", Outcome::NodeFail, &["wn02", "wn03"], 1);
        check("9", "2026-11-20T12:13:00", "2026-11-20T12:13:30", Outcome::Failed, &["wn04"], 2);
    }
}
