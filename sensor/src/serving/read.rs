//! Reading of the job that a process serves, from `/proc`.
//!
//! Shell. Rules: the length that is read is limited. Another process may have taken the pid since, so the
//! result counts only if the process still has the start time of the requested one.
//! Not here: parsing (`job_names`), how a file that an environment names is opened (`job_file`).

use super::job_file::{self, Refusal};
use super::job_names::{self, ControlGroups, Jobs};
use super::job_table::Evidence;
use crate::process::stat;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wire::process::ProcessKey;

/// Most of a control group's file that is read, in bytes: some lines of paths.
const CGROUP_LEN_MAX_BYTES: u64 = 16 << 10;
/// Most of an environment that is read, in bytes: schedulers set their variables among a few KiB of others.
const ENVIRON_LEN_MAX_BYTES: u64 = 128 << 10;
/// Most of a process's status that is read, in bytes.
const STATUS_LEN_MAX_BYTES: u64 = 16 << 10;

/// Result of reading a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The job, with the evidence, and the control groups if it has any.
    Job(Jobs, Evidence, ControlGroups),
    /// It names no job.
    Nothing,
    /// The sensor may not read its environment, and its control group names no job.
    Unreadable,
    /// It has ended.
    Gone,
}

/// A file that a process names and that was not read.
#[derive(Debug)]
pub struct RefusedFile {
    pub path: PathBuf,
    /// User of the process.
    pub user: u32,
    pub why: Refusal,
}

/// Returns the user that started a process: a set-user-ID program has another effective user, but its
/// environment is from the user that started it. `proc` is the path of `/proc`. `None` if the process has
/// ended.
#[must_use]
pub fn real_user(proc: &Path, pid: u32) -> Option<u32> {
    let status = some(&proc.join(pid.to_string()).join("status"), STATUS_LEN_MAX_BYTES).ok()?;
    let text = String::from_utf8_lossy(&status);
    text.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok())
}

/// Reads a process of this user; `file_systems` are the types on which job files are read beside the local
/// ones.
#[must_use]
pub fn ask(
    proc: &Path,
    key: ProcessKey,
    user: Option<u32>,
    file_systems: &[String],
) -> (ReadOutcome, Option<RefusedFile>) {
    let folder = proc.join(key.pid.to_string());
    let cgroup = some(&folder.join("cgroup"), CGROUP_LEN_MAX_BYTES);
    let environ = some(&folder.join("environ"), ENVIRON_LEN_MAX_BYTES);
    let stat = some(&folder.join("stat"), STATUS_LEN_MAX_BYTES).ok();
    match stat.as_deref().and_then(stat::stat) {
        Some(stat) if stat.start_ns / stat::TICK_NS == key.start_ns / stat::TICK_NS => {}
        _ => return (ReadOutcome::Gone, None),
    }
    let by_cgroup =
        cgroup.map(|text| job_names::by_cgroup(&String::from_utf8_lossy(&text))).unwrap_or_default();
    let is_readable = environ.is_ok();
    let mut job = environ.map(|environ| job_names::by_environment(&environ)).unwrap_or_default();
    let mut refused = None;
    if let Some((ad, user)) = job.job_ad.take().zip(user) {
        let path = PathBuf::from(ad.as_str());
        match job_file::read(&path, user, file_systems) {
            Ok(text) => job.jobs.extend(job_names::by_job_ad(&String::from_utf8_lossy(&text))),
            Err(why) if why.is_absence() => {}
            Err(why) => refused = Some(RefusedFile { path, user, why }),
        }
    }
    (outcome(by_cgroup, job.jobs, is_readable), refused)
}

fn outcome(groups: ControlGroups, by_environment: Jobs, is_readable: bool) -> ReadOutcome {
    let by_cgroup = &groups.jobs;
    if !by_cgroup.is_empty() {
        // The environment has the other names of a job; it is trusted where it names the same job.
        let agrees = by_cgroup.iter().any(|job| by_environment.contains(job));
        let adds = agrees && by_environment.iter().any(|job| !by_cgroup.contains(job));
        return match (agrees, adds) {
            (_, true) => ReadOutcome::Job(by_environment, Evidence::CgroupAndEnvironment, groups),
            (true, false) => ReadOutcome::Job(by_environment, Evidence::Cgroup, groups),
            (false, false) => ReadOutcome::Job(by_cgroup.clone(), Evidence::Cgroup, groups),
        };
    }
    match (by_environment.is_empty(), is_readable) {
        (false, _) => ReadOutcome::Job(by_environment, Evidence::Environment, groups),
        (true, true) => ReadOutcome::Nothing,
        (true, false) => ReadOutcome::Unreadable,
    }
}

fn some(path: &Path, len_max: u64) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(len_max).read_to_end(&mut text).map(|_| text)
}
