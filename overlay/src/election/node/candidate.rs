//! From a lost leader to a promotion: suspicion, questions, the term on disk.
//!
//! Pure. In order: silence beyond the patience, or the leader's own message that it goes, starts a suspicion;
//! a sensor whose turn is near asks the peers it hears; one whose turn it is and that has half of them on its
//! side takes the next term and represents the domain once that is on disk.
//! Not here: whose turn it is (`succession`).

use super::Node;
use crate::election::counters::Counter;
use crate::election::leadership::{Leadership, Stage};
use wire::id::PeerKey;
use wire::membership::{Answer, Claim, Message, Question, Term};
use wire::time::Moment;

impl Node {
    /// Whether this sensor has no leader, or lost it, and does not represent the domain itself.
    pub(super) fn is_lost(&self, now: Moment) -> bool {
        let Some(leader) = &self.leader else { return !self.stage.represents() };
        let holder = self.terms.holder();
        let link = holder.and_then(|holder| self.links.get(&holder));
        let has_dial_failed = holder.is_some_and(|holder| self.dialer.has_failed(&holder));
        let patience = self.health.patience(&self.config, leader.stretch(), now);
        leader.is_lost(link, has_dial_failed, patience, &self.config, now)
    }

    /// A member's check of its leader.
    pub(super) fn check_leader(&mut self, now: Moment) {
        if !self.is_lost(now) {
            if self.candidacy.end() {
                self.counters.count(Counter::Refutation);
            }
            // A sensor that lags waits longer before it stands, but others may follow another leader by now:
            // they report that if they are asked.
            if self.leader.as_ref().is_some_and(|leader| leader.silence(now) >= self.config.suspicion) {
                self.ask(now);
            }
            return;
        }
        if self.candidacy.since().is_none() {
            self.counters.count(Counter::Suspicion);
            self.candidacy.start(now);
        }
        let since = self.candidacy.since().unwrap_or(now);
        if now < since || !self.local.may_represent() || matches!(self.stage, Stage::Promoting(_)) {
            return;
        }
        let Some(wait) = self.succession(now).wait() else { return };
        if now.plus(self.config.question * 2) >= since.plus(wait) {
            self.ask(now);
        }
        if now >= since.plus(wait) {
            let succession = self.succession(now);
            if succession.is_confirmed() && !succession.is_taken(Some(since)) {
                self.promote(now);
            }
        }
    }

    /// Ask the reachable peers whether they lost the leader too.
    fn ask(&mut self, now: Moment) {
        if !self.candidacy.start_round(&self.config, now) {
            return;
        }
        let peers: Vec<_> = self.succession(now).reachable().map(|(key, _)| *key).collect();
        for peer in peers {
            let number = self.counters.count(Counter::Question);
            self.send(peer, Message::Question(Question { number, claim: self.terms.accepted() }));
        }
    }

    /// A peer asks whether this sensor lost its leader too.
    pub(super) fn on_question(&mut self, from: PeerKey, question: Question, now: Moment) {
        let lost = self.is_lost(now);
        if let Some(accepted) = self.terms.accepted()
            && !lost
            && question.claim != Some(accepted)
            && accepted.holder != from
        {
            self.redirect(from, accepted, now);
        }
        let best = if lost { self.succession(now).best(from) } else { None };
        let view = self.view(now);
        self.send(from, Message::Answer(Answer { number: question.number, lost, view, best }));
    }

    /// A peer answered a question.
    pub(super) fn on_answer(&mut self, from: PeerKey, answer: Answer, now: Moment) {
        if !self.observe_terms(&answer.view, Term::NONE) {
            return;
        }
        let Some(link) = self.links.get_mut(&from) else { return };
        let (number, view) = (answer.number, answer.view);
        let best = link.record_answer(answer, now);
        if self.stage.represents() {
            self.on_recheck_answer(from, number, view, now);
            return;
        }
        if !self.is_lost(now) {
            return;
        }
        if let Some(best) = best.filter(|best| best.key != self.local.key())
            && self.dialer.hinted_leader().is_none()
            && !self.links.contains(&best.key)
        {
            self.dialer.set_hinted_leader(Some(best));
            self.maintain_links(now);
        }
        self.check_leader(now);
    }

    /// Stand: take the next term, and use it once it is on disk.
    fn promote(&mut self, now: Moment) {
        let term = self.terms.next(self.local.rank().mark());
        self.stage = Stage::Promoting(term);
        self.persist(term);
        if !self.config.mechanisms.durable_term {
            self.on_persisted(term, now);
        }
    }

    /// Everything up to `term` is on disk.
    pub(super) fn on_persisted(&mut self, term: Term, now: Moment) {
        if self.local.is_stopping() {
            return;
        }
        match &mut self.stage {
            Stage::Promoting(promoted) if term >= *promoted => {
                let promoted = *promoted;
                self.stage = Stage::Member;
                if self.is_lost(now) && !self.succession(now).is_taken(self.candidacy.since()) {
                    self.represent(promoted, now);
                }
            }
            Stage::Representative(leadership) => {
                if let Some(claim) = leadership.finish_raise(term) {
                    self.counters.count(Counter::Raise);
                    self.terms.accept(claim);
                    self.roster.own(claim.term, now);
                    self.send_heartbeats(now);
                }
            }
            Stage::Member | Stage::Promoting(_) => {}
        }
    }

    /// Represent the domain from now on.
    fn represent(&mut self, term: Term, now: Moment) {
        let me = self.local.key();
        let claim = Claim { term, holder: me };
        // Counted before the claim is accepted: the peers are those of the lost leader.
        let expected_acks = self.succession(now).expected_acks();
        self.counters.count(Counter::Promotion);
        if self.terms.accept(claim) {
            self.counters.count(Counter::Change);
        }
        self.leader = None;
        self.candidacy.end();
        self.dialer.set_hinted_leader(None);
        self.dialer.reset_round(me);
        let stretch = self.health.excuse_percent(&self.config, now);
        self.stage = Stage::Representative(Box::new(Leadership::new(claim, expected_acks, stretch, now)));
        self.roster.own(term, now);
        self.roster.take_over(&self.links, me, now);
        self.run_round(now);
        self.timers.set_heartbeat(now.plus(self.config.heartbeat));
        self.send_heartbeats(now);
        self.maintain_links(now);
    }
}
