//! A real Slurm on loopback, in a folder of the test.
//!
//! Needs Slurm's daemons and root; `tests/slurm/start.sh` starts them.

use std::path::{Path, PathBuf};
use system_tests::program::{command, workspace};

/// The daemons, until it is dropped.
pub(crate) struct Slurm {
    folder: PathBuf,
    first_job: u32,
}

impl Slurm {
    /// Starts the daemons in this folder. Jobs are numbered from `first_job`: a host has no two with one number.
    pub(crate) fn start(folder: &Path, first_job: u32) -> Slurm {
        let slurm = Slurm { folder: folder.to_owned(), first_job };
        assert!(slurm.run(&["start"]), "Slurm does not start");
        slurm
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

    fn run(&self, words: &[&str]) -> bool {
        let script = workspace().join("tests/slurm/start.sh");
        let status = command(script)
            .env("FIRST_JOB", self.first_job.to_string())
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
