//! A real Grid Engine on loopback, in a folder of the test.
//!
//! Needs its daemons and root; `tests/gridengine/start.sh` starts them.

use std::path::{Path, PathBuf};
use system_tests::program::{command, workspace};

/// The daemons, until it is dropped.
pub(crate) struct GridEngine {
    folder: PathBuf,
    first_job: u32,
}

impl GridEngine {
    /// Starts the daemons in this folder. Jobs are numbered from `first_job`: a host has no two with one number.
    pub(crate) fn start(folder: &Path, first_job: u32) -> GridEngine {
        let engine = GridEngine { folder: folder.to_owned(), first_job };
        assert!(engine.run(&[]), "Grid Engine does not start");
        engine
    }

    fn run(&self, words: &[&str]) -> bool {
        let mut script = command(workspace().join("tests/gridengine/start.sh"));
        script.env("FIRST_JOB", self.first_job.to_string()).env("CPUS", "16").arg(&self.folder).args(words);
        script.status().unwrap().success()
    }

    /// Runs a command of Grid Engine and returns its output.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut shell = command("bash");
        shell.args(["-c", ". \"$0\"; exec \"$@\""]).arg(self.folder.join("settings.sh")).args(words);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The configuration of a sensor that follows its logs.
    pub(crate) fn tail(&self) -> String {
        let logs = [
            ("default/common/accounting", "gridengine-accounting"),
            ("spool/messages", "gridengine-qmaster"),
        ];
        let tail = |(log, filter)| {
            let path = self.folder.join(log);
            format!("[[sensor.tail]]\npath = {path:?}\nfilter = {filter:?}\nstart = \"beginning\"\n")
        };
        logs.map(tail).concat()
    }
}

impl Drop for GridEngine {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}
