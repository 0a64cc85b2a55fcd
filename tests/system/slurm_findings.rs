//! A real Slurm runs jobs that were made to fail, waste or work: what visperf finds about each is compared with what it
//! was made to do.
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them on loopback in a folder of the test.
//! Not here: amounts of usage (`slurm_usage`), findings that take long runs or several hosts (`sensor::findings`).

use crate::slurm::Slurm;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Slurm or the sensor.
const PATIENCE: Duration = Duration::from_secs(240);

/// Work that takes seven seconds of a CPU, whole or a tenth of it.
const BUSY: &str = "timeout 7 python3 -c 'while True: pass' || true";
const SELDOM_BUSY: &str = "timeout 7 python3 -c '
import time
while True:
    until = time.process_time() + .04
    while time.process_time() < until: pass
    time.sleep(.36)' || true";

/// Name, option, script, the kinds of its findings, and a part of the explanation.
type Made = (&'static str, &'static str, &'static str, &'static str, &'static str);

const FAILED: &str = "failed_process";

/// Jobs by what they were made to do.
const JOBS: [Made; 23] = [
    ("status", "", "python3 -c 'import sys; sys.exit(3)'", FAILED, "python3 ("),
    ("abort", "", "python3 -c 'import os; os.abort()'", FAILED, "signal 6 (SIGABRT)"),
    ("fault", "", "python3 -c 'import ctypes; ctypes.string_at(0)'", FAILED, "signal 11 (SIGSEGV)"),
    ("no command", "", "nosuchcommand", FAILED, "a command was not found"),
    ("no program", "", "/etc/passwd", FAILED, "a command could not be executed"),
    ("own status", "", "grep nosuch /etc/passwd\nexit 7", FAILED, "batch script"),
    ("probe", "", "grep nosuch /etc/passwd\nsleep 1\npython3 -c 'raise OSError'", FAILED, "python3 ("),
    ("deep", "", "set -e\nsh -c 'python3 -c \"exit(9)\"; exit $?'\necho not reached", FAILED, "python3 ("),
    (
        "optional",
        "",
        "cp /nosuch . || true\nsleep 6\ncd /nosuch || exit 1",
        "failed_process idle",
        "may have chosen",
    ),
    ("two", "", "python3 -c 'exit(1)'; rc=$?; grep -q nosuch /etc/passwd; exit $rc", FAILED, "python3 ("),
    ("below", "", "echo 1 | xargs sh -c 'exit 4'", FAILED, "Before, sh ("),
    ("pipe", "", "set -o pipefail\npython3 -c 'raise OSError' | cat", FAILED, "python3 ("),
    ("killed", "", "kill -9 $$", FAILED, "signal 9 (SIGKILL)"),
    ("step", "", "srun python3 -c 'import sys; sys.exit(5)'", FAILED, "python3 ("),
    ("no memory", "", "ulimit -v 200000\npython3 -c 'bytearray(1 << 30)'", FAILED, "python3 ("),
    ("not passed on", "", "false; grep nosuch /etc/passwd; sh -c 'kill -9 $$'; true", "", ""),
    ("cancelled", "", "sleep 600", "cancelled", "It was cancelled by its user"),
    ("limit", "--time=1", "while true; do sleep 1; done", "time_limit idle", "its time limit was"),
    ("busy", "", BUSY, "", ""),
    ("idle", "", "sleep 7", "idle", ""),
    ("one of four", "--cpus-per-task=4", BUSY, "one_cpu", ""),
    ("seldom busy", "", SELDOM_BUSY, "low_cpu", ""),
    ("requeued", "--requeue", "[ $SLURM_RESTART_COUNT ] || sleep 600", "requeued", ""),
];

fn submit(slurm: &Slurm, folder: &Path, (name, option, script, ..): Made) {
    let file = folder.join("job.sh");
    std::fs::write(&file, format!("#!/bin/bash\nsleep 1\n{script}\n")).unwrap();
    let options: Vec<&str> =
        ["--job-name", name, option].into_iter().filter(|word| !word.is_empty()).collect();
    slurm.submit(&options, &file);
}

/// The job of this name, once it has ended and was measured to its end.
fn ended(address: &Path, name: &str) -> Value {
    wait::until(PATIENCE, &format!("{name} has ended"), || {
        let answer = query::local_result(address, "jobs.search", &json!({"limit": 100}))?;
        let jobs = answer["jobs"].as_array().unwrap();
        let is_it = |job: &&Value| job["name"] == name && job["state"] == "ended";
        let Some(job) = jobs.iter().find(is_it) else { return Ok(Seen::NotYet(answer.to_string())) };
        let record = query::local_result(address, "jobs.get", &json!({"job": job["id"]}))?;
        let is_over = |usage: &Value| usage["is_over"] == true;
        let is_measured =
            record["usage"].as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_over));
        // Cancelled as soon as it ran, it may have had no time to be measured.
        let is_done = is_measured || job["outcome"] == "cancelled";
        Ok(if is_done { Seen::Done(record) } else { Seen::NotYet(record.to_string()) })
    })
    .unwrap()
}

#[test]
fn jobs_of_a_real_slurm_have_the_findings_of_what_they_were_made_to_do() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Slurm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slurm = Slurm::start_with(folder.path(), 8001, 8);
    let at = folder.path().display();
    let config = folder.path().join("visperf.toml");
    let text = format!(
        "[sensor.findings]\njudged_after_secs = 5\n\
         [[sensor.tail]]\npath = '{at}/slurmctld.log'\nfilter = 'slurmctld'\n\
         [[sensor.tail]]\npath = '{at}/jobcomp.log'\nfilter = 'slurm-jobcomp'\n"
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.path().join("sensor"), &arguments).unwrap();
    let address = &folder.path().join("sensor/sensor.sock");
    JOBS.into_iter().for_each(|made| submit(&slurm, folder.path(), made));
    slurm.command(&["scancel", &slurm.running("cancelled", PATIENCE)]);
    slurm.command(&["scontrol", "requeue", &slurm.running("requeued", PATIENCE)]);
    let mut wrong = Vec::new();
    for made in JOBS {
        let record = ended(address, made.0);
        println!("{}: {} | {}", made.0, kinds(&record).join(","), record["explanation"]);
        if !is_right(made, &record) {
            wrong.push(format!("{}: {record}", made.0));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{} of {}", wrong.len(), JOBS.len());
    searches_agree(address);
}

/// Searches by what was measured and found have the jobs that are listed with it.
fn searches_agree(address: &Path) {
    let search = |params: Value| {
        let answer = query::local_result(address, "jobs.search", &params).unwrap();
        answer["jobs"].as_array().unwrap().clone()
    };
    let ids = |jobs: &[Value]| jobs.iter().map(|job| job["id"].to_string()).collect::<Vec<String>>();
    let all = search(json!({}));
    let amount = |job: &Value, name: &str| job["usage"][name].as_f64();
    let mut wasted: Vec<Value> =
        all.iter().filter(|job| amount(job, "wasted_cpu_secs").is_some()).cloned().collect();
    let little: Vec<Value> =
        wasted.iter().filter(|job| amount(job, "cpu_efficiency") < Some(0.2)).cloned().collect();
    assert_eq!(ids(&search(json!({"where": ["cpu_efficiency < 20 %"]}))), ids(&little));
    wasted.sort_by(|one, other| {
        amount(other, "wasted_cpu_secs").partial_cmp(&amount(one, "wasted_cpu_secs")).unwrap()
    });
    assert!(wasted.len() > 10 && !little.is_empty(), "{all:?}");
    assert_eq!(ids(&search(json!({"sort": "wasted", "limit": 5}))), ids(&wasted[..5]));
    for kind in ["failed_process", "idle", "low_cpu", "signal", "requeued", "time_limit"] {
        let has = |job: &&Value| job["findings"].to_string().contains(&format!("\"kind\":\"{kind}\""));
        let found: Vec<Value> = all.iter().filter(has).cloned().collect();
        assert_eq!(ids(&search(json!({"finding": kind}))), ids(&found), "{kind}");
    }
}

fn kinds(record: &Value) -> Vec<&str> {
    let findings = record["job"]["findings"].as_array();
    findings.into_iter().flatten().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

fn is_right((_, _, _, expected, explanation): Made, record: &Value) -> bool {
    let efficiency = record["job"]["usage"]["cpu_efficiency"].as_f64();
    let expected: Vec<&str> = expected.split_whitespace().collect();
    // Beside other work a busy job may get little of its CPU: then that is what is to be found.
    let cpus = record["job"]["cpus"].as_f64().unwrap_or(1.0);
    let is_disturbed = match expected.as_slice() {
        [] => efficiency.is_some_and(|share| share < 0.3),
        ["one_cpu"] => efficiency.is_some_and(|share| share * cpus < 0.6),
        _ => false,
    };
    let is_found = kinds(record) == expected || is_disturbed && kinds(record) == ["low_cpu"];
    is_found && record["explanation"].as_str().unwrap_or_default().contains(explanation)
}
