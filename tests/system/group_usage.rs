//! A job in control groups as Slurm makes them: its usage is what the kernel states of the groups.
//!
//! Needs root and the controllers `memory` and `cpuacct` of the older hierarchies, or `memory` of the unified one. Not here: a
//! job that is known by its environment (`slurm_usage`), the files of both hierarchies (the sensor's tests).

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::program::command;
use system_tests::query;
use system_tests::wait::{self, Seen};

/// Timeout for the usage to be stated.
const SOON: Duration = Duration::from_secs(60);

/// Computes for a second, and has 100 MiB of memory for a moment; then it stays for as long as control groups may be unread.
const WORK: &str = "import time, os
held = bytearray(os.urandom(1 << 20) * 100)
del held
while time.process_time() < 1: pass
time.sleep(3)";

/// Control groups of one job, which are removed in the end.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make(job: u32) -> Groups {
        let root = Path::new("/sys/fs/cgroup");
        let of_job = match root.join("cgroup.controllers").exists() {
            true => vec![root.join(format!("visperf.slice/slurmstepd.scope/job_{job}"))],
            false => {
                ["memory", "cpuacct"].map(|name| root.join(format!("{name}/slurm/uid_0/job_{job}"))).to_vec()
            }
        };
        for group in &of_job {
            std::fs::create_dir_all(group.join("step_0")).unwrap();
            // Of the unified hierarchy each group hands its controllers on.
            for above in group.ancestors().skip(1).take_while(|above| above.starts_with(root)) {
                let _ = std::fs::write(above.join("cgroup.subtree_control"), "+memory +cpu");
            }
        }
        Groups(of_job)
    }

    /// An amount that the kernel states in one of these files.
    fn amount(&self, files: &[&str]) -> u64 {
        let paths = self.0.iter().flat_map(|group| files.iter().map(|file| group.join(file)));
        let text = paths.filter_map(|path| std::fs::read_to_string(path).ok()).next().unwrap();
        text.split_whitespace().find_map(|word| word.parse().ok()).unwrap()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = std::fs::remove_dir(group.join("step_0"));
            for folder in group.ancestors().take(3) {
                // A folder that others use is not empty.
                let _ = std::fs::remove_dir(folder);
            }
        }
    }
}

fn usages(address: &Path) -> Vec<Value> {
    let answer =
        query::local_result(address, "sensor.events", &json!({"kind": ["workload"], "limit": 100})).unwrap();
    let of_job = |event: &&Value| {
        event["attributes"]["usage_of"] == "slurm:7101" && event["attributes"]["state"] == "over"
    };
    answer["events"].as_array().unwrap().iter().filter(of_job).cloned().collect()
}

#[test]
fn a_job_in_a_control_group_has_used_what_the_kernel_states_of_the_group() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: it takes root to make control groups");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(&folder.path().join("sensor"), &["sensor".as_ref()]).unwrap();
    let address = &folder.path().join("sensor/sensor.sock");
    let groups = Groups::make(7101);
    let enter: String =
        groups.0.iter().map(|group| format!("echo $$ > {}/step_0/cgroup.procs; ", group.display())).collect();
    let script = format!("{enter} exec python3 -c '{WORK}'");
    assert!(command("bash").args(["-c", &script]).status().unwrap().success());
    let peak = groups.amount(&["memory.peak", "memory.max_usage_in_bytes"]);
    let cpu = match groups.amount(&["cpuacct.usage", "cpu.stat"]) {
        nanos if nanos > 100_000_000 => nanos / 1000,
        micros => micros,
    };
    let usage = wait::until(SOON, "the usage of the job", || {
        let found = usages(address);
        Ok(found.first().cloned().map_or(Seen::NotYet(String::new()), Seen::Done))
    })
    .unwrap();
    let attributes = &usage["attributes"];
    assert_eq!(
        (&attributes["evidence"], &attributes["measured_by"]),
        (&json!("cgroup"), &json!("control_group"))
    );
    let figures = attributes["figures"].as_str().unwrap();
    let figure = |name: &str| {
        let of_name = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok();
        figures.split(',').find_map(of_name).unwrap()
    };
    assert_eq!(figure("peak_memory"), peak, "{figures}");
    assert!(peak > 100 << 20, "{peak}");
    // The shell has used a little before it entered the groups.
    let stated = figure("cpu_time");
    assert!((cpu..cpu + 50_000).contains(&stated), "{cpu} µs: {figures}");
}
