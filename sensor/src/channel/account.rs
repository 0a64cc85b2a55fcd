//! What every subscription has, whatever it is of: what it wants, when it is due, what waits for it and what it has used.
//!
//! Pure: callers pass `now`. Invariants: every entry gets a number, in order; altering it changes no number and loses nothing that
//! waits; once it is stopped nothing is due to it until it is altered.
//! Not here: what is told (`of_processes`, `of_host`, `of_happenings`).

use super::meter::Meter;
use super::outcome::Outcome;
use super::queue::{ENTRIES_MAX, Queue, Taken};
use crate::process::sight::Sight;
use crate::sample::schedule::{Rate, Schedule};
use std::sync::Arc;
use std::time::Duration;
use wire::channel::stream::Body;
use wire::channel::{self, Wanted};

/// What happened since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that were due.
    pub due_total: u64,
    /// Of them, those of which nothing passed or changed: the former are not told.
    pub empty_total: u64,
}

/// The books of a subscription.
#[derive(Debug)]
pub struct Account {
    /// What it wants.
    pub wanted: Arc<Wanted>,
    /// How often it was altered.
    pub revision: u64,
    /// What happened.
    pub counts: Counts,
    /// What waits.
    pub queue: Queue,
    /// CPU time it used.
    pub cpu: Meter,
    /// Bytes it was told.
    pub bytes: Meter,
    /// Why it was stopped, if it is.
    pub quarantined: Option<String>,
    /// Samples that were left out because all subscriptions together, or those of one user, use too much.
    pub throttled_total: u64,
    /// Of a sample that did not come, the part that was not told yet.
    missed_part: f64,
    /// None until the first sweep, whose moment is the first of its raster.
    schedule: Option<Schedule>,
    /// When it saw the last sweep, whether due or not.
    swept_at: Option<Duration>,
}

impl Account {
    /// From the next sweep on.
    #[must_use]
    pub fn new(wanted: Wanted, now: Duration) -> Account {
        let budget = wanted.budget;
        Account {
            wanted: Arc::new(wanted),
            revision: 0,
            counts: Counts::default(),
            queue: Queue::new(budget.queue_bytes as usize),
            cpu: Meter::new(f64::from(budget.cpu_ms) / 1e3, now),
            bytes: Meter::new(budget.bytes.into(), now),
            quarantined: None,
            throttled_total: 0,
            missed_part: 0.0,
            schedule: None,
            swept_at: None,
        }
    }

    /// From the next sweep on, something else is wanted; one that was stopped goes on.
    pub fn alter(&mut self, new: Wanted, now: Duration) {
        let is_stopped = self.quarantined.take().is_some();
        if let Some(schedule) = self.schedule.as_mut().filter(|_| self.wanted.rate != new.rate) {
            // As of the last sweep: from then on the other rate counts.
            schedule.set_rate(swept(new.rate), self.swept_at.unwrap_or(now));
        }
        if self.wanted.budget != new.budget || is_stopped {
            self.cpu.set(f64::from(new.budget.cpu_ms) / 1e3, now);
            self.bytes.set(new.budget.bytes.into(), now);
            self.queue.set_max_bytes(new.budget.queue_bytes as usize);
        }
        self.wanted = Arc::new(new);
        self.revision += 1;
    }

    /// The next sweep is the first of another source.
    pub fn begin_anew(&mut self) {
        self.schedule = None;
        self.swept_at = None;
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
        let rate = swept(self.wanted.rate);
        let schedule = self.schedule.get_or_insert_with(|| Schedule::new(rate, now));
        let interval = before.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        let reached = now + interval.min(rate.period()) / 2;
        let is_due = schedule.wait(reached).is_zero();
        if is_due {
            schedule.begin(reached);
        }
        is_due
    }

    /// Whether more can be told without leaving anything out, with room to spare.
    pub fn has_room(&mut self, now: Duration) -> bool {
        let queue_bytes = self.wanted.budget.queue_bytes as usize;
        self.is_live()
            && self.queue.len_bytes() < queue_bytes / 2
            && self.queue.len() < ENTRIES_MAX / 2
            && self.bytes.has_left(now)
    }

    /// How it stands before an evaluation, of what may be seen by `sight`.
    #[must_use]
    pub fn evaluate(&self, sight: Sight) -> Outcome {
        Outcome {
            wanted: Arc::clone(&self.wanted),
            revision: self.revision,
            missed_total: self.queue.missed_total(),
            is_live: self.is_live(),
            sight,
            is_due: false,
            empty: 0,
            entries: Vec::new(),
            stopped: None,
        }
    }

    /// What came of an evaluation. If the subscription was altered meanwhile, the entries are those of before.
    pub fn add(&mut self, outcome: Outcome, now: Duration) {
        let Outcome { revision, is_due, empty, entries, stopped, .. } = outcome;
        self.counts.due_total += u64::from(is_due);
        self.counts.empty_total += empty;
        for entry in entries {
            if entry.is_budgeted && !self.bytes.has_left(now) {
                self.queue.miss(revision, entry.at_ns);
                continue;
            }
            let len_bytes = self.queue.push(revision, entry.at_ns, entry.body);
            self.bytes.spend(u32::try_from(len_bytes).map_or(f64::MAX, f64::from));
        }
        if let Some((reason, at_ns)) = stopped.filter(|_| revision == self.revision) {
            self.stop(reason, at_ns);
        }
    }

    /// The sample of this moment, which is due, is left out: others, or this user's, have used too much.
    pub fn throttle(&mut self, at_ns: u64) {
        self.counts.due_total += 1;
        self.throttled_total += 1;
        self.queue.miss(self.revision, at_ns);
    }

    /// The sample at `now` took so much CPU time; gives whether the subscription was stopped for it.
    pub fn charge(&mut self, cpu: Duration, at_ns: u64, now: Duration) -> bool {
        self.cpu.spend(cpu.as_secs_f64());
        let is_over = !self.cpu.has_left(now) && self.is_live();
        if is_over {
            let allowed = self.wanted.budget.cpu_ms;
            self.stop(
                format!(
                    "budget: expected at most {allowed} ms of CPU time a second, found more; let it choose fewer \
                     records, lower its rate, or raise cpu_ms"
                ),
                at_ns,
            );
        }
        is_over
    }

    /// Nothing is told any more, for this reason.
    pub fn stop(&mut self, reason: String, at_ns: u64) {
        self.queue.push(self.revision, at_ns, Body::Quarantined(reason.clone()));
        self.quarantined = Some(reason);
    }

    /// So many entries that would have come here are not to be had any more.
    pub fn miss_all(&mut self, count: u64, at_ns: u64) {
        if self.is_live() {
            self.queue.miss_many(self.revision, at_ns, count);
        }
    }

    /// So many samples of the source, which makes `of` a second, did not come: those that were due to this one.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn miss(&mut self, count: u64, of: f64, at_ns: u64) {
        if !self.is_live() {
            return;
        }
        self.missed_part += count as f64 * (self.wanted.rate.hz() / of).min(1.0);
        let due = self.missed_part.floor();
        self.missed_part -= due;
        self.queue.miss_many(self.revision, at_ns, due as u64);
    }

    /// The oldest entries that wait.
    pub fn take(&mut self, limit: usize) -> Taken {
        self.queue.take(limit)
    }
}

/// A channel's rate as that of sweeps.
#[must_use]
pub fn swept(rate: channel::Rate) -> Rate {
    Rate::of_processes(rate.hz()).expect("rates of channels are within those of sweeps")
}
