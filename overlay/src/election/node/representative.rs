//! What a representative does: its rounds, the recheck after a gap, a raised term, the end of its reign.
//!
//! Pure. In each round it counts who obeys, chooses its standbys, raises its term above one that is in the
//! way, sends changes of the table, and resigns to a member that the operator prefers.
//! Not here: heartbeats (`heartbeats`), what the reporting layer collects.

use super::Node;
use crate::election::Output;
use crate::election::counters::Counter;
use crate::election::leadership::Stage;
use crate::election::lease::Outcome;
use wire::id::PeerKey;
use wire::membership::{Claim, Message, Question, View};
use wire::time::Moment;

impl Node {
    /// A representative's round.
    pub(super) fn run_round(&mut self, now: Moment) {
        self.recheck(now);
        let Some(leadership) = self.stage.leadership_mut() else { return };
        let config = &self.config;
        let (me, claim, since) = (self.local.key(), leadership.claim(), leadership.since());
        let stretch = self.health.stretch_percent(config, now);
        let patience = self.health.patience(config, 1, now);
        let coverage = leadership.coverage_mut();
        coverage.count(me, claim, &self.links, patience, config, now);
        self.roster.refresh(&self.local, &self.links, (patience, stretch), config, now);
        coverage.update_partial(&self.links, &self.roster, since, config, now);
        leadership.choose_standbys(&self.links, patience * 2, config, now);
        if leadership.contest(self.links.has_stuck_peer(claim, patience, now), config, now) {
            self.raise(now);
        }
        self.send_table(now);
        let preferred = self.stage.leadership().and_then(|leadership| {
            leadership.preferred(self.local.priority(), &self.links, patience, &self.config, now)
        });
        if let Some(preferred) = preferred {
            self.resign_to(preferred, now);
        }
    }

    /// Send the changes of the table to every follower that lacks them.
    fn send_table(&mut self, now: Moment) {
        let Some(claim) = self.stage.leadership().map(|leadership| leadership.claim()) else { return };
        for (peer, held) in self.links.needing_table(claim, self.table().held(), now) {
            let members = self.table().changes_since(held, now);
            self.send(peer, Message::Members(members));
        }
    }

    /// Note an input. A representative whose process did not run for its lease asks its links whether it
    /// still is one.
    pub(super) fn note_input(&mut self, now: Moment) {
        let gap = self.timers.note_input(now);
        let Some(leadership) = self.stage.leadership_mut() else { return };
        if !self.config.mechanisms.recheck || !leadership.lease().is_broken_by(gap, &self.config) {
            return;
        }
        if !leadership.lease().is_suspended() {
            self.counters.count(Counter::Recheck);
            self.links.clear_confirmations();
        }
        let number = self.counters.count(Counter::Question);
        let is_alone = leadership.coverage().members().len() <= 1;
        leadership.lease_mut().ask(number, is_alone, now);
        let question = Message::Question(Question { number, claim: Some(leadership.claim()) });
        for peer in self.links.peers() {
            self.send(peer, question.clone());
        }
    }

    /// A peer answered during a recheck. One that lost this sensor does not confirm: it may have answered a
    /// candidate already.
    pub(super) fn on_recheck_answer(&mut self, from: PeerKey, number: u64, view: View, now: Moment) {
        let Some(leadership) = self.stage.leadership() else { return };
        if !leadership.lease().counts(number) {
            return;
        }
        let claim = leadership.claim();
        if view.claim > Some(claim) && !view.lost {
            self.lose_role(now);
            return;
        }
        if let Some(link) = self.links.get_mut(&from) {
            link.set_confirmed(view.claim == Some(claim) && !view.lost);
        }
        self.recheck(now);
    }

    /// During a recheck: serve again, wait, or lose the role.
    fn recheck(&mut self, now: Moment) {
        let Some(leadership) =
            self.stage.leadership_mut().filter(|leadership| leadership.lease().is_suspended())
        else {
            return;
        };
        let (confirmed, heard) = self.links.confirmations();
        let is_alone = heard == 0 && self.roster.table().count().alive <= 1;
        match leadership.lease().outcome((confirmed, heard), is_alone, &self.config, now) {
            Outcome::Pending => {}
            Outcome::Confirmed => leadership.lease_mut().resume(),
            Outcome::Lost => self.lose_role(now),
        }
    }

    /// Raise the own term above every term seen; it is used once it is on disk.
    pub(super) fn raise(&mut self, now: Moment) {
        let Some(leadership) = self.stage.leadership_mut().filter(|leadership| !leadership.is_raising())
        else {
            return;
        };
        let term = self.terms.next(self.local.rank().mark());
        leadership.start_raise(term);
        self.persist(term);
        if !self.config.mechanisms.durable_term {
            self.on_persisted(term, now);
        }
    }

    /// Yield to a representative that covers more sensors.
    pub(super) fn yield_to(&mut self, to: PeerKey, now: Moment) {
        self.announce_resignation(to);
        self.lose_role(now);
    }

    /// Resign to a member that the operator prefers; that does not count as a loss of the role.
    fn resign_to(&mut self, to: PeerKey, now: Moment) {
        self.announce_resignation(to);
        self.step_down(now);
    }

    /// Step down because the role was lost.
    fn lose_role(&mut self, now: Moment) {
        self.note_loss(now);
        self.step_down(now);
    }

    /// Count a loss of the role: this sensor does not stand again for a while.
    pub(super) fn note_loss(&mut self, now: Moment) {
        self.counters.count(Counter::Yield);
        self.cool_off.start(&self.config, now);
    }

    fn step_down(&mut self, now: Moment) {
        self.stage = Stage::Member;
        self.leader = None;
        self.candidacy.start(now.plus(self.config.suspicion));
    }

    fn announce_resignation(&mut self, to: PeerKey) {
        let Some(claim) = self.stage.leadership().map(|leadership| leadership.claim()) else { return };
        for peer in self.links.peers() {
            self.send(peer, Message::Resign { claim, to: Some(to) });
        }
        self.hand_over(claim, to);
    }

    /// Hand the table, and what the reporting layer stores, over to another representative.
    pub(super) fn hand_over(&mut self, claim: Claim, to: PeerKey) {
        let members = self.roster.members().cloned().collect();
        self.send(to, Message::Yield { claim, members });
        self.outbox.push(Output::HandOver(to));
    }
}
