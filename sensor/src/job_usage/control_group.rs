//! Reading of the control groups of jobs: CPU time, most memory, kills for want of memory, throttling.
//!
//! Shell. Sources: `cpu.stat`, `memory.peak`, `memory.current`, `memory.max` and `memory.events` of the unified hierarchy
//! (Documentation/admin-guide/cgroup-v2.rst of the kernel), `cpuacct.usage`, `cpuacct.stat`, `memory.max_usage_in_bytes`,
//! `memory.usage_in_bytes`, `memory.limit_in_bytes`, `memory.oom_control` and `cpu.stat` of the older ones (cgroup-v1/).
//! A file that is not there is an amount that is not known. Not here: which group is a job's (`serving::job_names`).

use super::measurement::{Extent, GroupReading};
use crate::serving::job_names::ControlGroups;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Most of a file that is read, in bytes.
const LEN_MAX_BYTES: u64 = 8 << 10;

/// Most groups below that of a job that are read: of its steps and their tasks.
const GROUPS_BELOW_MAX: usize = 256;

/// Reads the groups of a job; `root` is where the hierarchies are mounted, `/sys/fs/cgroup`.
#[must_use]
pub fn read(root: &Path, groups: &ControlGroups, extent: Extent) -> GroupReading {
    let mut found = GroupReading::default();
    for (controllers, path) in &groups.paths {
        let relative = path.trim_start_matches('/');
        let reading = if controllers.is_empty() {
            let unified = [root.to_owned(), root.join("unified")];
            let folder = unified.iter().map(|root| root.join(relative)).find(|folder| folder.is_dir());
            folder.map(|folder| of_unified(&folder, extent))
        } else {
            let has = |name: &str| controllers.split(',').any(|known| known == name);
            Some(of_older(&root.join(controllers.as_str()).join(relative), has, extent))
        };
        found = found.newest(reading.unwrap_or_default());
    }
    found
}

fn of_unified(folder: &Path, extent: Extent) -> GroupReading {
    let cpu = text(folder.join("cpu.stat"));
    GroupReading {
        cpu_us: entry(&cpu, "usage_usec"),
        system_us: entry(&cpu, "system_usec"),
        peak_memory: number(folder.join("memory.peak")),
        memory_kills: entry(&text(folder.join("memory.events")), "oom_kill"),
        throttled_us: entry(&cpu, "throttled_usec"),
        memory: number(folder.join("memory.current")),
        limit: limit(folder.join("memory.max"), extent),
        read_ns: 0,
    }
}

fn of_older(folder: &Path, has: impl Fn(&str) -> bool, extent: Extent) -> GroupReading {
    let mut found = GroupReading::default();
    if has("cpuacct") {
        found.cpu_us = number(folder.join("cpuacct.usage")).map(|nanos| nanos / 1000);
        // In ticks of a hundredth of a second, whatever the kernel's own are (times(2)).
        found.system_us = entry(&text(folder.join("cpuacct.stat")), "system").map(|ticks| ticks * 10_000);
    }
    if has("memory") {
        found.peak_memory = number(folder.join("memory.max_usage_in_bytes"));
        found.memory = number(folder.join("memory.usage_in_bytes"));
        found.limit = limit(folder.join("memory.limit_in_bytes"), extent);
        let kills = |folder: &Path| entry(&text(folder.join("memory.oom_control")), "oom_kill");
        let below = || groups_below(folder).iter().filter_map(|folder| kills(folder)).sum::<u64>();
        found.memory_kills = kills(folder).map(|own| match extent {
            Extent::Job => own,
            Extent::Whole => own.saturating_add(below()),
        });
    }
    if has("cpu") {
        let throttled = entry(&text(folder.join("cpu.stat")), "throttled_time");
        found.throttled_us = throttled.map(|nanos| nanos / 1000);
    }
    found
}

/// The limit of memory in this file. It seldom changes, so it is read with the whole alone.
fn limit(path: PathBuf, extent: Extent) -> Option<u64> {
    match extent {
        Extent::Job => None,
        Extent::Whole => number(path),
    }
}

/// The groups below one, at most so many; one that ends meanwhile is left out.
fn groups_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next).cloned() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        found.extend(folders.take(GROUPS_BELOW_MAX + 1 - found.len()).map(|entry| entry.path()));
        next += 1;
    }
    found.split_off(1)
}

fn text(path: PathBuf) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LEN_MAX_BYTES).read_to_string(&mut text));
    // The group may be gone by now, or its kernel may lack the file.
    if read.is_ok() { text } else { String::new() }
}

fn number(path: PathBuf) -> Option<u64> {
    text(path).trim().parse().ok()
}

/// The amount in a line `NAME AMOUNT`.
fn entry(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::job_names;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
    }

    #[test]
    fn the_unified_hierarchy_is_read_at_the_job_s_own_group() {
        let root = tempfile::tempdir().expect("a folder");
        let job = "system.slice/slurmstepd.scope/job_171";
        let (cpu, peak, events) =
            (format!("{job}/cpu.stat"), format!("{job}/memory.peak"), format!("{job}/memory.events"));
        let (current, limit) = (format!("{job}/memory.current"), format!("{job}/memory.max"));
        let files = [
            (cpu.as_str(), "usage_usec 7000\nuser_usec 5000\nsystem_usec 2000\nthrottled_usec 30\n"),
            (&peak, "4096\n"),
            (&current, "2048\n"),
            (&limit, "9000\n"),
            (&events, "low 0\noom 2\noom_kill 1\noom_group_kill 0\n"),
        ];
        write(root.path(), &files);
        let groups = job_names::by_cgroup("0::/system.slice/slurmstepd.scope/job_171/step_0/user/task_0\n");
        let expected = GroupReading {
            cpu_us: Some(7000),
            system_us: Some(2000),
            peak_memory: Some(4096),
            memory_kills: Some(1),
            throttled_us: Some(30),
            memory: Some(2048),
            limit: Some(9000),
            read_ns: 0,
        };
        assert_eq!(read(root.path(), &groups, Extent::Whole), expected);
        let other = job_names::by_cgroup("0::/system.slice/slurmstepd.scope/job_172/step_0/user/task_0\n");
        assert_eq!(read(root.path(), &other, Extent::Whole), GroupReading::default());
    }

    #[test]
    fn older_hierarchies_are_read_by_their_controllers() {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("memory/slurm/uid_1/job_5/memory.max_usage_in_bytes", "8192\n"),
            ("memory/slurm/uid_1/job_5/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ("cpu,cpuacct/slurm/uid_1/job_5/cpuacct.usage", "9000000\n"),
            ("cpu,cpuacct/slurm/uid_1/job_5/cpuacct.stat", "user 1\nsystem 2\n"),
            ("cpu,cpuacct/slurm/uid_1/job_5/cpu.stat", "nr_periods 0\nthrottled_time 4000\n"),
        ];
        write(root.path(), &files);
        let text = "9:memory:/slurm/uid_1/job_5/step_0\n4:cpu,cpuacct:/slurm/uid_1/job_5/step_0/task_0\n\
                    2:freezer:/other\n0::/";
        let groups = job_names::by_cgroup(text);
        assert_eq!(groups.paths.len(), 2);
        let expected = GroupReading {
            cpu_us: Some(9000),
            system_us: Some(20_000),
            peak_memory: Some(8192),
            memory_kills: Some(3),
            throttled_us: Some(4),
            memory: None,
            limit: None,
            read_ns: 0,
        };
        assert_eq!(read(root.path(), &groups, Extent::Job), expected);
        let kills = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
        let step = "memory/slurm/uid_1/job_5/step_0";
        let (own, task) = (format!("{step}/memory.oom_control"), format!("{step}/task_0/memory.oom_control"));
        write(root.path(), &[(&own, kills), (&task, kills)]);
        assert_eq!(read(root.path(), &groups, Extent::Job), expected);
        let whole = GroupReading { memory_kills: Some(7), ..expected };
        assert_eq!(read(root.path(), &groups, Extent::Whole), whole);
    }

    #[test]
    fn many_groups_below_that_of_a_job_are_read_as_far_as_allowed() {
        let root = tempfile::tempdir().expect("a folder");
        for number in 0..300 {
            fs::create_dir_all(root.path().join(format!("step_{number}/task_0"))).expect("made");
        }
        assert_eq!(groups_below(root.path()).len(), GROUPS_BELOW_MAX);
        assert_eq!(groups_below(&root.path().join("step_7")), [root.path().join("step_7/task_0")]);
        assert_eq!(groups_below(&root.path().join("gone")), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_path_that_leads_out_of_the_hierarchy_is_not_read() {
        let groups = job_names::by_cgroup("0::/../../slurmstepd.scope/job_171/step_0/user/task_0\n");
        assert_eq!(groups.paths, []);
    }
}
