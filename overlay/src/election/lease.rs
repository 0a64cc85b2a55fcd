//! A representative that stood still asks before it serves.
//!
//! Pure. Others suspect a representative after the suspicion, stretched by what it last told of its own
//! slowness; for most of that span it may serve without having run, and not a moment longer. Whoever asks
//! [`Node::may_serve`] right after the process was stopped or the host slept gets a no, whatever is still
//! unread on the network.
//! More than half of its links must say that they hear it still: a candidate stands with half of them on its
//! side, so the two cannot both be right.
//! Not here: giving way to a higher claim (`claim`).

use super::node::{Duty, Node, Recheck, Rule};
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Message, Question, View};
use wire::time::Moment;

impl Node {
    /// Whether this sensor may answer for the domain at `now`. Ask before every answer, record or
    /// acknowledgement given as representative.
    #[must_use]
    pub fn may_serve(&self, now: Moment) -> bool {
        self.serves_until().is_some_and(|until| now <= until)
    }

    /// Until when this sensor may answer for the domain, if it is not called before; `None` if it may not.
    #[must_use]
    pub fn serves_until(&self) -> Option<Moment> {
        match &self.duty {
            Duty::Representative(rule) if self.config.mechanisms.recheck => {
                rule.recheck.is_none().then(|| self.ran.plus(self.lease(rule)))
            }
            Duty::Representative(_) => Some(Moment(Duration::MAX)),
            Duty::Member | Duty::Promoting(_) => None,
        }
    }

    /// Something is handled: has it been too long since the last time?
    pub(super) fn note_run(&mut self, now: Moment) {
        let gap = now.since(self.ran);
        self.ran = self.ran.max(now);
        if !self.config.mechanisms.recheck {
            return;
        }
        let Duty::Representative(rule) = &self.duty else { return };
        let asking = rule.recheck.is_some();
        if gap <= self.lease(rule) && !(asking && gap >= self.config.lag_unit) {
            return;
        }
        let claim = rule.claim;
        if !asking {
            self.figures.rechecks_total += 1;
            for link in self.links.values_mut() {
                link.confirmed = false;
            }
        }
        self.figures.questions_total += 1;
        let number = self.figures.questions_total;
        if let Duty::Representative(rule) = &mut self.duty {
            let (first, alone) = match &rule.recheck {
                Some(recheck) => (recheck.first, recheck.alone),
                None => (number, rule.coverage.len() <= 1),
            };
            rule.recheck = Some(Recheck { since: now, first, alone });
        }
        let question = Message::Question(Question { number, claim: Some(claim) });
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            self.send(peer, question.clone());
        }
    }

    /// A peer answered while we ask. Only answers to this asking count, not what came while we stood still;
    /// and not those who lost us: they may have said so to a candidate already.
    pub(super) fn rechecked(&mut self, from: PeerKey, number: u64, view: View, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let Some(first) = rule.recheck.as_ref().map(|recheck| recheck.first) else { return };
        if number < first {
            return;
        }
        let ours = rule.claim;
        if view.claim.is_some_and(|claim| claim > ours) && !view.lost {
            self.give_up(now);
            return;
        }
        if let Some(link) = self.links.get_mut(&from) {
            link.confirmed = view.claim == Some(ours) && !view.lost;
        }
        self.recheck(now);
    }

    /// While asking: serve again, go on asking, or give up.
    pub(super) fn recheck(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let Some(Recheck { since, alone, .. }) = rule.recheck else { return };
        let heard: Vec<_> = self.links.values().filter(|link| link.heard.is_some() && !link.left).collect();
        let confirmed = heard.iter().filter(|link| link.confirmed).count();
        // Who served only itself has no one to ask; who lost its links meanwhile has no one left who says that it still is the one.
        let is_over = now.since(since) >= self.config.recheck;
        let nobody = heard.is_empty() && self.table.count().alive <= 1;
        if 2 * confirmed > heard.len() || (alone && (is_over || nobody)) {
            if let Duty::Representative(rule) = &mut self.duty {
                rule.recheck = None;
            }
        } else if is_over {
            self.give_up(now);
        }
    }

    fn lease(&self, rule: &Rule) -> Duration {
        let told = rule.told[0].min(rule.told[1]);
        self.config.suspicion * told / 100 * self.config.lease_percent / 100
    }
}
