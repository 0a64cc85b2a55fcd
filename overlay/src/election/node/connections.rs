//! Which links to have: the peers to dial, the links to close, when to dial the seeds.
//!
//! Pure. A member needs the leader and its standbys; these need every member; a sensor that lost its leader
//! needs the first few candidates that can be reached, which are the same for all that can reach the same. A
//! link is closed when neither side needs it.
//! Not here: intervals between dials (`dialer`), proof of addresses, name resolution, connection limits (the
//! shell).

use super::Node;
use crate::election::Output;
use crate::election::counters::Counter;
use crate::election::leader::Leader;
use crate::election::leadership::Stage;
use wire::id::PeerKey;
use wire::membership::{Member, State};
use wire::time::Moment;

/// Candidates that a sensor without a leader keeps links to: as many as it had before.
const CANDIDATES: usize = 3;

impl Node {
    /// Whether this sensor needs a link to `peer`.
    pub(super) fn needs_link(&self, peer: &PeerKey, now: Moment) -> bool {
        if self.local.is_stopping() {
            return false;
        }
        match (&self.stage, &self.leader) {
            (Stage::Member, Some(leader)) if !self.is_lost(now) => {
                leader.standbys().contains(&self.local.key())
                    || self.terms.holder() == Some(*peer)
                    || leader.standbys().contains(peer)
            }
            _ => true,
        }
    }

    /// Dial the peers that are needed, close the links that are not.
    pub(super) fn maintain_links(&mut self, now: Moment) {
        if self.local.is_stopping() {
            return;
        }
        self.close_unneeded(now);
        if self.stage.represents() {
            self.dial_lost_members(now);
        } else if self.is_lost(now) {
            self.dial_candidates(now);
        } else {
            let standbys = self.leader.as_ref().map_or(&[][..], Leader::standbys);
            let needed: Vec<_> = self.terms.holder().into_iter().chain(standbys.iter().copied()).collect();
            for peer in needed {
                self.dial(peer, now);
            }
        }
        self.dial_hinted_leader(now);
        self.dial_seeds(now);
    }

    fn dial(&mut self, peer: PeerKey, now: Moment) {
        let is_dialled = peer == self.local.key() || self.links.contains(&peer);
        if is_dialled || !self.dialer.start(peer, &self.config, now) {
            return;
        }
        let hint = self.dialer.hinted_leader().filter(|member| member.key == peer);
        let member = hint.or_else(|| self.roster.member(&peer));
        let addresses = member.map(|member| member.addresses.clone()).unwrap_or_default();
        self.counters.count(Counter::Dial);
        self.outbox.push(Output::Connect(peer, addresses));
    }

    fn dial_hinted_leader(&mut self, now: Moment) {
        let Some(hint) = self.dialer.hinted_leader().map(|member| member.key) else { return };
        if self.links.contains(&hint) {
            self.dialer.set_hinted_leader(None);
        } else {
            self.dial(hint, now);
        }
    }

    /// A representative dials members that have no link, some in each round.
    fn dial_lost_members(&mut self, now: Moment) {
        if !self.config.mechanisms.redial {
            return;
        }
        let is_lost = |member: &&Member| {
            self.dialer.is_due(&member.key, now)
                && member.state != State::Left
                && member.key != self.local.key()
                && !self.links.contains(&member.key)
        };
        let lost: Vec<_> = self.roster.members().filter(is_lost).map(|member| member.key).collect();
        for peer in self.dialer.next_round(&lost) {
            self.dial(peer, now);
        }
    }

    /// Without a leader: dial the previous one, and the first candidates that can be reached.
    fn dial_candidates(&mut self, now: Moment) {
        if let Some(holder) = self.terms.holder() {
            self.dial(holder, now);
        }
        let is_candidate = |member: &Member| {
            member.may_represent && member.key != self.local.key() && member.state != State::Left
        };
        let rows = self.table().rows().filter(|row| is_candidate(&row.member));
        let mut candidates: Vec<_> =
            rows.map(|row| ((row.member.state == State::Dead, row.rank), row.member.key)).collect();
        candidates.sort();
        let mut reachable = 0;
        for (_, key) in candidates {
            if reachable == CANDIDATES {
                return;
            }
            // One whose dial fails is tried again all the same, but does not count.
            if !self.dialer.is_failing(&key, &self.config, now) {
                reachable += 1;
            }
            self.dial(key, now);
        }
    }

    /// Without a leader, or as a representative that may not cover the whole domain, dial the seeds.
    fn dial_seeds(&mut self, now: Moment) {
        let interval = match self.stage.leadership() {
            Some(leadership) if leadership.coverage().is_partial() || self.table().len() <= 1 => {
                self.config.seeds
            }
            Some(_) => self.config.seeds_idle,
            None if self.is_lost(now) => self.config.seeds,
            None => return,
        };
        if self.dialer.start_seeds(interval, &self.config, &mut self.dice, now) {
            self.outbox.push(Output::DialSeeds);
        }
    }

    /// Close the links that neither side has needed for a while.
    fn close_unneeded(&mut self, now: Moment) {
        for peer in self.links.peers() {
            let is_needed = self.needs_link(&peer, now);
            let linger = self.config.linger;
            if self.links.get_mut(&peer).is_some_and(|link| link.is_unneeded(is_needed, linger, now)) {
                self.outbox.push(Output::Disconnect(peer));
            }
        }
    }
}
