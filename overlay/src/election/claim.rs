//! Claims: made, obeyed, raised, given up.
//!
//! Pure. Invariants: the accepted claim only grows; a term is used only once it is on disk; the own claim is
//! above everything accepted before. Terms that are only heard of raise the next promotion, nothing else.
//! Not here: when to stand (`candidacy`), when to serve (`lease`).

use super::Output;
use super::node::{Duty, Following, Node, Rule};
use crate::membership::MEMBERS_MAX;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Member, Message, Reign, State, Term};
use wire::time::Moment;

impl Node {
    /// `from` says that it represents the domain, and said so `lateness` ago.
    pub(super) fn claimed(&mut self, from: PeerKey, reign: Reign, lateness: Duration, now: Moment) {
        let allowed = self.links.get(&from).is_some_and(|link| link.standing.may_represent);
        if !allowed || reign.standbys.len() > self.config.standbys.max(2) {
            self.figures.refused_total += 1;
            return;
        }
        let claim = Claim { term: reign.term, holder: from };
        if self.accepted == Some(claim) && self.following.is_some() {
            self.refresh(&reign, now);
            return;
        }
        let higher = claim.term >= self.floor && self.accepted.is_none_or(|accepted| claim >= accepted);
        if higher || !self.config.mechanisms.fencing {
            self.obey(claim, &reign, now);
        } else if let Duty::Representative(rule) = &self.duty
            && self.config.mechanisms.larger_half
            && lateness < self.config.suspicion
            && reign.covered > self.weight(rule, now)
        {
            self.stand_down(from, now);
        }
    }

    /// `from` is there and claims nothing: did it, before?
    pub(super) fn unclaimed(&mut self, from: PeerKey, now: Moment) {
        let Some(accepted) = self.accepted.filter(|claim| claim.holder == from) else { return };
        let Some(view) = self.links.get(&from).map(|link| link.view) else { return };
        let still = view.claim == Some(accepted) && !view.lost;
        if let Some(following) = &mut self.following
            && !still
            && !following.gone
        {
            following.gone = true;
            self.candidacy.begin(now);
            self.ended = Some(accepted);
        }
    }

    fn refresh(&mut self, reign: &Reign, now: Moment) {
        let Some(accepted) = self.accepted else { return };
        let Some(following) = &mut self.following else { return };
        following.heard = self.links.get(&accepted.holder).and_then(|link| link.heard).unwrap_or(now);
        following.stretch = self.links.get(&accepted.holder).map_or(1, |link| link.stretch);
        following.standbys.clone_from(&reign.standbys);
        following.covered = reign.covered;
        following.gone = false;
        self.ended = None;
        let held = self.table.held();
        if held.term == reign.term && held.version == reign.version && self.table.digest() != reign.digest {
            self.figures.resyncs_total += 1;
            self.table.doubt();
        }
    }

    /// Follow a higher claim.
    fn obey(&mut self, claim: Claim, reign: &Reign, now: Moment) {
        if let Duty::Representative(rule) = &self.duty {
            let ended = rule.claim;
            self.hand_over(ended, claim.holder);
            self.figures.yields_total += 1;
            self.cool_off.begin(&self.config, now);
        }
        if self.accepted.is_some_and(|accepted| accepted.holder != claim.holder) {
            self.figures.changes_total += 1;
        }
        self.duty = Duty::Member;
        self.accepted = Some(claim);
        self.floor = self.floor.max(claim.term);
        self.highest = self.highest.max(claim.term);
        self.following = Some(Following {
            heard: now,
            stretch: 1,
            standbys: Vec::new(),
            covered: 0,
            gone: false,
            to_us: false,
        });
        self.candidacy.end();
        self.pointed = None;
        self.gone.clear();
        self.persist(claim.term);
        self.refresh(reign, now);
        self.beat_to(claim.holder, now);
        self.reach(now);
    }

    /// The smaller part gives way: resign in favour of `to`, which covers more.
    fn stand_down(&mut self, to: PeerKey, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let ended = rule.claim;
        self.say_resigned(ended, Some(to));
        self.hand_over(ended, to);
        self.figures.yields_total += 1;
        self.cool_off.begin(&self.config, now);
        self.step_down(now);
    }

    /// Resign to a peer that the operator prefers; this is no loss of the role.
    pub(super) fn resign_to(&mut self, to: PeerKey, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let ended = rule.claim;
        self.say_resigned(ended, Some(to));
        self.hand_over(ended, to);
        self.step_down(now);
    }

    /// No one confirms that we still are the one.
    pub(super) fn give_up(&mut self, now: Moment) {
        self.figures.yields_total += 1;
        self.cool_off.begin(&self.config, now);
        self.step_down(now);
    }

    fn step_down(&mut self, now: Moment) {
        self.duty = Duty::Member;
        self.following = None;
        self.candidacy.begin(now.plus(self.config.suspicion));
    }

    fn say_resigned(&mut self, claim: Claim, to: Option<PeerKey>) {
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            self.send(peer, Message::Resign { claim, to });
        }
    }

    fn hand_over(&mut self, claim: Claim, to: PeerKey) {
        let members = self.table.rows().map(|row| row.member.clone()).collect();
        self.send(to, Message::Yield { claim, members });
        self.output(Output::HandOver(to));
    }

    /// `from` gave up `claim`.
    pub(super) fn resigned(&mut self, from: PeerKey, claim: Claim, to: Option<PeerKey>, now: Moment) {
        if claim.holder != from || !self.is_plausible(claim.term) {
            self.figures.refused_total += 1;
            return;
        }
        self.highest = self.highest.max(claim.term);
        self.ended = Some(claim);
        let to_us = to == Some(self.me.key);
        if matches!(self.duty, Duty::Representative(_)) {
            if to_us {
                self.raise(now);
            }
            return;
        }
        if self.accepted != Some(claim) {
            return;
        }
        let Some(following) = &mut self.following else { return };
        following.gone = true;
        following.to_us = to_us;
        let named = to.and_then(|to| self.table.get(&to)).map(|row| row.member.clone());
        self.candidacy.begin(if to_us { now } else { now.plus(self.config.next_rank) });
        if to_us {
            self.attend(now);
        } else {
            self.pointed = named;
            self.reach(now);
        }
    }

    /// Told where the representative is.
    pub(super) fn redirected(&mut self, claim: Claim, holder: Member, now: Moment) {
        if holder.key != claim.holder || !holder.is_bounded() || !self.is_plausible(claim.term) {
            self.figures.refused_total += 1;
            return;
        }
        self.highest = self.highest.max(claim.term);
        let ruling = matches!(self.duty, Duty::Representative(_));
        let useful = ruling || self.is_lost(now) || self.accepted.is_none_or(|accepted| claim > accepted);
        if useful && holder.key != self.me.key && !self.links.contains_key(&holder.key) {
            self.pointed = Some(holder);
            self.reach(now);
        }
    }

    /// A claim gave way to ours: take in what its holder knew.
    pub(super) fn yielded(&mut self, from: PeerKey, claim: Claim, members: Vec<Member>, now: Moment) {
        if claim.holder != from || members.len() > MEMBERS_MAX {
            self.figures.refused_total += 1;
            return;
        }
        if !matches!(self.duty, Duty::Representative(_)) {
            return;
        }
        for member in members.into_iter().filter(Member::is_bounded) {
            let known = self.table.get(&member.key).is_some();
            if !known && member.key != self.me.key && member.state != State::Left {
                self.table.put(Member { state: State::Suspect, ..member }, now);
            }
        }
    }

    /// Stand: take the next term, and use it once it is on disk.
    pub(super) fn promote(&mut self, now: Moment) {
        let term = self.next_term();
        self.duty = Duty::Promoting(term);
        self.persist(term);
        if !self.config.mechanisms.durable_term {
            self.durable(term, now);
        }
    }

    /// Raise the own term above all that was heard of.
    pub(super) fn raise(&mut self, now: Moment) {
        if matches!(&self.duty, Duty::Representative(rule) if rule.raising.is_none()) {
            let term = self.next_term();
            if let Duty::Representative(rule) = &mut self.duty {
                rule.raising = Some(term);
            }
            self.persist(term);
            if !self.config.mechanisms.durable_term {
                self.durable(term, now);
            }
        }
    }

    fn next_term(&mut self) -> Term {
        self.highest = self.highest.max(self.floor).next_for(self.rank.mark());
        self.highest
    }

    /// Everything up to `term` is on disk.
    pub(super) fn durable(&mut self, term: Term, now: Moment) {
        match &mut self.duty {
            Duty::Promoting(awaited) if term >= *awaited => {
                let awaited = *awaited;
                self.duty = Duty::Member;
                if self.is_lost(now) && !self.is_taken(now) {
                    self.reign(awaited, now);
                }
            }
            Duty::Representative(rule) if rule.raising.is_some_and(|raised| term >= raised) => {
                let raised = rule.raising.take().expect("just seen");
                rule.claim.term = raised;
                rule.contested = None;
                let claim = rule.claim;
                self.figures.raises_total += 1;
                self.accepted = Some(claim);
                self.floor = raised;
                self.table.own(raised, now);
                self.beat(now);
            }
            Duty::Member | Duty::Promoting(_) | Duty::Representative(_) => {}
        }
    }

    fn reign(&mut self, term: Term, now: Moment) {
        let claim = Claim { term, holder: self.me.key };
        self.figures.promotions_total += 1;
        if self.accepted.is_some_and(|accepted| accepted.holder != self.me.key) {
            self.figures.changes_total += 1;
        }
        let promised = self.promised(now);
        self.accepted = Some(claim);
        self.floor = term;
        self.following = None;
        self.candidacy.end();
        self.pointed = None;
        let stretch = self.excuse(now).div_ceil(100) * 100;
        self.duty = Duty::Representative(Box::new(Rule {
            claim,
            since: now,
            standbys: Vec::new(),
            coverage: vec![self.me.key],
            weight: 1,
            surely: 1,
            promised,
            partial: false,
            raising: None,
            contested: None,
            recheck: None,
            told: [stretch; 2],
            cursor: self.me.key,
        }));
        self.table.own(term, now);
        self.call_first_roll(now);
        self.govern(now);
        self.next_beat = now.plus(self.config.heartbeat);
        self.beat(now);
        self.reach(now);
    }
}
