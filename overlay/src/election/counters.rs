//! Counters of election and membership, as `daemon.info` shows them.
//!
//! Pure. Totals only grow while the process runs; the other figures are current values.

use crate::membership::Count;
use std::time::Duration;
use wire::membership::Term;

/// Figures of one sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Changes of representative that this sensor followed: the flap counter.
    pub changes_total: u64,
    /// Times it became representative.
    pub promotions_total: u64,
    /// Times it lost the role to another sensor.
    pub yields_total: u64,
    /// Times it raised its own term above one that no sensor holds any more.
    pub raises_total: u64,
    /// Times it asked for confirmation after its process had been suspended.
    pub rechecks_total: u64,
    /// Times it suspected a representative.
    pub suspicions_total: u64,
    /// Suspicions that ended because the representative was heard again.
    pub refuted_total: u64,
    /// Questions sent.
    pub questions_total: u64,
    /// Heartbeats sent.
    pub heartbeats_sent_total: u64,
    /// Heartbeats received.
    pub heartbeats_heard_total: u64,
    /// Heartbeats lost before one that arrived.
    pub heartbeats_missed_total: u64,
    /// Heartbeats that were in transit for too long to be used.
    pub heartbeats_late_total: u64,
    /// Dials requested.
    pub dials_total: u64,
    /// Times the whole table was requested because the copy differed.
    pub resyncs_total: u64,
    /// Messages and links refused: no link, no permission, out of bounds, buffer full.
    pub refused_total: u64,
    /// The highest term it obeyed or used.
    pub term: Term,
    /// Factor of its timers, in per cent.
    pub stretch_percent: u32,
    /// Share of heartbeats lost recently, in thousandths.
    pub loss_permille: u32,
    /// Lag of its event loop; fades with time.
    pub lag: Duration,
    /// Links that are up.
    pub links: usize,
    /// Members by state.
    pub members: Count,
    /// Members refused because the table was full.
    pub members_refused_total: u64,
}

impl Figures {
    /// Every figure with its name in `daemon.info`.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let millis = u64::try_from(self.lag.as_millis()).unwrap_or(u64::MAX);
        vec![
            ("changes_total", self.changes_total),
            ("promotions_total", self.promotions_total),
            ("yields_total", self.yields_total),
            ("raises_total", self.raises_total),
            ("rechecks_total", self.rechecks_total),
            ("suspicions_total", self.suspicions_total),
            ("refuted_total", self.refuted_total),
            ("questions_total", self.questions_total),
            ("heartbeats_sent_total", self.heartbeats_sent_total),
            ("heartbeats_heard_total", self.heartbeats_heard_total),
            ("heartbeats_missed_total", self.heartbeats_missed_total),
            ("heartbeats_late_total", self.heartbeats_late_total),
            ("dials_total", self.dials_total),
            ("resyncs_total", self.resyncs_total),
            ("refused_total", self.refused_total),
            ("term", self.term.0),
            ("stretch_percent", self.stretch_percent.into()),
            ("loss_permille", self.loss_permille.into()),
            ("lag_ms", millis),
            ("links", self.links as u64),
            ("members_refused_total", self.members_refused_total),
        ]
    }
}

/// An event that is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    Change,
    Promotion,
    Yield,
    Raise,
    Recheck,
    Suspicion,
    Refutation,
    Question,
    HeartbeatSent,
    HeartbeatReceived,
    HeartbeatMissed,
    HeartbeatLate,
    Dial,
    Resync,
    Refusal,
}

/// Totals since the start of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters(Figures);

impl Counters {
    /// Count one event; returns the new total.
    pub(super) fn count(&mut self, counter: Counter) -> u64 {
        self.add(counter, 1)
    }

    pub(super) fn add(&mut self, counter: Counter, events: u64) -> u64 {
        let totals = &mut self.0;
        let total = match counter {
            Counter::Change => &mut totals.changes_total,
            Counter::Promotion => &mut totals.promotions_total,
            Counter::Yield => &mut totals.yields_total,
            Counter::Raise => &mut totals.raises_total,
            Counter::Recheck => &mut totals.rechecks_total,
            Counter::Suspicion => &mut totals.suspicions_total,
            Counter::Refutation => &mut totals.refuted_total,
            Counter::Question => &mut totals.questions_total,
            Counter::HeartbeatSent => &mut totals.heartbeats_sent_total,
            Counter::HeartbeatReceived => &mut totals.heartbeats_heard_total,
            Counter::HeartbeatMissed => &mut totals.heartbeats_missed_total,
            Counter::HeartbeatLate => &mut totals.heartbeats_late_total,
            Counter::Dial => &mut totals.dials_total,
            Counter::Resync => &mut totals.resyncs_total,
            Counter::Refusal => &mut totals.refused_total,
        };
        *total += events;
        *total
    }

    /// The totals; the current values are those of `Default`.
    pub(super) fn totals(&self) -> Figures {
        self.0
    }
}
