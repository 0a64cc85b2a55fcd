//! Heartbeats: what they say, and what is read from them.
//!
//! Pure. A heartbeat older than the last one on its link says nothing, and one that was long under way says only that
//! its sender was there then. A claim is not made to a sensor that
//! hears a representative of a larger part of the domain (see "Healing" at the head of `election`), and to
//! no one before its own first heartbeat, nor while its maker asks whether it still holds (`lease`).
//! Not here: what a claim does (`claim`).

use super::link::Link;
use super::node::{Duty, Node, Rule};
use crate::membership::MEMBERS_MAX;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Heartbeat, Members, Message, Reign, State, Term, View};
use wire::time::Moment;

/// Rounds beyond which a term is no honest one; the term's own end is 16 times as far.
const ROUND_MAX: u64 = 1 << 40;

/// How many rounds a term may be ahead of all we know: a promotion each second for two years away.
const ROUNDS_AHEAD_MAX: u64 = 1 << 26;

/// Between two redirections of one peer. 500 ms: a heartbeat.
const REDIRECT_INTERVAL: Duration = Duration::from_millis(500);

impl Node {
    /// A heartbeat to every link.
    pub(super) fn beat(&mut self, now: Moment) {
        let stretch = self.excuse(now);
        if let Duty::Representative(rule) = &mut self.duty {
            rule.told = [stretch.div_ceil(100) * 100, rule.told[0]];
        }
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            self.beat_to(peer, now);
        }
    }

    /// A heartbeat to one link.
    pub(super) fn beat_to(&mut self, peer: PeerKey, now: Moment) {
        let view = self.view(now);
        let wanted = self.wants(&peer, now);
        let may_stand = self.may_stand(now);
        let stretch = u8::try_from(self.excuse(now).div_ceil(100)).unwrap_or(u8::MAX);
        let digest = self.table.digest();
        let version = self.table.held().version;
        let Some(link) = self.links.get(&peer) else { return };
        let reign = match &self.duty {
            Duty::Representative(rule) if self.may_claim(rule, link, now) => Some(Reign {
                term: rule.claim.term,
                standbys: rule.standbys.clone(),
                covered: surely(rule),
                version,
                digest,
            }),
            Duty::Representative(_) | Duty::Member | Duty::Promoting(_) => None,
        };
        let beat = Heartbeat {
            sequence: link.sequence_out + 1,
            incarnation: self.incarnation,
            echo: link.sequence_in,
            heard_ms: link.heard.map(|at| u32::try_from(now.since(at).as_millis()).unwrap_or(u32::MAX)),
            stretch,
            may_stand,
            wanted,
            load: self.load,
            view,
            reign,
            knows: link.member.as_ref().map_or(0, |member| member.incarnation),
            about: (link.knows != self.incarnation).then(|| Box::new(self.about_us())),
        };
        self.links.get_mut(&peer).expect("just seen").count_beat(now);
        self.figures.heartbeats_sent_total += 1;
        self.send(peer, Message::Heartbeat(beat));
    }

    /// How we see the domain.
    pub(super) fn view(&self, now: Moment) -> View {
        let covered = match &self.duty {
            Duty::Representative(rule) => surely(rule),
            Duty::Member | Duty::Promoting(_) => self.following.as_ref().map_or(0, |f| f.covered),
        };
        View {
            claim: self.accepted,
            lost: self.is_lost(now),
            floor: self.floor,
            covered,
            held: self.table.held(),
        }
    }

    fn may_claim(&self, rule: &Rule, link: &Link, now: Moment) -> bool {
        if link.heard.is_none() || rule.recheck.is_some() {
            return false;
        }
        let view = &link.view;
        let rival = |claim: Claim| claim.holder != self.me.key && self.ended != Some(claim);
        let other = view.claim.is_some_and(rival) && !view.lost;
        let larger = other
            && view.covered > self.weight(rule, now)
            && link.is_fresh(self.patience(link.stretch, now), now);
        !(self.config.mechanisms.larger_half && larger)
    }

    /// How many sensors a representative covers, with all patience, as it compares itself with others.
    pub(super) fn weight(&self, rule: &Rule, now: Moment) -> u16 {
        match rule.recheck {
            Some(_) => 0,
            None if now.since(rule.since) < self.config.suspicion => rule.weight.max(rule.promised),
            None => rule.weight,
        }
    }

    /// A heartbeat came.
    pub(super) fn hear(&mut self, from: PeerKey, mut beat: Heartbeat, now: Moment) {
        let reign = beat.reign.as_ref().map_or(Term::NONE, |reign| reign.term);
        if self.links.get(&from).is_none_or(|link| beat.sequence <= link.sequence_in)
            || !self.note_terms(&beat.view, reign)
        {
            return;
        }
        let patience = self.patience(1, now);
        let Some(link) = self.links.get_mut(&from) else { return };
        let first = link.heard.is_none();
        let lateness =
            if self.config.mechanisms.lateness { link.lateness(&beat, now) } else { Duration::ZERO };
        if link.heard.is_some_and(|heard| now.since(heard) >= self.config.suspicion) {
            link.resumed = now;
        }
        let missed = link.hear(&beat, lateness, now);
        if lateness >= patience {
            // It was there then; how it saw things is the past.
            self.figures.heartbeats_late_total += 1;
            self.health.note_heard(missed);
            return;
        }
        link.believe(&beat);
        if let Some(about) = beat.about.take()
            && !link.introduce(from, *about)
        {
            self.figures.refused_total += 1;
        }
        self.health.note_heard(missed);
        self.figures.heartbeats_heard_total += 1;
        self.figures.heartbeats_missed_total += missed;
        match beat.reign.take() {
            Some(reign) => self.claimed(from, reign, lateness, now),
            None => self.unclaimed(from, now),
        }
        self.note_view(from, beat.view, now);
        if first && matches!(self.duty, Duty::Representative(_)) {
            // Now it is known what it hears: the claim can be made to it.
            self.beat_to(from, now);
        }
    }

    /// Whether an honest sensor may tell of this term.
    pub(super) fn is_plausible(&self, term: Term) -> bool {
        term.round() <= ROUND_MAX && term.round() <= self.highest.round() + ROUNDS_AHEAD_MAX
    }

    /// Remember the highest term told; false, and nothing is remembered, if it is beyond all bounds.
    pub(super) fn note_terms(&mut self, view: &View, reign: Term) -> bool {
        let claimed = view.claim.map_or(Term::NONE, |claim| claim.term);
        let highest = claimed.max(reign).max(view.floor);
        let plausible = self.is_plausible(highest);
        if plausible {
            self.highest = self.highest.max(highest);
        } else {
            self.figures.refused_total += 1;
        }
        plausible
    }

    /// A peer's view may tell that it needs to be told where the representative is.
    pub(super) fn note_view(&mut self, from: PeerKey, view: View, now: Moment) {
        if matches!(self.duty, Duty::Representative(_)) {
            return;
        }
        let Some(accepted) = self.accepted.filter(|claim| claim.holder != from) else { return };
        let stray = view.claim != Some(accepted) && (view.lost || view.claim < Some(accepted));
        let smaller = self.following.as_ref().is_some_and(|following| following.covered > view.covered);
        if (stray || (view.claim != Some(accepted) && smaller)) && !self.is_lost(now) {
            self.redirect(from, accepted, now);
        }
    }

    /// Tell a peer where the representative is.
    pub(super) fn redirect(&mut self, peer: PeerKey, claim: Claim, now: Moment) {
        let Some(link) = self.links.get(&peer) else { return };
        if link.redirected.is_some_and(|at| now.since(at) < REDIRECT_INTERVAL) {
            return;
        }
        let met = self.links.get(&claim.holder).and_then(|link| link.member.clone());
        let told = || self.table.get(&claim.holder).map(|row| row.member.clone());
        let Some(holder) = met.or_else(told) else { return };
        self.links.get_mut(&peer).expect("just seen").redirected = Some(now);
        self.send(peer, Message::Redirect { claim, holder: Box::new(holder) });
    }

    /// Changes of the representative's table came.
    pub(super) fn learn(&mut self, from: PeerKey, members: Members, now: Moment) {
        let claim = Claim { term: members.term, holder: from };
        if self.accepted != Some(claim) || self.following.is_none() {
            return;
        }
        self.table.apply(members, now);
        self.met.retain(|key, _| self.table.get(key).is_none());
    }

    /// The peer stops.
    pub(super) fn left(&mut self, from: PeerKey, incarnation: u64, now: Moment) {
        let Some(link) = self.links.get_mut(&from) else { return };
        if link.incarnation > incarnation {
            return;
        }
        link.left = true;
        link.wants = false;
        if matches!(self.duty, Duty::Representative(_)) {
            self.table.mark(&from, State::Left, now);
        } else if self.gone.len() < MEMBERS_MAX {
            self.gone.insert(from);
        }
        if self.accepted.is_some_and(|claim| claim.holder == from)
            && let Some(following) = &mut self.following
        {
            following.gone = true;
        }
    }
}

/// How many sensors a representative tells others that it covers: of whom it heard lately; one that asks whether it still is one,
/// none.
fn surely(rule: &Rule) -> u16 {
    if rule.recheck.is_some() { 0 } else { rule.surely }
}
