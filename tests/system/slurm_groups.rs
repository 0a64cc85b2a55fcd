//! A real Slurm that gives each job control groups and no more memory than it asks for: what the sensor states is what the
//! kernel states of the groups, also of a job that is killed for want of memory, or is over at once.
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them on loopback in a folder of the test.
//! Not here: jobs without control groups (`slurm_usage`), groups made by the test (`group_usage`).

use crate::slurm::Slurm;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for actions of Slurm or the sensor.
const PATIENCE: Duration = Duration::from_secs(120);

const MIB: f64 = 1_048_576.0;

/// Work with memory; it writes CPU seconds of its processes, and the most memory of the job's group.
const WORK: &str = r#"#!/usr/bin/env python3
import os, re, resource, sys, time

def group_peak():
    lines = (line.rstrip("\n").split(":", 2) for line in open("/proc/self/cgroup"))
    for _, controllers, path in lines:
        job = re.match(r".*/job_\d+", path)
        if job and "memory" in controllers.split(","):
            return int(open(f"/sys/fs/cgroup/{controllers}{job[0]}/memory.max_usage_in_bytes").read())
        if job and not controllers:
            return int(open(f"/sys/fs/cgroup{job[0]}/memory.peak").read())
    sys.exit("it is in no control group")

work, mib = sys.argv[1], int(sys.argv[2])
held = []
for _ in range(mib // 10):
    held.append(os.urandom(10 << 20))
    time.sleep(0.03 if work == "grow" else 0)
if work == "share":
    # Two processes have the same memory; each works for a while.
    child = os.fork()
    began = time.process_time()
    while time.process_time() < began + 2:
        pass
    time.sleep(2)
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
if "OUT" in os.environ:
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    secs = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    with open(os.environ["OUT"], "w") as out:
        out.write(f"{secs} {group_peak()}\n")
"#;

/// A job: its name, the MiB that it asks for, its script, and the kinds of its causes.
struct Made {
    name: &'static str,
    mib: u32,
    script: &'static str,
    causes: &'static [&'static str],
}

const KILLED: &[&str] = &["out_of_memory", "failed_process"];

const JOBS: [Made; 6] = [
    Made { name: "share", mib: 400, script: "exec python3 $WORK share 200", causes: &[] },
    Made { name: "step", mib: 400, script: "srun python3 $WORK share 150", causes: &[] },
    Made { name: "short", mib: 400, script: "exec python3 $WORK hold 300", causes: &[] },
    Made { name: "killed", mib: 150, script: "exec python3 $WORK grow 400", causes: KILLED },
    Made { name: "step_killed", mib: 150, script: "srun python3 $WORK grow 400", causes: KILLED },
    // Slurm states that of a job that went on after it, too.
    Made { name: "survives", mib: 150, script: "python3 $WORK grow 400; sleep 2; exit 0", causes: KILLED },
];

fn submit(slurm: &Slurm, folder: &Path, made: &Made) {
    let script = folder.join(format!("{}.sh", made.name));
    let at = folder.display();
    let text = format!(
        "#!/bin/bash\nexport WORK={at}/work.py\nexport OUT={at}/{}.truth\n{}\n",
        made.name, made.script
    );
    std::fs::write(&script, text).unwrap();
    slurm.submit(&["--job-name", made.name, &format!("--mem={}", made.mib)], &script);
}

/// The record of a job, once it has ended and was measured to its end.
fn record(socket: &Path, name: &str) -> Value {
    wait::until(PATIENCE, &format!("{name} has ended"), || {
        let answer = query::local_result(socket, "jobs.search", &json!({"name": name, "state": "ended"}))?;
        let Some(job) = answer["jobs"].as_array().unwrap().first() else {
            return Ok(Seen::NotYet("it has not".to_owned()));
        };
        let record = query::local_result(socket, "jobs.get", &json!({"job": job["id"]}))?;
        let is_done = record["usage"].as_array().unwrap().iter().any(|usage| usage["is_over"] == true);
        Ok(if is_done { Seen::Done(record) } else { Seen::NotYet(record.to_string()) })
    })
    .unwrap()
}

#[test]
fn jobs_in_control_groups_of_a_real_slurm_have_used_what_the_kernel_states_of_the_groups() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to start Slurm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slurm = Slurm::start_with_groups(folder, 40_001, 8, 4000);
    std::fs::write(folder.join("work.py"), WORK).unwrap();
    let config = folder.join("visperf.toml");
    let at = folder.display();
    let text = format!(
        "[[sensor.tail]]\npath = '{at}/slurmctld.log'\nfilter = 'slurmctld'\n\
         [[sensor.tail]]\npath = '{at}/jobcomp.log'\nfilter = 'slurm-jobcomp'\n"
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let _daemon = Daemon::start(&folder.join("sensor"), &arguments).unwrap();
    let socket = folder.join("sensor/sensor.sock");
    JOBS.iter().for_each(|made| submit(&slurm, folder, made));
    for made in &JOBS {
        let record = record(&socket, made.name);
        println!("{}: {} {}", made.name, record["usage"][0], record["explanation"]);
        check(folder, made, &record);
        check_series(&socket, &record);
    }
}

fn check(folder: &Path, made: &Made, record: &Value) {
    let name = made.name;
    let [usage] = record["usage"].as_array().unwrap().as_slice() else { panic!("{name}: {record}") };
    let figure = |name: &str| usage[name].as_f64().unwrap();
    assert_eq!((&usage["evidence"], &usage["measured_by"]), (&json!("cgroup"), &json!("control_group")));
    let (peak, mean) = (figure("peak_memory_bytes"), figure("mean_memory_bytes"));
    assert!(mean <= peak, "{name}: {record}");
    let findings = record["job"]["findings"].as_array().into_iter().flatten();
    let causes: Vec<&str> = findings
        .filter(|finding| finding["class"] == "cause")
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    assert_eq!(causes, made.causes, "{name}: {record}");
    if made.causes.is_empty() {
        let truth = std::fs::read_to_string(folder.join(format!("{name}.truth"))).unwrap();
        let truth: Vec<f64> = truth.split_whitespace().map(|text| text.parse().unwrap()).collect();
        assert!(
            (truth[1] * 0.95..=truth[1] * 1.01 + 8.0 * MIB).contains(&peak),
            "{name}: {truth:?} {record}"
        );
        // The shell, srun, and what starts the program.
        let cpu_secs = figure("cpu_secs");
        assert!(
            (truth[0] * 0.98 - 0.02..truth[0] * 1.02 + 0.6).contains(&cpu_secs),
            "{name}: {truth:?} {record}"
        );
    } else {
        let limit = f64::from(made.mib) * MIB;
        assert!((limit * 0.95..=limit).contains(&peak), "{name}: {peak} of {limit}: {record}");
        // The group of a step may be gone before it is read; that of a script which goes on is not.
        assert!(name != "survives" || figure("memory_kills") >= 1.0, "{record}");
        assert_eq!(record["job"]["signal"], Value::Null, "125 is no signal: {record}");
    }
}

/// No value of the curve is more than the peak.
fn check_series(socket: &Path, record: &Value) {
    let job = &record["job"]["id"];
    let answer = query::local_result(socket, "sensor.job_series", &json!({"job": job, "step": 1.0})).unwrap();
    let [curve] = answer["curves"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    let memory = curve["memory_bytes"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
    let (most, peak) =
        (memory.fold(0.0, f64::max), record["usage"][0]["peak_memory_bytes"].as_f64().unwrap());
    assert!(most > 0.0 && most <= peak, "{most} of {peak}: {answer}");
}
