//! A daemon of a host: the real program, running in the host's network namespace.
//!
//! Rule: it is started, asked and ended as [`crate::grid`] does it, but from within its host, so that its
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

/// The code of what cannot be answered just now (`docs/query-interface.md`).
const UNAVAILABLE: i64 = -32011;
/// How long that is waited for.
const AVAILABLE_MAX: Duration = Duration::from_secs(30);

/// One running `visperf` of a host.
#[derive(Debug)]
pub struct Daemon {
    // Let go before the process is ended and its number may be another's.
    held: LetGo,
    process: grid::Daemon,
    host: Host,
    address: Option<SocketAddr>,
}

#[derive(Debug)]
struct LetGo(Arc<Held>);

impl Drop for LetGo {
    fn drop(&mut self) {
        // What cannot be signalled is gone.
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

    /// Waits until it answers on its host; the address at which it does.
    ///
    /// # Errors
    /// If it ended, or is not ready within `limit`; with what it said.
    pub fn ready(&mut self, limit: Duration) -> Result<SocketAddr> {
        let (host, process) = (self.host.clone(), &mut self.process);
        let address = host.run(|| process.ready(limit)).with_context(|| format!("on {}", host.name()))?;
        self.address = Some(address);
        Ok(address)
    }

    /// The address at which it answers, to those on its host.
    ///
    /// # Errors
    /// If no one waited yet for it to be ready.
    pub fn address(&self) -> Result<SocketAddr> {
        self.address.with_context(|| format!("the daemon of {} was not waited for", self.host.name()))
    }

    /// Calls a method, from within its host.
    ///
    /// # Errors
    /// If no well-formed answer came.
    pub fn ask(&self, method: &str, params: &Value) -> Result<Answer> {
        let address = self.address()?;
        self.host
            .run(|| query::ask(address, method, params))
            .with_context(|| format!("on {}", self.host.name()))
    }

    /// Calls a method, from within its host, and takes nothing but a result. Where whoever knows cannot be asked just now, as after
    /// a representative stood still, it is asked again.
    ///
    /// # Errors
    /// If no well-formed answer came, or a fault.
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

    /// A figure of a part of it (`overlay`, `election`, `door`), as its `daemon.info` tells it.
    ///
    /// # Errors
    /// If it does not answer, or there is none.
    pub fn figure(&self, part: &str, name: &str) -> Result<u64> {
        let info = self.result("daemon.info", &json!({}))?;
        info["statistics"][part][name]
            .as_u64()
            .with_context(|| format!("expected {part}.{name}, found {info}"))
    }

    /// Its host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its process number, in the lab.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it said so far.
    #[must_use]
    pub fn told(&self) -> String {
        self.process.told()
    }

    /// Ends it at once, with SIGKILL.
    ///
    /// # Errors
    /// If it had ended before by itself, which is a fault of its own.
    pub fn kill(self) -> Result<()> {
        drop(self.held);
        self.process.kill().with_context(|| format!("on {}", self.host.name()))
    }

    /// Tells it to end, with SIGTERM, and waits until it has. One that is paused goes on first.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn stop(self) -> Result<ExitStatus> {
        drop(self.held);
        self.process.stop().with_context(|| format!("on {}", self.host.name()))
    }

    /// Stops it where it is, with SIGSTOP, until [`Daemon::resume`]; none of its threads runs any more.
    ///
    /// # Errors
    /// If it cannot be signalled, or does not stop.
    pub fn pause(&self) -> Result<()> {
        self.held.0.pause()
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If it cannot be signalled.
    pub fn resume(&self) -> Result<()> {
        self.held.0.release(By::Story)
    }
}
