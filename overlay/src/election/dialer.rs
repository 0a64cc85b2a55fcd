//! Dials: which peers are dialled and when again, the hinted leader, the seeds.
//!
//! Pure. Nothing that is known is abandoned: lost members and seeds are dialled for ever, at intervals that
//! stay short enough for a healed partition.
//! Not here: which peers are needed (`node::connections`), name resolution and sockets (the shell).

use super::Config;
use crate::dice::Dice;
use crate::membership::MEMBERS_MAX;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::backoff::Backoff;
use wire::id::PeerKey;
use wire::membership::Member;
use wire::time::Moment;

/// Lost members a representative dials in one round, twice a second: 500 are tried within a minute, and one
/// that is found brings the rest.
const DIALS_PER_ROUND: usize = 4;

/// A dial whose end the shell never reports counts as failed after so many of [`Config::dial`].
const DIAL_EXPIRY: u32 = 5;

/// A peer that is or was dialled and is not connected.
#[derive(Clone, Copy, Debug)]
struct Dial {
    /// Failures in a row.
    failures: u32,
    /// Since when a dial is in progress.
    started: Option<Moment>,
    /// Earliest moment of the next one.
    next: Moment,
}

#[derive(Clone, Debug)]
pub(super) struct Dialer {
    dials: BTreeMap<PeerKey, Dial>,
    /// Where a representative is, by a redirect, an answer or a resignation.
    hinted_leader: Option<Member>,
    /// When the seeds are dialled next; `None` before the first time.
    next_seeds: Option<Moment>,
    /// The lost member that was dialled last.
    cursor: PeerKey,
}

impl Dialer {
    pub(super) fn new(me: PeerKey) -> Dialer {
        Dialer { dials: BTreeMap::new(), hinted_leader: None, next_seeds: None, cursor: me }
    }

    /// A link to `peer` is up.
    pub(super) fn connected(&mut self, peer: &PeerKey) {
        self.dials.remove(peer);
    }

    /// A dial failed: the next one waits, doubling.
    pub(super) fn failed(&mut self, peer: PeerKey, config: &Config, dice: &mut Dice, now: Moment) {
        let Some(dial) = self.dials.get_mut(&peer) else { return };
        let wait = Backoff::new(config.redial, config.redial_max).pause(dial.failures);
        dial.failures = dial.failures.saturating_add(1);
        dial.started = None;
        dial.next = now.plus(dice.jittered(wait, 20));
        if self.hinted_leader.as_ref().is_some_and(|member| member.key == peer) {
            self.hinted_leader = None;
        }
    }

    /// Whether the last dial of `peer` failed.
    pub(super) fn has_failed(&self, peer: &PeerKey) -> bool {
        self.dials.get(peer).is_some_and(|dial| dial.failures > 0)
    }

    /// Whether the last dial of `peer` failed, or takes too long.
    pub(super) fn is_failing(&self, peer: &PeerKey, config: &Config, now: Moment) -> bool {
        let is_slow = |since: Moment| now.since(since) >= config.dial;
        self.dials.get(peer).is_some_and(|dial| dial.failures > 0 || dial.started.is_some_and(is_slow))
    }

    /// Whether `peer` may be dialled now.
    pub(super) fn is_due(&self, peer: &PeerKey, now: Moment) -> bool {
        self.dials.get(peer).is_none_or(|dial| dial.started.is_none() && now >= dial.next)
    }

    /// Start a dial; returns false if one is in progress or it is too early.
    pub(super) fn start(&mut self, peer: PeerKey, config: &Config, now: Moment) -> bool {
        if self.dials.len() >= MEMBERS_MAX {
            self.dials.retain(|_, dial| dial.started.is_some());
        }
        let expiry = config.dial * DIAL_EXPIRY;
        let dial = self.dials.entry(peer).or_insert(Dial { failures: 0, started: None, next: now });
        let in_progress = dial.started.is_some_and(|since| now.since(since) < expiry);
        let starts = !in_progress && now >= dial.next;
        if starts {
            dial.started = Some(now);
        }
        starts
    }

    pub(super) fn hinted_leader(&self) -> Option<&Member> {
        self.hinted_leader.as_ref()
    }

    pub(super) fn set_hinted_leader(&mut self, hint: Option<Member>) {
        self.hinted_leader = hint;
    }

    /// A representative starts to dial the members that it lost.
    pub(super) fn reset_round(&mut self, me: PeerKey) {
        self.cursor = me;
    }

    /// The next of the `lost` members to dial; they are sorted by key.
    pub(super) fn next_round(&mut self, lost: &[PeerKey]) -> Vec<PeerKey> {
        let after = lost.iter().position(|key| *key > self.cursor).unwrap_or(0);
        let round = lost[after..].iter().chain(&lost[..after]).take(DIALS_PER_ROUND).copied();
        let round: Vec<_> = round.collect();
        if let Some(last) = round.last() {
            self.cursor = *last;
        }
        round
    }

    /// Whether the seeds are to be dialled now; `interval` is the time between two dials.
    pub(super) fn start_seeds(
        &mut self,
        interval: Duration,
        config: &Config,
        dice: &mut Dice,
        now: Moment,
    ) -> bool {
        if !config.has_seeds || !(config.mechanisms.redial || self.next_seeds.is_none()) {
            return false;
        }
        // The interval may have become shorter.
        if self.next_seeds.is_some_and(|next| next > now.plus(interval * 2)) {
            self.next_seeds = Some(now.plus(interval));
        }
        let is_due = self.next_seeds.is_none_or(|next| now >= next);
        if is_due {
            self.next_seeds = Some(now.plus(dice.jittered(interval, 20)));
        }
        is_due
    }
}
