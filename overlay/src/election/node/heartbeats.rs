//! Heartbeats: what this sensor reports on each link, and what it learns from those of its peers.
//!
//! Pure. A heartbeat older than the last one on its link is ignored; one that was long in transit only shows
//! that its sender was there then. A claim is not sent to a peer that hears a representative of a larger part
//! of the domain, nor before that peer's first heartbeat, nor during a recheck.
//! Not here: what a claim does (`claims`).

use super::Node;
use crate::election::counters::Counter;
use crate::election::leader::Leader;
use crate::election::leadership::Leadership;
use crate::election::link::Link;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Heartbeat, Message, Reign, Term, View};
use wire::time::Moment;

impl Node {
    /// Send a heartbeat on every link.
    pub(super) fn send_heartbeats(&mut self, now: Moment) {
        let stretch = self.health.excuse_percent(&self.config, now);
        if let Some(leadership) = self.stage.leadership_mut() {
            leadership.lease_mut().note_stretch(stretch);
        }
        for peer in self.links.peers() {
            self.send_heartbeat(peer, now);
        }
    }

    /// Send a heartbeat on one link.
    pub(super) fn send_heartbeat(&mut self, peer: PeerKey, now: Moment) {
        let view = self.view(now);
        let reign = self.reign_for(&peer, now);
        let needs_link = self.needs_link(&peer, now);
        let may_stand = self.succession(now).may_stand();
        let stretch = self.health.excuse_percent(&self.config, now).div_ceil(100);
        let Some(link) = self.links.get_mut(&peer) else { return };
        let is_known = link.report().knows == self.local.incarnation();
        let heartbeat = Heartbeat {
            sequence: link.next_sequence(now),
            incarnation: self.local.incarnation(),
            echo: link.sequence_in(),
            heard_ms: link
                .last_heard()
                .map(|at| u32::try_from(now.since(at).as_millis()).unwrap_or(u32::MAX)),
            stretch: u8::try_from(stretch).unwrap_or(u8::MAX),
            may_stand,
            wanted: needs_link,
            load: self.local.load(),
            view,
            reign,
            knows: link.member().map_or(0, |member| member.incarnation),
            about: (!is_known).then(|| Box::new(self.local.member())),
        };
        self.counters.count(Counter::HeartbeatSent);
        self.send(peer, Message::Heartbeat(heartbeat));
    }

    /// How this sensor sees the domain.
    pub(super) fn view(&self, now: Moment) -> View {
        let covered = match self.stage.leadership() {
            Some(leadership) => leadership.coverage_strict(),
            None => self.leader.as_ref().map_or(0, Leader::coverage),
        };
        View {
            claim: self.terms.accepted(),
            lost: self.is_lost(now),
            floor: self.terms.min_term(),
            covered,
            held: self.table().held(),
        }
    }

    /// The claim for a heartbeat to `peer`, if it is to be sent there.
    fn reign_for(&mut self, peer: &PeerKey, now: Moment) -> Option<Reign> {
        let (leadership, link) = self.stage.leadership().zip(self.links.get(peer))?;
        let may_claim = self.may_claim(leadership, link, now);
        may_claim.then(|| Reign {
            term: leadership.claim().term,
            standbys: leadership.standbys().to_vec(),
            covered: leadership.coverage_strict(),
            version: self.roster.table().held().version,
            digest: self.roster.digest(),
        })
    }

    fn may_claim(&self, leadership: &Leadership, link: &Link, now: Moment) -> bool {
        if link.last_heard().is_none() || leadership.lease().is_suspended() {
            return false;
        }
        let view = link.view();
        let is_rival = |claim: Claim| claim.holder != self.local.key() && !self.terms.has_ended(claim);
        let patience = self.health.patience(&self.config, link.report().stretch, now);
        let obeys_larger = view.claim.is_some_and(is_rival)
            && !view.lost
            && view.covered > leadership.coverage_reachable(&self.config, now)
            && link.is_fresh(patience, now);
        !(self.config.mechanisms.larger_half && obeys_larger)
    }

    pub(super) fn on_heartbeat(&mut self, from: PeerKey, mut heartbeat: Heartbeat, now: Moment) {
        let term = heartbeat.reign.as_ref().map_or(Term::NONE, |reign| reign.term);
        if self.links.get(&from).is_none_or(|link| heartbeat.sequence <= link.sequence_in())
            || !self.observe_terms(&heartbeat.view, term)
        {
            return;
        }
        let patience = self.health.patience(&self.config, 1, now);
        let Some(link) = self.links.get_mut(&from) else { return };
        let is_first = link.last_heard().is_none();
        let is_measured = self.config.mechanisms.lateness;
        let lateness = if is_measured { link.lateness(&heartbeat, now) } else { Duration::ZERO };
        let missed = link.receive(&heartbeat, lateness, self.config.suspicion, now);
        self.health.note_heard(missed);
        if lateness >= patience {
            // The peer was there then; what it reports is outdated.
            self.counters.count(Counter::HeartbeatLate);
            return;
        }
        link.update(&heartbeat);
        if let Some(about) = heartbeat.about.take()
            && !link.introduce(from, *about)
        {
            self.refuse();
        }
        self.counters.count(Counter::HeartbeatReceived);
        self.counters.add(Counter::HeartbeatMissed, missed);
        match heartbeat.reign.take() {
            Some(reign) => self.on_claim(from, &reign, lateness, now),
            None => self.on_no_claim(from, now),
        }
        self.redirect_stray(from, heartbeat.view, now);
        if is_first && self.stage.represents() {
            // Now it is known what the peer hears: the claim can be sent to it.
            self.send_heartbeat(from, now);
        }
    }

    /// Remember the highest term that a peer sent; returns false, and refuses it, if it is implausible.
    pub(super) fn observe_terms(&mut self, view: &View, term: Term) -> bool {
        let claimed = view.claim.map_or(Term::NONE, |claim| claim.term);
        let is_plausible = self.terms.observe(claimed.max(term).max(view.floor));
        if !is_plausible {
            self.refuse();
        }
        is_plausible
    }

    /// Redirect a peer that follows no leader, an earlier one, or one of a smaller part of the domain.
    fn redirect_stray(&mut self, from: PeerKey, view: View, now: Moment) {
        if self.stage.represents() {
            return;
        }
        let Some(accepted) = self.terms.accepted().filter(|claim| claim.holder != from) else { return };
        let is_stray = view.lost || view.claim < Some(accepted);
        let is_smaller = self.leader.as_ref().is_some_and(|leader| leader.coverage() > view.covered);
        if view.claim != Some(accepted) && (is_stray || is_smaller) && !self.is_lost(now) {
            self.redirect(from, accepted, now);
        }
    }

    /// Send a peer the address of the leader.
    pub(super) fn redirect(&mut self, peer: PeerKey, claim: Claim, now: Moment) {
        let linked = self.links.get(&claim.holder).and_then(Link::member);
        let Some(holder) = linked.or_else(|| self.roster.member(&claim.holder)).cloned() else { return };
        let Some(link) = self.links.get_mut(&peer).filter(|link| link.may_redirect(now)) else { return };
        link.note_redirect(now);
        self.send(peer, Message::Redirect { claim, holder: Box::new(holder) });
    }
}
