//! One subscription: what it wants, what it remembers, what waits for it, and what it has used.
//!
//! Pure: callers pass the sweep and `now`, and tell what it cost. Invariants: every sample that is due gets a number, in
//! order, or counts as empty; altering it changes no number and loses nothing that waits; once it is stopped it costs
//! nothing until it is altered.
//! Not here: the other subscriptions, the lock and the clock (`hub`).

use super::changes::{Difference, Told};
use super::condition::{self, State};
use super::fields::{Seen, Unknown};
use super::meter::Meter;
use super::predicate::{self, Chosen, Memory, Ready};
use super::queue::{Queue, Taken};
use super::script::{self, Outcome, Script};
use super::selection;
use crate::process::source::View;
use crate::sample::schedule::{Rate, Schedule};
use compact_str::CompactString;
use std::time::Duration;
use wire::channel::stream::{Body, RECORDS_MAX, Record};
use wire::channel::{self, Wanted};

/// Why a subscription cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of it is beyond its bounds.
    #[error(transparent)]
    Bounds(#[from] channel::Error),
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
}

/// What is wanted, made ready: the part of a subscription that takes time to make.
#[derive(Debug)]
pub struct Prepared {
    wanted: Wanted,
    filter: Ready,
    condition: Option<State>,
    script: Option<Script>,
}

impl Prepared {
    /// Compile what is wanted; `thread_time` tells the CPU time of the thread that asks.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn new(wanted: Wanted, thread_time: fn() -> Duration) -> Result<Prepared, Error> {
        wanted.budget.checked()?;
        selection::check(&wanted.selection)?;
        if wanted.changes && wanted.script.is_some() {
            return Err(Error::ChangesOfScript);
        }
        if wanted.only_signals && wanted.condition.is_none() {
            return Err(Error::NoCondition);
        }
        let filter = Ready::new(&wanted.filter)?;
        let condition = wanted.condition.clone().map(State::new).transpose()?;
        let script = wanted.script.as_ref().map(|text| Script::new(text, thread_time)).transpose()?;
        Ok(Prepared { wanted, filter, condition, script })
    }
}

/// What happened since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that were due.
    pub due_total: u64,
    /// Of them, those of which nothing passed or changed: the former are not told.
    pub empty_total: u64,
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
}

/// A subscription.
#[derive(Debug)]
pub struct Subscription {
    prepared: Prepared,
    revision: u64,
    memory: Memory,
    told: Told,
    /// Of a sample that did not come, the part that was not told yet.
    missed_part: f64,
    /// None until the first sweep, whose moment is the first of its raster.
    schedule: Option<Schedule>,
    /// When it saw the last sweep, whether due or not.
    swept_at: Option<Duration>,
    queue: Queue,
    cpu: Meter,
    bytes: Meter,
    counts: Counts,
    quarantined: Option<String>,
}

impl Subscription {
    /// From the next sweep on.
    #[must_use]
    pub fn new(prepared: Prepared, now: Duration) -> Subscription {
        let budget = prepared.wanted.budget;
        Subscription {
            prepared,
            revision: 0,
            memory: Memory::default(),
            told: Told::default(),
            missed_part: 0.0,
            schedule: None,
            swept_at: None,
            queue: Queue::new(budget.queue_bytes as usize),
            cpu: Meter::new(f64::from(budget.cpu_ms) / 1e3, now),
            bytes: Meter::new(budget.bytes.into(), now),
            counts: Counts::default(),
            quarantined: None,
        }
    }

    /// From the next sweep on, something else is wanted. What waits stays, and numbers go on; one that was stopped goes
    /// on. What did not change keeps what it remembers.
    pub fn alter(&mut self, mut prepared: Prepared, now: Duration) {
        let (old, new) = (&self.prepared.wanted, &prepared.wanted);
        let is_stopped = self.quarantined.take().is_some();
        if let Some(schedule) = self.schedule.as_mut().filter(|_| old.rate != new.rate) {
            // As of the last sweep: from then on the other rate counts.
            schedule.set_rate(swept(new.rate), self.swept_at.unwrap_or(now));
        }
        if old.filter == new.filter {
            prepared.filter = std::mem::replace(&mut self.prepared.filter, prepared.filter);
        } else {
            self.memory.forget_values();
        }
        if old.condition == new.condition {
            prepared.condition = self.prepared.condition.take();
        }
        if old.script == new.script && !is_stopped {
            prepared.script = self.prepared.script.take();
        }
        if old.budget != new.budget || is_stopped {
            self.cpu.set(f64::from(new.budget.cpu_ms) / 1e3, now);
            self.bytes.set(new.budget.bytes.into(), now);
            self.queue.set_max_bytes(new.budget.queue_bytes as usize);
        }
        self.prepared = prepared;
        self.revision += 1;
    }

    /// What it wants.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.prepared.wanted
    }

    /// Whether it was not stopped.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.quarantined.is_none()
    }

    /// Whether a sample is due at the sweep that began at `now`; if so it is to be made of it.
    ///
    /// A sweep is due up to half a sweep early: sweeps are never exactly on time, and of two that are as near the raster
    /// the one is as good as the other.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let before = self.swept_at.replace(now);
        if self.quarantined.is_some() {
            return false;
        }
        let rate = swept(self.prepared.wanted.rate);
        let schedule = self.schedule.get_or_insert_with(|| Schedule::new(rate, now));
        let interval = before.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        let reached = now + interval.min(rate.period()) / 2;
        let is_due = schedule.wait(reached).is_zero();
        if is_due {
            schedule.begin(reached);
        }
        is_due
    }

    /// Make a sample of this sweep; gives whether something was added to what waits.
    pub fn sample(&mut self, view: &View, now: Duration) -> bool {
        self.counts.due_total += 1;
        let waiting = self.queue.next();
        if self.prepared.wanted.only_signals {
            let chosen = self.choose(view, 0..view.table.rows().len());
            self.signal(&chosen, view, now);
        } else if self.prepared.wanted.changes {
            self.sample_changes(view, now);
        } else {
            self.sample_all(view, now);
        }
        self.queue.next() > waiting
    }

    fn sample_all(&mut self, view: &View, now: Duration) {
        let sweep = view.table.sweep();
        let chosen = self.choose(view, 0..view.table.rows().len());
        self.signal(&chosen, view, now);
        let (records, left_out) = records(view, &chosen);
        match self.scripted(records, sweep.begin_ns) {
            Ok((records, figures)) if records.is_empty() && figures.is_empty() => {
                self.counts.empty_total += 1;
            }
            Ok((records, figures)) => {
                let body = Body::Sample { sweep: sweep.number, gone: None, records, left_out, figures };
                self.tell(sweep.begin_ns, body, now);
            }
            Err(error) => self.stop(error.to_string(), sweep.begin_ns),
        }
    }

    fn sample_changes(&mut self, view: &View, now: Duration) {
        let (table, sweep) = (&view.table, view.table.sweep());
        let (missed_total, revision) = (self.queue.missed_total(), self.revision);
        if self.told.must_be_whole(now, missed_total, revision) {
            let chosen = self.choose(view, 0..table.rows().len());
            self.signal(&chosen, view, now);
            let (records, left_out) = records(view, &chosen);
            self.told.tell_all(table, &chosen, now, missed_total, revision);
            if left_out > 0 {
                self.told.forget();
            }
            let body =
                Body::Sample { sweep: sweep.number, gone: None, records, left_out, figures: Vec::new() };
            self.tell(sweep.begin_ns, body, now);
            return;
        }
        // One of which nothing changed is told too: who knows only changes would not know how old what it knows is.
        let Difference { records: changed, gone } = self.difference(view, now);
        self.counts.empty_total += u64::from(changed.is_empty() && gone.is_empty());
        let (records, left_out) = records(view, &changed);
        if left_out > 0 {
            self.told.forget();
        }
        let body =
            Body::Sample { sweep: sweep.number, gone: Some(gone), records, left_out, figures: Vec::new() };
        self.tell(sweep.begin_ns, body, now);
    }

    fn difference(&mut self, view: &View, now: Duration) -> Difference {
        let table = &view.table;
        let Prepared { wanted, filter, condition, .. } = &self.prepared;
        let selection = &wanted.selection;
        let is_of_rows = selection.under.is_none() && selection.command.is_none() && filter.is_of_rows();
        let is_of_changed = is_of_rows && condition.is_none();
        if is_of_changed {
            let chosen = self.choose(view, self.told.places(table));
            return self.told.differ_from_changed(table, &chosen);
        }
        let chosen = self.choose(view, 0..table.rows().len());
        self.signal(&chosen, view, now);
        self.told.differ_from_all(table, &chosen)
    }

    /// Those at these places that are selected and pass.
    fn choose(&mut self, view: &View, places: impl Iterator<Item = usize>) -> Vec<Chosen> {
        let Prepared { wanted, filter, .. } = &self.prepared;
        let selection = &wanted.selection;
        // Looking one up takes longer than most filters.
        let is_asked = selection.command.is_some() || filter.asks_command();
        let command = |key| {
            let told = is_asked.then(|| view.lives.command(key))?;
            told.map(CompactString::as_str)
        };
        self.memory.choose(filter, &view.table, places, command, |seen| {
            selection::fits(selection, seen, &view.table)
        })
    }

    /// Unless the bytes of the budget are used up.
    fn tell(&mut self, at_ns: u64, body: Body, now: Duration) {
        if self.bytes.has_left(now) {
            self.push(at_ns, body);
        } else {
            self.queue.miss(self.revision, at_ns);
        }
    }

    /// The sample at `now` took so much CPU time; gives whether the subscription was stopped for it.
    pub fn charge(&mut self, cpu: Duration, at_ns: u64, now: Duration) -> bool {
        self.cpu.spend(cpu.as_secs_f64());
        let is_over = !self.cpu.has_left(now) && self.is_live();
        if is_over {
            let allowed = self.prepared.wanted.budget.cpu_ms;
            self.stop(
                format!(
                    "budget: expected at most {allowed} ms of CPU time a second, found more; let it choose fewer \
                     processes, lower its rate, or raise cpu_ms"
                ),
                at_ns,
            );
        }
        is_over
    }

    /// The oldest entries that wait.
    pub fn take(&mut self, limit: usize) -> Taken {
        self.queue.take(limit)
    }

    /// So many samples of the source, which makes `of` a second, did not come: those that were due to this one.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn miss(&mut self, count: u64, of: f64, at_ns: u64) {
        if !self.is_live() {
            return;
        }
        self.missed_part += count as f64 * (self.prepared.wanted.rate.hz() / of).min(1.0);
        let due = self.missed_part.floor();
        self.missed_part -= due;
        self.queue.miss_many(self.revision, at_ns, due as u64);
    }

    /// Whether something waits.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing {
            wanted: self.prepared.wanted.clone(),
            revision: self.revision,
            counts: self.counts,
            next: self.queue.next(),
            waiting: (self.queue.len(), self.queue.len_bytes()),
            missed_total: self.queue.missed_total(),
            cpu: Duration::from_secs_f64(self.cpu.total()),
            bytes_total: self.bytes.total(),
            is_true: self.prepared.condition.as_ref().map(condition::State::is_true),
            quarantined: self.quarantined.clone(),
        }
    }

    fn signal(&mut self, chosen: &[Chosen], view: &View, now: Duration) {
        let Some(condition) = &mut self.prepared.condition else { return };
        let seen = chosen.iter().filter_map(|(place, cpu)| {
            let process = view.table.rows()[*place].as_ref()?;
            Some(Seen { process, cpu: *cpu, command: None })
        });
        let value = condition.measure(seen);
        if let Some(is_true) = condition.update(value, now) {
            let body = Body::Signal { is_true, value: value.unwrap_or(f64::NAN) };
            self.push(view.table.sweep().begin_ns, body);
        }
    }

    fn scripted(&mut self, records: Vec<Record>, at_ns: u64) -> Result<Scripted, script::Error> {
        let Some(script) = &mut self.prepared.script else { return Ok((records, Vec::new())) };
        #[allow(clippy::cast_precision_loss)] // Seconds since boot.
        let (outcome, records) = script.run(records, at_ns as f64 / 1e9)?;
        Ok(match outcome {
            Outcome::Pass => (records, Vec::new()),
            Outcome::Hold => Scripted::default(),
            Outcome::Only(places) => {
                let only = places.into_iter().take(RECORDS_MAX);
                (only.filter_map(|place| records.get(place).cloned()).collect(), Vec::new())
            }
            Outcome::Figures(figures) => (Vec::new(), figures),
        })
    }

    fn push(&mut self, at_ns: u64, body: Body) {
        let len_bytes = self.queue.push(self.revision, at_ns, body);
        self.bytes.spend(u32::try_from(len_bytes).map_or(f64::MAX, f64::from));
    }

    fn stop(&mut self, reason: String, at_ns: u64) {
        self.queue.push(self.revision, at_ns, Body::Quarantined(reason.clone()));
        self.quarantined = Some(reason);
    }
}

/// Of those chosen, as many as a sample has, and how many more there are.
fn records(view: &View, chosen: &[Chosen]) -> (Vec<Record>, u32) {
    let rows = view.table.rows();
    let record = |(place, cpu): &Chosen| Some(Record { process: rows[*place].clone()?, cpu: *cpu });
    let left_out = chosen.len().saturating_sub(RECORDS_MAX);
    (
        chosen.iter().take(RECORDS_MAX).filter_map(record).collect(),
        u32::try_from(left_out).unwrap_or(u32::MAX),
    )
}

/// Records and figures.
type Scripted = (Vec<Record>, Vec<(CompactString, f64)>);

/// A channel's rate as that of sweeps.
#[must_use]
pub fn swept(rate: channel::Rate) -> Rate {
    Rate::of_processes(rate.hz()).expect("rates of channels are within those of sweeps")
}

#[cfg(test)]
mod tests;
