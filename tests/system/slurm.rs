//! A real Slurm on loopback, in a folder of the test.
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them.

use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::program::{command, workspace};
use system_tests::wait::{self, Seen};

/// The daemons, until it is dropped.
pub(crate) struct Slurm {
    folder: PathBuf,
    first_job: u32,
    cpus: u32,
    is_accounted: bool,
    /// Memory of all jobs in MiB, if jobs have control groups.
    groups_mib: Option<u32>,
}

impl Slurm {
    /// Starts the daemons in this folder. Jobs are numbered from `first_job`: a host has no two with one number.
    pub(crate) fn start(folder: &Path, first_job: u32) -> Slurm {
        Slurm::start_with(folder, first_job, 2)
    }

    /// As [`Slurm::start`], on a host of so many CPUs, whether it has them or not.
    pub(crate) fn start_with(folder: &Path, first_job: u32, cpus: u32) -> Slurm {
        Slurm::started(folder, first_job, cpus, |_| {})
    }

    /// As [`Slurm::start_with`], with slurmdbd and its database.
    pub(crate) fn start_accounted(folder: &Path, first_job: u32, cpus: u32) -> Slurm {
        Slurm::started(folder, first_job, cpus, |slurm| slurm.is_accounted = true)
    }

    /// As [`Slurm::start_with`]; each job has control groups, and so much memory is for all.
    pub(crate) fn start_with_groups(folder: &Path, first_job: u32, cpus: u32, mib: u32) -> Slurm {
        Slurm::started(folder, first_job, cpus, |slurm| slurm.groups_mib = Some(mib))
    }

    fn started(folder: &Path, first_job: u32, cpus: u32, with: impl FnOnce(&mut Slurm)) -> Slurm {
        let folder = folder.to_owned();
        let mut slurm = Slurm { folder, first_job, cpus, is_accounted: false, groups_mib: None };
        with(&mut slurm);
        assert!(slurm.run(&["start"]), "Slurm does not start");
        slurm
    }

    /// The output of a command of Slurm; times are seconds since 1970.
    pub(crate) fn output(&self, words: &[&str]) -> String {
        let mut program = command(words[0]);
        program.env("SLURM_CONF", self.folder.join("slurm.conf")).env("SLURM_TIME_FORMAT", "%s");
        let output = program.args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Submits a script of a job.
    pub(crate) fn submit(&self, options: &[&str], script: &Path) {
        let submitted = command("sbatch")
            .env("SLURM_CONF", self.folder.join("slurm.conf"))
            .arg("--output=/dev/null")
            .args(options)
            .arg(script)
            .status();
        assert!(submitted.unwrap().success());
    }

    /// Runs a command of Slurm.
    pub(crate) fn command(&self, words: &[&str]) {
        let mut program = command(words[0]);
        let status = program.env("SLURM_CONF", self.folder.join("slurm.conf")).args(&words[1..]).status();
        assert!(status.unwrap().success(), "{words:?}");
    }

    /// The number of the running job of this name, once there is one.
    pub(crate) fn running(&self, name: &str, patience: Duration) -> String {
        wait::until(patience, &format!("{name} runs"), || {
            let mut squeue = command("squeue");
            squeue.env("SLURM_CONF", self.folder.join("slurm.conf"));
            let listed = squeue.args(["-h", "-t", "R", "-o", "%i", "-n", name]).output().unwrap();
            let number = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
            Ok(if number.is_empty() { Seen::NotYet("nothing".to_owned()) } else { Seen::Done(number) })
        })
        .unwrap()
    }

    fn run(&self, words: &[&str]) -> bool {
        let script = workspace().join("tests/slurm/start.sh");
        let status = command(script)
            .env("FIRST_JOB", self.first_job.to_string())
            .env("CPUS", self.cpus.to_string())
            .env("ACCOUNTING", if self.is_accounted { "1" } else { "" })
            .env("GROUPS_MIB", self.groups_mib.map_or(String::new(), |mib| mib.to_string()))
            .arg(&self.folder)
            .args(words)
            .status();
        status.unwrap().success()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}
