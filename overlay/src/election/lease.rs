//! Lease of a representative: for how long it may serve without an input, and the recheck after a longer gap.
//!
//! Pure. Others suspect a representative after the suspicion, stretched by what it last reported of its own
//! slowness; for most of that time it may serve without having run. After a longer gap (the process was
//! suspended, the host slept) it asks all its links, and serves again only when more than half of them
//! confirm that they still obey it: a candidate needs half of them on its side, so the two cannot both be
//! right.
//! Not here: yielding to a higher claim (`node::claims`).

use super::Config;
use std::time::Duration;
use wire::time::Moment;

/// A representative that asks whether it still is one.
#[derive(Clone, Copy, Debug)]
struct Recheck {
    /// Since when the process runs without a gap.
    since: Moment,
    /// The first question of this recheck: answers to earlier ones do not count.
    first_question: u64,
    /// Whether it covered only itself when the recheck started.
    was_alone: bool,
}

/// Where a recheck stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Pending,
    Confirmed,
    Lost,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The stretch in per cent that was sent with the last two rounds of heartbeats, the newest first.
    sent_stretch: [u32; 2],
    recheck: Option<Recheck>,
}

impl Lease {
    pub(super) fn new(stretch_percent: u32) -> Lease {
        Lease { sent_stretch: [sent(stretch_percent); 2], recheck: None }
    }

    /// A round of heartbeats is sent with this stretch.
    pub(super) fn note_stretch(&mut self, stretch_percent: u32) {
        self.sent_stretch = [sent(stretch_percent), self.sent_stretch[0]];
    }

    /// How long the representative may serve after an input.
    pub(super) fn duration(&self, config: &Config) -> Duration {
        let stretch = self.sent_stretch[0].min(self.sent_stretch[1]);
        config.suspicion * stretch / 100 * config.lease_percent / 100
    }

    /// Whether a recheck is in progress: the representative does not serve.
    pub(super) fn is_suspended(&self) -> bool {
        self.recheck.is_some()
    }

    /// Whether a gap of this length between two inputs requires a recheck, or another round of it.
    pub(super) fn is_broken_by(&self, gap: Duration, config: &Config) -> bool {
        gap > self.duration(config) || (self.is_suspended() && gap >= config.lag_unit)
    }

    /// Ask with question `number`; starts a recheck unless one is in progress.
    pub(super) fn ask(&mut self, number: u64, is_alone: bool, now: Moment) {
        let recheck = Recheck { since: now, first_question: number, was_alone: is_alone };
        self.recheck = Some(match self.recheck {
            Some(earlier) => Recheck { since: now, ..earlier },
            None => recheck,
        });
    }

    /// Whether an answer to question `number` counts, and not one that came while the process was suspended.
    pub(super) fn counts(&self, number: u64) -> bool {
        self.recheck.is_some_and(|recheck| number >= recheck.first_question)
    }

    /// The outcome of the recheck when so many of the peers that are heard confirmed. `is_alone`: no link and
    /// no other member is left.
    pub(super) fn outcome(
        &self,
        (confirmed, heard): (usize, usize),
        is_alone: bool,
        config: &Config,
        now: Moment,
    ) -> Outcome {
        let Some(Recheck { since, was_alone, .. }) = self.recheck else { return Outcome::Pending };
        let is_over = now.since(since) >= config.recheck;
        // One that covered only itself has no peer to ask. For one that lost its links meanwhile no peer is
        // left to confirm that it still is the representative.
        if 2 * confirmed > heard || (was_alone && (is_over || is_alone)) {
            Outcome::Confirmed
        } else if is_over {
            Outcome::Lost
        } else {
            Outcome::Pending
        }
    }

    /// Serve again.
    pub(super) fn resume(&mut self) {
        self.recheck = None;
    }
}

/// The stretch as a heartbeat carries it: whole times, rounded up.
fn sent(stretch_percent: u32) -> u32 {
    stretch_percent.div_ceil(100) * 100
}
