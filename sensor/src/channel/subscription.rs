//! One subscription of any kind: its account, and its evaluation.
//!
//! Pure but for its locks: callers pass the data and `now`, and the CPU time that an evaluation took.
//! Invariants: every sample that is due gets a number, in order, or counts as empty; altering a subscription
//! changes no number and loses nothing that waits in the queue; a stopped subscription costs nothing until it
//! is altered.
//! Not here: the other subscriptions and the clock (`hub`), what the entries of each kind contain
//! (`process_evaluation`, `host_evaluation`, `event_evaluation`).

use super::account::{Account, Counts};
use super::call_states::CallStates;
use super::event_evaluation::EventOrCall;
use super::fields::Unknown;
use super::fields::call::Calls;
use super::fields::event::Events;
use super::host_evaluation::Sweep;
use super::outcome::Outcome;
use super::parts::Parts;
use super::queue::EntryBatch;
use super::selection;
use super::{event_evaluation, host_evaluation, predicate, process_evaluation, script};
use crate::process::source::View;
use crate::process::visibility::Visibility;
use crate::sample::glob::Glob;
use crate::sample::ticker::locked;
use crate::serving::roster::ServingProcesses;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::call::Call;
use wire::call::usage::{is_private, uid_of};
use wire::channel::{self, ChannelRequest, Kind};
use wire::event::Event;
use wire::query::Viewer;

pub use super::account::sweep_rate;

/// Why a request for a subscription is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of it exceeds its limit.
    #[error(transparent)]
    Bounds(#[from] channel::Error),
    #[error(transparent)]
    Selection(#[from] selection::Error),
    #[error("filter: {0}")]
    Filter(#[from] predicate::Error),
    /// Its condition names an unknown field.
    #[error("condition: {0}")]
    Condition(#[from] Unknown),
    #[error(transparent)]
    Script(#[from] script::Error),
    /// `only_signals` without a condition: there would be nothing to send.
    #[error("only_signals: expected a condition beside it, found none; give one, or leave it out")]
    NoCondition,
    /// `changes` with a script: a script itself decides what is sent.
    #[error(
        "changes: expected no script beside it, as a script selects itself what is sent; leave out one of them"
    )]
    ChangesOfScript,
    /// `changes` of another kind than processes.
    #[error(
        "changes: expected it of processes only, found kind {0}; of the host, the filter value changes says the same"
    )]
    ChangesOfKind(&'static str),
}

/// A compiled request: the part of making a subscription that takes time.
#[derive(Debug)]
pub struct CompiledRequest {
    wanted: ChannelRequest,
    evaluation: Evaluation,
}

#[derive(Debug)]
enum Evaluation {
    Process(Box<process_evaluation::Evaluation>),
    Host(Box<host_evaluation::Evaluation>),
    Event(Box<event_evaluation::Evaluation<Events>>),
    Call(Box<event_evaluation::Evaluation<Calls>>),
}

impl CompiledRequest {
    /// Compiles the request; `thread_time` returns the CPU time of the calling thread.
    ///
    /// # Errors
    /// If the request is invalid.
    pub fn new(wanted: ChannelRequest, thread_time: fn() -> Duration) -> Result<CompiledRequest, Error> {
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
                Evaluation::Process(Box::new(process_evaluation::Evaluation::new(parts)))
            }
            Kind::Host => {
                let name = wanted.selection.metric.as_deref().map(Glob::new).transpose();
                let name = name.map_err(|error| selection::Error::Metric(error.to_string()))?;
                Evaluation::Host(Box::new(host_evaluation::Evaluation::new(
                    Parts::new(&wanted, thread_time)?,
                    name,
                )))
            }
            Kind::Event => {
                let parts = Parts::new(&wanted, thread_time)?;
                Evaluation::Event(Box::new(event_evaluation::Evaluation::new(parts)))
            }
            Kind::Call => {
                let parts = Parts::new(&wanted, thread_time)?;
                Evaluation::Call(Box::new(event_evaluation::Evaluation::new(parts)))
            }
        };
        Ok(CompiledRequest { wanted, evaluation })
    }

    #[must_use]
    pub fn wanted(&self) -> &ChannelRequest {
        &self.wanted
    }

    /// Sets the processes that serve the job or call of the selection; ignored for kinds other than
    /// processes.
    pub fn set_served(&mut self, served: ServingProcesses) {
        match &mut self.evaluation {
            Evaluation::Process(processes) => processes.set_served(served),
            Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_) => {}
        }
    }
}

/// Status of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub wanted: ChannelRequest,
    /// How often it was altered.
    pub revision: u64,
    pub counts: Counts,
    /// Number of the next entry.
    pub next: u64,
    /// Entries and bytes that wait.
    pub waiting: (usize, usize),
    /// Entries that were left out.
    pub missed_total: u64,
    /// Samples among them that were left out because all subscriptions, or those of one owner, used too much
    /// CPU time.
    pub throttled_total: u64,
    /// CPU time that its evaluation used.
    pub cpu: Duration,
    /// Bytes that were queued for it.
    pub bytes_total: f64,
    /// Whether the condition is true; `None` without a condition.
    pub is_true: Option<bool>,
    /// Why it was stopped, if it is.
    pub quarantined: Option<String>,
    /// For events and calls: the number in the journal of the next event to evaluate.
    pub place: u64,
}

/// A subscription. It has two locks: one for its front, held for moments, and one for its evaluation, held
/// while a filter or a script runs. No client waits for the second.
#[derive(Debug)]
pub struct Subscription {
    /// On whose behalf; `None` if it may see everything.
    viewer: Option<Viewer>,
    front: Mutex<Front>,
    back: Mutex<Back>,
}

/// The part that clients use.
#[derive(Debug)]
struct Front {
    account: Account,
    /// Number in the journal of the next event to evaluate.
    place: u64,
    is_true: Option<bool>,
    /// Alteration that the next evaluation adopts.
    altered: Option<Alteration>,
}

#[derive(Debug)]
struct Alteration {
    wanted: Arc<ChannelRequest>,
    evaluation: Evaluation,
    was_stopped: bool,
}

/// The part that is evaluated.
#[derive(Debug)]
struct Back {
    /// The request that it was compiled for.
    wanted: Arc<ChannelRequest>,
    evaluation: Evaluation,
    /// State of the calls it has seen.
    states: CallStates,
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
    /// Replaces the evaluation; parts that did not change keep their memory.
    fn adopt(&mut self, altered: Alteration) {
        let Alteration { wanted, evaluation, was_stopped } = altered;
        let was = std::mem::replace(&mut self.wanted, Arc::clone(&wanted));
        let before = std::mem::replace(&mut self.evaluation, evaluation);
        match (&mut self.evaluation, before) {
            (Evaluation::Process(new), Evaluation::Process(old)) => {
                new.go_on(*old, &was, &wanted, was_stopped);
            }
            (Evaluation::Host(new), Evaluation::Host(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            (Evaluation::Event(new), Evaluation::Event(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            (Evaluation::Call(new), Evaluation::Call(old)) => new.go_on(*old, &was, &wanted, was_stopped),
            // A different kind has no memory to take over.
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
            ) => {}
        }
    }
}

impl Subscription {
    /// Creates a subscription that sees everything; its first sample is due at the next sweep.
    #[must_use]
    pub fn new(compiled: CompiledRequest, now: Duration) -> Subscription {
        Subscription::of(compiled, None, now)
    }

    /// Creates a subscription that sees what this viewer may see, or everything without a viewer; its first
    /// sample is due at the next sweep.
    #[must_use]
    pub fn of(compiled: CompiledRequest, viewer: Option<Viewer>, now: Duration) -> Subscription {
        let CompiledRequest { wanted, evaluation } = compiled;
        let account = Account::new(wanted, now);
        let (wanted, is_true) = (Arc::clone(&account.wanted), evaluation.is_true());
        Subscription {
            viewer,
            front: Mutex::new(Front { account, place: 0, is_true, altered: None }),
            back: Mutex::new(Back { wanted, evaluation, states: CallStates::default() }),
        }
    }

    /// Changes the request from the next sweep on. What waits in the queue stays, and numbers go on; a
    /// stopped subscription continues.
    pub fn alter(&self, compiled: CompiledRequest, now: Duration) {
        locked(&self.front).alter(compiled, now);
    }

    /// Changes the request if the subscription is still at this revision, and returns the new status; `None`
    /// if it was altered meanwhile.
    pub fn alter_of(&self, revision: u64, compiled: CompiledRequest, now: Duration) -> Option<Status> {
        let mut front = locked(&self.front);
        if front.account.revision != revision {
            return None;
        }
        front.alter(compiled, now);
        Some(front.status())
    }

    /// Restarts the schedule: the next sweep comes from another source, which has a schedule of its own.
    pub fn restart(&self) {
        locked(&self.front).account.restart();
    }

    #[must_use]
    pub fn wanted(&self) -> Arc<ChannelRequest> {
        Arc::clone(&locked(&self.front).account.wanted)
    }

    /// Whether it is not stopped.
    #[must_use]
    pub fn is_live(&self) -> bool {
        locked(&self.front).account.is_live()
    }

    /// Whether a sample is due at the sweep that started at `now`. If so, the caller must make it.
    pub fn is_due(&self, now: Duration) -> bool {
        locked(&self.front).account.is_due(now)
    }

    /// Leaves out the sample that is due, because subscriptions have used too much.
    pub fn throttle(&self, at_ns: u64) {
        locked(&self.front).account.throttle(at_ns);
    }

    /// Makes a sample of this sweep; returns whether an entry was added.
    pub fn sample(&self, view: &View, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            if let Evaluation::Process(processes) = &mut back.evaluation {
                outcome.is_due = true;
                processes.sample(outcome, view, now);
            }
        })
    }

    /// Makes a sample of this sweep over the host; returns whether an entry was added.
    pub fn sample_host(&self, sweep: &Sweep<'_>, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            if let Evaluation::Host(host) = &mut back.evaluation {
                outcome.is_due = true;
                host.sample(outcome, sweep, now);
            }
        })
    }

    /// Takes in an event or a change of a call; returns whether an entry was added.
    pub fn handle_event(&self, happened: &EventOrCall<'_>, at_ns: u64, now: Duration) -> bool {
        if let EventOrCall::Event(occurrence) = happened
            && !self.may_see(&occurrence.event)
        {
            return false;
        }
        self.evaluate(now, |outcome, back| match (&mut back.evaluation, happened) {
            _ if !outcome.is_live => {}
            (Evaluation::Event(events), EventOrCall::Event(event)) => events.handle(outcome, event, at_ns),
            (Evaluation::Call(calls), EventOrCall::Call(call)) => calls.handle(outcome, call, at_ns),
            (
                Evaluation::Process(_) | Evaluation::Host(_) | Evaluation::Event(_) | Evaluation::Call(_),
                EventOrCall::Event(_) | EventOrCall::Call(_),
            ) => {}
        })
    }

    /// Whether an event may be shown: what a job used to its user alone.
    fn may_see(&self, event: &Event) -> bool {
        let inspects = |viewer: Viewer| match uid_of(&event.content) {
            Some(uid) => viewer.may_inspect(uid),
            None => viewer.is_trusted(),
        };
        !is_private(event) || self.viewer.is_none_or(inspects)
    }

    /// Checks the condition and runs the script when they are due, whether anything happened or not; returns
    /// whether an entry was added.
    pub fn check_due(&self, at_ns: u64, now: Duration) -> bool {
        self.evaluate(now, |outcome, back| {
            outcome.is_due = true;
            match &mut back.evaluation {
                Evaluation::Event(events) => events.check_due(outcome, at_ns, now),
                Evaluation::Call(calls) => calls.check_due(outcome, at_ns, now),
                Evaluation::Process(_) | Evaluation::Host(_) => {}
            }
        })
    }

    /// Evaluates without holding the lock of the front; returns whether an entry was added.
    fn evaluate(&self, now: Duration, evaluate: impl FnOnce(&mut Outcome, &mut Back)) -> bool {
        let mut back = locked(&self.back);
        let mut outcome = {
            let mut front = locked(&self.front);
            if let Some(altered) = front.altered.take() {
                back.adopt(altered);
            }
            // Checked each time: the mount options of `/proc` may change.
            front.account.evaluate(self.viewer.map_or(Visibility::ALL, Visibility::of))
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

    /// The number in the journal of the next event to evaluate, if there is room for what it may produce.
    pub fn place(&self, now: Duration) -> Option<u64> {
        let mut front = locked(&self.front);
        front.account.has_room(now).then_some(front.place)
    }

    /// Moves the position in the journal to `place`. `missed` events before it were deleted and count as
    /// missed.
    pub fn go_to(&self, place: u64, missed: u64, at_ns: u64) {
        let mut front = locked(&self.front);
        front.place = place;
        front.account.miss_all(missed, at_ns);
    }

    /// Whether this call changed since it was last seen; stores its current state. `before` is an id that it
    /// may have had.
    pub fn has_changed(&self, call: &Call, before: &str) -> bool {
        locked(&self.back).states.has_changed(call, before)
    }

    /// Charges the CPU time of the sample at `now`; returns whether that stopped the subscription.
    pub fn charge(&self, cpu: Duration, at_ns: u64, now: Duration) -> bool {
        locked(&self.front).account.charge(cpu, at_ns, now)
    }

    /// Seconds of CPU time left in its own budget: within one owner, subscriptions with more go first.
    #[must_use]
    pub fn cpu_left(&self, now: Duration) -> f64 {
        let cpu = &mut locked(&self.front).account.cpu;
        cpu.has_left(now);
        cpu.left()
    }

    pub fn take(&self, limit: usize) -> EntryBatch {
        locked(&self.front).account.take(limit)
    }

    /// Takes the oldest entries, with the status after that; `None` if nothing waits, unless `or_nothing`.
    pub fn take_status(&self, limit: usize, or_nothing: bool) -> Option<(EntryBatch, Status)> {
        let mut front = locked(&self.front);
        if front.account.queue.is_empty() && !or_nothing {
            return None;
        }
        Some((front.account.take(limit), front.status()))
    }

    /// Counts samples lost at a source that makes `of` samples per second: those that were due to this
    /// subscription, or all for events and calls.
    pub fn miss(&self, count: u64, of: f64, at_ns: u64) {
        let account = &mut locked(&self.front).account;
        match account.wanted.kind.happens() {
            true => account.miss_all(count, at_ns),
            false => account.miss(count, of, at_ns),
        }
    }

    #[must_use]
    pub fn status(&self) -> Status {
        locked(&self.front).status()
    }
}

impl Front {
    fn alter(&mut self, compiled: CompiledRequest, now: Duration) {
        let CompiledRequest { wanted, evaluation } = compiled;
        let was_stopped = !self.account.is_live();
        if self.account.wanted.condition != wanted.condition {
            self.is_true = evaluation.is_true();
        }
        self.account.alter(wanted, now);
        // An alteration that was never adopted has no memory.
        let was_stopped = was_stopped || self.altered.take().is_some_and(|before| before.was_stopped);
        self.altered = Some(Alteration { wanted: Arc::clone(&self.account.wanted), evaluation, was_stopped });
    }

    fn status(&self) -> Status {
        let Account { wanted, revision, counts, queue, cpu, bytes, quarantined, throttled_total, .. } =
            &self.account;
        Status {
            wanted: ChannelRequest::clone(wanted),
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
