//! Which links to have: whom to dial, whom to let go, when to ask the seeds.
//!
//! Pure. A member wants the representative and its standbys; these want everybody; who has lost the
//! representative wants the first few candidates that can be reached, which are the same for all who can
//! reach the same. A link is let go when neither side wants it. Nothing that is known is given up: lost
//! members and seeds are dialled for ever, with waits that stay short enough for a healed split.
//! Not here: addresses' proof, name resolution, connection limits (the shell).

use super::Output;
use super::link::Dial;
use super::node::{Duty, Node};
use crate::membership::MEMBERS_MAX;
use wire::id::PeerKey;
use wire::membership::{Member, State};
use wire::time::Moment;

/// Candidates that a sensor without a representative keeps links to: as many as it had before.
const CANDIDATES: usize = 3;

/// Lost members a representative dials in one round, twice a second: 500 are gone through in a minute, and
/// one that is met brings the rest.
const DIALS_A_ROUND: usize = 4;

/// A dial of which the shell never tells the end counts as failed after so many of [`super::Config::dial`].
const DIAL_FORGOTTEN: u32 = 5;

impl Node {
    /// Whether we want a link to `peer`.
    pub(super) fn wants(&self, peer: &PeerKey, now: Moment) -> bool {
        if self.stopping {
            return false;
        }
        match (&self.duty, &self.following, self.accepted) {
            (Duty::Member, Some(following), Some(claim)) if !self.is_lost(now) => {
                following.standbys.contains(&self.me.key)
                    || claim.holder == *peer
                    || following.standbys.contains(peer)
            }
            _ => true,
        }
    }

    /// Dial who is needed, drop who is not.
    pub(super) fn reach(&mut self, now: Moment) {
        if self.stopping {
            return;
        }
        self.let_go(now);
        match &self.duty {
            Duty::Representative(_) => self.dial_missing(now),
            Duty::Member | Duty::Promoting(_) if self.is_lost(now) => self.dial_candidates(now),
            Duty::Member | Duty::Promoting(_) => {
                let holder = self.accepted.map(|claim| claim.holder);
                let standbys = self.following.as_ref().map_or(&[][..], |following| &following.standbys);
                let wanted: Vec<_> = holder.into_iter().chain(standbys.iter().copied()).collect();
                for peer in wanted {
                    self.dial(peer, now);
                }
            }
        }
        self.dial_pointed(now);
        self.dial_seeds(now);
    }

    /// A dial failed.
    pub(super) fn dial_failed(&mut self, peer: PeerKey, now: Moment) {
        let Some(dial) = self.dials.get_mut(&peer) else { return };
        let wait = self.config.redial * (1 << dial.tries.min(6));
        dial.tries = dial.tries.saturating_add(1);
        dial.started = None;
        dial.next = now.plus(self.dice.jittered(wait.min(self.config.redial_max), 20));
        if self.pointed.as_ref().is_some_and(|member| member.key == peer) {
            self.pointed = None;
        }
    }

    /// Whether `peer` was dialled without success, or is being for too long.
    pub(super) fn is_failing(&self, peer: &PeerKey, now: Moment) -> bool {
        let slow = |since: Moment| now.since(since) >= self.config.dial;
        self.dials.get(peer).is_some_and(|dial| dial.tries > 0 || dial.started.is_some_and(slow))
    }

    fn dial(&mut self, peer: PeerKey, now: Moment) {
        if peer == self.me.key || self.links.contains_key(&peer) {
            return;
        }
        if self.dials.len() >= MEMBERS_MAX {
            self.dials.retain(|_, dial| dial.started.is_some());
        }
        let forgotten = self.config.dial * DIAL_FORGOTTEN;
        let dial = self.dials.entry(peer).or_insert(Dial { tries: 0, started: None, next: now });
        let under_way = dial.started.is_some_and(|since| now.since(since) < forgotten);
        if under_way || now < dial.next {
            return;
        }
        dial.started = Some(now);
        let pointed = self.pointed.as_ref().filter(|member| member.key == peer);
        let held = || self.table.get(&peer).map(|row| row.member.addresses.clone());
        let addresses = pointed.map(|member| member.addresses.clone()).or_else(held).unwrap_or_default();
        self.figures.dials_total += 1;
        self.output(Output::Connect(peer, addresses));
    }

    fn dial_pointed(&mut self, now: Moment) {
        if let Some(key) = self.pointed.as_ref().map(|member| member.key) {
            if self.links.contains_key(&key) {
                self.pointed = None;
            } else {
                self.dial(key, now);
            }
        }
    }

    /// A representative dials members it does not hear, in turn.
    fn dial_missing(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        if !self.config.mechanisms.redial {
            return;
        }
        let cursor = rule.cursor;
        let missing = |member: &Member| {
            let due =
                self.dials.get(&member.key).is_none_or(|dial| dial.started.is_none() && now >= dial.next);
            due && member.state != State::Left
                && member.key != self.me.key
                && !self.links.contains_key(&member.key)
        };
        let all: Vec<_> =
            self.table.rows().filter(|row| missing(&row.member)).map(|row| row.member.key).collect();
        let after = all.iter().position(|key| *key > cursor).unwrap_or(0);
        let turn: Vec<_> = all[after..].iter().chain(&all[..after]).take(DIALS_A_ROUND).copied().collect();
        if let (Duty::Representative(rule), Some(last)) = (&mut self.duty, turn.last()) {
            rule.cursor = *last;
        }
        for peer in turn {
            self.dial(peer, now);
        }
    }

    /// Without a representative: the old one, and the first candidates that can be reached.
    fn dial_candidates(&mut self, now: Moment) {
        if let Some(holder) = self.accepted.map(|claim| claim.holder) {
            self.dial(holder, now);
        }
        let candidate = |member: &Member| {
            member.may_represent && member.key != self.me.key && member.state != State::Left
        };
        let mut candidates: Vec<_> = self
            .table
            .rows()
            .filter(|row| candidate(&row.member))
            .map(|row| ((row.member.state == State::Dead, row.rank), row.member.key))
            .collect();
        candidates.sort();
        let mut wanted = 0;
        for (_, key) in candidates {
            if wanted == CANDIDATES {
                return;
            }
            // One that fails is tried again all the same, but is not waited for.
            if !self.is_failing(&key, now) {
                wanted += 1;
            }
            self.dial(key, now);
        }
    }

    fn dial_seeds(&mut self, now: Moment) {
        let interval = match &self.duty {
            Duty::Representative(rule) if rule.partial || self.table.len() <= 1 => self.config.seeds,
            Duty::Representative(_) => self.config.seeds_idle,
            Duty::Member | Duty::Promoting(_) if self.is_lost(now) => self.config.seeds,
            Duty::Member | Duty::Promoting(_) => return,
        };
        let first = self.next_seeds == self.started;
        if !self.config.has_seeds || !(self.config.mechanisms.redial || first) {
            return;
        }
        if self.next_seeds > now.plus(interval * 2) {
            self.next_seeds = now.plus(interval);
        }
        if now >= self.next_seeds {
            self.next_seeds = now.plus(self.dice.jittered(interval, 20));
            self.output(Output::DialSeeds);
        }
    }

    /// Close links that neither side has wanted for a while.
    fn let_go(&mut self, now: Moment) {
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            let wanted = self.wants(&peer, now);
            let linger = self.config.linger;
            let Some(link) = self.links.get_mut(&peer) else { continue };
            if (wanted && !link.left) || link.wants {
                link.unwanted = None;
                continue;
            }
            let since = *link.unwanted.get_or_insert(now);
            if now.since(since) >= linger {
                // Said once more only if the shell does not follow.
                link.unwanted = Some(now);
                self.output(Output::Disconnect(peer));
            }
        }
    }
}
