//! Daemon on a lab host: the real program, running in the host's network namespace.
//!
//! Rule: it is started, queried and ended as in [`crate::grid`], but from within its host, so that its
//! loopback is the host's. Not here: the host ([`super::host`]).

use super::held::{By, Held};
use super::host::Host;
use crate::grid;
use crate::query::{self, Answer};
use crate::wait::{self, Seen};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Fault code for a query that cannot be answered now (`docs/query-interface.md`).
const UNAVAILABLE: i64 = -32011;
/// Timeout for retrying such a query.
const AVAILABLE_MAX: Duration = Duration::from_secs(30);

/// A running `visperf` on a host.
#[derive(Debug)]
pub struct Daemon {
    // Dropped before the process is killed and its pid may be reused.
    held: LetGo,
    process: grid::Daemon,
    host: Host,
    address: Option<SocketAddr>,
}

#[derive(Debug)]
struct LetGo(Arc<Held>);

impl Drop for LetGo {
    fn drop(&mut self) {
        // A process that cannot be signalled has ended.
        let _ = self.0.let_go();
    }
}

impl Daemon {
    pub(super) fn spawn(
        program: &Path,
        host: &Host,
        state: &Path,
        arguments: &[&OsStr],
    ) -> Result<(Daemon, Arc<Held>)> {
        let process = host.run(|| grid::Daemon::spawn_by(program, state, arguments))?;
        let held = Held::new(process.pid())?;
        let daemon = Daemon { held: LetGo(Arc::clone(&held)), process, host: host.clone(), address: None };
        Ok((daemon, held))
    }

    /// Wait until it answers on its host; returns its address.
    ///
    /// # Errors
    /// If it ended, or is not ready within `limit`; with its output.
    pub fn ready(&mut self, limit: Duration) -> Result<SocketAddr> {
        let (host, process) = (self.host.clone(), &mut self.process);
        let address = host.run(|| process.ready(limit)).with_context(|| format!("on {}", host.name()))?;
        self.address = Some(address);
        Ok(address)
    }

    /// Its address, as used on its host.
    ///
    /// # Errors
    /// If [`Daemon::ready`] was not called.
    pub fn address(&self) -> Result<SocketAddr> {
        self.address.with_context(|| format!("the daemon of {} was not waited for", self.host.name()))
    }

    /// Call a method from within its host.
    ///
    /// # Errors
    /// If no well-formed answer was received.
    pub fn ask(&self, method: &str, params: &Value) -> Result<Answer> {
        let address = self.address()?;
        self.host
            .run(|| query::ask(address, method, params))
            .with_context(|| format!("on {}", self.host.name()))
    }

    /// Call a method from within its host, and require a result. If the daemon that knows the answer is
    /// unavailable, as after a representative was paused, the call is retried.
    ///
    /// # Errors
    /// If no well-formed answer was received, or a fault.
    pub fn result(&self, method: &str, params: &Value) -> Result<Value> {
        let look = || match self.ask(method, params)? {
            Answer::Result(value) => Ok(Seen::Done(value)),
            Answer::Fault { code: UNAVAILABLE, message, .. } => Ok(Seen::NotYet(message)),
            Answer::Fault { code, message, .. } => {
                bail!("on {}: {method} {params} gave fault {code}: {message}", self.host.name())
            }
        };
        wait::until(AVAILABLE_MAX, &format!("an answer of {} to {method} {params}", self.host.name()), look)
    }

    /// A counter of one of its parts (`overlay`, `election`, `door`), from `daemon.info`.
    ///
    /// # Errors
    /// If it does not answer, or there is no such counter.
    pub fn figure(&self, part: &str, name: &str) -> Result<u64> {
        let info = self.result("daemon.info", &json!({}))?;
        info["statistics"][part][name]
            .as_u64()
            .with_context(|| format!("expected {part}.{name}, found {info}"))
    }

    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its pid, in the lab's process namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its output so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Kill it with SIGKILL.
    ///
    /// # Errors
    /// If it had already ended by itself, which is a failure of its own.
    pub fn kill(self) -> Result<()> {
        drop(self.held);
        self.process.kill().with_context(|| format!("on {}", self.host.name()))
    }

    /// Send SIGTERM, and wait until it has ended. A paused daemon is resumed first.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn stop(self) -> Result<ExitStatus> {
        drop(self.held);
        self.process.stop().with_context(|| format!("on {}", self.host.name()))
    }

    /// Stop it with SIGSTOP until [`Daemon::resume`]; on return none of its threads runs any more.
    ///
    /// # Errors
    /// If it cannot be signalled, or does not stop.
    pub fn pause(&self) -> Result<()> {
        self.held.0.pause()
    }

    /// Resume it.
    ///
    /// # Errors
    /// If it cannot be signalled.
    pub fn resume(&self) -> Result<()> {
        self.held.0.release(By::Story)
    }
}
