//! Messages about claims: of a leader that reigns, resigns or leaves, and of those who know where it is.
//!
//! Pure. Rules: the highest claim is obeyed (fencing); of two representatives that meet, the one that covers
//! fewer sensors yields (see "Healing" at the head of `election`).
//! Not here: when this sensor stands (`candidate`), what a representative does (`representative`).

use super::Node;
use crate::election::counters::Counter;
use crate::election::leader::Leader;
use crate::election::leadership::Stage;
use crate::membership::MEMBERS_MAX;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Member, Members, Reign};
use wire::time::Moment;

impl Node {
    /// `from` claims to represent the domain, in a heartbeat that was in transit for `lateness`.
    pub(super) fn on_claim(&mut self, from: PeerKey, reign: &Reign, lateness: Duration, now: Moment) {
        let may_represent = self.links.get(&from).is_some_and(|link| link.may_represent());
        if !may_represent || reign.standbys.len() > self.config.standbys.max(2) {
            self.refuse();
            return;
        }
        let claim = Claim { term: reign.term, holder: from };
        if self.terms.accepted() == Some(claim) && self.leader.is_some() {
            self.refresh_leader(claim, reign, now);
        } else if self.terms.allows(claim) || !self.config.mechanisms.fencing {
            self.obey(claim, reign, now);
        } else if let Some(leadership) = self.stage.leadership()
            && self.config.mechanisms.larger_half
            && lateness < self.config.suspicion
            && reign.covered > leadership.coverage_reachable(&self.config, now)
        {
            self.yield_to(from, now);
        }
    }

    /// `from` sent a heartbeat without a claim: if it is the leader, it no longer is.
    pub(super) fn on_no_claim(&mut self, from: PeerKey, now: Moment) {
        let Some(accepted) = self.terms.accepted().filter(|claim| claim.holder == from) else { return };
        let Some(link) = self.links.get(&from) else { return };
        let is_rechecking = link.obeys(accepted) && !link.view().lost;
        if let Some(leader) = self.leader.as_mut().filter(|leader| !leader.is_gone())
            && !is_rechecking
        {
            leader.set_gone();
            self.candidacy.start(now);
            self.terms.end(accepted);
        }
    }

    fn refresh_leader(&mut self, claim: Claim, reign: &Reign, now: Moment) {
        let leader = self.leader.get_or_insert_with(|| Leader::new(now));
        leader.refresh(reign, self.links.get(&claim.holder), now);
        self.terms.clear_ended();
        if !self.roster.verify(reign) {
            self.counters.count(Counter::Resync);
        }
    }

    /// Follow a higher claim.
    fn obey(&mut self, claim: Claim, reign: &Reign, now: Moment) {
        if let Some(leadership) = self.stage.leadership() {
            self.hand_over(leadership.claim(), claim.holder);
            self.note_loss(now);
        }
        if self.terms.accept(claim) {
            self.counters.count(Counter::Change);
        }
        self.stage = Stage::Member;
        self.leader = None;
        self.candidacy.end();
        self.dialer.set_hinted_leader(None);
        self.roster.follow();
        self.persist(claim.term);
        self.refresh_leader(claim, reign, now);
        self.send_heartbeat(claim.holder, now);
        self.maintain_links(now);
    }

    /// The holder of `claim` resigned.
    pub(super) fn on_resign(&mut self, from: PeerKey, claim: Claim, to: Option<PeerKey>, now: Moment) {
        if claim.holder != from || !self.terms.observe(claim.term) {
            self.refuse();
            return;
        }
        self.terms.end(claim);
        let to_us = to == Some(self.local.key());
        if self.stage.represents() {
            if to_us {
                self.raise(now);
            }
            return;
        }
        let Some(leader) = self.leader.as_mut().filter(|_| self.terms.accepted() == Some(claim)) else {
            return;
        };
        leader.resign(to_us);
        if to_us {
            self.candidacy.start(now);
            self.check_leader(now);
        } else {
            self.candidacy.start(now.plus(self.config.next_rank));
            let successor = to.and_then(|to| self.roster.member(&to)).cloned();
            self.dialer.set_hinted_leader(successor);
            self.maintain_links(now);
        }
    }

    /// A peer knows where the representative is.
    pub(super) fn on_redirect(&mut self, claim: Claim, holder: Member, now: Moment) {
        if holder.key != claim.holder || !holder.is_bounded() || !self.terms.observe(claim.term) {
            self.refuse();
            return;
        }
        let is_higher = self.terms.accepted().is_none_or(|accepted| claim > accepted);
        let is_useful = self.stage.represents() || self.is_lost(now) || is_higher;
        if is_useful && holder.key != self.local.key() && !self.links.contains(&holder.key) {
            self.dialer.set_hinted_leader(Some(holder));
            self.maintain_links(now);
        }
    }

    /// A claim yielded to this sensor's: take over what its holder knew.
    pub(super) fn on_yield(&mut self, from: PeerKey, claim: Claim, members: Vec<Member>, now: Moment) {
        if claim.holder != from || members.len() > MEMBERS_MAX {
            self.refuse();
        } else if self.stage.represents() {
            self.roster.merge(members, self.local.key(), now);
        }
    }

    /// Changes of the leader's table.
    pub(super) fn on_members(&mut self, from: PeerKey, members: Members, now: Moment) {
        let claim = Claim { term: members.term, holder: from };
        if self.leader.is_some() && self.terms.accepted() == Some(claim) {
            self.roster.apply(members, now);
        }
    }

    /// A peer stops.
    pub(super) fn on_leave(&mut self, from: PeerKey, incarnation: u64, now: Moment) {
        if !self.links.get_mut(&from).is_some_and(|link| link.leave(incarnation)) {
            return;
        }
        self.roster.left(from, self.stage.represents(), now);
        if self.terms.holder() == Some(from)
            && let Some(leader) = &mut self.leader
        {
            leader.set_gone();
        }
    }
}
