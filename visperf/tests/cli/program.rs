//! Runs of the program, each in a temporary home folder.

use rustix::process::{Pid, Signal};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Far longer than any run takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Home folder of a run, without the tester's own settings.
pub(crate) struct Home(tempfile::TempDir);

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) notes: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Write a file into the home.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Command to run the program with arguments, not started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_visperf"));
        command.args(arguments).current_dir(self.path()).env_clear();
        command.env("HOME", self.path()).env("TZ", "UTC").env("XDG_STATE_HOME", self.path().join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Run it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ended(self.command(arguments).spawn().unwrap(), arguments)
    }

    /// Run it to its end with this on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        ended(child, arguments)
    }
}

/// Wait for its end; a program that does not end by itself is killed and reported.
#[track_caller]
fn ended(child: Child, arguments: &[&str]) -> Ran {
    let pid = Pid::from_child(&child);
    let (give, take) = sync_channel(1);
    std::thread::spawn(move || give.send(child.wait_with_output().unwrap()));
    match take.recv_timeout(DEADLINE) {
        Ok(output) => Ran::from(output),
        Err(_) => {
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
            panic!("visperf {arguments:?} does not end: {:#?}", Ran::from(take.recv().unwrap()));
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            notes: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Assert the exit code 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        self.with_code(0)
    }

    /// Assert this exit code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Assert that the output contains each of these.
    #[track_caller]
    pub(crate) fn prints(self, parts: &[&str]) -> Ran {
        for part in parts {
            assert!(self.out.contains(part), "{part:?} in {self:#?}");
        }
        self
    }

    /// Assert that the notes contain each of these.
    #[track_caller]
    pub(crate) fn notes(self, parts: &[&str]) -> Ran {
        for part in parts {
            assert!(self.notes.contains(part), "{part:?} in {self:#?}");
        }
        self
    }

    /// The output as JSON, one value a line.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }
}
