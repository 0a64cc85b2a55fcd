//! A real Slurm runs a job that forks workers: the sensor lists exactly its processes, and records what they
//! did before it failed.
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them on loopback in a folder of the test.
//! Not here: logs of other versions (the filters' tests), other schedulers (the sensor's tests).

use crate::slurm::Slurm;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Slurm or the sensor.
const PATIENCE: Duration = Duration::from_secs(60);

/// Job script with workers of several kinds: idle, computing, without an environment, and detached from its
/// parent. Their pids are written to `pids` with that of the script; the job fails when `go` exists.
const JOB: &str = r#"#!/bin/bash
cd FOLDER
echo $$ >> pids
for i in 1 2 3; do sleep 600 & echo $! >> pids; done
bash -c 'while :; do :; done' & echo $! >> pids
env -i sleep 600 & echo $! >> pids
setsid bash -c 'echo $$ >> pids; exec sleep 600' &
while [ ! -e go ]; do read -t 0.2 < <(:) ; done
kill $(jobs -p)
exit 3
"#;

fn submit(slurm: &Slurm, folder: &Path) {
    let script = folder.join("job.sh");
    std::fs::write(&script, JOB.replace("FOLDER", &folder.display().to_string())).unwrap();
    slurm.submit(&[], &script);
}

fn ask(address: &Path, method: &str, params: &Value) -> Value {
    query::local_result(address, method, params).unwrap()
}

/// The pids that the job wrote, once they are all there.
fn pids(folder: &Path) -> BTreeSet<u64> {
    wait::until(PATIENCE, "the job's workers", || {
        let text = std::fs::read_to_string(folder.join("pids")).unwrap_or_default();
        let pids: BTreeSet<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(if pids.len() == 7 { Seen::Done(pids) } else { Seen::NotYet(text) })
    })
    .unwrap()
}

/// The running processes that are listed for the job. The job's script starts short subshells from time to
/// time.
fn living(address: &Path, script: &BTreeSet<u64>) -> (BTreeSet<u64>, Value) {
    let answer = ask(address, "sensor.call_processes", &json!({"call": "slurm:1", "limit": 0}));
    let live = answer["processes"].as_array().unwrap().iter().filter(|process| process["ended"].is_null());
    let is_passing = |process: &&Value| {
        let pid = process["pid"].as_u64().unwrap();
        script.contains(&pid) || std::fs::metadata(format!("/proc/{pid}")).is_ok()
    };
    let pids = live.filter(is_passing).map(|process| process["pid"].as_u64().unwrap()).collect();
    (pids, answer)
}

#[test]
fn a_job_of_a_real_slurm_is_known_by_its_processes() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Slurm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slurm = Slurm::start(folder.path(), 1);
    let config = folder.path().join("visperf.toml");
    let text = format!(
        "[sensor.recorder]\nhz = 64\n[[sensor.recorder.triggers]]\nname = 'failed'\noutcome = 'failed'\n\
         before_s = 3\nafter_s = 1\n[[sensor.tail]]\npath = '{}/slurmctld.log'\nfilter = 'slurmctld'\n",
        folder.path().display()
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.path().join("sensor"), &arguments).unwrap();
    // As root: processes are assigned to the job by their environments.
    let address = &folder.path().join("sensor/sensor.sock");
    submit(&slurm, folder.path());
    let expected = pids(folder.path());
    wait::until(PATIENCE, "exactly the job's processes", || {
        let (live, answer) = living(address, &expected);
        Ok(if live == expected { Seen::Done(()) } else { Seen::NotYet(format!("{expected:?}, {answer}")) })
    })
    .unwrap();
    // It must have run for a while: samples from more than a second before the end are requested.
    let computing = computing(folder.path());
    wait::until(PATIENCE, "a worker that has computed for a while", || {
        let answer = ask(address, "sensor.processes", &json!({"pid": computing, "limit": 1}));
        let used = answer["processes"][0]["cpu_seconds"].as_f64().unwrap_or(0.0);
        Ok(if used > 1.5 { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap();
    let recorded = fail_and_record(folder.path(), address);
    let asked = json!({"id": recorded["id"], "pid": computing, "limit": 10000});
    let recording = ask(address, "sensor.recording", &asked);
    let at = recorded["time"].as_f64().unwrap();
    let samples = recording["samples"].as_array().unwrap();
    // On a busy machine it does not run at each sweep; that every sweep is recorded is covered by the
    // recorder's own tests.
    let earlier =
        |secs: f64| samples.iter().filter(|sample| sample["time"].as_f64().unwrap() < at - secs).count();
    assert!(
        earlier(0.0) > 4 && earlier(1.0) > 0,
        "of the worker that computes, before the job failed: {recording}"
    );
    // The job's processes are still listed when all of it is gone.
    let params = json!({"call": "slurm:1", "pid": computing, "limit": 10});
    let after = ask(address, "sensor.call_processes", &params);
    assert!(after["total"].as_u64().unwrap() > 4, "{after}");
    let served = |process: &&Value| expected.contains(&process["pid"].as_u64().unwrap());
    assert_eq!(after["processes"].as_array().unwrap().iter().filter(served).count(), expected.len());
}

/// Pid of the computing worker: the fifth that was written.
fn computing(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("pids")).unwrap();
    let by_name = |pid: &u64| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        command.is_ok_and(|command| command.contains("while"))
    };
    let pids: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    pids.iter().copied().find(by_name).unwrap_or(pids[4])
}

/// Make the job fail; returns the recording that this triggers, once it is complete.
fn fail_and_record(folder: &Path, address: &Path) -> Value {
    wait::until(PATIENCE, "three seconds in memory", || {
        let answer = ask(address, "sensor.recordings", &json!({}));
        let is_enough = answer["reaches_back_secs"].as_f64().unwrap() > 3.0;
        Ok(if is_enough { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap();
    std::fs::write(folder.join("go"), "").unwrap();
    wait::until(PATIENCE, "the recording of the failure", || {
        let answer = ask(address, "sensor.recordings", &json!({}));
        let first = answer["recordings"][0].clone();
        let is_over = first["state"] == "whole" && first["call"] == "slurm:1";
        Ok(if is_over { Seen::Done(first) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap()
}
