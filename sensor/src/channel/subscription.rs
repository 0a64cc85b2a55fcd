//! One subscription, of whichever kind: its account, and what of it is evaluated.
//!
//! Pure but for its locks: callers pass what flows and `now`, and say what it cost. Invariants: every sample that is due gets a
//! number, in order, or counts as empty; altering it changes no number and loses nothing that waits; once it is stopped it costs
//! nothing until it is altered.
//! Not here: the other subscriptions and the clock (`hub`), what each kind tells (`of_processes`, `of_host`,
//! `of_happenings`).

use super::account::{Account, Counts};
use super::fields::Unknown;
use super::fields::call::Calls;
use super::fields::event::Events;
use super::of_happenings::Happened;
use super::of_host::Sweep;
use super::outcome::Outcome;
use super::parts::Parts;
use super::queue::Taken;
use super::selection;
use super::standings::Standings;
use super::{of_happenings, of_host, of_processes, predicate, script};
use crate::process::sight::Sight;
use crate::process::source::View;
use crate::sample::beat::locked;
use crate::sample::glob::Glob;
use crate::serving::roll::Served;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::call::Call;
use wire::channel::{self, Kind, Wanted};
use wire::query::Viewer;

pub use super::account::swept;

/// Why a subscription cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of it is beyond its bounds.
    #[error(transparent)]
    Bounds(#[from] channel::Error),
    /// Its selection cannot be used.
    #[error(transparent)]
    Selection(#[from] selection::Error),
    /// Its filter cannot be used.
    #[error("filter: {0}")]
    Filter(#[from] predicate::Error),
    /// Its condition names what there is not.
    #[error("condition: {0}")]
    Condition(#[from] Unknown),
    /// Its script cannot be used.
    #[error(transparent)]
    Script(#[from] script::Error),
    /// There is nothing to tell.
    #[error("only_signals: expected a condition beside it, found none; give one, or leave it out")]
    NoCondition,
    /// A script says itself what is told.
    #[error(
        "changes: expected no script beside it, as a script says itself what is told; leave out one of them"
    )]
    ChangesOfScript,
    /// Only of processes there are changes.
    #[error(
        "changes: expected it of processes only, found kind {0}; of the host, the filter value changes says the same"
    )]
    ChangesOfKind(&'static str),
}

/// What is wanted, made ready: the part of a subscription that takes time to make.
#[derive(Debug)]
pub struct Prepared {
    wanted: Wanted,
    evaluation: Evaluation,
}

#[derive(Debug)]
enum Evaluation {
    Process(Box<of_processes::Evaluation>),
    Host(Box<of_host::Evaluation>),
    Event(Box<of_happenings::Evaluation<Events>>),
    Call(Box<of_happenings::Evaluation<Calls>>),
}

impl Prepared {
    /// Compile what is wanted; `thread_time` tells the CPU time of the thread that asks.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn new(wanted: Wanted, thread_time: fn() -> Duration) -> Result<Prepared, Error> {
        wanted.budget.checked()?;
        selection::check(wanted.kind, &wanted.selection)?;
        if wanted.changes && wanted.script.is_some() {
            return Err(Error::ChangesOfScript);
        }
        if wanted.changes && wanted.kind != Kind::Process {
            return Err(Error::ChangesOfKind(wanted.kind.as_str()));
        }
        if wanted.only_signals && wanted.condition.is_none() {
            return Err(Error::NoCondition);
        }
        let evaluation = match wanted.kind {
            Kind::Process => {
                let parts = Parts::new(&wanted, thread_time)?;
                Evaluation::Process(Box::new(of_processes::Evaluation::new(parts)))
            }
            Kind::Host => {
                let name = wanted.selection.metric.as_deref().map(Glob::new).transpose();
                let name = name.map_err(|error| selection::Error::Metric(error.to_string()))?;
                Evaluation::Host(Box::new(of_host::Evaluation::new(Parts::new(&wanted, thread_time)?, name)))
            }
            Kind::Event => {
                let parts = Parts::new(&wanted, thread_time)?;
                Evaluation::Event(Box::new(of_happenings::Evaluation::new(parts)))
            }
            Kind::Call => {
                let parts = Parts::new(&wanted, thread_time)?;
                Evaluation::Call(Box::new(of_happenings::Evaluation::new(parts)))
            }
        };
        Ok(Prepared { wanted, evaluation })
    }

    /// What is wanted.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Who serves the job or call that is wanted, of a selection of processes.
    pub fn set_served(&mut self, served: Served) {
        match &mut self.evaluation {
            Evaluation::Process(processes) => processes.set_served(served),
            Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_) => {}
        }
    }
}

/// How it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What it wants.
    pub wanted: Wanted,
    /// How often it was altered.
    pub revision: u64,
    /// What happened.
    pub counts: Counts,
    /// The number the next entry gets.
    pub next: u64,
    /// Entries and bytes that wait.
    pub waiting: (usize, usize),
    /// Entries that were left out.
    pub missed_total: u64,
    /// Samples among them that were left out because all subscriptions, or those of one user, use too much.
    pub throttled_total: u64,
    /// CPU time it took.
    pub cpu: Duration,
    /// Bytes that were told.
    pub bytes_total: f64,
    /// Whether the condition is true.
    pub is_true: Option<bool>,
    /// Why it was stopped, if it is.
    pub quarantined: Option<String>,
    /// Of what happens: the number in the journal of the first event that it has not looked at.
    pub place: u64,
}

/// A subscription. Two locks: of its front, held for moments by whoever asks, and of its evaluation, held while a filter or a script
/// runs; the second is never waited for by a client.
#[derive(Debug)]
pub struct Subscription {
    /// On whose behalf; none where everything there is may be seen.
    viewer: Option<Viewer>,
    front: Mutex<Front>,
    back: Mutex<Back>,
}

/// What clients ask about.
#[derive(Debug)]
struct Front {
    account: Account,
    /// The number in the journal of the next event to look at.
    place: u64,
    is_true: Option<bool>,
    /// What it was altered to, for the next evaluation to adopt.
    altered: Option<Altered>,
}

#[derive(Debug)]
struct Altered {
    wanted: Arc<Wanted>,
    evaluation: Evaluation,
    was_stopped: bool,
}

/// What is evaluated.
#[derive(Debug)]
struct Back {
    /// What it was made for.
    wanted: Arc<Wanted>,
    evaluation: Evaluation,
    /// How the calls stand that it looked at.
    standings: Standings,
}

impl Evaluation {
    fn is_true(&self) -> Option<bool> {
        match self {
            Evaluation::Process(processes) => processes.is_true(),
            Evaluation::Host(host) => host.is_true(),
            Evaluation::Event(events) => events.is_true(),
            Evaluation::Call(calls) => calls.is_true(),
        }
    }
}

impl Back {
    /// What did not change keeps what it remembers.
    fn adopt(&mut self, altered: Altered) {
        let Altered { wanted, evaluation, was_stopped } = altered;
        let was = std::mem::replace(&mut self.wanted, Arc::clone(&wanted));
        let before = std::mem::replace(&mut self.evaluation, evaluation);
        match (&mut self.evaluation, before) {
            (Evaluation::Process(new), Evaluation::Process(old)) => {
                new.go_on(*old, &was, &wanted, was_stopped);
            }
            (Evaluation::Host(new), Evaluation::Host(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            (Evaluation::Event(new), Evaluation::Event(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            (Evaluation::Call(new), Evaluation::Call(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            // Another kind has nothing to go on with.
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
            ) => {}
        }
    }
}

impl Subscription {
    /// From the next sweep on, of everything there is to see.
    #[must_use]
    pub fn new(prepared: Prepared, now: Duration) -> Subscription {
        Subscription::of(prepared, None, now)
    }

    /// From the next sweep on, of what this viewer may see, if there is one.
    #[must_use]
    pub fn of(prepared: Prepared, viewer: Option<Viewer>, now: Duration) -> Subscription {
        let Prepared { wanted, evaluation } = prepared;
        let account = Account::new(wanted, now);
        let (wanted, is_true) = (Arc::clone(&account.wanted), evaluation.is_true());
        Subscription {
            viewer,
            front: Mutex::new(Front { account, place: 0, is_true, altered: None }),
            back: Mutex::new(Back { wanted, evaluation, standings: Standings::default() }),
        }
    }

    /// From the next sweep on, something else is wanted. What waits stays, and numbers go on; one that was stopped goes on.
    pub fn alter(&self, prepared: Prepared, now: Duration) {
        locked(&self.front).alter(prepared, now);
    }

    /// The same, if it was altered so often as `revision` says, and not again since; how it stands then.
    pub fn alter_of(&self, revision: u64, prepared: Prepared, now: Duration) -> Option<Standing> {
        let mut front = locked(&self.front);
        if front.account.revision != revision {
            return None;
        }
        front.alter(prepared, now);
        Some(front.standing())
    }

    /// What comes from now on is of another source, whose sweeps have a clock of their own: the next is the first of its raster.
    pub fn begin_anew(&self) {
        locked(&self.front).account.begin_anew();
    }

    /// What it wants.
    #[must_use]
    pub fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&locked(&self.front).account.wanted)
    }

    /// Whether it was not stopped.
    #[must_use]
    pub fn is_live(&self) -> bool {
        locked(&self.front).account.is_live()
    }

    /// Whether a sample is due at the sweep that began at `now`; if so it is to be made of it.
    pub fn is_due(&self, now: Duration) -> bool {
        locked(&self.front).account.is_due(now)
    }

    /// The sample that is due is left out, because others have used too much.
    pub fn throttle(&self, at_ns: u64) {
        locked(&self.front).account.throttle(at_ns);
    }

    /// Make a sample of this sweep; gives whether something was added to what waits.
    pub fn sample(&self, view: &View, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            if let Evaluation::Process(processes) = &mut back.evaluation {
                outcome.is_due = true;
                processes.sample(outcome, view, now);
            }
        })
    }

    /// Make a sample of this sweep over the host; gives the same.
    pub fn sample_host(&self, sweep: &Sweep<'_>, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            if let Evaluation::Host(host) = &mut back.evaluation {
                outcome.is_due = true;
                host.sample(outcome, sweep, now);
            }
        })
    }

    /// Something happened; gives the same.
    pub fn hear(&self, happened: &Happened<'_>, at_ns: u64, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| match (&mut back.evaluation, happened) {
            _ if !outcome.is_live => {}
            (Evaluation::Event(events), Happened::Event(event)) => events.hear(outcome, event, at_ns),
            (Evaluation::Call(calls), Happened::Call(call)) => calls.hear(outcome, call, at_ns),
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                Happened::Event(_) | Happened::Call(_),
            ) => {}
        })
    }

    /// It is due, whether something happened or not; gives the same.
    pub fn look(&self, at_ns: u64, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            outcome.is_due = true;
            match &mut back.evaluation {
                Evaluation::Event(events) => events.look(outcome, at_ns, now),
                Evaluation::Call(calls) => calls.look(outcome, at_ns, now),
                Evaluation::Process(_) | Evaluation::Host(_) => {}
            }
        })
    }

    /// Evaluates without holding the front; gives whether something was added to what waits.
    fn evaluate(&self, now: Duration, evaluate: impl FnOnce(&mut Outcome, &mut Back)) -> bool {
        let mut back = locked(&self.back);
        let mut outcome = {
            let mut front = locked(&self.front);
            if let Some(altered) = front.altered.take() {
                back.adopt(altered);
            }
            // Looked at each time: how `/proc` is mounted may change.
            front.account.evaluate(self.viewer.map_or(Sight::ALL, Sight::of))
        };
        evaluate(&mut outcome, &mut back);
        let mut front = locked(&self.front);
        let before = front.account.queue.next();
        front.account.add(outcome, now);
        if front.altered.is_none() {
            front.is_true = back.evaluation.is_true();
        }
        front.account.queue.next() > before
    }

    /// The number in the journal of the next event to look at, if there is room for what it may tell.
    pub fn place(&self, now: Duration) -> Option<u64> {
        let mut front = locked(&self.front);
        front.account.has_room(now).then_some(front.place)
    }

    /// From this number in the journal on; so many before it are not kept any more.
    pub fn go_to(&self, place: u64, missed: u64, at_ns: u64) {
        let mut front = locked(&self.front);
        front.place = place;
        front.account.miss_all(missed, at_ns);
    }

    /// Whether this call stands otherwise than when it was looked at last; from now on it is known as it stands. `before` is an id
    /// that it may have had.
    pub fn is_news(&self, call: &Call, before: &str) -> bool {
        locked(&self.back).standings.is_news(call, before)
    }

    /// The sample at `now` took so much CPU time; gives whether the subscription was stopped for it.
    pub fn charge(&self, cpu: Duration, at_ns: u64, now: Duration) -> bool {
        locked(&self.front).account.charge(cpu, at_ns, now)
    }

    /// The part of its CPU time of a second that it has not used of late: those with more go first.
    #[must_use]
    pub fn cpu_left(&self, now: Duration) -> f64 {
        let cpu = &mut locked(&self.front).account.cpu;
        cpu.has_left(now);
        cpu.left()
    }

    /// The oldest entries that wait.
    pub fn take(&self, limit: usize) -> Taken {
        locked(&self.front).account.take(limit)
    }

    /// The same with how it stands then; `None` where nothing waits, unless that is wanted too.
    pub fn take_standing(&self, limit: usize, or_nothing: bool) -> Option<(Taken, Standing)> {
        let mut front = locked(&self.front);
        if front.account.queue.is_empty() && !or_nothing {
            return None;
        }
        Some((front.account.take(limit), front.standing()))
    }

    /// So many samples of the source, which makes `of` a second, did not come: those that were due to this one, or, of what
    /// happens, all.
    pub fn miss(&self, count: u64, of: f64, at_ns: u64) {
        let account = &mut locked(&self.front).account;
        match account.wanted.kind.happens() {
            true => account.miss_all(count, at_ns),
            false => account.miss(count, of, at_ns),
        }
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        locked(&self.front).standing()
    }
}

impl Front {
    fn alter(&mut self, prepared: Prepared, now: Duration) {
        let Prepared { wanted, evaluation } = prepared;
        let was_stopped = !self.account.is_live();
        if self.account.wanted.condition != wanted.condition {
            self.is_true = evaluation.is_true();
        }
        self.account.alter(wanted, now);
        // What was never evaluated remembers nothing.
        let was_stopped = was_stopped || self.altered.take().is_some_and(|before| before.was_stopped);
        self.altered = Some(Altered { wanted: Arc::clone(&self.account.wanted), evaluation, was_stopped });
    }

    fn standing(&self) -> Standing {
        let Account { wanted, revision, counts, queue, cpu, bytes, quarantined, throttled_total, .. } =
            &self.account;
        Standing {
            wanted: Wanted::clone(wanted),
            revision: *revision,
            counts: *counts,
            next: queue.next(),
            waiting: (queue.len(), queue.len_bytes()),
            missed_total: queue.missed_total(),
            throttled_total: *throttled_total,
            cpu: Duration::from_secs_f64(cpu.total()),
            bytes_total: bytes.total(),
            is_true: self.is_true,
            quarantined: quarantined.clone(),
            place: self.place,
        }
    }
}

#[cfg(test)]
mod tests;
