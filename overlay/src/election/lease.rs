//! A representative that stood still asks before it serves.
//!
//! Pure. Others suspect a representative after the suspicion, stretched by what it last told of its own
//! slowness; for most of that span it may serve without having run, and not a moment longer. Whoever asks
//! [`Node::may_serve`] right after the process was stopped or the host slept gets a no, whatever is still
//! unread on the network.
//! Not here: giving way to a higher claim (`claim`).

use super::node::{Duty, Node, Rule};
use std::time::Duration;
use wire::membership::{Message, Question};
use wire::time::Moment;

impl Node {
    /// Whether this sensor may answer for the domain at `now`. Ask before every answer, record or
    /// acknowledgement given as representative.
    #[must_use]
    pub fn may_serve(&self, now: Moment) -> bool {
        match &self.duty {
            Duty::Representative(rule) if self.config.mechanisms.recheck => {
                rule.recheck.is_none() && now.since(self.ran) <= self.lease(rule)
            }
            Duty::Representative(_) => true,
            Duty::Member | Duty::Promoting(_) => false,
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
        if let Duty::Representative(rule) = &mut self.duty {
            rule.recheck = Some(now);
        }
        if asking {
            return;
        }
        self.figures.rechecks_total += 1;
        self.figures.questions_total += self.links.len() as u64;
        let question =
            Message::Question(Question { number: self.figures.questions_total, claim: Some(claim) });
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            self.send(peer, question.clone());
        }
        for link in self.links.values_mut() {
            link.confirmed = false;
        }
    }

    /// While asking: serve again, go on asking, or give up.
    pub(super) fn recheck(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let Some(since) = rule.recheck else { return };
        let heard: Vec<_> = self.links.values().filter(|link| link.heard.is_some() && !link.left).collect();
        let confirmed = heard.iter().filter(|link| link.confirmed).count();
        // Who served only itself has nobody to ask.
        let alone = rule.coverage.len() <= 1 && now.since(since) >= self.config.recheck;
        let nobody = heard.is_empty() && self.table.count().alive <= 1;
        if (confirmed > 0 && 2 * confirmed >= heard.len()) || alone || nobody {
            if let Duty::Representative(rule) = &mut self.duty {
                rule.recheck = None;
            }
        } else if now.since(since) >= self.config.recheck {
            self.give_up(now);
        }
    }

    fn lease(&self, rule: &Rule) -> Duration {
        let told = rule.told[0].min(rule.told[1]);
        self.config.suspicion * told / 100 * self.config.lease_percent / 100
    }
}
