//! One subscription, of whichever kind: its account, and what of it is evaluated.
//!
//! Pure: callers pass what flows and `now`, and tell what it cost. Invariants: every sample that is due gets a number, in
//! order, or counts as empty; altering it changes no number and loses nothing that waits; once it is stopped it costs
//! nothing until it is altered.
//! Not here: the other subscriptions, the lock and the clock (`hub`), what each kind tells (`of_processes`, `of_host`,
//! `of_happenings`).

use super::account::{Account, Counts};
use super::fields::Unknown;
use super::fields::call::Calls;
use super::fields::event::Events;
use super::of_happenings::Happened;
use super::of_host::Sweep;
use super::parts::Parts;
use super::queue::Taken;
use super::selection;
use super::standings::Standings;
use super::{of_happenings, of_host, of_processes, predicate, script};
use crate::process::source::View;
use crate::sample::glob::Glob;
use crate::serving::roll::Served;
use std::time::Duration;
use wire::channel::{self, Kind, Wanted};

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

/// A subscription.
#[derive(Debug)]
pub struct Subscription {
    account: Account,
    evaluation: Evaluation,
    /// The number in the journal of the next event to look at.
    place: u64,
    /// How the calls stand that it looked at.
    standings: Standings,
}

impl Subscription {
    /// From the next sweep on.
    #[must_use]
    pub fn new(prepared: Prepared, now: Duration) -> Subscription {
        let Prepared { wanted, evaluation } = prepared;
        let account = Account::new(wanted, now);
        Subscription { account, evaluation, place: 0, standings: Standings::default() }
    }

    /// From the next sweep on, something else is wanted, of the same kind. What waits stays, and numbers go on; one that was
    /// stopped goes on. What did not change keeps what it remembers.
    pub fn alter(&mut self, prepared: Prepared, now: Duration) {
        let Prepared { wanted, evaluation } = prepared;
        let is_stopped = !self.account.is_live();
        let was = self.account.wanted.clone();
        let before = std::mem::replace(&mut self.evaluation, evaluation);
        match (&mut self.evaluation, before) {
            (Evaluation::Process(new), Evaluation::Process(old)) => {
                new.go_on(*old, &was, &wanted, is_stopped)
            }
            (Evaluation::Host(new), Evaluation::Host(old)) => new.go_on(*old, &was, &wanted, is_stopped),
            (Evaluation::Event(new), Evaluation::Event(old)) => new.go_on(*old, &was, &wanted, is_stopped),
            (Evaluation::Call(new), Evaluation::Call(old)) => new.go_on(*old, &was, &wanted, is_stopped),
            // Another kind begins anew.
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
            ) => {}
        }
        self.account.alter(wanted, now);
    }

    /// What comes from now on is of another source, whose sweeps have a clock of their own: the next is the first of its raster.
    pub fn begin_anew(&mut self) {
        self.account.begin_anew();
    }

    /// How often it was altered.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.account.revision
    }

    /// What it wants.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.account.wanted
    }

    /// Whether it was not stopped.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.account.is_live()
    }

    /// Whether a sample is due at the sweep that began at `now`; if so it is to be made of it.
    pub fn is_due(&mut self, now: Duration) -> bool {
        self.account.is_due(now)
    }

    /// Make a sample of this sweep; gives whether something was added to what waits.
    pub fn sample(&mut self, view: &View, now: Duration) -> bool {
        self.told(|account, evaluation| {
            if let Evaluation::Process(processes) = evaluation {
                account.counts.due_total += 1;
                processes.sample(account, view, now);
            }
        })
    }

    /// Make a sample of this sweep over the host; gives the same.
    pub fn sample_host(&mut self, sweep: &Sweep<'_>, now: Duration) -> bool {
        self.told(|account, evaluation| {
            if let Evaluation::Host(host) = evaluation {
                account.counts.due_total += 1;
                host.sample(account, sweep, now);
            }
        })
    }

    /// Something happened; gives the same.
    pub fn hear(&mut self, happened: &Happened<'_>, at_ns: u64, now: Duration) -> bool {
        self.told(|account, evaluation| match (evaluation, happened) {
            _ if !account.is_live() => {}
            (Evaluation::Event(events), Happened::Event(event)) => events.hear(account, event, at_ns, now),
            (Evaluation::Call(calls), Happened::Call(call)) => calls.hear(account, call, at_ns, now),
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                Happened::Event(_) | Happened::Call(_),
            ) => {}
        })
    }

    /// It is due, whether something happened or not; gives the same.
    pub fn look(&mut self, at_ns: u64, now: Duration) -> bool {
        self.told(|account, evaluation| {
            account.counts.due_total += 1;
            match evaluation {
                Evaluation::Event(events) => events.look(account, at_ns, now),
                Evaluation::Call(calls) => calls.look(account, at_ns, now),
                Evaluation::Process(_) | Evaluation::Host(_) => {}
            }
        })
    }

    fn told(&mut self, tell: impl FnOnce(&mut Account, &mut Evaluation)) -> bool {
        let before = self.account.queue.next();
        tell(&mut self.account, &mut self.evaluation);
        self.account.queue.next() > before
    }

    /// The number in the journal of the next event to look at, if there is room for what it may tell.
    pub fn place(&mut self, now: Duration) -> Option<u64> {
        self.account.has_room(now).then_some(self.place)
    }

    /// From this number in the journal on; so many before it are not kept any more.
    pub fn go_to(&mut self, place: u64, missed: u64, at_ns: u64) {
        self.place = place;
        self.account.miss_all(missed, at_ns);
    }

    /// How the calls stand that it looked at.
    pub fn standings(&mut self) -> &mut Standings {
        &mut self.standings
    }

    /// The sample at `now` took so much CPU time; gives whether the subscription was stopped for it.
    pub fn charge(&mut self, cpu: Duration, at_ns: u64, now: Duration) -> bool {
        self.account.charge(cpu, at_ns, now)
    }

    /// The oldest entries that wait.
    pub fn take(&mut self, limit: usize) -> Taken {
        self.account.take(limit)
    }

    /// So many samples of the source, which makes `of` a second, did not come: those that were due to this one, or, of what
    /// happens, all.
    pub fn miss(&mut self, count: u64, of: f64, at_ns: u64) {
        match self.account.wanted.kind.happens() {
            true => self.account.miss_all(count, at_ns),
            false => self.account.miss(count, of, at_ns),
        }
    }

    /// Whether something waits.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.account.queue.is_empty()
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Account { wanted, revision, counts, queue, cpu, bytes, quarantined, .. } = &self.account;
        Standing {
            wanted: wanted.clone(),
            revision: *revision,
            counts: *counts,
            next: queue.next(),
            waiting: (queue.len(), queue.len_bytes()),
            missed_total: queue.missed_total(),
            cpu: Duration::from_secs_f64(cpu.total()),
            bytes_total: bytes.total(),
            is_true: match &self.evaluation {
                Evaluation::Process(processes) => processes.is_true(),
                Evaluation::Host(host) => host.is_true(),
                Evaluation::Event(events) => events.is_true(),
                Evaluation::Call(calls) => calls.is_true(),
            },
            quarantined: quarantined.clone(),
            place: self.place,
        }
    }
}

#[cfg(test)]
mod tests;
