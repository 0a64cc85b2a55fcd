//! Account of a subscription, the same for every kind: its request, its schedule, its queue, and what it has
//! used.
//!
//! Pure: callers pass `now`. Invariants: entries are numbered in order; altering a subscription changes no
//! number and loses nothing that waits in the queue; a stopped subscription has no due samples until it is
//! altered.
//! Not here: what the entries contain (`process_evaluation`, `host_evaluation`, `event_evaluation`).

use super::meter::Meter;
use super::outcome::Outcome;
use super::queue::{ENTRIES_MAX, EntryBatch, Queue};
use crate::process::visibility::Visibility;
use crate::sample::schedule::{Rate, Schedule};
use std::sync::Arc;
use std::time::Duration;
use wire::channel::stream::Body;
use wire::channel::{self, ChannelRequest};

/// Counters since the subscription was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub due_total: u64,
    /// Due samples in which no record passed the filter or changed. Samples where no record passed are not
    /// sent; a `changes` subscription does send its unchanged samples.
    pub empty_total: u64,
}

/// Account of a subscription.
#[derive(Debug)]
pub struct Account {
    pub wanted: Arc<ChannelRequest>,
    /// How often it was altered.
    pub revision: u64,
    pub counts: Counts,
    /// Entries that wait to be taken.
    pub queue: Queue,
    /// CPU time that its evaluation used.
    pub cpu: Meter,
    /// Bytes that were queued for it.
    pub bytes: Meter,
    /// Why it was stopped, if it is.
    pub quarantined: Option<String>,
    /// Samples left out because all subscriptions together, or those of one owner, used too much CPU time.
    pub throttled_total: u64,
    /// Fraction of a sample that is missed but not yet counted as one.
    missed_part: f64,
    /// Sampling schedule; `None` until the first sweep, which starts it.
    schedule: Option<Schedule>,
    /// Start of the last sweep that it saw, whether a sample was due or not.
    swept_at: Option<Duration>,
}

impl Account {
    /// Creates an account whose first sample is due at the next sweep.
    #[must_use]
    pub fn new(wanted: ChannelRequest, now: Duration) -> Account {
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

    /// Changes the request from the next sweep on. A stopped subscription continues.
    pub fn alter(&mut self, new: ChannelRequest, now: Duration) {
        let is_stopped = self.quarantined.take().is_some();
        if let Some(schedule) = self.schedule.as_mut().filter(|_| self.wanted.rate != new.rate) {
            // The new rate counts from the last sweep.
            schedule.set_rate(sweep_rate(new.rate), self.swept_at.unwrap_or(now));
        }
        if self.wanted.budget != new.budget || is_stopped {
            self.cpu.set(f64::from(new.budget.cpu_ms) / 1e3, now);
            self.bytes.set(new.budget.bytes.into(), now);
            self.queue.set_max_bytes(new.budget.queue_bytes as usize);
        }
        self.wanted = Arc::new(new);
        self.revision += 1;
    }

    /// Restarts the schedule: the next sweep comes from another source.
    pub fn restart(&mut self) {
        self.schedule = None;
        self.swept_at = None;
    }

    /// Whether it is not stopped.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.quarantined.is_none()
    }

    /// Whether a sample is due at the sweep that started at `now`. If so, the caller must make it.
    ///
    /// A sweep counts up to half an interval early: sweeps are never exactly on time, and of two sweeps
    /// equally near to the schedule either will do.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let before = self.swept_at.replace(now);
        if self.quarantined.is_some() {
            return false;
        }
        let rate = sweep_rate(self.wanted.rate);
        let schedule = self.schedule.get_or_insert_with(|| Schedule::new(rate, now));
        let interval = before.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        let reached = now + interval.min(rate.period()) / 2;
        let is_due = schedule.wait(reached).is_zero();
        if is_due {
            schedule.begin(reached);
        }
        is_due
    }

    /// Whether there is ample room for more entries: less than half of the queue is in use, and bytes are
    /// left.
    pub fn has_room(&mut self, now: Duration) -> bool {
        let queue_bytes = self.wanted.budget.queue_bytes as usize;
        self.is_live()
            && self.queue.len_bytes() < queue_bytes / 2
            && self.queue.len() < ENTRIES_MAX / 2
            && self.bytes.has_left(now)
    }

    /// Starts an outcome from the current state, for an evaluation that may see what `visibility` allows.
    #[must_use]
    pub fn evaluate(&self, visibility: Visibility) -> Outcome {
        Outcome {
            wanted: Arc::clone(&self.wanted),
            revision: self.revision,
            missed_total: self.queue.missed_total(),
            is_live: self.is_live(),
            visibility,
            is_due: false,
            empty: 0,
            entries: Vec::new(),
            stopped: None,
        }
    }

    /// Adds the result of an evaluation. If the subscription was altered meanwhile, its entries carry the old
    /// revision.
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

    /// Leaves out the sample that is due, because all subscriptions, or those of this owner, used too much.
    pub fn throttle(&mut self, at_ns: u64) {
        self.counts.due_total += 1;
        self.throttled_total += 1;
        self.queue.miss(self.revision, at_ns);
    }

    /// Charges the CPU time of the sample at `now`; returns whether that stopped the subscription.
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

    /// Stops the subscription for this reason.
    pub fn stop(&mut self, reason: String, at_ns: u64) {
        self.queue.push(self.revision, at_ns, Body::Quarantined(reason.clone()));
        self.quarantined = Some(reason);
    }

    /// Counts `count` entries as missed, all of them: they are no longer available.
    pub fn miss_all(&mut self, count: u64, at_ns: u64) {
        if self.is_live() {
            self.queue.miss_many(self.revision, at_ns, count);
        }
    }

    /// Counts the samples missed because `count` samples of a source that makes `of` samples per second were
    /// lost: only those that were due to this subscription.
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

    pub fn take(&mut self, limit: usize) -> EntryBatch {
        self.queue.take(limit)
    }
}

/// Converts the rate of a channel to a rate of sweeps.
#[must_use]
pub fn sweep_rate(rate: channel::Rate) -> Rate {
    Rate::of_processes(rate.hz()).expect("rates of channels are within those of sweeps")
}
