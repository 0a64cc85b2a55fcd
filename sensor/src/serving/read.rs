//! What a process says of the job it serves, from `/proc`.
//!
//! Shell. Rules: so much is read and no more; a number may have been taken by another process since, so what was read counts
//! only if the process still began when the asked one did; a file that an environment names is read only if it is a
//! plain file.
//! Not here: what the words mean (`named`).

use super::known::KnownBy;
use super::named::{self, Jobs};
use crate::process::stat;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wire::process::ProcessKey;

/// Most of a control group's file that is read, in bytes: some lines of paths.
const CGROUP_LEN_MAX_BYTES: u64 = 16 << 10;
/// Most of an environment that is read, in bytes: schedulers set theirs among a few KiB of others.
const ENVIRON_LEN_MAX_BYTES: u64 = 128 << 10;
/// Most of a job's file that is read, in bytes.
const JOB_AD_LEN_MAX_BYTES: u64 = 128 << 10;

/// What a process says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The job, and how that is known.
    Job(Jobs, KnownBy),
    /// It names none.
    Nothing,
    /// Its environment is not for the sensor to read, and its control group names no job.
    Unreadable,
    /// It is gone.
    Gone,
}

/// Ask a process; `proc` is where `/proc` is.
#[must_use]
pub fn ask(proc: &Path, key: ProcessKey) -> Heard {
    let folder = proc.join(key.pid.to_string());
    let cgroup = open(&folder.join("cgroup")).and_then(|file| some(file, CGROUP_LEN_MAX_BYTES));
    let environ = open(&folder.join("environ")).and_then(|file| some(file, ENVIRON_LEN_MAX_BYTES));
    let told = std::fs::read(folder.join("stat")).ok();
    match told.as_deref().and_then(stat::stat) {
        Some(told) if told.start_ns / stat::TICK_NS == key.start_ns / stat::TICK_NS => {}
        _ => return Heard::Gone,
    }
    let by_cgroup = cgroup.map(|text| named::by_cgroup(&String::from_utf8_lossy(&text))).unwrap_or_default();
    let is_readable = environ.is_ok();
    let mut said = environ.map(|environ| named::by_environment(&environ)).unwrap_or_default();
    if let Some(ad) = said.job_ad.take() {
        let read = plain(Path::new(ad.as_str())).and_then(|file| some(file, JOB_AD_LEN_MAX_BYTES));
        said.jobs.extend(read.ok().and_then(|text| named::by_job_ad(&String::from_utf8_lossy(&text))));
    }
    if !by_cgroup.is_empty() {
        // The environment knows the other names of a job; it is believed where it names the same.
        let agrees = by_cgroup.iter().any(|job| said.jobs.contains(job));
        return Heard::Job(if agrees { said.jobs } else { by_cgroup }, KnownBy::Cgroup);
    }
    match (said.jobs.is_empty(), is_readable) {
        (false, _) => Heard::Job(said.jobs, KnownBy::Environment),
        (true, true) => Heard::Nothing,
        (true, false) => Heard::Unreadable,
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// A pipe that somebody's environment names would hold the sensor up, and to open a device may set it off: it is looked
/// at before it is opened, by the same handle.
fn plain(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let found = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match found.metadata()?.is_file() {
        true => File::open(format!("/proc/self/fd/{}", found.as_raw_fd())),
        false => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

fn some(file: File, len_max: u64) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(len_max).read_to_end(&mut text).map(|_| text)
}
