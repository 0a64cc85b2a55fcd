//! What election and membership tell of themselves, for `daemon.info`.
//!
//! Pure. Totals only grow while a sensor lives; the others are as of now.

use crate::membership::Count;
use std::time::Duration;
use wire::membership::Term;

/// Figures of one sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Changes of representative this sensor followed: the flap counter.
    pub changes_total: u64,
    /// Times it became representative.
    pub promotions_total: u64,
    /// Times it lost the role to another.
    pub yields_total: u64,
    /// Times it raised its own term above one that no one holds any more.
    pub raises_total: u64,
    /// Times it asked for confirmation after standing still.
    pub rechecks_total: u64,
    /// Times it suspected a representative.
    pub suspicions_total: u64,
    /// Suspicions that ended by hearing it again.
    pub refuted_total: u64,
    /// Questions it sent.
    pub questions_total: u64,
    /// Heartbeats it sent.
    pub heartbeats_sent_total: u64,
    /// Heartbeats it heard.
    pub heartbeats_heard_total: u64,
    /// Heartbeats that should have come before one that came.
    pub heartbeats_missed_total: u64,
    /// Heartbeats that were too long under way to be believed.
    pub heartbeats_late_total: u64,
    /// Dials it asked for.
    pub dials_total: u64,
    /// Copies of the table that were asked for whole.
    pub resyncs_total: u64,
    /// Messages refused: no link, no right, out of bounds.
    pub refused_total: u64,
    /// The highest term it obeyed or used.
    pub term: Term,
    /// By how many per cent its timers are multiplied.
    pub stretch_percent: u32,
    /// Share of heartbeats lost lately, in thousandths.
    pub loss_permille: u32,
    /// Its event loop's lag, fading.
    pub lag: Duration,
    /// Its links.
    pub links: usize,
    /// The members it knows.
    pub members: Count,
    /// Members that found no place in the table.
    pub members_refused_total: u64,
}

impl Figures {
    /// Each by the name under which `daemon.info` tells it.
    #[must_use]
    pub fn told(&self) -> Vec<(&'static str, u64)> {
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
