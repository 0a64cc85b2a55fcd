//! Two hundred jobs of a real Slurm and a real Grid Engine at once, healthy and not: each is one record with the outcome of its
//! accounting, and what visperf finds is compared with what the job was made to do.
//!
//! The jobs are in `tests/mixed/jobs.json`, a fifth of them devised without knowing the rules. It takes minutes, both
//! middlewares and root. Busy jobs run when the others have ended, one after the other in each system, so that they get the CPU
//! that they ask for.

use crate::gridengine::GridEngine;
use crate::slurm::Slurm;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::workspace;
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for the end of a job, and of all.
const PATIENCE: Duration = Duration::from_secs(900);

/// Least share of jobs whose findings are right.
const RIGHT_MIN: f64 = 0.95;

/// A job, and what is to be found.
#[derive(Deserialize)]
struct Made {
    name: String,
    system: String,
    cpus: u32,
    script: String,
    #[serde(default)]
    cancel_after: Option<u64>,
    #[serde(default)]
    time_limit: Option<u64>,
    #[serde(default)]
    is_requeued: bool,
    #[serde(default)]
    is_busy: bool,
    /// What it was made to do, in words.
    made: String,
    outcome: String,
    /// Kinds of its causes and wastes; `little_cpu` is any of those that say that it used little of its CPUs.
    findings: BTreeSet<String>,
}

/// Kinds of findings that say that a job used little of its CPUs.
const LITTLE_CPU: [&str; 3] = ["idle", "low_cpu", "one_cpu"];

impl Made {
    fn is_healthy(&self) -> bool {
        self.outcome == "ok" && self.findings.is_empty()
    }
}

/// Both systems, and the sensor.
struct Systems<'a> {
    slurm: &'a Slurm,
    engine: &'a GridEngine,
    folder: &'a Path,
    socket: &'a Path,
}

impl Systems<'_> {
    fn submit(&self, made: &Made) {
        let file = self.folder.join(format!("{}.sh", made.name));
        std::fs::write(&file, format!("#!/bin/bash\n{}\n", made.script)).unwrap();
        let (cpus, mut options) = (made.cpus.to_string(), Vec::new());
        if made.system == "slurm" {
            let limit = made.time_limit.map(|secs| secs.div_ceil(60).to_string());
            options.extend(["--job-name", &made.name, "--cpus-per-task", &cpus]);
            limit.iter().for_each(|minutes| options.extend(["--time", minutes.as_str()]));
            return self.slurm.submit(&options, &file);
        }
        let limit = made.time_limit.map(|secs| format!("h_rt={secs}"));
        options.extend(["qsub", "-N", &made.name, "-o", "/dev/null", "-e", "/dev/null"]);
        limit.iter().for_each(|limit| options.extend(["-l", limit.as_str()]));
        if made.cpus > 1 {
            options.extend(["-pe", "smp", &cpus]);
        }
        options.push(file.to_str().unwrap());
        self.engine.command(&options);
    }

    /// Cancels or requeues a job when it has run for its time.
    fn interfere(&self, made: &Made) {
        let Some(secs) = made.cancel_after else { return };
        let running = |number: Option<&str>| {
            std::thread::sleep(Duration::from_secs(secs));
            match (number, made.is_requeued) {
                (Some(number), true) => self.slurm.command(&["scontrol", "requeue", number]),
                (Some(number), false) => self.slurm.command(&["scancel", number]),
                (None, _) => _ = self.engine.command(&["qdel", &made.name]),
            }
        };
        if made.system == "slurm" {
            return running(Some(&self.slurm.running(&made.name, PATIENCE)));
        }
        wait::until(PATIENCE, "a job of Grid Engine runs", || {
            let listed = self.engine.command(&["qstat", "-s", "r", "-xml"]);
            let is_running = listed.contains(&format!("<JB_name>{}</JB_name>", made.name));
            Ok(if is_running { Seen::Done(()) } else { Seen::NotYet(listed) })
        })
        .unwrap();
        running(None);
    }

    /// The ended job of this name, if there is one.
    fn ended(&self, name: &str) -> Option<Value> {
        let search = json!({"name": name, "state": "ended"});
        let answer = query::local_result(self.socket, "jobs.search", &search).unwrap();
        let jobs = answer["jobs"].as_array().unwrap();
        assert!(jobs.len() < 2, "{name}: each job is one record: {answer}");
        jobs.first().cloned()
    }

    /// The record of a job, once it has ended and was measured.
    fn record(&self, name: &str) -> Value {
        wait::until(PATIENCE, &format!("{name} has ended"), || {
            let Some(job) = self.ended(name) else { return Ok(Seen::NotYet("it has not".to_owned())) };
            // One that ended as soon as it ran may have had no time to be measured.
            let since = unix_secs() - job["ended"].as_f64().unwrap();
            let is_done = job["usage"]["is_over"] == true || since > 15.0;
            let record = query::local_result(self.socket, "jobs.get", &json!({"job": job["id"]}))?;
            Ok(if is_done { Seen::Done(record) } else { Seen::NotYet(job.to_string()) })
        })
        .unwrap()
    }

    /// Runs busy jobs one after the other.
    fn run_busy(&self, jobs: &[Made], system: &str) {
        for made in jobs.iter().filter(|made| made.is_busy && made.system == system) {
            self.submit(made);
            self.interfere(made);
            wait::until(PATIENCE, &format!("{} has ended", made.name), || {
                Ok(if self.ended(&made.name).is_some() {
                    Seen::Done(())
                } else {
                    Seen::NotYet(String::new())
                })
            })
            .unwrap();
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the clock of the jobs")]
fn unix_secs() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Kinds of the causes and wastes of a job.
fn kinds(record: &Value) -> BTreeSet<String> {
    let findings = record["job"]["findings"].as_array().into_iter().flatten();
    let judging = findings.filter(|finding| finding["class"] != "note");
    judging.map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
}

/// The same, with one word for little use of CPUs.
fn compared(kinds: &BTreeSet<String>) -> BTreeSet<String> {
    let word = |kind: &String| {
        if LITTLE_CPU.contains(&kind.as_str()) { "little_cpu".to_owned() } else { kind.clone() }
    };
    kinds.iter().map(word).collect()
}

/// Ids of the jobs that both accountings have.
fn accounted(folder: &Path) -> BTreeSet<String> {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let slurm = read("slurm/jobcomp.log");
    let slurm = slurm.lines().filter_map(|line| line.strip_prefix("JobId=")?.split(' ').next());
    let engine = read("engine/default/common/accounting");
    let engine = engine.lines().filter_map(|line| line.split(':').nth(5));
    let slurm = slurm.map(|number| format!("slurm:{number}"));
    slurm.chain(engine.map(|number| format!("gridengine:{number}"))).collect()
}

#[test]
fn two_hundred_mixed_jobs_are_found_to_be_what_they_were_made_to_be() {
    assert!(rustix::process::geteuid().is_root(), "it takes root to start Slurm and Grid Engine");
    let list = std::fs::read_to_string(workspace().join("tests/mixed/jobs.json")).unwrap();
    let jobs: Vec<Made> = serde_json::from_str(&list).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["slurm", "engine"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let slurm = Slurm::start_with(&folder.join("slurm"), 20_001, 16);
    let engine = GridEngine::start(&folder.join("engine"), 30_001);
    let at = folder.join("slurm");
    let text = format!(
        "[sensor.findings]\njudged_after_secs = 3\n\
         [[sensor.tail]]\npath = '{0}/slurmctld.log'\nfilter = 'slurmctld'\n\
         [[sensor.tail]]\npath = '{0}/jobcomp.log'\nfilter = 'slurm-jobcomp'\n{1}",
        at.display(),
        engine.tail()
    );
    let config = folder.join("visperf.toml");
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.join("sensor"), &arguments).unwrap();
    let socket = folder.join("sensor/sensor.sock");
    let systems = Systems { slurm: &slurm, engine: &engine, folder, socket: &socket };
    let systems = &systems;
    std::thread::scope(|scope| {
        for made in jobs.iter().filter(|made| !made.is_busy) {
            systems.submit(made);
            scope.spawn(move || systems.interfere(made));
        }
    });
    jobs.iter().filter(|made| !made.is_busy).for_each(|made| _ = systems.record(&made.name));
    std::thread::scope(|scope| {
        for system in ["slurm", "gridengine"] {
            let jobs = &jobs;
            scope.spawn(move || systems.run_busy(jobs, system));
        }
    });
    let records: Vec<Value> = jobs.iter().map(|made| systems.record(&made.name)).collect();
    let ids: BTreeSet<String> =
        records.iter().map(|record| record["job"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, accounted(folder), "each job of the accountings is one record");
    judge(&jobs, &records);
}

/// Compares what was found with what the jobs were made to do; `VISPERF_TABLE` names a file for a table.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn judge(jobs: &[Made], records: &[Value]) {
    let (mut table, mut wrong, mut accused) = (String::new(), Vec::new(), Vec::new());
    for (made, record) in jobs.iter().zip(records) {
        let (job, found) = (&record["job"], kinds(record));
        let is_right = job["outcome"] == made.outcome.as_str() && compared(&found) == made.findings;
        let texts =
            job["findings"].as_array().into_iter().flatten().map(|finding| finding["text"].to_string());
        writeln!(
            table,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            if is_right { "right" } else { "WRONG" },
            made.name,
            made.system,
            made.made,
            job["outcome"],
            found.iter().cloned().collect::<Vec<_>>().join(","),
            made.findings.iter().cloned().collect::<Vec<_>>().join(","),
            texts.collect::<Vec<_>>().join(" "),
        )
        .unwrap();
        if !is_right {
            wrong.push(made.name.as_str());
        }
        if made.is_healthy() && !found.is_empty() {
            accused.push(made.name.as_str());
        }
    }
    if let Some(file) = std::env::var_os("VISPERF_TABLE") {
        std::fs::write(file, &table).unwrap();
    }
    let by_outcome = records.iter().fold(BTreeMap::new(), |mut counts, record| {
        *counts.entry(record["job"]["outcome"].to_string()).or_insert(0) += 1;
        counts
    });
    let healthy = jobs.iter().filter(|made| made.is_healthy()).count();
    #[allow(clippy::cast_precision_loss)]
    let right = 1.0 - wrong.len() as f64 / jobs.len() as f64;
    println!(
        "{} jobs, {by_outcome:?}: {:.1} % right; of {healthy} healthy ones {} accused {accused:?}; wrong: {wrong:?}",
        jobs.len(),
        right * 100.0,
        accused.len()
    );
    assert!(right >= RIGHT_MIN && accused.is_empty(), "{table}");
}
