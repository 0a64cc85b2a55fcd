//! A real Grid Engine runs jobs of known outcome and usage: what visperf says of each is compared with its accounting, whose
//! figures are those of `wait4(2)`, and with what the job was made to do.
//!
//! Needs the daemons and root; `tests/gridengine/start.sh` starts them in a folder of the test.
//! Not here: Slurm (`slurm_usage`, `slurm_findings`, `slurm_accounting`).

use crate::gridengine::GridEngine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::{command, visperf};
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Grid Engine or the sensor.
const PATIENCE: Duration = Duration::from_secs(300);

/// Number of the first job: a host has no two with one number.
const FIRST_JOB: u32 = 6001;

const BUSY: &str = "python3 -c '\nimport time\nwhile time.process_time() < 6: pass'";
const HOLDS: &str = "python3 -c '\nimport os, time\nheld = os.urandom(1 << 20) * 300\ntime.sleep(7)'";

/// Name of a job, its options, its script, the outcome, and the kinds of its findings.
type Made = (&'static str, &'static [&'static str], &'static str, &'static str, &'static str);

const JOBS: [Made; 12] = [
    ("busy", &[], BUSY, "ok", ""),
    (
        "pair",
        &["-pe", "smp", "2"],
        "python3 -c 'import time\nwhile time.process_time() < 4: pass' & python3 -c 'import time\nwhile time.process_time() < 4: pass'; wait",
        "ok",
        "",
    ),
    ("holds", &[], HOLDS, "ok", "low_cpu"),
    ("idle", &[], "sleep 7", "ok", "idle"),
    ("one_of_four", &["-pe", "smp", "4"], BUSY, "ok", "one_cpu"),
    (
        "many",
        &[],
        "for i in $(seq 60); do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done",
        "ok",
        "",
    ),
    ("status", &[], "sleep 1; exit 3", "failed", "failed_process"),
    ("program", &[], "sleep 1; python3 -c 'import sys; sys.exit(4)'", "failed", "failed_process"),
    ("abort", &[], "sleep 1; python3 -c 'import os; os.abort()'", "failed", "failed_process"),
    ("limit", &["-l", "h_rt=8"], "sleep 600", "timeout", "time_limit idle"),
    ("deleted", &[], "sleep 600", "cancelled", "cancelled idle"),
    ("tasks", &["-t", "1-3"], "sleep 1; exit $((SGE_TASK_ID == 2))", "", ""),
];

/// Number of jobs: each task of the array is one.
const COUNT: usize = JOBS.len() + 2;

/// The ended jobs of a sensor by name, each once.
fn jobs(socket: &Path) -> BTreeMap<String, Value> {
    let answer =
        query::local_result(socket, "jobs.search", &json!({"limit": 1000, "state": "ended"})).unwrap();
    let jobs = answer["jobs"].as_array().unwrap().iter();
    let name = |job: &Value| {
        let task = job["array_task"].as_str().map(|task| format!("[{task}]")).unwrap_or_default();
        // The accounting, which has the names, may be some seconds behind the messages.
        let name = job["name"].as_str().filter(|name| !name.is_empty());
        format!("{}{task}", name.unwrap_or_else(|| job["id"].as_str().unwrap()))
    };
    let mut by_name = BTreeMap::new();
    for job in jobs {
        let twice = by_name.insert(name(job), job.clone());
        assert_eq!(twice, None, "each has one record");
    }
    by_name
}

/// The jobs, once all have ended and were measured to their ends.
fn ended(socket: &Path) -> BTreeMap<String, Value> {
    wait::until(PATIENCE, "all jobs have ended", || {
        let jobs = jobs(socket);
        let is_over = |job: &Value| job["usage"]["is_over"] == true && job["name"] != "";
        let is_done = jobs.len() == COUNT && jobs.values().all(is_over);
        Ok(if is_done { Seen::Done(jobs) } else { Seen::NotYet(format!("{} {jobs:?}", jobs.len())) })
    })
    .unwrap()
}

/// CPU seconds and the most memory of one process in KiB, as the accounting has them of the job of a name and task.
fn accounted(folder: &Path, name: &str) -> (f64, f64) {
    let lines = std::fs::read_to_string(folder.join("default/common/accounting")).unwrap();
    let fields = lines.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let of_name = fields.filter(|fields| fields.len() > 40 && fields[4] == name).collect::<Vec<_>>();
    let [fields] = of_name.as_slice() else { panic!("{name}: {of_name:?}") };
    let number = |at: usize| fields[at].parse::<f64>().unwrap();
    (number(14) + number(15), number(16))
}

#[test]
fn jobs_of_a_real_grid_engine_are_what_it_accounts_for() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Grid Engine");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let engine = GridEngine::start(folder, FIRST_JOB);
    let config = folder.join("visperf.toml");
    let text = format!("[sensor.findings]\njudged_after_secs = 5\n{}", engine.tail());
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.join("sensor"), &arguments).unwrap();
    let socket = folder.join("sensor/sensor.sock");
    for (name, options, script, ..) in JOBS {
        let file = folder.join("job.sh");
        std::fs::write(&file, format!("#!/bin/bash\n{script}\n")).unwrap();
        let file = file.to_str().unwrap();
        let submit = ["qsub", "-N", name, "-o", "/dev/null", "-e", "/dev/null"];
        engine.command(&[&submit[..], options, &[file]].concat());
    }
    wait::until(PATIENCE, "the job to be deleted runs", || {
        let running = engine.command(&["qstat", "-s", "r"]);
        Ok(if running.contains("deleted") { Seen::Done(()) } else { Seen::NotYet(running) })
    })
    .unwrap();
    // Long enough that it is judged.
    std::thread::sleep(Duration::from_secs(8));
    engine.command(&["qdel", "deleted"]);

    let jobs = ended(&socket);
    let mut wrong = Vec::new();
    for (name, _, _, outcome, findings) in JOBS.iter().filter(|made| made.0 != "tasks") {
        let job = &jobs[*name];
        let (cpu_secs, peak_kib) = accounted(folder, name);
        println!(
            "{name}: {} {}, CPU {} s of {cpu_secs} s, peak {} of {peak_kib} KiB",
            job["outcome"],
            kinds(job),
            job["usage"]["cpu_secs"],
            job["usage"]["peak_memory_bytes"]
        );
        if !is_right(job, (outcome, findings), (cpu_secs, peak_kib * 1024.0)) {
            wrong.push(format!("{name}: {cpu_secs} s, {peak_kib} KiB: {job}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    for (task, outcome) in [(1, "ok"), (2, "failed"), (3, "ok")] {
        assert_eq!(jobs[&format!("tasks[{task}]")]["outcome"], outcome);
    }
    import_is_the_same(folder, &jobs);
}

fn kinds(job: &Value) -> String {
    let findings = job["findings"].as_array().into_iter().flatten();
    findings.map(|finding| finding["kind"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Whether a job ended and was found as it was made to, and used what the accounting says. A job that was killed has less
/// in the accounting: the usage of a process that is not waited for is not known to its parent.
fn is_right(job: &Value, (outcome, findings): (&str, &str), (cpu_secs, peak_bytes): (f64, f64)) -> bool {
    let measured = job["usage"]["cpu_secs"].as_f64().unwrap();
    let peak = job["usage"]["peak_memory_bytes"].as_f64().unwrap();
    let is_killed = ["timeout", "cancelled"].contains(&outcome);
    let has_cpu_time = (cpu_secs * 0.98 - 0.02..=cpu_secs * 1.02 + 0.1).contains(&measured) || is_killed;
    // The sum over its processes may be more than the most of one: the shell, and what both share.
    let has_memory = (peak_bytes * 0.95..peak_bytes * 1.05 + 2e7).contains(&peak) || is_killed;
    // Beside other work a busy job may get little of its CPU: then that is what is to be found.
    let cpus = job["cpus"].as_f64().unwrap();
    let is_disturbed = match findings {
        "" => job["usage"]["cpu_efficiency"].as_f64().is_some_and(|share| share < 0.3),
        "one_cpu" => job["usage"]["cpu_efficiency"].as_f64().is_some_and(|share| share * cpus < 0.6),
        _ => false,
    };
    let is_found = kinds(job) == findings || is_disturbed && kinds(job) == "low_cpu";
    job["outcome"] == outcome && is_found && has_cpu_time && has_memory
}

/// The accounting file gives a sensor without jobs the same, but for what was measured.
fn import_is_the_same(folder: &Path, expected: &BTreeMap<String, Value>) {
    let config = folder.join("empty.toml");
    std::fs::write(&config, "").unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.join("empty"), &arguments).unwrap();
    let output = command(visperf().unwrap())
        .args(["jobs", "import", "--state"])
        .arg(folder.join("empty"))
        .arg(folder.join("default/common/accounting"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&format!(": {COUNT} stored, 0 completed, 0 known, 0 refused")), "{output:?}");
    let imported = jobs(&folder.join("empty/sensor.sock"));
    for (name, job) in expected {
        for field in [
            "id",
            "user",
            "outcome",
            "code",
            "hosts",
            "cpus",
            "queue",
            "submitted",
            "started",
            "accounted_cpu_secs",
        ] {
            assert_eq!(imported[name][field], job[field], "{field} of {name}");
        }
    }
}
