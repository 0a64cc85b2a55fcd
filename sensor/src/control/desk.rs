//! Where orders are obeyed or refused, one after the other.
//!
//! Shell. Rules: what is done was believed, found allowed with the process held, written down, and found allowed once more, in this
//! order: while it is written a process may execute a program with other rights. Whatever came of an order is written down. Orders of proven operators are taken at a limited rate.
//! Not here: the steps themselves (`authority`, `verdict`, `trail`, `act`).

use super::act::Held;
use super::authority::{Authority, Believed, Disbelieved};
use super::config::Config;
use super::pace::Pace;
use super::refusal::Refusal;
use super::target;
use super::trail::{Outcome, Told, Trail};
use super::verdict::{self, Target};
use crate::process::procfs::boot_ns;
use crate::sample::beat::locked;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use wire::control::{Act, Order};
use wire::id::HostName;
use wire::process::ProcessKey;
use wire::time::{Moment, Time};

/// Orders of operators at once: a whole job's processes.
pub const ORDERS_BURST: u32 = 100;
/// And one more after so long.
pub const ORDERS_INTERVAL: Duration = Duration::from_millis(250);
/// How long is waited for the end of a process that was told to end: what a program needs to tidy up; who needs longer is
/// said to be there still.
const ENDING: Duration = Duration::from_millis(500);

/// For whoever hands orders in; to be cloned freely.
#[derive(Clone)]
pub struct Handle(Arc<Desk>);

struct Desk {
    config: Config,
    proc: PathBuf,
    authority: OnceLock<Arc<dyn Authority>>,
    /// Orders are obeyed one at a time.
    turn: Mutex<Turn>,
    obeyed: AtomicU64,
    refused: AtomicU64,
}

struct Turn {
    trail: Trail,
    /// Of orders of operators.
    pace: Pace,
}

/// An order that was obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The order.
    pub order: Order,
    /// The process's name.
    pub name: String,
    /// Its user.
    pub uid: u32,
    /// Whether it has ended, where it was told to.
    pub has_ended: Option<bool>,
}

/// How orders went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Whether any are taken.
    pub is_on: bool,
    /// Obeyed.
    pub obeyed_total: u64,
    /// Refused or failed.
    pub refused_total: u64,
}

impl Figures {
    /// Name and value.
    #[must_use]
    pub fn told(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("on", self.is_on.into()),
            ("obeyed_total", self.obeyed_total),
            ("refused_total", self.refused_total),
        ]
    }
}

impl Handle {
    /// For a sensor of `host` with this state folder; `proc` is where `/proc` is.
    #[must_use]
    pub fn new(config: Config, state: &Path, host: HostName, proc: &Path) -> Handle {
        let turn = Turn { trail: Trail::new(state, host), pace: Pace::new(ORDERS_BURST, ORDERS_INTERVAL) };
        Handle(Arc::new(Desk {
            config,
            proc: proc.to_owned(),
            authority: OnceLock::new(),
            turn: Mutex::new(turn),
            obeyed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Whether anybody's processes may be controlled.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.config.is_on()
    }

    /// Set which peers are trusted. Until then none is.
    pub fn set_authority(&self, authority: Arc<dyn Authority>) {
        // A second one changes nothing: a daemon is put together once.
        let _ = self.0.authority.set(authority);
    }

    /// How it went so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            is_on: self.is_on(),
            obeyed_total: self.0.obeyed.load(Ordering::Relaxed),
            refused_total: self.0.refused.load(Ordering::Relaxed),
        }
    }

    /// Obey the order in this text. It waits for the disk, and a moment for a process to end.
    ///
    /// # Errors
    /// Why it was not obeyed; nothing was done then, unless the system failed within a change of niceness.
    pub fn obey(&self, text: &str) -> Result<Done, Refusal> {
        self.obey_at(text, calendar(), Moment(Duration::from_nanos(boot_ns())))
    }

    /// The same, where the time is told: `now` is written into the trail, by `at` it is reckoned how many come at once.
    ///
    /// # Errors
    /// As [`Handle::obey`].
    pub fn obey_at(&self, text: &str, now: Time, at: Moment) -> Result<Done, Refusal> {
        let (done, held) = self.0.take(text, now, at)?;
        let has_ended = match done.order.act {
            // Others get their turn while this one is waited for.
            Act::Signal(signal) if signal.ends() => Some(held.has_ended(ENDING)),
            Act::Signal(_) | Act::Renice(_) => None,
        };
        Ok(Done { has_ended, ..done })
    }
}

impl Desk {
    fn take(&self, text: &str, now: Time, at: Moment) -> Result<(Done, Held), Refusal> {
        let mut turn = locked(&self.turn);
        let believed = match self.believe(text) {
            Ok(believed) => believed,
            Err(Disbelieved { why, claimed, signer }) => {
                let refusal = if self.config.is_on() { Refusal::Disbelieved(why) } else { Refusal::Off };
                let reason = refusal.to_string();
                let (order, outcome) = (claimed.as_deref(), Outcome::Refused);
                let told =
                    Told { outcome, order, operator: signer, from: None, process: None, reason: &reason };
                return Err(self.refuse(&mut turn, &told, refusal, (now, at)));
            }
        };
        let mut found = None;
        let paced = turn.pace.take(at).map_err(|wait| Refusal::TooMany { wait });
        let held = paced.and_then(|()| self.hold(believed.order.process, &mut found));
        let process = found.as_ref().map(|target| (target.name.as_str(), target.uids[0]));
        let told = |outcome, reason| Told {
            outcome,
            order: Some(&believed.order),
            operator: Some(believed.operator),
            from: Some(&believed.from),
            process,
            reason,
        };
        let held = match held {
            Ok(held) => held,
            Err(refusal) => {
                let reason = refusal.to_string();
                return Err(self.refuse(&mut turn, &told(Outcome::Refused, &reason), refusal, (now, at)));
            }
        };
        // First written, then done: what cannot be written down is not done.
        turn.trail.tell(&told(Outcome::Obeyed, ""), now, at).map_err(|error| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Refusal::NoTrail(error.to_string())
        })?;
        // The same process, but perhaps another program: it is looked at again, just before.
        let again = self.judge(believed.order.process, &mut None);
        if let Err(refusal) = again.and_then(|()| self.act(&held, &believed.order)) {
            let reason = refusal.to_string();
            return Err(self.refuse(&mut turn, &told(Outcome::Failed, &reason), refusal, (now, at)));
        }
        self.obeyed.fetch_add(1, Ordering::Relaxed);
        let (name, uid) = process.map_or_else(Default::default, |(name, uid)| (name.to_owned(), uid));
        Ok((Done { order: believed.order, name, uid, has_ended: None }, held))
    }

    fn believe(&self, text: &str) -> Result<Believed, Disbelieved> {
        let nobody = |why: &str| Disbelieved { why: why.to_owned(), claimed: None, signer: None };
        if !self.config.is_on() {
            return Err(nobody("off"));
        }
        let authority =
            self.authority.get().ok_or_else(|| nobody("the sensor is starting; give the order again"))?;
        authority.believe(text)
    }

    /// Hold the process that was meant, if it may be touched; `found` is what it is.
    fn hold(&self, meant: ProcessKey, found: &mut Option<Target>) -> Result<Held, Refusal> {
        // Held first: what is read from now on is of the process that is held, or that one has ended.
        let held = Held::open(meant.pid).map_err(|error| failed("cannot hold", meant.pid, &error))?;
        let held = held.ok_or(Refusal::Gone { key: meant })?;
        self.judge(meant, found)?;
        Ok(held)
    }

    /// Whether the process that was meant may be touched as it is now; `found` is what it is.
    fn judge(&self, meant: ProcessKey, found: &mut Option<Target>) -> Result<(), Refusal> {
        let look = |error: io::Error| failed("cannot look at", meant.pid, &error);
        let target = target::read(&self.proc, meant.pid).map_err(look)?;
        let target = found.insert(target.ok_or(Refusal::Gone { key: meant })?);
        let own = target::own(&self.proc).map_err(look)?;
        verdict::judge(meant, target, &own, &self.config.uids())
    }

    fn act(&self, held: &Held, order: &Order) -> Result<(), Refusal> {
        let pid = order.process.pid;
        match order.act {
            Act::Signal(signal) => held.signal(signal).map_err(|error| failed("cannot signal", pid, &error)),
            Act::Renice(nice) => {
                held.renice(&self.proc, nice).map_err(|error| failed("cannot renice", pid, &error))
            }
        }
    }

    /// Write it down and count it.
    fn refuse(
        &self,
        turn: &mut Turn,
        told: &Told<'_>,
        refusal: Refusal,
        (now, at): (Time, Moment),
    ) -> Refusal {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = turn.trail.tell(told, now, at) {
            tracing::error!(target: "audit", %error, %refusal, "an order was refused and cannot be written down");
        }
        refusal
    }
}

/// What the system said, and what to do.
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
