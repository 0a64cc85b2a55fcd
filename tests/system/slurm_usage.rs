//! A real Slurm runs jobs of known usage: what the sensor measured of each is compared with what the kernel
//! reports to the parent of its processes (`wait4(2)`).
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them on loopback in a folder of the test.
//! Not here: which processes serve a job (`slurm_job`).

use crate::slurm::Slurm;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::{command, visperf};
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Slurm or the sensor.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs work and writes the CPU seconds of all its processes, its own included, and the most memory of one in KiB.
const WORK: &str = r#"#!/usr/bin/env python3
import os, resource, subprocess, sys, time

def burn(secs):
    while time.process_time() < secs:
        pass

def child(work, *more):
    return subprocess.Popen([sys.executable, __file__, work, *map(str, more)])

def done(children):
    return max(process.wait() for process in children)

work, code = sys.argv[1], 0
if work == "burn":
    burn(float(sys.argv[2]))
elif work == "hold":
    held = bytearray(os.urandom(1 << 20) * int(sys.argv[2]))
    time.sleep(3)
elif work == "one":
    done([child("burn", 4)])
elif work == "pair":
    done([child("burn", 2), child("burn", 2)])
elif work == "memory":
    done([child("hold", 300)])
elif work == "idle":
    time.sleep(4)
elif work == "short":
    for _ in range(60):
        subprocess.run(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
elif work == "fail":
    done([child("burn", 1)])
    code = 3
if "OUT" in os.environ and work not in ("burn", "hold"):
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    secs = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    with open(os.environ["OUT"], "w") as out:
        out.write(f"{secs} {max(usage.ru_maxrss for usage in usages)}\n")
sys.exit(code)
"#;

/// Work of each job, with the outcome.
const JOBS: [(&str, &str); 6] =
    [("one", "ok"), ("pair", "ok"), ("memory", "ok"), ("idle", "ok"), ("short", "ok"), ("fail", "failed")];

fn submit(slurm: &Slurm, folder: &Path, work: &str) {
    let script = folder.join(format!("{work}.sh"));
    let at = folder.display();
    let text = format!("#!/bin/bash\nOUT={at}/{work}.truth exec python3 {at}/work.py {work}\n");
    std::fs::write(&script, text).unwrap();
    slurm.submit(&["--job-name", work], &script);
}

/// The jobs, once each has ended and was measured to its end.
fn measured(address: &Path) -> Vec<Value> {
    wait::until(PATIENCE, "every job ended and measured", || {
        let answer = query::local_result(address, "jobs.search", &json!({"limit": 100}))?;
        let jobs = answer["jobs"].as_array().unwrap().clone();
        let mut records = Vec::new();
        for job in &jobs {
            records.push(query::local_result(address, "jobs.get", &json!({"job": job["id"]}))?);
        }
        let is_done = |record: &&Value| {
            let usage = record["usage"].as_array().unwrap();
            record["job"]["state"] == "ended" && usage.iter().any(|usage| usage["is_over"] == true)
        };
        let is_all = records.len() == JOBS.len() && records.iter().filter(is_done).count() == JOBS.len();
        Ok(if is_all { Seen::Done(records) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap()
}

#[test]
fn jobs_of_a_real_slurm_have_used_what_the_kernel_says() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Slurm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slurm = Slurm::start(folder.path(), 7001);
    std::fs::write(folder.path().join("work.py"), WORK).unwrap();
    let config = folder.path().join("visperf.toml");
    let at = folder.path().display();
    let text = format!(
        "[[sensor.tail]]\npath = '{at}/slurmctld.log'\nfilter = 'slurmctld'\n\
         [[sensor.tail]]\npath = '{at}/jobcomp.log'\nfilter = 'slurm-jobcomp'\n"
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.path().join("sensor"), &arguments).unwrap();
    let address = &folder.path().join("sensor/sensor.sock");
    for (work, _) in JOBS {
        submit(&slurm, folder.path(), work);
    }
    let records = measured(address);
    for (work, outcome) in JOBS {
        let record = records.iter().find(|record| record["job"]["name"] == work).unwrap();
        let truth = std::fs::read_to_string(folder.path().join(format!("{work}.truth"))).unwrap();
        let truth: Vec<f64> = truth.split_whitespace().map(|text| text.parse().unwrap()).collect();
        let usage = &record["usage"][0];
        println!(
            "{work}: CPU {} s of {} s, peak {}, of one process {} KiB, {}",
            usage["cpu_secs"], truth[0], usage["peak_memory_bytes"], truth[1], usage["processes"]
        );
        check(work, outcome, record, (truth[0], truth[1] * 1024.0));
        check_series(work, address, record);
    }
    check_unknown(folder.path(), &records[0]);
    let page = command(visperf().unwrap())
        .args(["job", "show", records[0]["job"]["id"].as_str().unwrap(), "--connect"])
        .arg(format!("unix:{}", address.display()))
        .output()
        .unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("OVER TIME") && page.contains('█'), "{page}");
}

/// Over TCP no user is known: then no event says what a job used, and no curve is answered.
fn check_unknown(folder: &Path, record: &Value) {
    let address = std::fs::read_to_string(folder.join("sensor/listen")).unwrap();
    let address = address.lines().next().unwrap();
    let ask = |words: &[&str], to: &str| {
        let output = command(visperf().unwrap()).args(words).args(["--connect", to]).output().unwrap();
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
    };
    let local = format!("unix:{}", folder.join("sensor/sensor.sock").display());
    let events = ["events", "--kind", "workload", "--json"];
    assert!(ask(&events, &local).contains("usage_of"));
    let id = record["job"]["id"].as_str().unwrap();
    for words in [&events[..], &["events", "--call", id, "--json"], &["job", "series", id, "--csv"]] {
        let text = ask(words, address);
        assert!(!text.contains("usage_of") && !text.contains("vm,0,"), "{words:?}: {text}");
    }
    assert!(ask(&["job", "series", id], address).contains("shown to its user"));
}

/// What a job used second by second adds up to what it used in all, whatever the steps.
fn check_series(work: &str, address: &Path, record: &Value) {
    let job = format!("slurm:{}", record["job"]["job"].as_str().unwrap());
    let usage = &record["usage"][0];
    for step in [1.0, 3.0, 60.0] {
        let answer =
            query::local_result(address, "sensor.job_series", &json!({"job": job, "step": step})).unwrap();
        let [curve] = answer["curves"].as_array().unwrap().as_slice() else { panic!("{work}: {answer}") };
        let values = |name: &str| -> Vec<f64> {
            curve[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let (times, cpus, memory) = (values("times"), values("cpus"), values("memory_bytes"));
        let started = curve["started"].as_f64().unwrap();
        let mut before = started;
        let mut used = 0.0;
        for (time, cpus) in times.iter().zip(&cpus) {
            used += cpus * (time - before);
            before = *time;
        }
        let all = usage["cpu_secs"].as_f64().unwrap();
        assert!((used - all).abs() < 0.01 * all + 0.01, "{work}: {used} of {all}: {answer}");
        let (most, peak) =
            (memory.iter().copied().fold(0.0, f64::max), usage["peak_memory_bytes"].as_f64().unwrap());
        assert!(most <= peak + 4096.0, "{work}: {most} of {peak}");
        assert!(work != "memory" || most > 300e6, "it holds 300 MiB for seconds: {most} of {peak}");
        // Once Python has started; a first step may be a tenth of a second long.
        let mut later = times.iter().zip(&cpus).filter(|(time, _)| **time > started + 2.0);
        assert!(work != "idle" || later.all(|(_, cpus)| *cpus < 0.5), "{times:?} {cpus:?}");
        assert!(step > 1.0 || work != "one" || times.len() >= 4, "{times:?}");
    }
}

fn check(work: &str, outcome: &str, record: &Value, (cpu_secs, peak_bytes): (f64, f64)) {
    let usage = record["usage"].as_array().unwrap();
    assert_eq!(usage.len(), 1, "{work}: {record}");
    let figure = |name: &str| usage[0][name].as_f64().unwrap();
    assert_eq!(record["job"]["outcome"], outcome, "{work}: {record}");
    // The shell of the script, and the end of the work after it wrote the truth: some milliseconds.
    let (most, least) = (cpu_secs * 1.02 + 0.1, cpu_secs * 0.98 - 0.02);
    assert!((least..=most).contains(&figure("cpu_secs")), "{work}: {cpu_secs} s: {record}");
    if work == "memory" {
        // The parent is small beside the child.
        let peak = figure("peak_memory_bytes");
        assert!((peak_bytes * 0.95..peak_bytes * 1.05 + 2e7).contains(&peak), "{peak_bytes}: {record}");
    }
    let expected = match work {
        "short" => 61.0,
        "pair" => 3.0,
        "idle" => 1.0,
        _ => 2.0,
    };
    assert!(figure("processes") >= expected, "{work}: {record}");
    assert_eq!(usage[0]["evidence"], "environment", "without control groups: {record}");
    if work == "idle" {
        assert!(
            record["job"]["usage"]["cpu_efficiency"].as_f64().is_some_and(|share| share < 0.1),
            "{record}"
        );
    }
}
