//! Executor of signed commands, one after the other.
//!
//! Shell. Rules: before a command is executed it is verified, permitted after the process was opened,
//! recorded in the trail, and permitted once more, in this order: while it is recorded the process may
//! execute a program with other rights. The outcome of every command is recorded. Commands of verified
//! operators are rate-limited.
//! Not here: the steps themselves (`authority`, `decision`, `trail`, `act`).

use super::act::ProcessHandle;
use super::authority::{Authority, RejectedCommand, VerifiedCommand};
use super::config::Config;
use super::decision::{self, Target};
use super::rate_limiter::RateLimiter;
use super::refusal::Refusal;
use super::target;
use super::trail::{Outcome, Trail, TrailEntry};
use crate::process::boot_time::boot_ns;
use crate::sample::ticker::locked;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use wire::control::{Act, Order};
use wire::id::HostName;
use wire::process::ProcessKey;
use wire::time::{Moment, Time};

/// Burst of operators' commands: all processes of a job.
pub const ORDERS_BURST: u32 = 100;
/// Interval of further commands.
pub const ORDERS_INTERVAL: Duration = Duration::from_millis(250);
/// How long the executor waits for the end of a process after a terminating signal: enough for a program's
/// cleanup. A process that takes longer is reported as still running.
const ENDING: Duration = Duration::from_millis(500);

/// Handle for callers that pass in commands; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Worker>);

struct Worker {
    config: Config,
    proc: PathBuf,
    authority: OnceLock<Arc<dyn Authority>>,
    /// Commands are executed one at a time.
    executor: Mutex<Executor>,
    obeyed: AtomicU64,
    refused: AtomicU64,
}

struct Executor {
    trail: Trail,
    /// Rate limiter of operators' commands.
    limiter: RateLimiter,
}

/// A command that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedCommand {
    pub order: Order,
    /// Name of the process.
    pub name: String,
    /// User of the process.
    pub uid: u32,
    /// Whether it has ended; set after a terminating signal.
    pub has_ended: Option<bool>,
}

/// Counters of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Whether any user is listed.
    pub is_on: bool,
    pub obeyed_total: u64,
    /// Commands refused or failed.
    pub refused_total: u64,
}

impl Figures {
    /// Returns names and values.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("on", self.is_on.into()),
            ("obeyed_total", self.obeyed_total),
            ("refused_total", self.refused_total),
        ]
    }
}

impl Handle {
    /// Creates the executor of a sensor of `host` with this state folder; `proc` is the path of `/proc`.
    #[must_use]
    pub fn new(config: Config, state: &Path, host: HostName, proc: &Path) -> Handle {
        let executor = Executor {
            trail: Trail::new(state, host),
            limiter: RateLimiter::new(ORDERS_BURST, ORDERS_INTERVAL),
        };
        Handle(Arc::new(Worker {
            config,
            proc: proc.to_owned(),
            authority: OnceLock::new(),
            executor: Mutex::new(executor),
            obeyed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Returns whether any user's processes may be controlled.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.config.is_on()
    }

    /// Sets the verification of commands. Until then none is accepted.
    pub fn set_authority(&self, authority: Arc<dyn Authority>) {
        // A second call changes nothing: a daemon is composed once.
        let _ = self.0.authority.set(authority);
    }

    /// Returns the counters.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            is_on: self.is_on(),
            obeyed_total: self.0.obeyed.load(Ordering::Relaxed),
            refused_total: self.0.refused.load(Ordering::Relaxed),
        }
    }

    /// Executes the command in this text. It waits for the disk, and a moment for a process to end.
    ///
    /// # Errors
    /// If it was not executed: the reason. Nothing was done then, unless the system failed while the niceness
    /// was changed.
    pub fn execute(&self, text: &str) -> Result<ExecutedCommand, Refusal> {
        self.execute_at(text, calendar(), Moment(Duration::from_nanos(boot_ns())))
    }

    /// As [`Handle::execute`] at a given time: `now` is written to the trail, and `at` is the time for the
    /// rate limiter.
    ///
    /// # Errors
    /// As [`Handle::execute`].
    pub fn execute_at(&self, text: &str, now: Time, at: Moment) -> Result<ExecutedCommand, Refusal> {
        let (done, handle) = self.0.take(text, now, at)?;
        let has_ended = match done.order.act {
            // Other commands are executed during this wait.
            Act::Signal(signal) if signal.ends() => Some(handle.has_ended(ENDING)),
            Act::Signal(_) | Act::Renice(_) => None,
        };
        Ok(ExecutedCommand { has_ended, ..done })
    }
}

impl Worker {
    fn take(&self, text: &str, now: Time, at: Moment) -> Result<(ExecutedCommand, ProcessHandle), Refusal> {
        let mut executor = locked(&self.executor);
        let command = match self.verify(text) {
            Ok(command) => command,
            Err(RejectedCommand { why, claimed, signer }) => {
                let refusal = if self.config.is_on() { Refusal::Disbelieved(why) } else { Refusal::Off };
                let reason = refusal.to_string();
                let (order, outcome) = (claimed.as_deref(), Outcome::Refused);
                let entry = TrailEntry {
                    outcome,
                    order,
                    operator: signer,
                    from: None,
                    process: None,
                    reason: &reason,
                };
                return Err(self.refuse(&mut executor, &entry, refusal, (now, at)));
            }
        };
        let mut found = None;
        let paced = executor.limiter.take(at).map_err(|wait| Refusal::TooMany { wait });
        let handle = paced.and_then(|()| self.hold(command.order.process, &mut found));
        let process = found.as_ref().map(|target| (target.name.as_str(), target.uids[0]));
        let entry = |outcome, reason| TrailEntry {
            outcome,
            order: Some(&command.order),
            operator: Some(command.operator),
            from: Some(&command.from),
            process,
            reason,
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(refusal) => {
                let reason = refusal.to_string();
                return Err(self.refuse(
                    &mut executor,
                    &entry(Outcome::Refused, &reason),
                    refusal,
                    (now, at),
                ));
            }
        };
        // Recorded before it is done: a command that cannot be recorded is not executed.
        executor.trail.record(&entry(Outcome::Obeyed, ""), now, at).map_err(|error| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Refusal::NoTrail(error.to_string())
        })?;
        // The same process, but perhaps another program: it is checked again just before the execution.
        let again = self.check_target(command.order.process, &mut None);
        if let Err(refusal) = again.and_then(|()| self.act(&handle, &command.order)) {
            let reason = refusal.to_string();
            return Err(self.refuse(&mut executor, &entry(Outcome::Failed, &reason), refusal, (now, at)));
        }
        self.obeyed.fetch_add(1, Ordering::Relaxed);
        let (name, uid) = process.map_or_else(Default::default, |(name, uid)| (name.to_owned(), uid));
        Ok((ExecutedCommand { order: command.order, name, uid, has_ended: None }, handle))
    }

    fn verify(&self, text: &str) -> Result<VerifiedCommand, RejectedCommand> {
        let unsigned = |why: &str| RejectedCommand { why: why.to_owned(), claimed: None, signer: None };
        if !self.config.is_on() {
            return Err(unsigned("off"));
        }
        let authority =
            self.authority.get().ok_or_else(|| unsigned("the sensor is starting; give the order again"))?;
        authority.verify(text)
    }

    /// Opens the requested process and checks that it may be controlled; `found` is set to its description.
    fn hold(&self, meant: ProcessKey, found: &mut Option<Target>) -> Result<ProcessHandle, Refusal> {
        // Opened first: what is read from now on is of the opened process, or that process has ended.
        let handle =
            ProcessHandle::open(meant.pid).map_err(|error| failed("cannot hold", meant.pid, &error))?;
        let handle = handle.ok_or(Refusal::Gone { key: meant })?;
        self.check_target(meant, found)?;
        Ok(handle)
    }

    /// Checks that the requested process may be controlled in its present state; `found` is set to its
    /// description.
    fn check_target(&self, meant: ProcessKey, found: &mut Option<Target>) -> Result<(), Refusal> {
        let look = |error: io::Error| failed("cannot look at", meant.pid, &error);
        let target = target::read(&self.proc, meant.pid).map_err(look)?;
        let target = found.insert(target.ok_or(Refusal::Gone { key: meant })?);
        let own = target::own(&self.proc).map_err(look)?;
        decision::decide(meant, target, &own, &self.config.uids())
    }

    fn act(&self, handle: &ProcessHandle, order: &Order) -> Result<(), Refusal> {
        let pid = order.process.pid;
        match order.act {
            Act::Signal(signal) => {
                handle.signal(signal).map_err(|error| failed("cannot signal", pid, &error))
            }
            Act::Renice(nice) => {
                handle.renice(&self.proc, nice).map_err(|error| failed("cannot renice", pid, &error))
            }
        }
    }

    /// Records and counts a refusal.
    fn refuse(
        &self,
        executor: &mut Executor,
        entry: &TrailEntry<'_>,
        refusal: Refusal,
        (now, at): (Time, Moment),
    ) -> Refusal {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = executor.trail.record(entry, now, at) {
            tracing::error!(target: "audit", %error, %refusal, "an order was refused and cannot be written down");
        }
        refusal
    }
}

/// Builds the refusal from the error of the system, with a hint what to do.
fn failed(what: &'static str, pid: u32, error: &io::Error) -> Refusal {
    let kind = error.kind();
    let why = if kind == io::ErrorKind::PermissionDenied {
        format!(
            "{error}; the sensor runs as another user and lacks the right: CAP_KILL to signal processes of other \
             users, CAP_SYS_NICE to renice them or to let one go first"
        )
    } else if kind == io::ErrorKind::Unsupported {
        format!("{error}; the kernel is older than Linux 5.3")
    } else {
        error.to_string()
    };
    Refusal::System { what, pid, why }
}

#[allow(clippy::disallowed_methods)] // The shell's clock, for the trail.
fn calendar() -> Time {
    Time::from(std::time::SystemTime::now())
}
