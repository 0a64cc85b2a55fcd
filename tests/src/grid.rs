//! Running daemon: the real program, on a free loopback port, with a state directory of the test.
//!
//! Rule: it is ready when the address in its file `listen` answers with its own pid, and it is killed when
//! the test drops it. Its output goes to a file, so that it never blocks on a reader.
//! Not here: queries ([`crate::query`]).

use crate::program;
use crate::query::{self, Answer};
use crate::wait::{self, Seen};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// Timeout for a daemon to become ready: seconds on a machine that builds at the same time.
pub const READY: Duration = Duration::from_secs(60);
/// Timeout for a daemon to drain and end.
pub const DRAIN: Duration = Duration::from_secs(30);

/// A running `visperf`.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    state: PathBuf,
    output: PathBuf,
}

impl Daemon {
    /// Start `visperf COMMAND… --state STATE --listen 127.0.0.1:0`, or at the address that the arguments
    /// name; it may not be ready yet.
    ///
    /// # Errors
    /// If the program is missing or cannot be started.
    pub fn spawn(state: &Path, arguments: &[&OsStr]) -> Result<Daemon> {
        Daemon::spawn_by(program::visperf()?, state, arguments)
    }

    /// As [`Daemon::spawn`], with another `visperf` than the one under test.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn_by(program: &Path, state: &Path, arguments: &[&OsStr]) -> Result<Daemon> {
        std::fs::create_dir_all(state)?;
        match std::fs::remove_file(state.join("listen")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Err(_) | Ok(()) => {}
        }
        let output = state.with_extension("output");
        let file = std::fs::File::create(&output)?;
        let anywhere: &[&str] =
            if arguments.contains(&OsStr::new("--listen")) { &[] } else { &["--listen", "127.0.0.1:0"] };
        let child = program::command(program)
            .args(arguments)
            .arg("--state")
            .arg(state)
            .args(anywhere)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Daemon { child, state: state.to_owned(), output })
    }

    /// Start it and wait until it answers.
    ///
    /// # Errors
    /// As [`Daemon::spawn`] and [`Daemon::ready`].
    pub fn start(state: &Path, arguments: &[&OsStr]) -> Result<(Daemon, SocketAddr)> {
        let mut daemon = Daemon::spawn(state, arguments)?;
        let address = daemon.ready(READY)?;
        Ok((daemon, address))
    }

    /// Wait until it answers; returns its address.
    ///
    /// # Errors
    /// If it ended, or is not ready within `limit`; with its output.
    pub fn ready(&mut self, limit: Duration) -> Result<SocketAddr> {
        wait::until(limit, "a daemon that answers", || match self.look()? {
            Some(address) => Ok(Seen::Done(address)),
            None => Ok(Seen::NotYet(format!("it said: {}", self.output()))),
        })
    }

    /// The address at which it answers, if it is ready by now.
    ///
    /// # Errors
    /// If it ended; with its output.
    pub fn look(&mut self) -> Result<Option<SocketAddr>> {
        if let Some(ended) = self.child.try_wait()? {
            bail!("the daemon ended with {ended}; it said: {}", self.output());
        }
        let Ok(text) = std::fs::read_to_string(self.state.join("listen")) else { return Ok(None) };
        let Ok(address) = text.lines().next().unwrap_or_default().trim().parse::<SocketAddr>() else {
            return Ok(None);
        };
        match query::ask(address, "daemon.info", &json!({})) {
            Ok(Answer::Result(info)) if info["pid"] == json!(self.child.id()) => Ok(Some(address)),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    #[must_use]
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Kill it with SIGKILL.
    ///
    /// # Errors
    /// If it had already ended by itself, which is a failure of its own.
    pub fn kill(mut self) -> Result<()> {
        if let Some(ended) = self.child.try_wait()? {
            bail!("expected a daemon to kill, but it had ended with {ended}; it said: {}", self.output());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Send SIGTERM, and wait until it has ended.
    ///
    /// # Errors
    /// If it does not end within [`DRAIN`].
    pub fn stop(mut self) -> Result<ExitStatus> {
        // The workspace forbids unsafe code, so kill(1) sends the signal.
        let sent = program::command("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        ensure!(sent.success(), "kill(1) could not send SIGTERM");
        wait::until(DRAIN, "the end of a daemon after SIGTERM", || {
            Ok(match self.child.try_wait()? {
                Some(ended) => Seen::Done(ended),
                None => Seen::NotYet(format!("it said: {}", self.output())),
            })
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a required member of an answer.
///
/// # Errors
/// If the member is missing.
pub fn member<'a>(value: &'a Value, name: &str) -> Result<&'a Value> {
    value.get(name).with_context(|| format!("expected a member {name}, found {value}"))
}
