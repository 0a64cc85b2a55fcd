//! A real Slurm with slurmdbd and MariaDB: its own accounting states the same of each job as visperf does, and is imported
//! by a sensor that knows the jobs from the scheduler's log, and by one that knows none.
//!
//! Needs the daemons and root; `tests/slurm/start.sh` starts them in a folder of the test.
//! Not here: what jobs used (`slurm_usage`), imports of other middleware (`jobs_import`).

use crate::slurm::Slurm;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::{command, visperf};
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Slurm or the sensor.
const PATIENCE: Duration = Duration::from_secs(120);

/// Name of each job, its options, its script, and how often it is submitted.
const JOBS: [(&str, &[&str], &str, usize); 6] = [
    ("works", &[], "python3 -c 'import time\nwhile time.process_time() < 2: pass'", 3),
    ("fails", &[], "sleep 1; exit 3", 2),
    ("killed", &[], "sleep 1; kill -9 $$", 1),
    ("array", &["--array=1-3"], "sleep 1; exit $((SLURM_ARRAY_TASK_ID == 2))", 1),
    ("cancelled", &[], "sleep 600", 1),
    ("wide", &["--ntasks=2"], "srun sleep 1", 2),
];

/// Number of jobs: each task of the array is one.
const COUNT: usize = 12;

fn sensor(folder: &Path, name: &str, tail: &str) -> Daemon {
    let config = folder.join(format!("{name}.toml"));
    std::fs::write(&config, tail).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join(name), &arguments).unwrap().0
}

/// The jobs of a sensor by their ids.
fn jobs(socket: &Path) -> BTreeMap<String, Value> {
    let answer = query::local_result(socket, "jobs.search", &json!({"limit": 1000})).unwrap();
    let jobs = answer["jobs"].as_array().unwrap();
    let by_id: BTreeMap<String, Value> =
        jobs.iter().map(|job| (job["id"].as_str().unwrap().to_owned(), job.clone())).collect();
    assert_eq!(by_id.len(), jobs.len(), "each has one record: {answer}");
    by_id
}

/// The jobs, once all have ended.
fn ended(socket: &Path) -> BTreeMap<String, Value> {
    wait::until(PATIENCE, "all jobs have ended", || {
        let jobs = jobs(socket);
        // Cancelled as soon as it ran, it may have had no time to be measured.
        let is_over = |job: &Value| job["usage"]["is_over"] == true || job["outcome"] == "cancelled";
        let is_done = jobs.len() == COUNT && jobs.values().all(|job| job["state"] == "ended" && is_over(job));
        Ok(if is_done { Seen::Done(jobs) } else { Seen::NotYet(format!("{jobs:?}")) })
    })
    .unwrap()
}

/// What the accounting states of the jobs, once it has the ends of all.
fn accounted(slurm: &Slurm, file: &Path) -> Vec<BTreeMap<String, String>> {
    let table = wait::until(PATIENCE, "the accounting has all ends", || {
        let words = ["sacct", "--allusers", "--parsable2", "--starttime=2020-01-01", "--endtime=now"];
        let short = slurm.output(&[&words[..], &["--noheader", "--allocations", "--format=End"]].concat());
        let is_done = short.lines().count() == COUNT && !short.contains("Unknown");
        let all = || slurm.output(&[&words[..], &["--format=ALL"]].concat());
        Ok(if is_done { Seen::Done(all()) } else { Seen::NotYet(short) })
    })
    .unwrap();
    std::fs::write(file, &table).unwrap();
    let mut lines = table.lines().map(|line| line.split('|').map(str::to_owned).collect::<Vec<_>>());
    let names = lines.next().unwrap();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

/// Runs `visperf jobs import` and returns its sums.
fn import(folder: &Path, name: &str, file: &Path) -> Value {
    let output = command(visperf().unwrap())
        .args(["jobs", "import", "--json", "--state"])
        .arg(folder.join(name))
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sums(imported: &Value) -> [u64; 4] {
    ["stored", "completed", "known", "refused"].map(|name| imported[name].as_u64().unwrap())
}

#[test]
fn the_accounting_of_a_real_slurm_states_the_same_and_is_imported_once() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Slurm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slurm = Slurm::start_accounted(folder, 9001, 8);
    let tail =
        format!("[[sensor.tail]]\npath = '{}/slurmctld.log'\nfilter = 'slurmctld'\n", folder.display());
    let mut knowing = sensor(folder, "knowing", &tail);
    let socket = folder.join("knowing/sensor.sock");
    for (name, options, script, times) in JOBS {
        let file = folder.join("job.sh");
        std::fs::write(&file, format!("#!/bin/bash\n{script}\n")).unwrap();
        (0..times).for_each(|_| slurm.submit(&[&["--job-name", name], options].concat(), &file));
    }
    slurm.command(&["scancel", &slurm.running("cancelled", PATIENCE)]);
    let known = ended(&socket);
    let file = folder.join("sacct.txt");
    let rows = accounted(&slurm, &file);
    let of_jobs: Vec<_> = rows.iter().filter(|row| !row["JobID"].contains('.')).collect();
    assert_eq!(of_jobs.len(), COUNT);
    assert!(known.values().all(|job| job["name"] == ""), "the scheduler's log has no names: {known:?}");

    let imported = import(folder, "knowing", &file);
    assert_eq!(sums(&imported), [0, COUNT as u64, 0, 0], "{imported}");
    assert_eq!(sums(&import(folder, "knowing", &file)), [0, 0, COUNT as u64, 0]);
    let completed = jobs(&socket);
    of_jobs.iter().for_each(|row| check(row, &completed, true));
    knowing.kill().unwrap();
    knowing = sensor(folder, "knowing", &tail);
    assert_eq!(jobs(&socket), completed, "after kill -9");
    assert_eq!(sums(&import(folder, "knowing", &file)), [0, 0, COUNT as u64, 0]);
    drop(knowing);

    let _empty = sensor(folder, "empty", "");
    assert_eq!(sums(&import(folder, "empty", &file)), [COUNT as u64, 0, 0, 0]);
    let all = jobs(&folder.join("empty/sensor.sock"));
    of_jobs.iter().for_each(|row| check(row, &all, false));
    assert_eq!(sums(&import(folder, "empty", &file)), [0, 0, COUNT as u64, 0]);
}

/// Compares a job with its row of the accounting. `is_measured`: the sensor measured it, too.
fn check(row: &BTreeMap<String, String>, jobs: &BTreeMap<String, Value>, is_measured: bool) {
    let id = format!("slurm:{}", row["JobID"]);
    let job = jobs.get(&id).unwrap_or_else(|| panic!("{id} of {jobs:?}"));
    let expected = match row["State"].split(' ').next().unwrap() {
        "COMPLETED" => "ok",
        "CANCELLED" => "cancelled",
        "FAILED" => "failed",
        other => panic!("{other}: {row:?}"),
    };
    let text = |name: &str| job[name].as_str().unwrap_or_default();
    assert_eq!(text("outcome"), expected, "{job}");
    for (name, column) in
        [("name", "JobName"), ("user", "User"), ("account", "Account"), ("queue", "Partition")]
    {
        assert_eq!(text(name), row[column], "{name}: {job}");
    }
    assert_eq!(job["cpus"].as_u64().unwrap().to_string(), row["AllocCPUS"], "{job}");
    for (name, column) in [("submitted", "Submit"), ("started", "Start"), ("ended", "End")] {
        let stated: f64 = row[column].parse().unwrap();
        assert!((job[name].as_f64().unwrap() - stated).abs() < 2.0, "{name}: {job} {row:?}");
    }
    if row["JobName"] != "works" {
        return;
    }
    let accounted = job["accounted_cpu_secs"].as_f64().unwrap_or_else(|| panic!("{job} {row:?}"));
    assert!((2.0..4.0).contains(&accounted), "{job}");
    if is_measured {
        let measured = job["usage"]["cpu_secs"].as_f64().unwrap();
        // The accounting is cut to whole seconds.
        assert!((accounted..accounted + 1.1).contains(&measured), "{job}");
    }
}
